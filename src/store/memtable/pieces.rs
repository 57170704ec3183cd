//! The records of a memtable, divided into pieces.
//!
//! Each column of [`Records`] is one vector, whose contents are copied when it grows. Pieces limit the size of these
//! copies. A full piece never changes, so copies of the rows share it.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use super::chunked::ChunkedVec;
use crate::error::Result;
use crate::format::attached::Attached;
use crate::format::fields::Fields;
use crate::key::Key;
use crate::params::Params;
use crate::segment::Records;
use crate::segment::records::Kept;

/// Maximum number of rows in a piece.
const ROWS: usize = 1 << 12;
/// A piece of at least this number of bytes is full.
const BYTES: usize = 1 << 20;

/// A full piece: consecutive records that do not change any more.
#[derive(Clone, Debug)]
struct RecordPiece {
    records: Records,
    /// The row number of the first row in the piece.
    first: u32,
    /// The rows of the piece by ascending key, sorted at the first use.
    order: OnceLock<Vec<u32>>,
}

impl RecordPiece {
    /// Returns the rows of the piece by ascending key. Rows with the same key are in the order of insertion.
    fn order(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
            order.sort_by(|&a, &b| self.records.key(a as usize).cmp(&self.records.key(b as usize)));
            order
        })
    }
}

fn is_between(key: Key<'_>, from: Bound<Key<'_>>, to: Bound<Key<'_>>) -> bool {
    is_past(key, from) && !ends_before(key, to)
}

fn is_past(key: Key<'_>, from: Bound<Key<'_>>) -> bool {
    match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }
}

fn ends_before(key: Key<'_>, to: Bound<Key<'_>>) -> bool {
    match to {
        Bound::Included(to) => key > to,
        Bound::Excluded(to) => key >= to,
        Bound::Unbounded => false,
    }
}

/// Records in the order of insertion.
#[derive(Clone, Debug)]
pub(in crate::store) struct Pieces {
    full: Vec<Arc<RecordPiece>>,
    last: Records,
    /// For each row, the number of its piece and its position in the piece.
    places: ChunkedVec<(u32, u32)>,
    /// Total size of the full pieces in bytes.
    full_bytes: usize,
}

