//! Finds the near pairs in a bucket: compares all pairs directly or, if there are many, divides the bucket further first.
//!
//! The fingerprints of a bucket agree in some bits. In a small bucket, all pairs are compared in 32 of the remaining
//! bits, and the pairs within the radius there are compared in all bits. A large bucket is divided in the same way as
//! the whole input: the bits in which its fingerprints differ are split into k + 1 groups for a radius of k bits, and
//! the fingerprints are distributed to buckets by each group in turn. A near pair agrees in at least one group, and is
//! reported for the first such group. Real data often has many fingerprints with an equal block. Once their bucket is
//! divided, these fingerprints cost as much as the same number of shorter random ones. A bucket is divided only if the
//! sizes of the new buckets show that this at least halves the comparisons. The other large buckets are not divided:
//! most of their pairs differ in few bits.

use std::borrow::Cow;
use std::ops::Range;

use zerocopy::IntoBytes;

use super::rows::{Row, ShortRows, TableRow};
use super::table::{Parity, low_bits};
use twindex::error::Result;
use twindex_kernel::{
    CACHE_LINE, Kernel, Lanes, Level, PairBuffer, Simd, across32, near_lanes, pairs32, prefetch_ahead,
};

/// Number of pairs passed to the callback at once, and number of fingerprints selected at once.
pub(super) const TOGETHER: usize = 1 << 12;

/// Two fingerprints within the radius, given by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearPair {
    /// The smaller number if both fingerprints are from the same input, otherwise the number of the left fingerprint.
    pub a: u32,
    /// The larger number if both fingerprints are from the same input, otherwise the number of the right fingerprint.
    pub b: u32,
    /// The number of bits in which the fingerprints differ.
    pub distance: u32,
}

/// A sequence of fingerprints with their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slice<'a> {
    /// Rows of one part of a table, whose fingerprints are all rotated left by `turn` bits. `leads` is the mask of the
    /// bits that select the part.
    Rows { rows: &'a [Row], turn: u32, leads: u64 },
    /// Short rows of one part of a table.
    Short(ShortRows<'a>),
    /// Ascending fingerprints, numbered consecutively from `first` on.
    Ascending { values: &'a [u64], first: u32 },
}

impl Default for Slice<'_> {
    fn default() -> Self {
        Self::Rows { rows: &[], turn: 0, leads: 0 }
    }
}

impl Slice<'_> {
    #[inline(always)]
    fn number(&self, at: usize) -> u32 {
        match self {
            Self::Rows { rows, .. } => rows[at].number,
            Self::Short(rows) => rows.row(at).number,
            Self::Ascending { first, .. } => first + at as u32,
        }
    }

    /// Returns a row, with its fingerprint in the original bit order.
    #[inline(always)]
    fn row(&self, at: usize) -> Row {
        match self {
            Self::Rows { rows, turn, .. } => {
                let Row { value, number } = rows[at];
                Row { value: value.rotate_right(*turn), number }
            }
            Self::Short(rows) => rows.row(at),
            Self::Ascending { values, .. } => Row { value: values[at], number: self.number(at) },
        }
    }

    /// Returns all rows, with their fingerprints in the original bit order.
    fn rows(&self) -> Cow<'_, [Row]> {
        let count = match self {
            Self::Rows { rows, turn: 0, .. } => return Cow::Borrowed(rows),
            Self::Rows { rows, .. } => rows.len(),
            Self::Short(rows) => rows.rows.len(),
            Self::Ascending { values, .. } => values.len(),
        };
        (0..count).map(|at| self.row(at)).collect()
    }
}

/// The condition under which a bucket reports a pair. For each near pair, it holds in exactly one bucket of all tables.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportCondition {
    /// Bits in which the two fingerprints must agree.
    pub(super) equal: u64,
    /// Groups of bits. The two fingerprints must differ in each group. If they agree in one, an earlier table reports
    /// the pair.
    pub(super) unequal: Vec<u64>,
}

