//! What an input has once: the first rows of tables, and the schemas of Parquet files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::form::Form;
use super::{columns, rows};

/// A header, which an input has once for all of its records.
#[derive(Clone, Debug)]
enum Header {
    /// The first row of a table.
    Row(Arc<rows::TableHeader>),
    /// A Parquet file.
    Columns(Arc<columns::ParquetFile>),
}

/// The headers of all inputs, in the order of reading; a clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Headers(Arc<Mutex<SeenHeaders>>);

/// The headers that were read.
#[derive(Debug, Default)]
struct SeenHeaders {
    headers: Vec<Header>,
    /// The forms of the inputs of records, each once, and whether the first of each began with a byte order mark.
    forms: Vec<(Form, bool)>,
}

impl Headers {
    fn seen(&self) -> MutexGuard<'_, SeenHeaders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an input of such records, whether or not any document is in it.
    pub(super) fn meet(&self, form: Form, is_marked: bool) {
        let forms = &mut self.seen().forms;
        if !forms.iter().any(|(other, _)| *other == form) {
            forms.push((form, is_marked));
        }
    }

    /// The forms of the inputs so far, in their order.
    pub(super) fn forms(&self) -> Vec<Form> {
        self.seen().forms.iter().map(|(form, _)| *form).collect()
    }

    /// Whether the first input of this form began with a byte order mark.
    pub(super) fn is_marked(&self, form: Form) -> bool {
        self.seen().forms.contains(&(form, true))
    }

    /// Forgets the inputs read so far: their documents are not written.
    pub fn begin(&self) {
        self.seen().forms.clear();
    }

    /// The number of one more.
    fn push(&self, header: Header) -> u32 {
        let all = &mut self.seen().headers;
        all.push(header);
        all.len() as u32 - 1
    }

    /// The number of a Parquet file, which no other has.
    pub(super) fn push_columns(&self, file: columns::ParquetFile) -> u32 {
        self.push(Header::Columns(Arc::new(file)))
    }

    /// The header of a table; one that says the same has the number of the first.
    pub(super) fn push_row(&self, header: rows::TableHeader) -> u32 {
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

    pub fn columns(&self, number: u32) -> Option<Arc<columns::ParquetFile>> {
        match self.seen().headers.get(number as usize) {
            Some(Header::Columns(file)) => Some(Arc::clone(file)),
            _ => None,
        }
    }
}
