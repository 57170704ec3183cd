//! Writes documents in the format in which they were read.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use flate2::write::GzEncoder;

use crate::input::archives::arc;
use crate::input::content::{Ending, Form, PARQUET};
use crate::input::headers::Headers;
use crate::input::kept::annotate::Annotation;
use crate::input::kept::files::{self, may_be_compressed, name};
use crate::input::kept::rows;
use crate::input::open::reader::Compression;
use crate::input::tables::rows::TableHeader;
use crate::input::text::cuts::Cuts;
use crate::work::file::{FileHash, HashedFile, WrittenFile};

const JSONL: &str = "jsonl";
const ARC: &str = "arc";

/// A buffer of documents that are written together.
#[derive(Default)]
pub struct KeptBlock {
    /// The bytes of the documents, each followed by the line or record ending of its form.
    bytes: Vec<u8>,
    /// Runs of consecutive documents that have the same form. Each row of a Parquet or Arrow file is a run of its own.
    runs: Vec<Run>,
    /// The keys of documents whose lines contain another key or no key.
    keys: Vec<OtherKey>,
}

/// Consecutive documents that have the same form.
struct Run {
    form: Form,
    /// The end offset of the run in the bytes of the block.
    end: usize,
    documents: u64,
    /// For a row of a Parquet or Arrow file, its index among all documents.
    document: u32,
    /// Whether the last document of the run was at the end of its file and has no newline.
    is_open: bool,
}

/// The key of a document whose line contains another key or no key.
struct OtherKey {
    run: usize,
    /// Number of documents in the run before this document, and the offset of its line in the bytes of the block.
    before: u64,
    start: usize,
    key: Vec<u8>,
}

impl KeptBlock {
    /// Size in bytes at which a block is full.
    pub(crate) const BYTES: usize = 1 << 20;

    /// Removes all documents.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * Self::BYTES);
        self.runs.clear();
        self.keys.clear();
    }

    /// Returns whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns whether the block is so large that it should be written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= Self::BYTES
    }

    /// Adds a document. `document` is its index, and `ending` the line ending that followed it in its file. `key` is
    /// given if the line contains another key or no key.
    pub fn push(&mut self, document: u32, form: Form, line: &[u8], ending: Ending, key: Option<&[u8]>) {
        if let Some(last) = self.runs.last_mut()
            && last.is_open
            && last.form == form
        {
            self.bytes.push(b'\n');
            (last.end, last.is_open) = (self.bytes.len(), false);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line);
        // guard: what is kept has its ends
        self.bytes.extend_from_slice(match form {
            Form::Json | Form::Html | Form::Element | Form::Row(_) => ending.bytes(),
            // guard: records of archives are kept with the ends between them
            // without it: b"\r\n\r\n" -> b""
            Form::Archive { .. } => b"\r\n\r\n",
            Form::Arc => b"\n",
            Form::Columns(_) => b"",
        });
        let end = self.bytes.len();
        let is_line = matches!(form, Form::Json | Form::Html | Form::Element | Form::Row(_));
        let is_open = is_line && ending == Ending::None;
        match self.runs.last_mut() {
            Some(last) if last.form == form && !matches!(form, Form::Columns(_)) => {
                (last.end, last.documents, last.is_open) = (end, last.documents + 1, is_open);
            }
            _ => self.runs.push(Run { form, end, documents: 1, document, is_open }),
        }
        if let (Some(key), Some(last)) = (key, self.runs.last()) {
            let (run, before) = (self.runs.len() - 1, last.documents - 1);
            self.keys.push(OtherKey { run, before, start, key: key.to_owned() });
        }
    }
}

/// Writes documents to files: one file for JSON Lines, for each kind of archive, for each table header, and for each
/// set of Parquet or Arrow columns. Consecutive documents mostly have the same form, so only one file is open at a
/// time.
pub struct KeptWriter<'n> {
    folder: PathBuf,
    headers: Headers,
    files: Vec<KeptFile>,
    open: Option<OpenOutput>,
    columns: rows::Writers<'n>,
    /// The start of the file names.
    stem: &'static str,
    annotation: Option<Annotation<'n>>,
    compression: Option<Compression>,
}

/// A file to which documents are written.
struct KeptFile {
    suffix: &'static str,
    /// The index of the header if the file is a table; otherwise `None`.
    header: Option<u32>,
    name: String,
    /// Number of documents written. For a table, the number of lines written, as a reader counts them.
    written: u64,
    /// Whether the last line still lacks its newline, because it had none in its input file.
    is_open: bool,
    /// The hash of the file while the file is closed, and the hash of its key file, if it has one.
    hash: FileHash,
    keys: Option<FileHash>,
}

