//! The body of the fuzz target `inputs`: reads an input of any format in several ways that must give the same result,
//! and checks invariants of the result. `tests/it/fuzz_regressions.rs` replays the findings of the fuzzer, which needs
//! a nightly compiler, on a stable one.

#![allow(dead_code, unreachable_pub, reason = "the fuzz target and the tests each use a part of it")]
#![allow(clippy::disallowed_methods, reason = "reads and writes inputs, not an index")]

#[path = "../../../src/input/text/lossy.rs"]
mod lossy;
pub mod made;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twindex::format::header::MAGIC;
use twindex_corpus::input::{
    BATCH_BYTES, Batch, Buffers, Content, Counts, Dialect, Documents, Ending, Form, InputFormat,
    InputOptions, InvalidUtf8, KEPT, KeptBlock, KeptWriter, Kind, NamedFields, OwnAttached, Parser, Place,
    Record,
};

use made::{
    ExpectedRecord, FuzzHeader, FuzzInput, HEAD, Packing, made_archive, patched_arrow, patched_parquet,
};

/// Maximum length of a key in bytes.
const KEY_BYTES_MAX: usize = 65_535;
/// Number of bad records that the summary lists.
const BAD_KEPT: usize = 5;

/// Maximum length of a message in bytes for any input, without the path of the input.
const MESSAGE_BYTES_MAX: usize = 1500;
/// Numbers of bytes that a stream returns at a time.
const PIECES: [usize; 8] = [1, 2, 3, 7, 19, 100, 1000, 1 << 20];
/// Maximum number of bytes of text per byte of input. An invalid byte, or one in an old encoding, becomes three bytes,
/// and some HTML entities are longer than their names.
const GROWTH: usize = 4;

/// A stream that returns its bytes in pieces of various sizes, with interruptions, and optionally fails at its end.
struct Pieces {
    bytes: Arc<[u8]>,
    at: usize,
    /// Choices for the pieces: the low bits choose a size, the highest bit an interruption before the piece.
    sizes: [u8; 4],
    turn: usize,
    interrupted: bool,
    fails: bool,
}

impl Pieces {
    fn of(bytes: &Arc<[u8]>, sizes: [u8; 4]) -> Self {
        Self { bytes: Arc::clone(bytes), at: 0, sizes, turn: 0, interrupted: false, fails: false }
    }

