//! Finds the pairs of near lanes: the inner loop of joins.
//!
//! Lanes are 32 bits of fingerprints in the same bucket of a table. For each vector of lanes, comparing pairs costs an
//! exclusive or, a population count and a comparison; there is one branch for every few vectors. Near pairs are few, and
//! are collected in a buffer. The plain version is the reference.
//!
//! The AVX-512 version keeps up to 64 lanes in registers and compares the other lanes with them. It notes, without a
//! branch, which of the other lanes are near any of the 64, and processes those lanes again: a branch that is taken for
//! one pair in ten costs more than the pairs. Sixteen lanes are compared with each other as one register and its
//! rotations. The near pairs are the set bits of a word; one instruction compresses their indices, so that no loop over
//! the bits is needed. The AVX2 version counts the set bits of half bytes in a register (Mula, Kurz and Lemire 2018, as
//! [`near`](super::near) does).

use super::{Kernel, Level, Simd};

/// Lanes with consecutive ids.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<'a> {
    /// 32 bits of each fingerprint.
    pub lanes: &'a [u32],
    /// The id of the first lane.
    pub first: u32,
}

impl<'a> Lanes<'a> {
    /// The lanes in `start..end`, or to the last lane if `end` is greater.
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
    /// Lanes with ids from 0.
    fn from(lanes: &'a [u32]) -> Self {
        Self { lanes, first: 0 }
    }
}

/// A buffer of found pairs. Capacity is reserved in advance, so that the loops that add pairs call no function.
#[derive(Debug, Default)]
pub struct PairBuffer {
    /// Entries past `len` are undefined.
    items: Vec<[u32; 2]>,
    len: usize,
}

impl PairBuffer {
    /// Removes all pairs.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The pairs, in no particular order.
    #[must_use]
    #[inline(always)]
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.items[..self.len]
    }

    /// Reserves capacity for `more` further pairs.
    #[inline(always)]
    fn reserve(&mut self, more: usize) {
        if self.items.len() - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.items.resize((self.len + more).max(2 * self.items.len()), [0; 2]);
    }

    /// Adds a pair; there must be capacity.
    #[inline(always)]
    fn add(&mut self, i: u32, j: u32) {
        self.items[self.len] = [i, j];
        self.len += 1;
    }
}

/// Adds the ids `[i, j]`, `i < j`, of all pairs of lanes that differ in at most `radius` bits, in no particular
/// order.
///
/// Cost: n^2 / 2 comparisons, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn pairs32<S: Simd>(simd: S, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    simd.pairs32(lanes, radius, found);
}

/// Adds the ids `[i, j]` of all pairs of a lane of `left` and a lane of `right` that differ in at most `radius`
/// bits, in no particular order.
///
/// Cost: `left` x `right` comparisons, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn across32<S: Simd>(simd: S, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    simd.across32(left, right, radius, found);
}

/// Adds the near pairs of lanes by the instructions of `level`: as [`across32`], or as [`pairs32`] if `others` is `None`.
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

/// The reference for [`Simd::pairs32`].
#[inline(always)]
pub(super) fn pairs32_portable(all: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (at, (i, lane)) in (1..).zip(all.numbered()) {
        row_portable(i, lane, Lanes { lanes: &all.lanes[at..], first: i + 1 }, radius, found);
    }
}

/// The reference for [`Simd::across32`].
#[inline(always)]
pub(super) fn across32_portable(left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (i, lane) in left.numbered() {
        row_portable(i, lane, right, radius, found);
    }
}

/// Number of lanes that the plain version tests together before branching.
const STEP: usize = 16;

