//! Finds all pairs of near lanes, that is, lanes that differ in at most `radius` bits: the inner loop of joins.
//!
//! A lane holds 32 bits of a fingerprint, and all lanes belong to one bucket of a table. Comparing a lane with a vector
//! of lanes takes an exclusive or, a population count and a comparison. There is one branch for every few vectors. Near
//! pairs are rare, and are collected in a buffer. The plain version is the reference implementation.
//!
//! The AVX-512 version keeps up to 64 lanes, the *columns*, in registers and compares the other lanes, the *rows*, with
//! them. It first records, without a branch, the rows that are near any column, and then compares only these rows
//! again. A branch that is taken for one pair in ten would cost more than the second comparison. To find the pairs
//! among sixteen lanes, a register is compared with its own rotations. The near pairs are the set bits of a 64-bit
//! word, and one instruction compresses their indices, which avoids a loop over the bits. The AVX2 version counts set
//! bits with a table of half bytes in a register, as [`near`](super::near) does (Mula, Kurz and Lemire 2018).

use super::{Kernel, Level, Simd};

/// Lanes whose ids are consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<'a> {
    /// The values of the lanes: 32 bits of each fingerprint.
    pub lanes: &'a [u32],
    /// The id of the first lane.
    pub first: u32,
}

impl<'a> Lanes<'a> {
    /// Returns the lanes at positions `start..end`. If there are fewer than `end` lanes, the part ends with the last
    /// lane.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn part(self, start: usize, end: usize) -> Self {
        let end = end.min(self.lanes.len());
        Self { lanes: self.lanes.get(start..end).unwrap_or_default(), first: self.first + start as u32 }
    }

    #[inline(always)]
    fn numbered(self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        (self.first..).zip(self.lanes.iter().copied())
    }
}

impl<'a> From<&'a [u32]> for Lanes<'a> {
    /// Returns lanes whose ids start at 0.
    fn from(lanes: &'a [u32]) -> Self {
        Self { lanes, first: 0 }
    }
}

/// A buffer for the pairs found. The loops reserve capacity in advance, so that adding a pair calls no function.
#[derive(Debug, Default)]
pub struct PairBuffer {
    /// The first `len` entries are pairs; later entries are undefined.
    items: Vec<[u32; 2]>,
    len: usize,
}

impl PairBuffer {
    /// Removes all pairs.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the pairs, in no particular order.
    #[must_use]
    #[inline(always)]
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.items[..self.len]
    }

    /// Reserves capacity for `more` additional pairs.
    #[inline(always)]
    pub(super) fn reserve(&mut self, more: usize) {
        if self.items.len() - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.items.resize((self.len + more).max(2 * self.items.len()), [0; 2]);
    }

    /// Appends a pair. The caller must have reserved capacity.
    #[inline(always)]
    pub(super) fn add(&mut self, i: u32, j: u32) {
        self.items[self.len] = [i, j];
        self.len += 1;
    }
}

/// Appends to `found` the ids `[i, j]`, `i < j`, of all pairs of lanes that differ in at most `radius` bits, in no
/// particular order.
///
/// Cost: n^2 / 2 comparisons for n lanes, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn pairs32<S: Simd>(simd: S, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    simd.pairs32(lanes, radius, found);
}

/// Appends to `found` the ids `[i, j]` of all pairs of a lane of `left` and a lane of `right` that differ in at most
/// `radius` bits, in no particular order.
///
/// Cost: one comparison for each pair of a left and a right lane, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn across32<S: Simd>(simd: S, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    simd.across32(left, right, radius, found);
}

/// Calls [`across32`], or [`pairs32`] if `others` is `None`, compiled for `level`.
pub fn near_lanes(
    level: Level,
    lanes: Lanes<'_>,
    others: Option<Lanes<'_>>,
    radius: u32,
    found: &mut PairBuffer,
) {
    struct NearLanes<'a>(Lanes<'a>, Option<Lanes<'a>>, u32, &'a mut PairBuffer);
    impl Kernel for NearLanes<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            match self.1 {
                None => pairs32(simd, self.0, self.2, self.3),
                Some(others) => across32(simd, self.0, others, self.2, self.3),
            }
        }
    }
    level.dispatch(NearLanes(lanes, others, radius, found));
}

/// The reference implementation of [`Simd::pairs32`].
#[inline(always)]
pub(super) fn pairs32_portable(all: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (at, (i, lane)) in (1..).zip(all.numbered()) {
        row_portable(i, lane, Lanes { lanes: &all.lanes[at..], first: i + 1 }, radius, found);
    }
}

