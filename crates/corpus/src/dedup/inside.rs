//! Documents that are compared only within a value of a field, such as a source or a language: each value has its own kept
//! documents.
//!
//! Equal texts with different values are different groups. Shingle hashes are combined with the value, so that sets with
//! different values share none, and code that counts shingles needs no further check. Sketches are made of the text alone,
//! so they may be near across values; such pairs are discarded before any decision.

use std::borrow::Cow;

use anyhow::ensure;
use twindex::sys::{Column, MemoryBudget};
use xxhash_rust::xxh3::xxh3_64;

use super::keys::{DocumentKeys, KnownKeys};

/// The values of the field.
pub(super) struct InsideValues {
    values: DocumentKeys,
    known: KnownKeys,
}

/// The number for the empty value, used if there is no field.
pub(super) const NO_FIELD: u32 = 0;

impl InsideValues {
    /// Creates an empty list, in the memory of `budget`.
    pub(super) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(Self { values: DocumentKeys::new(budget), known: KnownKeys::new(budget)? })
    }

    /// Returns the number of a value, adding the value if it is new. Different values have different numbers; the empty
    /// value has [`NO_FIELD`].
    pub(super) fn number(&mut self, value: &[u8]) -> anyhow::Result<u32> {
        if let Some(number) = self.find(value) {
            return Ok(number);
        }
        let next = self.values.len() as u32;
        ensure!(next < u32::MAX - 1, "more than 2^32 values");
        self.values.push(value)?;
        self.known.insert(value, next)?;
        Ok(next + 1)
    }

    /// Returns the number of a value that was added before.
    pub(super) fn find(&self, value: &[u8]) -> Option<u32> {
        if value.is_empty() {
            return Some(NO_FIELD);
        }
        self.known.find(&self.values, value).map(|number| number + 1)
    }

    /// Returns the value that was added at position `place`, from 0; its number is `place` + 1.
    pub(super) fn value(&self, place: u32) -> &[u8] {
        self.values.get(place)
    }

    /// Returns the value of a number; empty for [`NO_FIELD`].
    pub(super) fn of_number(&self, number: u32) -> &[u8] {
        number.checked_sub(1).map_or(&[], |place| self.values.get(place))
    }

    /// Returns the positions of values, in the order of the values. Takes about `memory` bytes in addition to those of
    /// `budget`.
    pub(super) fn sorted(&self, budget: &MemoryBudget, memory: usize) -> twindex::Result<Column<u32>> {
        self.values.sorted(0..self.values.len() as u32, budget, memory)
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Returns the number that is combined with each hash of a document with this value.
fn salt(value: &[u8]) -> u64 {
    if value.is_empty() { 0 } else { xxh3_64(value) }
}

/// Returns the shingle hashes of a document combined with its value, in the same order; distinct hashes stay distinct.
pub(super) fn shingles_inside<'s>(shingles: &'s [u64], value: &[u8]) -> Cow<'s, [u64]> {
    let salt = salt(value);
    match salt {
        0 => Cow::Borrowed(shingles),
        _ => shingles.iter().map(|shingle| shingle ^ salt).collect(),
    }
}

/// Combines hashes of a document with its value, in place.
pub(super) fn put_inside(hashes: &mut [u64], value: &[u8]) {
    let salt = salt(value);
    for hash in hashes {
        *hash ^= salt;
    }
}

/// Reverts hashes that were [combined](put_inside) with a value to those of the text alone, in place. Returns whether they
/// changed.
pub(super) fn take_outside(hashes: &mut [u64], value: &[u8]) -> bool {
    put_inside(hashes, value); // twice is not at all
    !value.is_empty()
}