impl Pieces {
    pub(super) fn new(params: &Params) -> Self {
        Self { full: Vec::new(), last: Records::new(params), places: ChunkedVec::default(), full_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn params(&self) -> &Params {
        self.last.params()
    }

    pub(super) fn memory(&self) -> usize {
        self.full_bytes + self.last.memory()
    }

    pub(super) fn put(&mut self, key: Key<'_>, kept: Option<Kept<'_>>, attached: Attached<'_>) -> Result<()> {
        self.add(|records| records.push_with(key, kept, attached))
    }

    pub(super) fn delete(&mut self, key: Key<'_>) -> Result<()> {
        self.add(|records| records.delete(key))
    }

    fn add(&mut self, push: impl FnOnce(&mut Records) -> Result<()>) -> Result<()> {
        if self.last.len() >= ROWS || self.last.memory() >= BYTES {
            self.full_bytes += self.last.memory();
            let next = Records::new(self.last.params());
            let first = (self.places.len() - self.last.len()) as u32;
            let records = std::mem::replace(&mut self.last, next);
            self.full.push(Arc::new(RecordPiece { records, first, order: OnceLock::new() }));
        }
        push(&mut self.last)?;
        self.places.push((self.full.len() as u32, self.last.len() as u32 - 1));
        Ok(())
    }

    pub(super) fn pop(&mut self) {
        self.places.pop();
        if self.last.is_empty()
            && let Some(piece) = self.full.pop()
        {
            self.full_bytes -= piece.records.memory();
            self.last = Arc::unwrap_or_clone(piece).records;
        }
        self.last.truncate(self.last.len() - 1);
    }

    /// Returns the first `rows` rows, in pieces. Copies at most one piece and shares the other pieces.
    pub(super) fn first(&self, rows: usize) -> FirstRows {
        let (whole, of_last) = match rows.checked_sub(1) {
            Some(last) => {
                let (piece, place) = self.places.get(last);
                (piece as usize, place as usize + 1)
            }
            None => (0, 0),
        };
        let mut last = self.full.get(whole).map_or(&self.last, |piece| &piece.records).clone();
        last.truncate(of_last);
        FirstRows { whole: self.full[..whole].to_vec(), last }
    }

    #[inline]
    fn at(&self, row: usize) -> (&Records, usize) {
        let (piece, place) = self.places.get(row);
        (self.full.get(piece as usize).map_or(&self.last, |piece| &piece.records), place as usize)
    }

    /// Calls `each` with the rows of a piece whose keys are between these bounds. Returns false if no piece has this
    /// number. The first call for a full piece sorts it.
    pub(super) fn rows_between(
        &self,
        piece: usize,
        from: Bound<Key<'_>>,
        to: Bound<Key<'_>>,
        mut each: impl FnMut(u32),
    ) -> bool {
        if let Some(piece) = self.full.get(piece) {
            let key = |row: &u32| piece.records.key(*row as usize);
            let start = piece.order().partition_point(|row| !is_past(key(row), from));
            let rows = piece.order()[start..].iter().take_while(|row| !ends_before(key(row), to));
            rows.for_each(|row| each(piece.first + row));
            return true;
        }
        if piece == self.full.len() {
            let first = self.places.len() - self.last.len();
            let rows = (0..self.last.len()).filter(|&row| is_between(self.last.key(row), from, to));
            rows.for_each(|row| each((first + row) as u32));
        }
        piece == self.full.len()
    }

    pub(in crate::store) fn key(&self, row: usize) -> Key<'_> {
        let (records, place) = self.at(row);
        records.key(place)
    }

    pub(in crate::store) fn is_sketched(&self, row: usize) -> bool {
        let (records, place) = self.at(row);
        records.is_sketched(place)
    }

    pub(in crate::store) fn is_delete(&self, row: usize) -> bool {
        let (records, place) = self.at(row);
        records.is_delete(place)
    }

    /// Returns the fingerprint of a row; 0 if it has no sketch. The index must store fingerprints.
    pub(in crate::store) fn fingerprint(&self, row: usize) -> u64 {
        let (records, place) = self.at(row);
        records.fingerprint(place)
    }

    /// Returns the band keys of a row; all 0 if it has no sketch.
    pub(in crate::store) fn band_keys(&self, row: usize) -> &[u32] {
        let (records, place) = self.at(row);
        records.band_keys(place)
    }

    pub(in crate::store) fn signature(&self, row: usize) -> &[u8] {
        let (records, place) = self.at(row);
        records.signature(place)
    }

    /// Appends the values of a row's bottom sample (`of` = 0) or modular sample (`of` = 1) to `out`.
    pub(in crate::store) fn sample(&self, row: usize, of: usize, out: &mut Vec<u64>) {
        let (records, place) = self.at(row);
        records.sample(place, of, out);
    }

    /// Returns the value of a row; empty if the index stores no values.
    pub(in crate::store) fn value(&self, row: usize) -> &[u8] {
        let (records, place) = self.at(row);
        records.value(place)
    }

    /// Returns the fields of a row; empty if the index stores no fields.
    pub(in crate::store) fn fields(&self, row: usize) -> Fields<'_> {
        let (records, place) = self.at(row);
        records.fields(place)
    }

    /// Replaces the contents of `out` with the set of a row; see [`Records::set`].
    pub(in crate::store) fn set(&self, row: usize, out: &mut Vec<u64>) -> Result<()> {
        let (records, place) = self.at(row);
        records.set(place, out)
    }

    /// Returns the stamp of a row; `None` if the index stores no stamps.
    pub(in crate::store) fn stamp(&self, row: usize) -> Option<u64> {
        let (records, place) = self.at(row);
        records.stamp(place)
    }
}

/// Rows copied from a memtable. Full pieces are shared with the memtable.
#[derive(Debug)]
pub(in crate::store) struct FirstRows {
    whole: Vec<Arc<RecordPiece>>,
    last: Records,
}

impl FirstRows {
    /// Copies all rows into one [`Records`]. Does not lock the memtable.
    pub(in crate::store) fn into_records(self) -> Records {
        let mut all = Records::new(self.last.params());
        for piece in &self.whole {
            all.append(&piece.records);
        }
        all.append(&self.last);
        all
    }
}
