//! The family *one-permutation-filled*: one hash divides the shingles into bins, and each bin gives one minimum.
//!
//! This is one-permutation hashing (Li, Owen and Zhang, 2012) with one change: an empty bin is filled with the minimum of a
//! separate hash function. For a shingle hash x and t bins,
//!
//! ```text
//! bin(x)     = ((x >> 32) * t) >> 32
//! value(x)   = x & 0x7fffffff
//! signature[j] = min { value(x)   : x in the set, bin(x) = j }    if there is such an x
//!              = min { fill(x, j) : x in the set }                otherwise
//!
//! fill(x, j): on 32-bit words, wrapping,
//!   y = (low(x) ^ key[j]) * 0x85ebca6b;   y ^= y >> 15
//!   y = (y ^ high(x)) * 0xc2b2ae35;       y ^= y >> 16
//!   0x80000000 | y >> 1                   with key[j] = the low 32 bits of mix(0xa4093822299f31d0 + j);
//!                                    mix is that of `shingle`
//! ```
//!
//! **Why this is unbiased.** Component j is the minimum under one order of *all* shingles: first the shingles of bin j,
//! ordered by value, then all others, ordered by `fill(x, j)`. The top bit separates the two groups. The order does not
//! depend on the set. So two sets agree in component j if and only if the least element of their union is in both, which has
//! probability J. The usual alternative takes the minima of neighbouring bins (rotation, "densification"). It makes
//! components depend on each other: the variance for short documents increases several times, and equal features of
//! neighbouring minima are no longer rare.
//!
//! Departure from the paper: elements are represented by 31-bit values, so different elements may tie, with a probability of
//! about n / 2^31 for n shingles in a bin. Shingle hashes are already mixed and seeded, so bins and values are taken
//! directly from their bits.
//!
//! Takes one pass over the shingles, and one more pass for every 32 empty bins. n shingles leave about t * exp(-n / t) bins
//! empty. Repeated shingles do not change the result.

use crate::hash::mix;

/// The top bit, which is 1 in the values of filled bins and 0 in the values of occupied bins.
const FILLED: u32 = 1 << 31;

/// Marks an empty bin. The value of an occupied bin is always less.
const EMPTY: u32 = u32::MAX;

/// The seed of the keys of [`fill`]: the third 64-bit word of the fractional part of pi.
const KEYS: u64 = 0xa409_3822_299f_31d0;

/// Multipliers of [`fill`], from the 32-bit finalizer of Appleby's `MurmurHash3`.
const FILL: [u32; 2] = [0x85eb_ca6b, 0xc2b2_ae35];

/// Maximum number of empty bins that are filled in one pass over the shingles. The minima of 32 bins fit in registers.
const LANES: usize = 32;

/// Computes the minima of the family, with one key for each bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OnePermutation {
    keys: Vec<u32>,
}

impl OnePermutation {
    pub(super) fn new(minima: usize) -> Self {
        Self { keys: (0..minima as u64).map(|bin| mix(KEYS.wrapping_add(bin)) as u32).collect() }
    }

    pub(super) fn minima(&self) -> usize {
        self.keys.len()
    }

    /// Replaces `signature` with the minima of `hashes`, which must not be empty.
    #[inline(always)]
    pub(super) fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        signature.clear();
        signature.resize(self.keys.len(), EMPTY);
        let bins = self.keys.len() as u64;
        for &hash in hashes {
            if let Some(minimum) = signature.get_mut((((hash >> 32) * bins) >> 32) as usize) {
                *minimum = (*minimum).min(hash as u32 & !FILLED);
            }
        }
        let mut empty = EmptyBins { bins: [0; LANES], keys: [0; LANES], count: 0 };
        for bin in 0..signature.len() {
            if signature[bin] == EMPTY {
                empty.bins[empty.count] = bin;
                empty.keys[empty.count] = self.keys[bin];
                empty.count += 1;
                if empty.count == LANES {
                    empty.fill::<LANES>(hashes, signature);
                }
            }
        }
        match empty.count {
            0 => {}
            1..=8 => empty.fill::<8>(hashes, signature),
            9..=16 => empty.fill::<16>(hashes, signature),
            _ => empty.fill::<LANES>(hashes, signature),
        }
    }
}

