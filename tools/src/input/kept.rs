//! Documents that are kept, written again in the form in which they were read.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::columns;
use super::form::{self, Form, Headers};

/// The names of these files begin so.
const STEM: &str = "kept";

/// The name of a file of documents that are kept; `number` counts those of one suffix from 0.
pub(super) fn name(suffix: &str, number: usize) -> String {
    if number == 0 { format!("{STEM}.{suffix}") } else { format!("{STEM}-{}.{suffix}", number + 1) }
}

/// Whether a file has the name of one of documents that are kept.
pub(crate) fn is_name(file: &str) -> bool {
    let Some((stem, suffix)) = file.rsplit_once('.') else { return false };
    let number = stem.strip_prefix(STEM).map(|number| number.strip_prefix('-').unwrap_or(number));
    ["jsonl", "csv", "tsv", "wet", "warc", columns::SUFFIX].contains(&suffix)
        && number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The files that documents are written to: one of JSON lines, one of each kind of archive, and one for each header
/// of tables and each set of columns.
pub(crate) struct Kept {
    folder: PathBuf,
    headers: Headers,
    files: Vec<Output>,
    columns: columns::Writers,
}

struct Output {
    suffix: &'static str,
    /// The header of a table.
    header: Option<u32>,
    name: String,
    file: BufWriter<File>,
}

impl Kept {
    pub(crate) fn new(folder: &Path, headers: Headers) -> Self {
        Self { folder: folder.to_owned(), headers, files: Vec::new(), columns: columns::Writers::new(folder) }
    }

    /// Writes a document.
    ///
    /// # Errors
    ///
    /// Its file cannot be written; of a Parquet file, it cannot be read again.
    pub(crate) fn push(&mut self, form: Form, line: &[u8]) -> anyhow::Result<()> {
        let (header, end): (_, &[u8]) = match form {
            Form::Json | Form::Html => (None, b"\n"),
            Form::Row(number) => (Some(number), b"\n"),
            Form::Archive { .. } => (None, b"\r\n\r\n"),
            Form::Columns(number) => {
                let file = self.headers.columns(number).context("a row of no file")?;
                return self.columns.push(&file, line);
            }
        };
        let suffix = form::suffix(form, &self.headers);
        let at = self.file(suffix, header)?;
        let Output { name, file, .. } = &mut self.files[at];
        let written = file.write_all(line).and_then(|()| file.write_all(end));
        written.with_context(|| format!("{name}: cannot write"))
    }

    /// The number of the file for such documents.
    fn file(&mut self, suffix: &'static str, header: Option<u32>) -> anyhow::Result<usize> {
        let same = |output: &Output| output.suffix == suffix && output.header == header;
        // Documents of one form come one after the other.
        if let Some(at) = self.files.iter().rposition(same) {
            return Ok(at);
        }
        let name = name(suffix, self.files.iter().filter(|output| output.suffix == suffix).count());
        let create = || -> anyhow::Result<BufWriter<File>> {
            let mut file = BufWriter::with_capacity(1 << 20, File::create_new(self.folder.join(&name))?);
            if let Some(header) = header.and_then(|number| self.headers.row(number)) {
                file.write_all(&header.line)?;
                file.write_all(b"\n")?;
            }
            Ok(file)
        };
        let file = create().with_context(|| format!("{name}: cannot write"))?;
        self.files.push(Output { suffix, header, name, file });
        Ok(self.files.len() - 1)
    }

    /// Makes the files durable, and returns their names. Where nothing was kept, there is an empty file of JSON lines.
    ///
    /// # Errors
    ///
    /// Those of [`Kept::push`].
    pub(crate) fn finish(mut self) -> anyhow::Result<Vec<String>> {
        let columns = std::mem::replace(&mut self.columns, columns::Writers::new(&self.folder)).finish()?;
        if self.files.is_empty() && columns.is_empty() {
            self.file("jsonl", None)?;
        }
        let mut names = Vec::new();
        for Output { name, file, .. } in self.files {
            let whole = || file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all();
            whole().with_context(|| format!("{name}: cannot write"))?;
            names.push(name);
        }
        names.extend(columns);
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kept_documents_are_known_and_others_are_not() {
        for (suffix, number, wanted) in [("jsonl", 0, "kept.jsonl"), ("csv", 1, "kept-2.csv")] {
            assert_eq!(name(suffix, number), wanted);
            assert!(is_name(wanted));
        }
        for other in ["kept", "kept.txt", "keptx.csv", "kept-a.csv", "my.csv", "kept.parquet.bak"] {
            assert!(!is_name(other), "{other}");
        }
    }
}
