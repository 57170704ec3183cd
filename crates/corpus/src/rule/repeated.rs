//! Detects documents with a key that occurred before, and decides whether they are used.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};

use anyhow::Context;
use twindex::Snapshot;
use twindex::params::KeyKind;
use twindex::sys::{Column, MemoryBudget};
use twindex_join::HashNumbers;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The treatment of a document that has the same key as an earlier document of the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedKeys {
    /// A number is added to its key: the second document with the key `K` gets the key `K#2`, or the next number that
    /// gives an unused key.
    Number,
    /// The document is skipped and counted.
    First,
    /// Only the last document with a key is used. Earlier ones are skipped and counted. Inputs are read twice.
    Last,
    /// The document causes an error, which ends the run.
    Error,
    /// The document is used with its key unchanged, and the caller resolves the conflict: a job returns an error, an
    /// index keeps the last document.
    #[default]
    Any,
}

impl RepeatedKeys {
    /// Returns the treatment for commands that must not skip documents: [`Number`](Self::Number) stays, all others
    /// become `Any`.
    pub(crate) fn or_any(self) -> Self {
        if self == Self::Number { self } else { Self::Any }
    }

    /// Returns the treatment for lookups by key: [`Number`](Self::Number) stays, all others become `First`.
    pub(crate) fn or_first(self) -> Self {
        if self == Self::Number { self } else { Self::First }
    }
}

/// The keys of the documents that were read so far.
///
/// Stores 128-bit hashes instead of keys. Takes 27 to 37 bytes per document, or 8 more if keys have counts.
#[derive(Debug)]
pub(crate) enum SeenKeys {
    /// For each key, the next number to append to a repeated key; 0 if the key occurred once.
    Number(Hashes),
    First(Hashes),
    Error(Hashes),
    /// For each key, the number of documents that were announced but not read yet.
    Last(Hashes),
    /// Documents do not come in input order, so [`LateNumbers`] adds numbers to repeated keys after the last one. The keys
    /// that were read, and the [bases](without_numbers) of those that were repeated.
    Late(Box<(Hashes, Hashes)>),
    /// No keys are stored; the caller detects repeated keys.
    Any,
}

/// Adds numbers to repeated keys, as [`SeenKeys::Number`] does, but after all documents were read.
pub(crate) struct LateNumbers {
    /// The keys with the bases of repeated keys. No other key gets a number, or is what a key with a number would be.
    seen: SeenKeys,
    bases: Hashes,
}

impl LateNumbers {
    /// Adds a number to the key of the next document in input order if it is repeated. Returns whether it is.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>) -> anyhow::Result<bool> {
        let may_clash = self.bases.find(without_numbers(key)).is_some();
        Ok(may_clash && self.seen.next(key)? == KeyDecision::Numbered)
    }
}

/// A set of hashes of keys, each with a count if counts are needed.
#[derive(Debug)]
pub(crate) struct Hashes {
    numbers: HashNumbers,
    all: Column<u128>,
    counts: Column<u64>,
    /// A random hash seed, so that inputs cannot be crafted with colliding keys.
    seed: u64,
}

impl Hashes {
    fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        let (all, counts) = (Column::new(budget), Column::new(budget));
        let seed = BuildHasher::hash_one(&RandomState::new(), 0);
        Ok(Self { numbers: HashNumbers::new(budget)?, all, counts, seed })
    }

    /// Returns the hash of a key, and its part by which the key is looked up.
    fn hash(&self, key: &[u8]) -> (u128, u64) {
        let hash = xxh3_128_with_seed(key, self.seed);
        (hash, (hash >> 64) as u64)
    }

    /// Adds a key. Returns its index, and whether it is new.
    fn insert(&mut self, key: &[u8]) -> anyhow::Result<(usize, bool)> {
        let (hash, spread) = self.hash(key);
        let is_same = |number: u32| Ok::<_, Infallible>(self.all[number as usize] == hash);
        let found = self.numbers.find(spread, is_same);
        if let Some(number) = found.unwrap_or_else(|never| match never {}) {
            return Ok((number as usize, false));
        }
        let number = self.all.len();
        let numbered = u32::try_from(number).ok().filter(|&number| number < u32::MAX);
        self.numbers.insert(spread, numbered.context("more than 2^32 keys")?)?;
        self.all.push(hash)?;
        Ok((number, true))
    }

    /// Returns the index of a key; `None` if it was not added.
    fn find(&self, key: &[u8]) -> Option<usize> {
        let (hash, spread) = self.hash(key);
        let is_same = |number: u32| Ok::<_, Infallible>(self.all[number as usize] == hash);
        let found = self.numbers.find(spread, is_same);
        found.unwrap_or_else(|never| match never {}).map(|number| number as usize)
    }

    fn is_new(&mut self, key: &[u8]) -> anyhow::Result<bool> {
        Ok(self.insert(key)?.1)
    }

    /// Adds a key. Returns its count, and whether it is new.
    fn count(&mut self, key: &[u8]) -> anyhow::Result<(&mut u64, bool)> {
        let (number, is_new) = self.insert(key)?;
        if is_new {
            self.counts.push(0)?;
        }
        Ok((&mut self.counts[number], is_new))
    }
}