    fn whole(bytes: &Arc<[u8]>) -> Self {
        Self::of(bytes, [7; 4])
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let choice = self.sizes[self.turn % self.sizes.len()];
        if choice & 0x80 != 0 && !self.interrupted {
            self.interrupted = true;
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.interrupted = false;
        self.turn += 1;
        let rest = &self.bytes[self.at..];
        if rest.is_empty() && self.fails {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let count = PIECES[usize::from(choice % 8)].min(rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// A document that was read, without the parts that depend on the name of its input.
#[derive(Clone, PartialEq, Eq)]
struct Document {
    key: Vec<u8>,
    /// [`Content::identity`]; for features, also their order.
    identity: Vec<u8>,
    features: Option<String>,
    attached: OwnAttached,
    place: String,
    line: Vec<u8>,
    form: Form,
    ending: Ending,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [key, identity, line] =
            [&self.key, &self.identity, &self.line].map(|bytes| bytes.escape_ascii().to_string());
        write!(f, "{} {key:?}: {identity:?} in {line:?} {:?} {:?}", self.place, self.form, self.attached)
    }
}

impl Document {
    /// Returns the parts that must be equal when the document is read from another file.
    fn says(&self) -> (&[u8], &[u8], &Option<String>, &OwnAttached) {
        (&self.key, &self.identity, &self.features, &self.attached)
    }
}

/// The result of reading inputs.
#[derive(Debug)]
struct Outcome {
    documents: Vec<Document>,
    counts: Counts,
    error: Option<String>,
    /// Whether a bad record ended the reading. The records after it in its chunk are then counted although they are not
    /// returned.
    by_bad: bool,
    /// The error of writing the documents again, if any.
    unkept: Option<String>,
}

impl Outcome {
    /// Returns whether bytes could not be decompressed. The number of documents before the damage then depends on read
    /// sizes.
    fn is_cut(&self) -> bool {
        let damaged = ["cannot undo gzip", "cannot undo zstd", "truncated: the "];
        self.error.as_ref().is_some_and(|error| damaged.iter().any(|words| error.contains(words)))
    }

    fn begins_with(&self, other: &Self, how: &str) {
        let fewer = other.documents.len();
        assert!(
            fewer <= self.documents.len(),
            "{how}: {fewer} documents, more than {}",
            self.documents.len()
        );
        assert_eq!(self.documents[..fewer], other.documents, "{how}");
    }

    /// Checks that the documents of one outcome are the first ones of the other.
    #[track_caller]
    fn agrees_with(&self, other: &Self, how: &str) {
        let (more, fewer) =
            if self.documents.len() < other.documents.len() { (other, self) } else { (self, other) };
        more.begins_with(fewer, how);
    }

    #[track_caller]
    fn assert_same(&self, other: &Self, how: &str) {
        if self.is_cut() || other.is_cut() {
            assert!(self.error.is_some() && other.error.is_some(), "{how}: {self:?} {other:?}");
            self.agrees_with(other, how);
            return;
        }
        assert_eq!(self.error, other.error, "{how}");
        assert_eq!(self.counts.first_bad, other.counts.first_bad, "{how}");
        assert_eq!(self.counts.skipped_bad, other.counts.skipped_bad, "{how}");
        if self.by_bad {
            assert!(other.by_bad, "{how}");
            self.agrees_with(other, how);
        } else {
            assert_eq!(self.documents, other.documents, "{how}");
            assert_eq!(self.counts, other.counts, "{how}");
        }
    }
}

/// The options and files of one pass over an input.
struct ReadPlan<'w> {
    options: &'w InputOptions,
    /// Number of bytes of records that are parsed at a time.
    chunk_bytes: usize,
    /// Names of inputs, and the names that replace them in compared messages. Longer names precede their prefixes.
    names: Vec<(String, String)>,
    /// The bytes of the files.
    files: HashMap<PathBuf, Arc<[u8]>>,
    /// The folder to which the documents are written again; `None` to not write them.
    kept: Option<&'w Path>,
}

/// The name that replaces the paths of inputs in messages.
const NAME: &str = "IN";

impl<'w> ReadPlan<'w> {
    fn new(options: &'w InputOptions) -> Self {
        let names = vec![(Place::STDIN.to_owned(), NAME.to_owned())];
        Self { options, chunk_bytes: 1, names, files: HashMap::new(), kept: None }
    }

    fn file(self, path: &Path, bytes: &Arc<[u8]>) -> Self {
        self.file_as(path, bytes, NAME)
    }

    fn file_as(mut self, path: &Path, bytes: &Arc<[u8]>, name: &str) -> Self {
        fs::write(path, bytes).expect("a file in a folder of our own");
        for path in [&without_compression(path), path] {
            self.names.insert(0, (path.display().to_string(), name.to_owned()));
        }
        self.files.insert(path.to_owned(), Arc::clone(bytes));
        self
    }

    fn in_chunks(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    fn nameless(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, other)| text.replace(name, other))
    }

    fn read_stream(&self, pieces: Pieces) -> Outcome {
        self.read(&[PathBuf::from("-")], Some(pieces))
    }

    /// Reads inputs until the end or an error, and checks all results.
    fn read(&self, paths: &[PathBuf], pieces: Option<Pieces>) -> Outcome {
        let mut pieces = pieces;
        let mut stdin = || Box::new(pieces.take().expect("read once")) as Box<dyn Read + Send>;
        let mut documents = match Documents::open_with(paths, self.options, &mut stdin) {
            Ok(documents) => documents,
            Err(error) => {
                let error = Some(self.message(&format!("{error:#}")));
                return Outcome {
                    documents: Vec::new(),
                    counts: Counts::default(),
                    error,
                    by_bad: false,
                    unkept: None,
                };
            }
        };
        let mut kept =
            self.kept.map(|folder| KeptWriter::new(folder, documents.parser().headers().clone(), KEPT, None));
        let mut outcome = Outcome {
            documents: Vec::new(),
            counts: Counts::default(),
            error: None,
            by_bad: false,
            unkept: None,
        };
        let (mut batch, mut buffers) = (Batch::default(), Buffers::default());
        while outcome.error.is_none() {
            documents.next_batch(&mut batch, BATCH_BYTES);
            if batch.is_over() {
                break;
            }
            for chunk in batch.chunks(self.chunk_bytes) {
                let mut found = Vec::new();
                let parser = documents.parser();
                let seen = chunk.read(parser, &mut buffers, |record| {
                    found.push(self.document(&record, parser)?);
                    Ok(())
                });
                let seen = seen.expect("only bad records are refused");
                if let Err(error) = documents.account(seen) {
                    (outcome.error, outcome.by_bad) = (Some(format!("{error:#}")), true);
                    break;
                }
                if let Some(kept) = kept.as_mut().filter(|_| outcome.unkept.is_none()) {
                    let mut block = KeptBlock::default();
                    for document in &found {
                        block.push(0, document.form, &document.line, document.ending, None);
                    }
                    outcome.unkept = kept.write(&block).err().map(|error| format!("{error:#}"));
                }
                outcome.documents.append(&mut found);
            }
            if outcome.error.is_none() {
                outcome.error = batch.take_failure().map(|failure| format!("{failure:#}"));
            }
        }
        if let Some(kept) = kept
            && let Err(error) = kept.finish()
        {
            outcome.unkept = Some(format!("{error:#}"));
        }
        outcome.counts = documents.counts().clone();
        outcome.counts.named = NamedFields::default();
        self.check_counts(&outcome);
        if outcome.error.is_none()
            && let Some(total) = documents.total_bytes()
        {
            assert_eq!(documents.bytes_read(), total, "progress ends at its total");
        }
        outcome.error = outcome.error.map(|error| self.message(&error));
        let counts = &mut outcome.counts;
        let firsts = [&mut counts.first_replaced, &mut counts.first_cut, &mut counts.first_contentless];
        firsts.into_iter().flatten().for_each(|first| *first = self.nameless(first));
        for bad in &mut outcome.counts.first_bad {
            *bad = self.message(bad);
        }
        outcome
    }

    fn check_counts(&self, outcome: &Outcome) {
        let counts = &outcome.counts;
        let documents = outcome.documents.len() as u64;
        if outcome.by_bad {
            assert!(counts.documents >= documents);
            assert_eq!(counts.skipped_bad, self.options.skip_bad);
        } else {
            assert_eq!(counts.documents, documents);
            if !self.options.features {
                // The identities of lossy texts and of pages without text are longer than their texts.
                let is_shown =
                    |document: &&Document| document.identity.first().is_none_or(|&byte| byte < lossy::UNSEEN);
                let shown = outcome.documents.iter().filter(is_shown);
                let (shown, bytes) =
                    shown.fold((0, 0), |(all, bytes), one| (all + 1, bytes + one.identity.len() as u64));
                assert_eq!(counts.replaced_utf8 + counts.unseen_pages, documents - shown);
                assert!(if shown == documents {
                    counts.text_bytes == bytes
                } else {
                    counts.text_bytes >= bytes
                });
            }
        }
        assert!(counts.skipped_bad <= self.options.skip_bad);
        assert_eq!(counts.first_bad.len(), BAD_KEPT.min(counts.skipped_bad as usize));
        assert!(counts.replaced_utf8 <= counts.documents);
        assert!(counts.replaced_utf8 == 0 || self.options.invalid_utf8 == InvalidUtf8::Replace);
    }

    /// Checks that a message names the input, is a single line that a terminal can show, and is not as long as the
    /// input.
    fn message(&self, said: &str) -> String {
        let nameless = self.nameless(said);
        assert!(nameless.starts_with(NAME), "it names no input: {said}");
        assert!(!nameless.contains(|character: char| character.is_control()), "no line for people: {said:?}");
        assert!(nameless.len() < MESSAGE_BYTES_MAX, "{} bytes of a message: {said:.200}", said.len());
        nameless
    }

    fn document(&self, record: &Record<'_>, parser: &Parser) -> anyhow::Result<Document> {
        let attached = record.attached(parser)?;
        assert!((1..=KEY_BYTES_MAX).contains(&record.key.len()), "a key of {} bytes", record.key.len());
        let key = std::str::from_utf8(record.key).expect("a key is UTF-8");
        let (identity, form) = (record.content.identity().into_owned(), record.form());
        let line = record.line(parser)?.into_owned();
        if let Some((path, offset)) = record.origin() {
            let file = &self.files[&**path];
            assert!(file[offset as usize..].starts_with(&line), "its file has other bytes at {offset}");
        }
        // Candidates are compared by their lines, which are stored or read again.
        let again = parser.identity_of_line(form, &line).expect("a line of a document is one");
        // The key of a record may be elsewhere than in its line.
        let of_line = if identity.starts_with(lossy::ABSENT) { lossy::ABSENT } else { &identity };
        assert_eq!(again, of_line, "the line says something else than the record");
        let features = match record.content {
            Content::Features(features) => Some(format!("{features:?}")),
            Content::Text(_) | Content::Opaque { .. } | Content::Fingerprint(_) => None,
        };
        let place = self.nameless(&record.place().to_string());
        let is_file = self.names.iter().any(|(_, name)| *name == place);
        self.check_length(form, is_file, record.content.bytes(), &line);
        if is_file {
            // The line was generated, and has the path of the file as its key.
            let object = object_of(&line);
            assert_eq!(object[&self.options.id_field], key);
            if form == Form::Json {
                let text = object[&self.options.text_field].as_str().expect("a text");
                assert_eq!(identity_of(text), identity);
            }
        }
        let (key, line) = match key {
            "-" if is_file => (NAME.to_owned(), Vec::new()),
            path if is_file => (self.nameless(path), Vec::new()),
            key => (key.to_owned(), line),
        };
        Ok(Document {
            key: key.into_bytes(),
            identity,
            features,
            attached,
            place,
            line,
            form,
            ending: record.ending(),
        })
    }

    /// Checks that no record that exceeds the size limit has become a document.
    fn check_length(&self, form: Form, is_file: bool, bytes: usize, line: &[u8]) {
        let max = self.options.record_bytes_max;
        // An invalid byte becomes three bytes.
        let replaced = if self.options.invalid_utf8 == InvalidUtf8::Replace { 3 * max } else { max };
        match form {
            Form::Json | Form::Element | Form::Row(_) if !is_file => {
                assert!(line.len() <= replaced, "a line");
            }
            Form::Json | Form::Element | Form::Row(_) | Form::Columns(_) => {
                assert!(bytes <= replaced, "a text");
            }
            Form::Html => assert!(bytes <= GROWTH * max, "a page"),
            Form::Arc => assert!(bytes <= GROWTH * max, "a record"),
            Form::Archive { .. } => {
                let head = head_end(line).expect("a head");
                assert!(line.len() - head <= max && bytes <= GROWTH * max, "a record");
            }
        }
    }
}

/// An input is an ARC file if its first byte has at least this value.
pub(super) const OF_ARC: u8 = 252;
/// An input is an Arrow file if its first byte has this value, and patches of one if it has the next value.
pub(super) const OF_ARROW: u8 = 250;

/// The readers by name, and the values of the first byte of an input that select each.
const READERS: [(&str, &[u8]); 7] = [
    ("jsonl", &[0]),
    ("csv", &[1, 2]),
    ("archives", &[3, 4, 5, 6, OF_ARC]),
    ("parquet", &[7, 8]),
    ("arrow", &[OF_ARROW, OF_ARROW + 1]),
    ("texts", &[9, 10]),
    ("compressed", &[11]),
];

/// The fuzz target for one reader: replaces the first byte of each input with one that selects the reader.
///
/// # Panics
///
/// There is no such reader; or the panics of [`inputs`].
pub fn inputs_of(reader: &str, data: &[u8]) {
    let Some((_, choices)) = READERS.iter().find(|(name, _)| *name == reader) else {
        panic!("there is no reader {reader:?}: {:?}", READERS.map(|(name, _)| name));
    };
    let mut data = data.to_vec();
    if let Some(first) = data.first_mut() {
        *first = choices[usize::from(*first) % choices.len()];
    }
    inputs(&data);
}

/// Returns whether the first byte of an input selects this reader.
pub fn is_of(reader: &str, data: &[u8]) -> bool {
    let choices = READERS.iter().find(|(name, _)| *name == reader).map_or(&[][..], |(_, choices)| choices);
    data.first().is_some_and(|first| choices.contains(first))
}

/// The fuzz target; see the documentation of this file.
///
/// # Panics
///
/// An invariant does not hold.
pub fn inputs(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<HEAD>() else { return };
    // The last values select a reader that was added later, so that inputs found earlier keep their meaning.
    let (what, plain, made) = match if head[0] >= OF_ARROW { head[0] } else { head[0] % 12 } {
        0 => (FuzzInput::Records(Kind::Jsonl), body.to_vec(), None),
        1 => (FuzzInput::Records(Kind::Csv), body.to_vec(), None),
        2 => (FuzzInput::Records(Kind::Tsv), body.to_vec(), None),
        3 => (FuzzInput::Records(Kind::Wet), body.to_vec(), None),
        4 => (FuzzInput::Records(Kind::Warc), body.to_vec(), None),
        5 => made_archive(Kind::Wet, body),
        6 => made_archive(Kind::Warc, body),
        7 => (FuzzInput::Records(Kind::Parquet), body.to_vec(), None),
        8 => (FuzzInput::Records(Kind::Parquet), patched_parquet(body), None),
        9 => (FuzzInput::Text, body.to_vec(), None),
        10 => (FuzzInput::Html, body.to_vec(), None),
        OF_ARC.. => (FuzzInput::Records(Kind::Arc), body.to_vec(), None),
        OF_ARROW => (FuzzInput::Records(Kind::Arrow), body.to_vec(), None),
        251 => (FuzzInput::Records(Kind::Arrow), patched_arrow(body), None),
        // Decodes the remaining bytes as a compressed file.
        _ => {
            read_decoded(head, body);
            return;
        }
    };
    let head = FuzzHeader::of(head, what);
    let packed: Arc<[u8]> = head.packing.of(&plain, head.by).into();
    let folder = tempfile::tempdir().expect("a folder");
    let reference = read_alike(&head, &packed, folder.path());
    match head.packing {
        Packing::DamagedGzip | Packing::DamagedZstd => return,
        Packing::Plain => {}
        Packing::Gzip | Packing::Zstd | Packing::TwoGzip | Packing::TwoZstd => {
            assert!(!reference.is_cut(), "{reference:?}");
            let unpacked = FuzzHeader { packing: Packing::Plain, ..head };
            return inputs_unpacked(&unpacked, &reference, &plain.into(), folder.path());
        }
    }
    check_records(&head, &reference, &plain, made.as_deref());
    check_skipping(&head, &packed, folder.path());
    if matches!(head.what, FuzzInput::Records(_)) {
        read_again(&head, &reference);
        if head.written_again {
            write_again(&head, &reference, &packed, folder.path());
        }
    }
    if head.in_a_folder {
        read_folder(&head, &reference, &packed, folder.path());
    }
}

/// Reads the same bytes as a stream at once, as a stream in pieces, and as a file in chunks of any size.
fn read_alike(head: &FuzzHeader, packed: &Arc<[u8]>, folder: &Path) -> Outcome {
    let path = folder.join(format!("in.{}{}", head.suffix(), head.packing.suffix()));
    let by_name = InputOptions { format: InputFormat::Auto, ..head.options.clone() };
    // An HTML page is recognized by its file name.
    let options = if head.by_name || head.what == FuzzInput::Html { &by_name } else { &head.options };
    let from_file = ReadPlan::new(options)
        .file(&path, packed)
        .in_chunks(head.chunk_bytes)
        .read(std::slice::from_ref(&path), None);
    if matches!(head.what, FuzzInput::Html | FuzzInput::Records(Kind::Parquet | Kind::Arrow)) {
        let singly = ReadPlan::new(options).file(&path, packed).read(&[path], None);
        singly.assert_same(&from_file, "in chunks");
        return singly;
    }
    let way = ReadPlan::new(&head.options);
    let reference = way.read_stream(Pieces::whole(packed));
    let from_pieces =
        ReadPlan::new(&head.options).in_chunks(1 << 22).read_stream(Pieces::of(packed, head.sizes));
    reference.assert_same(&from_pieces, "in pieces");
    reference.assert_same(&from_file, "from a file");
    let failing = way.read_stream(Pieces { fails: true, ..Pieces::of(packed, head.sizes) });
    let fails = "a stream that fails at its end";
    if reference.is_cut() {
        reference.agrees_with(&failing, fails);
    } else {
        reference.begins_with(&failing, fails);
    }
    assert!(failing.error.is_some() || head.what == FuzzInput::Text, "a stream that failed has ended well");
    reference
}

/// Parses the JSON object of a line, with undecodable bytes marked as in [`lossy`].
fn object_of(line: &[u8]) -> serde_json::Value {
    serde_json::from_str(&lossy::mark_json(line)).expect("JSON")
}

/// Returns the bytes that are compared for a marked text.
fn identity_of(marked: &str) -> Vec<u8> {
    if lossy::is_lossy(marked) {
        return [&[lossy::LOSSY], marked.as_bytes()].concat();
    }
    lossy::shown(marked).unwrap_or_else(|| marked.to_owned()).into_bytes()
}

/// Returns `path` without its compression suffix, if it has one.
fn without_compression(path: &Path) -> PathBuf {
    let is_compressed = path.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst");
    if is_compressed { path.with_extension("") } else { path.to_owned() }
}

/// Returns whether a stream with these first bytes is decompressed or rejected, not read unchanged.
fn is_decoded_or_refused(start: &[u8]) -> bool {
    let is_bzip2 = matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..]);
    let is_skippable_zstd = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    let is_pickle = matches!(start, [0x80, 2..=5, 0x95 | b'}' | b']' | b'c' | b'(', ..]);
    let is_orc = matches!(start, [b'O', b'R', b'C', _, 0, 0, ..]);
    let is_tar = start.get(257..262) == Some(b"ustar");
    let magics = [
        &b"\x1f\x8b"[..],
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"\x04\x22\x4d\x18",
        b"PK\x03\x04",
        b"7z\xbc\xaf\x27\x1c",
        b"Obj\x01",
        b"SQLite for",
        b"\x93NUMPY",
        b"\x89HDF\r\n",
        b"\xd0\xcf\x11\xe0\xa1\xb1",
        b"%PDF-",
        &MAGIC,
    ];
    let is_foreign = is_pickle || is_orc || is_tar;
    is_foreign || is_bzip2 || is_skippable_zstd || magics.iter().any(|magic| start.starts_with(magic))
}

