//! Computes a 64-bit fingerprint from weighted votes.
//!
//! Follows Charikar, *Similarity estimation techniques from rounding algorithms*, STOC 2002, section 3, which defines
//! the fingerprint of a vector. Here the coordinates are hashes, and the values are fixed-point weights. A hash votes
//! with its weight on every bit: for 1 if that bit of the hash is 1, otherwise for 0. Bit i of the fingerprint is 1 if
//! the votes for 1 outweigh those for 0:
//!
//! ```text
//! bit i = 1   if  sum of weight * (2 * (bit i of hash) - 1)  >  0,   else 0: a tie gives 0
//! ```
//!
//! A negative weight is the same as a vote of its magnitude for the complement of the hash. So all weights can be
//! replaced by their magnitudes. For each bit, the weights of the hashes in which the bit is 1 are added, and the sum
//! is compared with half of the total. Sums are exact: items are processed [`ITEMS_MAX`] at a time, the
//! [kernel](twindex_kernel::weighted) adds their weights in 32 or 64 bits, and these sums are added in 128 bits.

use super::simhash::Fingerprint;
use twindex_kernel::weighted::{ITEMS_MAX, WIDE_MAX, ones, ones_wide};

/// Returns the fingerprint of weighted hashes. Unlike in [`simhash`](super::simhash()), each hash has its own weight. A
/// weight is a fixed-point number of any sign; only ratios of weights matter.
///
/// Sums are exact: no number of items that fits in memory can make them overflow. Takes linear time and allocates
/// nothing. Runs of items whose weights are below 2^16 in magnitude take one or a few nanoseconds per item, other items
/// ten times as long.
///
/// ```
/// use twindex_sketch::weighted;
///
/// // On the bits where the first two items agree, they outweigh the third item if its weight is 3, but not if it is 5.
/// assert_eq!(weighted([(0b0110, 2), (0b0101, 2), (0b1000, 3)]).0, 0b0100);
/// assert_eq!(weighted([(0b0110, 2), (0b0101, 2), (0b1000, 5)]).0, 0b1000);
/// ```
#[must_use]
pub fn weighted(items: impl IntoIterator<Item = (u64, i64)>) -> Fingerprint {
    let mut votes = Votes::default();
    let (mut hashes, mut weights) = ([0; ITEMS_MAX], [0; ITEMS_MAX]);
    let mut items = items.into_iter();
    loop {
        let (mut count, mut max) = (0, 0);
        for (hash, weight) in items.by_ref().take(ITEMS_MAX) {
            hashes[count] = if weight < 0 { !hash } else { hash };
            weights[count] = weight.unsigned_abs();
            max |= weights[count];
            count += 1;
        }
        let (hashes, weights) = (&hashes[..count], &weights[..count]);
        if u16::try_from(max).is_ok() {
            let mut narrow = [0; ITEMS_MAX];
            for (narrow, &weight) in narrow.iter_mut().zip(weights) {
                *narrow = weight as u16;
            }
            votes.add(hashes, &narrow[..count]);
        } else if max <= WIDE_MAX {
            votes.add_wide(hashes, weights);
        } else {
            for (&hash, &weight) in hashes.iter().zip(weights) {
                votes.add_one(hash, weight.into());
            }
        }
        if count < ITEMS_MAX {
            return votes.fingerprint();
        }
    }
}

/// The sum of all weights and, for each bit, the sum of the weights of the hashes in which the bit is 1.
#[derive(Clone, Debug)]
pub(super) struct Votes {
    ones: [u128; 64],
    total: u128,
}

impl Default for Votes {
    fn default() -> Self {
        Self { ones: [0; 64], total: 0 }
    }
}

impl Votes {
    /// Adds at most [`ITEMS_MAX`] hashes with their weights.
    pub(super) fn add(&mut self, hashes: &[u64], weights: &[u16]) {
        let mut sums = [0; 64];
        ones(hashes, weights, &mut sums);
        self.total += u128::from(weights.iter().map(|&weight| u64::from(weight)).sum::<u64>());
        for (all, sum) in self.ones.iter_mut().zip(sums) {
            *all += u128::from(sum);
        }
    }

