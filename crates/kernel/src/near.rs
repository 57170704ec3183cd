//! The Hamming filter: finds the elements of a column that are *near* a query: they differ from it in at most `radius`
//! bits.
//!
//! A column contains 16 or 32 bits of each fingerprint. A filter reads one column, or two columns whose elements
//! together have 48 bits. It returns a mask for up to [`CHUNK`] elements, and so needs no branch for each element.
//! Almost no element is near.
//!
//! The plain version is the reference implementation. The AVX2 version uses a register as a table of the number of set
//! bits of each half byte (Mula, Kurz and Lemire, *Faster population counts using AVX2 instructions*, 2018). AVX-512
//! has instructions that count the set bits of 16-bit and 32-bit words. Buckets of a table usually have about 16
//! elements, and their number is rarely a multiple of a register. So AVX-512 loads the last elements with a mask, and
//! AVX2 loads the last eight elements, even if it has compared some of them before.

use zerocopy::little_endian::{U16, U32};

use super::Simd;

/// Number of elements covered by one mask.
const CHUNK: usize = 64;

/// Number of elements that the plain version compares before it branches.
const STEP: usize = 16;

/// Calls `each`, in ascending order, with the index of every element of `plane` that differs from `query` in at most
/// `radius` bits.
///
/// Cost: a few instructions for every 32 elements with AVX-512, or every 16 with AVX2, and one call for each near element.
#[inline(always)]
pub fn for_each_near16<S: Simd>(
    simd: S,
    plane: &[U16],
    query: u16,
    radius: u32,
    mut each: impl FnMut(usize),
) {
    for (chunk, first) in plane.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        for_each_bit(simd.near16(chunk, query, radius), first, &mut each);
    }
}

/// Like [`for_each_near16`], for elements of 32 bits. AVX-512 processes 16 elements at a time, AVX2 eight.
#[inline(always)]
pub fn for_each_near32<S: Simd>(
    simd: S,
    plane: &[U32],
    query: u32,
    radius: u32,
    mut each: impl FnMut(usize),
) {
    for (chunk, first) in plane.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        for_each_bit(simd.near32(chunk, query, radius), first, &mut each);
    }
}

/// Like [`for_each_near32`], for elements of 48 bits: `high` has their upper 16 bits and `low` their lower 32. Only the low
/// 48 bits of `query` are used. If the planes have different lengths, the extra elements of the longer one are ignored.
#[inline(always)]
pub fn for_each_near48<S: Simd>(
    simd: S,
    high: &[U16],
    low: &[U32],
    query: u64,
    radius: u32,
    mut each: impl FnMut(usize),
) {
    let chunks = high.chunks(CHUNK).zip(low.chunks(CHUNK));
    for ((high, low), first) in chunks.zip((0..).step_by(CHUNK)) {
        for_each_bit(simd.near48(high, low, query, radius), first, &mut each);
    }
}