/// Returns the end of the header of an archive record: the offset after the first empty line.
fn head_end(record: &[u8]) -> Option<usize> {
    let ends = |end: &[u8]| record.windows(end.len()).position(|bytes| bytes == end).map(|at| at + end.len());
    [ends(b"\n\n"), ends(b"\n\r\n")].into_iter().flatten().min()
}

/// Checks that a compressed input has the same documents as the uncompressed one.
fn inputs_unpacked(head: &FuzzHeader, packed: &Outcome, plain: &Arc<[u8]>, folder: &Path) {
    // Bytes that look like an index are rejected, and a compressed file is decompressed only once.
    if is_decoded_or_refused(plain) {
        return;
    }
    let unpacked = if head.what == FuzzInput::Html {
        let path = folder.join("in.html");
        ReadPlan::new(&InputOptions { format: InputFormat::Auto, ..head.options.clone() })
            .file(&path, plain)
            .read(&[path], None)
    } else {
        ReadPlan::new(&head.options).read_stream(Pieces::whole(plain))
    };
    packed.assert_same(&unpacked, "compressed");
}

/// Reads bytes as the content of a compressed file.
fn read_decoded(head: &[u8; HEAD], body: &[u8]) {
    let kind = [Kind::Jsonl, Kind::Csv, Kind::Tsv, Kind::Wet, Kind::Warc][usize::from(head[1]) % 5];
    let head = FuzzHeader { packing: Packing::Plain, ..FuzzHeader::of(head, FuzzInput::Records(kind)) };
    let folder = tempfile::tempdir().expect("a folder");
    read_alike(&head, &body.into(), folder.path());
}