impl ReportCondition {
    /// Returns whether a pair with this difference is reported by this bucket. Has no branches, which would often be
    /// mispredicted.
    #[inline(always)]
    pub(super) fn owns(&self, difference: u64) -> bool {
        let shared: u32 = self.unequal.iter().map(|group| u32::from(difference & group == 0)).sum();
        u64::from(shared) | difference & self.equal == 0
    }
}

/// Number of lanes compared at once. A lane is 32 bits of a fingerprint. The lanes and results of a tile fit in the
/// caches.
const TILE: usize = 1024;
/// Base-2 logarithm of the factor by which dividing a bucket must at least reduce the number of comparisons.
const SAVED_SHIFT: u32 = 1;
/// Base-2 logarithm of the target number of fingerprints per new bucket when a bucket is divided.
const BUCKET_BITS: u32 = 3;
/// Base-2 logarithm of the maximum number of new buckets when a bucket is divided.
const BUCKETS_BITS_MAX: u32 = 11;
/// Number of candidate pairs that are verified at once.
const FOUND: usize = 1 << 9;
/// Minimum number of fingerprints for which `informed_groups` groups the bits with the help of a sample.
const SAMPLED: usize = 1 << 12;
/// Number of fingerprints in the sample that `informed_groups` uses.
const SAMPLE: usize = 256;

/// Number of bits of a bucket entry that store the position of a row, if a part has at most 65,536 rows. The upper 48
/// bits store bits of the fingerprint.
const SHORT_PLACE_BITS: u32 = 16;
/// Number of bytes of rows that are prefetched at once, and how many bytes they are ahead of the current rows.
const TOGETHER_BYTES: usize = 3 * CACHE_LINE;
const AHEAD_BYTES: usize = 16 * CACHE_LINE;

/// Number of buckets that are compared between two prefetches of the next part.
const AHEAD_TOGETHER: usize = 8;

/// Returns the cost of distributing a fingerprint by one group, in comparisons of two lanes. With faster comparisons,
/// the same work is a larger number of comparisons.
fn distributing(level: Level) -> u64 {
    match level {
        Level::Avx512 => 192,
        Level::Avx2 | Level::Scalar => 64,
    }
}

/// Buffers for distributing one side: the ends of the buckets, and their entries.
#[derive(Debug, Default)]
struct Buckets {
    ends: Vec<u32>,
    /// One entry per fingerprint, which takes one write. The upper bits hold the bits of the fingerprint that follow
    /// the bits that select the bucket; the lower bits hold its position in the rows.
    entries: Vec<u64>,
    /// Number of bits of the position in an entry.
    place_bits: u32,
    /// The upper 32 bits of each entry, which are compared first.
    lanes: Vec<u32>,
}

/// Buffers for distributing both sides, and for the pairs found.
#[derive(Debug, Default)]
struct BucketScratch {
    buckets: [Buckets; 2],
    found: PairBuffer,
}

/// A function that receives the pairs found.
pub(super) type PairSink<'t> = dyn FnMut(&[NearPair]) -> Result<()> + 't;

/// Finds the near pairs in buckets, and reuses its buffers for each bucket.
#[derive(Debug)]
pub(super) struct BucketJoin {
    within: u32,
    level: Level,
    /// Whether pairs are formed across two inputs. If false, there is one input, and the right side is empty.
    across: bool,
    free: Vec<BucketScratch>,
    /// Positions and distances of pairs that are within the radius and reported by the current bucket.
    near: Vec<(u32, u32, u32)>,
    /// Near pairs that were not yet passed to the callback.
    pairs: Vec<NearPair>,
}

/// Selects the bits that determine the bucket of a fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Partitioner {
    /// The `bits` bits after the first `start` bits. They are followed by the parity of the fingerprint if the table
    /// reports only pairs of matching parities.
    Bits { start: u32, bits: u32, parity: Option<Parity> },
    /// A hash of `bits` bits, computed from the bits in `mask`.
    Group { mask: u64, bits: u32 },
}

impl Partitioner {
    fn bits(self) -> u32 {
        match self {
            Self::Bits { bits, .. } | Self::Group { bits, .. } => bits,
        }
    }

    fn parity(self) -> Option<Parity> {
        match self {
            Self::Bits { parity, .. } => parity,
            Self::Group { .. } => None,
        }
    }

