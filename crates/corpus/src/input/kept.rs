//! Documents that are kept, written again in the form in which they were read.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::columns;
use super::form::{Form, PARQUET};
use super::headers::Headers;
use super::kept_names::name;
use crate::durable_file::DurableFile;

/// Documents that are written at once.
#[derive(Default)]
pub struct Block {
    /// One behind the other, each with what ends one in a file of its form.
    bytes: Vec<u8>,
    /// Forms of documents in a row, and where the last of them ends; rows of Parquet files each by itself.
    runs: Vec<(Form, usize)>,
}

impl Block {
    /// Bytes of a block as a rule.
    const BYTES: usize = 1 << 20;

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * Self::BYTES);
        self.runs.clear();
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether it is time to write it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= Self::BYTES
    }

    /// Adds a document.
    pub fn push(&mut self, form: Form, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        // guard: what is kept has its ends
        self.bytes.extend_from_slice(match form {
            Form::Json | Form::Html | Form::Row(_) => b"\n",
            // guard: records of archives are kept with the ends between them
            // without it: b"\r\n\r\n" -> b""
            Form::Archive { .. } => b"\r\n\r\n",
            Form::Columns(_) => b"",
        });
        let end = self.bytes.len();
        match self.runs.last_mut() {
            Some((last, run)) if *last == form && !matches!(form, Form::Columns(_)) => *run = end,
            _ => self.runs.push((form, end)),
        }
    }
}

/// The files that documents are written to: one of JSON lines, one of each kind of archive, and one for each header of
/// tables and each set of columns. Documents of one form come one after the other, so that one file is open at a time.
pub struct Kept {
    folder: PathBuf,
    headers: Headers,
    /// Suffix, header of a table, and name.
    files: Vec<(&'static str, Option<u32>, String)>,
    open: Option<(usize, DurableFile)>,
    columns: columns::Writers,
}

impl Kept {
    /// `memory` bounds what is held of rows of Parquet files.
    #[must_use]
    pub fn new(folder: &Path, headers: Headers, memory: usize) -> Self {
        let columns = columns::Writers::new(folder, memory);
        Self { folder: folder.to_owned(), headers, files: Vec::new(), open: None, columns }
    }

    /// Writes documents.
    ///
    /// # Errors
    ///
    /// Their file cannot be written; of a Parquet file, it cannot be read again.
    pub fn write(&mut self, block: &Block) -> anyhow::Result<()> {
        let mut start = 0;
        for &(form, end) in &block.runs {
            self.write_run(form, &block.bytes[start..end])?;
            start = end;
        }
        Ok(())
    }

    fn write_run(&mut self, form: Form, bytes: &[u8]) -> anyhow::Result<()> {
        let header = match form {
            Form::Json | Form::Html | Form::Archive { .. } => None,
            Form::Row(number) => Some(number),
            Form::Columns(number) => {
                let file = self.headers.columns(number).context("a row of no file")?;
                return self.columns.push(&file, bytes);
            }
        };
        let at = self.file(suffix(form, &self.headers), header)?;
        let written = self.open.as_mut().map_or(Ok(()), |(_, file)| file.write_all(bytes));
        written.with_context(|| format!("{}: cannot write", self.files[at].2))
    }

    /// Opens the file for such documents, and returns its number.
    fn file(&mut self, suffix: &'static str, header: Option<u32>) -> anyhow::Result<usize> {
        let same = |file: &(&'static str, Option<u32>, String)| (file.0, file.1) == (suffix, header);
        if let Some((at, _)) = &self.open
            && same(&self.files[*at])
        {
            return Ok(*at);
        }
        self.close()?;
        let known = self.files.iter().rposition(same);
        let name = match known {
            Some(at) => self.files[at].2.clone(),
            None => name(suffix, self.files.iter().filter(|(other, ..)| *other == suffix).count()),
        };
        let path = self.folder.join(&name);
        let open = || -> anyhow::Result<DurableFile> {
            let mut file = match known {
                Some(_) => DurableFile::append(&path)?,
                None => DurableFile::create_new(&path)?,
            };
            if let Some(header) =
                header.filter(|_| known.is_none()).and_then(|number| self.headers.row(number))
            {
                // guard: rows are kept below their header
                file.write_all(&header.line)?;
                // guard: rows are kept below their header
                file.write_all(b"\n")?;
            }
            Ok(file)
        };
        let file = open().with_context(|| format!("{name}: cannot write"))?;
        let at = known.unwrap_or(self.files.len());
        if known.is_none() {
            self.files.push((suffix, header, name));
        }
        self.open = Some((at, file));
        Ok(at)
    }

    /// Makes the open file durable.
    fn close(&mut self) -> anyhow::Result<()> {
        let Some((at, file)) = self.open.take() else { return Ok(()) };
        file.finish().with_context(|| format!("{}: cannot write", self.files[at].2))
    }

    /// Makes the files durable, and returns their names. Where nothing was kept, there is an empty file of JSON lines.
    ///
    /// # Errors
    ///
    /// Those of [`Kept::write`].
    pub fn finish(mut self) -> anyhow::Result<Vec<String>> {
        let columns = self.columns.finish()?;
        if self.files.is_empty() && columns.is_empty() {
            self.file("jsonl", None)?;
        }
        self.close()?;
        let names = std::mem::take(&mut self.files).into_iter().map(|(_, _, name)| name);
        Ok(names.chain(columns).collect())
    }
}

/// The name of the file that documents of one form are written to again, behind `kept`.
fn suffix(form: Form, headers: &Headers) -> &'static str {
    match form {
        Form::Json | Form::Html => "jsonl",
        Form::Row(number) => headers.row(number).map_or("csv", |header| header.suffix()),
        Form::Archive { texts: true } => "wet",
        Form::Archive { texts: false } => "warc",
        Form::Columns(_) => PARQUET,
    }
}
