//! Computes a 64-bit fingerprint from shingles. The Hamming distance of two fingerprints measures how much the documents
//! differ.
//!
//! The method is that of Charikar, *Similarity estimation techniques from rounding algorithms*, STOC 2002, section 3.
//! Every shingle votes on every bit of the fingerprint, for 1 if that bit of its hash is 1, otherwise for 0. The
//! majority determines the bit. If the angle between two documents is a, each bit differs with probability a / pi.
//!
//! Departures from the paper: the bits of one hash take the place of random hyperplanes, as in Manku, Jain and Das
//! Sarma, WWW 2007, and a tie gives 0.
//!
//! A fingerprint of more bits ([`simhash_bits`](crate::SketchParams::simhash_bits)) has one such fingerprint per word: word
//! 0, the highest, of the hashes h, and word i of `mix(h + i * 0x9e3779b97f4a7c15)`, the number i of `SplitMix64` from h, so
//! that the votes on different words are independent. If all bits are 0, the lowest is set, because files
//! store a code of zeros for a document without tokens.
//!
//! Unweighted votes are counted in bit-sliced form: a *plane* holds one binary digit of all 64 counters. Adding
//! a hash ripples a carry through the planes. A tree of full adders (Harley and Seal's bit count, in Warren, *Hacker's
//! Delight*) adds eight hashes at a time, so that the upper planes are updated only once for eight hashes.

use std::fmt;

use twindex_kernel::Level;

use crate::hash::{COUNT, mix};

/// A 64-bit simhash.
///
/// ```
/// use twindex_sketch::Fingerprint;
///
/// assert_eq!(Fingerprint(0b1011).distance(Fingerprint(0b0001)), 2);
/// assert_eq!(Fingerprint(0xf00).to_string(), "0000000000000f00");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Returns the Hamming distance, 0 to 64.
    #[must_use]
    #[inline]
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

impl fmt::Display for Fingerprint {
    /// Formats the fingerprint as sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Returns the fingerprint of a document whose shingles have these hashes. Each hash has one vote; a hash that occurs twice
/// has two votes. Without hashes every bit is a tie, so the result is 0. Callers should exclude documents without shingles.
///
/// Takes linear time and allocates nothing. The order of the hashes does not matter.
#[must_use]
pub fn simhash(hashes: &[u64]) -> Fingerprint {
    simhash_at(Level::chosen(), hashes)
}

/// Like [`simhash`], restricted to the instructions of `level`, for tests and measurements. The result stays the same.
#[must_use]
pub fn simhash_at(level: Level, hashes: &[u64]) -> Fingerprint {
    level.run(
        #[inline(always)]
        || votes(hashes),
    )
}

/// Number of lanes of a vector. The hashes are divided among the lanes, and each lane has its own 64 counters.
const LANES: usize = 8;

/// Minimum number of hashes for which lanes are used. With fewer, adding up the counters of the lanes takes longer.
const LANES_FROM: usize = 2 * 8 * LANES;

/// Maximum number of hashes that the planes of a lane can count.
const LANES_UP_TO: usize = 1 << 31;

/// Returns the hash with which a shingle votes on the bits of a word of a fingerprint. Word 0 is the highest.
#[inline(always)]
pub(crate) fn of_word(hash: u64, word: usize) -> u64 {
    if word == 0 { hash } else { mix(hash.wrapping_add(COUNT.wrapping_mul(word as u64))) }
}

#[inline(always)]
fn votes(hashes: &[u64]) -> Fingerprint {
    let mut ones = Counters::<1, 64>::new();
    for part in hashes.chunks(LANES_UP_TO) {
        let mut rest = part;
        if part.len() >= LANES_FROM {
            let mut lanes = Counters::<LANES, 32>::new();
            let (vectors, after) = part.as_chunks::<LANES>();
            let (eights, vectors) = vectors.as_chunks::<8>();
            for eight in eights {
                lanes.add_eight(eight);
            }
            for &vector in vectors {
                lanes.add(0, vector);
            }
            for plane in 0..lanes.used {
                for carry in lanes.planes[plane] {
                    ones.add(plane, [carry]);
                }
            }
            rest = after;
        }
        let (eights, rest) = rest.as_chunks::<8>();
        for eight in eights {
            ones.add_eight(&eight.map(|hash| [hash]));
        }
        for &hash in rest {
            ones.add(0, [hash]);
        }
    }
    // With n hashes and v votes for 1, a bit is 1 if v - (n - v) > 0. This is equivalent to v > floor(n / 2).
    Fingerprint(ones.above(hashes.len() as u64 / 2))
}

/// `N` lanes of 64 counters, bit-sliced: in plane i, bit j of lane l is the binary digit of value 2^i of counter j of lane
/// l. All counters must stay below 2^`P`.
struct Counters<const N: usize, const P: usize> {
    planes: [[u64; N]; P],
    /// Number of planes in use. All later planes are zero.
    used: usize,
}

impl<const N: usize, const P: usize> Counters<N, P> {
    #[inline(always)]
    fn new() -> Self {
        Self { planes: [[0; N]; P], used: 0 }
    }

