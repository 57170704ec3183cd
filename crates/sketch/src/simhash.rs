//! Computes a 64-bit fingerprint from shingles; the Hamming distance of two fingerprints measures how much the
//! documents differ.
//!
//! Charikar, *Similarity estimation techniques from rounding algorithms*, STOC 2002, section 3: every shingle
//! votes on every bit of the fingerprint, for 1 where its hash has a 1 and for 0 elsewhere, and the majority
//! decides. If the angle between two documents is a, each bit differs with probability a / pi.
//!
//! Departures: the hyperplanes are the bits of one hash, as in Manku, Jain and Das Sarma, WWW 2007; a tie
//! gives 0.
//!
//! Unweighted votes are counted bit-sliced: a *plane* holds one binary digit of all 64 counters. Adding a
//! hash is a carry that ripples through the planes. A tree of full adders (Harley and Seal's bit count, in Warren,
//! *Hacker's Delight*) adds eight hashes at a time, so that the upper planes are updated once in eight hashes.

use std::fmt;

use twindex_kernel::Level;

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
    /// The Hamming distance, 0 to 64.
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

/// The fingerprint of a document whose shingles have these hashes. Each hash has one vote; a hash that occurs twice has
/// two. Without hashes every bit is a tie, so the result is 0: exclude documents without shingles.
///
/// Linear time, no allocation; the order of the hashes does not matter.
#[must_use]
pub fn simhash(hashes: &[u64]) -> Fingerprint {
    simhash_at(Level::chosen(), hashes)
}

/// As [`simhash`], using the instructions of a level, for tests and measurements. The result is the same.
#[must_use]
pub fn simhash_at(level: Level, hashes: &[u64]) -> Fingerprint {
    level.run(
        #[inline(always)]
        || votes(hashes),
    )
}

/// Number of lanes, which count different hashes in counters of their own: one vector.
const LANES: usize = 8;

/// Minimum number of hashes for which lanes are worth the cost of adding them up in the end.
const LANES_FROM: usize = 2 * 8 * LANES;

/// Maximum number of hashes that the planes of a lane can count.
const LANES_UP_TO: usize = 1 << 31;

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
    // Votes for 1 minus votes for 0 equals twice the ones minus the total, so it is positive if the ones are more than
    // half the total, rounded down.
    Fingerprint(ones.above(hashes.len() as u64 / 2))
}

/// `N` lanes of 64 counters, bit-sliced: bit j of lane l of plane i is the digit 2^i of counter j of lane l. All counters
/// must stay below 2^`P`.
struct Counters<const N: usize, const P: usize> {
    planes: [[u64; N]; P],
    /// Number of planes in use; all later planes are zero.
    used: usize,
}

impl<const N: usize, const P: usize> Counters<N, P> {
    #[inline(always)]
    fn new() -> Self {
        Self { planes: [[0; N]; P], used: 0 }
    }

    /// Adds 2^plane to the counters whose bit is set in `carry`.
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

    /// Adds eight hashes to each lane: the ones, twos and fours are added in their planes, and the carry, of value eight,
    /// ripples through the planes above.
    #[inline(always)]
    fn add_eight(&mut self, [a, b, c, d, e, f, g, h]: &[[u64; N]; 8]) {
        let [ones, twos, fours] = &mut self.planes[..3] else { return }; // never: there are more than three planes
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
    /// The mask of the counters above `limit`: all 64 are compared at once, from the highest digit down.
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

/// Adds two digits to a third in each column, and returns the carries.
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

    /// The fingerprint by its definition.
    fn naive(hashes: &[u64]) -> Fingerprint {
        let mut fingerprint = 0;
        for bit in 0..64 {
            let votes: i64 = hashes.iter().map(|hash| if hash >> bit & 1 == 1 { 1 } else { -1 }).sum();
            fingerprint |= u64::from(votes > 0) << bit;
        }
        Fingerprint(fingerprint)
    }

    #[test]
    fn bit_sliced_votes_are_the_votes_for_every_length() {
        for n in (0..300).chain([1000, 4095, 4096, 4097]) {
            let hashes: Vec<u64> = (0..n).map(|i| mix(i * 3 + n)).collect();
            for level in Level::tested() {
                assert_eq!(simhash_at(level, &hashes), naive(&hashes), "{n} hashes, {level}");
            }
        }
    }

    #[test]
    fn one_hash_is_its_own_fingerprint_however_often_it_occurs() {
        for n in [1, 2, 7, 8, 9, 300] {
            assert_eq!(simhash(&vec![0xdead_beef_0123_4567; n]).0, 0xdead_beef_0123_4567);
        }
    }

    #[test]
    fn a_tie_gives_zero() {
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
