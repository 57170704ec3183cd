//! The family *multiply-shift*: the upper half of `a x + b` modulo 2^64.
//!
//! The family is from Dietzfelbinger, Hagerup, Katajainen and Penttonen, *A reliable randomized algorithm for the
//! closest-pair problem*, 1997; the addend is from Dietzfelbinger, 1996. For a shingle hash x,
//!
//! ```text
//! h(x, j)      = ((a[j] * x + b[j]) mod 2^64) >> 32
//! a[j]         = mix(MULTIPLY_SHIFT + 2 j), with its lowest bit set
//! b[j]         = mix(MULTIPLY_SHIFT + 2 j + 1)
//! signature[j] = min { h(x, j) : x in the set }
//! ```
//!
//! The constant `MULTIPLY_SHIFT` is `0xbe5466cf34e90c6c`, and `mix` is the function of [`shingle`](crate::shingle).
//! Sums of 64 bits wrap.
//!
//! **Why not the upper half of a 128-bit product.** In `(a * x) >> 64`, the coefficient a only scales x: the result
//! grows with x, so every component has its minimum at the same element. Then t minima carry no more information than
//! one, and the variance is t times the variance of independent minima. Here the product is taken modulo 2^64, so it
//! does not grow with x (`tests/it/sketch_accuracy.rs` tests both).
//!
//! **Which bits are kept.** A signature has all 32 bits of each minimum. The least of n values has about log2(n)
//! leading zeros; its low b bits are nearly random for sets of up to 2^(32 - b) elements. Two different elements tie
//! for the minimum with a probability of about n / 2^32.
//!
//! Time: 3 multiplications of 32 bits for each shingle and minimum. Memory: 16 bytes per minimum.

use std::sync::Arc;

use crate::hash::mix;

/// The seed of the coefficients: the sixth 64-bit word of the fractional part of pi.
const MULTIPLY_SHIFT: u64 = 0xbe54_66cf_34e9_0c6c;

/// Number of components computed together. At 20 bytes each, they fit in the first-level cache.
const BLOCK: usize = 512;

/// The coefficients of t transformations; each coefficient a is split into two halves of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MultiplyShift {
    a_low: Arc<[u32]>,
    a_high: Arc<[u32]>,
    b: Arc<[u64]>,
}

impl MultiplyShift {
    pub(crate) fn new(minima: usize) -> Self {
        let coefficients = || (0..minima as u64).map(coefficients);
        Self {
            a_low: coefficients().map(|(a, _)| a as u32).collect(),
            a_high: coefficients().map(|(a, _)| (a >> 32) as u32).collect(),
            b: coefficients().map(|(_, b)| b).collect(),
        }
    }

    pub(crate) fn minima(&self) -> usize {
        self.b.len()
    }

    /// Replaces `signature` with the minima of `hashes`, which must not be empty.
    #[inline(always)]
    pub(crate) fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        signature.clear();
        signature.resize(self.minima(), u32::MAX);
        let blocks = self.a_low.chunks(BLOCK).zip(self.a_high.chunks(BLOCK)).zip(self.b.chunks(BLOCK));
        for (minima, ((a_low, a_high), b)) in signature.chunks_mut(BLOCK).zip(blocks) {
            lower(minima, hashes, a_low, a_high, b);
        }
    }
}

/// Updates `minima` with the values of `hashes`; the inner loop runs over the components.
///
/// Only the upper half of `a x + b` is needed. Of the four partial products of 32-bit halves, the lowest is computed in
/// full, the two middle ones without their high halves, and the highest not at all.
#[inline(always)]
fn lower(minima: &mut [u32], hashes: &[u64], a_low: &[u32], a_high: &[u32], b: &[u64]) {
    for &hash in hashes {
        let (x0, x1) = (hash as u32, (hash >> 32) as u32);
        for (((minimum, &a0), &a1), &b) in minima.iter_mut().zip(a_low).zip(a_high).zip(b) {
            let low = u64::from(a0).wrapping_mul(x0.into()).wrapping_add(b);
            let middle = a0.wrapping_mul(x1).wrapping_add(a1.wrapping_mul(x0));
            *minimum = (*minimum).min(middle.wrapping_add((low >> 32) as u32));
        }
    }
}

/// Returns the coefficients a and b of component j.
fn coefficients(j: u64) -> (u64, u64) {
    let drawn = |i: u64| mix(MULTIPLY_SHIFT.wrapping_add(i));
    (drawn(2 * j) | 1, drawn(2 * j + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the minima by the definition at the top of the module.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let of = |x: u64, (a, b): (u64, u64)| (a.wrapping_mul(x).wrapping_add(b) >> 32) as u32;
        let min = |j| hashes.iter().map(|&x| of(x, coefficients(j))).min();
        (0..minima as u64).filter_map(min).collect()
    }

    #[test]
    fn each_component_is_the_minimum_of_a_multiply_shift_hash() {
        let edges = [0, 1, u64::MAX, 1 << 32, (1 << 32) - 1, u64::MAX << 32, 1 << 63];
        let hashes: Vec<u64> = (0..500).map(mix).chain(edges).collect();
        let mut signature = vec![7; 3];
        for t in [1, 2, 7, 84, 200, 511, 512, 513, 4096] {
            let family = MultiplyShift::new(t);
            assert_eq!(family.minima(), t);
            let alone = edges.iter().map(std::slice::from_ref);
            for hashes in [&hashes[..], &hashes[10..30]].into_iter().chain(alone) {
                family.signature(hashes, &mut signature);
                assert_eq!(signature, naive(t, hashes), "{t} minima of {} hashes", hashes.len());
            }
        }
    }
}
