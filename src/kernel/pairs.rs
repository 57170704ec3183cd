//! Which pairs of lanes are near: the inner loop of joins.
//!
//! Lanes are 32 bits of fingerprints that share a bucket of a table. What a pair costs is an exclusive or, a count of
//! ones and a comparison for each vector of lanes, and a branch for every few of them; pairs that are near are few, and
//! are collected. The plain version is the definition.
//!
//! AVX-512 keeps up to 64 lanes in registers and goes through the others with them. It notes, without a branch, which
//! of these are near any, and looks again at those: a branch that one pair in ten takes costs more than the pairs.
//! Sixteen lanes meet each other as one register and its rotations. AVX2 counts the ones of half bytes in a register
//! (Mula, Kurz and Lemire 2018, as [`near`](super::near) does).

use super::{Kernel, Level, Simd};

/// Pairs that were found. Room is made ahead and kept, so that the loops that add pairs call nothing.
#[derive(Debug, Default)]
pub struct Found {
    /// What is behind `len` is of no meaning.
    items: Vec<(u32, u32)>,
    len: usize,
}

impl Found {
    /// Forgets all pairs.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The pairs, in no particular order.
    #[must_use]
    #[inline(always)]
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.items[..self.len]
    }

    /// Makes room for so many more pairs.
    #[inline(always)]
    fn reserve(&mut self, more: usize) {
        if self.items.len() - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.items.resize((self.len + more).max(2 * self.items.len()), (0, 0));
    }

    /// Adds a pair for which there is room.
    #[inline(always)]
    fn add(&mut self, i: u32, j: u32) {
        self.items[self.len] = (i, j);
        self.len += 1;
    }
}

/// Adds all pairs `(i, j)`, `i < j`, of lanes that differ in at most `radius` bits, in no particular
/// order.
///
/// Cost: n^2 / 2 comparisons, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn pairs32<S: Simd>(simd: S, lanes: &[u32], radius: u32, found: &mut Found) {
    simd.pairs32(lanes, radius, found);
}

/// Adds all pairs `(i, j)` of a lane of `left` and a lane of `right` that differ in at most `radius` bits, in no
/// particular order.
///
/// Cost: `left` x `right` comparisons, 16 at a time with AVX-512, 8 with AVX2.
#[inline(always)]
pub fn across32<S: Simd>(simd: S, left: &[u32], right: &[u32], radius: u32, found: &mut Found) {
    simd.across32(left, right, radius, found);
}

/// Adds the near pairs of lanes by the instructions of `level`: as [`across32`], or as [`pairs32`] without others.
pub fn near_lanes(level: Level, lanes: &[u32], others: Option<&[u32]>, radius: u32, found: &mut Found) {
    struct Lanes<'a>(&'a [u32], Option<&'a [u32]>, u32, &'a mut Found);
    impl Kernel for Lanes<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            match self.1 {
                None => pairs32(simd, self.0, self.2, self.3),
                Some(others) => across32(simd, self.0, others, self.2, self.3),
            }
        }
    }
    level.dispatch(Lanes(lanes, others, radius, found));
}

/// The plain version of [`Simd::pairs32`].
#[inline(always)]
pub(super) fn pairs32_portable(lanes: &[u32], radius: u32, found: &mut Found) {
    for (i, &lane) in lanes.iter().enumerate() {
        row_portable(i as u32, lane, &lanes[i + 1..], i as u32 + 1, radius, found);
    }
}

/// The plain version of [`Simd::across32`].
#[inline(always)]
pub(super) fn across32_portable(left: &[u32], right: &[u32], radius: u32, found: &mut Found) {
    for (i, &lane) in (0..).zip(left) {
        row_portable(i, lane, right, 0, radius, found);
    }
}

/// Lanes that the plain version looks at together before branching.
const STEP: usize = 16;

