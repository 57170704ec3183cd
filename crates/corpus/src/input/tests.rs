//! Tests of inputs in every format, from files, folders and streams: the documents read, and the errors for bad ones.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::input::batch::{BATCH_BYTES, Batch, Buffers};
use crate::input::content::Content;
use crate::input::counts::{BAD_KEPT, Counts};
use crate::input::documents::Documents;
use crate::input::fields::record::Ids;
use crate::input::open::kind::Kind;
use crate::input::open::{folder, reader};
use crate::input::options::{InputFormat, InputOptions};
use crate::input::place::{LOSSY_ADVICE, Place};
use crate::input::text::lossy::InvalidUtf8;

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Document {
    key: Vec<u8>,
    text: String,
    line: Vec<u8>,
    place: Place,
}

/// Reads documents one at a time. Parses and counts each document before the next one is read.
struct SingleDocuments {
    documents: Documents,
    batch: Batch,
    at: usize,
    failed: Option<String>,
}

impl SingleDocuments {
    fn open(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        Documents::open(paths, options).map(Self::of)
    }

    fn with(
        paths: &[PathBuf],
        options: &InputOptions,
        stdin: &mut dyn FnMut() -> Box<dyn Read + Send>,
    ) -> anyhow::Result<Self> {
        Documents::open_with(paths, options, stdin).map(Self::of)
    }

    fn of(documents: Documents) -> Self {
        Self { documents, batch: Batch::default(), at: 0, failed: None }
    }

    fn next_document(&mut self) -> anyhow::Result<Option<Document>> {
        if let Some(failed) = &self.failed {
            return Err(anyhow!("{failed} (reading ended there)"));
        }
        let next = self.advance();
        self.failed = next.as_ref().err().map(|error| format!("{error:#}"));
        next
    }

