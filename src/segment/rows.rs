//! Builds a segment from more records than fit in memory. Each record may have only a numeric key and a fingerprint.
//!
//! Rows are collected in a scratch file, 17 bytes each. The segment is then built within the memory budget:
//!
//! 1. Unless the keys ascend, sort the rows by key, with a radix partition to scratch files. Of repeated keys, only the last
//!    row is kept.
//! 2. Compute the salt, and partition (fingerprint, ordinal) by the leading bits of the fingerprints.
//! 3. Sort each partition in memory. Together they yield table 1, the ranks and the postings.
//! 4. Build each other table from table 1 in the same way, one table after the other.

use std::path::Path;

use super::attached::RecordAttached;
use super::build::{BuiltSegment, DistinctFingerprints, begin, distinct_of, write_numbers};
use super::records::{KeyColumn, RecordSketch, Records, RowKind, record_hash};
use super::sorted::RadixSorter;
use super::spilled::{Item, SliceSource, SpillBudget, SpillColumn, pair};
use crate::error::{Error, Result};
use crate::format::keys::Frame;
use crate::format::{DOCUMENTS_MAX, fields};
use crate::key::Key;
use crate::params::{KeyKind, Params};
use crate::sys::Spill;
use crate::sys::vfs::Vfs;

/// A record that consists of a numeric key and a fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct RawRow {
    key: u64,
    /// The number of rows that were added before this one.
    place: u64,
    fingerprint: u64,
    /// The [`RowKind`], encoded as one of the constants `SKETCHED`, `EMPTY` and `DELETED`.
    kind: u8,
}

impl Item for RawRow {
    const BYTES: usize = 25;
    #[inline(always)]
    fn key(self) -> u64 {
        self.key
    }
    fn put(self, bytes: &mut Vec<u8>) {
        for word in [self.key, self.place, self.fingerprint] {
            word.put(bytes);
        }
        bytes.push(self.kind);
    }
    fn take(bytes: &[u8]) -> Self {
        let word = |at: usize| u64::take(&bytes[at..]);
        Self { key: word(0), place: word(8), fingerprint: word(16), kind: bytes[24] }
    }
}

/// Number of bytes of a row in the scratch file. `place` is not stored, because it follows from the position.
const ROW_BYTES: usize = 17;
/// Number of rows that are read or written at once.
const CHUNK: u64 = 1 << 12;

const SKETCHED: u8 = 0;
const EMPTY: u8 = 1;
const DELETED: u8 = 2;

/// Rows in the order in which they were added.
#[derive(Debug)]
pub struct Rows {
    spill: Spill,
    count: u64,
    last: Option<u64>,
    ascends: bool,
}

impl Rows {
    /// Number of bytes of memory of such a record.
    pub const RECORD_BYTES: usize = 17;

    /// Returns true if records with these parameters consist only of a numeric key and a fingerprint.
    #[must_use]
    pub fn can_hold(params: &Params) -> bool {
        let attached = params.values || params.expire_after.is_some() || fields::are_kept(params);
        let more = params.minhash.is_some() || params.bottom > 0 || params.modulus > 0 || attached;
        params.key == KeyKind::U64 && params.simhash.is_some() && !more
    }

