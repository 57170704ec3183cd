//! Keys of documents: `u64` numbers or byte strings.

use std::fmt;
use std::io::Write;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// The greatest length of a byte key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The maximum number of bytes of an invalid key that the error message shows, enough to identify the key.
const SHOWN_BYTES: usize = 80;

/// The kind of keys of an index, fixed at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// A `u64`, in numeric order; at most 8 bytes on disk.
    U64,
    /// 1 to 65,535 bytes, in bytewise order.
    Bytes,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U64 => "u64",
            Self::Bytes => "bytes",
        })
    }
}

/// A borrowed key, created from a `u64`, a `&str` or a `&[u8]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'a> {
    /// A key in an index with `u64` keys.
    U64(u64),
    /// A key in an index with byte keys: 1 to 65,535 bytes.
    Bytes(&'a [u8]),
}

impl Key<'_> {
    /// Returns an error for a key that an index with keys of this kind cannot store.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a key of another kind or an empty key, [`crate::Error::Limit`] for a key that is
    /// too long.
    pub fn check(&self, kind: KeyKind) -> Result<()> {
        match (self, kind) {
            (Self::U64(_), KeyKind::U64) => Ok(()),
            (Self::Bytes(bytes), KeyKind::Bytes) => match bytes.len() {
                0 => Err(Error::Invalid("a key is 1 to 65535 bytes long, this one is empty".into())),
                1..=KEY_BYTES_MAX => Ok(()),
                found => Err(Error::Limit {
                    what: "bytes of a key",
                    limit: KEY_BYTES_MAX as u64,
                    found: found as u64,
                }),
            },
            (Self::U64(key), KeyKind::Bytes) => {
                Err(Error::Invalid(format!("this index has byte keys; {key} was given as a number")))
            }
            (Self::Bytes(key), KeyKind::U64) => Err(Error::Invalid(format!(
                "this index has u64 keys; `{}`{} was given as bytes",
                String::from_utf8_lossy(&key[..key.len().min(SHOWN_BYTES)]).escape_debug(),
                if key.len() > SHOWN_BYTES { "..." } else { "" }
            ))),
        }
    }

    /// Returns a hash of the key; documents of equal priority are ordered by it. It is the xxh3-64 of the key's bytes
    /// or, for a `u64` key, of its decimal digits. `dedup --keep key-hash` uses the same order.
    #[must_use]
    pub fn priority_hash(&self) -> u64 {
        match self {
            Self::Bytes(key) => xxh3_64(key),
            Self::U64(key) => {
                let mut digits = [0; 20];
                let mut left = &mut digits[..];
                // A `u64` has at most 20 digits.
                let written = write!(left, "{key}").map_or(0, |()| 20 - left.len());
                xxh3_64(&digits[..written])
            }
        }
    }

    /// Copies the key to an owned key.
    #[must_use]
    pub fn to_buf(&self) -> KeyBuf {
        match self {
            Self::U64(key) => KeyBuf::U64(*key),
            Self::Bytes(key) => KeyBuf::Bytes((*key).into()),
        }
    }
}

impl From<u64> for Key<'_> {
    fn from(key: u64) -> Self {
        Self::U64(key)
    }
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(key: &'a str) -> Self {
        Self::Bytes(key.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(key: &'a [u8]) -> Self {
        Self::Bytes(key)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Key<'a> {
    fn from(key: &'a [u8; N]) -> Self {
        Self::Bytes(key)
    }
}

impl<'a> From<&'a String> for Key<'a> {
    fn from(key: &'a String) -> Self {
        Self::Bytes(key.as_bytes())
    }
}

impl<'a> From<&'a Vec<u8>> for Key<'a> {
    fn from(key: &'a Vec<u8>) -> Self {
        Self::Bytes(key)
    }
}

impl<'a> From<&'a KeyBuf> for Key<'a> {
    fn from(key: &'a KeyBuf) -> Self {
        key.as_key()
    }
}

/// An owned key. Keys are ordered as in an index: numbers by value, byte strings bytewise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyBuf {
    /// A key in an index with `u64` keys.
    U64(u64),
    /// A key in an index with byte keys.
    Bytes(Box<[u8]>),
}

impl KeyBuf {
    /// Borrows the key.
    #[must_use]
    pub fn as_key(&self) -> Key<'_> {
        match self {
            Self::U64(key) => Key::U64(*key),
            Self::Bytes(key) => Key::Bytes(key),
        }
    }

    /// Returns the number of a `u64` key, `None` for a byte key.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::U64(key) => Some(*key),
            Self::Bytes(_) => None,
        }
    }

    /// Returns the bytes of a byte key, `None` for a `u64` key.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::U64(_) => None,
            Self::Bytes(key) => Some(key),
        }
    }

    /// Returns the text of a byte key, `None` for a `u64` key or for bytes that are not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }
}

/// Writes numbers in decimal, and bytes as text in which invalid UTF-8 is replaced.
impl fmt::Display for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(key) => key.fmt(f),
            Self::Bytes(key) => String::from_utf8_lossy(key).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_hash_of_u64_key_hashes_its_decimal_digits() {
        for number in [0, 7, 10, u64::MAX] {
            let digits = number.to_string();
            assert_eq!(Key::U64(number).priority_hash(), xxh3_64(digits.as_bytes()));
            assert_eq!(Key::from(digits.as_str()).priority_hash(), xxh3_64(digits.as_bytes()));
        }
    }

    #[test]
    fn refusal_of_long_key_shows_its_first_80_bytes() {
        let refusal = |key: &[u8]| Key::Bytes(key).check(KeyKind::U64).unwrap_err().to_string();
        assert!(refusal(b"rose").contains("`rose` was"), "{}", refusal(b"rose"));
        assert!(refusal(&[b'a'; 80]).contains(&format!("`{}` was", "a".repeat(80))));
        assert!(refusal(&[b'a'; 81]).contains(&format!("`{}`... was", "a".repeat(80))));
        assert!(refusal(&vec![0xff; 65_535]).len() < 1000);
    }
}