    fn advance(&mut self) -> anyhow::Result<Option<Document>> {
        loop {
            let singly = self.batch.chunks(1);
            let Some(chunk) = singly.get(self.at) else {
                drop(singly);
                if let Some(failure) = self.batch.take_failure() {
                    return Err(failure);
                }
                self.documents.next_batch(&mut self.batch, BATCH_BYTES);
                self.at = 0;
                if self.batch.is_over() {
                    return Ok(None);
                }
                continue;
            };
            self.at += 1;
            let mut found = None;
            let parser = self.documents.parser();
            let seen = chunk.read(parser, &mut Buffers::default(), |record| {
                let Content::Text(text) = record.content else { panic!("no text") };
                let line = record.line(parser)?.into_owned();
                let place = record.place();
                found = Some(Document { key: record.key.to_vec(), text: text.to_owned(), line, place });
                Ok(())
            })?;
            drop(singly);
            self.documents.account(seen)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn counts(&self) -> &Counts {
        self.documents.counts()
    }
}

/// A temporary folder for the files of a test.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 3).unwrap()
}

/// Returns `count` records in JSON Lines format with the keys `first..`. They are long enough to fill several blocks of
/// a compressor.
fn records(first: usize, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for id in first..first + count {
        let noise: u64 = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        writeln!(bytes, "{{\"id\":{id},\"text\":\"text {noise:016x} of {id}\"}}").unwrap();
    }
    bytes
}

/// The advice at the end of the error for a bad record.
const SKIP: &str = "; --skip-bad N passes over up to N bad records";

fn options(format: InputFormat, skip_bad: u64) -> InputOptions {
    InputOptions { format, skip_bad, ..InputOptions::default() }
}

fn drain(documents: &mut SingleDocuments) -> anyhow::Result<Vec<Document>> {
    let mut all = Vec::new();
    while let Some(document) = documents.next_document()? {
        all.push(document);
    }
    Ok(all)
}

fn read(paths: &[PathBuf], options: &InputOptions) -> (Vec<Document>, Counts) {
    let mut documents = SingleDocuments::open(paths, options).unwrap();
    let all = drain(&mut documents).unwrap();
    let (total, read) = (documents.documents.total_bytes(), documents.documents.bytes_read());
    assert_eq!(total, Some(read), "progress ends at its total");
    (all, documents.counts().clone())
}

fn keys(documents: &[Document]) -> Vec<&str> {
    documents.iter().map(|document| std::str::from_utf8(&document.key).unwrap()).collect()
}

fn open_error(paths: &[PathBuf], options: &InputOptions) -> String {
    Documents::open(paths, options).err().expect("opening fails").to_string()
}

#[test]
fn inputs_are_read_in_order_and_lines_have_positions() {
    let files = Files::new();
    let second = files.write("b.jsonl", records(0, 2));
    let first = files.write("a.ndjson", b"\n{\"id\":\"x\",\"text\":\"\xc3\xbc\"}");
    let third = files.write("c.json", records(5, 1));
    let (all, counts) = read(&[second.clone(), first.clone(), third], &InputOptions::default());
    assert_eq!(keys(&all), ["0", "1", "x", "5"]);
    assert_eq!(all[1].place.to_string(), format!("{}:2", second.display()));
    assert_eq!(all[2].place.to_string(), format!("{}:2", first.display()));
    assert_eq!(all[2].line, "{\"id\":\"x\",\"text\":\"\u{fc}\"}".as_bytes());
    let text_bytes: usize = all.iter().map(|document| document.text.len()).sum();
    let named = counts.named.clone();
    let wanted = Counts { documents: 4, text_bytes: text_bytes as u64, named, ..Counts::default() };
    assert_eq!(counts, wanted);
}

#[test]
fn compressed_lines_of_one_or_several_streams_are_read_like_plain_ones() {
    let files = Files::new();
    let plain = read(&[files.write("a.jsonl", records(0, 4000))], &InputOptions::default()).0;
    for (name, compress) in [("a.jsonl.gz", gzip as fn(&[u8]) -> Vec<u8>), ("a.jsonl.zst", zstd)] {
        let joined = [compress(&records(0, 1500)), compress(&records(1500, 2500))].concat();
        let (all, _) = read(&[files.write(name, joined)], &InputOptions::default());
        assert_eq!(all.len(), plain.len());
        for (found, wanted) in all.iter().zip(&plain) {
            assert_eq!((&found.key, &found.text, &found.line), (&wanted.key, &wanted.text, &wanted.line));
        }
    }
}

#[test]
fn a_compressed_file_without_the_suffix_is_recognised() {
    let files = Files::new();
    let path = files.write("a.jsonl", gzip(&records(0, 3)));
    assert_eq!(keys(&read(&[path], &InputOptions::default()).0), ["0", "1", "2"]);
}

#[test]
fn a_file_that_is_not_compressed_as_its_name_says_is_refused_at_opening() {
    let files = Files::new();
    for (name, bytes, found) in [
        (
            "a.jsonl.gz",
            records(0, 1),
            "named as gzip, but its first bytes are \"{\\\"id\\\":0,\\\"te\"; rename it",
        ),
        ("a.jsonl.zst", gzip(b"x"), "named as zstd, but it is gzip; rename it"),
        ("empty.txt.gz", Vec::new(), "empty, where its name says that it is compressed"),
    ] {
        let path = files.write(name, bytes);
        let message = open_error(std::slice::from_ref(&path), &InputOptions::default());
        assert_eq!(message, format!("{}: {found}", path.display()));
    }
}

#[test]
fn records_before_a_truncation_are_read_and_error_names_path() {
    let files = Files::new();
    for (name, whole) in [("a.jsonl.gz", gzip(&records(0, 9000))), ("a.jsonl.zst", zstd(&records(0, 9000)))] {
        let cut = &whole[..whole.len() - 9];
        let path = files.write(name, cut);
        // The truncation is not a bad record, because the number of lost records is unknown.
        let mut documents =
            SingleDocuments::open(std::slice::from_ref(&path), &options(InputFormat::Auto, 100)).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}: truncated: ", path.display())), "{message}");
        let read = format!("{} bytes were read; copy the file again", cut.len());
        assert!(message.ends_with(&read), "{message}");
        assert!(documents.counts().documents > 100, "{:?}", documents.counts());
    }
}

