//! Weighted votes: for each of 64 bits, sums the weights of the hashes in which the bit is set.
//!
//! [`ones`] takes weights of 16 bits, such as those of an IDF table. The sum of a few such weights fits in 16 bits, so
//! 64 counters take 128 bytes: four AVX2 registers or two AVX-512 registers. With AVX-512, the hash itself is the mask
//! of an addition. Before a counter can overflow, the counters are added to sums of 32 bits. [`ones_wide`] takes
//! weights of up to [`WIDE_MAX`] and computes sums of 64 bits.
//!
//! Both have a reference implementation in plain Rust. [`Simd::ones`] for AVX-512 gives the same results.

use super::{Kernel, Level, Simd, vectorized};

/// Maximum number of hashes in one call. Up to this number, sums that start at 0 cannot overflow, even if all weights
/// are the maximum.
pub const ITEMS_MAX: usize = 256;
/// Maximum weight that [`ones_wide`] accepts.
pub const WIDE_MAX: u64 = u64::MAX / ITEMS_MAX as u64;

/// Adds to `sums[i]` the weights of the hashes in which bit i is set.
///
/// # Panics
/// Panics if there are more than [`ITEMS_MAX`] hashes, or if `hashes` and `weights` have different lengths.
#[inline]
pub fn ones(hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
    assert!(
        hashes.len() == weights.len() && hashes.len() <= ITEMS_MAX,
        "a weight for each of {ITEMS_MAX} hashes"
    );
    Level::chosen().dispatch(OnesKernel { hashes, weights, sums });
}

/// The kernel that calls [`Simd::ones`].
struct OnesKernel<'a> {
    hashes: &'a [u64],
    weights: &'a [u16],
    sums: &'a mut [u32; 64],
}

impl Kernel for OnesKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        simd.ones(self.hashes, self.weights, self.sums);
    }
}

/// Returns how many of these weights can be added before a 16-bit counter could overflow.
#[inline(always)]
fn period(weights: &[u16]) -> usize {
    let max = weights.iter().copied().fold(1, u16::max);
    usize::from(u16::MAX / max)
}

