//! The one door through which every verb reads documents.
//!
//! ```text
//! PATH            is                                          its documents
//! *.jsonl         JSON lines; so are .ndjson and .json        one a line, key = the id field
//! FOLDER          every regular file below it, in order       one a file, key = the path below FOLDER
//! -               standard input, or a pipe named otherwise   as JSON lines
//! anything else   plain text                                  one, key = the path as given
//! ```
//!
//! A `.gz` or `.zst` behind the name of a file is undone, and is no part of a key; inside a folder of texts a
//! compressed file is binary. [`InputFormat`] overrides what the names say. Texts are UTF-8, and a byte order
//! mark before one is dropped.
//!
//! Two kinds of trouble are kept apart. A *bad record* concerns one document (no such field, invalid JSON, a
//! file of a folder that cannot be opened) and may be skipped, up to [`InputOptions::skip_bad`] times.
//! Anything else (a truncated archive, a disk that fails) ends the reading, for good. Files of a folder that
//! are not text are neither: they are passed over and counted.
//!
//! Reading and understanding are apart. [`Documents`] reads [`Batch`]es, one after the other; what stands in a
//! line is found out by whoever works on a part of a batch, on any thread, and [`Documents::account`] is told in
//! the order of the input.

mod batch;
mod features;
mod folder;
mod jsonl;
mod open;
mod place;
mod scan;

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{anyhow, bail};
use serde::Serialize;

use crate::report::{count, counted};
use batch::Whole;
pub(crate) use batch::{Batch, Buffers, Chunk, Content, Parser, Record, Seen};
use folder::Contents;
use jsonl::JsonLines;
use open::{Origin, Reader};
pub(crate) use place::Place;

/// The longest key, in bytes: what the index can hold.
const KEY_BYTES_MAX: usize = 65_535;
/// How many bad records are kept for the summary, beside their number.
const BAD_KEPT: usize = 5;

/// What is done about bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InvalidUtf8 {
    /// A line or a file that was named is a bad record; files in folders are passed over.
    #[default]
    Error,
    /// Each longest part of a character that breaks off, and each byte that begins none, becomes U+FFFD, but for those
    /// of keys.
    Replace,
}

/// How inputs are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InputFormat {
    /// By name: see the head of this module.
    #[default]
    Auto,
    /// JSON lines whatever the name. Of a folder, the files named as JSON lines, the others being ignored.
    Jsonl,
    /// Each file one document, whatever the name; standard input too, with the key `-`.
    Text,
}

/// What a command's options say about its inputs.
#[derive(Clone, Debug)]
pub(crate) struct InputOptions {
    /// The field that holds the text, `text` by default.
    pub(crate) text_field: String,
    /// Whether that field holds features instead, as [`features`] says.
    pub(crate) features: bool,
    /// The field that holds the key, `id` by default.
    pub(crate) id_field: String,
    /// How inputs are told apart.
    pub(crate) format: InputFormat,
    /// How many bad records are skipped and counted; one more is an error.
    pub(crate) skip_bad: u64,
    /// What is done about bytes that are not UTF-8.
    pub(crate) invalid_utf8: InvalidUtf8,
    /// The longest line or text file, in bytes, that is taken for a document: 256 MiB by default. Memory
    /// stays within a small multiple of it.
    pub(crate) record_bytes_max: usize,
    /// Whether what has come by a pipe is handed out before more is waited for.
    pub(crate) as_it_comes: bool,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self {
            text_field: "text".to_owned(),
            features: false,
            id_field: "id".to_owned(),
            format: InputFormat::Auto,
            skip_bad: 0,
            invalid_utf8: InvalidUtf8::Error,
            record_bytes_max: 256 << 20,
            as_it_comes: false,
        }
    }
}

/// What has been read and passed over so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Documents handed out.
    pub(crate) documents: u64,
    /// The lengths of their texts in UTF-8, or of the names of their features, added up.
    pub(crate) text_bytes: u64,
    /// Those in which bytes that are not UTF-8 were replaced.
    pub(crate) replaced_utf8: u64,
    /// Files of folders with a zero byte in them.
    pub(crate) skipped_binary: u64,
    /// Files of folders that have no zero byte and are not UTF-8 either.
    pub(crate) skipped_not_utf8: u64,
    /// Problem records, as far as [`InputOptions::skip_bad`] allowed.
    pub(crate) skipped_bad: u64,
    /// Entries of folders that nobody asked for: links, devices, and files not named as JSON lines where only
    /// those were wanted.
    pub(crate) ignored: u64,
    /// The first few bad records, each as `place: reason`.
    pub(crate) first_bad: Vec<String>,
}