/// The empty bins that will be filled in the next pass.
struct EmptyBins {
    bins: [usize; LANES],
    keys: [u32; LANES],
    count: usize,
}

impl EmptyBins {
    /// Fills up to `N` of the collected bins and removes them from the collection. The outer loop runs over the hashes
    /// and the inner loop over the bins, without branches and in whole vectors, because short documents have few hashes
    /// and many empty bins.
    #[inline(always)]
    fn fill<const N: usize>(&mut self, hashes: &[u64], signature: &mut [u32]) {
        let Some(keys) = self.keys.first_chunk::<N>() else { return };
        let mut minima = [i32::MAX; N];
        for &hash in hashes {
            for (minimum, &key) in minima.iter_mut().zip(keys) {
                *minimum = (*minimum).min(fill(hash, key));
            }
        }
        for (&bin, &minimum) in self.bins[..self.count].iter().zip(&minima) {
            signature[bin] = FILLED | minimum.cast_unsigned();
        }
        self.count = 0;
    }
}

/// Returns the value of a hash in an empty bin, without the top bit. The type is signed, because some vector
/// instruction sets can compare only signed numbers. The value is never negative.
#[inline(always)]
fn fill(hash: u64, key: u32) -> i32 {
    let mut y = (hash as u32 ^ key).wrapping_mul(FILL[0]);
    y ^= y >> 15;
    y = (y ^ (hash >> 32) as u32).wrapping_mul(FILL[1]);
    y ^= y >> 16;
    (y >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::MinHasher;
    use super::*;

    fn hashes(n: u64, salt: u64) -> Vec<u64> {
        (0..n).map(|i| mix(mix(salt) ^ i)).collect()
    }

    fn signature(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let mut signature = vec![1];
        MinHasher::new(minima).signature(hashes, &mut signature);
        signature
    }

    /// Computes the signature by the definition at the top of the module: each component is the least hash under its
    /// own order.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let keys: Vec<u32> = (0..minima as u64).map(|j| mix(KEYS + j) as u32).collect();
        let rank = |x: u64, j: usize| {
            let bin = (u128::from(x >> 32) * minima as u128) >> 32;
            if bin == j as u128 { x as u32 & 0x7fff_ffff } else { FILLED | fill(x, keys[j]).cast_unsigned() }
        };
        (0..minima).filter_map(|j| hashes.iter().map(|&x| rank(x, j)).min()).collect()
    }

    #[test]
    fn each_component_is_a_minimum_under_one_order() {
        for minima in [1, 2, 3, 7, 84, 120, 128, 200] {
            for n in [0, 1, 2, 5, 20, 100, 1000] {
                let set = hashes(n, 1);
                assert_eq!(signature(minima, &set), naive(minima, &set), "{n} hashes, {minima} minima");
            }
        }
    }

    #[test]
    fn order_and_repetitions_do_not_matter() {
        let set = hashes(30, 2);
        let mut shuffled: Vec<u64> = set.iter().rev().chain(&set).copied().collect();
        shuffled.rotate_left(7);
        assert_eq!(signature(84, &shuffled), signature(84, &set));
    }

    #[test]
    fn filled_bins_never_equal_occupied_bins() {
        let one = signature(84, &hashes(1, 3));
        assert_eq!(one.iter().filter(|&&minimum| minimum & FILLED == 0).count(), 1);
        assert_eq!(signature(1, &[u64::MAX]), [0x7fff_ffff]);
    }

    #[test]
    fn signature_of_a_union_is_the_minimum_of_both_signatures() {
        // The top bit is set in filled bins and clear in occupied bins, so the value of an occupied bin is always less.
        let (a, b) = (hashes(20, 4), hashes(35, 5));
        let union: Vec<u64> = a.iter().chain(&b).copied().collect();
        let min: Vec<u32> =
            signature(84, &a).into_iter().zip(signature(84, &b)).map(|(a, b)| a.min(b)).collect();
        assert_eq!(signature(84, &union), min);
    }
}
