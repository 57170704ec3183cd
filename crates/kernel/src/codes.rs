//! Finds the near pairs of codes: fingerprints of any width, as rows of 32-bit words.
//!
//! Up to 64 codes, the *columns*, are stored word by word, so that a register holds the same word of many codes. Each
//! other code, a *row*, is compared with all columns in its first words only. The caller chooses how many: a distance of
//! more than `radius` bits in a prefix is more than `radius` bits in the whole code, so the pairs found include all
//! near pairs. The plain version is the reference implementation.

use super::pairs::PairBuffer;
use super::{Kernel, Level, Simd};

/// Maximum number of columns of a tile.
pub(super) const COLUMNS: usize = 64;
/// Maximum number of 32-bit words of a code.
pub(super) const CODE_WORDS: usize = 16;

/// Up to 64 codes, stored word by word.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct CodeColumns {
    /// For each word, its value in each code. Codes past `count` have any values.
    words: [[u32; COLUMNS]; CODE_WORDS],
    count: usize,
    /// The id of the first code.
    first: u32,
}

impl Default for CodeColumns {
    fn default() -> Self {
        Self { words: [[0; COLUMNS]; CODE_WORDS], count: 0, first: 0 }
    }
}

impl CodeColumns {
    /// Replaces the columns with the first codes of `rows`, at most 64.
    #[inline(always)]
    pub fn fill(&mut self, rows: CodeRows<'_>) {
        self.first = rows.first;
        self.count = 0;
        for (at, code) in rows.words.chunks_exact(rows.width).take(COLUMNS).enumerate() {
            for (column, &word) in self.words.iter_mut().zip(code) {
                column[at] = word;
            }
            self.count = at + 1;
        }
    }
}

/// Codes whose ids are consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub struct CodeRows<'a> {
    /// The words of all codes, one code after the other.
    pub words: &'a [u32],
    /// Number of words of a code, 1 to 16.
    pub width: usize,
    /// The id of the first code.
    pub first: u32,
}

/// Appends to `found` the ids `[i, j]` of all pairs of a row and a column that differ in at most `radius` bits of their
/// first `prefix` words, in no particular order. A larger `prefix` than the width of the rows means all words.
#[inline(always)]
pub(super) fn near_codes<S: Simd>(
    simd: S,
    rows: CodeRows<'_>,
    columns: &CodeColumns,
    (prefix, radius): (usize, u32),
    found: &mut PairBuffer,
) {
    simd.near_codes(rows, columns, (prefix, radius), found);
}

/// Appends the pairs of near codes, with code compiled for `level`.
pub fn near_codes_at(
    level: Level,
    rows: CodeRows<'_>,
    columns: &CodeColumns,
    by: (usize, u32),
    found: &mut PairBuffer,
) {
    struct NearCodes<'a>(CodeRows<'a>, &'a CodeColumns, (usize, u32), &'a mut PairBuffer);
    impl Kernel for NearCodes<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            near_codes(simd, self.0, self.1, self.2, self.3);
        }
    }
    level.dispatch(NearCodes(rows, columns, by, found));
}