/// The advice in the error message for a repeated key.
pub(crate) const OTHERS: &str = "--repeated-keys number or first takes it all the same";

/// The keys of the histories of a run. A new document with one of these keys counts as repeated.
#[derive(Debug, Default)]
pub struct EarlierKeys {
    /// The histories that are indexes, each with its path for messages. Keys are looked up in the index.
    indexes: Vec<(String, Snapshot)>,
    /// The names of all other histories. `listed` has the hashes of their keys, each with the index of the history in
    /// `names`.
    names: Vec<String>,
    listed: Option<Hashes>,
}

impl EarlierKeys {
    /// Creates the set with the keys of `indexes`. `names` are further histories; their keys are [added](Self::add)
    /// later.
    pub(crate) fn new(indexes: Vec<(String, Snapshot)>, names: Vec<String>) -> Self {
        Self { indexes, names, listed: None }
    }

    /// Adds a history and returns its index. Its keys are [added](Self::add) afterwards.
    pub(crate) fn add_history(&mut self, name: String) -> usize {
        self.names.push(name);
        self.names.len() - 1
    }

    /// Returns whether there is no history.
    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.names.is_empty()
    }

    /// Adds a key of the history with the index `history`. Its 35 to 45 bytes of memory count against `budget`.
    pub(crate) fn add(&mut self, key: &[u8], history: usize, budget: &MemoryBudget) -> anyhow::Result<()> {
        let listed = match &mut self.listed {
            Some(listed) => listed,
            none => none.insert(Hashes::new(budget)?),
        };
        let (of, is_new) = listed.count(key)?;
        if is_new {
            *of = history as u64;
        }
        Ok(())
    }

    /// Returns the name of a history that has this key, if any.
    pub(crate) fn find(&self, key: &[u8]) -> anyhow::Result<Option<&str>> {
        if let Some(listed) = &self.listed
            && let Some(number) = listed.find(key)
        {
            return Ok(self.names.get(listed.counts[number] as usize).map(String::as_str));
        }
        for (name, index) in &self.indexes {
            let has = match index.params().key {
                KeyKind::Bytes => index.contains(key),
                // Only the canonical decimal form of a number is its key: `7`, not `07`.
                KeyKind::U64 => match std::str::from_utf8(key).ok().and_then(|key| key.parse::<u64>().ok()) {
                    Some(number) if number.to_string().as_bytes() == key => index.contains(number),
                    _ => Ok(false),
                },
            };
            if has.with_context(|| format!("--against {name}"))? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// The decision whether a document with a given key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyDecision {
    Taken,
    /// The document is used, and a number was added to its key.
    Numbered,
    PassedOver,
    Refused,
}

impl SeenKeys {
    /// Creates an empty set, whose memory counts against `budget`. For [`RepeatedKeys::Last`], all keys must be
    /// [announced](Self::announce) before the first call of `next`.
    pub(crate) fn new(repeated: RepeatedKeys, budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(match repeated {
            RepeatedKeys::Number => Self::Number(Hashes::new(budget)?),
            RepeatedKeys::First => Self::First(Hashes::new(budget)?),
            RepeatedKeys::Last => Self::Last(Hashes::new(budget)?),
            RepeatedKeys::Error => Self::Error(Hashes::new(budget)?),
            RepeatedKeys::Any => Self::Any,
        })
    }

    /// Like [`new`](Self::new), for documents that do not come in input order.
    pub(crate) fn late(budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(Self::Late(Box::new((Hashes::new(budget)?, Hashes::new(budget)?))))
    }

    /// Returns what adds numbers to the keys of documents that did not come in input order; `None` if no key does.
    pub(crate) fn late_numbers(self, budget: &MemoryBudget) -> twindex::Result<Option<LateNumbers>> {
        Ok(match self {
            Self::Late(keys) if !keys.1.all.is_empty() => {
                Some(LateNumbers { seen: Self::new(RepeatedKeys::Number, budget)?, bases: keys.1 })
            }
            _ => None,
        })
    }

    /// Announces, for [`RepeatedKeys::Last`], that `next` will be called for a document with this key.
    pub(crate) fn announce(&mut self, key: &[u8]) -> anyhow::Result<()> {
        if let Self::Last(coming) = self {
            *coming.count(key)?.0 += 1;
        }
        Ok(())
    }

    /// Begins to load what the decisions about these keys read.
    pub(crate) fn prefetch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let seen = match self {
            Self::Number(seen) | Self::First(seen) | Self::Error(seen) | Self::Last(seen) => seen,
            Self::Late(keys) => &keys.0,
            Self::Any => return,
        };
        keys.for_each(|key| seen.numbers.prefetch(seen.hash(key).1));
    }

    /// Decides whether the next document is used. May add a number to its key.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>) -> anyhow::Result<KeyDecision> {
        self.next_after(key, false, None)
    }

    /// Decides as [`next`](Self::next) does, in a run with histories. `is_earlier` is true if a history has the key. A
    /// number that is added must not give a key in `earlier`.
    pub(crate) fn next_after(
        &mut self,
        key: &mut Vec<u8>,
        is_earlier: bool,
        earlier: Option<&EarlierKeys>,
    ) -> anyhow::Result<KeyDecision> {
        Ok(match self {
            Self::Any => KeyDecision::Taken,
            Self::Late(keys) => {
                let (seen, bases) = &mut **keys;
                if !seen.is_new(key)? {
                    bases.insert(without_numbers(key))?;
                }
                KeyDecision::Taken
            }
            Self::First(seen) => {
                if !is_earlier && seen.is_new(key)? {
                    KeyDecision::Taken
                } else {
                    KeyDecision::PassedOver
                }
            }
            Self::Error(seen) => {
                if seen.is_new(key)? {
                    KeyDecision::Taken
                } else {
                    KeyDecision::Refused
                }
            }
            Self::Last(coming) => match coming.count(key)?.0 {
                rest @ 2.. => {
                    *rest -= 1;
                    KeyDecision::PassedOver
                }
                _ => KeyDecision::Taken,
            },
            Self::Number(seen) => {
                let (next, is_new) = seen.count(key)?;
                if is_new && !is_earlier {
                    return Ok(KeyDecision::Taken);
                }
                let mut number = (*next).max(2);
                let (base, length) = (key.clone(), key.len());
                loop {
                    key.truncate(length);
                    key.push(b'#');
                    key.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                    number += 1;
                    let is_free = seen.count(key)?.1
                        && earlier.map(|earlier| earlier.find(key)).transpose()?.flatten().is_none();
                    if is_free {
                        *seen.count(&base)?.0 = number;
                        return Ok(KeyDecision::Numbered);
                    }
                }
            }
        })
    }
}