#[test]
fn a_damaged_archive_is_an_error_with_its_path() {
    let files = Files::new();
    let mut bytes = gzip(&records(0, 9000));
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    let path = files.write("a.jsonl.gz", bytes);
    let mut documents = SingleDocuments::open(std::slice::from_ref(&path), &InputOptions::default()).unwrap();
    let message = drain(&mut documents).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: cannot undo gzip after ", path.display())), "{message}");
}

#[test]
fn zstd_window_over_the_memory_limit_is_refused_at_opening_with_a_workaround() {
    let files = Files::new();
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(30).unwrap();
    encoder.write_all(&records(0, 1)).unwrap();
    let path = files.write("a.jsonl.zst", encoder.finish().unwrap());
    let message = open_error(&[path], &InputOptions::default());
    assert!(message.ends_with("pipe it in as `-` from `zstd -dc --long=31`"), "{message}");
}

#[test]
fn missing_input_is_reported_at_opening_even_if_it_is_the_last() {
    let files = Files::new();
    let there = files.write("a.jsonl", records(0, 1));
    let missing = files.path("b.jsonl");
    let message = open_error(&[there, missing.clone()], &options(InputFormat::Auto, 9));
    assert!(message.starts_with(&format!("{}: cannot read: ", missing.display())), "{message}");
}

#[test]
fn file_of_unknown_format_is_one_text_with_its_path_as_key() {
    let files = Files::new();
    let plain = files.write("a.txt", "\u{feff}one \"text\"");
    let packed = files.write("b.md.gz", gzip(b"two"));
    let zipped = files.write("c.zst", zstd(b""));
    let (all, _) = read(&[plain.clone(), packed.clone(), zipped], &InputOptions::default());
    let wanted = [plain, files.path("b.md"), files.path("c")];
    assert_eq!(keys(&all), wanted.each_ref().map(|path| path.to_str().unwrap()));
    assert_eq!([&*all[0].text, &all[1].text, &all[2].text], ["one \"text\"", "two", ""]);
    assert_eq!(all[1].place.to_string(), packed.to_str().unwrap());
    let line: serde_json::Value = serde_json::from_slice(&all[0].line).unwrap();
    assert_eq!(line, serde_json::json!({ "id": wanted[0], "text": "one \"text\"" }));
}

#[test]
fn named_binary_file_is_a_bad_record() {
    let files = Files::new();
    let binary = files.write("a.bin", b"PART\0\0");
    let latin = files.write("b.txt", b"f\xfcr");
    for (path, said) in [
        (&binary, "not text: a zero byte at offset 4".to_owned()),
        (&latin, format!("not UTF-8: a bad byte at offset 1 ({LOSSY_ADVICE})")),
    ] {
        let mut documents =
            SingleDocuments::open(std::slice::from_ref(path), &InputOptions::default()).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert_eq!(message, format!("{}: {said}{SKIP}", path.display()));
    }
    let (all, counts) = read(&[binary, latin], &options(InputFormat::Auto, 2));
    assert_eq!((all.len(), counts.skipped_bad, counts.no_texts.skipped_binary), (0, 2, 0));
}