/// The file that is being written.
struct OpenOutput {
    at: usize,
    file: OutputFile,
    /// Writes the keys that lines do not contain. Created when the first such key is added.
    keys: Option<files::KeyWriter>,
}

impl<'n> KeptWriter<'n> {
    /// Creates a writer of files in `folder` whose names begin with `stem`. The writer adds the annotation fields to
    /// Parquet and Arrow rows and table headers. The caller adds them to JSON lines, table rows and archive records.
    #[must_use]
    pub fn new(
        folder: &Path,
        headers: Headers,
        stem: &'static str,
        annotation: Option<Annotation<'n>>,
    ) -> Self {
        let columns = rows::Writers::new(folder, stem, annotation);
        let folder = folder.to_owned();
        Self { folder, headers, files: Vec::new(), open: None, columns, stem, annotation, compression: None }
    }

    /// Sets the compression of JSON Lines files and tables. Other files are not affected.
    #[must_use]
    pub fn compressed(mut self, compression: Option<Compression>) -> Self {
        self.compression = compression;
        self
    }

    /// Removes these spans from the texts of Parquet and Arrow rows while the rows are copied. The caller must remove
    /// them from lines of other forms.
    #[must_use]
    pub fn without(mut self, cuts: Cuts<'n>) -> Self {
        self.columns.set_cuts(cuts);
        self
    }

    /// Writes all documents of a block.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or a Parquet or Arrow file cannot be read again.
    pub fn write(&mut self, block: &KeptBlock) -> anyhow::Result<()> {
        let (mut start, mut keys) = (0, &block.keys[..]);
        for (number, run) in block.runs.iter().enumerate() {
            let (own, others) = keys.split_at(keys.partition_point(|key| key.run == number));
            self.write_run(run, start, block, own)?;
            (start, keys) = (run.end, others);
        }
        Ok(())
    }

    fn write_run(
        &mut self,
        run: &Run,
        start: usize,
        block: &KeptBlock,
        keys: &[OtherKey],
    ) -> anyhow::Result<()> {
        let bytes = &block.bytes[start..run.end];
        let header = match run.form {
            Form::Json | Form::Html | Form::Element | Form::Archive { .. } | Form::Arc => None,
            Form::Row(number) => Some(number),
            Form::Columns(number) => {
                let file = self.headers.columns(number).context("a row of no file")?;
                let key = keys.first().map(|key| &key.key[..]);
                return self.columns.push(&file, bytes, run.document, key);
            }
        };
        let at = self.file(suffix(run.form, &self.headers), header, bytes)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        let file = &mut self.files[at];
        let ends = std::mem::replace(&mut file.is_open, run.is_open);
        if ends && header.is_some() {
            file.written += 1;
        }
        let mut write = || -> std::io::Result<()> {
            if ends {
                open.file.write_all(b"\n")?;
            }
            open.file.write_all(bytes)?;
            let (mut seen, mut line) = (start, file.written);
            for key in keys {
                let number = if header.is_some() {
                    line += memchr::memchr_iter(b'\n', &block.bytes[seen..key.start]).count() as u64;
                    seen = key.start;
                    line + 1
                } else {
                    file.written + key.before + 1
                };
                let writer = match &mut open.keys {
                    Some(writer) => writer,
                    none => none.insert(files::KeyWriter::open(&self.folder, &file.name, file.keys.take())?),
                };
                writer.push(number, &key.key)?;
            }
            Ok(())
        };
        write().with_context(|| format!("{}: cannot write", file.name))?;
        file.written += match header {
            Some(_) => memchr::memchr_iter(b'\n', bytes).count() as u64,
            None => run.documents,
        };
        Ok(())
    }