/// The reference implementation of [`Simd::near_codes`].
#[inline(always)]
pub(super) fn near_codes_portable(
    rows: CodeRows<'_>,
    columns: &CodeColumns,
    (prefix, radius): (usize, u32),
    found: &mut PairBuffer,
) {
    for (i, row) in (rows.first..).zip(rows.words.chunks_exact(rows.width)) {
        let mut ones = [0; COLUMNS];
        for (&word, column) in row.iter().zip(&columns.words).take(prefix) {
            for (ones, other) in ones.iter_mut().zip(column) {
                *ones += (word ^ other).count_ones();
            }
        }
        let ones = &ones[..columns.count];
        // The loop has no branch, so the compiler can vectorize it.
        let mut near = false;
        for &ones in ones {
            near |= ones <= radius;
        }
        if near {
            found.reserve(COLUMNS);
            for (j, _) in (columns.first..).zip(ones).filter(|&(_, &ones)| ones <= radius) {
                found.add(i, j);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "loads with a u in their name take any alignment")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _bzhi_u64, _mm256_add_epi8, _mm256_loadu_si256, _mm256_set1_epi32,
        _mm256_setzero_si256, _mm256_xor_si256, _mm512_add_epi32, _mm512_cmple_epu32_mask,
        _mm512_loadu_si512, _mm512_popcnt_epi32, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_xor_si512,
    };

    use super::super::near::x86::{ones_of_bytes, sums_below};
    use super::super::pairs::PairBuffer;
    use super::super::pairs::x86::{PairBits, add, add_bits};
    use super::{COLUMNS, CodeColumns, CodeRows};

    /// More bits than the longest code has.
    const RADIUS_MAX: u32 = 1 << 10;
    /// Number of lanes of an AVX2 register.
    const EIGHT: usize = 8;
    /// Number of lanes of an AVX-512 register, and of registers that hold all columns.
    const SIXTEEN: usize = 16;
    const REGISTERS: usize = COLUMNS / SIXTEEN;
    /// Number of rows whose results are collected before they are checked.
    const ROWS: usize = 64;

    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight(lanes: &[u32; EIGHT]) -> __m256i {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `lanes` is a live array of eight 4-byte numbers, and every bit pattern is
        // a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(lanes.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn sixteen(lanes: &[u32; SIXTEEN]) -> __m512i {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 64 bytes at any alignment; `lanes` is a live array of 16 4-byte numbers, and every bit pattern is
        // a valid `__m512i`.
        unsafe {
            _mm512_loadu_si512(lanes.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn near_codes_avx2(
        rows: CodeRows<'_>,
        columns: &CodeColumns,
        (prefix, radius): (usize, u32),
        found: &mut PairBuffer,
    ) {
        let limit = _mm256_set1_epi32(radius.min(RADIUS_MAX).cast_signed() + 1);
        for (i, row) in (rows.first..).zip(rows.words.chunks_exact(rows.width)) {
            for at in (0..columns.count).step_by(EIGHT) {
                // A byte of a sum counts at most 8 bits of each of 16 words.
                let mut ones = _mm256_setzero_si256();
                for (&word, column) in row.iter().zip(&columns.words).take(prefix) {
                    let lanes = eight(&column.as_chunks().0[at / EIGHT]);
                    let differing = _mm256_xor_si256(lanes, _mm256_set1_epi32(word.cast_signed()));
                    ones = _mm256_add_epi8(ones, ones_of_bytes(differing));
                }
                let there = (1 << (columns.count - at).min(EIGHT)) - 1;
                let near = sums_below(limit, ones) as u32 & there;
                if near != 0 {
                    add(near, i, columns.first + at as u32, found);
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    pub(in super::super) fn near_codes_avx512(
        rows: CodeRows<'_>,
        columns: &CodeColumns,
        by: (usize, u32),
        found: &mut PairBuffer,
    ) {
        match columns.count.div_ceil(SIXTEEN) {
            0 => {}
            1 => registers::<1>(rows, columns, by, found),
            2 => registers::<2>(rows, columns, by, found),
            3 => registers::<3>(rows, columns, by, found),
            _ => registers::<REGISTERS>(rows, columns, by, found),
        }
    }

    /// Compares with up to `16 R` columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn registers<const R: usize>(
        rows: CodeRows<'_>,
        columns: &CodeColumns,
        (prefix, radius): (usize, u32),
        found: &mut PairBuffer,
    ) {
        let limit = _mm512_set1_epi32(radius.min(RADIUS_MAX).cast_signed());
        let there = _bzhi_u64(u64::MAX, columns.count as u32);
        let together = rows.words.chunks(ROWS * rows.width);
        for (some, first) in together.zip((rows.first..).step_by(ROWS)) {
            let mut near = [0_u64; ROWS];
            let mut any = 0;
            for (row, near) in some.chunks_exact(rows.width).zip(&mut near) {
                let mut ones = [_mm512_setzero_si512(); R];
                for (&word, column) in row.iter().zip(&columns.words).take(prefix) {
                    let word = _mm512_set1_epi32(word.cast_signed());
                    for (ones, lanes) in ones.iter_mut().zip(column.as_chunks().0) {
                        let differing = _mm512_xor_si512(sixteen(lanes), word);
                        *ones = _mm512_add_epi32(*ones, _mm512_popcnt_epi32(differing));
                    }
                }
                for (ones, at) in ones.into_iter().zip((0..).step_by(SIXTEEN)) {
                    *near |= u64::from(_mm512_cmple_epu32_mask(ones, limit)) << at;
                }
                *near &= there;
                any |= *near;
            }
            if any == 0 {
                continue;
            }
            for (i, near) in (first..).zip(near) {
                if near != 0 {
                    add_bits(near, &PairBits::AFTER_A_ROW, (i, columns.first), found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitmix::SplitMix;

    /// The ids of the first row and of the first column.
    const ROW: u32 = 1 << 31;
    const COLUMN: u32 = 70_000;

    fn defined(rows: &[u32], columns: &[u32], width: usize, (prefix, radius): (usize, u32)) -> Vec<[u32; 2]> {
        let mut found = Vec::new();
        for (i, row) in (ROW..).zip(rows.chunks_exact(width)) {
            for (j, column) in (COLUMN..).zip(columns.chunks_exact(width)) {
                let words = row.iter().zip(column).take(prefix);
                if words.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>() <= radius {
                    found.push([i, j]);
                }
            }
        }
        found
    }

    #[test]
    fn every_level_finds_the_near_codes_of_the_definition() {
        let mut random = SplitMix(5);
        let (mut columns, mut found) = (CodeColumns::default(), PairBuffer::default());
        let mut pairs = 0;
        for width in 1..=CODE_WORDS {
            for (rows, others) in [(0, 5), (1, 0), (3, 1), (70, 15), (64, 16), (65, 17), (129, 33), (40, 64)]
            {
                let mut codes = |count: usize| -> Vec<u32> {
                    let mut few = || (random.next() & random.next() & random.next()) as u32;
                    (0..count * width).map(|_| few()).collect()
                };
                let (rows, others) = (codes(rows), codes(others));
                let bits = 32 * width as u32;
                columns.fill(CodeRows { words: &others, width, first: COLUMN });
                for prefix in [1, width.div_ceil(2), width, width + 3] {
                    for radius in [0, 3, 6, bits / 8, bits / 5, bits - 1, bits, u32::MAX] {
                        let expected = defined(&rows, &others, width, (prefix, radius));
                        pairs += expected.len();
                        for level in Level::ALL {
                            found.clear();
                            let rows = CodeRows { words: &rows, width, first: ROW };
                            near_codes_at(level, rows, &columns, (prefix, radius), &mut found);
                            let mut found = found.pairs().to_vec();
                            found.sort_unstable();
                            assert!(found == expected, "{level}, {width} words, {prefix} of them, {radius}");
                        }
                    }
                }
            }
        }
        assert!(pairs > 100_000);
    }
}