impl Counts {
    /// What a person should know who reads nothing but the summary.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let passed_over = self.skipped_binary + self.skipped_not_utf8;
        if passed_over > 0 {
            remarks.push(format!(
                "{} passed over: {} binary, {} not UTF-8",
                counted(passed_over, "file"),
                count(self.skipped_binary),
                count(self.skipped_not_utf8)
            ));
        }
        if self.replaced_utf8 > 0 {
            let documents = counted(self.replaced_utf8, "document");
            remarks.push(format!("{documents} not UTF-8, the bytes in question replaced by U+FFFD"));
        }
        if let Some(first) = self.first_bad.first() {
            remarks.push(format!("{} skipped, the first: {first}", counted(self.skipped_bad, "bad record")));
        }
        remarks
    }
}

/// What is wrong with a record, or with a whole input.
#[derive(Clone, Debug)]
struct Problem {
    place: Place,
    reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Problem {}

/// What is still to be read, in the order given.
enum Source {
    Lines(Origin),
    /// One document, with its key.
    Whole(Origin, Vec<u8>),
    /// Every file a document.
    Folder {
        root: PathBuf,
        files: std::vec::IntoIter<Box<Path>>,
    },
}

impl Source {
    /// What messages call it.
    fn name(&self) -> Arc<Path> {
        match self {
            Self::Lines(origin) | Self::Whole(origin, _) => origin.name(),
            Self::Folder { root, .. } => Arc::from(root.as_path()),
        }
    }
}

/// All documents of all inputs, one after the other.
pub(crate) struct Documents {
    parser: Parser,
    skip_bad: u64,
    record_bytes_max: usize,
    as_it_comes: bool,
    /// In reverse: the next one is the last.
    sources: Vec<Source>,
    /// The stream of lines that is being read; it comes before `sources`.
    lines: Option<JsonLines>,
    counts: Counts,
    consumed: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    /// Whether nothing more will be read, as reading failed.
    stopped: bool,
}

/// The lines of a table, compressed or not, with their numbers. Blank ones are passed over.
pub(crate) struct TableLines(JsonLines);

impl TableLines {
    /// The longest line: two keys of the greatest length, each byte escaped, and some numbers.
    const LINE_BYTES_MAX: usize = 1 << 20;

    /// # Errors
    ///
    /// The file cannot be opened, or is not compressed as its name says.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
        Ok(Self(JsonLines::new(reader, Self::LINE_BYTES_MAX)))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> Arc<Path> {
        Arc::clone(self.0.name())
    }

    /// The next line; none at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read on, or the line is too long.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<(u64, &[u8])>> {
        match self.0.next()? {
            None => Ok(None),
            Some((number, found)) => Ok(Some((number, found?.line))),
        }
    }
}

impl Documents {
    /// Looks at every input and reads nothing yet, so that a bad name is told before anything is written.
    ///
    /// The files of folders are listed here: about a hundred bytes of memory each, and whatever appears in
    /// the folder later is not read.
    ///
    /// # Errors
    ///
    /// Names the input that does not exist, cannot be opened, read or listed, is not compressed as its name
    /// says, or is a folder without JSON lines although those are wanted; `-` given twice; both fields the
    /// same.
    pub(crate) fn open(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        Self::open_with(paths, options, &mut || Box::new(std::io::stdin()))
    }

