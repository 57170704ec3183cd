//! Hash tables of what others have written.

use std::hash::{BuildHasher, Hasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// xxh3-64 of few whole pieces, and what it is so far. Each table has a seed of its own, so that nobody can write what
/// falls together in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl Seeded {
    /// The hash of this.
    pub(super) fn of(self, number: u128) -> u64 {
        self.of_bytes(&number.to_le_bytes())
    }

    /// The same, of bytes.
    pub(super) fn of_bytes(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Seeded {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
