//! Tokens to shingles: one 64-bit hash for each run of w tokens.
//!
//! Shingling is Broder's (*On the resemblance and containment of documents*, 1997, section 2): a document is
//! the set of its runs of w tokens. A document of fewer than w tokens, but at least one, is a single shingle
//! of them all; one without tokens has no shingle.
//!
//! Departures: Broder fingerprints shingles with Rabin's polynomials over the bytes. Here a token is hashed
//! once, in a few instructions, and a shingle's hash is made from the hashes of its tokens, so that its cost
//! does not depend on the length of words. All arithmetic is on 64-bit words, wrapping.
//!
//! **Keys.** `key[i] = mix(seed ^ PI[i])`, where `mix` makes every bit depend on every other:
//!
//! ```text
//! x ^= x >> 30;  x *= 0xbf58476d1ce4e5b9;  x ^= x >> 27;  x *= 0x94d049bb133111eb;  x ^= x >> 31
//! ```
//!
//! `PI` is `[0x243f6a8885a308d3, 0x13198a2e03707344]`, and `COUNT` further down is `0x9e3779b97f4a7c15`:
//! digits of pi and of the golden ratio.
//!
//! **Token.** `fold(a, b)` is the low half of the 128-bit product `a * b`, xored with its high half. A token
//! of n bytes is cut into pieces of 16, the last of 1 to 16 bytes, padded with zeros; `lo` and `hi` are the
//! two little-endian halves of a piece. Starting from `state = key[0]`,
//!
//! ```text
//! state = fold(state ^ lo, key[1] ^ hi)           for every piece but the last
//! hash  = fold(state ^ lo, key[1] ^ hi ^ n)       for the last
//! ```
//!
//! Most words are one piece: two loads and one multiplication.
//!
//! **Shingle.** The token hashes `h[0] .. h[n-1]` are joined by a cyclic polynomial (Cohen, *Recursive
//! hashing functions for n-grams*, 1997), which can be rolled or evaluated in parallel lanes at will, and
//! finished so that all its bits depend on all others:
//!
//! ```text
//! shingle = mix(rotl(h[0], n-1) ^ rotl(h[1], n-2) ^ .. ^ h[n-1] ^ n * COUNT)
//! ```
//!
//! The polynomials live modulo x^64 + 1 = (x + 1)^64; one of degree w - 1 has at most w - 1 factors x + 1.
//! So, were token hashes random, two different shingles would collide with a probability of at most
//! 2^-(65 - w), reached by such as `a b a b` and `b a b a`: 2^-60 for w = 5 and 2^-49 for w = 16. `mix` is a
//! bijection and adds no collisions.

use crate::params::Shingling;

use super::token::tokens;

/// The first 128 bits of the fraction of pi: numbers with nothing up their sleeve.
const PI: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// Sets shingles of n tokens apart from those of another n; the fraction of the golden ratio, made odd.
const COUNT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every bit of the result depends on every bit of `x`; a bijection.
///
/// Shifts and multipliers are Stafford's variant 13 of the finalizer of `MurmurHash3`, as in Steele, Lea and
/// Flood, *Fast splittable pseudorandom number generators*, 2014: only low halves of products, which vector
/// units have.
#[inline]
pub(super) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Turns texts into shingles of one width, hashed with one seed.
///
/// ```
/// use twindex::sketch::Shingler;
///
/// let shingler = Shingler::new(&twindex::params::Shingling::words(4, 0));
/// let (mut scratch, mut shingles) = (Vec::new(), Vec::new());
/// shingler.occurrences("a rose is a rose is a rose", &mut scratch, &mut shingles);
/// assert_eq!(shingles.len(), 5);
/// shingler.distinct("a rose is a rose is a rose", &mut scratch, &mut shingles);
/// assert_eq!(shingles.len(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shingler {
    width: usize,
    keys: [u64; 2],
}

