//! Which of a few numbers are equal to one.

/// The plain version of [`Simd::equal8`](super::Simd::equal8).
#[inline(always)]
pub(super) fn equal8(numbers: &[u64; 8], number: u64) -> u32 {
    (0..).zip(numbers).fold(0, |mask, (place, &other)| mask | u32::from(other == number) << place)
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
        _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_set1_epi64,
    };

    /// As the plain version.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn equal8_avx2(numbers: &[u64; 8], number: u64) -> u32 {
        let number = _mm256_set1_epi64x(number.cast_signed());
        let (halves, _) = numbers.as_chunks::<4>();
        (0..).step_by(4).zip(halves).fold(0, |mask, (place, half)| {
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: reads 32 bytes at any alignment; `half` is a live array of four numbers of eight bytes, and any
            // bits are a valid `__m256i`.
            let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            let equal = _mm256_castsi256_pd(_mm256_cmpeq_epi64(half, number));
            mask | _mm256_movemask_pd(equal).cast_unsigned() << place
        })
    }

    /// As the plain version.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(in super::super) fn equal8_avx512(numbers: &[u64; 8], number: u64) -> u32 {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 64 bytes at any alignment; `numbers` is a live array of eight numbers of eight bytes, and any
        // bits are a valid `__m512i`.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        _mm512_cmpeq_epi64_mask(numbers, _mm512_set1_epi64(number.cast_signed())).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, Level, Simd};

    struct Equal([u64; 8], u64);

    impl Kernel for Equal {
        type Output = u32;

        fn run<S: Simd>(self, simd: S) -> u32 {
            simd.equal8(&self.0, self.1)
        }
    }

    #[test]
    fn a_bit_stands_for_each_number_that_is_equal_at_all_levels() {
        for level in Level::tested() {
            for equal in 0..256_u32 {
                let number = 0x8000_0001_0000_0000 | u64::from(equal);
                // The others differ in one bit, each in another one.
                let numbers: [u64; 8] = std::array::from_fn(|place| {
                    if equal >> place & 1 == 1 { number } else { number ^ 1 << (9 * place) }
                });
                assert_eq!(level.dispatch(Equal(numbers, number)), equal, "{level}");
            }
        }
    }
}
