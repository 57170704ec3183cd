//! Shards: each document is assigned to one of n parts by the hash of its key.
//!
//! The part of a document depends only on its key and n, not on its position in the files. All documents with the same
//! key are therefore in one part, and the last of them replaces the others as in a run without shards. The parts have
//! nearly equal numbers of documents, whatever the keys are.

use std::fmt;
use std::str::FromStr;

use twindex::Key;
use xxhash_rust::xxh3::xxh3_64;

/// Part number `number` of `count` parts. Parts are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    count: u32,
}

/// Returns the part of the document with this key. Parts are numbered from 0; `count`, at least 1, is their number.
#[must_use]
pub fn part_of(key: Key<'_>, count: u32) -> u32 {
    let hash = match key {
        Key::Bytes(key) => xxh3_64(key),
        Key::U64(key) => xxh3_64(&key.to_le_bytes()),
    };
    // The upper half of the product is below `count`, and as uniformly distributed as the hash.
    ((u128::from(hash) * u128::from(count)) >> 64) as u32
}

impl Shard {
    /// Returns whether the document with this key is in the part.
    #[must_use]
    pub fn has(self, key: Key<'_>) -> bool {
        part_of(key, self.count) == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Self { number, count }),
            _ => Err("expected i/n, part i of n from 1, for example 2/4".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_in_exactly_one_shard_and_shards_are_balanced() {
        for count in [1, 2, 3, 7, 16] {
            let parts: Vec<Shard> =
                (1..=count).map(|number| format!("{number}/{count}").parse().unwrap()).collect();
            let mut sizes = vec![0_u32; count as usize];
            for number in 0..8000_u64 {
                let key = format!("page-{number}");
                for key in [Key::U64(number), Key::Bytes(key.as_bytes())] {
                    let of: Vec<usize> = (0..parts.len()).filter(|&part| parts[part].has(key)).collect();
                    assert_eq!(of.len(), 1, "{key:?} {of:?}");
                    sizes[of[0]] += 1;
                }
            }
            let mean = 16_000 / count;
            assert!(sizes.iter().all(|&size| size.abs_diff(mean) < mean / 5), "{sizes:?}");
        }
    }

    #[test]
    fn shard_of_a_key_never_changes() {
        // Users combine shards that different versions wrote, so the part of a key must never change.
        let part = |key: Key<'_>| {
            (1..=64).find(|number| format!("{number}/64").parse::<Shard>().unwrap().has(key)).unwrap()
        };
        let bytes = ["", "a", "b", "https://example.org/"].map(|key| part(Key::Bytes(key.as_bytes())));
        let numbers = [0, 1, 1 << 40].map(|key| part(Key::U64(key)));
        assert_eq!((bytes, numbers), ([12, 58, 22, 36], [50, 12, 46]));
    }

    #[test]
    fn shard_numbers_round_trip_and_invalid_ones_are_refused() {
        for text in ["1/1", "2/4", "4294967295/4294967295"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "1/0", "a/b", "1/4/2", "-1/4", "1/4294967296"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