    /// Returns the rotation that moves the lane, the 32 bits that are compared first, to the lower half. The lane
    /// consists of the 32 bits after the bits that select the bucket; for a group, of the 32 adjacent bits that include
    /// the fewest bits of `equal`, the mask of the bits in which all fingerprints agree.
    fn turn(self, equal: u64) -> u32 {
        match self {
            Self::Bits { start, bits, .. } => (start + bits + 32) % 64,
            Self::Group { .. } => {
                let lost = |turn: &u32| (equal.rotate_left(*turn) as u32).count_ones();
                (0..64).min_by_key(lost).unwrap_or(0)
            }
        }
    }
}

/// Hashes a masked value to a bucket number of `bits` bits. Multiplication mixes all bits of the value into the upper bits.
#[inline(always)]
fn hashed(masked: u64, bits: u32) -> usize {
    masked.wrapping_mul(0x9E37_79B9_7F4A_7C15).unbounded_shr(64 - bits) as usize
}

/// Distributes one side to buckets.
struct BucketFill<'b, 's> {
    buckets: &'b mut Buckets,
    side: Slice<'s>,
    by: Partitioner,
    turn: u32,
}

impl Kernel for BucketFill<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { buckets, side, by, turn } = self;
        // Matches once per call and not for each fingerprint.
        match (side, by) {
            (Slice::Ascending { values, .. }, Partitioner::Bits { start, bits, .. }) => {
                let (down, mask) = ((64 - start - bits) % 64, low_bits(bits));
                buckets.cut(values, bits, |value| (value.wrapping_shr(down) & mask) as usize, turn);
            }
            (Slice::Rows { rows, leads, .. }, Partitioner::Bits { bits, parity, .. }) => {
                buckets.fill_by_bits(rows, bits, parity, leads);
            }
            (Slice::Short(short), Partitioner::Bits { bits, parity, .. }) => {
                buckets.fill_by_bits(short.rows, bits, parity, short.leads);
            }
            (side, Partitioner::Group { mask, bits }) => {
                let lane = |value: u64| value.rotate_left(turn) << 32;
                buckets.fill(&side.rows(), (bits, 32), |value| hashed(value & mask, bits), lane);
            }
        }
    }
}

/// Compares the fingerprints in each bucket after the sides were distributed.
struct BucketComparison<'i, 's, 't> {
    inside: &'i mut BucketJoin,
    sides: [Slice<'s>; 2],
    buckets: &'i [Buckets; 2],
    found: &'i mut PairBuffer,
    /// The rows of the next part. They are prefetched during the comparison.
    ahead: &'i [&'s [u8]],
    by: Partitioner,
    place: &'i ReportCondition,
    take: &'i mut PairSink<'t>,
}