    /// Creates an empty list of rows.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(budget: SpillBudget<'_>) -> Result<Self> {
        Ok(Self { spill: budget.spill()?, count: 0, last: None, ascends: true })
    }

    /// Returns the number of rows, including those that later rows replace.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "rows are created to be filled")]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Appends records. Their parameters must satisfy [`can_hold`](Self::can_hold).
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Invalid`] if the parameters do not satisfy `can_hold`.
    pub fn append(&mut self, records: &Records, budget: SpillBudget<'_>) -> Result<()> {
        let (KeyColumn::U64(keys), true) = (&records.keys, Self::can_hold(&records.params)) else {
            return Err(Error::Invalid("these records are more than fingerprints under numbers".into()));
        };
        let mut bytes = Vec::new();
        for start in (0..keys.len()).step_by(CHUNK as usize) {
            bytes.clear();
            for (row, &key) in keys.iter().enumerate().skip(start).take(CHUNK as usize) {
                self.ascends &= self.last < Some(key);
                self.last = Some(key);
                key.put(&mut bytes);
                records.fingerprints[row].put(&mut bytes);
                bytes.push(match records.kinds[row] {
                    RowKind::Sketched => SKETCHED,
                    RowKind::Empty => EMPTY,
                    RowKind::Deleted => DELETED,
                });
            }
            budget.append(&mut self.spill, &bytes)?;
        }
        self.count += keys.len() as u64;
        Ok(())
    }

    fn for_each(&self, budget: SpillBudget<'_>, mut each: impl FnMut(RawRow) -> Result<()>) -> Result<()> {
        for start in (0..self.count).step_by(CHUNK as usize) {
            let count = CHUNK.min(self.count - start) as u32;
            let bytes = budget.read(&self.spill, start * ROW_BYTES as u64, count * ROW_BYTES as u32)?;
            for (place, row) in (start..).zip(bytes.chunks_exact(ROW_BYTES)) {
                each(RawRow {
                    key: u64::take(row),
                    place,
                    fingerprint: u64::take(&row[8..]),
                    kind: row[16],
                })?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the last row of each key, in the order of keys.
    fn for_each_last(
        self,
        budget: SpillBudget<'_>,
        mut each: impl FnMut(RawRow) -> Result<()>,
    ) -> Result<()> {
        if self.ascends {
            return self.for_each(budget, each);
        }
        let mut sorter = RadixSorter::new(budget, budget.share(4), 64);
        self.for_each(budget, |row| sorter.push(row))?;
        drop(self);
        let mut sorted = sorter.finish()?.into_values();
        let mut last: Option<RawRow> = None;
        while let Some(slice) = sorted.next_slice()? {
            for &row in slice {
                if let Some(before) = last.replace(row)
                    && before.key != row.key
                {
                    each(before)?;
                }
            }
        }
        last.map_or(Ok(()), each)
    }

    /// Writes the segment of these rows. It is byte for byte the segment that [`build`](super::build::build) writes.
    /// Calls `hide` with each key, including deleted ones, in ascending order.
    ///
    /// Takes O(n log n) time in the worst case, and O(n) for random fingerprints. Uses the memory budget plus a thousandth
    /// of the size of the file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Invalid`] for parameters without fingerprints; [`Error::Limit`] for more than 2^30
    /// documents; the errors of `hide`.
    pub fn build(
        self,
        params: &Params,
        vfs: &dyn Vfs,
        dir: &Path,
        budget: SpillBudget<'_>,
        mut hide: impl FnMut(u64) -> Result<()>,
    ) -> Result<BuiltSegment> {
        let Some(simhash) = params.simhash else {
            return Err(Error::Invalid("parameters that keep no fingerprints".into()));
        };
        let mut pairs = RadixSorter::new(budget, budget.share(2), 64);
        let mut keys = SpillColumn::new(budget, budget.share(8));
        let mut salt = params.digest();
        let mut scratch = Vec::new();
        let (mut first, mut last) = (None, 0);
        self.for_each_last(budget, |row| {
            hide(row.key)?;
            if row.kind == DELETED {
                return Ok(());
            }
            let ordinal = keys.len();
            if ordinal >= DOCUMENTS_MAX {
                let found = ordinal + 1;
                return Err(Error::Limit { what: "documents of a segment", limit: DOCUMENTS_MAX, found });
            }
            let sketch = (row.kind == SKETCHED).then_some(RecordSketch {
                fingerprint: Some(row.fingerprint),
                bands: &[],
                signature: &[],
                samples: [None; 2],
            });
            salt = salt.wrapping_add(record_hash(
                Key::U64(row.key),
                sketch,
                RecordAttached::default(),
                &mut scratch,
            ));
            first = first.or(Some(row.key));
            last = row.key;
            keys.push(row.key)?;
            if row.kind == SKETCHED {
                pairs.push(pair(row.fingerprint, ordinal as u32))?;
            }
            Ok(())
        })?;
        let documents = keys.len();
        let frame = match first {
            Some(first) => Frame::spanning(first, last, documents),
            None => Frame::of(&[]),
        };
        let mut out = begin(vfs, dir, salt, (params, false), budget)?;
        write_numbers(&mut out, frame, documents, &mut keys.into_values())?;
        let pairs = pairs.finish()?;
        let fingerprints = match pairs.in_memory() {
            Some(sorted) => distinct_of(budget, sorted)?,
            None => DistinctFingerprints::of(budget, pairs.values())?,
        };
        drop(pairs); // its memory is for the tables
        let distinct = fingerprints.write(&mut out, simhash, documents)?;
        Ok(BuiltSegment::of(out.finish(documents, distinct)?, salt, documents))
    }
}