    /// As [`Documents::open`], with standard input from elsewhere.
    fn open_with(
        paths: &[PathBuf],
        options: &InputOptions,
        stdin: &mut dyn FnMut() -> Box<dyn Read + Send>,
    ) -> anyhow::Result<Self> {
        if options.id_field == options.text_field {
            let what = if options.features { "features" } else { "text" };
            bail!("the id and the {what} are both to be read from the field {:?}", options.id_field);
        }
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            bail!("`-`, standard input, is named twice; it can be read only once");
        }
        let mut documents = Self {
            parser: Parser::new(options),
            skip_bad: options.skip_bad,
            record_bytes_max: options.record_bytes_max,
            as_it_comes: options.as_it_comes,
            sources: Vec::new(),
            lines: None,
            counts: Counts::default(),
            consumed: Arc::default(),
            total_bytes: Some(0),
            stopped: false,
        };
        for path in paths {
            if is_stdin(path) {
                documents.add_stream(path, Place::STDIN.as_ref(), stdin(), options.format);
            } else {
                documents.add(path, options.format)?;
            }
        }
        if options.features
            && let Some(source) = documents.sources.iter().find(|source| !matches!(source, Source::Lines(_)))
        {
            bail!(
                "{}: plain text, where --features-field {} asks for JSONL (--format jsonl takes any file so)",
                source.name().display(),
                options.text_field
            );
        }
        documents.sources.reverse();
        Ok(documents)
    }

    /// Adds what stands at `path`.
    fn add(&mut self, path: &Path, format: InputFormat) -> anyhow::Result<()> {
        let metadata = fs::metadata(path).map_err(|error| open::cannot(path, "read", &error))?;
        if metadata.is_dir() {
            return self.add_folder(path, format);
        }
        if !metadata.is_file() {
            let file = fs::File::open(path).map_err(|error| open::cannot(path, "open", &error))?;
            self.add_stream(path, path, Box::new(file), format);
            return Ok(());
        }
        open::check_file(path)?;
        self.add_total(Some(metadata.len()));
        let origin = Origin::File(path.to_owned());
        let lines = match format {
            InputFormat::Auto => open::is_named_jsonl(path),
            InputFormat::Jsonl => true,
            InputFormat::Text => false,
        };
        self.sources.push(if lines {
            Source::Lines(origin)
        } else {
            let key = folder::os_bytes(open::without_compression(path).as_os_str());
            Source::Whole(origin, key)
        });
        Ok(())
    }

    /// Adds a stream that can be opened only once: JSON lines, unless text was asked for.
    fn add_stream(&mut self, path: &Path, name: &Path, reader: Box<dyn Read + Send>, format: InputFormat) {
        self.add_total(None);
        let origin = Origin::Stream { name: Arc::from(name), reader };
        self.sources.push(match format {
            InputFormat::Auto | InputFormat::Jsonl => Source::Lines(origin),
            InputFormat::Text => Source::Whole(origin, folder::os_bytes(path.as_os_str())),
        });
    }

    /// Adds the files of a folder.
    fn add_folder(&mut self, root: &Path, format: InputFormat) -> anyhow::Result<()> {
        let jsonl = format == InputFormat::Jsonl;
        self.add_listing(root, folder::list(root, |path| !jsonl || open::is_named_jsonl(path)), jsonl)
    }

    /// Adds the files of a folder as listed: as JSON lines, or each as a document.
    fn add_listing(&mut self, root: &Path, listing: folder::Listing, jsonl: bool) -> anyhow::Result<()> {
        for bad in listing.unreadable {
            self.skip(&bad)?;
        }
        if jsonl && listing.files.is_empty() {
            bail!(
                "{}: no file named .jsonl, .ndjson or .json (with or without .gz or .zst) below it",
                root.display()
            );
        }
        self.counts.ignored += listing.ignored;
        self.add_total(Some(listing.bytes));
        if jsonl {
            for file in &listing.files {
                let path = root.join(file);
                open::check_file(&path)?;
                self.sources.push(Source::Lines(Origin::File(path)));
            }
        } else {
            self.sources.push(Source::Folder { root: root.to_owned(), files: listing.files.into_iter() });
        }
        Ok(())
    }

    /// Adds to the total of bytes, which is unknown once one input's size is.
    fn add_total(&mut self, bytes: Option<u64>) {
        self.total_bytes = self.total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
    }

    /// Replaces `batch` by the next records, none after the last. What ended the reading, if anything did, stands
    /// behind them, [`Batch::take_failure`], and nothing is read after it.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch) {
        batch.clear();
        while !self.stopped && !batch.is_full() {
            let waits = || self.lines.as_ref().is_some_and(JsonLines::would_wait);
            if self.as_it_comes && batch.has_records() && waits() {
                return;
            }
            match self.advance(batch) {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    self.stopped = true;
                    batch.fail(failure);
                }
            }
        }
    }

    /// What finds out what records say; a copy for each thread.
    pub(crate) fn parser(&self) -> &Parser {
        &self.parser
    }

    /// Counts what was seen in a part of a batch. To be called in the order of the input.
    ///
    /// # Errors
    ///
    /// A bad record beyond [`InputOptions::skip_bad`], with its place.
    pub(crate) fn account(&mut self, seen: Seen) -> anyhow::Result<()> {
        let Seen { documents, text_bytes, replaced, bad } = seen;
        self.counts.documents += documents;
        self.counts.text_bytes += text_bytes;
        self.counts.replaced_utf8 += replaced;
        bad.iter().try_for_each(|bad| self.skip(bad))
    }

    /// What has been read and passed over so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Bytes of the inputs themselves (compressed, if they are) that have been read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// What [`Documents::bytes_read`] will be at the end, unless a file changes; `None` with standard input
    /// or a pipe among the inputs.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Reads one record more, or takes one step towards it; false at the end of the input.
    fn advance(&mut self, batch: &mut Batch) -> anyhow::Result<bool> {
        if let Some(lines) = &mut self.lines {
            let name = Arc::clone(lines.name());
            match lines.next()? {
                None => self.lines = None,
                Some((number, Ok(found))) => batch.push_line(found, number, name),
                Some((_, Err(bad))) => batch.push_bad(bad),
            }
        } else if let Some(source) = self.sources.pop() {
            self.begin(source, batch)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes one record from `source`, or sets it up to be read on.
    fn begin(&mut self, source: Source, batch: &mut Batch) -> anyhow::Result<()> {
        match source {
            Source::Lines(origin) => {
                let reader = Reader::open(origin, &self.consumed)?;
                self.lines = Some(JsonLines::new(reader, self.record_bytes_max));
            }
            Source::Whole(origin, key) => match self.whole(origin, key)? {
                Ok(whole) => batch.push_whole(whole),
                Err(bad) => batch.push_bad(bad),
            },
            Source::Folder { root, mut files } => {
                let Some(file) = files.next() else { return Ok(()) };
                let path = root.join(&file);
                self.sources.push(Source::Folder { root, files });
                match self.file_of_folder(&path, &file) {
                    None => {}
                    Some(Ok(whole)) => batch.push_whole(whole),
                    Some(Err(bad)) => batch.push_bad(bad),
                }
            }
        }
        Ok(())
    }

    /// An input that is one document. It was named, so what is wrong with it is worth an error.
    fn whole(&self, origin: Origin, key: Vec<u8>) -> anyhow::Result<Result<Whole, Problem>> {
        let place = Place::file(origin.name());
        let reader = Reader::open(origin, &self.consumed)?;
        let contents = folder::read_contents(reader, self.record_bytes_max, self.parser.invalid_utf8())?;
        let reason = match contents {
            Contents::Text(text) => return Ok(whole(key, text, false, place)),
            Contents::Replaced(text) => return Ok(whole(key, text, true, place)),
            Contents::Binary { offset } => format!("not text: a zero byte at offset {offset}"),
            Contents::NotUtf8 { offset } => {
                format!("not UTF-8: a bad byte at offset {offset} (--invalid-utf8 replace takes it)")
            }
            Contents::TooLong => self.too_long(),
        };
        Ok(Err(Problem { place, reason }))
    }

    /// A file of a folder, `None` if it is no text.
    fn file_of_folder(&mut self, path: &Path, below: &Path) -> Option<Result<Whole, Problem>> {
        let place = Place::file(Arc::from(path));
        let invalid = self.parser.invalid_utf8();
        let reason = match folder::read_file(path, self.record_bytes_max, invalid, &self.consumed) {
            Ok(Contents::Text(text)) => return Some(whole(folder::key_below(below), text, false, place)),
            Ok(Contents::Replaced(text)) => return Some(whole(folder::key_below(below), text, true, place)),
            Ok(Contents::Binary { .. }) => {
                self.counts.skipped_binary += 1;
                return None;
            }
            Ok(Contents::NotUtf8 { .. }) => {
                self.counts.skipped_not_utf8 += 1;
                return None;
            }
            Ok(Contents::TooLong) => self.too_long(),
            Err(problem) => return Some(Err(problem)),
        };
        Some(Err(Problem { place, reason }))
    }

    fn too_long(&self) -> String {
        format!("a text of more than {} bytes", self.record_bytes_max)
    }

    /// Counts a bad record, or makes it an error if there have been enough.
    fn skip(&mut self, bad: &Problem) -> anyhow::Result<()> {
        if self.counts.skipped_bad == self.skip_bad {
            return Err(match self.skip_bad {
                0 => anyhow!("{bad}; --skip-bad N passes over up to N bad records"),
                allowed => {
                    anyhow!("{bad}; as many bad records as --skip-bad {allowed} allows came before it")
                }
            });
        }
        self.counts.skipped_bad += 1;
        if self.counts.first_bad.len() < BAD_KEPT {
            self.counts.first_bad.push(bad.to_string());
        }
        Ok(())
    }
}

/// A text with its key, if the key will do.
fn whole(key: Vec<u8>, text: String, replaced: bool, place: Place) -> Result<Whole, Problem> {
    match check_key(&key) {
        Ok(()) => Ok(Whole { key, text, replaced, place }),
        Err(reason) => Err(Problem { place, reason }),
    }
}

/// Whether `path` is the usual sign for standard input.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Says what is wrong with a key that no index takes.
fn check_key(key: &[u8]) -> Result<(), String> {
    match key.len() {
        0 => Err("the key is empty".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(format!("the key has {bytes} bytes, {KEY_BYTES_MAX} is the most")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// One document, as it came in.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Document {
        key: Vec<u8>,
        text: String,
        line: Vec<u8>,
        place: Place,
    }

    /// Documents one by one, each looked into and accounted for before the next.
    struct OneByOne {
        documents: Documents,
        batch: Batch,
        at: usize,
        failed: Option<String>,
    }

    impl OneByOne {
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
                    self.documents.next_batch(&mut self.batch);
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

    /// A folder for one test's files.
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

    /// `count` records of JSON lines with the keys `first..`, long enough to fill some blocks of a
    /// compressor.
    fn records(first: usize, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for id in first..first + count {
            let noise: u64 = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            writeln!(bytes, "{{\"id\":{id},\"text\":\"text {noise:016x} of {id}\"}}").unwrap();
        }
        bytes
    }

    /// The advice behind every bad record that ends the reading.
    const SKIP: &str = "; --skip-bad N passes over up to N bad records";

    fn options(format: InputFormat, skip_bad: u64) -> InputOptions {
        InputOptions { format, skip_bad, ..InputOptions::default() }
    }

    fn drain(documents: &mut OneByOne) -> anyhow::Result<Vec<Document>> {
        let mut all = Vec::new();
        while let Some(document) = documents.next_document()? {
            all.push(document);
        }
        Ok(all)
    }

    fn read(paths: &[PathBuf], options: &InputOptions) -> (Vec<Document>, Counts) {
        let mut documents = OneByOne::open(paths, options).unwrap();
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
    fn inputs_are_read_in_the_order_given_and_lines_carry_their_place() {
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
        let wanted = Counts { documents: 4, text_bytes: text_bytes as u64, ..Counts::default() };
        assert_eq!(counts, wanted);
    }

    #[test]
    fn compressed_lines_are_read_like_plain_ones_however_many_streams_they_are_made_of() {
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
            ("empty.txt.gz", Vec::new(), "named as gzip, but its first bytes are \"\"; rename it"),
        ] {
            let path = files.write(name, bytes);
            let message = open_error(std::slice::from_ref(&path), &InputOptions::default());
            assert_eq!(message, format!("{}: {found}", path.display()));
        }
    }

    #[test]
    fn a_truncated_archive_is_an_error_with_its_path_and_length_after_the_records_before() {
        let files = Files::new();
        for (name, whole) in
            [("a.jsonl.gz", gzip(&records(0, 9000))), ("a.jsonl.zst", zstd(&records(0, 9000)))]
        {
            let cut = &whole[..whole.len() - 9];
            let path = files.write(name, cut);
            // Not a bad record: nothing says how many are lost.
            let mut documents =
                OneByOne::open(std::slice::from_ref(&path), &options(InputFormat::Auto, 100)).unwrap();
            let message = drain(&mut documents).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{}: truncated: ", path.display())), "{message}");
            assert!(message.ends_with(&format!("{} bytes were read", cut.len())), "{message}");
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
        let mut documents = OneByOne::open(std::slice::from_ref(&path), &InputOptions::default()).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}: cannot undo gzip after ", path.display())), "{message}");
    }

    #[test]
    fn a_zstd_window_that_takes_too_much_memory_is_refused_at_opening_with_the_way_round() {
        let files = Files::new();
        let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(30).unwrap();
        encoder.write_all(&records(0, 1)).unwrap();
        let path = files.write("a.jsonl.zst", encoder.finish().unwrap());
        let message = open_error(&[path], &InputOptions::default());
        assert!(message.ends_with("pipe it in as `-` from `zstd -dc --long=31`"), "{message}");
    }

    #[test]
    fn a_missing_input_is_named_at_opening_even_as_the_last() {
        let files = Files::new();
        let there = files.write("a.jsonl", records(0, 1));
        let missing = files.path("b.jsonl");
        let message = open_error(&[there, missing.clone()], &options(InputFormat::Auto, 9));
        assert!(message.starts_with(&format!("{}: cannot read: ", missing.display())), "{message}");
    }

    #[test]
    fn any_other_file_is_one_text_with_its_path_as_key() {
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
    fn a_named_file_that_is_no_text_is_a_bad_record() {
        let files = Files::new();
        let binary = files.write("a.parquet", b"PAR1\0\0");
        let latin = files.write("b.txt", b"f\xfcr");
        for (path, said) in [
            (&binary, "not text: a zero byte at offset 4"),
            (&latin, "not UTF-8: a bad byte at offset 1 (--invalid-utf8 replace takes it)"),
        ] {
            let mut documents = OneByOne::open(std::slice::from_ref(path), &InputOptions::default()).unwrap();
            let message = drain(&mut documents).unwrap_err().to_string();
            assert_eq!(message, format!("{}: {said}{SKIP}", path.display()));
        }
        let (all, counts) = read(&[binary, latin], &options(InputFormat::Auto, 2));
        assert_eq!((all.len(), counts.skipped_bad, counts.skipped_binary), (0, 2, 0));
    }

    #[test]
    fn a_folder_gives_its_texts_in_order_and_counts_what_it_passes_over() {
        let files = Files::new();
        files.write("in/b/two.txt", "2");
        files.write("in/a.txt", "1");
        files.write("in/empty", "");
        files.write("in/c.jsonl", records(0, 3));
        files.write("in/binary", b"\0");
        files.write("in/latin", b"\xfc");
        files.write("in/packed.txt.gz", gzip(b"text"));
        files.write("in/packed.txt.zst", zstd(b"\0"));
        fs::create_dir(files.path("in/no files")).unwrap();
        let (all, counts) = read(&[files.path("in")], &InputOptions::default());
        assert_eq!(keys(&all), ["a.txt", "b/two.txt", "c.jsonl", "empty"]);
        assert_eq!((all[1].text.as_str(), all[3].text.as_str()), ("2", ""));
        assert_eq!(all[1].line, br#"{"id":"b/two.txt","text":"2"}"#);
        assert_eq!(all[1].place.to_string(), files.path("in/b/two.txt").to_str().unwrap());
        assert_eq!((counts.documents, counts.skipped_binary + counts.skipped_not_utf8), (4, 4));
        assert!(counts.skipped_binary >= 2 && counts.skipped_not_utf8 >= 1, "{counts:?}");
    }

    #[test]
    fn an_empty_folder_and_empty_files_are_inputs_without_documents() {
        let files = Files::new();
        fs::create_dir(files.path("in")).unwrap();
        let paths = [files.path("in"), files.write("a.jsonl", ""), files.write("b.jsonl.gz", gzip(b"\n\n"))];
        assert_eq!(read(&paths, &InputOptions::default()), (Vec::new(), Counts::default()));
    }

    #[test]
    fn a_file_that_appears_after_opening_is_not_read() {
        let files = Files::new();
        files.write("in/a", "1");
        let mut documents = OneByOne::open(&[files.path("in")], &InputOptions::default()).unwrap();
        files.write("in/out/pairs.tsv", "2");
        assert_eq!(keys(&drain(&mut documents).unwrap()), ["a"]);
    }

    #[test]
    fn a_file_of_a_folder_that_cannot_be_read_is_an_error_unless_bad_ones_are_skipped() {
        let files = Files::new();
        files.write("in/a", "1");
        let gone = files.write("in/b", "2");
        files.write("in/c", "3");
        let mut strict = OneByOne::open(&[files.path("in")], &InputOptions::default()).unwrap();
        let mut lenient = OneByOne::open(&[files.path("in")], &options(InputFormat::Auto, 1)).unwrap();
        fs::remove_file(&gone).unwrap();
        let message = drain(&mut strict).unwrap_err().to_string();
        let start = format!("{}: cannot open: ", gone.display());
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(keys(&drain(&mut lenient).unwrap()), ["a", "c"]);
        assert!(lenient.counts().first_bad[0].starts_with(&start), "{:?}", lenient.counts());
    }

    #[test]
    fn a_folder_below_that_cannot_be_listed_is_told_at_opening_unless_bad_ones_are_skipped() {
        let listing = || folder::Listing {
            unreadable: vec![open::cannot(Path::new("in/b"), "list", &std::io::Error::other("why"))],
            ..folder::list(Files::new().folder.path(), |_| true)
        };
        let mut strict = Documents::open(&[], &InputOptions::default()).unwrap();
        let message = strict.add_listing(Path::new("in"), listing(), false).unwrap_err().to_string();
        assert_eq!(message, format!("in/b: cannot list: why{SKIP}"));
        let mut lenient = Documents::open(&[], &options(InputFormat::Auto, 1)).unwrap();
        lenient.add_listing(Path::new("in"), listing(), false).unwrap();
        assert_eq!(lenient.counts().first_bad, ["in/b: cannot list: why"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_utf8_is_a_key_all_the_same() {
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
    fn as_json_lines_a_folder_gives_the_records_of_the_files_named_so() {
        let files = Files::new();
        files.write("in/b/two.jsonl.zst", zstd(&records(20, 2)));
        files.write("in/a.jsonl", records(10, 2));
        files.write("in/c.ndjson.gz", gzip(&records(30, 1)));
        files.write("in/README.md", "text");
        let (all, counts) = read(&[files.path("in")], &options(InputFormat::Jsonl, 0));
        assert_eq!(keys(&all), ["10", "11", "20", "21", "30"]);
        assert_eq!(counts.ignored, 1);
        assert_eq!(all[3].place.to_string(), format!("{}:2", files.path("in/b/two.jsonl.zst").display()));
    }

    #[test]
    fn a_folder_without_json_lines_is_refused_where_they_are_wanted() {
        let files = Files::new();
        files.write("in/README.md", "text");
        let message = open_error(&[files.path("in")], &options(InputFormat::Jsonl, 0));
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
        let message = open_error(&[files.path("in")], &options(InputFormat::Jsonl, 0));
        assert!(message.starts_with(&format!("{}: named as gzip", shard.display())), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_or_pipe_is_read_as_a_stream_of_lines() {
        let mut documents = OneByOne::open(&[PathBuf::from("/dev/null")], &InputOptions::default()).unwrap();
        assert_eq!(documents.documents.total_bytes(), None);
        assert!(documents.next_document().unwrap().is_none());
    }

    #[test]
    fn the_format_overrides_the_name() {
        let files = Files::new();
        let lines = files.write("a.txt", records(0, 2));
        assert_eq!(keys(&read(&[lines], &options(InputFormat::Jsonl, 0)).0), ["0", "1"]);
        let text = files.write("b.jsonl", "not JSON");
        let (all, _) = read(std::slice::from_ref(&text), &options(InputFormat::Text, 0));
        assert_eq!(
            (all[0].key.as_slice(), all[0].text.as_str()),
            (text.to_str().unwrap().as_bytes(), "not JSON")
        );
    }

    #[test]
    fn standard_input_is_json_lines_plain_or_compressed_and_has_no_total() {
        for bytes in [records(0, 2), gzip(&records(0, 2)), zstd(&records(0, 2))] {
            let mut stdin = || Box::new(std::io::Cursor::new(bytes.clone())) as Box<dyn Read + Send>;
            let paths = [PathBuf::from("-")];
            let mut documents = OneByOne::with(&paths, &InputOptions::default(), &mut stdin).unwrap();
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
        let mut documents = OneByOne::with(&paths, &options(InputFormat::Text, 0), &mut stdin).unwrap();
        let all = drain(&mut documents).unwrap();
        assert_eq!((keys(&all), all[0].text.as_str()), (vec!["-"], "some text"));
    }

    #[test]
    fn standard_input_can_be_named_once_only() {
        let message = open_error(&["-".into(), "-".into()], &InputOptions::default());
        assert!(message.contains("named twice"), "{message}");
    }

    #[test]
    fn one_field_cannot_be_both_key_and_text() {
        let both = InputOptions { id_field: "text".to_owned(), ..InputOptions::default() };
        assert!(open_error(&[], &both).contains("both to be read from the field \"text\""));
    }

    #[test]
    fn the_fields_can_be_named() {
        let files = Files::new();
        let path = files.write("a.jsonl", r#"{"id":1,"text":"x","url":"u","body":"b"}"#);
        let named = InputOptions {
            id_field: "url".to_owned(),
            text_field: "body".to_owned(),
            ..InputOptions::default()
        };
        let (all, _) = read(&[path], &named);
        assert_eq!((keys(&all), all[0].text.as_str()), (vec!["u"], "b"));
    }

    #[test]
    fn bad_records_are_skipped_and_counted_up_to_the_number_allowed() {
        let files = Files::new();
        let path =
            files.write("a.jsonl", [&b"x\n"[..], &records(1, 2), b"{}\n", &records(3, 1), b"y\n"].concat());
        let (all, counts) = read(std::slice::from_ref(&path), &options(InputFormat::Auto, 3));
        assert_eq!(keys(&all), ["1", "2", "3"]);
        assert_eq!((counts.documents, counts.skipped_bad, counts.first_bad.len()), (3, 3, 3));
        assert!(counts.first_bad[1].starts_with(&format!("{}:4: no field \"id\"", path.display())));

        let mut documents =
            OneByOne::open(std::slice::from_ref(&path), &options(InputFormat::Auto, 2)).unwrap();
        let message = drain(&mut documents).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}:6: invalid JSON", path.display())), "{message}");
        assert!(
            message.ends_with("; as many bad records as --skip-bad 2 allows came before it"),
            "{message}"
        );
    }

    #[test]
    fn of_many_bad_records_the_first_few_are_kept() {
        let files = Files::new();
        let path = files.write("a.jsonl", "x\n".repeat(100));
        let (_, counts) = read(&[path], &options(InputFormat::Auto, 100));
        assert_eq!((counts.skipped_bad, counts.first_bad.len()), (100, BAD_KEPT));
    }

    #[test]
    fn a_text_longer_than_the_limit_is_a_bad_record() {
        let files = Files::new();
        let limited = InputOptions { record_bytes_max: 4, ..InputOptions::default() };
        for path in [files.write("a.txt", "12345"), files.write("in/b.txt", "12345").parent().unwrap().into()]
        {
            let mut documents = OneByOne::open(&[path], &limited).unwrap();
            let message = drain(&mut documents).unwrap_err().to_string();
            assert!(message.ends_with(&format!(".txt: a text of more than 4 bytes{SKIP}")), "{message}");
        }
    }

    #[test]
    fn after_an_error_every_call_fails_and_nothing_is_resumed() {
        let files = Files::new();
        let path = files.write("a.jsonl", [&b"x\n"[..], &records(1, 2)].concat());
        let mut documents = OneByOne::open(&[path], &InputOptions::default()).unwrap();
        let first = documents.next_document().unwrap_err().to_string();
        for _ in 0..3 {
            let again = documents.next_document().unwrap_err().to_string();
            assert_eq!(again, format!("{first} (reading ended there)"));
        }
        assert_eq!(documents.counts().documents, 0);
    }

    #[test]
    fn after_the_end_every_call_says_so_again() {
        let files = Files::new();
        let mut documents =
            OneByOne::open(&[files.write("a.jsonl", records(0, 1))], &InputOptions::default()).unwrap();
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
}
