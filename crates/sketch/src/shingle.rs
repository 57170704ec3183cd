//! Computes shingles from tokens: one 64-bit hash for each sequence of w consecutive tokens.
//!
//! Shingling was introduced by Broder (*On the resemblance and containment of documents*, 1997, section 2): a document is
//! the set of its sequences of w consecutive tokens. A document of at least one but fewer than w tokens is a single shingle
//! of all its tokens. A document without tokens has no shingles.
//!
//! There are three hashes ([`ShingleHash`]). `rabin` is Broder's choice: Rabin's fingerprints, polynomials of the bytes of a
//! shingle. `rabin-karp` uses the polynomials modulo a prime of Karp and Rabin instead. The bytes of a shingle are those
//! from the start of its first token to the end of its last, with one space between two words. Its hash is
//!
//! ```text
//! mix(fingerprint of the byte 1 and the shingle's bytes)
//! ```
//!
//! where the fingerprint is that of [`rabin`](super::rabin) or [`rabin_karp`](super::rabin_karp), and `mix` is defined
//! below. Their collision probabilities have proven bounds. The following sections define `fast`, the default, which
//! departs from the paper. Each token is hashed once, in a few instructions, and the hash of a shingle is computed from
//! the hashes of its tokens. So the cost of a shingle hash does not depend on the length of the words. All arithmetic
//! is on 64-bit words and wraps around.
//!
//! **Keys.** `key[i] = mix(seed ^ PI[i])`, where every bit of `mix(x)` depends on every bit of `x`:
//!
//! ```text
//! x ^= x >> 30;  x *= 0xbf58476d1ce4e5b9;  x ^= x >> 27;  x *= 0x94d049bb133111eb;  x ^= x >> 31
//! ```
//!
//! `PI` is `[0x243f6a8885a308d3, 0x13198a2e03707344]`, and `COUNT` is `0x9e3779b97f4a7c15`: digits of pi and of the
//! golden ratio.
//!
//! **Token.** `fold(a, b)` is the low half of the 128-bit product `a * b`, xored with its high half. A token of n bytes is
//! divided into pieces of 16 bytes; the last piece has 1 to 16 bytes and is padded with zeros. `lo` and `hi` are the two
//! little-endian halves of a piece. Starting from `state = key[0]`,
//!
//! ```text
//! state = fold(state ^ lo, key[1] ^ hi)           for every piece but the last
//! hash  = fold(state ^ lo, key[1] ^ hi ^ n)       for the last
//! ```
//!
//! Most words are a single piece, which takes two loads and one multiplication.
//!
//! **Shingle.** The token hashes `h[0] .. h[n-1]` are combined by a cyclic polynomial (Cohen, *Recursive
//! hashing functions for n-grams*, 1997), which can be computed as a rolling hash or in parallel lanes, and then mixed
//! so that every bit depends on all others:
//!
//! ```text
//! shingle = mix(rotl(h[0], n-1) ^ rotl(h[1], n-2) ^ .. ^ h[n-1] ^ n * COUNT)
//! ```
//!
//! The polynomials are taken modulo x^64 + 1 = (x + 1)^64. A polynomial of degree w - 1 has at most w - 1 factors x + 1. So
//! if token hashes were random, two different shingles would collide with a probability of at most 2^-(65 - w): 2^-60 for w
//! = 5 and 2^-49 for w = 16. Shingles such as `a b a b` and `b a b a` reach this bound. `mix` is a bijection and adds no
//! collisions.

use crate::error::Result;
use crate::params::{ShingleHash, Shingling, Widths};
use twindex_kernel::Level;

use super::classic::rabin::Rabin;
use super::classic::rolling::{RabinKarpBytes, by_rabin, by_rabin_karp};
use super::cut::{Cutter, Units};
use super::hash::{Fast, join};
use super::words::Words;

/// Computes the shingles of texts.
///
/// ```
/// use twindex_sketch::{Buffers, Shingler};
///
/// let shingler = Shingler::new(&twindex_sketch::params::Shingling::words(4, 0))?;
/// let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
/// shingler.occurrences("a rose is a rose is a rose", &mut buffers, &mut shingles);
/// assert_eq!(shingles.len(), 5);
/// shingler.distinct("a rose is a rose is a rose", &mut buffers, &mut shingles);
/// assert_eq!(shingles.len(), 3);
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shingler {
    level: Level,
    cutter: Cutter,
    widths: Widths,
    hash: Hash,
}

#[derive(Clone, Debug)]
enum Hash {
    Fast(Fast),
    Rabin(Rabin),
    RabinKarp(RabinKarpBytes),
}