/// Compares the documents with the documents that a naive reader finds in the same bytes.
fn check_records(head: &FuzzHeader, outcome: &Outcome, plain: &[u8], made: Option<&[ExpectedRecord]>) {
    if outcome.error.is_some() || is_decoded_or_refused(plain) {
        return;
    }
    let counts = &outcome.counts;
    let seen = counts.documents + counts.skipped_bad + counts.no_documents + counts.revisits;
    let max = head.options.record_bytes_max;
    match head.what {
        FuzzInput::Records(Kind::Jsonl) => {
            let lines = plain.strip_prefix(b"\xef\xbb\xbf").unwrap_or(plain).split(|&byte| byte == b'\n');
            let is_blank = |line: &&[u8]| line.iter().all(|byte| b" \t\r".contains(byte));
            // The length of the first line includes the byte order mark.
            let marked = plain.len() - plain.strip_prefix(b"\xef\xbb\xbf").unwrap_or(plain).len();
            let is_counted = |(at, line): &(usize, &[u8])| {
                line.len() + if *at == 0 { marked } else { 0 } > max || !is_blank(line)
            };
            assert_eq!(seen, lines.enumerate().filter(is_counted).count() as u64, "lines");
            for document in &outcome.documents {
                let object = object_of(&document.line);
                let id = &object[&head.options.id_field];
                let id = match id {
                    serde_json::Value::String(id) => lossy::shown(id).unwrap_or_else(|| id.clone()),
                    // The digits as in the line, since a float may differ from them.
                    serde_json::Value::Number(id) if id.is_f64() => {
                        String::from_utf8_lossy(&document.key).into_owned()
                    }
                    id => id.to_string(),
                };
                assert_eq!(document.key, id.as_bytes());
                // Checks that no byte of a key was replaced.
                let is_in_input = || {
                    plain.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes())
                        || plain.to_ascii_lowercase().windows(4).any(|bytes| bytes == b"fffd")
                };
                assert!(!id.contains('\u{fffd}') || is_in_input(), "{id:?} is nowhere in the input");
                if !head.options.features {
                    let text = object[&head.options.text_field].as_str().expect("a text");
                    assert_eq!(document.identity, identity_of(text));
                }
            }
        }
        FuzzInput::Records(Kind::Wet | Kind::Warc) => {
            let Some(made) = made else { return };
            if made.iter().any(|record| !record.fits || record.bytes > max) {
                return;
            }
            assert_eq!(seen, made.len() as u64, "records of a sound archive");
            for record in made {
                let Some((key, text)) = record.says(&head.options) else { continue };
                let of_key = outcome.documents.iter().find(|document| document.key == key);
                assert_eq!(of_key.map(|document| &document.identity), Some(&text), "of a sound archive");
            }
        }
        FuzzInput::Text | FuzzInput::Html => assert_eq!(seen, 1, "a file is one document"),
        FuzzInput::Records(kind @ (Kind::Csv | Kind::Tsv))
            if head.options.dialect == Dialect::default() && !plain.contains(&b'"') =>
        {
            check_rows(head, outcome, plain, if kind == Kind::Csv { b',' } else { b'\t' });
            assert_eq!(seen + 1, rows_of(plain).count() as u64, "rows");
        }
        FuzzInput::Records(_) => {}
    }
}