    /// Opens the file for documents of this form, and returns its index. `next` are the bytes that will follow.
    fn file(&mut self, suffix: &'static str, header: Option<u32>, next: &[u8]) -> anyhow::Result<usize> {
        let same = |file: &KeptFile| (file.suffix, file.header) == (suffix, header);
        if let Some(open) = &self.open
            && same(&self.files[open.at])
        {
            return Ok(open.at);
        }
        self.close()?;
        let known = self.files.iter().rposition(same);
        let compression = self.compression.filter(|_| may_be_compressed(suffix));
        let new_name = || {
            let number = self.files.iter().filter(|other| other.suffix == suffix).count();
            name(self.stem, suffix, number, compression)
        };
        let name = known.map_or_else(new_name, |at| self.files[at].name.clone());
        let path = self.folder.join(&name);
        let first = header.filter(|_| known.is_none()).and_then(|number| self.headers.row(number));
        let is_marked = known.is_none() && suffix == JSONL && self.headers.is_marked(Form::Json);
        let (annotation, threads) = (self.annotation, rayon::current_num_threads());
        let hash = known.map(|at| std::mem::take(&mut self.files[at].hash)).unwrap_or_default();
        let open = || -> anyhow::Result<OutputFile> {
            let file = match known {
                Some(_) => HashedFile::append(&path, hash)?,
                None => HashedFile::create_new(&path)?,
            };
            let mut file = OutputFile::new(file, compression, threads);
            // A reader drops the mark of a file, so one that belongs to the first row needs another before it.
            // guard: a mark of the first row is kept
            // without it: next.starts_with(b"\xef\xbb\xbf") -> false
            let is_before_row = next.starts_with(b"\xef\xbb\xbf");
            let is_of_table =
                |header: &TableHeader| header.is_marked || header.line.is_none() && is_before_row;
            if is_marked || first.as_deref().is_some_and(is_of_table) {
                file.write_all(b"\xef\xbb\xbf")?;
            }
            if known.is_none() && suffix == ARC {
                file.write_all(arc::PREAMBLE)?;
            }
            if let Some((header, mut line)) =
                first.as_ref().and_then(|header| Some((header, header.line.clone()?)))
            {
                if let Some(annotation) = annotation {
                    annotation.noted.add_names(&mut line, header.written()).map_err(anyhow::Error::msg)?;
                }
                // guard: rows are kept below their header
                file.write_all(&line)?;
                // guard: rows are kept below their header
                file.write_all(header.ending.bytes())?;
            }
            Ok(file)
        };
        let file = open().with_context(|| format!("{name}: cannot write"))?;
        let at = known.unwrap_or(self.files.len());
        if known.is_none() {
            let lines = |line: &[u8]| memchr::memchr_iter(b'\n', line).count() as u64;
            // If the header has no newline, the newline is counted when it is written.
            let is_open =
                first.as_ref().is_some_and(|header| header.line.is_some() && header.ending == Ending::None);
            // The first record of an ARC file describes the file, and counts as written.
            let written = first.map_or(u64::from(suffix == ARC), |header| {
                header.line.as_deref().map_or(0, |line| lines(line) + u64::from(!is_open))
            });
            let (hash, keys) = (FileHash::default(), None);
            self.files.push(KeptFile { suffix, header, name, written, is_open, hash, keys });
        }
        self.open = Some(OpenOutput { at, file, keys: None });
        Ok(at)
    }

    /// Syncs and closes the open file.
    fn close(&mut self) -> anyhow::Result<()> {
        let Some(OpenOutput { at, file, keys }) = self.open.take() else { return Ok(()) };
        let closed = &mut self.files[at];
        let finish = || -> std::io::Result<()> {
            closed.hash = file.finish()?;
            if let Some(keys) = keys {
                closed.keys = Some(keys.finish()?);
            }
            Ok(())
        };
        finish().with_context(|| format!("{}: cannot write", closed.name))
    }

    /// Syncs all files, and returns them. There is a file for each form among the inputs, even if no document was kept;
    /// a table then has only its header. If there is no other file, an empty JSON Lines file is created.
    ///
    /// # Errors
    ///
    /// The errors of [`KeptWriter::write`].
    pub fn finish(mut self) -> anyhow::Result<Vec<WrittenFile>> {
        for form in self.headers.forms() {
            match form {
                Form::Columns(number) => {
                    let file = self.headers.columns(number).context("a file of no columns")?;
                    self.columns.make(&file)?;
                }
                Form::Row(number) => {
                    self.file(suffix(form, &self.headers), Some(number), &[])?;
                }
                Form::Json | Form::Html | Form::Element | Form::Archive { .. } | Form::Arc => {
                    self.file(suffix(form, &self.headers), None, &[])?;
                }
            }
        }
        let columns = self.columns.finish()?;
        if self.files.is_empty() && columns.is_empty() {
            self.file(JSONL, None, &[])?;
        }
        self.close()?;
        let files =
            std::mem::take(&mut self.files).into_iter().map(|KeptFile { name, hash, keys, .. }| {
                WrittenFile { name, digest: hash.digest(), keys: keys.map(|keys| keys.digest()) }
            });
        Ok(files.chain(columns).collect())
    }
}

/// Returns the file name suffix for documents of this form.
fn suffix(form: Form, headers: &Headers) -> &'static str {
    match form {
        Form::Json | Form::Html | Form::Element => JSONL,
        Form::Row(number) => headers.row(number).map_or("csv", |header| header.suffix()),
        Form::Archive { texts: true } => "wet",
        Form::Archive { texts: false } => "warc",
        Form::Arc => ARC,
        Form::Columns(_) => PARQUET,
    }
}