/// The scratch memory of a [`Shingler`], reused for each document.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    words: Words,
    units: Units,
    hashes: Vec<u64>,
    prefixes: Vec<[u64; 2]>,
    tokens: usize,
}

impl Buffers {
    /// Returns the number of tokens, including repetitions, of the last text that was shingled.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }
}

impl Shingler {
    /// Creates a shingler for `shingling`.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if this build has no Unicode tables for this shingling, or has tables of
    /// another version of Unicode.
    pub fn new(shingling: &Shingling) -> Result<Self> {
        let hash = match shingling.hash {
            ShingleHash::Fast => Hash::Fast(Fast::new(shingling.seed)),
            ShingleHash::Rabin => Hash::Rabin(Rabin::new(shingling.seed)),
            ShingleHash::RabinKarp => Hash::RabinKarp(RabinKarpBytes::new(shingling.seed)),
        };
        Ok(Self { level: Level::chosen(), cutter: Cutter::new(shingling)?, widths: shingling.widths, hash })
    }

    /// Returns the same shingler restricted to the instructions of `level`, for tests and measurements. The shingles
    /// stay the same.
    #[must_use]
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Replaces `shingles` with the shingle hashes of `text`: every occurrence, in text order. With several widths, the
    /// narrowest shingles come first.
    ///
    /// Takes linear time. `shingles` grows to one hash for each token and width.
    pub fn occurrences(&self, text: &str, buffers: &mut Buffers, shingles: &mut Vec<u64>) {
        shingles.clear();
        let Buffers { words, units, hashes, prefixes, tokens } = buffers;
        match (&self.hash, self.widths.single()) {
            (Hash::Fast(fast), Some(width)) if self.cutter.is_plain() => {
                words.hash(self.level, text, *fast, shingles);
                *tokens = shingles.len();
                self.join(shingles, 0, width);
            }
            (Hash::Fast(fast), _) => {
                hashes.clear();
                if self.cutter.is_plain() {
                    words.hash(self.level, text, *fast, hashes);
                } else {
                    self.cutter.cut(text, units);
                    hashes.extend(units.iter().map(|unit| fast.token(unit)));
                }
                *tokens = hashes.len();
                for width in self.widths.of_document(hashes.len()) {
                    let start = shingles.len();
                    shingles.extend_from_slice(hashes);
                    self.join(shingles, start, width);
                }
            }
            (Hash::Rabin(rabin), _) => {
                self.cutter.cut(text, units);
                *tokens = units.len();
                by_rabin(rabin, units, self.widths, prefixes, shingles);
            }
            (Hash::RabinKarp(hash), _) => {
                self.cutter.cut(text, units);
                *tokens = units.len();
                by_rabin_karp(hash, units, self.widths, prefixes, shingles);
            }
        }
    }

    /// Replaces the token hashes from `start` on with the hashes of shingles of `width` tokens.
    fn join(&self, hashes: &mut Vec<u64>, start: usize, width: usize) {
        let shingles = self.level.run(
            #[inline(always)]
            || join(&mut hashes[start..], width),
        );
        hashes.truncate(start + shingles);
    }