/// Returns the rows of a table without quotes. The first row has the names of the columns.
fn rows_of(plain: &[u8]) -> impl Iterator<Item = &[u8]> {
    let plain = plain.strip_prefix(b"\xef\xbb\xbf").unwrap_or(plain);
    plain.split(|byte| b"\r\n".contains(byte)).filter(|row| !row.is_empty())
}

/// Checks that each document is a row of a table without quotes, and that documents are in the order of rows.
fn check_rows(head: &FuzzHeader, outcome: &Outcome, plain: &[u8], delimiter: u8) {
    let mut rows = rows_of(plain).map(|row| row.split(|byte| *byte == delimiter).collect::<Vec<_>>());
    let names = rows.next().expect("names");
    let at = |name: &str| names.iter().position(|other| *other == name.as_bytes()).expect("a column");
    let (id, text) = (at(&head.options.id_field), at(&head.options.text_field));
    for document in &outcome.documents {
        let is_row = |row: Vec<&[u8]>| {
            row.len() == names.len()
                && row[id] == document.key
                && identity_of(&lossy::mark(row[text])) == document.identity
        };
        assert!(rows.any(is_row), "{document:?} is no row, or before another");
    }
}

/// Checks that documents that are read without skipping bad records are also read with skipping, and that both read the
/// same number of documents if no record is bad.
fn check_skipping(head: &FuzzHeader, packed: &Arc<[u8]>, folder: &Path) {
    let path = folder.join(format!("in.{}", head.suffix()));
    let with = |skip_bad| {
        let mut options = InputOptions { skip_bad, ..head.options.clone() };
        if head.what == FuzzInput::Html {
            options.format = InputFormat::Auto;
        }
        ReadPlan::new(&options).file(&path, packed).read(std::slice::from_ref(&path), None)
    };
    let (strict, lenient) = (with(0), with(u64::MAX));
    lenient.begins_with(&strict, "skipping bad records");
    assert!(!lenient.by_bad);
    if strict.error.is_none() {
        assert_eq!((strict.documents.len(), lenient.counts.skipped_bad), (lenient.documents.len(), 0));
    }
}

