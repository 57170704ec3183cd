//! Which of a few numbers are equal to one.

/// The plain version of [`Simd::equal8`](super::Simd::equal8).
#[inline(always)]
pub(super) fn equal8(numbers: &[u64; 8], number: u64) -> u32 {
    (0..).zip(numbers).fold(0, |mask, (place, &other)| mask | u32::from(other == number) << place)
}

/// The plain version of [`Simd::equal16`](super::Simd::equal16).
#[inline(always)]
pub(super) fn equal16(left: &[u32; 16], right: &[u32; 16]) -> u32 {
    let pairs = left.iter().zip(right);
    (0..).zip(pairs).fold(0, |mask, (place, (left, right))| mask | u32::from(left == right) << place)
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
        _mm256_loadu_si256, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_set1_epi64x,
        _mm512_cmpeq_epi32_mask, _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_set1_epi64,
    };

    /// Eight numbers.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight(numbers: &[u32; 8]) -> __m256i {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `numbers` is a live array of eight numbers of four bytes, and any bits
        // are a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(numbers.as_ptr().cast())
        }
    }

    /// As the plain version.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn equal16_avx2(left: &[u32; 16], right: &[u32; 16]) -> u32 {
        let halves = left.as_chunks().0.iter().zip(right.as_chunks().0);
        (0..).step_by(8).zip(halves).fold(0, |mask, (place, (left, right))| {
            let equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(eight(left), eight(right)));
            mask | _mm256_movemask_ps(equal).cast_unsigned() << place
        })
    }

    /// As the plain version.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(in super::super) fn equal16_avx512(left: &[u32; 16], right: &[u32; 16]) -> u32 {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 64 bytes each at any alignment; both are live arrays of sixteen numbers of four bytes, and any bits
        // are a valid `__m512i`.
        let (left, right) =
            unsafe { (_mm512_loadu_si512(left.as_ptr().cast()), _mm512_loadu_si512(right.as_ptr().cast())) };
        _mm512_cmpeq_epi32_mask(left, right).into()
    }

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

    struct Equal16([u32; 16], [u32; 16]);

    impl Kernel for Equal16 {
        type Output = u32;

        fn run<S: Simd>(self, simd: S) -> u32 {
            simd.equal16(&self.0, &self.1)
        }
    }

    #[test]
    fn a_bit_stands_for_each_place_in_which_two_rows_are_equal_at_all_levels() {
        let left: [u32; 16] = std::array::from_fn(|place| 0x8000_0000 | place as u32);
        for level in Level::tested() {
            for equal in (0..1 << 16).step_by(7) {
                let right = std::array::from_fn(|place| left[place] ^ (!equal >> place & 1) << (2 * place));
                assert_eq!(level.dispatch(Equal16(left, right)), equal, "{level}");
            }
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
