//! Documents that are compared only inside a value of a field, their source or language: each value keeps its survivor.
//!
//! Equal texts of two values are two groups. Shingles are hashed with the value, so that sets of two values share none,
//! and everything that counts shingles needs to know no more. Sketches that are made of the text alone are near across
//! values; such pairs are dropped before anything decides by them.

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

/// The number of no field.
pub(super) const NO_FIELD: u32 = 0;

impl InsideValues {
    /// None yet, in the memory of `budget`.
    pub(super) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(Self { values: DocumentKeys::new(budget), known: KnownKeys::new(budget)? })
    }

    /// The number of a value, different for different values. An empty value is [`NO_FIELD`].
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

    /// The number of a value that was there before.
    pub(super) fn find(&self, value: &[u8]) -> Option<u32> {
        if value.is_empty() {
            return Some(NO_FIELD);
        }
        self.known.find(&self.values, value).map(|number| number + 1)
    }

    /// The value that was the n-th to come, from 0: that of the number n + 1.
    pub(super) fn value(&self, place: u32) -> &[u8] {
        self.values.get(place)
    }

    /// The value of a number; empty for [`NO_FIELD`].
    pub(super) fn of_number(&self, number: u32) -> &[u8] {
        number.checked_sub(1).map_or(&[], |place| self.values.get(place))
    }

    /// The places of values, in the order of the values. Takes about `memory` bytes beside those of `budget`.
    pub(super) fn sorted(&self, budget: &MemoryBudget, memory: usize) -> twindex::Result<Column<u32>> {
        self.values.sorted(0..self.values.len() as u32, budget, memory)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// The number that is combined with each hash of a document of this value.
fn salt(value: &[u8]) -> u64 {
    if value.is_empty() { 0 } else { xxh3_64(value) }
}

/// The hashes of the shingles of a document of this value, in the same order; distinct ones stay distinct.
pub(super) fn shingles_inside<'s>(shingles: &'s [u64], value: &[u8]) -> Cow<'s, [u64]> {
    let salt = salt(value);
    match salt {
        0 => Cow::Borrowed(shingles),
        _ => shingles.iter().map(|shingle| shingle ^ salt).collect(),
    }
}

/// Combines hashes of a document of this value with it, in place.
pub(super) fn put_inside(hashes: &mut [u64], value: &[u8]) {
    let salt = salt(value);
    for hash in hashes {
        *hash ^= salt;
    }
}

/// Turns hashes that were [combined](put_inside) with a value into those of the text alone, in place. False if they were.
pub(super) fn take_outside(hashes: &mut [u64], value: &[u8]) -> bool {
    put_inside(hashes, value); // twice is not at all
    !value.is_empty()
}
