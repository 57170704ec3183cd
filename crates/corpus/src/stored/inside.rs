//! Values of the `--inside` field, such as a source or a language. Documents are compared only with documents of the
//! same value, so each value has its own kept documents.
//!
//! Equal texts with different values are in different groups. Each shingle hash is combined with the value, so sets
//! with different values have no common hash, and code that counts common shingles needs no further check. Sketches are
//! computed from the text alone, so they may be near although the values differ; such pairs are discarded before the
//! decision.

use std::borrow::Cow;

use anyhow::ensure;
use twindex::sys::{Column, MemoryBudget};
use xxhash_rust::xxh3::xxh3_64;

use crate::stored::keys::{DocumentKeys, KnownKeys};

/// The distinct values of the field.
pub(crate) struct InsideValues {
    values: DocumentKeys,
    known: KnownKeys,
}

/// The id of the empty value, used if there is no field.
pub(crate) const NO_FIELD: u32 = 0;

impl InsideValues {
    /// Creates an empty list whose memory counts against `budget`.
    pub(crate) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(Self { values: DocumentKeys::new(budget), known: KnownKeys::new(budget)? })
    }

    /// Returns the id of a value, adding the value if it is new. Ids are distinct; the id of the empty value is
    /// [`NO_FIELD`].
    pub(crate) fn number(&mut self, value: &[u8]) -> anyhow::Result<u32> {
        if let Some(number) = self.find(value) {
            return Ok(number);
        }
        let next = self.values.len() as u32;
        ensure!(next < u32::MAX - 1, "more than 2^32 values");
        self.values.push(value)?;
        self.known.insert(value, next)?;
        Ok(next + 1)
    }

    /// Returns the id of a value; `None` if it was not added.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        if value.is_empty() {
            return Some(NO_FIELD);
        }
        self.known.find(&self.values, value).map(|number| number + 1)
    }

    /// Returns the value at index `place`, from 0, in the order of addition. Its id is `place` + 1.
    pub(crate) fn value(&self, place: u32) -> &[u8] {
        self.values.get(place)
    }

    /// Returns the value with this id; empty for [`NO_FIELD`].
    pub(crate) fn of_number(&self, number: u32) -> &[u8] {
        number.checked_sub(1).map_or(&[], |place| self.values.get(place))
    }

    /// Returns the indices of the values in ascending order of the values. Uses about `memory` bytes, in addition to
    /// the result, which counts against `budget`.
    pub(crate) fn sorted(&self, budget: &MemoryBudget, memory: usize) -> twindex::Result<Column<u32>> {
        self.values.sorted(0..self.values.len() as u32, budget, memory)
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Returns the number that is combined with each hash of a document with this value; 0 for the empty value.
fn salt(value: &[u8]) -> u64 {
    if value.is_empty() { 0 } else { xxh3_64(value) }
}

/// Returns the shingle hashes of a document combined with its value, in the same order. Distinct hashes remain
/// distinct.
pub(crate) fn shingles_inside<'s>(shingles: &'s [u64], value: &[u8]) -> Cow<'s, [u64]> {
    let salt = salt(value);
    match salt {
        0 => Cow::Borrowed(shingles),
        _ => shingles.iter().map(|shingle| shingle ^ salt).collect(),
    }
}

/// Combines the hashes of a document with its value, in place.
pub(crate) fn put_inside(hashes: &mut [u64], value: &[u8]) {
    let salt = salt(value);
    for hash in hashes {
        *hash ^= salt;
    }
}

/// Restores hashes that were [combined](put_inside) with a value, in place. Returns whether they changed.
pub(crate) fn take_outside(hashes: &mut [u64], value: &[u8]) -> bool {
    put_inside(hashes, value); // combining twice restores the hashes
    !value.is_empty()
}