    /// Adds 2^plane to the counters whose bits are set in `carry`.
    #[inline(always)]
    fn add(&mut self, mut plane: usize, mut carry: [u64; N]) {
        while carry != [0; N] {
            for (digits, carry) in self.planes[plane].iter_mut().zip(&mut carry) {
                (*digits, *carry) = (*digits ^ *carry, *digits & *carry);
            }
            plane += 1;
        }
        self.used = self.used.max(plane);
    }

    /// Adds eight hashes to each lane: adds the ones, twos and fours in the lowest three planes, and ripples the carry of
    /// value eight through the planes above.
    #[inline(always)]
    fn add_eight(&mut self, [a, b, c, d, e, f, g, h]: &[[u64; N]; 8]) {
        let [ones, twos, fours] = &mut self.planes[..3] else { return }; // unreachable: P is greater than 3
        let twos_a = full_add(ones, a, b);
        let twos_b = full_add(ones, c, d);
        let fours_a = full_add(twos, &twos_a, &twos_b);
        let twos_a = full_add(ones, e, f);
        let twos_b = full_add(ones, g, h);
        let fours_b = full_add(twos, &twos_a, &twos_b);
        let eights = full_add(fours, &fours_a, &fours_b);
        self.used = self.used.max(3);
        self.add(3, eights);
    }
}

impl Counters<1, 64> {
    /// Returns the mask of the counters that are greater than `limit`. Compares all 64 counters at once, from the highest
    /// digit to the lowest.
    #[inline(always)]
    fn above(&self, limit: u64) -> u64 {
        let (mut above, mut equal) = (0, u64::MAX);
        let digits = self.used.max((u64::BITS - limit.leading_zeros()) as usize);
        for plane in (0..digits).rev() {
            let [digit] = self.planes[plane];
            if limit >> plane & 1 == 0 {
                above |= equal & digit;
                equal &= !digit;
            } else {
                equal &= digit;
            }
        }
        above
    }
}

/// A full adder for each bit of each lane: replaces `sum` with `sum ^ a ^ b`, and returns the carries.
#[inline(always)]
fn full_add<const N: usize>(sum: &mut [u64; N], a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut carry = [0; N];
    for lane in 0..N {
        let half = a[lane] ^ b[lane];
        carry[lane] = a[lane] & b[lane] | half & sum[lane];
        sum[lane] ^= half;
    }
    carry
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;

    /// Computes the fingerprint from the definition.
    fn naive(hashes: &[u64]) -> Fingerprint {
        let mut fingerprint = 0;
        for bit in 0..64 {
            let votes: i64 = hashes.iter().map(|hash| if hash >> bit & 1 == 1 { 1 } else { -1 }).sum();
            fingerprint |= u64::from(votes > 0) << bit;
        }
        Fingerprint(fingerprint)
    }

    #[test]
    fn bit_sliced_votes_equal_the_definition_for_every_length() {
        for n in (0..300).chain([1000, 4095, 4096, 4097]) {
            let hashes: Vec<u64> = (0..n).map(|i| mix(i * 3 + n)).collect();
            for level in Level::tested() {
                assert_eq!(simhash_at(level, &hashes), naive(&hashes), "{n} hashes, {level}");
            }
        }
    }

    #[test]
    fn repeated_hash_is_its_own_fingerprint() {
        for n in [1, 2, 7, 8, 9, 300] {
            assert_eq!(simhash(&vec![0xdead_beef_0123_4567; n]).0, 0xdead_beef_0123_4567);
        }
    }

    #[test]
    fn tie_of_votes_gives_a_zero_bit() {
        assert_eq!(simhash(&[0xff, 0x0f]).0, 0x0f);
        assert_eq!(simhash(&[u64::MAX, 0]).0, 0);
        assert_eq!(simhash(&[]).0, 0);
    }

    #[test]
    fn order_does_not_matter() {
        let mut hashes: Vec<u64> = (0..77).map(mix).collect();
        let forward = simhash(&hashes);
        hashes.reverse();
        assert_eq!(simhash(&hashes), forward);
    }
}