/// The reference implementation of [`Simd::across32`].
#[inline(always)]
pub(super) fn across32_portable(left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (i, lane) in left.numbered() {
        row_portable(i, lane, right, radius, found);
    }
}

/// Number of lanes that the plain version compares before it branches.
const STEP: usize = 16;

/// Appends `[i, j]` for each lane of `others` that is near `lane`; i is the id of `lane`, and j the id of the other lane.
#[inline(always)]
fn row_portable(i: u32, lane: u32, others: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (step, at) in others.lanes.chunks(STEP).zip((others.first..).step_by(STEP)) {
        // The loop has no branch, so the compiler can vectorize it.
        let mut near = false;
        for other in step {
            near |= (lane ^ other).count_ones() <= radius;
        }
        if near {
            found.reserve(STEP);
            for (j, other) in (at..).zip(step) {
                if (lane ^ other).count_ones() <= radius {
                    found.add(i, j);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "loads with a u in their name take any alignment")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _bzhi_u32, _bzhi_u64, _mm_unpacklo_epi8, _mm256_loadu_si256, _mm256_set1_epi32,
        _mm256_xor_si256, _mm512_add_epi32, _mm512_alignr_epi32, _mm512_alignr_epi64, _mm512_castsi512_si128,
        _mm512_cmple_epu32_mask, _mm512_cvtepu8_epi32, _mm512_loadu_si512, _mm512_mask_cmple_epu32_mask,
        _mm512_maskz_compress_epi8, _mm512_maskz_loadu_epi32, _mm512_min_epu32, _mm512_popcnt_epi32,
        _mm512_set1_epi32, _mm512_set1_epi64, _mm512_storeu_si512, _mm512_xor_si512,
    };

    use super::super::near::x86::{ones_of_bytes, sums_below};
    use super::{Lanes, PairBuffer};

    /// Number of lanes in an AVX2 register.
    const EIGHT: usize = 8;
    /// Number of lanes in an AVX-512 register.
    const SIXTEEN: usize = 16;
    /// Number of columns in a tile: the lanes that are kept in registers.
    const TILE: usize = 4 * SIXTEEN;
    /// Number of rows that are compared with sixteen columns at a time. The results for the 64 pairs are the bits of
    /// one word.
    const FOUR: usize = 4;

    /// Appends `[i, first + j]` for each set bit j of `mask`.
    #[inline(always)]
    pub(in super::super) fn add(mut mask: u32, i: u32, first: u32, found: &mut PairBuffer) {
        found.reserve(32);
        while mask != 0 {
            found.add(i, first + mask.trailing_zeros());
            mask &= mask - 1;
        }
    }

    /// Loads the eight lanes that start at index `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight(lanes: &[u32], at: usize) -> __m256i {
        let eight: &[u32] = &lanes[at..at + EIGHT];
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `eight` is a live slice of eight 4-byte numbers, and every bit pattern is
        // a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(eight.as_ptr().cast())
        }
    }

    /// Appends the pairs of `lane`, whose id is `i`, with the near lanes of `others` from position `from` on.
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn row_avx2(i: u32, lane: u32, others: Lanes<'_>, from: usize, radius: u32, found: &mut PairBuffer) {
        let Lanes { lanes, first } = others;
        let n = lanes.len();
        let limit = _mm256_set1_epi32(radius.min(32).cast_signed() + 1);
        let query = _mm256_set1_epi32(lane.cast_signed());
        let mask =
            |at: usize| sums_below(limit, ones_of_bytes(_mm256_xor_si256(eight(lanes, at), query))) as u32;
        let mut at = from;
        while at + 2 * EIGHT <= n {
            let both = mask(at) | mask(at + EIGHT) << EIGHT;
            if both != 0 {
                add(both, i, first + at as u32, found);
            }
            at += 2 * EIGHT;
        }
        if at + EIGHT <= n {
            add(mask(at), i, first + at as u32, found);
            at += EIGHT;
        }
        if at < n && n >= EIGHT {
            // Load the last eight lanes, and shift out the bits of the lanes that were already compared.
            let last = n - EIGHT;
            add(mask(last) >> (at - last), i, first + at as u32, found);
        } else if at < n {
            super::row_portable(i, lane, others.part(at, n), radius, found);
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn pairs32_avx2(all: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
        for (at, (i, lane)) in (1..).zip(all.numbered()) {
            row_avx2(i, lane, all, at, radius, found);
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn across32_avx2(
        left: Lanes<'_>,
        right: Lanes<'_>,
        radius: u32,
        found: &mut PairBuffer,
    ) {
        for (i, lane) in left.numbered() {
            row_avx2(i, lane, right, 0, radius, found);
        }
    }

    /// Returns the mask of the used lanes of a register, if `left` lanes remain from its first lane on.
    #[target_feature(enable = "bmi2")]
    #[inline]
    fn lanes_left(left: usize) -> u16 {
        // `_bzhi_u32` keeps all bits if its index is 16 or more.
        _bzhi_u32(0xffff, left.min(SIXTEEN) as u32) as u16
    }

    /// Loads up to 16 lanes that start at index `at`. Lanes past the end are 0.
    #[target_feature(enable = "avx512f,bmi2")]
    #[inline]
    fn sixteen(lanes: &[u32], at: usize) -> __m512i {
        let rest: &[u32] = lanes.get(at..).unwrap_or_default();
        let there = lanes_left(rest.len());
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: a masked load reads only the lanes whose mask bits are set, at any alignment, and does not fault for the
        // others. `rest` is a live slice of 4-byte numbers, and `there` has one set bit for each of them, at most 16.
        unsafe {
            _mm512_maskz_loadu_epi32(there, rest.as_ptr().cast())
        }
    }

    /// Indexed by the number of lanes and the rotation (1 to 8 lanes) minus 1: the mask of the lanes to compare with
    /// the rotated register so that each pair is compared once. Bit i is lane i.
    static ROTATED: [[u16; 8]; SIXTEEN + 1] = {
        let mut all = [[0; 8]; SIXTEEN + 1];
        let mut count = 0;
        while count <= SIXTEEN {
            let there = ((1_u32 << count) - 1) as u16;
            let mut turn = 1;
            while turn <= 8 {
                // The rotation by 8 lanes contains each pair twice, so only half of its lanes are compared.
                let once = if turn == 8 { 0xff } else { 0xffff };
                all[count][turn - 1] = there & there.rotate_right(turn as u32) & once;
                turn += 1;
            }
            count += 1;
        }
        all
    };

    /// For each bit of a 64-bit result word, the positions of the two lanes that the bit compares, each counted from
    /// the first lane of its side.
    pub(in super::super) struct PairBits {
        i: [u8; 64],
        j: [u8; 64],
    }

    impl PairBits {
        /// The positions of lanes if bit k of the result word belongs to lane k.
        const LANES: [u8; 64] = {
            let mut lanes = [0; 64];
            let mut bit = 0;
            while bit < 64 {
                lanes[bit] = bit as u8;
                bit += 1;
            }
            lanes
        };
        /// The pairs of one row with the columns that come after it.
        pub(in super::super) const AFTER_A_ROW: Self = Self { i: [0; 64], j: Self::LANES };
        /// The pairs of one row with the columns that come before it.
        const BEFORE_A_ROW: Self = Self { i: Self::LANES, j: [0; 64] };
        /// The pairs of four rows with the sixteen columns that come before them.
        const BEFORE_FOUR: Self = {
            let (mut i, mut j) = ([0; 64], [0; 64]);
            let mut bit = 0;
            while bit < 64 {
                i[bit] = (bit % SIXTEEN) as u8;
                j[bit] = (bit / SIXTEEN) as u8;
                bit += 1;
            }
            Self { i, j }
        };

        /// The pairs of a register of sixteen lanes with its rotations by 1 to 4 lanes.
        const ROTATED_BY_1_TO_4: Self = Self::rotated(1);
        const ROTATED_BY_5_TO_8: Self = Self::rotated(5);

        /// Returns the pairs of a register with its rotations by `first` to `first + 3` lanes.
        const fn rotated(first: usize) -> Self {
            let (mut i, mut j) = ([0; 64], [0; 64]);
            let mut bit = 0;
            while bit < 64 {
                let (one, other) = (bit % SIXTEEN, (bit + first + bit / SIXTEEN) % SIXTEEN);
                i[bit] = if one < other { one } else { other } as u8;
                j[bit] = if one < other { other } else { one } as u8;
                bit += 1;
            }
            Self { i, j }
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(bytes: &[u8; 64]) -> __m512i {
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 64 bytes at any alignment; `bytes` is a live array of 64 bytes, and every bit pattern is valid.
        unsafe {
            _mm512_loadu_si512(bytes.as_ptr().cast())
        }
    }

    /// Appends a pair for each set bit of `near`. `bits` contains the positions of its two lanes. The ids `i` and `j`
    /// of the first lanes are added to them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    pub(in super::super) fn add_bits(near: u64, bits: &PairBits, (i, j): (u32, u32), found: &mut PairBuffer) {
        const TOGETHER: usize = 8;
        let firsts = _mm512_set1_epi64((u64::from(i) | u64::from(j) << 32).cast_signed());
        let count = near.count_ones() as usize;
        found.reserve(count.next_multiple_of(TOGETHER).max(TOGETHER));
        let [mut i, mut j] = [&bits.i, &bits.j].map(|bytes| _mm512_maskz_compress_epi8(near, load(bytes)));
        let mut at = found.len;
        found.len += count;
        // There are usually at most eight pairs, so the loop rarely runs twice.
        loop {
            let to: &mut [[u32; 2]] = &mut found.items[at..at + TOGETHER];
            let both = _mm_unpacklo_epi8(_mm512_castsi512_si128(i), _mm512_castsi512_si128(j));
            let eight = _mm512_add_epi32(firsts, _mm512_cvtepu8_epi32(both));
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: writes 64 bytes at any alignment; `to` is a live slice of eight pairs of 4-byte numbers, and every bit
            // pattern is a valid number.
            unsafe {
                _mm512_storeu_si512(to.as_mut_ptr().cast(), eight);
            }
            at += TOGETHER;
            if at >= found.len {
                return;
            }
            [i, j] = [i, j].map(|bytes| _mm512_alignr_epi64::<1>(bytes, bytes));
        }
    }

    /// Appends the near pairs among the first 16 lanes of `block`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn among(block: Lanes<'_>, limit: __m512i, found: &mut PairBuffer) {
        let there = &ROTATED[block.lanes.len().min(SIXTEEN)];
        let lanes = sixteen(block.lanes, 0);
        macro_rules! near {
            ($($turn:literal)*) => {[$({
                let turned = _mm512_alignr_epi32::<$turn>(lanes, lanes);
                let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, turned));
                _mm512_mask_cmple_epu32_mask(there[$turn - 1], ones, limit)
            }),*]};
        }
        let word = |[a, b, c, d]: [u16; 4]| {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
        };
        add_bits(word(near!(1 2 3 4)), &PairBits::ROTATED_BY_1_TO_4, (block.first, block.first), found);
        // With up to five lanes, the rotations by 1 to 4 already contain all pairs.
        if block.lanes.len() > 5 {
            add_bits(word(near!(5 6 7 8)), &PairBits::ROTATED_BY_5_TO_8, (block.first, block.first), found);
        }
    }

    /// Appends the near pairs of up to 16 columns with the rows, which come after the columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn few(columns: Lanes<'_>, rows: Lanes<'_>, limit: __m512i, found: &mut PairBuffer) {
        let lanes = sixteen(columns.lanes, 0);
        let there = u64::from(lanes_left(columns.lanes.len())) * 0x0001_0001_0001_0001;
        for (four, first) in rows.lanes.chunks(FOUR).zip((rows.first..).step_by(FOUR)) {
            let mut near = 0;
            for k in 0..FOUR {
                // If fewer than four rows remain, repeat the first row. Its extra results are masked out below.
                let row = _mm512_set1_epi32(four.get(k).unwrap_or(&four[0]).cast_signed());
                let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                near |= u64::from(_mm512_cmple_epu32_mask(ones, limit)) << (k * SIXTEEN);
            }
            near &= _bzhi_u64(there, (four.len() * SIXTEEN) as u32);
            add_bits(near, &PairBits::BEFORE_FOUR, (columns.first, first), found);
        }
    }

    /// Appends the near pairs of any number of rows with up to `16 R` columns. In a pair, the id of the row comes
    /// first. If `AFTER`, the rows come after the columns, and the id of the row comes second.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn tile<const R: usize, const AFTER: bool>(
        rows: Lanes<'_>,
        columns: Lanes<'_>,
        limit: __m512i,
        found: &mut PairBuffer,
    ) {
        let Lanes { lanes: columns, first } = columns;
        for (rows, from) in rows.lanes.chunks(TILE).zip((rows.first..).step_by(TILE)) {
            // No function is called after this reservation, so the columns can stay in registers.
            found.reserve(TILE * TILE);
            let lanes: [__m512i; R] = std::array::from_fn(|at| sixteen(columns, at * SIXTEEN));
            let there = _bzhi_u64(u64::MAX, columns.len() as u32);
            let (mut noted, mut count) = ([0_u8; TILE], 0);
            for (i, &row) in (0..).zip(rows) {
                let row = _mm512_set1_epi32(row.cast_signed());
                let ones = lanes.map(|lanes| _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row)));
                let min = ones.into_iter().reduce(|a, b| _mm512_min_epu32(a, b)).unwrap_or(limit);
                noted[count % TILE] = i;
                count += usize::from(_mm512_cmple_epu32_mask(min, limit) != 0);
            }
            // A row may have been recorded only because it is near the zeros past the last column; the mask `there` excludes
            // them.
            add_noted::<R, AFTER>(&noted[..count], (rows, from), (lanes, first), |_| there, limit, found);
        }
    }

    /// Appends the near pairs of the recorded rows with the columns. `noted` contains the positions of the rows.
    /// `counted` returns the mask of the columns with which a row may be paired. The id of the row comes first in a
    /// pair, or second if `AFTER`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn add_noted<const R: usize, const AFTER: bool>(
        noted: &[u8],
        (rows, from): (&[u32], u32),
        (lanes, first): ([__m512i; R], u32),
        counted: impl Fn(u8) -> u64,
        limit: __m512i,
        found: &mut PairBuffer,
    ) {
        for &i in noted {
            let row = _mm512_set1_epi32(rows[usize::from(i)].cast_signed());
            let mut near = 0;
            for (lanes, at) in lanes.into_iter().zip((0..).step_by(SIXTEEN)) {
                let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                near |= u64::from(_mm512_cmple_epu32_mask(ones, limit)) << at;
            }
            let row = from + u32::from(i);
            let near = near & counted(i);
            if AFTER {
                add_bits(near, &PairBits::BEFORE_A_ROW, (first, row), found);
            } else {
                add_bits(near, &PairBits::AFTER_A_ROW, (row, first), found);
            }
        }
    }

    /// Appends the near pairs among the 64 lanes of a full tile.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn triangle(all: &[u32; TILE], first: u32, limit: __m512i, found: &mut PairBuffer) {
        const R: usize = TILE / SIXTEEN;
        // No function is called after this reservation, so the columns can stay in registers.
        found.reserve(TILE * TILE / 2);
        let lanes: [__m512i; R] = std::array::from_fn(|at| sixteen(all, at * SIXTEEN));
        let (mut noted, mut count) = ([0_u8; TILE], 0);
        macro_rules! rows {
            ($($block:literal)*) => {$(
                for i in 0..SIXTEEN {
                    let row = _mm512_set1_epi32(all[$block * SIXTEEN + i].cast_signed());
                    let ones = |lanes| _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                    // Compare only with lanes after this row: the later lanes of its own register, and the later
                    // registers.
                    let mut near = _mm512_cmple_epu32_mask(ones(lanes[$block]), limit) & 0xfffe << i;
                    let others = lanes[$block + 1..].iter().map(|&lanes| ones(lanes));
                    if let Some(min) = others.reduce(|a, b| _mm512_min_epu32(a, b)) {
                        near |= _mm512_cmple_epu32_mask(min, limit);
                    }
                    noted[count % TILE] = ($block * SIXTEEN + i) as u8;
                    count += usize::from(near != 0);
                }
            )*};
        }
        rows!(0 1 2 3);
        add_noted::<R, false>(&noted[..count], (all, first), (lanes, first), |i| !1 << i, limit, found);
    }

    /// Calls `tile` with the smallest number of registers that fits all columns, at most [`TILE`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn tile_of(rows: Lanes<'_>, columns: Lanes<'_>, limit: __m512i, found: &mut PairBuffer) {
        match columns.lanes.len() {
            0 => {}
            1..=16 => tile::<1, false>(rows, columns, limit, found),
            17..=32 => tile::<2, false>(rows, columns, limit, found),
            33..=48 => tile::<3, false>(rows, columns, limit, found),
            _ => tile::<4, false>(rows, columns, limit, found),
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    pub(in super::super) fn pairs32_avx512(all: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
        let limit = _mm512_set1_epi32(radius.min(32).cast_signed());
        let count = all.lanes.len();
        // Most buckets have few lanes, for which the loops below would cost more than the comparisons.
        if count <= 2 * SIXTEEN {
            let [one, two] = [all.part(0, SIXTEEN), all.part(SIXTEEN, count)];
            among(one, limit, found);
            if !two.lanes.is_empty() {
                few(one, two, limit, found);
                among(two, limit, found);
            }
            return;
        }
        // Compare full tiles of columns with all later rows. Compare the lanes after the last full tile in blocks of
        // sixteen.
        for start in (0..count).step_by(TILE) {
            let columns = all.part(start, start + TILE);
            if let Ok(full) = columns.lanes.try_into() {
                tile::<{ TILE / SIXTEEN }, true>(all.part(start + TILE, count), columns, limit, found);
                triangle(full, columns.first, limit, found);
                continue;
            }
            for at in (0..columns.lanes.len()).step_by(SIXTEEN) {
                let block = columns.part(at, at + SIXTEEN);
                let others = columns.part(at + SIXTEEN, TILE);
                among(block, limit, found);
                if others.lanes.len() <= SIXTEEN {
                    few(block, others, limit, found);
                } else {
                    tile_of(block, others, limit, found);
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    pub(in super::super) fn across32_avx512(
        left: Lanes<'_>,
        right: Lanes<'_>,
        radius: u32,
        found: &mut PairBuffer,
    ) {
        let limit = _mm512_set1_epi32(radius.min(32).cast_signed());
        for start in (0..right.lanes.len()).step_by(TILE) {
            tile_of(left, right.part(start, start + TILE), limit, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, Level};
    use super::*;
    use crate::splitmix::SplitMix;

    /// The ids of the first left and of the first right lane.
    const LEFT: u32 = 1 << 31;
    const RIGHT: u32 = 70_000;

    /// The pairs found: near pairs among the left lanes, and near pairs of a left and a right lane.
    type PairsKernel = [Vec<[u32; 2]>; 2];

    struct BothOrders<'a>(&'a [u32], &'a [u32], u32, &'a mut [PairBuffer; 2]);

    impl Kernel for BothOrders<'_> {
        type Output = PairsKernel;
        fn run<S: Simd>(self, simd: S) -> PairsKernel {
            let [inside, across] = self.3;
            inside.clear();
            across.clear();
            let [left, right] =
                [(self.0, LEFT), (self.1, RIGHT)].map(|(lanes, first)| Lanes { lanes, first });
            pairs32(simd, left, self.2, inside);
            across32(simd, left, right, self.2, across);
            [inside, across].map(|found| {
                let mut pairs = found.pairs().to_vec();
                pairs.sort_unstable();
                pairs
            })
        }
    }

    /// Computes the expected pairs by comparing all lanes one by one.
    fn defined(left: &[u32], right: &[u32], radius: u32) -> PairsKernel {
        let near = |a: &u32, b: &u32| (a ^ b).count_ones() <= radius;
        let all = |from: &dyn Fn(usize) -> usize, (right, first): (&[u32], u32)| {
            let mut found = Vec::new();
            for (i, a) in left.iter().enumerate() {
                let others = right.iter().enumerate().skip(from(i)).filter(|(_, b)| near(a, b));
                found.extend(others.map(|(j, _)| [LEFT + i as u32, first + j as u32]));
            }
            found
        };
        [all(&|i| i + 1, (left, LEFT)), all(&|_| 0, (right, RIGHT))]
    }

    #[test]
    fn every_level_finds_all_near_pairs_for_any_lengths() {
        let mut random = SplitMix(11);
        let mut pairs = 0;
        let sizes = (0..70)
            .chain([127, 128, 129, 200])
            .flat_map(|left| [0, 1, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100].map(|right| (left, right)));
        // The columns fill several tiles, the last one partly, and so do the rows.
        let large = [(129, 200), (200, 129), (300, 1)];
        // The buffers are reused for all sizes, as in joins. Each call must remove the pairs of the previous call.
        let mut both = [PairBuffer::default(), PairBuffer::default()];
        for (left, right) in sizes.chain(large) {
            // Lanes with few set bits, so that some are near each other. One value must be 0, because the unused lanes
            // of registers are 0, too.
            let mut lanes = |count: usize| -> Vec<u32> {
                let mut few = || [random.next(), random.next(), random.next()].iter().fold(!0, |a, b| a & b);
                (0..count).map(|_| few() as u32).collect()
            };
            let (left, right) = (lanes(left), lanes(right));
            for radius in [0, 3, 6, 31, 32, 40] {
                let expected = defined(&left, &right, radius);
                pairs += expected[0].len();
                for level in Level::ALL {
                    let found = level.dispatch(BothOrders(&left, &right, radius, &mut both));
                    assert!(found == expected, "{level} {} {} {radius}", left.len(), right.len());
                }
            }
        }
        assert!(pairs > 1000);
    }
}
