//! Compares small arrays of numbers, and byte strings, for equality.

/// The reference implementation of [`Simd::equal8`](super::Simd::equal8).
#[inline(always)]
pub(super) fn equal8(numbers: &[u64; 8], number: u64) -> u32 {
    (0..).zip(numbers).fold(0, |mask, (place, &other)| mask | u32::from(other == number) << place)
}

/// The reference implementation of [`Simd::equal16`](super::Simd::equal16).
#[inline(always)]
pub(super) fn equal16(left: &[u32; 16], right: &[u32; 16]) -> u32 {
    let pairs = left.iter().zip(right);
    (0..).zip(pairs).fold(0, |mask, (place, (left, right))| mask | u32::from(left == right) << place)
}

/// The reference implementation of [`Simd::equal_bytes`](super::Simd::equal_bytes).
#[inline(always)]
pub(super) fn equal_bytes(left: &[u8], right: &[u8]) -> usize {
    // Count at most 255 bytes at a time, so that each count fits in a `u8` and the compiler can use vectors of bytes.
    const COUNTED: usize = u8::MAX as usize;
    let equal = |(left, right): (&[u8], &[u8])| -> u8 {
        left.iter().zip(right).map(|(left, right)| u8::from(left == right)).sum()
    };
    let common = left.len().min(right.len());
    let (left, right) = (left[..common].chunks(COUNTED), right[..common].chunks(COUNTED));
    left.zip(right).map(|both| usize::from(equal(both))).sum()
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _bzhi_u64, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
        _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_set1_epi64x,
        _mm512_cmpeq_epi32_mask, _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_mask_cmpeq_epi8_mask,
        _mm512_maskz_loadu_epi8, _mm512_set1_epi64,
    };

    /// Loads eight numbers into a register.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight(numbers: &[u32; 8]) -> __m256i {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `numbers` is a live array of eight 4-byte numbers, and every bit pattern
        // is a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(numbers.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn equal16_avx2(left: &[u32; 16], right: &[u32; 16]) -> u32 {
        let halves = left.as_chunks().0.iter().zip(right.as_chunks().0);
        (0..).step_by(8).zip(halves).fold(0, |mask, (place, (left, right))| {
            let equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(eight(left), eight(right)));
            mask | _mm256_movemask_ps(equal).cast_unsigned() << place
        })
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(in super::super) fn equal16_avx512(left: &[u32; 16], right: &[u32; 16]) -> u32 {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: each load reads 64 bytes at any alignment; both are live arrays of sixteen 4-byte numbers, and every bit
        // pattern is a valid `__m512i`.
        let (left, right) =
            unsafe { (_mm512_loadu_si512(left.as_ptr().cast()), _mm512_loadu_si512(right.as_ptr().cast())) };
        _mm512_cmpeq_epi32_mask(left, right).into()
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn equal8_avx2(numbers: &[u64; 8], number: u64) -> u32 {
        let number = _mm256_set1_epi64x(number.cast_signed());
        let (halves, _) = numbers.as_chunks::<4>();
        (0..).step_by(4).zip(halves).fold(0, |mask, (place, half)| {
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: reads 32 bytes at any alignment; `half` is a live array of four 8-byte numbers, and every bit pattern
            // is a valid `__m256i`.
            let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            let equal = _mm256_castsi256_pd(_mm256_cmpeq_epi64(half, number));
            mask | _mm256_movemask_pd(equal).cast_unsigned() << place
        })
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(in super::super) fn equal8_avx512(numbers: &[u64; 8], number: u64) -> u32 {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 64 bytes at any alignment; `numbers` is a live array of eight 8-byte numbers, and every bit pattern
        // is a valid `__m512i`.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        _mm512_cmpeq_epi64_mask(numbers, _mm512_set1_epi64(number.cast_signed())).into()
    }

    /// Loads the bytes whose bits are set in the mask `there`. The other bytes of the register become 0.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn some(bytes: &[u8], there: u64) -> __m512i {
        debug_assert!(64 - there.leading_zeros() as usize <= bytes.len());
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: a masked load reads only the bytes whose mask bits are set, at any alignment, and does not fault for the
        // others. The only caller passes two slices and sets one bit for each byte of the shorter slice, at most 64.
        unsafe {
            _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi2,popcnt")]
    #[inline]
    pub(in super::super) fn equal_bytes_avx512(left: &[u8], right: &[u8]) -> usize {
        const BYTES: usize = 64;
        let mut count = 0;
        for (left, right) in left.chunks(BYTES).zip(right.chunks(BYTES)) {
            // `_bzhi_u64` keeps all 64 bits if its index is 64 or more.
            let there = _bzhi_u64(u64::MAX, left.len().min(right.len()) as u32);
            count += _mm512_mask_cmpeq_epi8_mask(there, some(left, there), some(right, there)).count_ones();
        }
        count as usize
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

    struct EqualBytes<'a>(&'a [u8], &'a [u8]);

    impl Kernel for EqualBytes<'_> {
        type Output = usize;

        fn run<S: Simd>(self, simd: S) -> usize {
            simd.equal_bytes(self.0, self.1)
        }
    }

    #[test]
    fn equal_bytes_compares_up_to_the_shorter_length() {
        let left: Vec<u8> = (0..1000_usize).map(|at| (at * 7 + at / 256) as u8).collect();
        for level in Level::tested() {
            for apart in [1, 2, 3, 64, 1001] {
                let right: Vec<u8> =
                    (1..).zip(&left).map(|(at, byte)| byte ^ u8::from(at % apart == 0) << (at % 8)).collect();
                for len in (0..200).chain([254, 255, 256, 511, 1000]) {
                    let equal = len - len / apart;
                    let of = |a, b| level.dispatch(EqualBytes(a, b));
                    assert_eq!(of(&left[..len], &right[..len]), equal, "{level}, {len}, {apart}");
                    assert_eq!(of(&left, &right[..len]), equal, "{level}, {len}, {apart}");
                    assert_eq!(of(&left[..len], &right), equal, "{level}, {len}, {apart}");
                }
            }
        }
    }

    #[test]
    fn equal16_sets_a_bit_for_each_equal_position() {
        let left: [u32; 16] = std::array::from_fn(|place| 0x8000_0000 | place as u32);
        for level in Level::tested() {
            for equal in (0..1 << 16).step_by(7) {
                let right = std::array::from_fn(|place| left[place] ^ (!equal >> place & 1) << (2 * place));
                assert_eq!(level.dispatch(Equal16(left, right)), equal, "{level}");
            }
        }
    }

    #[test]
    fn equal8_sets_a_bit_for_each_equal_number() {
        for level in Level::tested() {
            for equal in 0..256_u32 {
                let number = 0x8000_0001_0000_0000 | u64::from(equal);
                // Each number that should not be found differs from `number` in one bit, at its own position.
                let numbers: [u64; 8] = std::array::from_fn(|place| {
                    if equal >> place & 1 == 1 { number } else { number ^ 1 << (9 * place) }
                });
                assert_eq!(level.dispatch(Equal(numbers, number)), equal, "{level}");
            }
        }
    }
}