/// Checks that documents written as JSON Lines are read as the same documents.
fn read_again(head: &FuzzHeader, outcome: &Outcome) {
    if head.what != FuzzInput::Records(Kind::Jsonl) {
        return;
    }
    let lines: Vec<u8> =
        outcome.documents.iter().flat_map(|document| [&document.line[..], b"\n"].concat()).collect();
    let max = InputOptions::default().record_bytes_max;
    let options = InputOptions { skip_bad: 0, record_bytes_max: max, ..head.options.clone() };
    let again = ReadPlan::new(&options).read_stream(Pieces::whole(&lines.into()));
    assert_eq!(again.error, None);
    assert!(again.documents.iter().map(Document::says).eq(outcome.documents.iter().map(Document::says)));
}

/// Checks that documents written in the format of the input are read as the same documents.
fn write_again(head: &FuzzHeader, outcome: &Outcome, packed: &Arc<[u8]>, folder: &Path) {
    let path = folder.join(format!("in.{}", head.suffix()));
    let kept = folder.join("kept");
    fs::create_dir(&kept).expect("a folder");
    let way = ReadPlan { kept: Some(&kept), ..ReadPlan::new(&head.options).file(&path, packed) };
    let unkept = way.read(&[path], None).unkept;
    let is_of_columns = matches!(head.what, FuzzInput::Records(Kind::Parquet | Kind::Arrow));
    if is_of_columns && unkept.is_some() {
        // Columns that are not read may be damaged, or bytes after the rows that were read.
        assert!(unkept.is_some_and(|error| error.contains("its rows cannot be copied: ")));
        return;
    }
    assert_eq!(unkept, None);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&kept).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let max = InputOptions::default().record_bytes_max;
    let options = InputOptions {
        skip_bad: 0,
        record_bytes_max: max,
        format: InputFormat::Auto,
        ..head.options.clone()
    };
    let end = |document: &Document| match document.form {
        Form::Archive { .. } => &b"\r\n\r\n"[..],
        Form::Arc => b"\n",
        _ => match document.ending {
            Ending::Newline => &b"\n"[..],
            Ending::Crlf => b"\r\n",
            Ending::None => b"",
        },
    };
    let lines: Vec<u8> =
        outcome.documents.iter().flat_map(|document| [&document.line[..], end(document)].concat()).collect();
    let mut way = ReadPlan::new(&options);
    for file in &files {
        let bytes: Arc<[u8]> = fs::read(file).expect("a file").into();
        if !is_of_columns {
            assert!(bytes.ends_with(&lines), "records are kept as they stood, each with its end");
        }
        way = way.file(file, &bytes);
    }
    let again = way.read(&files, None);
    if outcome.documents.is_empty() {
        return;
    }
    assert_eq!(again.error, None, "what was kept");
    assert_eq!(again.documents.len(), outcome.documents.len(), "kept");
    for (again, first) in again.documents.iter().zip(&outcome.documents) {
        assert_eq!(again.says(), first.says(), "kept");
    }
}

