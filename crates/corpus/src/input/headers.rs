//! Data that an input has once for all records: the first rows of tables, and the schemas of Parquet files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::form::Form;
use super::{columns, rows};

/// A header, which applies to all records of an input.
#[derive(Clone, Debug)]
enum Header {
    /// The first row of a table.
    Row(Arc<rows::TableHeader>),
    /// A Parquet file.
    Columns(Arc<columns::ParquetFile>),
}

/// The headers of all inputs, in the order of reading; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Headers(Arc<Mutex<SeenHeaders>>);

/// The headers that were read.
#[derive(Debug, Default)]
struct SeenHeaders {
    headers: Vec<Header>,
    /// The distinct forms of the inputs of records, and whether the first input of each form starts with a byte order mark.
    forms: Vec<(Form, bool)>,
}

impl Headers {
    fn seen(&self) -> MutexGuard<'_, SeenHeaders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the form of an input, whether or not it contains a document.
    pub(super) fn meet(&self, form: Form, is_marked: bool) {
        let forms = &mut self.seen().forms;
        if !forms.iter().any(|(other, _)| *other == form) {
            forms.push((form, is_marked));
        }
    }

    /// Returns the forms of the inputs so far, in order.
    pub(super) fn forms(&self) -> Vec<Form> {
        self.seen().forms.iter().map(|(form, _)| *form).collect()
    }

    /// Returns whether the first input of this form starts with a byte order mark.
    pub(super) fn is_marked(&self, form: Form) -> bool {
        self.seen().forms.contains(&(form, true))
    }

    /// Clears the forms of the inputs read so far, whose documents are not written.
    pub fn begin(&self) {
        self.seen().forms.clear();
    }

    /// Adds a header, and returns its number.
    fn push(&self, header: Header) -> u32 {
        let all = &mut self.seen().headers;
        all.push(header);
        all.len() as u32 - 1
    }

    /// Adds a Parquet file, and returns its number, which no other file has.
    pub(super) fn push_columns(&self, file: columns::ParquetFile) -> u32 {
        self.push(Header::Columns(Arc::new(file)))
    }

    /// Adds the header of a table, and returns its number; equal headers have the same number.
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
