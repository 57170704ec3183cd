//! Represents a document by hashes of its units, from which the hash of any run of units is computed in constant time.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The modulus of run hashes, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// Returns `a * b` modulo the prime.
#[inline]
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduced((product as u64 & PRIME) + (product >> 61) as u64)
}

/// Reduces a number below twice the prime modulo the prime.
#[inline]
fn reduced(number: u64) -> u64 {
    if number >= PRIME { number - PRIME } else { number }
}

/// Mixes the bits of a run hash, so that all bits are uniform (the finaliser of `SplitMix64`).
#[inline]
pub(crate) fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Whether runs of words are compared by their tokens or by their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exact {
    /// Runs are equal if their tokens are equal.
    #[default]
    Tokens,
    /// Runs are equal if the bytes of the text are equal, from the start of the first token to the end of the last token.
    Bytes,
}

/// A keyed hash function for runs of units.
///
/// A unit is hashed to two numbers below the prime 2^61 - 1, which are coefficients of two polynomials modulo the
/// prime. The hash of a run consists of the values of both polynomials, each at a point that is derived from the seed.
/// Different runs of `n` units have equal hashes with a probability of about (n / 2^61)^2 (Karp and Rabin, *Efficient
/// randomized pattern-matching algorithms*, 1987).
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    seed: u64,
    bases: [u64; 2],
}

impl Hasher {
    /// Creates the hash function with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Each base is above 2^32, so that runs of few units do not have small hashes.
        let base = |salt: u64| mixed(seed ^ salt) % (PRIME - (1 << 33)) + (1 << 32);
        Self { seed, bases: [base(0x7061_7373_6167_6573), base(0x7477_696E_6465_7831)] }
    }

    /// Hashes a unit, or the bytes between two units, to two numbers below the prime.
    #[inline]
    fn unit(&self, bytes: &[u8]) -> [u64; 2] {
        let hash = xxh3_128_with_seed(bytes, self.seed);
        [reduced(hash as u64 & PRIME), reduced((hash >> 64) as u64 & PRIME)]
    }

    /// Returns `base^length` modulo the prime for both bases. The hash of a run of `length` coefficients is the hash of
    /// the prefix up to the run's end, minus this power times the hash of the prefix up to the run's start.
    pub(crate) fn powers(&self, length: usize) -> [u64; 2] {
        self.bases.map(|base| {
            let (mut power, mut square, mut left) = (1, base, length);
            while left > 0 {
                if left & 1 == 1 {
                    power = times(power, square);
                }
                square = times(square, square);
                left >>= 1;
            }
            power
        })
    }
}

/// The hashes of the units of a document, and the byte ranges of the units in the text. Takes 24 bytes per unit, or 40
/// if runs are compared by bytes. The memory is reused for the next document.
#[derive(Clone, Debug, Default)]
pub struct Hashed {
    /// The hashes of all prefixes of the document, beginning with the empty prefix. If runs are compared by bytes, the
    /// gaps between units are hashed like units.
    before: Vec<[u64; 2]>,
    places: Vec<(u32, u32)>,
    /// Number of words in each unit. Empty if units are single words.
    words: Vec<u32>,
    is_bytes: bool,
}

impl Hashed {
    /// Removes all units, and sets whether runs of the next document are compared by tokens or by bytes.
    pub fn clear(&mut self, exact: Exact) {
        self.before.clear();
        self.before.push([0, 0]);
        self.places.clear();
        self.words.clear();
        self.is_bytes = exact == Exact::Bytes;
    }

    /// Adds a token of `text` with its byte range. Tokens must be added in the order of their starts.
    ///
    /// Offsets must fit in 32 bits; the caller must refuse texts of 4 GiB or more.
    #[inline]
    pub fn push_token(&mut self, hasher: &Hasher, text: &str, place: Range<usize>, token: &[u8]) {
        if self.is_bytes {
            let last = self.places.last().map(|&(_, end)| end as usize);
            if let Some(end) = last {
                // Several tokens may come from one character and have the same byte range; their gap is then empty.
                self.push_number(
                    hasher,
                    hasher.unit(text.as_bytes().get(end..place.start).unwrap_or_default()),
                );
            }
            self.push_number(hasher, hasher.unit(&text.as_bytes()[place.clone()]));
        } else {
            self.push_number(hasher, hasher.unit(token));
        }
        self.places.push((place.start as u32, place.end as u32));
    }

    /// Adds a unit of several words with its byte range. Units are equal if their `identity` bytes are equal.
    pub fn push_unit(&mut self, hasher: &Hasher, place: Range<usize>, identity: &[u8], words: u32) {
        if self.is_bytes && !self.places.is_empty() {
            self.push_number(hasher, [0, 0]);
        }
        self.push_number(hasher, hasher.unit(identity));
        self.places.push((place.start as u32, place.end as u32));
        self.words.push(words);
    }