/// Checks that a folder has the documents of its files, in the order of their names.
fn read_folder(head: &FuzzHeader, single: &Outcome, bytes: &Arc<[u8]>, folder: &Path) {
    let below = folder.join("below");
    fs::create_dir(&below).expect("a folder");
    let paths = ["a", "b"].map(|name| below.join(format!("{name}.{}", head.suffix())));
    let [first, second] = &paths;
    let names = ["1", "2"].map(|number| format!("{NAME}{number}"));
    let way = ReadPlan::new(&head.options).file_as(first, bytes, &names[0]).file_as(second, bytes, &names[1]);
    let of_folder = way.read(std::slice::from_ref(&below), None);
    if matches!(head.what, FuzzInput::Records(_)) {
        let of_files = way.read(&paths, None);
        of_files.assert_same(&of_folder, "in a folder");
        let enough = head.options.skip_bad / 2 >= single.counts.skipped_bad;
        if single.error.is_none() && enough {
            let twice = single.documents.iter().chain(&single.documents).map(Document::says);
            assert!(twice.eq(of_files.documents.iter().map(Document::says)), "two files of the same records");
        }
        return;
    }
    // Compressed files in a folder are binary.
    if is_decoded_or_refused(bytes) {
        return;
    }
    let said = single.counts.first_bad.first().or(single.error.as_ref());
    let counts = &of_folder.counts;
    if let Some(document) = single.documents.first() {
        let wanted: Vec<&[u8]> = vec![&document.identity; 2];
        assert!(
            of_folder.documents.iter().map(|document| &document.identity[..]).eq(wanted),
            "texts of a folder"
        );
        assert!(of_folder.documents.iter().map(|document| &document.place).eq(&names), "in their order");
    } else if said.is_some_and(|said| said.contains("not text: a zero byte")) {
        assert_eq!(counts.no_texts.skipped_binary, 2);
    } else if said.is_some_and(|said| said.contains("not UTF-8")) {
        assert_eq!(counts.no_texts.skipped_not_utf8, 2);
    } else {
        assert!(counts.skipped_bad > 0 || of_folder.error.is_some());
    }
}
