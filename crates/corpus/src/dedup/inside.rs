//! Documents that are compared only inside a value of a field, their source or language: each value keeps its survivor.
//!
//! Equal texts of two values are two groups. Shingles are hashed with the value, so that sets of two values share none,
//! and everything that counts shingles needs to know no more. Sketches that are made of the text alone are near across
//! values; such pairs are dropped before anything decides by them.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::anyhow;
use xxhash_rust::xxh3::xxh3_64;

/// The values of the field.
#[derive(Default)]
pub(super) struct Values {
    numbers: HashMap<Box<[u8]>, u32, ahash::RandomState>,
}

/// The number that stands for no field.
pub(super) const NO_FIELD: u32 = 0;

impl Values {
    /// The number of a value, by which it is told from others. Empty is [`NO_FIELD`], and no value of a field.
    pub(super) fn number(&mut self, value: &[u8]) -> anyhow::Result<u32> {
        if value.is_empty() {
            return Ok(NO_FIELD);
        }
        if let Some(&number) = self.numbers.get(value) {
            return Ok(number);
        }
        let next = u32::try_from(self.numbers.len() + 1).map_err(|_| anyhow!("more than 2^32 values"))?;
        self.numbers.insert(value.into(), next);
        Ok(next)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// What is combined with each hash of a document of this value.
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