/// Returns a key without the numbers that [`SeenKeys::next`] may have added. Two keys can become equal by added numbers
/// only if this function returns the same key for both.
pub(crate) fn without_numbers(key: &[u8]) -> &[u8] {
    let mut rest = key;
    while let Some(at) = memchr::memrchr(b'#', rest) {
        let digits = &rest[at + 1..];
        if at == 0 || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            break;
        }
        rest = &rest[..at];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_in(budget: &MemoryBudget, repeated: RepeatedKeys, keys: &[&str]) -> Vec<Option<String>> {
        let mut seen = SeenKeys::new(repeated, budget).unwrap();
        for key in keys {
            seen.announce(key.as_bytes()).unwrap();
        }
        let next = |key: &&str| {
            let mut key = key.as_bytes().to_vec();
            let fate = seen.next(&mut key).unwrap();
            (fate != KeyDecision::PassedOver).then(|| String::from_utf8(key).unwrap())
        };
        keys.iter().map(next).collect()
    }

    fn keys(repeated: RepeatedKeys, keys: &[&str]) -> Vec<Option<String>> {
        keys_in(&MemoryBudget::unlimited(), repeated, keys)
    }

    #[test]
    fn repeated_keys_are_handled_equally_in_memory_and_scratch_files() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<String> = (0..4000_u32).map(|number| (number * 7919 % 1500).to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        for (repeated, taken) in
            [(RepeatedKeys::Number, 4000), (RepeatedKeys::First, 1500), (RepeatedKeys::Last, 1500)]
        {
            let held = keys(repeated, &all);
            assert_eq!(held.iter().flatten().count(), taken, "{repeated:?}");
            assert_eq!(keys_in(&MemoryBudget::new(dir.path(), 0), repeated, &all), held, "{repeated:?}");
        }
    }

    #[test]
    fn repeated_key_gets_the_next_free_number() {
        let all = ["a", "a#2", "a", "a", "b", "a#2", "a#4", "a"];
        let wanted = ["a", "a#2", "a#3", "a#4", "b", "a#2#2", "a#4#2", "a#5"];
        assert_eq!(keys(RepeatedKeys::Number, &all), wanted.map(|key| Some(key.to_owned())));
    }

    #[test]
    fn first_or_last_document_of_a_key_is_used() {
        let some = |keys: &[&str]| {
            keys.iter().map(|key| (*key != "-").then(|| (*key).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(keys(RepeatedKeys::First, &["a", "b", "a", "a"]), some(&["a", "b", "-", "-"]));
        assert_eq!(keys(RepeatedKeys::Last, &["a", "b", "a", "a"]), some(&["-", "b", "-", "a"]));
        assert_eq!(keys(RepeatedKeys::Any, &["a", "a"]), some(&["a", "a"]));
        let mut seen = SeenKeys::new(RepeatedKeys::Error, &MemoryBudget::unlimited()).unwrap();
        let mut next = || seen.next(&mut b"a".to_vec()).unwrap();
        assert_eq!([next(), next()], [KeyDecision::Taken, KeyDecision::Refused]);
    }

    #[test]
    fn added_numbers_are_removed_from_keys() {
        for (key, root) in [
            ("a", "a"),
            ("a#2", "a"),
            ("a#2#17", "a"),
            ("a#", "a#"),
            ("a#x", "a#x"),
            ("a#b#3", "a#b"),
            ("#2", "#2"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(key.as_bytes()), root.as_bytes(), "{key}");
        }
    }
}