#[test]
fn texts_of_a_folder_are_read_in_order_and_skipped_files_counted() {
    let files = Files::new();
    files.write("in/b/two.txt", "2");
    files.write("in/a.txt", "1");
    files.write("in/empty", "");
    files.write("in/c.json", records(0, 3));
    files.write("in/binary", b"\0");
    files.write("in/latin", b"\xfc");
    files.write("in/packed.txt.gz", gzip(b"text"));
    files.write("in/packed.txt.zst", zstd(b"\0"));
    fs::create_dir(files.path("in/no files")).unwrap();
    let (all, counts) = read(&[files.path("in")], &InputOptions::default());
    assert_eq!(keys(&all), ["a.txt", "b/two.txt", "c.json", "empty", "packed.txt"]);
    assert_eq!(["2", "", "text"], [1, 3, 4].map(|at: usize| all[at].text.as_str()));
    assert_eq!(all[1].line, br#"{"id":"b/two.txt","text":"2"}"#);
    assert_eq!(all[1].place.to_string(), files.path("in/b/two.txt").to_str().unwrap());
    let skipped = [counts.no_texts.skipped_binary, counts.no_texts.skipped_not_utf8];
    assert_eq!((counts.documents, skipped), (5, [2, 1]), "{counts:?}");
}

#[test]
fn empty_files_are_inputs_without_documents_and_an_empty_folder_is_an_error() {
    let files = Files::new();
    fs::create_dir(files.path("in")).unwrap();
    let paths = [files.write("a.jsonl", ""), files.write("b.jsonl.gz", gzip(b"\n\n"))];
    assert_eq!(read(&paths, &InputOptions::default()), (Vec::new(), Counts::default()));
    let message = open_error(&[files.path("in")], &InputOptions::default());
    assert!(message.ends_with("in: no file below it"), "{message}");
}

#[test]
fn a_file_that_appears_after_opening_is_not_read() {
    let files = Files::new();
    files.write("in/a", "1");
    let mut documents = SingleDocuments::open(&[files.path("in")], &InputOptions::default()).unwrap();
    files.write("in/out/pairs.tsv", "2");
    assert_eq!(keys(&drain(&mut documents).unwrap()), ["a"]);
}

#[test]
fn unreadable_file_of_a_folder_is_an_error_unless_skipped() {
    let files = Files::new();
    files.write("in/a", "1");
    let gone = files.write("in/b", "2");
    files.write("in/c", "3");
    let mut strict = SingleDocuments::open(&[files.path("in")], &InputOptions::default()).unwrap();
    let mut lenient = SingleDocuments::open(&[files.path("in")], &options(InputFormat::Auto, 1)).unwrap();
    fs::remove_file(&gone).unwrap();
    let message = drain(&mut strict).unwrap_err().to_string();
    let start = format!("{}: cannot open: ", gone.display());
    assert!(message.starts_with(&start), "{message}");
    assert_eq!(keys(&drain(&mut lenient).unwrap()), ["a", "c"]);
    assert!(lenient.counts().first_bad[0].starts_with(&start), "{:?}", lenient.counts());
}

#[test]
fn unreadable_subfolder_is_reported_at_opening_unless_bad_records_are_skipped() {
    let listing = || folder::Listing {
        unreadable: vec![reader::cannot(Path::new("in/b"), "list", &std::io::Error::other("why"))],
        ..folder::list(Files::new().folder.path(), &folder::Patterns::default(), |_| true)
    };
    let mut strict = Documents::open(&[], &InputOptions::default()).unwrap();
    let message = strict.add_listing(Path::new("in"), listing(), None).unwrap_err().to_string();
    assert_eq!(message, format!("in/b: cannot list: why{SKIP}"));
    let mut lenient = Documents::open(&[], &options(InputFormat::Auto, 1)).unwrap();
    lenient.add_listing(Path::new("in"), listing(), None).unwrap();
    assert_eq!(lenient.counts().first_bad, ["in/b: cannot list: why"]);
}

#[cfg(unix)]
#[test]
fn path_that_is_not_utf8_is_a_valid_key() {
    use std::os::unix::ffi::OsStrExt;
    let files = Files::new();
    fs::create_dir(files.path("in")).unwrap();
    let path = files.path("in").join(std::ffi::OsStr::from_bytes(b"f\xfcr"));
    if fs::write(&path, "1").is_err() {
        return; // Some file systems refuse such names.
    }
    let (all, _) = read(&[files.path("in")], &InputOptions::default());
    assert_eq!(all[0].key, b"f\xfcr");
    assert_eq!(all[0].line, "{\"id\":\"f\u{fffd}r\",\"text\":\"1\"}".as_bytes());
    let (all, _) = read(&[path], &InputOptions::default());
    assert!(all[0].key.ends_with(b"/f\xfcr"));
}

#[test]
fn folder_read_as_json_lines_gives_the_records_of_files_with_that_suffix() {
    let files = Files::new();
    files.write("in/b/two.jsonl.zst", zstd(&records(20, 2)));
    files.write("in/a.jsonl", records(10, 2));
    files.write("in/c.ndjson.gz", gzip(&records(30, 1)));
    files.write("in/README.md", "text");
    let (all, counts) = read(&[files.path("in")], &options(InputFormat::Records(Kind::Jsonl), 0));
    assert_eq!(keys(&all), ["10", "11", "20", "21", "30"]);
    assert_eq!(counts.ignored, 1);
    assert_eq!(all[3].place.to_string(), format!("{}:2", files.path("in/b/two.jsonl.zst").display()));
}

#[test]
fn folder_without_json_lines_is_refused_if_they_are_requested() {
    let files = Files::new();
    files.write("in/README.md", "text");
    let message = open_error(&[files.path("in")], &options(InputFormat::Records(Kind::Jsonl), 0));
    assert!(
        message.starts_with(&format!("{}: no file named .jsonl", files.path("in").display())),
        "{message}"
    );
}

#[test]
fn a_shard_that_is_not_compressed_as_its_name_says_is_refused_at_opening() {
    let files = Files::new();
    files.write("in/a.jsonl", records(0, 1));
    let shard = files.write("in/b.jsonl.gz", records(1, 1));
    let message = open_error(&[files.path("in")], &options(InputFormat::Records(Kind::Jsonl), 0));
    assert!(message.starts_with(&format!("{}: named as gzip", shard.display())), "{message}");
}

#[cfg(unix)]
#[test]
fn a_device_or_pipe_is_read_as_a_stream_of_lines() {
    let mut documents =
        SingleDocuments::open(&[PathBuf::from("/dev/null")], &InputOptions::default()).unwrap();
    assert_eq!(documents.documents.total_bytes(), None);
    assert!(documents.next_document().unwrap().is_none());
}

#[test]
fn format_option_overrides_the_file_name() {
    let files = Files::new();
    let lines = files.write("a.txt", records(0, 2));
    assert_eq!(keys(&read(&[lines], &options(InputFormat::Records(Kind::Jsonl), 0)).0), ["0", "1"]);
    let text = files.write("b.jsonl", "not JSON");
    let (all, _) = read(std::slice::from_ref(&text), &options(InputFormat::Text, 0));
    assert_eq!(
        (all[0].key.as_slice(), all[0].text.as_str()),
        (text.to_str().unwrap().as_bytes(), "not JSON")
    );
}

#[test]
fn standard_input_is_json_lines_and_has_no_total_size() {
    for bytes in [records(0, 2), gzip(&records(0, 2)), zstd(&records(0, 2))] {
        let mut stdin = || Box::new(std::io::Cursor::new(bytes.clone())) as Box<dyn Read + Send>;
        let paths = [PathBuf::from("-")];
        let mut documents = SingleDocuments::with(&paths, &InputOptions::default(), &mut stdin).unwrap();
        assert_eq!(documents.documents.total_bytes(), None);
        let all = drain(&mut documents).unwrap();
        assert_eq!(keys(&all), ["0", "1"]);
        assert_eq!(all[1].place.to_string(), "<stdin>:2");
        assert_eq!(documents.documents.bytes_read(), bytes.len() as u64);
    }
}

#[test]
fn standard_input_as_text_is_one_document() {
    let mut stdin = || Box::new(&b"some text"[..]) as Box<dyn Read + Send>;
    let paths = [PathBuf::from("-")];
    let mut documents = SingleDocuments::with(&paths, &options(InputFormat::Text, 0), &mut stdin).unwrap();
    let all = drain(&mut documents).unwrap();
    assert_eq!((keys(&all), all[0].text.as_str()), (vec!["-"], "some text"));
}

#[test]
fn standard_input_can_be_named_only_once() {
    let message = open_error(&["-".into(), "-".into()], &InputOptions::default());
    assert!(message.contains("named twice"), "{message}");
}

#[test]
fn one_field_cannot_be_both_key_and_text() {
    let both = InputOptions { id_field: "text".to_owned(), ..InputOptions::default() };
    assert!(open_error(&[], &both).contains("both to be read from the field \"text\""));
}

#[test]
fn key_and_text_fields_can_be_named() {
    let files = Files::new();
    let path = files.write("a.jsonl", r#"{"id":1,"text":"x","url":"u","body":"b"}"#);
    let named =
        InputOptions { id_field: "url".to_owned(), text_field: "body".to_owned(), ..InputOptions::default() };
    let (all, _) = read(&[path], &named);
    assert_eq!((keys(&all), all[0].text.as_str()), (vec!["u"], "b"));
}

/// Found by fuzzing: two different keys that are not UTF-8 became equal when they were written as JSON.
#[test]
fn key_that_is_not_utf8_is_a_bad_record_or_a_percent_encoded_url() {
    let files = Files::new();
    let archive =
        b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: b\xfe\r\nContent-Type: text/plain\r\n\
        Content-Length: 1\r\n\r\nx\r\n\r\n";
    let inputs = [
        files.write("a.csv", b"id,text\nb\xfe,x\nb,x\n"),
        files.write("a.tsv", b"id\ttext\nb\xfe\tx\n"),
        files.write("a.wet", archive),
    ];
    for invalid_utf8 in [InvalidUtf8::Error, InvalidUtf8::Replace] {
        let options = InputOptions { invalid_utf8, ..options(InputFormat::Auto, 2) };
        let (all, counts) = read(&inputs, &options);
        assert_eq!((keys(&all), counts.skipped_bad), (vec!["b", "b%FE"], 2));
        for bad in &counts.first_bad {
            assert!(
                bad.ends_with(
                    ": not UTF-8: byte 0xfe at offset 1 of the key, and bytes of keys are never replaced"
                ),
                "{bad}"
            );
        }
    }
}

#[test]
fn bad_records_are_skipped_and_counted_up_to_the_number_allowed() {
    let files = Files::new();
    let path = files
        .write("a.jsonl", [&b"x\n"[..], &records(1, 2), b"{\"id\":0}\n", &records(3, 1), b"y\n"].concat());
    let (all, counts) = read(std::slice::from_ref(&path), &options(InputFormat::Auto, 3));
    assert_eq!(keys(&all), ["1", "2", "3"]);
    assert_eq!((counts.documents, counts.skipped_bad, counts.first_bad.len()), (3, 3, 3));
    assert!(counts.first_bad[1].starts_with(&format!("{}:4: no field \"text\"", path.display())));

    let mut documents =
        SingleDocuments::open(std::slice::from_ref(&path), &options(InputFormat::Auto, 2)).unwrap();
    let message = drain(&mut documents).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}:6: invalid JSON", path.display())), "{message}");
    assert!(message.ends_with("; as many bad records as --skip-bad 2 allows came before it"), "{message}");
}

#[test]
fn only_the_first_bad_records_are_listed() {
    let files = Files::new();
    let path = files.write("a.jsonl", "x\n".repeat(100));
    let (_, counts) = read(&[path], &options(InputFormat::Auto, 100));
    assert_eq!((counts.skipped_bad, counts.first_bad.len()), (100, BAD_KEPT));
}

#[test]
fn a_text_longer_than_the_limit_is_a_bad_record() {
    let files = Files::new();
    let limited = InputOptions { record_bytes_max: 4, ..InputOptions::default() };
    for path in [files.write("a.txt", "12345"), files.write("in/b.txt", "12345").parent().unwrap().into()] {
        let mut documents = SingleDocuments::open(&[path], &limited).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert!(message.ends_with(&format!(".txt: a text of more than 4 bytes{SKIP}")), "{message}");
    }
}

#[test]
fn reader_fails_at_every_call_after_an_error() {
    let files = Files::new();
    let path = files.write("a.jsonl", [&b"x\n"[..], &records(1, 2)].concat());
    let mut documents = SingleDocuments::open(&[path], &InputOptions::default()).unwrap();
    let first = documents.next_document().unwrap_err().to_string();
    for _ in 0..3 {
        let again = documents.next_document().unwrap_err().to_string();
        assert_eq!(again, format!("{first} (reading ended there)"));
    }
    assert_eq!(documents.counts().documents, 0);
}

#[test]
fn reader_reports_the_end_at_every_later_call() {
    let files = Files::new();
    let mut documents =
        SingleDocuments::open(&[files.write("a.jsonl", records(0, 1))], &InputOptions::default()).unwrap();
    assert!(documents.next_document().unwrap().is_some());
    assert!(documents.next_document().unwrap().is_none());
    assert!(documents.next_document().unwrap().is_none());
}

#[test]
fn documents_can_be_read_on_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Documents>();
    assert_send::<Batch>();
}

