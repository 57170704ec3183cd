//! Copies kept rows of files that store values column by column, so that the output has the same columns, types and
//! metadata as the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};

use crate::input::arrow::kept::ArrowOutput;
use crate::input::columns::file::{CopyError, Stamp};
use crate::input::columns::rows::row;
use crate::input::content::{ARROW, PARQUET};
use crate::input::headers::{ColumnFile, FileColumns};
use crate::input::kept::annotate::Annotation;
use crate::input::kept::files;
use crate::input::parquet::kept::{CopiedFile, ParquetOutput};
use crate::input::text::cuts::Cuts;
use crate::work::file::WrittenFile;

/// The files of kept rows, one for each distinct [`FileColumns`] of the inputs, in the order of first occurrence.
pub(crate) struct Writers<'n> {
    folder: PathBuf,
    /// The start of the file names.
    stem: &'static str,
    annotation: Option<Annotation<'n>>,
    /// The spans to remove from texts; `None` to copy texts unchanged.
    cuts: Option<Cuts<'n>>,
    files: Vec<OutputFile>,
    /// Rows of files that go to the same output file.
    pending: Vec<Pending>,
}

/// A file of kept rows.
struct OutputFile {
    name: String,
    /// The first input file whose rows are written to this file.
    first: Arc<ColumnFile>,
    output: Output,
    /// Whether the file exists.
    is_made: bool,
    rows: u64,
    /// Writes the keys of rows that do not contain their key; `None` if there are no such rows.
    keys: Option<files::KeyWriter>,
}

enum Output {
    Parquet(Box<ParquetOutput>),
    Arrow(ArrowOutput),
}

/// Rows that are not yet copied. All are from one input file, go to one output file, and are in ascending order.
struct Pending {
    file: Arc<ColumnFile>,
    at: usize,
    rows: Vec<u64>,
    /// The indices of the rows among all documents.
    documents: Vec<u32>,
}

impl Pending {
    /// Opens the input file again.
    fn open(&self) -> anyhow::Result<fs::File> {
        let shown = self.file.path.display();
        let input =
            fs::File::open(&self.file.path).with_context(|| format!("{shown}: cannot be read again"))?;
        ensure!(
            // guard: a file of columns that changed is not copied from
            // without it: Stamp::of(&input)? == self.file.stamp -> true
            Stamp::of(&input)? == self.file.stamp,
            "{shown}: changed since it was read; run again when nothing writes to the input"
        );
        Ok(input)
    }
}

/// Rows are copied when their files have this size in bytes together, or are this many. The bytes of the output do not
/// depend on it.
const PENDING_BYTES: u64 = 64 << 20;
const PENDING_FILES: usize = 64;

impl<'n> Writers<'n> {
    pub(crate) fn new(folder: &Path, stem: &'static str, annotation: Option<Annotation<'n>>) -> Self {
        let folder = folder.to_owned();
        Self { folder, stem, annotation, cuts: None, files: Vec::new(), pending: Vec::new() }
    }

    pub(crate) fn set_cuts(&mut self, cuts: Cuts<'n>) {
        self.cuts = Some(cuts);
    }

    /// Adds a row to copy, given its line. `key` is the key of the document if the row has no key or a different one.
    /// Rows must be added file by file, in the order of the rows in the file.
    ///
    /// # Errors
    ///
    /// An input file cannot be read again, or an output file cannot be written.
    pub(crate) fn push(
        &mut self,
        file: &Arc<ColumnFile>,
        line: &[u8],
        document: u32,
        key: Option<&[u8]>,
    ) -> anyhow::Result<()> {
        let row = row(line).context("a row without its number")?;
        let at = match self.pending.last_mut() {
            Some(Pending { file: pending, at, rows, documents }) if Arc::ptr_eq(pending, file) => {
                rows.push(row);
                documents.push(document);
                *at
            }
            _ => self.begin(file, (vec![row], vec![document]))?,
        };
        let OutputFile { name, rows, keys, .. } = &mut self.files[at];
        *rows += 1;
        let Some(key) = key else { return Ok(()) };
        let write = || -> std::io::Result<()> {
            let keys = match keys {
                Some(keys) => keys,
                none => none.insert(files::KeyWriter::open(&self.folder, name, None)?),
            };
            keys.push(*rows, key)
        };
        write().with_context(|| format!("{name}.keys: cannot write"))
    }