impl Kernel for BucketComparison<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self { inside, sides, buckets, found, ahead, by, place, take } = self;
        let of = usize::from(inside.across);
        // If the entries contain all bits in which fingerprints may differ, only the numbers are read from the rows.
        let entry_start = match by {
            Partitioner::Bits { start, bits, .. }
                if [0, of].iter().all(|&side| buckets[side].place_bits == SHORT_PLACE_BITS)
                    && place.equal.count_ones() >= SHORT_PLACE_BITS =>
            {
                Some(start + bits)
            }
            _ => None,
        };
        found.clear();
        // Verifies the pairs of many buckets in one loop. A loop over the pairs of a single bucket would end
        // unpredictably.
        let keep = |inside: &mut BucketJoin, found: &mut PairBuffer| {
            let (left, right) = (&buckets[0].entries[..], &buckets[of].entries[..]);
            let row = |side: usize, entry| sides[side].row(buckets[side].place(entry));
            let number = |side: usize, entry| sides[side].number(buckets[side].place(entry));
            inside.keep(
                found.pairs(),
                |i, j| match entry_start {
                    Some(turn) => {
                        let difference = (left[i] ^ right[j]) & !low_bits(SHORT_PLACE_BITS);
                        difference.rotate_right(turn)
                    }
                    None => row(0, left[i]).value ^ row(of, right[j]).value,
                },
                |i, j| (number(0, left[i]), number(of, right[j])),
                place,
            );
            found.clear();
        };
        let halves = by.parity().is_some();
        let mut starts = [0; 2];
        for bucket in 0..1_usize << by.bits() {
            if bucket.is_multiple_of(AHEAD_TOGETHER) {
                for &bytes in ahead {
                    let bound = |bucket: usize| {
                        ((bytes.len() as u64 * bucket as u64) >> by.bits()).min(bytes.len() as u64) as usize
                    };
                    let (start, end) = (bound(bucket), bound(bucket + AHEAD_TOGETHER));
                    prefetch_ahead(bytes, start, end - start);
                }
            }
            // With parity, a bucket has two halves: first the fingerprints of even parity, then the fingerprints of odd
            // parity.
            let end = |side: &Buckets, half| {
                let bucket = if halves { bucket << 1 | half } else { bucket };
                side.ends.get(bucket).map_or(0, |&end| end as usize)
            };
            let ends_of =
                |half| [end(&buckets[0], half), if inside.across { end(&buckets[1], half) } else { 0 }];
            let ends = ends_of(1);
            let middles = if halves { ends_of(0) } else { ends };
            let ranges = [starts[0]..ends[0], starts[1]..ends[1]];
            let firsts = starts;
            starts = ends;
            let [left, right] = [ends[0] - ranges[0].start, ends[1] - ranges[1].start];
            if if inside.across { left == 0 || right == 0 } else { left < 2 } {
                continue;
            }
            if inside.is_large(left, right, halves) {
                let picked = [0, 1].map(|side| {
                    let entries = buckets[side].entries.get(ranges[side].clone()).unwrap_or_default();
                    let row = |&entry| sides[side].row(buckets[side].place(entry));
                    entries.iter().map(row).collect::<Vec<Row>>()
                });
                inside.large(picked.each_ref().map(|rows| &rows[..]), place, take)?;
                continue;
            }
            let lanes = |side: usize, range: Range<usize>| Lanes {
                first: range.start as u32,
                lanes: &buckets[side].lanes[range],
            };
            let half = |side: usize, odd: bool| {
                lanes(side, if odd { middles[side]..ends[side] } else { firsts[side]..middles[side] })
            };
            let within = inside.within;
            match (by.parity(), inside.across) {
                (None, false) => pairs32(simd, lanes(0, ranges[0].clone()), within, found),
                (None, true) => {
                    across32(simd, lanes(0, ranges[0].clone()), lanes(1, ranges[1].clone()), within, found);
                }
                (Some(Parity::Different), false) => {
                    across32(simd, half(0, false), half(0, true), within, found);
                }
                (Some(Parity::Same), false) => {
                    pairs32(simd, half(0, false), within, found);
                    pairs32(simd, half(0, true), within, found);
                }
                (Some(parity), true) => {
                    let other = parity == Parity::Different;
                    across32(simd, half(0, false), half(1, other), within, found);
                    across32(simd, half(0, true), half(1, !other), within, found);
                }
            }
            if found.pairs().len() >= FOUND {
                keep(inside, found);
                inside.hand_on(TOGETHER, take)?;
            }
        }
        keep(inside, found);
        inside.hand_on(TOGETHER, take)
    }
}

impl Buckets {
    /// Returns the position of the fingerprint of an entry.
    #[inline(always)]
    fn place(&self, entry: u64) -> usize {
        (entry & low_bits(self.place_bits)) as usize
    }

    /// Distributes the rows of a table. Fingerprints are rotated so that the bits that select a bucket come first, followed
    /// by the lane. The bits that select the part (`leads`) are ignored, because short rows store other data in them.
    #[inline(always)]
    fn fill_by_bits<R: TableRow>(&mut self, rows: &[R], bits: u32, parity: Option<Parity>, leads: u64) {
        let (down, mask) = (64 - bits, low_bits(bits));
        let bucket = |turned: u64| (turned.wrapping_shr(down) & mask) as usize;
        let lane = |turned: u64| (turned & !leads).wrapping_shl(bits);
        let place_bits = if rows.len() <= 1 << SHORT_PLACE_BITS { SHORT_PLACE_BITS } else { 32 };
        if parity.is_none() {
            self.fill(rows, (bits, place_bits), bucket, lane);
        } else {
            let half = |turned: u64| bucket(turned) << 1 | (turned & !leads).count_ones() as usize & 1;
            self.fill(rows, (bits + 1, place_bits), half, lane);
        }
    }