/// Calls `each`, in ascending order, with `first` plus the index of each set bit of `mask`.
#[inline(always)]
fn for_each_bit(mut mask: u64, first: usize, each: &mut impl FnMut(usize)) {
    while mask != 0 {
        each(first + mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

/// The reference implementation of [`Simd::near16`].
#[inline(always)]
pub(super) fn near16(lanes: &[U16], query: u16, radius: u32) -> u64 {
    mask_of(lanes, |lane| (lane.get() ^ query).count_ones() <= radius)
}

/// The reference implementation of [`Simd::near32`].
#[inline(always)]
pub(super) fn near32(lanes: &[U32], query: u32, radius: u32) -> u64 {
    mask_of(lanes, |lane| (lane.get() ^ query).count_ones() <= radius)
}

/// The reference implementation of [`Simd::near48`].
#[inline(always)]
pub(super) fn near48(high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
    let (query_high, query_low) = ((query >> 32) as u16, query as u32);
    let is_near = |(high, low): (&U16, &U32)| {
        (high.get() ^ query_high).count_ones() + (low.get() ^ query_low).count_ones() <= radius
    };
    let n = high.len().min(low.len()).min(CHUNK);
    let steps = high[..n].chunks(STEP).zip(low[..n].chunks(STEP));
    steps.zip((0..).step_by(STEP)).fold(0, |mask, ((high, low), first)| {
        // The loop has no branch, so the compiler can vectorize it.
        let mut near = false;
        for lane in high.iter().zip(low) {
            near |= is_near(lane);
        }
        if near { mask | bits(high.iter().zip(low).map(is_near)) << first } else { mask }
    })
}

/// Returns the mask of the near lanes among the first [`CHUNK`] lanes.
#[inline(always)]
fn mask_of<T>(lanes: &[T], is_near: impl Fn(&T) -> bool) -> u64 {
    let lanes = &lanes[..lanes.len().min(CHUNK)];
    lanes.chunks(STEP).zip((0..).step_by(STEP)).fold(0, |mask, (step, first)| {
        // The loop has no branch, so the compiler can vectorize it.
        let mut near = false;
        for lane in step {
            near |= is_near(lane);
        }
        if near { mask | bits(step.iter().map(&is_near)) << first } else { mask }
    })
}

/// Converts at most 64 booleans to a mask; the first becomes the lowest bit.
#[inline(always)]
fn bits(answers: impl Iterator<Item = bool>) -> u64 {
    answers.zip(0..).fold(0, |bits, (answer, place)| bits | u64::from(answer) << place)
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "loads with a u in their name take any alignment")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _bzhi_u32, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256,
        _mm256_castsi256_ps, _mm256_cmpgt_epi16, _mm256_cmpgt_epi32, _mm256_cvtepu16_epi32,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_maskz_loadu_epi16,
        _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_packs_epi16, _mm256_permute4x64_epi64,
        _mm256_set_m128i, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setr_epi8,
        _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_xor_si256, _mm512_add_epi32,
        _mm512_cvtepu16_epi32, _mm512_mask_cmple_epu16_mask, _mm512_mask_cmple_epu32_mask,
        _mm512_maskz_loadu_epi16, _mm512_maskz_loadu_epi32, _mm512_popcnt_epi16, _mm512_popcnt_epi32,
        _mm512_set1_epi16, _mm512_set1_epi32, _mm512_xor_si512,
    };

    use zerocopy::little_endian::{U16, U32};

    use super::CHUNK;

    /// Number of lanes that AVX2 loads at once. Planes with fewer lanes use the plain version.
    const EIGHT: usize = 8;

    /// Loads the eight 16-bit lanes that start at index `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight_of_16(lanes: &[U16], at: usize) -> __m128i {
        let eight: &[U16] = &lanes[at..at + EIGHT];
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 16 bytes at any alignment; `eight` is a live slice of eight 2-byte numbers, and every bit pattern is
        // a valid `__m128i`.
        unsafe {
            _mm_loadu_si128(eight.as_ptr().cast())
        }
    }

    /// Loads the eight 32-bit lanes that start at index `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight_of_32(lanes: &[U32], at: usize) -> __m256i {
        let eight: &[U32] = &lanes[at..at + EIGHT];
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `eight` is a live slice of eight 4-byte numbers, and every bit pattern is
        // a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(eight.as_ptr().cast())
        }
    }

    /// Counts the set bits of each byte.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn ones_of_bytes(x: __m256i) -> __m256i {
        let ones_of = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_and_si256(x, nibble);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble);
        _mm256_add_epi8(_mm256_shuffle_epi8(ones_of, low), _mm256_shuffle_epi8(ones_of, high))
    }

    /// Returns, for each 16-bit word, a word of ones if it has fewer than `limit` set bits, otherwise 0.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn words_below(limit: __m256i, x: __m256i) -> __m256i {
        let ones_of_words = _mm256_maddubs_epi16(ones_of_bytes(x), _mm256_set1_epi8(1));
        _mm256_cmpgt_epi16(limit, ones_of_words)
    }

    /// Returns a mask with one bit for each 32-bit word: whether the counts in its four bytes sum to less than `limit`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn sums_below(limit: __m256i, ones_of_bytes: __m256i) -> u64 {
        let ones_of_words = _mm256_maddubs_epi16(ones_of_bytes, _mm256_set1_epi8(1));
        let ones = _mm256_madd_epi16(ones_of_words, _mm256_set1_epi16(1));
        let below = _mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, ones));
        _mm256_movemask_ps(below).cast_unsigned().into()
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn near16_avx2(lanes: &[U16], query: u16, radius: u32) -> u64 {
        let n = lanes.len().min(CHUNK);
        if n < EIGHT {
            return super::near16(lanes, query, radius);
        }
        let limit = _mm256_set1_epi16(radius.min(16) as i16 + 1);
        let query = _mm256_set1_epi16(query.cast_signed());
        let (mut mask, mut at) = (0, 0);
        while at + 4 * EIGHT <= n {
            let [low, high] = [at, at + 2 * EIGHT].map(|at| {
                let x = _mm256_set_m128i(eight_of_16(lanes, at + EIGHT), eight_of_16(lanes, at));
                words_below(limit, _mm256_xor_si256(x, query))
            });
            // The pack instruction interleaves the 128-bit halves of its operands. The permutation restores the order
            // of lanes.
            let below = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
            mask |= u64::from(_mm256_movemask_epi8(below).cast_unsigned()) << at;
            at += 4 * EIGHT;
        }
        while at < n {
            let (first, second) = (at.min(n - EIGHT), (at + EIGHT).min(n - EIGHT));
            let x = _mm256_set_m128i(eight_of_16(lanes, second), eight_of_16(lanes, first));
            let below = words_below(limit, _mm256_xor_si256(x, query));
            let below = _mm256_packs_epi16(below, _mm256_setzero_si256());
            let below = u64::from(_mm256_movemask_epi8(below).cast_unsigned());
            mask |= (below & 0xff) << first | below >> 16 << second;
            at += 2 * EIGHT;
        }
        mask
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn near32_avx2(lanes: &[U32], query: u32, radius: u32) -> u64 {
        let n = lanes.len().min(CHUNK);
        if n < EIGHT {
            return super::near32(lanes, query, radius);
        }
        let limit = _mm256_set1_epi32(radius.min(32).cast_signed() + 1);
        let query = _mm256_set1_epi32(query.cast_signed());
        let (mut mask, mut at) = (0, 0);
        while at < n {
            // Process two registers at a time, so that the branch is predictable for buckets of up to 16 elements.
            for at in [at.min(n - EIGHT), (at + EIGHT).min(n - EIGHT)] {
                let differing = _mm256_xor_si256(eight_of_32(lanes, at), query);
                mask |= sums_below(limit, ones_of_bytes(differing)) << at;
            }
            at += 2 * EIGHT;
        }
        mask
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn near48_avx2(high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
        let n = high.len().min(low.len()).min(CHUNK);
        if n < EIGHT {
            return super::near48(high, low, query, radius);
        }
        let limit = _mm256_set1_epi32(radius.min(48).cast_signed() + 1);
        let query_high = _mm256_set1_epi32(i32::from((query >> 32) as u16));
        let query_low = _mm256_set1_epi32((query as u32).cast_signed());
        let (mut mask, mut at) = (0, 0);
        while at < n {
            for at in [at.min(n - EIGHT), (at + EIGHT).min(n - EIGHT)] {
                let high = _mm256_cvtepu16_epi32(eight_of_16(high, at));
                let high = ones_of_bytes(_mm256_xor_si256(high, query_high));
                let low = ones_of_bytes(_mm256_xor_si256(eight_of_32(low, at), query_low));
                mask |= sums_below(limit, _mm256_add_epi8(high, low)) << at;
            }
            at += 2 * EIGHT;
        }
        mask
    }

    /// Returns a mask of the lanes of a register that exist, if lane `at` is its first lane and `n` is the number of
    /// lanes.
    #[target_feature(enable = "bmi2")]
    #[inline]
    fn lanes_left(n: usize, at: usize) -> u32 {
        // `n` is at most 64, and `_bzhi_u32` keeps all bits if its index is 32 or more.
        _bzhi_u32(u32::MAX, n.saturating_sub(at) as u32)
    }

    /// Loads lane `at + i` for each set bit i of `mask`. The other lanes of the register are 0, and their memory is not
    /// read.
    ///
    /// # Safety
    /// `lanes` must have a lane `at + i` for each set bit i of `mask`.
    #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn lanes_of_16(mask: u32, lanes: &[U16], at: usize) -> __m512i {
        // SAFETY: a masked load reads only the lanes whose mask bits are set, at any alignment, and does not fault for the
        // others, wherever they are. The caller guarantees that `lanes`, which is borrowed here, has a lane for each set bit
        // of the mask, and a `U16` is two bytes. If the mask is 0, the address may be past the end of the slice, so it is
        // computed with `wrapping_add`.
        unsafe { _mm512_maskz_loadu_epi16(mask, lanes.as_ptr().wrapping_add(at).cast()) }
    }

    /// Like [`lanes_of_16`], for 16 lanes; widens each lane to 32 bits.
    ///
    /// # Safety
    /// Same as [`lanes_of_16`].
    #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn lanes_of_16_widened(mask: u16, lanes: &[U16], at: usize) -> __m512i {
        // SAFETY: as in `lanes_of_16`; the caller guarantees the same.
        let narrow = unsafe { _mm256_maskz_loadu_epi16(mask, lanes.as_ptr().wrapping_add(at).cast()) };
        _mm512_cvtepu16_epi32(narrow)
    }

    /// Like [`lanes_of_16`], for lanes of 32 bits.
    ///
    /// # Safety
    /// Same as [`lanes_of_16`].
    #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn lanes_of_32(mask: u16, lanes: &[U32], at: usize) -> __m512i {
        // SAFETY: as in `lanes_of_16`; the caller guarantees the same, and a `U32` is four bytes.
        unsafe { _mm512_maskz_loadu_epi32(mask, lanes.as_ptr().wrapping_add(at).cast()) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bitalg,bmi2")]
    #[inline]
    pub(in super::super) fn near16_avx512(lanes: &[U16], query: u16, radius: u32) -> u64 {
        let n = lanes.len().min(CHUNK);
        let query = _mm512_set1_epi16(query.cast_signed());
        let radius = _mm512_set1_epi16(radius.min(16) as i16);
        let half = |at| {
            let there = lanes_left(n, at);
            #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
            // SAFETY: bit i of `there` is set only if lane `at + i` is below `n`, and `lanes` has at least `n` lanes.
            let x = unsafe { lanes_of_16(there, lanes, at) };
            let ones = _mm512_popcnt_epi16(_mm512_xor_si512(x, query));
            u64::from(_mm512_mask_cmple_epu16_mask(there, ones, radius)) << at
        };
        if n <= 32 { half(0) } else { half(0) | half(32) }
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi2")]
    #[inline]
    pub(in super::super) fn near32_avx512(lanes: &[U32], query: u32, radius: u32) -> u64 {
        let n = lanes.len().min(CHUNK);
        let query = _mm512_set1_epi32(query.cast_signed());
        let radius = _mm512_set1_epi32(radius.min(32).cast_signed());
        let quarter = |at| {
            let there = lanes_left(n, at) as u16;
            #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
            // SAFETY: bit i of `there` is set only if lane `at + i` is below `n`, and `lanes` has at least `n` lanes.
            let x = unsafe { lanes_of_32(there, lanes, at) };
            let ones = _mm512_popcnt_epi32(_mm512_xor_si512(x, query));
            u64::from(_mm512_mask_cmple_epu32_mask(there, ones, radius)) << at
        };
        // Always process two registers: for buckets of about 16 elements, a branch at 16 would be unpredictable.
        let half = |at| quarter(at) | quarter(at + 16);
        if n <= 32 { half(0) } else { half(0) | half(32) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi2")]
    #[inline]
    pub(in super::super) fn near48_avx512(high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
        let n = high.len().min(low.len()).min(CHUNK);
        let query_high = _mm512_set1_epi32(i32::from((query >> 32) as u16));
        let query_low = _mm512_set1_epi32((query as u32).cast_signed());
        let radius = _mm512_set1_epi32(radius.min(48).cast_signed());
        let quarter = |at| {
            let there = lanes_left(n, at) as u16;
            #[allow(unsafe_code, reason = "reads the lanes that the mask names")]
            // SAFETY: bit i of `there` is set only if lane `at + i` is below `n`, and both planes have at least `n` lanes.
            let (high, low) = unsafe { (lanes_of_16_widened(there, high, at), lanes_of_32(there, low, at)) };
            let high = _mm512_popcnt_epi32(_mm512_xor_si512(high, query_high));
            let low = _mm512_popcnt_epi32(_mm512_xor_si512(low, query_low));
            u64::from(_mm512_mask_cmple_epu32_mask(there, _mm512_add_epi32(high, low), radius)) << at
        };
        let half = |at| quarter(at) | quarter(at + 16);
        if n <= 32 { half(0) } else { half(0) | half(32) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::FromBytes;

    use super::super::{Kernel, Level};
    use super::*;

    /// The results for each width of lanes: the indices found, and the mask of the first chunk.
    #[derive(Debug, Default, PartialEq)]
    struct PlaneHits {
        narrow: (Vec<usize>, u64),
        wide: (Vec<usize>, u64),
        both: (Vec<usize>, u64),
    }

    /// A 48-bit query, a plane of upper 16-bit parts and a plane of lower 32-bit parts. Each plane is searched alone, and
    /// then both together.
    #[derive(Clone, Copy)]
    struct Planes<'a> {
        high: &'a [U16],
        low: &'a [U32],
        query: u64,
        radius: u32,
    }

    impl Planes<'_> {
        /// Computes the expected result lane by lane.
        fn defined(self) -> PlaneHits {
            let places = |len: usize, distance: &dyn Fn(usize) -> u32| {
                let places: Vec<usize> = (0..len).filter(|&place| distance(place) <= self.radius).collect();
                let mask = places.iter().filter(|place| **place < 64).map(|place| 1 << place).sum();
                (places, mask)
            };
            let high = |place: usize| (self.high[place].get() ^ (self.query >> 32) as u16).count_ones();
            let low = |place: usize| (self.low[place].get() ^ self.query as u32).count_ones();
            PlaneHits {
                narrow: places(self.high.len(), &high),
                wide: places(self.low.len(), &low),
                both: places(self.high.len().min(self.low.len()), &|place| high(place) + low(place)),
            }
        }
    }

    impl Kernel for Planes<'_> {
        type Output = PlaneHits;

        fn run<S: Simd>(self, simd: S) -> PlaneHits {
            let Self { high, low, query, radius } = self;
            let mut found = PlaneHits::default();
            for_each_near16(simd, high, (query >> 32) as u16, radius, |place| found.narrow.0.push(place));
            for_each_near32(simd, low, query as u32, radius, |place| found.wide.0.push(place));
            for_each_near48(simd, high, low, query, radius, |place| found.both.0.push(place));
            // The masks cover only the first 64 lanes.
            found.narrow.1 = simd.near16(high, (query >> 32) as u16, radius);
            found.wide.1 = simd.near32(low, query as u32, radius);
            found.both.1 = simd.near48(high, low, query, radius);
            found
        }
    }

    fn check(planes: Planes<'_>) {
        let expected = planes.defined();
        for level in Level::tested() {
            let Planes { high, low, query, radius } = planes;
            let (h, l) = (high.len(), low.len());
            assert_eq!(
                level.dispatch(planes),
                expected,
                "{level}, {h} and {l} lanes, {query:x}, radius {radius}"
            );
        }
    }

    /// Generates differences to be xored with the query: random numbers, most of them with few set bits.
    fn near_and_far() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            any::<[u64; 3]>().prop_map(|[a, b, c]| a & b & c),
            any::<[u64; 4]>().prop_map(|[a, b, c, d]| a & b & c & d),
            Just(0),
            (0_u32..48).prop_map(|bit| 1 << bit),
        ]
    }

    proptest! {
        #[test]
        fn every_level_finds_the_near_lanes_of_the_definition(
            differences in proptest::collection::vec(near_and_far(), 0..=200),
            // `odd` and `skipped` are the offsets at which the planes begin, in bytes and in lanes. `cut` is the
            // difference between their lengths.
            odd in 0_usize..4, skipped in 0_usize..8, cut in prop_oneof![Just(0_usize), 0_usize..70],
            // Bits of the query above the lowest 48 must be ignored.
            query: u64, radius in 0_u32..=49, huge: bool,
        ) {
            let mut high = vec![0_u8; odd];
            let mut low = vec![0_u8; odd];
            for difference in &differences {
                let value = difference ^ query;
                high.extend(((value >> 32) as u16).to_le_bytes());
                low.extend((value as u32).to_le_bytes());
            }
            let radius = if huge { u32::MAX - radius } else { radius };
            let high = <[U16]>::ref_from_bytes(&high[odd..]).unwrap();
            let low = <[U32]>::ref_from_bytes(&low[odd..]).unwrap();
            let skipped = skipped.min(high.len());
            let (high, low) = (&high[skipped..], &low[skipped..]);
            let shorter = high.len().saturating_sub(cut);
            for (high, low) in [(high, low), (&high[..shorter], low), (high, &low[..shorter])] {
                check(Planes { high, low, query, radius });
            }
        }
    }

    #[test]
    fn distances_at_the_radius_are_exact_for_every_length() {
        let query = 0x1234_5678_9abc_def0_u64;
        for len in 0..=130 {
            // The lanes differ from the query in 0 to 16, 0 to 32 or 0 to 48 bits. This number depends on the position
            // of the lane and on the number of lanes.
            let ones = |place: usize, bits: u64| (1_u64 << ((place + len) as u64 % (bits + 1))) - 1;
            let high: Vec<U16> = (0..len).map(|p| U16::new(((query >> 32) ^ ones(p, 16)) as u16)).collect();
            let low: Vec<U32> = (0..len).map(|p| U32::new((query ^ ones(p, 32)) as u32)).collect();
            for radius in [0, 1, 3, 15, 16, 17, 31, 32, 33, 47, 48, 49, 255, 256, 65_536, u32::MAX] {
                check(Planes { high: &high, low: &low, query, radius });
            }
        }
    }

    #[test]
    fn loads_stay_within_the_plane() {
        // Each length has its own allocation, so that a sanitizer detects a load past the end.
        for len in 0..=70_usize {
            let high: Box<[U16]> = (0..len).map(|place| U16::new(place as u16)).collect();
            let low: Box<[U32]> = (0..len).map(|place| U32::new(place as u32)).collect();
            check(Planes { high: &high, low: &low, query: 0, radius: 2 });
        }
    }
}
