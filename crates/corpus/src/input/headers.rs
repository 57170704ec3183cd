//! Data that all records of an input share: header rows of tables, and schemas of Parquet and Arrow files.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::input::arrow::columns::ArrowColumns;
use crate::input::columns::file::Stamp;
use crate::input::content::Form;
use crate::input::parquet::columns::ParquetColumns;
use crate::input::tables::rows;

/// A file that stores values column by column, and whose rows are documents.
#[derive(Debug)]
pub struct ColumnFile {
    pub(crate) path: Arc<Path>,
    pub(crate) stamp: Stamp,
    pub(crate) columns: FileColumns,
}

/// The columns of a file. Kept rows of files with equal columns are written to one file.
#[derive(Debug, PartialEq)]
pub(crate) enum FileColumns {
    Parquet(ParquetColumns),
    Arrow(ArrowColumns),
}

/// A header that applies to all records of an input.
#[derive(Clone, Debug)]
enum Header {
    /// The header row of a table.
    Row(Arc<rows::TableHeader>),
    Columns(Arc<ColumnFile>),
}

/// The headers of all inputs, in the order in which they were read. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct Headers(Arc<Mutex<SeenHeaders>>);

/// The headers that were read so far.
#[derive(Debug, Default)]
struct SeenHeaders {
    headers: Vec<Header>,
    /// The distinct forms of the inputs. For each form, whether its first input starts with a byte order mark.
    forms: Vec<(Form, bool)>,
}

impl Headers {
    fn seen(&self) -> MutexGuard<'_, SeenHeaders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the form of an input, even if the input has no documents.
    pub(crate) fn meet(&self, form: Form, is_marked: bool) {
        let forms = &mut self.seen().forms;
        if !forms.iter().any(|(other, _)| *other == form) {
            forms.push((form, is_marked));
        }
    }

    /// Returns the forms of the inputs read so far, in order.
    pub(crate) fn forms(&self) -> Vec<Form> {
        self.seen().forms.iter().map(|(form, _)| *form).collect()
    }

    /// Returns whether the first input of this form starts with a byte order mark.
    pub(crate) fn is_marked(&self, form: Form) -> bool {
        self.seen().forms.contains(&(form, true))
    }

    /// Forgets the forms of the inputs read so far, so that only forms of later inputs are written.
    pub fn begin(&self) {
        self.seen().forms.clear();
    }

    /// Adds a header, and returns its index.
    fn push(&self, header: Header) -> u32 {
        let all = &mut self.seen().headers;
        all.push(header);
        all.len() as u32 - 1
    }

    /// Adds a file of columns, and returns its index. Each file has its own index, even if schemas are equal.
    pub(crate) fn push_columns(&self, file: ColumnFile) -> u32 {
        self.push(Header::Columns(Arc::new(file)))
    }

    /// Adds the header of a table, and returns its index. Equal headers have the same index.
    pub(crate) fn push_row(&self, header: rows::TableHeader) -> u32 {
        let same = |other: &Header| matches!(other, Header::Row(other) if other.is_equal_header(&header));
        let found = self.seen().headers.iter().position(same);
        found.map_or_else(|| self.push(Header::Row(Arc::new(header))), |at| at as u32)
    }

    pub fn row(&self, number: u32) -> Option<Arc<rows::TableHeader>> {
        match self.seen().headers.get(number as usize) {
            Some(Header::Row(header)) => Some(Arc::clone(header)),
            _ => None,
        }
    }

    pub fn columns(&self, number: u32) -> Option<Arc<ColumnFile>> {
        match self.seen().headers.get(number as usize) {
            Some(Header::Columns(file)) => Some(Arc::clone(file)),
            _ => None,
        }
    }
}