    /// Begins to collect rows of another file. Copies the pending rows if the file goes to another output file, or if
    /// they are many. Returns the index of the output file.
    fn begin(
        &mut self,
        file: &Arc<ColumnFile>,
        (rows, documents): (Vec<u64>, Vec<u32>),
    ) -> anyhow::Result<usize> {
        let at = self.place(file);
        let bytes: u64 = self.pending.iter().map(|pending| pending.file.stamp.bytes).sum();
        let are_many = bytes > PENDING_BYTES || self.pending.len() >= PENDING_FILES;
        if are_many || self.pending.last().is_some_and(|pending| pending.at != at) {
            self.flush()?;
        }
        self.pending.push(Pending { file: Arc::clone(file), at, rows, documents });
        Ok(at)
    }

    /// Returns the index of the output file for rows with the columns of `file`.
    fn place(&mut self, file: &Arc<ColumnFile>) -> usize {
        let known = self.files.iter().position(|output| output.first.columns == file.columns);
        known.unwrap_or_else(|| {
            let (suffix, output) = match file.columns {
                FileColumns::Parquet(_) => (PARQUET, Output::Parquet(Box::new(ParquetOutput::new()))),
                FileColumns::Arrow(_) => (ARROW, Output::Arrow(ArrowOutput::new())),
            };
            let of_form = |other: &&OutputFile| {
                std::mem::discriminant(&other.output) == std::mem::discriminant(&output)
            };
            let number = self.files.iter().filter(of_form).count();
            let name = files::name(self.stem, suffix, number, None);
            let first = Arc::clone(file);
            self.files.push(OutputFile { name, first, output, is_made: false, rows: 0, keys: None });
            self.files.len() - 1
        })
    }

    /// Creates the output file for rows with the columns of `file`. The file then exists even if no row is kept.
    ///
    /// # Errors
    ///
    /// The input file cannot be read again, or the output file cannot be created.
    pub(crate) fn make(&mut self, file: &Arc<ColumnFile>) -> anyhow::Result<()> {
        let at = self.place(file);
        if self.files[at].is_made || self.pending.iter().any(|pending| pending.at == at) {
            return Ok(());
        }
        self.begin(file, (Vec::new(), Vec::new())).map(drop)
    }

    /// Copies all pending rows to their output file.
    fn flush(&mut self) -> anyhow::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let Some(&Pending { at, .. }) = pending.first() else { return Ok(()) };
        let inputs = pending.iter().map(Pending::open).collect::<anyhow::Result<Vec<_>>>()?;
        let OutputFile { name, output, is_made, .. } = &mut self.files[at];
        *is_made = true;
        let (to, changes) = (self.folder.join(&*name), (self.annotation, self.cuts));
        let other_form = |place| (place, CopyError::Read("its rows have another form".to_owned()));
        let mut inputs = pending.iter().zip(inputs).enumerate();
        let copied = match output {
            Output::Parquet(output) => {
                let files = inputs.map(|(place, (Pending { file, rows, documents, .. }, input))| match &file
                    .columns
                {
                    FileColumns::Parquet(columns) => Ok(CopiedFile { file: input, columns, rows, documents }),
                    FileColumns::Arrow(_) => Err(other_form(place)),
                });
                files.collect::<Result<_, _>>().and_then(|files| output.copy(files, &to, changes))
            }
            Output::Arrow(output) => inputs.try_for_each(|(place, (pending, input))| {
                let Pending { file, rows, documents, .. } = pending;
                let FileColumns::Arrow(columns) = &file.columns else { return Err(other_form(place)) };
                output.copy((input, columns), &to, (rows, documents), changes).map_err(|error| (place, error))
            }),
        };
        copied.map_err(|(place, error)| match error {
            CopyError::Read(why) => {
                anyhow!("{}: its rows cannot be copied: {why}", pending[place].file.path.display())
            }
            CopyError::Write(error) => error.context(format!("{name}: cannot write")),
        })
    }

    /// Copies all pending rows, syncs the output files, and returns them.
    ///
    /// # Errors
    ///
    /// The errors of [`Writers::push`].
    pub(crate) fn finish(&mut self) -> anyhow::Result<Vec<WrittenFile>> {
        self.flush()?;
        let mut files = Vec::new();
        for OutputFile { name, output, keys, .. } in std::mem::take(&mut self.files) {
            let keys = keys.map(files::KeyWriter::finish).transpose();
            let keys = keys.with_context(|| format!("{name}.keys: cannot write"))?.map(|keys| keys.digest());
            let digest = match output {
                Output::Parquet(output) => output.finish(),
                Output::Arrow(output) => output.finish(),
            };
            if let Some(digest) = digest.with_context(|| format!("{name}: cannot write"))? {
                files.push(WrittenFile { name, digest, keys });
            }
        }
        Ok(files)
    }
}