    #[inline]
    fn push_number(&mut self, hasher: &Hasher, number: [u64; 2]) {
        let &[a, b] = self.before.last().unwrap_or(&[0, 0]);
        let [x, y] = number;
        let [base_a, base_b] = hasher.bases;
        self.before.push([reduced(times(a, base_a) + x), reduced(times(b, base_b) + y)]);
    }

    /// Returns the number of units.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the total number of words in all units.
    #[must_use]
    pub fn words_of_all(&self) -> u32 {
        self.words(0, self.len())
    }

    /// Returns whether the document has no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a 32-bit hash of a unit. The document must be hashed by tokens, not by bytes.
    #[inline]
    pub(crate) fn unit_hash(&self, hasher: &Hasher, unit: usize) -> u32 {
        let [base, _] = hasher.bases;
        let (before, all) = (self.before[unit][0], self.before[unit + 1][0]);
        (mixed(reduced(all + PRIME - times(before, base)) ^ 0x756E_6974) >> 32) as u32
    }

    /// Returns the byte range in the text of a run of `width` units from `first` on.
    ///
    /// # Panics
    ///
    /// If the run ends past the last unit of the document.
    #[must_use]
    pub fn place(&self, first: usize, width: usize) -> Range<u32> {
        self.places[first].0..self.places[first + width - 1].1
    }

    /// Returns the number of words in a run of `width` units from `first` on.
    ///
    /// # Panics
    ///
    /// Same as [`place`](Self::place).
    #[must_use]
    pub fn words(&self, first: usize, width: usize) -> u32 {
        match self.words.get(first..first + width) {
            Some(words) => words.iter().fold(0, |sum, &words| sum.saturating_add(words)),
            None => width as u32,
        }
    }

    /// Returns whether units may have several words.
    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns the number of coefficients for a run of `width` units: one per unit and, if bytes are compared, one per
    /// gap between units.
    #[inline]
    pub(crate) fn numbers(&self, width: usize) -> usize {
        if self.is_bytes { 2 * width - 1 } else { width }
    }

    #[inline]
    fn ends(&self, first: usize, width: usize) -> ([u64; 2], [u64; 2]) {
        let start = if self.is_bytes { 2 * first } else { first };
        (self.before[start], self.before[start + self.numbers(width)])
    }

    /// Returns a 64-bit hash of a run of `width` units. `powers` is the result of [`Hasher::powers`] for
    /// [`numbers(width)`](Self::numbers).
    #[inline]
    pub(crate) fn fingerprint(&self, first: usize, width: usize, powers: [u64; 2]) -> u64 {
        let ([before, _], [all, _]) = self.ends(first, width);
        mixed(reduced(all + PRIME - times(before, powers[0])))
    }

    /// Returns the hash of a run of units as two numbers of 61 bits. `powers` is as in
    /// [`fingerprint`](Self::fingerprint).
    #[inline]
    pub(crate) fn hash(&self, first: usize, width: usize, powers: [u64; 2]) -> [u64; 2] {
        let (before, all) = self.ends(first, width);
        [0, 1].map(|side| reduced(all[side] + PRIME - times(before[side], powers[side])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(hasher: &Hasher, text: &str, exact: Exact) -> Hashed {
        let mut hashed = Hashed::default();
        hashed.clear(exact);
        twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
            hashed.push_token(hasher, text, place, token);
        });
        hashed
    }

    #[test]
    fn run_hashes_are_equal_exactly_if_tokens_are_equal() {
        let hasher = Hasher::new(7);
        let text = "a rose, is a Rose: is a rose; a  rose is";
        let words = ["a", "rose", "is", "a", "rose", "is", "a", "rose", "a", "rose", "is"];
        let tokens = hashed(&hasher, text, Exact::Tokens);
        let bytes = hashed(&hasher, text, Exact::Bytes);
        assert_eq!(tokens.len(), words.len());
        for width in 1..=4 {
            let powers = hasher.powers(width);
            let of_bytes = hasher.powers(bytes.numbers(width));
            for a in 0..=words.len() - width {
                for b in 0..=words.len() - width {
                    let same = words[a..a + width] == words[b..b + width];
                    assert_eq!(tokens.hash(a, width, powers) == tokens.hash(b, width, powers), same);
                    let of = |first| tokens.fingerprint(first, width, powers);
                    assert_eq!(of(a) == of(b), same);
                    let shown = |first: usize| {
                        let place = bytes.place(first, width);
                        &text[place.start as usize..place.end as usize]
                    };
                    let of = |first| bytes.hash(first, width, of_bytes);
                    assert_eq!(of(a) == of(b), shown(a) == shown(b), "{:?} {:?}", shown(a), shown(b));
                }
            }
        }
        let other = Hasher::new(8);
        let there = hashed(&other, text, Exact::Tokens).hash(0, 3, other.powers(3));
        assert_ne!(there, tokens.hash(0, 3, hasher.powers(3)), "another seed has other hashes");
    }
}
