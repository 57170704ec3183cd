//! Processes text in chunks of 64 bytes: finds ASCII word characters and converts ASCII capitals to lower case.

/// The classes of the bytes of a chunk, as bit masks: bit i describes byte i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteClasses {
    /// Bytes that are ASCII letters, digits or underscores.
    pub word: u64,
    /// Bytes of non-ASCII characters.
    pub beyond: u64,
}

/// A mask of the high bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns a 64-bit word with all eight bytes equal to `byte`.
const fn all(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// Classifies 64 bytes and writes them to `lower`, with ASCII capitals converted to lower case. The reference
/// implementation. It processes eight bytes at a time.
#[inline(always)]
pub(super) fn classes(bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
    let (mut word, mut beyond) = (0, 0);
    let (eights, _) = bytes.as_chunks::<8>();
    let (lowers, _) = lower.as_chunks_mut::<8>();
    for (i, (&eight, out)) in eights.iter().zip(lowers).enumerate() {
        let x = u64::from_le_bytes(eight);
        let high = x & HIGH;
        // If the high bit of a byte is clear, adding 0x80 - c sets it if and only if the byte is at least c.
        let low = x & !HIGH;
        let from = |c: u8| low + all(0x80 - c);
        let capital = from(b'A') & !from(b'Z' + 1) & HIGH & !high;
        let small = x | capital >> 2; // upper and lower case differ in bit 0x20 = 0x80 >> 2
        *out = small.to_le_bytes();
        let low = small & !HIGH;
        let from = |c: u8| low + all(0x80 - c);
        let letter = from(b'a') & !from(b'z' + 1);
        let digit = from(b'0') & !from(b'9' + 1);
        let underscore = from(b'_') & !from(b'_' + 1);
        let of_words = (letter | digit | underscore) & HIGH & !high;
        word |= gather(of_words) << (8 * i);
        beyond |= gather(high) << (8 * i);
    }
    ByteClasses { word, beyond }
}

/// Collects the high bits of eight bytes into one byte.
#[inline(always)]
fn gather(high: u64) -> u64 {
    // The shift moves bit 8 i + 7 to bit 8 i, and the multiplication moves it to bit 56 + i; no two products overlap.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Writes `base` plus the index of each set bit of `mask` to `places`, and returns the number of set bits. The reference
/// implementation.
#[inline(always)]
pub(super) fn places(mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
    let count = mask.count_ones() as usize;
    let mut rest = mask;
    // Write sixteen indices at a time: most masks have at most sixteen set bits, so the branch is predictable. The
    // entries after the last index are undefined.
    let mut at = 0;
    loop {
        for i in 0..16 {
            places[(at + i) & 63] = base + rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
        }
        at += 16;
        if at >= count {
            return count;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "loads and stores with a u in their name take any alignment")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8,
        _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_storeu_si256, _mm512_add_epi32, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask,
        _mm512_cvtepu8_epi32, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_maskz_compress_epi8,
        _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_storeu_si512, _mm512_sub_epi8,
    };

    use super::ByteClasses;

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn classes_avx2(bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
        let (mut word, mut beyond) = (0, 0);
        for half in 0..2 {
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: reads 32 bytes at offset 0 or 32 of the 64 bytes of `bytes`, at any alignment.
            let x = unsafe { _mm256_loadu_si256(bytes.as_ptr().add(32 * half).cast::<__m256i>()) };
            let set = _mm256_set1_epi8;
            // Test lo <= x <= hi with one signed comparison: adding 127 - hi shifts the range so that it ends at 127,
            // the greatest signed byte.
            let within = |x, lo: u8, hi: u8| {
                let shifted = _mm256_add_epi8(x, set((127 - hi).cast_signed()));
                _mm256_cmpgt_epi8(shifted, set((127 - (hi - lo)).cast_signed() - 1))
            };
            let capital = within(x, b'A', b'Z');
            let small = _mm256_or_si256(x, _mm256_and_si256(capital, set(0x20)));
            let letter = within(small, b'a', b'z');
            let digit = within(x, b'0', b'9');
            let underscore = _mm256_cmpeq_epi8(x, set(b'_'.cast_signed()));
            let of_words = _mm256_or_si256(_mm256_or_si256(letter, digit), underscore);
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: writes 32 bytes at offset 0 or 32 of the 64 bytes of `lower`, at any alignment.
            unsafe {
                _mm256_storeu_si256(lower.as_mut_ptr().add(32 * half).cast::<__m256i>(), small);
            }
            word |= u64::from(_mm256_movemask_epi8(of_words).cast_unsigned()) << (32 * half);
            beyond |= u64::from(_mm256_movemask_epi8(x).cast_unsigned()) << (32 * half);
        }
        ByteClasses { word, beyond }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(in super::super) fn classes_avx512(bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads the 64 bytes of `bytes`, at any alignment.
        let x = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>()) };
        let set = |byte: u8| _mm512_set1_epi8(byte.cast_signed());
        let within = |x, lo: u8, hi: u8| _mm512_cmple_epu8_mask(_mm512_sub_epi8(x, set(lo)), set(hi - lo));
        let capital = within(x, b'A', b'Z');
        let small = _mm512_mask_add_epi8(x, capital, x, set(0x20));
        let word = within(small, b'a', b'z') | within(x, b'0', b'9') | _mm512_cmpeq_epi8_mask(x, set(b'_'));
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: writes the 64 bytes of `lower`, at any alignment.
        unsafe {
            _mm512_storeu_si512(lower.as_mut_ptr().cast::<__m512i>(), small);
        }
        ByteClasses { word, beyond: _mm512_movepi8_mask(x) }
    }

    /// The bytes 0 to 63, in order.
    static NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut i = 0;
        while i < 64 {
            numbers[i] = i as u8;
            i += 1;
        }
        numbers
    };

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    #[inline]
    pub(in super::super) fn places_avx512(mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
        let count = mask.count_ones() as usize;
        let mut packed = [0_u8; 64];
        #[allow(unsafe_code, reason = "the intrinsics take pointers")]
        // SAFETY: reads the 64 bytes of `NUMBERS` and writes the 64 bytes of `packed`, at any alignment.
        unsafe {
            let numbers = _mm512_loadu_si512(NUMBERS.as_ptr().cast::<__m512i>());
            _mm512_storeu_si512(
                packed.as_mut_ptr().cast::<__m512i>(),
                _mm512_maskz_compress_epi8(mask, numbers),
            );
        }
        let mut at = 0;
        // The first iteration is unconditional, because most masks have at most sixteen set bits.
        loop {
            #[allow(unsafe_code, reason = "the intrinsics take pointers")]
            // SAFETY: `at` is 0, 16, 32 or 48, because `count` is at most 64. So this reads 16 of the 64 bytes of
            // `packed` and writes 16 of the 64 numbers of `places`, at any alignment.
            unsafe {
                let sixteen = _mm_loadu_si128(packed.as_ptr().add(at).cast());
                let sixteen =
                    _mm512_add_epi32(_mm512_cvtepu8_epi32(sixteen), _mm512_set1_epi32(base.cast_signed()));
                _mm512_storeu_si512(places.as_mut_ptr().add(at).cast::<__m512i>(), sixteen);
            }
            at += 16;
            if at >= count {
                return count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Kernel, Level, Simd};
    use super::*;

    /// Classifies and lower-cases the bytes one by one.
    fn naive(bytes: &[u8; 64]) -> (ByteClasses, [u8; 64]) {
        let (mut word, mut beyond) = (0, 0);
        for (i, byte) in bytes.iter().enumerate() {
            word |= u64::from(byte.is_ascii_alphanumeric() || *byte == b'_') << i;
            beyond |= u64::from(!byte.is_ascii()) << i;
        }
        (ByteClasses { word, beyond }, bytes.map(|byte| byte.to_ascii_lowercase()))
    }

    struct ClassesOf<'a>(&'a [u8; 64]);

    impl Kernel for ClassesOf<'_> {
        type Output = (ByteClasses, [u8; 64]);

        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut lower = [7; 64];
            (simd.classes(self.0, &mut lower), lower)
        }
    }

    struct PlacesOf(u64, u32);

    impl Kernel for PlacesOf {
        type Output = Vec<u32>;

        fn run<S: Simd>(self, simd: S) -> Vec<u32> {
            let mut places = [7; 64];
            let count = simd.places(self.0, self.1, &mut places);
            places[..count].to_vec()
        }
    }

    fn places_one_by_one(mask: u64, base: u32) -> Vec<u32> {
        (0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| base + bit).collect()
    }

    #[test]
    fn all_levels_classify_every_byte_at_every_position_correctly() {
        for level in Level::tested() {
            for byte in 0..=255 {
                for at in 0..64 {
                    for around in [b' ', b'x', 0xff, b'@', b'Z'] {
                        let mut bytes = [around; 64];
                        bytes[at] = byte;
                        assert_eq!(
                            level.dispatch(ClassesOf(&bytes)),
                            naive(&bytes),
                            "{level}, {byte} at {at}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn all_levels_find_all_set_bits_of_a_mask() {
        for level in Level::tested() {
            for bits in 0..=64_u32 {
                let ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                for mask in
                    [ones, ones.rotate_right(bits / 2), ones.reverse_bits(), ones & 0x5555_5555_5555_5555]
                {
                    let found = level.dispatch(PlacesOf(mask, 1000));
                    assert_eq!(found, places_one_by_one(mask, 1000), "{level}, {mask:x}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_level_agrees_on_random_bytes_and_masks(
            bytes in proptest::collection::vec(any::<u8>(), 64), mask: u64, base in 0_u32..1 << 31,
        ) {
            let bytes: [u8; 64] = bytes.try_into().unwrap();
            for level in Level::tested() {
                prop_assert_eq!(level.dispatch(ClassesOf(&bytes)), naive(&bytes));
                prop_assert_eq!(level.dispatch(PlacesOf(mask, base)), places_one_by_one(mask, base));
            }
        }
    }
}
