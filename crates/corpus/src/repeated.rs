//! What is done about a key that comes again.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// What is done about a document whose key an earlier one of the same run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedKeys {
    /// It has a number behind its key: the second document with the key `K` has `K#2`, or the next number that is free.
    Number,
    /// It is passed over, and counted.
    First,
    /// Those before it are passed over, and counted. Inputs are read twice.
    Last,
    /// It is an error.
    Error,
    /// It is taken as it is: whoever takes documents decides, a job with an error, an index by what came last.
    #[default]
    Any,
}

impl RepeatedKeys {
    /// Where nothing is passed over.
    pub(crate) fn or_any(self) -> Self {
        if self == Self::Number { self } else { Self::Any }
    }

    /// Where the keys are known to be without repetition, or the first counts.
    pub(crate) fn or_first(self) -> Self {
        if self == Self::Number { self } else { Self::First }
    }
}

/// Keys of documents, in the order of the input.
///
/// No key is held, only hashes: 10 to 20 bytes a document for [`RepeatedKeys::Number`], where two keys of one hash of 64
/// bits cost nothing but a number that need not be, and twice as much where a document is passed over, for which two keys
/// must have one hash of 128 bits.
#[derive(Debug)]
pub(crate) enum SeenKeys {
    Number {
        seen: HashSet<u64, ahash::RandomState>,
        next: HashMap<u64, u64, ahash::RandomState>,
    },
    First(HashSet<u128, ahash::RandomState>),
    Error(HashSet<u128, ahash::RandomState>),
    /// Of each key, how many documents with it are still to come.
    Last(HashMap<u128, u64, ahash::RandomState>),
    /// Whoever takes the documents knows what has come.
    Any,
}

/// What becomes of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Taken,
    /// Its key has a number now.
    Numbered,
    PassedOver,
    Refused,
}

impl SeenKeys {
    /// Nothing yet. For [`RepeatedKeys::Last`] all keys are to be [announced](Self::announce) first.
    pub(crate) fn new(repeated: RepeatedKeys) -> Self {
        match repeated {
            RepeatedKeys::Number => Self::Number { seen: HashSet::default(), next: HashMap::default() },
            RepeatedKeys::First => Self::First(HashSet::default()),
            RepeatedKeys::Last => Self::Last(HashMap::default()),
            RepeatedKeys::Error => Self::Error(HashSet::default()),
            RepeatedKeys::Any => Self::Any,
        }
    }

    /// Says that a document with this key will come.
    pub(crate) fn announce(&mut self, key: &[u8]) {
        if let Self::Last(coming) = self {
            *coming.entry(xxh3_128(key)).or_insert(0) += 1;
        }
    }

    /// Decides about the next document, and may put a number behind its key.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>) -> Fate {
        match self {
            Self::Any => Fate::Taken,
            Self::First(seen) => {
                if seen.insert(xxh3_128(key)) {
                    Fate::Taken
                } else {
                    Fate::PassedOver
                }
            }
            Self::Error(seen) => {
                if seen.insert(xxh3_128(key)) {
                    Fate::Taken
                } else {
                    Fate::Refused
                }
            }
            Self::Last(coming) => match coming.get_mut(&xxh3_128(key)) {
                Some(rest @ 2..) => {
                    *rest -= 1;
                    Fate::PassedOver
                }
                _ => Fate::Taken,
            },
            Self::Number { seen, next } => {
                let hash = xxh3_64(key);
                if seen.insert(hash) {
                    return Fate::Taken;
                }
                let next = next.entry(hash).or_insert(2);
                let length = key.len();
                loop {
                    key.truncate(length);
                    key.push(b'#');
                    key.extend_from_slice(itoa::Buffer::new().format(*next).as_bytes());
                    *next += 1;
                    if seen.insert(xxh3_64(key)) {
                        return Fate::Numbered;
                    }
                }
            }
        }
    }
}

/// A key without the numbers that [`SeenKeys::next`] may have put behind it: two keys of which one can become the other have
/// the same.
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

    fn keys(repeated: RepeatedKeys, keys: &[&str]) -> Vec<Option<String>> {
        let mut seen = SeenKeys::new(repeated);
        for key in keys {
            seen.announce(key.as_bytes());
        }
        let next = |key: &&str| {
            let mut key = key.as_bytes().to_vec();
            let fate = seen.next(&mut key);
            (fate != Fate::PassedOver).then(|| String::from_utf8(key).unwrap())
        };
        keys.iter().map(next).collect()
    }

    #[test]
    fn a_repeated_key_has_the_next_number_that_is_free() {
        let all = ["a", "a#2", "a", "a", "b", "a#2", "a#4", "a"];
        let wanted = ["a", "a#2", "a#3", "a#4", "b", "a#2#2", "a#4#2", "a#5"];
        assert_eq!(keys(RepeatedKeys::Number, &all), wanted.map(|key| Some(key.to_owned())));
    }

    #[test]
    fn the_first_or_the_last_of_a_key_is_taken() {
        let some = |keys: &[&str]| {
            keys.iter().map(|key| (*key != "-").then(|| (*key).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(keys(RepeatedKeys::First, &["a", "b", "a", "a"]), some(&["a", "b", "-", "-"]));
        assert_eq!(keys(RepeatedKeys::Last, &["a", "b", "a", "a"]), some(&["-", "b", "-", "a"]));
        assert_eq!(keys(RepeatedKeys::Any, &["a", "a"]), some(&["a", "a"]));
        let mut seen = SeenKeys::new(RepeatedKeys::Error);
        let mut next = || seen.next(&mut b"a".to_vec());
        assert_eq!([next(), next()], [Fate::Taken, Fate::Refused]);
    }

    #[test]
    fn a_key_and_its_numbers_are_of_one_family() {
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