    /// Like [`add`](Self::add), with weights of at most [`WIDE_MAX`].
    fn add_wide(&mut self, hashes: &[u64], weights: &[u64]) {
        let mut sums = [0; 64];
        ones_wide(hashes, weights, &mut sums);
        self.total += u128::from(weights.iter().sum::<u64>());
        for (all, sum) in self.ones.iter_mut().zip(sums) {
            *all += u128::from(sum);
        }
    }

    /// Adds one hash with its weight, which must be below 2^80.
    pub(super) fn add_one(&mut self, hash: u64, weight: u128) {
        self.total += weight;
        for (bit, sum) in self.ones.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 { weight } else { 0 };
        }
    }

    /// Returns the fingerprint. With a total weight of n and a weight of v for 1, a bit is 1 if v - (n - v) > 0. This
    /// is equivalent to v > floor(n / 2).
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let half = self.total / 2;
        let bits = self.ones.iter().enumerate();
        Fingerprint(bits.fold(0, |fingerprint, (bit, &ones)| fingerprint | u64::from(ones > half) << bit))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hash::mix;
    use super::super::simhash::simhash;
    use super::*;

    /// Computes the fingerprint from the definition.
    fn naive(items: &[(u64, i64)]) -> Fingerprint {
        let mut fingerprint = 0;
        for bit in 0..64 {
            let vote =
                |&(hash, weight): &(u64, i64)| i128::from(weight) * if hash >> bit & 1 == 1 { 1 } else { -1 };
            fingerprint |= u64::from(items.iter().map(vote).sum::<i128>() > 0) << bit;
        }
        Fingerprint(fingerprint)
    }

    proptest! {
        #[test]
        fn votes_of_any_weights_equal_the_definition(
            items in proptest::collection::vec((any::<u64>(), any::<i64>(), 0_u32..64), 0..600), min in 0_u32..64,
        ) {
            let items: Vec<_> = items.into_iter().map(|(hash, w, shift)| (hash, w >> shift.max(min))).collect();
            prop_assert_eq!(weighted(items.iter().copied()), naive(&items));
        }
    }

    #[test]
    fn sums_of_the_greatest_weights_are_exact() {
        for weight in
            [i64::MIN, i64::MIN + 1, i64::MAX, 1 << 55, (1 << 56) - 1, 1 << 56, 65_535, 65_536, -65_536]
        {
            for n in [1, 255, 256, 257, 600] {
                let items = vec![(0xff00, weight); n];
                assert_eq!(weighted(items.iter().copied()), naive(&items), "{n} times {weight}");
                let tied: Vec<_> = items.iter().flat_map(|&(hash, w)| [(hash, w), (!hash, w)]).collect();
                assert_eq!(weighted(tied).0, 0);
            }
        }
    }

    #[test]
    fn weights_of_one_give_the_unweighted_simhash() {
        for n in (0..200).chain([1000, 4095, 4096, 4097]) {
            let hashes: Vec<u64> = (0..n).map(|i| mix(i * 3 + n)).collect();
            assert_eq!(weighted(hashes.iter().map(|&hash| (hash, 1))), simhash(&hashes), "{n} hashes");
        }
    }

    #[test]
    fn weight_n_equals_n_occurrences() {
        let hashes = [mix(1), mix(2), mix(3)];
        let repeated: Vec<u64> = [0, 0, 0, 1, 1, 2, 2].iter().map(|&i: &usize| hashes[i]).collect();
        assert_eq!(weighted([(hashes[0], 3), (hashes[1], 2), (hashes[2], 2)]), simhash(&repeated));
        assert_eq!(weighted([(0b01, -3), (0b10, 2)]).0 & 0b11, 0b10);
        assert_eq!(weighted([(1, i64::MAX), (1, i64::MAX), (2, i64::MIN)]).0, 1);
    }

    #[test]
    fn tie_of_votes_gives_a_zero_bit() {
        assert_eq!(weighted([(u64::MAX, 5), (0, 5)]).0, 0);
        assert_eq!(weighted([]).0, 0);
    }
}