/// Adds `[i, j]` for each lane of `others` that is near `lane`, where j is its id.
#[inline(always)]
fn row_portable(i: u32, lane: u32, others: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
    for (step, at) in others.lanes.chunks(STEP).zip((others.first..).step_by(STEP)) {
        // No branch inside the loop, so that the compiler vectorizes it.
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
    /// Number of columns in a tile.
    const TILE: usize = 4 * SIXTEEN;
    /// Number of rows that are compared with sixteen columns together, so that there is one bit of a word for each pair.
    const FOUR: usize = 4;

    /// Adds `[i, first + j]` for each set bit `j`.
    #[inline(always)]
    fn add(mut mask: u32, i: u32, first: u32, found: &mut PairBuffer) {
        found.reserve(32);
        while mask != 0 {
            found.add(i, first + mask.trailing_zeros());
            mask &= mask - 1;
        }
    }

    /// Loads eight lanes from `at` on.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn eight(lanes: &[u32], at: usize) -> __m256i {
        let eight: &[u32] = &lanes[at..at + EIGHT];
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: reads 32 bytes at any alignment; `eight` is a live slice of eight numbers of four bytes, and any
        // bits are a valid `__m256i`.
        unsafe {
            _mm256_loadu_si256(eight.as_ptr().cast())
        }
    }

    /// Adds the pairs of `lane` and the lanes from position `from` on that are near it.
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
            // The last eight lanes; the bits of those already processed are shifted out.
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

    /// The mask of the existing lanes in a register that begins `left` lanes before the end.
    #[target_feature(enable = "bmi2")]
    #[inline]
    fn lanes_left(left: usize) -> u16 {
        // An index of 16 or more keeps all bits.
        _bzhi_u32(0xffff, left.min(SIXTEEN) as u32) as u16
    }

    /// Loads up to 16 lanes from `at` on; lanes past the end are 0.
    #[target_feature(enable = "avx512f,bmi2")]
    #[inline]
    fn sixteen(lanes: &[u32], at: usize) -> __m512i {
        let rest: &[u32] = lanes.get(at..).unwrap_or_default();
        let there = lanes_left(rest.len());
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: a masked load reads only the lanes whose mask bits are set, at any alignment, and does not fault for
        // the others. `there` has as many bits as `rest`, a live slice of numbers of four bytes, has lanes, or 16 if
        // it has more.
        unsafe {
            _mm512_maskz_loadu_epi32(there, rest.as_ptr().cast())
        }
    }

    /// For each number of lanes, the lanes of a register to compare with its rotations by 1 to 8 lanes, bit i for lane
    /// i, so that each pair is compared once.
    static ROTATED: [[u16; 8]; SIXTEEN + 1] = {
        let mut all = [[0; 8]; SIXTEEN + 1];
        let mut count = 0;
        while count <= SIXTEEN {
            let there = ((1_u32 << count) - 1) as u16;
            let mut turn = 1;
            while turn <= 8 {
                // A rotation by half of the lanes pairs each lane twice.
                let once = if turn == 8 { 0xff } else { 0xffff };
                all[count][turn - 1] = there & there.rotate_right(turn as u32) & once;
                turn += 1;
            }
            count += 1;
        }
        all
    };

    /// For each bit of a word, the indices of its pair, each relative to the first lane of its side.
    struct PairBits {
        i: [u8; 64],
        j: [u8; 64],
    }

    impl PairBits {
        /// The bits are lanes of one side.
        const LANES: [u8; 64] = {
            let mut lanes = [0; 64];
            let mut bit = 0;
            while bit < 64 {
                lanes[bit] = bit as u8;
                bit += 1;
            }
            lanes
        };
        /// The pairs of a row with the lanes after it.
        const AFTER_A_ROW: Self = Self { i: [0; 64], j: Self::LANES };
        /// The pairs of a row with the lanes before it.
        const BEFORE_A_ROW: Self = Self { i: Self::LANES, j: [0; 64] };
        /// The pairs of four rows with the sixteen lanes before each.
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

        /// The pairs of sixteen lanes with their rotations.
        const ROTATED_BY_1_TO_4: Self = Self::rotated(1);
        const ROTATED_BY_5_TO_8: Self = Self::rotated(5);

        /// The pairs for rotations by `first` lanes, and by up to three more.
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
        // SAFETY: reads 64 bytes at any alignment; `bytes` is a live array of 64 bytes, and any bits are valid.
        unsafe {
            _mm512_loadu_si512(bytes.as_ptr().cast())
        }
    }

    /// Adds a pair for each set bit of `near`; `bits` has the ids of each pair relative to the ids of the first lanes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn add_bits(near: u64, bits: &PairBits, (i, j): (u32, u32), found: &mut PairBuffer) {
        const TOGETHER: usize = 8;
        let firsts = _mm512_set1_epi64((u64::from(i) | u64::from(j) << 32).cast_signed());
        let count = near.count_ones() as usize;
        found.reserve(count.next_multiple_of(TOGETHER).max(TOGETHER));
        let [mut i, mut j] = [&bits.i, &bits.j].map(|bytes| _mm512_maskz_compress_epi8(near, load(bytes)));
        let mut at = found.len;
        found.len += count;
        // Rarely repeated.
        loop {
            let to: &mut [[u32; 2]] = &mut found.items[at..at + TOGETHER];
            let both = _mm_unpacklo_epi8(_mm512_castsi512_si128(i), _mm512_castsi512_si128(j));
            let eight = _mm512_add_epi32(firsts, _mm512_cvtepu8_epi32(both));
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: writes 64 bytes at any alignment; `to` is a live slice of eight times two numbers of four bytes,
            // and any bits are valid numbers.
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

    /// Adds the near pairs among the first 16 lanes.
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
        // Rotations by 1 to 4 already compare all pairs of up to five lanes.
        if block.lanes.len() > 5 {
            add_bits(word(near!(5 6 7 8)), &PairBits::ROTATED_BY_5_TO_8, (block.first, block.first), found);
        }
    }

    /// Adds the near pairs of up to 16 columns with the rows after them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn few(columns: Lanes<'_>, rows: Lanes<'_>, limit: __m512i, found: &mut PairBuffer) {
        let lanes = sixteen(columns.lanes, 0);
        let there = u64::from(lanes_left(columns.lanes.len())) * 0x0001_0001_0001_0001;
        for (four, first) in rows.lanes.chunks(FOUR).zip((rows.first..).step_by(FOUR)) {
            let mut near = 0;
            for k in 0..FOUR {
                // A missing row is replaced by the first, and its results are dropped.
                let row = _mm512_set1_epi32(four.get(k).unwrap_or(&four[0]).cast_signed());
                let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                near |= u64::from(_mm512_cmple_epu32_mask(ones, limit)) << (k * SIXTEEN);
            }
            near &= _bzhi_u64(there, (four.len() * SIXTEEN) as u32);
            add_bits(near, &PairBits::BEFORE_FOUR, (columns.first, first), found);
        }
    }

    /// Adds the near pairs of any number of rows and up to `16 R` columns. The id of the row is the first of the pair,
    /// or the second if `AFTER`, that is, if rows come after columns.
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
            // No function is called from here on, so that the columns stay in registers.
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
            // Rows may have been noted because they are near lanes past the end, which `there` excludes.
            add_noted::<R, AFTER>(&noted[..count], (rows, from), (lanes, first), |_| there, limit, found);
        }
    }

    /// Adds the near pairs of the noted rows, given by their positions, with the columns in the mask `counted`. The id
    /// of the row is the first of the pair, or the second if `AFTER`.
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

    /// Adds the near pairs among the lanes of a full tile.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt")]
    #[inline]
    fn triangle(all: &[u32; TILE], first: u32, limit: __m512i, found: &mut PairBuffer) {
        const R: usize = TILE / SIXTEEN;
        // No function is called from here on, so that the columns stay in registers.
        found.reserve(TILE * TILE / 2);
        let lanes: [__m512i; R] = std::array::from_fn(|at| sixteen(all, at * SIXTEEN));
        let (mut noted, mut count) = ([0_u8; TILE], 0);
        macro_rules! rows {
            ($($block:literal)*) => {$(
                for i in 0..SIXTEEN {
                    let row = _mm512_set1_epi32(all[$block * SIXTEEN + i].cast_signed());
                    let ones = |lanes| _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                    // The lanes after this row, in its own register and in the later ones.
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

    /// Calls the smallest tile that has enough columns, up to [`TILE`].
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
        // Usually there are few lanes; the loops below would cost more than the comparisons.
        if count <= 2 * SIXTEEN {
            let [one, two] = [all.part(0, SIXTEEN), all.part(SIXTEEN, count)];
            among(one, limit, found);
            if !two.lanes.is_empty() {
                few(one, two, limit, found);
                among(two, limit, found);
            }
            return;
        }
        // Registers are full wherever possible; the remaining lanes are compared with them.
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

    /// The ids of the first lanes.
    const LEFT: u32 = 1 << 31;
    const RIGHT: u32 = 70_000;

    /// The near pairs among the left lanes, and across left and right.
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

    /// The expected result, by the definition.
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
    fn each_level_finds_the_pairs_of_the_definition_for_any_lengths() {
        let mut random = SplitMix(11);
        let mut pairs = 0;
        let sizes = (0..70)
            .chain([127, 128, 129, 200])
            .flat_map(|left| [0, 1, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100].map(|right| (left, right)));
        // Several tiles of columns, the last one partly filled, for several tiles of rows.
        let large = [(129, 200), (200, 129), (300, 1)];
        // One buffer for all sizes, as in joins: previous pairs must be cleared.
        let mut both = [PairBuffer::default(), PairBuffer::default()];
        for (left, right) in sizes.chain(large) {
            // Few set bits, so that some lanes are near and some are not; 0 is also the value of absent lanes.
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