    /// Distributes rows to buckets. `lane` returns the upper bits of an entry; its lowest `place_bits` bits are replaced by
    /// the position.
    #[inline(always)]
    fn fill<R: TableRow>(
        &mut self,
        rows: &[R],
        (bits, place_bits): (u32, u32),
        bucket: impl Fn(u64) -> usize,
        lane: impl Fn(u64) -> u64,
    ) {
        self.place_bits = place_bits;
        let Self { ends, entries, lanes, .. } = self;
        ends.clear();
        if rows.is_empty() {
            return;
        }
        ends.resize(1 << bits, 0);
        if entries.len() < rows.len() {
            entries.resize(rows.len(), 0);
        }
        // The compiler need not reload reborrowed slices after each write.
        let (ends, entries) = (&mut ends[..], &mut entries[..rows.len()]);
        let last = ends.len() - 1;
        for (at, some) in (0..).step_by(TOGETHER_BYTES).zip(rows.chunks(TOGETHER_BYTES / size_of::<R>())) {
            // The rows are no longer in the cache, so they are prefetched.
            prefetch_ahead(rows.as_bytes(), at + AHEAD_BYTES, TOGETHER_BYTES);
            for row in some {
                ends[bucket(row.turned()) & last] += 1;
            }
        }
        let (mut sum, places) = (0, low_bits(place_bits));
        for end in &mut *ends {
            sum += std::mem::replace(end, sum);
        }
        for (at, row) in (0_u64..).zip(rows) {
            let value = row.turned();
            let end = &mut ends[bucket(value) & last];
            entries[*end as usize] = lane(value) & !places | at;
            *end += 1;
        }
        if lanes.len() < rows.len() {
            lanes.resize(rows.len(), 0);
        }
        // This is an explicit loop because the compiler does not vectorise the equivalent iterator chain.
        for (lane, entry) in lanes.iter_mut().zip(entries) {
            *lane = (*entry >> 32) as u32;
        }
    }

    /// Finds the ends of the buckets of sorted fingerprints, which stay in place.
    #[inline(always)]
    fn cut(&mut self, values: &[u64], bits: u32, bucket: impl Fn(u64) -> usize, turn: u32) {
        self.place_bits = 32;
        let Self { ends, entries, lanes, .. } = self;
        ends.clear();
        if values.is_empty() {
            return;
        }
        ends.resize(1 << bits, 0);
        if entries.len() < values.len() {
            entries.resize(values.len(), 0);
        }
        if lanes.len() < values.len() {
            lanes.resize(values.len(), 0);
        }
        let (ends, entries, lanes) =
            (&mut ends[..], &mut entries[..values.len()], &mut lanes[..values.len()]);
        let last = ends.len() - 1;
        for (at, some) in (0..).step_by(TOGETHER_BYTES).zip(values.chunks(TOGETHER_BYTES / size_of::<u64>()))
        {
            prefetch_ahead(values.as_bytes(), at + AHEAD_BYTES, TOGETHER_BYTES);
            // Stores the position. Incrementing a count instead would have to wait for the previous store.
            for (end, &value) in (at / size_of::<u64>() + 1..).zip(some) {
                ends[bucket(value) & last] = end as u32;
            }
        }
        let mut end = 0;
        for next in ends {
            end = end.max(*next);
            *next = end;
        }
        for (at, ((lane, entry), value)) in (0..).zip(lanes.iter_mut().zip(entries).zip(values)) {
            (*lane, *entry) = (value.rotate_left(turn) as u32, at);
        }
    }
}

impl BucketJoin {
    pub(super) fn new(within: u32, across: bool) -> Self {
        let level = Level::chosen();
        Self { within, level, across, free: Vec::new(), near: Vec::new(), pairs: Vec::new() }
    }

