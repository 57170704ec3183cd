//! Fingerprints of 64 to 512 bits: simhashes, or perceptual hashes of images or sounds from other programs.

use std::fmt;

use crate::Fingerprint;

/// The numbers of bits of a fingerprint.
pub const CODE_WIDTHS: [usize; 6] = [64, 128, 192, 256, 384, 512];

/// A fingerprint of 64, 128, 192, 256, 384 or 512 bits.
///
/// ```
/// use twindex_sketch::Code;
///
/// let [a, b] = [[0; 32], [3; 32]].map(|bytes| Code::of_bytes(&bytes).unwrap());
/// assert_eq!((a.bits(), a.distance(&b)), (256, 64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The bits, the highest first. Words past `count` are 0.
    words: [u64; Self::WORDS_MAX],
    count: u8,
}

impl Code {
    /// Maximum number of 64-bit words.
    pub const WORDS_MAX: usize = 8;

    /// Returns the fingerprint with these words, the highest first; `None` if their number is not that of a width.
    #[must_use]
    pub fn of_words(all: &[u64]) -> Option<Self> {
        let mut words = [0; Self::WORDS_MAX];
        words.get_mut(..all.len())?.copy_from_slice(all);
        CODE_WIDTHS.contains(&(64 * all.len())).then_some(Self { words, count: all.len() as u8 })
    }

    /// Returns the fingerprint with these bytes, the highest first; `None` if their number is not that of a width.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        Self::of_words(&words).filter(|_| rest.is_empty())
    }

    /// Returns the fingerprint whose words are computed by `word`, the highest first, as many as 64-bit words of `bits` bits,
    /// which must be a width. If the fingerprint has several words whose bits are all 0, the lowest bit is set.
    pub(crate) fn of_votes(bits: usize, word: impl FnMut(usize) -> Fingerprint) -> Self {
        let (count, mut words) = (bits / 64, [0; Self::WORDS_MAX]);
        for (to, Fingerprint(votes)) in words.iter_mut().zip((0..count).map(word)) {
            *to = votes;
        }
        let mut code = Self { words, count: count as u8 };
        if count > 1 && code.is_zero() {
            code.words[count - 1] = 1;
        }
        code
    }

    /// Returns whether all bits are 0. In an index of simhashes of more than 64 bits, such a code is that of a document
    /// without tokens, which is near no other.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.words == [0; Self::WORDS_MAX]
    }

    /// Returns the number of bits that are 1.
    #[must_use]
    pub fn count_ones(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the 64-bit words, the highest first.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words[..self.count.into()]
    }

    /// Returns the bytes, the highest first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Returns the number of bits in which two fingerprints of equal width differ.
    #[must_use]
    pub fn distance(&self, other: &Self) -> u32 {
        self.words().iter().zip(other.words()).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        64 * self.words().len()
    }
}

impl From<u64> for Code {
    fn from(number: u64) -> Self {
        let mut words = [0; Self::WORDS_MAX];
        words[0] = number;
        Self { words, count: 1 }
    }
}

impl From<Fingerprint> for Code {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0.into()
    }
}

/// Shows the hexadecimal digits.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().iter().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
