//! All of a segment, in the order of table 1.

use super::open::Segment;
use super::tables::At;
use crate::error::Result;

impl Segment {
    /// Hands all distinct fingerprints to `each` with their ranks, ascending.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
    pub fn for_each_fingerprint(&self, mut each: impl FnMut(u32, u64) -> Result<()>) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let table = &fingerprints.tables.all[0];
        let source = At::new(self, &table.section);
        table.layout.for_each(source, |row, fingerprint| each(row as u32, fingerprint))
    }

    /// Hands the rows of a table, numbered from 1, to `each`, ascending: the keys of a complete table, of a partial one
    /// what it is [sorted by](crate::format::table::Codec::sorted_by). Nothing where there is no such table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
    pub fn for_each_table_row(&self, table: usize, each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let tables = self.fingerprints.as_ref().map(|fingerprints| &fingerprints.tables.all);
        let Some(table) = tables.and_then(|all| all.get(table.checked_sub(1)?)) else { return Ok(()) };
        table.layout.for_each(At::new(self, &table.section), each)
    }
}
