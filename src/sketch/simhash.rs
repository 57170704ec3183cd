//! Shingles to a 64-bit fingerprint whose Hamming distance tells how far two documents are apart.
//!
//! Charikar, *Similarity estimation techniques from rounding algorithms*, STOC 2002, section 3: every shingle
//! votes on every bit of the fingerprint, for 1 where its hash has a 1 and for 0 elsewhere, and the majority
//! decides. Two documents at angle a differ in a bit with probability a / pi.
//!
//! Departures: the hyperplanes are the bits of one hash, as in Manku, Jain and Das Sarma, WWW 2007; a tie
//! gives 0.
//!
//! Unweighted votes are counted bit-sliced: a *plane* holds one binary digit of all 64 counters. Adding a
//! hash is a carry that ripples through the planes; a tree of full adders (Harley and Seal's way of counting
//! bits, in Warren, *Hacker's Delight*) takes eight hashes at a time so that the upper planes are touched
//! once in eight.

use std::fmt;

/// A 64-bit simhash.
///
/// ```
/// use twindex::sketch::Fingerprint;
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
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The fingerprint of a document whose shingles have these hashes, one vote each; a hash that occurs twice
/// votes twice. Without any hash every bit is a tie, hence 0: keep documents without shingles away.
///
/// Linear time, no allocation; the order of the hashes does not matter.
#[must_use]
pub fn simhash(hashes: &[u64]) -> Fingerprint {
    let mut ones = Counters::default();
    let (eights, rest) = hashes.as_chunks();
    for &eight in eights {
        ones.add_eight(eight);
    }
    for &hash in rest {
        ones.add(0, hash);
    }
    // Votes for 1 minus votes for 0 is twice the ones minus all: positive if the ones are more than half,
    // rounded down.
    Fingerprint(ones.above(hashes.len() as u64 / 2))
}

/// As [`simhash`], each hash with a weight of its own (fixed-point, any sign: only ratios matter).
///
/// Sums are exact: they are wide enough for more items than a machine can hold.
#[must_use]
pub fn weighted(items: impl IntoIterator<Item = (u64, i64)>) -> Fingerprint {
    let mut votes = [0_i128; 64];
    for (hash, weight) in items {
        for (bit, vote) in votes.iter_mut().enumerate() {
            let sign = i128::from(hash >> bit & 1) * 2 - 1;
            *vote += sign * i128::from(weight);
        }
    }
    let bits = votes.iter().enumerate();
    Fingerprint(bits.fold(0, |fingerprint, (bit, &vote)| fingerprint | u64::from(vote > 0) << bit))
}

/// 64 counters, bit-sliced: bit j of plane i is the digit 2^i of the j-th.
struct Counters {
    planes: [u64; 64],
    /// Planes from here on are zero.
    used: usize,
}

impl Default for Counters {
    fn default() -> Self {
        Self { planes: [0; 64], used: 0 }
    }
}

impl Counters {
    /// Adds 2^plane to the counters whose bit is set in `carry`.
    #[inline]
    fn add(&mut self, mut plane: usize, mut carry: u64) {
        while carry != 0 {
            (self.planes[plane], carry) = (self.planes[plane] ^ carry, self.planes[plane] & carry);
            plane += 1;
        }
        self.used = self.used.max(plane);
    }

    /// Adds eight hashes: the ones, twos and fours join their planes, and what is left counts eight each.
    #[inline]
    fn add_eight(&mut self, [a, b, c, d, e, f, g, h]: [u64; 8]) {
        let [ones, twos, fours, ..] = self.planes;
        let (ones, twos_a) = full_add(ones, a, b);
        let (ones, twos_b) = full_add(ones, c, d);
        let (ones, twos_c) = full_add(ones, e, f);
        let (ones, twos_d) = full_add(ones, g, h);
        let (twos, fours_a) = full_add(twos, twos_a, twos_b);
        let (twos, fours_b) = full_add(twos, twos_c, twos_d);
        let (fours, eights) = full_add(fours, fours_a, fours_b);
        (self.planes[0], self.planes[1], self.planes[2]) = (ones, twos, fours);
        self.used = self.used.max(3);
        self.add(3, eights);
    }

    /// The counters above `limit`, as a mask: all 64 compared at once, from the highest digit down.
    fn above(&self, limit: u64) -> u64 {
        let (mut above, mut equal) = (0, u64::MAX);
        let digits = self.used.max((u64::BITS - limit.leading_zeros()) as usize);
        for plane in (0..digits).rev() {
            let digit = self.planes[plane];
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

/// Adds three digits in each of 64 columns: the digit of the sum and the carry.
#[inline]
fn full_add(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, a & b | half & c)
}

#[cfg(test)]
mod tests {
    use super::super::shingle::mix;
    use super::*;

    /// The definition.
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
        for n in (0..200).chain([1000, 4095, 4096, 4097]) {
            let hashes: Vec<u64> = (0..n).map(|i| mix(i * 3 + n)).collect();
            assert_eq!(simhash(&hashes), naive(&hashes), "{n} hashes");
            let once = hashes.iter().map(|&hash| (hash, 1));
            assert_eq!(weighted(once), naive(&hashes), "{n} hashes, weights of 1");
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
        assert_eq!(weighted([(u64::MAX, 5), (0, 5)]).0, 0);
    }

    #[test]
    fn a_weight_counts_as_that_many_occurrences() {
        let hashes = [mix(1), mix(2), mix(3)];
        let repeated: Vec<u64> = [0, 0, 0, 1, 1, 2, 2].iter().map(|&i: &usize| hashes[i]).collect();
        assert_eq!(weighted([(hashes[0], 3), (hashes[1], 2), (hashes[2], 2)]), simhash(&repeated));
        assert_eq!(weighted([(0b01, -3), (0b10, 2)]).0 & 0b11, 0b10);
        assert_eq!(weighted([(1, i64::MAX), (1, i64::MAX), (2, i64::MIN)]).0, 1);
    }

    #[test]
    fn order_does_not_matter() {
        let mut hashes: Vec<u64> = (0..77).map(mix).collect();
        let forward = simhash(&hashes);
        hashes.reverse();
        assert_eq!(simhash(&hashes), forward);
    }
}