/// A file that is written sequentially, compressed or not, and then synced. Compressed bytes are zstd frames or gzip
/// members of 2 MiB each, which threads compress ahead. Readers of both formats decompress all frames or members as one
/// stream. If a file is opened again to append, its last block may be shorter.
pub(crate) struct OutputFile {
    file: HashedFile,
    compressing: Option<BlockCompressor>,
}

impl OutputFile {
    /// Creates the output for a new file, or for a file that is open for appending. `None` means no compression.
    pub(crate) fn new(file: HashedFile, compression: Option<Compression>, threads: usize) -> Self {
        let compressing = compression.map(|compression| BlockCompressor {
            compression,
            threads,
            block: Vec::new(),
            is_any: false,
            workers: None,
            pending: VecDeque::new(),
        });
        Self { file, compressing }
    }

    /// Finishes the compressed stream, syncs the file, and returns the hash of its compressed bytes.
    pub(crate) fn finish(mut self) -> io::Result<FileHash> {
        if let Some(compressing) = &mut self.compressing {
            // An empty file is a compressed one, too.
            if !compressing.block.is_empty() || !compressing.is_any {
                compressing.end_block(&mut self.file)?;
            }
            while !compressing.pending.is_empty() {
                compressing.write_first(&mut self.file)?;
            }
        }
        self.file.finish()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(compressing) = &mut self.compressing else { return self.file.write(bytes) };
        let count = bytes.len().min(COMPRESSED - compressing.block.len());
        compressing.block.extend_from_slice(&bytes[..count]);
        if compressing.block.len() == COMPRESSED {
            compressing.end_block(&mut self.file)?;
        }
        Ok(count)
    }

    /// Does nothing, because [`finish`](Self::finish) writes the buffered bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Number of bytes of a block that is compressed on its own. The bytes of a file depend on it.
const COMPRESSED: usize = 2 << 20;

/// A block to compress, and the receiver of its compressed bytes.
type BlockJob = (Vec<u8>, SyncSender<io::Result<Vec<u8>>>);

/// Compresses blocks, on threads of its own if there are several blocks, and writes them in order.
struct BlockCompressor {
    compression: Compression,
    threads: usize,
    block: Vec<u8>,
    /// Whether any block is complete.
    is_any: bool,
    /// Passes blocks to the threads. `None` before the second block, and if there is only one thread.
    workers: Option<Sender<BlockJob>>,
    /// The blocks that are not written yet.
    pending: VecDeque<Receiver<io::Result<Vec<u8>>>>,
}

impl BlockCompressor {
    /// Compresses the current block, and begins a new one.
    fn end_block(&mut self, file: &mut HashedFile) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        if self.workers.is_none() && self.is_any && self.threads > 1 {
            self.start_workers()?;
        }
        self.is_any = true;
        let Some(workers) = &self.workers else {
            file.write_all(&compressed(self.compression, &block)?)?;
            self.block = block;
            self.block.clear();
            return Ok(());
        };
        let (done, result) = sync_channel(1);
        workers.send((block, done)).map_err(|_| lost())?;
        self.pending.push_back(result);
        if self.pending.len() > self.threads { self.write_first(file) } else { Ok(()) }
    }

    fn write_first(&mut self, file: &mut HashedFile) -> io::Result<()> {
        let Some(first) = self.pending.pop_front() else { return Ok(()) };
        file.write_all(&first.recv().map_err(|_| lost())??)
    }

    /// Starts threads, which end when this value is dropped.
    fn start_workers(&mut self) -> io::Result<()> {
        let (workers, blocks) = channel::<BlockJob>();
        let (blocks, compression) = (Arc::new(Mutex::new(blocks)), self.compression);
        for _ in 0..self.threads {
            let blocks = Arc::clone(&blocks);
            let next = move || blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let work = move || {
                while let Ok((block, done)) = next() {
                    let _ = done.send(compressed(compression, &block)); // fails if the file was not finished
                }
            };
            std::thread::Builder::new().name("compress".to_owned()).spawn(work)?;
        }
        self.workers = Some(workers);
        Ok(())
    }
}

/// Returns the error for a thread that panicked.
fn lost() -> io::Error {
    io::Error::other("a thread that compresses has panicked")
}

/// Returns a block as a zstd frame or a gzip member.
fn compressed(compression: Compression, block: &[u8]) -> io::Result<Vec<u8>> {
    match compression {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(block)?;
            encoder.finish()
        }
        Compression::Zstd => zstd::bulk::compress(block, zstd::DEFAULT_COMPRESSION_LEVEL),
    }
}