/// Adds `(i, first + j)` for each lane `j` that is near `lane`.
#[inline(always)]
fn row_portable(i: u32, lane: u32, lanes: &[u32], first: u32, radius: u32, found: &mut Found) {
    for (step, at) in lanes.chunks(STEP).zip((first..).step_by(STEP)) {
        // No branch inside: the compiler turns this into vector code.
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
        __m256i, __m512i, _bzhi_u32, _bzhi_u64, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_xor_si256,
        _mm512_alignr_epi32, _mm512_cmple_epu32_mask, _mm512_mask_cmple_epu32_mask, _mm512_maskz_loadu_epi32,
        _mm512_min_epu32, _mm512_popcnt_epi32, _mm512_set1_epi32, _mm512_xor_si512,
    };

    use super::super::near::x86::{ones_of_bytes, sums_below};
    use super::Found;

    /// Lanes of an AVX2 register.
    const EIGHT: usize = 8;
    /// Lanes of an AVX-512 register.
    const SIXTEEN: usize = 16;
    /// Lanes of a tile's columns.
    const TILE: usize = 4 * SIXTEEN;

    /// Adds `(i, first + j)` for each bit `j` that is set.
    #[inline(always)]
    fn add(mut mask: u32, i: u32, first: usize, found: &mut Found) {
        found.reserve(32);
        while mask != 0 {
            found.add(i, first as u32 + mask.trailing_zeros());
            mask &= mask - 1;
        }
    }

    /// Eight lanes from `at`.
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

    /// Lanes from `from` on that are near `lane`.
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn row_avx2(i: u32, lane: u32, lanes: &[u32], from: usize, radius: u32, found: &mut Found) {
        let n = lanes.len();
        let limit = _mm256_set1_epi32(radius.min(32).cast_signed() + 1);
        let query = _mm256_set1_epi32(lane.cast_signed());
        let mask =
            |at: usize| sums_below(limit, ones_of_bytes(_mm256_xor_si256(eight(lanes, at), query))) as u32;
        let mut at = from;
        while at + 2 * EIGHT <= n {
            let both = mask(at) | mask(at + EIGHT) << EIGHT;
            if both != 0 {
                add(both, i, at, found);
            }
            at += 2 * EIGHT;
        }
        if at + EIGHT <= n {
            add(mask(at), i, at, found);
            at += EIGHT;
        }
        if at < n && n >= EIGHT {
            // The last eight, of which some have been seen.
            let last = n - EIGHT;
            add(mask(last) >> (at - last), i, at, found);
        } else if at < n {
            super::row_portable(i, lane, &lanes[at..], at as u32, radius, found);
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn pairs32_avx2(lanes: &[u32], radius: u32, found: &mut Found) {
        for (i, &lane) in lanes.iter().enumerate() {
            row_avx2(i as u32, lane, lanes, i + 1, radius, found);
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    pub(in super::super) fn across32_avx2(left: &[u32], right: &[u32], radius: u32, found: &mut Found) {
        for (i, &lane) in (0..).zip(left) {
            row_avx2(i, lane, right, 0, radius, found);
        }
    }

    /// The lanes of a register that begins `left` lanes before the end.
    #[target_feature(enable = "bmi2")]
    #[inline]
    fn lanes_left(left: usize) -> u16 {
        // An index of 32 and more leaves all.
        _bzhi_u32(0xffff, left.min(SIXTEEN) as u32) as u16
    }

    /// The lanes from `at` on that there are, up to 16; 0 for the others.
    #[target_feature(enable = "avx512f,bmi2")]
    #[inline]
    fn sixteen(lanes: &[u32], at: usize) -> __m512i {
        let rest: &[u32] = lanes.get(at..).unwrap_or_default();
        let there = lanes_left(rest.len());
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: a masked load reads the lanes named by its mask only, at any alignment, and does not fault for the
        // others. `there` names as many as `rest`, a live slice of numbers of four bytes, has, or 16 if it has more.
        unsafe {
            _mm512_maskz_loadu_epi32(there, rest.as_ptr().cast())
        }
    }

    /// The pairs of the lanes of a register with those of its rotation by 1 to 8 lanes, bit i for lane i, that are
    /// looked at where there are so many lanes: each pair once.
    static ROTATED: [[u16; 8]; SIXTEEN + 1] = {
        let mut all = [[0; 8]; SIXTEEN + 1];
        let mut count = 0;
        while count <= SIXTEEN {
            let there = ((1_u32 << count) - 1) as u16;
            let mut turn = 1;
            while turn <= 8 {
                // A rotation by half pairs each lane twice.
                let once = if turn == 8 { 0xff } else { 0xffff };
                all[count][turn - 1] = there & there.rotate_right(turn as u32) & once;
                turn += 1;
            }
            count += 1;
        }
        all
    };

    /// Adds `(from + i, from + j)` for the near pairs of the first 16 lanes.
    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,bmi2")]
    #[inline]
    fn among(lanes: &[u32], from: u32, limit: __m512i, found: &mut Found) {
        found.reserve(SIXTEEN * (SIXTEEN - 1) / 2);
        let there = &ROTATED[lanes.len().min(SIXTEEN)];
        let lanes = sixteen(lanes, 0);
        macro_rules! near {
            ($($turn:literal)*) => {[$({
                let turned = _mm512_alignr_epi32::<$turn>(lanes, lanes);
                let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, turned));
                _mm512_mask_cmple_epu32_mask(there[$turn - 1], ones, limit)
            }),*]};
        }
        let [a, b, c, d, e, f, g, h] = near!(1 2 3 4 5 6 7 8).map(u64::from);
        // All in two words: how often each loop goes round is what the processor cannot foresee.
        let words = [a | b << 16 | c << 32 | d << 48, e | f << 16 | g << 32 | h << 48];
        for (mut near, turn) in words.into_iter().zip([1, 5]) {
            while near != 0 {
                let bit = near.trailing_zeros();
                let (i, turn) = (bit % SIXTEEN as u32, turn + bit / SIXTEEN as u32);
                let j = (i + turn) % SIXTEEN as u32;
                found.add(from + i.min(j), from + i.max(j));
                near &= near - 1;
            }
        }
    }

    /// Adds `(from + i, first + j)` for the near pairs of any number of rows and up to `16 R` columns; the other way round
    /// if rows are `BEHIND` columns.
    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,bmi2")]
    #[inline]
    fn tile<const R: usize, const BEHIND: bool>(
        rows: &[u32],
        columns: &[u32],
        (from, first): (u32, u32),
        limit: __m512i,
        found: &mut Found,
    ) {
        for (rows, from) in rows.chunks(TILE).zip((from..).step_by(TILE)) {
            // Nothing is called from here on, so that the columns stay in registers.
            found.reserve(TILE * TILE);
            let lanes: [__m512i; R] = std::array::from_fn(|at| sixteen(columns, at * SIXTEEN));
            let there = _bzhi_u64(u64::MAX, columns.len() as u32);
            let (mut noted, mut count) = ([0_u8; TILE], 0);
            for (i, &row) in (0..).zip(rows) {
                let row = _mm512_set1_epi32(row.cast_signed());
                let ones = lanes.map(|lanes| _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row)));
                let least = ones.into_iter().reduce(|a, b| _mm512_min_epu32(a, b)).unwrap_or(limit);
                noted[count % TILE] = i;
                count += usize::from(_mm512_cmple_epu32_mask(least, limit) != 0);
            }
            for &i in &noted[..count] {
                let row = _mm512_set1_epi32(rows[usize::from(i)].cast_signed());
                let mut near = 0;
                for (lanes, at) in lanes.into_iter().zip((0..).step_by(SIXTEEN)) {
                    let ones = _mm512_popcnt_epi32(_mm512_xor_si512(lanes, row));
                    near |= u64::from(_mm512_cmple_epu32_mask(ones, limit)) << at;
                }
                // Lanes that are not there may have been near.
                near &= there;
                while near != 0 {
                    let (i, j) = (from + u32::from(i), first + near.trailing_zeros());
                    if BEHIND {
                        found.add(j, i);
                    } else {
                        found.add(i, j);
                    }
                    near &= near - 1;
                }
            }
        }
    }

    /// The tile for as many columns, up to [`TILE`].
    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,bmi2")]
    #[inline]
    fn tile_of(rows: &[u32], columns: &[u32], place: (u32, u32), limit: __m512i, found: &mut Found) {
        match columns.len() {
            0 => {}
            1..=16 => tile::<1, false>(rows, columns, place, limit, found),
            17..=32 => tile::<2, false>(rows, columns, place, limit, found),
            33..=48 => tile::<3, false>(rows, columns, place, limit, found),
            _ => tile::<4, false>(rows, columns, place, limit, found),
        }
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,bmi2")]
    #[inline]
    pub(in super::super) fn pairs32_avx512(lanes: &[u32], radius: u32, found: &mut Found) {
        let limit = _mm512_set1_epi32(radius.min(32).cast_signed());
        // What is in registers is full wherever it can be: the rest of a number of lanes goes through them.
        let behind = |end: usize| (&lanes[end.min(lanes.len())..], end as u32);
        for (columns, first) in lanes.chunks(TILE).zip((0_u32..).step_by(TILE)) {
            let (rows, from) = behind(first as usize + TILE);
            tile::<{ TILE / SIXTEEN }, true>(rows, columns, (from, first), limit, found);
            for (block, at) in columns.chunks(SIXTEEN).zip((0..).step_by(SIXTEEN)) {
                let (others, from) =
                    (&columns[columns.len().min(at + SIXTEEN)..], first + (at + SIXTEEN) as u32);
                let first = first + at as u32;
                among(block, first, limit, found);
                if others.len() <= SIXTEEN {
                    tile::<1, true>(others, block, (from, first), limit, found);
                } else {
                    tile_of(block, others, (first, from), limit, found);
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,bmi2")]
    #[inline]
    pub(in super::super) fn across32_avx512(left: &[u32], right: &[u32], radius: u32, found: &mut Found) {
        let limit = _mm512_set1_epi32(radius.min(32).cast_signed());
        for (columns, first) in right.chunks(TILE).zip((0..).step_by(TILE)) {
            tile_of(left, columns, (0, first), limit, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, Level};
    use super::*;
    use crate::splitmix::SplitMix;

    /// Those inside and those across.
    type Pairs = [Vec<(u32, u32)>; 2];

    struct Both<'a>(&'a [u32], &'a [u32], u32, &'a mut [Found; 2]);

    impl Kernel for Both<'_> {
        type Output = Pairs;
        fn run<S: Simd>(self, simd: S) -> Pairs {
            let [inside, across] = self.3;
            inside.clear();
            across.clear();
            pairs32(simd, self.0, self.2, inside);
            across32(simd, self.0, self.1, self.2, across);
            [inside, across].map(|found| {
                let mut pairs = found.pairs().to_vec();
                pairs.sort_unstable();
                pairs
            })
        }
    }

    /// The definition, without steps.
    fn defined(left: &[u32], right: &[u32], radius: u32) -> Pairs {
        let near = |a: &u32, b: &u32| (a ^ b).count_ones() <= radius;
        let all = |from: &dyn Fn(usize) -> usize, right: &[u32]| {
            let mut found = Vec::new();
            for (i, a) in left.iter().enumerate() {
                let others = right.iter().enumerate().skip(from(i)).filter(|(_, b)| near(a, b));
                found.extend(others.map(|(j, _)| (i as u32, j as u32)));
            }
            found
        };
        [all(&|i| i + 1, left), all(&|_| 0, right)]
    }

    #[test]
    fn each_level_finds_the_pairs_of_the_definition_whatever_the_lengths() {
        let mut random = SplitMix(11);
        let mut pairs = 0;
        let sizes = (0..70)
            .chain([127, 128, 129, 200])
            .flat_map(|left| [0, 1, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100].map(|right| (left, right)));
        // Several tiles of columns, the last one ragged, for several of rows.
        let large = [(129, 200), (200, 129), (300, 1)];
        // One for all, as joins have it: what was found before must be forgotten.
        let mut both = [Found::default(), Found::default()];
        for (left, right) in sizes.chain(large) {
            // Few ones, so that some are near and some are not, and 0, which the absent lanes would be.
            let mut lanes = |count: usize| -> Vec<u32> {
                let mut few = || [random.next(), random.next(), random.next()].iter().fold(!0, |a, b| a & b);
                (0..count).map(|_| few() as u32).collect()
            };
            let (left, right) = (lanes(left), lanes(right));
            for radius in [0, 3, 6, 31, 32, 40] {
                let expected = defined(&left, &right, radius);
                pairs += expected[0].len();
                for level in Level::ALL {
                    let found = level.dispatch(Both(&left, &right, radius, &mut both));
                    assert!(found == expected, "{level} {} {} {radius}", left.len(), right.len());
                }
            }
        }
        assert!(pairs > 1000);
    }
}