impl Shingler {
    /// A shingler for `shingling`; a width of 0 counts as 1.
    #[must_use]
    pub fn new(shingling: &Shingling) -> Self {
        Self { width: usize::from(shingling.width.max(1)), keys: PI.map(|pi| mix(shingling.seed ^ pi)) }
    }

    /// Tokens in a shingle.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Replaces `shingles` by the hashes of the shingles of `text`, every occurrence, in order of the text.
    ///
    /// Linear time; `shingles` needs room for one hash a token, and `scratch` is as for [`tokens`].
    pub fn occurrences(&self, text: &str, scratch: &mut Vec<u8>, shingles: &mut Vec<u64>) {
        shingles.clear();
        tokens(text, scratch, |token| shingles.push(self.token(token)));
        self.join(shingles);
    }

    /// Replaces `shingles` by the document as Broder defines it: the set of its shingles, ascending. Exact
    /// resemblance is computed on this, see [`jaccard`](super::estimate::jaccard).
    pub fn distinct(&self, text: &str, scratch: &mut Vec<u8>, shingles: &mut Vec<u64>) {
        self.occurrences(text, scratch, shingles);
        shingles.sort_unstable();
        shingles.dedup();
    }

    /// The hash of one token.
    #[must_use]
    #[inline]
    pub fn token(&self, token: &[u8]) -> u64 {
        let mut state = self.keys[0];
        let mut rest = token;
        while rest.len() > 16 {
            let (piece, tail) = rest.split_at(16);
            let (lo, hi) = halves(piece);
            state = fold(state ^ lo, self.keys[1] ^ hi);
            rest = tail;
        }
        let (lo, hi) = halves(rest);
        fold(state ^ lo, self.keys[1] ^ hi ^ token.len() as u64)
    }

    /// Token hashes to shingle hashes, in place: shingle i needs no token hash before the i-th.
    fn join(&self, hashes: &mut Vec<u64>) {
        let width = self.width.min(hashes.len());
        if width == 0 {
            return;
        }
        let count = COUNT.wrapping_mul(width as u64);
        let leaves = width as u32; // how far a token hash is rotated when it leaves; checked: at most 255
        let mut joined = hashes[..width - 1].iter().fold(0, |joined: u64, hash| joined.rotate_left(1) ^ hash);
        let shingles = hashes.len() - width + 1;
        for i in 0..shingles {
            joined = joined.rotate_left(1) ^ hashes[i + width - 1];
            let leaving = hashes[i];
            hashes[i] = mix(joined ^ count);
            joined ^= leaving.rotate_left(leaves - 1);
        }
        hashes.truncate(shingles);
    }
}