    /// Distributes both sides to buckets, and finds the near pairs in each bucket.
    pub(super) fn divide(
        &mut self,
        sides: [Slice<'_>; 2],
        ahead: &[&[u8]],
        by: Partitioner,
        place: &ReportCondition,
        take: &mut PairSink<'_>,
    ) -> Result<()> {
        let (level, turn) = (self.level, by.turn(place.equal));
        let mut scratch = self.free.pop().unwrap_or_default();
        let BucketScratch { buckets, found } = &mut scratch;
        for (side, buckets) in sides.into_iter().zip(&mut *buckets) {
            level.dispatch(BucketFill { buckets, side, by, turn });
        }
        level.dispatch(BucketComparison { inside: self, sides, buckets, found, ahead, by, place, take })?;
        self.free.push(scratch);
        Ok(())
    }

    /// Passes the collected pairs to `take` if there are at least `min`.
    #[inline(always)]
    pub(super) fn hand_on(&mut self, min: usize, take: &mut PairSink<'_>) -> Result<()> {
        if self.pairs.len() >= min {
            self.pairs.chunks(TOGETHER).try_for_each(take)?;
            self.pairs.clear();
        }
        Ok(())
    }

    /// Returns the number of comparisons in a bucket with `left` and `right` fingerprints. With one input, all pairs of the
    /// `left` fingerprints are compared.
    #[inline(always)]
    fn comparisons(&self, left: usize, right: usize) -> u64 {
        if self.across { left as u64 * right as u64 } else { left as u64 * left as u64 / 2 }
    }

    #[inline(always)]
    fn is_large(&self, left: usize, right: usize, halves: bool) -> bool {
        left + right > TILE
            || self.comparisons(left, right) >> u32::from(halves)
                > distributing(self.level) * u64::from(self.within + 1) * (left + right) as u64
    }

    /// Finds the near pairs of any number of fingerprints that agree in the bits that `place` requires.
    #[inline(never)]
    pub(super) fn large(
        &mut self,
        sides: [&[Row]; 2],
        place: &ReportCondition,
        take: &mut PairSink<'_>,
    ) -> Result<()> {
        let [left, right] = sides.map(<[Row]>::len);
        let values = || sides.into_iter().flatten().map(|row| row.value);
        let first = values().next().unwrap_or_default();
        let differ = values().fold(0, |bits, value| bits | value ^ first);
        let groups = self.within + 1;
        let comparisons = self.comparisons(left, right);
        if differ.count_ones() > self.within
            && comparisons > distributing(self.level) * u64::from(groups) * (left + right) as u64
        {
            let groups = if left + right < SAMPLED {
                even_groups(differ, groups)
            } else {
                let step = (left + right).div_ceil(SAMPLE);
                informed_groups(differ, groups, &values().step_by(step).collect::<Vec<_>>())
            };
            let bits = (left + right).ilog2().saturating_sub(BUCKET_BITS).clamp(1, BUCKETS_BITS_MAX);
            let bits_of = |mask: u64| bits.min(mask.count_ones());
            let then: u64 = groups.iter().map(|&mask| self.comparisons_by(sides, mask, bits_of(mask))).sum();
            if then <= comparisons >> SAVED_SHIFT {
                let mut next = place.clone();
                for &group in &groups {
                    next.equal = place.equal | group;
                    self.divide(
                        sides.map(|rows| Slice::Rows { rows, turn: 0, leads: 0 }),
                        &[],
                        Partitioner::Group { mask: group, bits: bits_of(group) },
                        &next,
                        take,
                    )?;
                    next.unequal.push(group);
                }
                return Ok(());
            }
        }
        self.compare_all(sides, !differ, place, take)
    }

    /// Returns the number of comparisons in all buckets if rows are distributed by the bits in `mask`.
    fn comparisons_by(&self, sides: [&[Row]; 2], mask: u64, bits: u32) -> u64 {
        let counts = sides.map(|rows| {
            let mut counts = vec![0_u32; 1 << bits];
            for row in rows {
                counts[hashed(row.value & mask, bits)] += 1;
            }
            counts
        });
        let [left, right] = &counts;
        left.iter().zip(right).map(|(&left, &right)| self.comparisons(left as usize, right as usize)).sum()
    }

    /// Compares all pairs, one pair of tiles after the other.
    fn compare_all(
        &mut self,
        sides: [&[Row]; 2],
        equal: u64,
        place: &ReportCondition,
        take: &mut PairSink<'_>,
    ) -> Result<()> {
        let turn = Partitioner::Group { mask: 0, bits: 0 }.turn(equal);
        let lanes = sides
            .map(|rows| rows.iter().map(|row| { row.value }.rotate_left(turn) as u32).collect::<Vec<u32>>());
        let of = usize::from(self.across);
        let mut found = PairBuffer::default();
        for (i, left) in (0..).step_by(TILE).zip(lanes[0].chunks(TILE)) {
            let from = if self.across { 0 } else { i };
            for (j, right) in (from..).step_by(TILE).zip(lanes[of][from.min(lanes[of].len())..].chunks(TILE))
            {
                found.clear();
                let right = (self.across || j > i).then_some(right);
                near_lanes(self.level, left.into(), right.map(Lanes::from), self.within, &mut found);
                let (left, right) = (&sides[0][i..], &sides[of][j..]);
                self.keep(
                    found.pairs(),
                    |i, j| left[i].value ^ right[j].value,
                    |i, j| (left[i].number, right[j].number),
                    place,
                );
                self.hand_on(TOGETHER, take)?;
            }
        }
        Ok(())
    }

    /// Adds those pairs of `found` to `pairs` that are within the radius and that no other bucket reports.
    #[inline(always)]
    fn keep(
        &mut self,
        found: &[[u32; 2]],
        difference: impl Fn(usize, usize) -> u64,
        numbers: impl Fn(usize, usize) -> (u32, u32),
        place: &ReportCondition,
    ) {
        if self.near.len() < found.len() {
            self.near.resize(found.len(), (0, 0, 0));
        }
        let near = &mut self.near[..found.len()];
        let mut count = 0;
        for &[i, j] in found {
            let difference = difference(i as usize, j as usize);
            let distance = difference.count_ones();
            near[count] = (i, j, distance);
            count += usize::from((distance <= self.within) & place.owns(difference));
        }
        self.pairs.reserve(count);
        for &(i, j, distance) in &near[..count] {
            let (a, b) = numbers(i as usize, j as usize);
            let (a, b) = if self.across || a < b { (a, b) } else { (b, a) };
            self.pairs.push(NearPair { a, b, distance });
        }
    }
}

/// Splits the set bits of `bits` into groups of equal size, in order.
fn even_groups(bits: u64, groups: u32) -> Vec<u64> {
    let (count, mut rest) = (bits.count_ones(), bits);
    (0..groups)
        .map(|group| {
            let mut mask = 0;
            for _ in count * group / groups..count * (group + 1) / groups {
                mask |= rest & rest.wrapping_neg();
                rest &= rest - 1;
            }
            mask
        })
        .collect()
}

/// Splits the set bits of `bits` into groups of about equal selectivity. Adds one bit after the other to the group with
/// the lowest selectivity so far, beginning with the bits that divide the sample most evenly.
fn informed_groups(bits: u64, groups: u32, sample: &[u64]) -> Vec<u64> {
    let mut evenness: Vec<(usize, u32)> = (0..64)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| {
            let ones = sample.iter().filter(|&value| value >> bit & 1 == 1).count();
            (ones.min(sample.len() - ones), bit)
        })
        .collect();
    evenness.sort_unstable_by(|a, b| b.cmp(a));
    let mut all = vec![(0_usize, 0_u32, 0_u64); groups as usize];
    for (evenly, bit) in evenness {
        if let Some(min) = all.iter_mut().min_by_key(|group| (group.0, group.1)) {
            *min = (min.0 + evenly, min.1 + 1, min.2 | 1 << bit);
        }
    }
    all.into_iter().map(|(_, _, mask)| mask).collect()
}