    /// Replaces `shingles` with the set of shingle hashes of the text, ascending: Broder's definition of a document.
    /// [`jaccard`](super::estimate::jaccard) computes the exact resemblance from these sets.
    pub fn distinct(&self, text: &str, buffers: &mut Buffers, shingles: &mut Vec<u64>) {
        self.occurrences(text, buffers, shingles);
        shingles.sort_unstable();
        shingles.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::super::token::tokens;
    use super::*;

    fn shingler(width: u8) -> Shingler {
        Shingler::new(&Shingling::words(width, 0)).unwrap()
    }

    fn occurrences(width: u8, text: &str) -> Vec<u64> {
        let mut shingles = vec![7; 3];
        shingler(width).occurrences(text, &mut Buffers::default(), &mut shingles);
        shingles
    }

    fn distinct(width: u8, text: &str) -> Vec<u64> {
        let mut shingles = Vec::new();
        shingler(width).distinct(text, &mut Buffers::default(), &mut shingles);
        shingles
    }

    /// Computes the hashes by a direct translation of the definition at the top of the module.
    fn naive(width: u8, seed: u64, text: &str) -> Vec<u64> {
        let keys = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344].map(|pi| mix(seed ^ pi));
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let mut hashes = Vec::new();
        tokens(text, &mut Vec::new(), |token| {
            let (mut state, mut hash) = (keys[0], 0);
            let pieces: Vec<_> = token.chunks(16).collect();
            for (i, piece) in pieces.iter().enumerate() {
                let mut padded = [0; 16];
                padded[..piece.len()].copy_from_slice(piece);
                let whole = u128::from_le_bytes(padded);
                let (lo, hi) = (whole as u64, (whole >> 64) as u64);
                if i + 1 < pieces.len() {
                    state = fold(state ^ lo, keys[1] ^ hi);
                } else {
                    hash = fold(state ^ lo, keys[1] ^ hi ^ token.len() as u64);
                }
            }
            hashes.push(hash);
        });
        let n = usize::from(width).min(hashes.len());
        if n == 0 {
            return Vec::new();
        }
        let joined = |window: &[u64]| {
            let count = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n as u64);
            (0..n).fold(count, |x, i| x ^ window[i].rotate_left((n - 1 - i) as u32))
        };
        hashes.windows(n).map(|window| mix(joined(window))).collect()
    }

    #[test]
    fn a_rose_is_a_rose_has_three_distinct_shingles() {
        let text = "a rose is a rose is a rose";
        let found = occurrences(4, text);
        assert_eq!(found.len(), 5);
        assert_eq!((found[0], found[1]), (found[3], found[4]));
        assert_eq!(distinct(4, text).len(), 3);
    }

    #[test]
    fn short_document_has_one_shingle_and_empty_document_none() {
        assert_eq!(occurrences(5, "one two three").len(), 1);
        assert_eq!(occurrences(5, "one two three four five").len(), 1);
        assert_eq!(occurrences(5, "one two three four five six").len(), 2);
        assert_eq!(occurrences(1, "one").len(), 1);
        assert_eq!(occurrences(5, " ... "), []);
        // The hash is not the hash of the first tokens of a longer text, and it depends on the order of tokens.
        assert_ne!(occurrences(5, "one two"), occurrences(5, "one two one"));
        assert_ne!(occurrences(5, "one two"), occurrences(5, "two one"));
        // If there are fewer than w tokens, the hash does not depend on w.
        assert_eq!(occurrences(5, "one two"), occurrences(9, "one two"));
    }

    #[test]
    fn tokens_are_counted_for_every_hash_and_width() {
        for hash in [ShingleHash::Fast, ShingleHash::Rabin, ShingleHash::RabinKarp] {
            for widths in [&[1][..], &[3], &[1, 5]] {
                let mut shingling = Shingling::words(1, 0);
                (shingling.hash, shingling.widths) = (hash, Widths::union(widths).unwrap());
                for tokens in [crate::params::Tokens::Words, crate::params::Tokens::WordsSymbols] {
                    let shingler = Shingler::new(&shingling.clone().with_tokens(tokens).unwrap()).unwrap();
                    let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
                    for (text, count) in [("a b a b c", 5), ("one two", 2), ("", 0), ("one", 1)] {
                        shingler.distinct(text, &mut buffers, &mut shingles);
                        assert_eq!(buffers.tokens(), count, "{hash} {widths:?} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn case_and_separators_do_not_change_shingles() {
        assert_eq!(occurrences(3, "Red, green -- BLUE; red!"), occurrences(3, "red green blue\nred"));
    }

    #[test]
    fn shingle_hashes_equal_the_definition() {
        let letters: String = ('a'..='z').cycle().take(100).collect();
        let words: Vec<&str> = (1..70).map(|n| &letters[n % 26..][..n]).collect();
        let text = words.join(" ") + " Ünïcödé łódź 東京 ที่นี่";
        for (width, seed) in [(1, 0), (2, 1), (5, 0), (16, u64::MAX), (3, 3), (4, 9)] {
            let shingler = Shingler::new(&Shingling::words(width, seed)).unwrap();
            let mut found = Vec::new();
            shingler.occurrences(&text, &mut Buffers::default(), &mut found);
            assert_eq!(found, naive(width, seed, &text), "width {width}, seed {seed}");
        }
    }

    #[test]
    fn similar_tokens_have_different_hashes() {
        let hash = |token: &[u8]| Fast::new(0).token(token);
        for n in 1..50 {
            let token = vec![b'a'; n];
            assert_ne!(hash(&token), hash(&vec![b'a'; n + 1]));
            for at in 0..n {
                let mut other = token.clone();
                other[at] = b'b';
                assert_ne!(hash(&token), hash(&other), "{n} bytes, byte {at}");
            }
        }
    }

    #[test]
    fn different_seed_gives_different_shingles() {
        let mut other = Vec::new();
        let shingler = Shingler::new(&Shingling::words(2, 1)).unwrap();
        shingler.occurrences("a b c", &mut Buffers::default(), &mut other);
        assert!(occurrences(2, "a b c").iter().all(|shingle| !other.contains(shingle)));
    }
}
