//! What stands once in an input: the first rows of tables, and Parquet files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{columns, rows};

/// What stands once in an input and concerns all of its records.
#[derive(Clone, Debug)]
enum Header {
    /// The first row of a table.
    Row(Arc<rows::Header>),
    /// A Parquet file.
    Columns(Arc<columns::File>),
}

/// The headers of all inputs, in the order in which they are met; a clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Headers(Arc<Mutex<Vec<Header>>>);

impl Headers {
    fn all(&self) -> MutexGuard<'_, Vec<Header>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of one more.
    fn push(&self, header: Header) -> u32 {
        let mut all = self.all();
        all.push(header);
        all.len() as u32 - 1
    }

    /// The number of a Parquet file, which no other has.
    pub(super) fn push_columns(&self, file: columns::File) -> u32 {
        self.push(Header::Columns(Arc::new(file)))
    }

    /// The header of a table; one of equal bytes has the number of the first.
    pub(super) fn push_row(&self, header: rows::Header) -> u32 {
        let same = |other: &Header| matches!(other, Header::Row(other) if **other == header);
        let found = self.all().iter().position(same);
        found.map_or_else(|| self.push(Header::Row(Arc::new(header))), |at| at as u32)
    }

    pub fn row(&self, number: u32) -> Option<Arc<rows::Header>> {
        match self.all().get(number as usize) {
            Some(Header::Row(header)) => Some(Arc::clone(header)),
            _ => None,
        }
    }

    pub fn columns(&self, number: u32) -> Option<Arc<columns::File>> {
        match self.all().get(number as usize) {
            Some(Header::Columns(file)) => Some(Arc::clone(file)),
            _ => None,
        }
    }
}