/// The bytes of a piece of at most 16, padded with zeros, as two little-endian numbers.
///
/// Short pieces are read by loads that overlap: where they do, they bring the same bits, so or-ing is right.
#[inline]
fn halves(piece: &[u8]) -> (u64, u64) {
    let load8 = |at: usize| u64::from_le_bytes(piece[at..at + 8].try_into().expect("8 bytes"));
    let load4 = |at: usize| u64::from(u32::from_le_bytes(piece[at..at + 4].try_into().expect("4 bytes")));
    match piece.len() {
        0 => (0, 0),
        n @ 1..4 => {
            let (middle, last) = (n / 2, n - 1);
            let byte = |at: usize| u64::from(piece[at]) << (8 * at);
            (byte(0) | byte(middle) | byte(last), 0)
        }
        n @ 4..8 => (load4(0) | load4(n - 4) << (8 * (n - 4)), 0),
        8 => (load8(0), 0),
        n => (load8(0), load8(n - 8) >> (8 * (16 - n))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingler(width: u8) -> Shingler {
        Shingler::new(&Shingling { width, seed: 0 })
    }

    fn occurrences(width: u8, text: &str) -> Vec<u64> {
        let mut shingles = vec![7; 3];
        shingler(width).occurrences(text, &mut Vec::new(), &mut shingles);
        shingles
    }

    fn distinct(width: u8, text: &str) -> Vec<u64> {
        let mut shingles = Vec::new();
        shingler(width).distinct(text, &mut Vec::new(), &mut shingles);
        shingles
    }

    /// The module's definition, word by word.
    fn naive(shingler: &Shingler, text: &str) -> Vec<u64> {
        let mut hashes = Vec::new();
        tokens(text, &mut Vec::new(), |token| {
            let (mut state, mut hash) = (shingler.keys[0], 0);
            let pieces: Vec<_> = token.chunks(16).collect();
            for (i, piece) in pieces.iter().enumerate() {
                let mut padded = [0; 16];
                padded[..piece.len()].copy_from_slice(piece);
                let whole = u128::from_le_bytes(padded);
                let (lo, hi) = (whole as u64, (whole >> 64) as u64);
                if i + 1 < pieces.len() {
                    state = fold(state ^ lo, shingler.keys[1] ^ hi);
                } else {
                    hash = fold(state ^ lo, shingler.keys[1] ^ hi ^ token.len() as u64);
                }
            }
            hashes.push(hash);
        });
        let n = shingler.width.min(hashes.len());
        if n == 0 {
            return Vec::new();
        }
        let joined = |window: &[u64]| {
            (0..n).fold(COUNT.wrapping_mul(n as u64), |x, i| x ^ window[i].rotate_left((n - 1 - i) as u32))
        };
        hashes.windows(n).map(|window| mix(joined(window))).collect()
    }

    #[test]
    fn a_rose_is_a_rose_is_a_rose_has_three_shingles_of_four() {
        let text = "a rose is a rose is a rose";
        let found = occurrences(4, text);
        assert_eq!(found.len(), 5);
        assert_eq!((found[0], found[1]), (found[3], found[4]));
        assert_eq!(distinct(4, text).len(), 3);
    }

    #[test]
    fn a_short_document_is_one_shingle_and_an_empty_one_none() {
        assert_eq!(occurrences(5, "one two three").len(), 1);
        assert_eq!(occurrences(5, "one two three four five").len(), 1);
        assert_eq!(occurrences(5, "one two three four five six").len(), 2);
        assert_eq!(occurrences(1, "one").len(), 1);
        assert_eq!(occurrences(5, " ... "), []);
        // What it has is not a prefix of anything longer, and depends on order.
        assert_ne!(occurrences(5, "one two"), occurrences(5, "one two one"));
        assert_ne!(occurrences(5, "one two"), occurrences(5, "two one"));
        // Fewer tokens than w: w does not matter.
        assert_eq!(occurrences(5, "one two"), occurrences(9, "one two"));
    }

    #[test]
    fn only_tokens_matter() {
        assert_eq!(occurrences(3, "Red, green -- BLUE; red!"), occurrences(3, "red green blue\nred"));
    }

    #[test]
    fn the_rolled_hash_of_overlapping_loads_is_the_definition() {
        let letters: String = ('a'..='z').cycle().take(100).collect();
        let words: Vec<&str> = (1..70).map(|n| &letters[n % 26..][..n]).collect();
        let text = words.join(" ") + " Ünïcödé łódź 東京 ที่นี่";
        for (width, seed) in [(1, 0), (2, 1), (5, 0), (16, u64::MAX), (100, 3), (255, 9)] {
            let shingler = Shingler::new(&Shingling { width, seed });
            let mut found = Vec::new();
            shingler.occurrences(&text, &mut Vec::new(), &mut found);
            assert_eq!(found, naive(&shingler, &text), "width {width}, seed {seed}");
        }
    }

    #[test]
    fn tokens_that_differ_in_one_byte_or_in_length_have_different_hashes() {
        let hash = |token: &[u8]| shingler(1).token(token);
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
    fn another_seed_gives_other_shingles() {
        let mut other = Vec::new();
        Shingler::new(&Shingling { width: 2, seed: 1 }).occurrences("a b c", &mut Vec::new(), &mut other);
        assert!(occurrences(2, "a b c").iter().all(|shingle| !other.contains(shingle)));
    }
}