/// The reference implementation of [`Simd::ones`].
#[inline(always)]
pub(super) fn ones_portable(hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
    let period = period(weights);
    for (hashes, weights) in hashes.chunks(period).zip(weights.chunks(period)) {
        let mut few = [0_u16; 64];
        for (&hash, &weight) in hashes.iter().zip(weights) {
            for (part, few) in few.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let bits = (hash >> (16 * part)) as u16;
                for (bit, sum) in few.iter_mut().enumerate() {
                    // Does not overflow: at most `period` weights are added.
                    *sum = sum.wrapping_add(if bits & 1 << bit == 0 { 0 } else { weight });
                }
            }
        }
        for (sum, few) in sums.iter_mut().zip(few) {
            *sum = sum.wrapping_add(few.into());
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn ones_avx512(hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_castsi512_si256, _mm512_cvtepu16_epi32, _mm512_extracti64x4_epi64,
        _mm512_mask_add_epi16, _mm512_set1_epi16, _mm512_setzero_si512, _mm512_storeu_epi32,
    };
    let period = period(weights);
    let mut wide = [_mm512_setzero_si512(); 4];
    for (hashes, weights) in hashes.chunks(period).zip(weights.chunks(period)) {
        let (mut low, mut high) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for (&hash, &weight) in hashes.iter().zip(weights) {
            let weight = _mm512_set1_epi16(weight.cast_signed());
            low = _mm512_mask_add_epi16(low, hash as u32, low, weight);
            high = _mm512_mask_add_epi16(high, (hash >> 32) as u32, high, weight);
        }
        for (i, half) in [low, high].into_iter().enumerate() {
            let (first, second) = (_mm512_castsi512_si256(half), _mm512_extracti64x4_epi64::<1>(half));
            wide[2 * i] = _mm512_add_epi32(wide[2 * i], _mm512_cvtepu16_epi32(first));
            wide[2 * i + 1] = _mm512_add_epi32(wide[2 * i + 1], _mm512_cvtepu16_epi32(second));
        }
    }
    for (wide, sums) in wide.into_iter().zip(sums.as_chunks_mut::<16>().0) {
        let mut added = [0_i32; 16];
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: `_mm512_storeu_epi32` writes sixteen 4-byte numbers at any alignment; `added` has sixteen and is not
        // borrowed elsewhere.
        unsafe {
            _mm512_storeu_epi32(added.as_mut_ptr(), wide);
        }
        for (sum, added) in sums.iter_mut().zip(added) {
            *sum = sum.wrapping_add(added.cast_unsigned());
        }
    }
}

/// Like [`ones`], for weights of up to [`WIDE_MAX`].
///
/// # Panics
/// As for [`ones`].
#[inline]
pub fn ones_wide(hashes: &[u64], weights: &[u64], sums: &mut [u64; 64]) {
    assert!(
        hashes.len() == weights.len() && hashes.len() <= ITEMS_MAX,
        "a weight for each of {ITEMS_MAX} hashes"
    );
    vectorized(
        #[inline(always)]
        || ones_wide_portable(hashes, weights, sums),
    );
}

#[inline(always)]
fn ones_wide_portable(hashes: &[u64], weights: &[u64], sums: &mut [u64; 64]) {
    for (&hash, &weight) in hashes.iter().zip(weights) {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(if hash >> bit & 1 == 0 { 0 } else { weight });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the expected sums from the definition.
    fn naive(hashes: &[u64], weights: &[u64]) -> [u64; 64] {
        std::array::from_fn(|bit| {
            hashes
                .iter()
                .zip(weights)
                .filter(|(hash, _)| *hash >> bit & 1 == 1)
                .map(|(_, weight)| weight)
                .sum()
        })
    }

    fn check(hashes: &[u64], weights: &[u16]) {
        let expected = naive(hashes, &weights.iter().map(|&weight| weight.into()).collect::<Vec<_>>());
        for level in Level::tested() {
            let mut sums = [7; 64];
            level.dispatch(OnesKernel { hashes, weights, sums: &mut sums });
            assert_eq!(sums.map(|sum| u64::from(sum) - 7), expected, "{level}, {} items", hashes.len());
        }
        let mut sums = [7; 64];
        ones(hashes, weights, &mut sums);
        assert_eq!(sums.map(|sum| u64::from(sum) - 7), expected, "chosen, {} items", hashes.len());
    }

    proptest! {
        #[test]
        fn every_kernel_sums_weights_as_defined(
            items in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..=ITEMS_MAX), narrow in 0_u32..=16,
        ) {
            let hashes: Vec<u64> = items.iter().map(|item| item.0).collect();
            let weights: Vec<u16> = items.iter().map(|item| (u64::from(item.1 as u16) >> narrow) as u16).collect();
            check(&hashes, &weights);
            let wide: Vec<u64> = items.iter().map(|item| item.1 % (WIDE_MAX + 1)).collect();
            let mut sums = [0; 64];
            ones_wide(&hashes, &wide, &mut sums);
            prop_assert_eq!(sums, naive(&hashes, &wide));
        }
    }

    #[test]
    fn greatest_weights_do_not_overflow() {
        for n in [0, 1, 2, 7, 8, 255, 256] {
            for weight in [0, 1, 255, 257, 8448, 9362, 9363, 32_767, 32_768, u16::MAX] {
                check(&vec![u64::MAX; n], &vec![weight; n]);
                check(&vec![0x8000_0001_8000_0001; n], &vec![weight; n]);
            }
            let mut sums = [0; 64];
            ones_wide(&vec![u64::MAX; n], &vec![WIDE_MAX; n], &mut sums);
            assert_eq!(sums, [WIDE_MAX * n as u64; 64]);
        }
    }
}