#[test]
fn records_without_a_key_are_keyed_by_line_unless_a_key_field_is_named() {
    let files = Files::new();
    let jsonl = files.write("a.jsonl", "{\"text\":\"one\"}\n\n{\"id\":\"k\",\"text\":\"two\"}\n");
    let csv = files.write("b.csv", "text,n\n\"one\nline\",1\ntwo,2\n");
    let warc = files.write(
        "c.wet",
        "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n",
    );
    let paths = [jsonl.clone(), csv.clone(), warc.clone()];
    let key = |path: &Path, row: u64| format!("{}:{row}", path.display());
    let (all, counts) = read(&paths, &InputOptions::default());
    let wanted = [key(&jsonl, 1), "k".to_owned(), key(&csv, 2), key(&csv, 4), key(&warc, 1)];
    assert_eq!(keys(&all), wanted);
    assert_eq!((counts.documents, counts.keyed_by_line), (5, 4));
    assert!(counts.remarks()[0].starts_with("4 documents with the key FILE:ROW"), "{:?}", counts.remarks());

    let by_line = InputOptions { ids: Ids::Line, ..InputOptions::default() };
    let (all, counts) = read(&paths, &by_line);
    assert_eq!(keys(&all)[1], key(&jsonl, 3));
    assert_eq!(counts.keyed_by_line, 5);

    for named in [
        InputOptions { ids: Ids::Field, ..InputOptions::default() },
        InputOptions { id_field: "url".to_owned(), ..InputOptions::default() },
    ] {
        let mut documents = SingleDocuments::open(std::slice::from_ref(&jsonl), &named).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert!(message.contains(&format!(":1: no field {:?}", named.id_field)), "{message}");
        assert!(Documents::open(std::slice::from_ref(&csv), &named).is_err());
        let mut documents = SingleDocuments::open(std::slice::from_ref(&warc), &named).unwrap();
        assert!(drain(&mut documents).is_err());
    }
    let stdin = &mut || -> Box<dyn Read + Send> { Box::new(&b"{\"text\":\"one\"}\n"[..]) };
    let mut documents = SingleDocuments::with(&["-".into()], &InputOptions::default(), stdin).unwrap();
    assert_eq!(keys(&drain(&mut documents).unwrap()), ["-:1"]);
}

#[test]
fn key_can_be_several_columns_or_header_fields() {
    let files = Files::new();
    let csv = files.write("b.csv", "meta.url,shard,row,title,body\nu,\"a,b\",1,T,B\nv,c,2,,X\n");
    let of = |id: &str, text: &str| {
        let options = InputOptions { id_field: id.into(), text_field: text.into(), ..Default::default() };
        read(std::slice::from_ref(&csv), &options).0
    };
    let all = of("shard,row", "title,body");
    assert_eq!(keys(&all), ["a\\,b,1", "c,2"]);
    assert_eq!((&*all[0].text, &*all[1].text), ("T\nB", "\nX"));
    assert_eq!(keys(&of("meta.url", "body")), ["u", "v"]);
    let warc = files.write(
        "c.wet",
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\nWARC-Date: 2020\r\n\
         Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n",
    );
    let id_field = "WARC-Target-URI,WARC-Date".to_owned();
    let options = InputOptions { id_field, ..InputOptions::default() };
    assert_eq!(keys(&read(&[warc], &options).0), ["http://a/,2020"]);
}
