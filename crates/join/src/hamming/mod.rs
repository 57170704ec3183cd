//! All pairs of fingerprints within a Hamming radius: tables that are made, compared and dropped.
//!
//! Of two fingerprints that differ in at most k bits, one of k + 1 blocks of bits is equal (Manku, Jain and Das Sarma,
//! WWW 2007, section 3, used for a join). For each block all fingerprints are distributed by its first bits, as many as
//! make buckets of some 8 to 16 or the block has, and the fingerprints of a bucket are compared (`inside`). A pair is
//! reported by the first block whose bits used are equal, so that nothing is collected to remove repeats.
//!
//! A distribution is done twice. The first goes by so few bits that its streams fit the processor's page tables, and
//! leaves parts that fit the second-level cache; the second is done part by part, just before the part is compared, so
//! that a table is written to memory once and read once. Threads share each table: each distributes its piece of the
//! fingerprints into memory of its own, and when all have, they take parts, one after the other, and put together what
//! the pieces have of them. Where memory does not suffice for a table, it is made and compared range by range of its
//! parts: each range reads all fingerprints and takes its own. What a table has of a fingerprint is in `rows`.
//!
//! What is reported by the last block differs in each of the k before it, and so in exactly k bits: of its buckets only
//! pairs whose parities say that are compared, which are half of them.
//!
//! There is no design of more tables of more bits for more fingerprints, as a search has: buckets that have grown are
//! divided once more where they are, in the cache (`inside`), which is as many tables of as many bits.

mod inside;
mod rows;
mod sorted;
mod values;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use inside::{BucketJoin, Parity, Partitioner, ReportCondition, Slice};
use parking_lot::Mutex;
use rows::{PrefixEnds, PrefixStarts, Row, RowParts, ShortRow, ShortRows, TableRow};
use zerocopy::IntoBytes;

pub use inside::NearPair;
pub(super) use sorted::Distinct;
pub use values::{FingerprintValues, Piece, PieceReader};

use twindex::error::{Error, Result};
use twindex::segment::near::check_radius;
use twindex_kernel::{CACHE_LINE, prefetch, prefetch_ahead};

/// Mean fingerprints of a part, as a power of two.
const PART_BITS: u32 = 14;
/// Bits of the first distribution at most: as many streams as the processor's page tables know.
const PARTS_BITS_MAX: u32 = 10;
/// Bits of the second, as far as there are others: as many buckets as the first-level cache has lines for.
const BUCKETS_BITS: u32 = 9;
/// Bits of the second at most.
const BUCKETS_BITS_MAX: u32 = 11;
/// Fingerprints of a bucket, as a power of two, where blocks have bits enough.
const BUCKET_BITS: u32 = 3;
/// Mean fingerprints of a bucket from which on it pays to divide it by parity.
const HALVED: usize = 32;
/// As many are compared without tables, or by those that are made inside buckets.
const FEW: usize = 1 << 12;
/// Rows that follow in a part while the one of now is written: by then, the line of a cache that they go to is there.
const AHEAD: usize = 8;
/// Fingerprints for which a thread is worth beginning.
const THREAD_LEAST: usize = 1 << 11;
/// Ranges of parts for each thread that sorts them: with more of them, none waits long for the last.
const RANGES_A_THREAD: usize = 4;
/// Extra prefix bits, beyond the minimum, by which a rank is recovered from its stored low bits.
const FIRST_BITS: u32 = 3;
/// Fingerprints that are distributed between two times that more are asked for, and how many lines ahead these are.
const ASKED: usize = 16;
const LINES_AHEAD: usize = 32;
/// Fingerprints that are counted together, while the next ones are being prefetched.
const COUNTED: usize = 512;
/// Pairs that are handed out together, and fingerprints that are checked together.
const TOGETHER: usize = 1 << 12;

/// The resources of a join: scratch folder, memory and threads.
#[derive(Clone, Copy, Debug)]
pub struct JoinResources<'a> {
    /// The folder of scratch files, which have no name and end with the work or the process.
    pub dir: &'a Path,
    /// Bytes of memory.
    pub memory: usize,
    /// Threads, at least 1. What is found does not depend on them.
    pub threads: usize,
}

impl<'a> JoinResources<'a> {
    /// All cores, 1 GiB, and scratch files on the file system of `dir`.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads }
    }
}

/// A table of a join.
#[derive(Clone, Copy, Debug)]
struct JoinTable {
    /// Bits in front of its block.
    start: u32,
    /// Bits of it that are used.
    bits: u32,
    /// Bits of these for the first distribution.
    part_bits: u32,
    /// How the parities of pairs that are reported here are related, where using it pays.
    parity: Option<Parity>,
}

impl JoinTable {
    /// The bits used.
    fn mask(self) -> u64 {
        !u64::MAX.unbounded_shr(self.bits) >> self.start
    }

    /// How far fingerprints are turned to the left in rows: what leads to a part is at the end, and what leads on from
    /// there in front.
    fn turn(self) -> u32 {
        self.start + self.part_bits
    }

    /// The part of a fingerprint that is turned.
    #[inline(always)]
    fn part(self) -> impl Fn(u64) -> usize {
        let mask = low_bits(self.part_bits);
        move |turned| (turned & mask) as usize
    }
}

/// This number of bits, the lowest ones.
const fn low_bits(bits: u32) -> u64 {
    !u64::MAX.unbounded_shl(bits)
}

/// Tables that are not in use: memory that was used before costs less than fresh.
#[derive(Debug, Default)]
pub(super) struct TablePool(Mutex<Vec<RowParts>>);

impl TablePool {
    fn take(&self) -> RowParts {
        self.0.lock().pop().unwrap_or_default()
    }

    fn put(&self, parts: RowParts) {
        self.0.lock().push(parts);
    }
}

/// One join.
struct HammingJoin<'a> {
    sides: &'a [FingerprintValues<'a>],
    tables: Vec<JoinTable>,
    /// For each side, each piece of it and each table, the fingerprints of each part.
    counts: Vec<Vec<Vec<Vec<u32>>>>,
    /// For each side, how ranks are recovered from their last bits, where they can be: then its rows are short.
    starts: Vec<Option<PrefixStarts<'a>>>,
}

/// A thread of a join.
struct JoinWorker<S> {
    /// The piece of each side that it distributes.
    piece: usize,
    /// That piece, for each side.
    parts: [RowParts; 2],
    /// The current part, for each side.
    gather_buffers: [Vec<u32>; 2],
    inside: BucketJoin,
    state: S,
}

/// Hands the pairs of different fingerprints of one set (`sides` of one), or of one of each of two sets, that are
/// within `within` bits, to `take`, each once, many at a time, in no particular order. Each thread has a state of its
/// own, made by `begin`; they are returned in no particular order.
///
/// # Errors
/// [`Error::Invalid`] for a radius that is not answered, or what reading fingerprints or `take` returns.
pub(super) fn join<S: Send>(
    sides: &[FingerprintValues<'_>],
    within: u32,
    resources: JoinResources<'_>,
    spare: &TablePool,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &[NearPair]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    check_radius(within)?;
    let max = sides.iter().map(FingerprintValues::len).max().unwrap_or(0);
    let across = sides.len() > 1;
    if sides.iter().any(|side| side.len() == 0) {
        return Ok(vec![begin()]);
    }
    if sides.iter().map(FingerprintValues::len).sum::<usize>() <= FEW {
        return few(sides, within, begin, take).map(|state| vec![state]);
    }
    let all: usize = sides.iter().map(FingerprintValues::len).sum();
    let threads = resources.threads.clamp(1, (all / THREAD_LEAST).max(1));
    let join = HammingJoin::new(sides, tables(max, within), threads)?;
    let mut workers: Vec<JoinWorker<S>> = (0..threads)
        .map(|piece| JoinWorker {
            piece,
            parts: [spare.take(), RowParts::default()],
            gather_buffers: <[Vec<u32>; 2]>::default(),
            inside: BucketJoin::new(within, across),
            state: begin(),
        })
        .collect();
    for table in 0..join.tables.len() {
        for parts in join.ranges(table, resources) {
            join.run(table, &parts, &mut workers, &take)?;
        }
    }
    // Giving so much memory back takes the system long enough to do it side by side.
    on_threads(&mut workers, |worker| {
        (worker.parts, worker.gather_buffers) = Default::default();
        Ok(())
    })?;
    Ok(workers.into_iter().map(|worker| worker.state).collect())
}

/// The tables of a join of up to this number of fingerprints.
fn tables(max: usize, within: u32) -> Vec<JoinTable> {
    let groups = within + 1;
    (0..groups)
        .map(|block| {
            let (start, end) = (64 * block / groups, 64 * (block + 1) / groups);
            let wanted = max.ilog2().saturating_sub(BUCKET_BITS).max(1);
            let bits = wanted.min(end - start).min(PARTS_BITS_MAX + BUCKETS_BITS_MAX);
            let even = bits.saturating_sub(BUCKETS_BITS);
            let part_bits = max.ilog2().saturating_sub(PART_BITS).max(even).min(PARTS_BITS_MAX).min(bits);
            let is_last = block > 0 && block == within;
            let parity = if within % 2 == 1 { Parity::Different } else { Parity::Same };
            let parity = (is_last && max >> bits >= HALVED).then_some(parity);
            JoinTable { start, bits, part_bits, parity }
        })
        .collect()
}

/// Does the work of each state on a thread of its own, that of one on this.
///
/// # Errors
/// The first that one returns.
pub(super) fn on_threads<S: Send>(
    states: &mut [S],
    work: impl Fn(&mut S) -> Result<()> + Sync,
) -> Result<()> {
    if let [state] = states {
        return work(state);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = states.iter_mut().map(|state| scope.spawn(move || work(state))).collect();
        // All are waited for, whatever one returns.
        let ended: Vec<Result<()>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        ended.into_iter().collect()
    })
}

/// As [`join`], for few fingerprints.
fn few<S>(
    sides: &[FingerprintValues<'_>],
    within: u32,
    begin: impl Fn() -> S,
    take: impl Fn(&mut S, &[NearPair]) -> Result<()>,
) -> Result<S> {
    let mut rows: [Vec<Row>; 2] = <[Vec<Row>; 2]>::default();
    for (side, rows) in sides.iter().zip(&mut rows) {
        side.for_each_slice_of(Piece::ALL, |first, values| {
            rows.extend(values.iter().zip(first..).map(|(&value, number)| Row { value, number }));
            Ok(())
        })?;
    }
    let mut inside = BucketJoin::new(within, sides.len() > 1);
    let mut state = begin();
    let mut take = |pairs: &[NearPair]| take(&mut state, pairs);
    inside.large(rows.each_ref().map(|rows| &rows[..]), &ReportCondition::default(), &mut take)?;
    inside.hand_on(1, &mut take)?;
    Ok(state)
}

impl<'a> HammingJoin<'a> {
    /// Counts what each piece of the sides has of each part.
    fn new(sides: &'a [FingerprintValues<'a>], tables: Vec<JoinTable>, pieces: usize) -> Result<Self> {
        let mut join = Self { sides, tables, counts: Vec::new(), starts: Vec::new() };
        for (of, side) in sides.iter().enumerate() {
            let none = || join.tables.iter().map(|table| vec![0; 1 << table.part_bits]).collect();
            let first_bits = join.first_bits(side);
            let mut counts: Vec<(usize, Vec<Vec<u32>>, Option<PrefixEnds>)> =
                (0..pieces).map(|piece| (piece, none(), first_bits.map(PrefixEnds::new))).collect();
            on_threads(&mut counts, |(piece, counts, ends)| {
                side.for_each_slice_of(Piece { number: *piece, of: pieces }, |first, values| {
                    for (first, some) in (first..).step_by(COUNTED).zip(values.chunks(COUNTED)) {
                        let length = COUNTED * size_of::<u64>();
                        prefetch_ahead(some.as_bytes(), length, length);
                        if let Some(ends) = ends {
                            ends.note(first, some);
                        }
                        for (number, (table, counts)) in join.tables.iter().zip(&mut *counts).enumerate() {
                            if join.is_sorted(of, number) {
                                continue;
                            }
                            let (turn, part, counts) = (table.turn(), table.part(), &mut counts[..]);
                            let last = counts.len() - 1;
                            for value in some {
                                counts[part(value.rotate_left(turn)) & last] += 1;
                            }
                        }
                    }
                    Ok(())
                })
            })?;
            if let FingerprintValues::Sorted(values) = side {
                // Parts of what is in order begin where a search finds them.
                let (turn, part, counts) =
                    (join.tables[0].turn(), join.tables[0].part(), &mut counts[0].1[0]);
                let mut start = 0;
                for (number, count) in counts.iter_mut().enumerate() {
                    let is_before = |value: &u64| part(value.rotate_left(turn)) <= number;
                    let end = start + values[start..].partition_point(is_before);
                    *count = (end - start) as u32;
                    start = end;
                }
            }
            let (counts, ends): (Vec<_>, Vec<_>) =
                counts.into_iter().map(|(_, counts, ends)| (counts, ends)).unzip();
            join.counts.push(counts);
            join.starts.push(match side {
                FingerprintValues::Sorted(values) => {
                    PrefixStarts::of(values, ends.into_iter().flatten(), join.rank_bits())
                }
                _ => None,
            });
        }
        Ok(join)
    }

    /// The last bits of ranks that short rows of all tables have.
    fn rank_bits(&self) -> u32 {
        self.tables[1..].iter().map(|table| table.part_bits).min().unwrap_or(0)
    }

    /// Leading bits by which the ranks of a side are recovered from their last bits, if they ascend: enough that few
    /// fingerprints share them.
    fn first_bits(&self, side: &FingerprintValues<'_>) -> Option<u32> {
        let is_of_use = side.ascends() && self.tables.len() > 1;
        is_of_use.then(|| (side.len().max(1).ilog2() + FIRST_BITS).saturating_sub(self.rank_bits()))
    }

    /// Fingerprints of a side in a part.
    fn count(&self, of: usize, table: usize, part: usize) -> usize {
        self.counts.get(of).map_or(0, |pieces| pieces.iter().map(|counts| counts[table][part] as usize).sum())
    }

    /// True for fingerprints that already are in the order of this table.
    fn is_sorted(&self, of: usize, table: usize) -> bool {
        table == 0 && self.sides[of].ascends()
    }

    /// Ranges of parts that fit memory.
    fn ranges(&self, table: usize, resources: JoinResources<'_>) -> Vec<Range<usize>> {
        let parts = 1 << self.tables[table].part_bits;
        let distributed: Vec<usize> =
            (0..self.sides.len()).filter(|&of| !self.is_sorted(of, table)).collect();
        let are_short = distributed.iter().all(|&of| self.starts[of].is_some());
        let max = resources.memory / if are_short { size_of::<ShortRow>() } else { size_of::<Row>() };
        let pieces = self.counts.first().map_or(1, Vec::len);
        // Parts that are in several pieces are put together, one by each thread.
        let needed = |rows: usize, largest: usize| {
            rows + if pieces > 1 { rows.min(largest.saturating_mul(pieces)) } else { 0 }
        };
        let mut ranges = Vec::new();
        let (mut start, mut sum, mut largest) = (0, 0, 0);
        for part in 0..parts {
            let now: usize = distributed.iter().map(|&of| self.count(of, table, part)).sum();
            if sum > 0 && needed(sum + now, largest.max(now)) > max {
                ranges.push(start..part);
                (start, sum, largest) = (part, 0, 0);
            }
            sum += now;
            largest = largest.max(now);
        }
        ranges.push(start..parts);
        ranges
    }

    /// Makes these parts of a table, on all threads, and compares the fingerprints of each bucket.
    fn run<S: Send>(
        &self,
        table: usize,
        parts: &Range<usize>,
        workers: &mut [JoinWorker<S>],
        take: &(impl Fn(&mut S, &[NearPair]) -> Result<()> + Sync),
    ) -> Result<()> {
        on_threads(workers, |worker| {
            (0..self.sides.len()).filter(|&of| !self.is_sorted(of, table)).try_for_each(|of| {
                let (piece, to) = (worker.piece, &mut worker.parts[of]);
                if self.starts[of].is_some() {
                    self.distribute::<ShortRow>(of, piece, table, parts, to)
                } else {
                    self.distribute::<Row>(of, piece, table, parts, to)
                }
            })
        })?;
        let pieces: Vec<[RowParts; 2]> =
            workers.iter_mut().map(|worker| std::mem::take(&mut worker.parts)).collect();
        let starts: Vec<Vec<usize>> = (0..self.sides.len())
            .map(|of| {
                if !self.is_sorted(of, table) {
                    return Vec::new();
                }
                let sum = |sum: &mut usize, part| {
                    let start = *sum;
                    *sum += self.count(of, table, part);
                    Some(start)
                };
                (0..parts.end).scan(0, sum).collect()
            })
            .collect();
        let next = AtomicUsize::new(parts.start);
        on_threads(workers, |worker| {
            let compared = self.compare(table, parts, &next, (&pieces, &starts), worker, take);
            if compared.is_err() {
                next.store(parts.end, Ordering::Relaxed);
            }
            compared
        })?;
        workers.iter_mut().zip(pieces).for_each(|(worker, parts)| worker.parts = parts);
        Ok(())
    }

    /// Compares the fingerprints of one part after the other, as long as there are parts: of `distributed`, piece by piece,
    /// and of fingerprints that already are in order, whose parts begin at `starts`.
    fn compare<S>(
        &self,
        table: usize,
        parts: &Range<usize>,
        next: &AtomicUsize,
        (distributed, starts): (&[[RowParts; 2]], &[Vec<usize>]),
        worker: &mut JoinWorker<S>,
        take: &impl Fn(&mut S, &[NearPair]) -> Result<()>,
    ) -> Result<()> {
        let place = ReportCondition {
            equal: self.tables[table].mask(),
            unequal: self.tables[..table].iter().map(|table| table.mask()).collect(),
        };
        let JoinTable { bits, part_bits, parity, .. } = self.tables[table];
        let turn = self.tables[table].turn();
        let by = Partitioner::Bits { start: turn, bits: bits - part_bits, parity };
        let pieces: Vec<Vec<&RowParts>> =
            (0..self.sides.len()).map(|of| distributed.iter().map(|piece| &piece[of]).collect()).collect();
        let JoinWorker { gather_buffers, inside, state, .. } = worker;
        let first = parts.start;
        let mut take = |pairs: &[NearPair]| take(state, pairs);
        let claim = || next.fetch_add(1, Ordering::Relaxed);
        let (mut claimed, mut ahead) = (claim(), Vec::<&[u8]>::new());
        loop {
            let part = claimed;
            if part >= parts.end {
                return inside.hand_on(1, &mut take);
            }
            claimed = claim();
            ahead.clear();
            if claimed < parts.end {
                let all = pieces.iter().enumerate().filter(|&(of, _)| !self.is_sorted(of, table));
                ahead.extend(all.flat_map(|(_, pieces)| pieces).map(|piece| piece.bytes(claimed - first)));
            }
            let counts = [0, 1].map(|of| self.count(of, table, part));
            if if self.sides.len() > 1 { counts.contains(&0) } else { counts[0] < 2 } {
                continue;
            }
            let mut slices = [Slice::default(); 2];
            for (of, (slice, gather_buffers)) in
                slices.iter_mut().zip(&mut *gather_buffers).enumerate().take(self.sides.len())
            {
                *slice = if let (Some(held), Some(&start)) = (self.sides[of].held(), starts[of].get(part)) {
                    Slice::Ascending { values: &held[start..start + counts[of]], first: start as u32 }
                } else {
                    self.slice(of, table, part, RowParts::gathered(&pieces[of], part - first, gather_buffers))
                };
            }
            inside.divide(slices, &ahead, by, &place, &mut take)?;
        }
    }

    /// Rows of a part as they are compared.
    fn slice<'s>(&'s self, of: usize, table: usize, part: usize, words: &'s [u32]) -> Slice<'s> {
        let table = self.tables[table];
        match &self.starts[of] {
            Some(starts) => Slice::Short(ShortRows::new(rows::of_words(words), table, part, starts)),
            None => Slice::Rows { rows: rows::of_words(words), turn: table.turn(), leads: table.leads() },
        }
    }

    /// The first distribution of a piece of one side.
    fn distribute<R: TableRow>(
        &self,
        of: usize,
        piece: usize,
        table: usize,
        parts: &Range<usize>,
        to: &mut RowParts,
    ) -> Result<()> {
        let (pieces, counts) = (self.counts[of].len(), &self.counts[of][piece][table]);
        let table = self.tables[table];
        to.ends.clear();
        let mut sum = 0_u32;
        for &count in &counts[parts.clone()] {
            to.ends.push(sum);
            sum += count;
        }
        let (rows, ends) = to.allocate::<R>(sum as usize)?;
        let leads = table.leads();
        let (first, all) = (parts.start, parts.len() == counts.len());
        self.sides[of].for_each_slice_of(Piece { number: piece, of: pieces }, |from, values| {
            // Borrowed again, so that the loops need not ask where they are after each write.
            let (turn, part, ends, rows) = (table.turn(), table.part(), &mut *ends, &mut *rows);
            if all {
                let last = ends.len() - 1;
                for (some, from) in values.chunks(ASKED).zip((from..).step_by(ASKED)) {
                    prefetch_ahead(some.as_bytes(), LINES_AHEAD * CACHE_LINE, ASKED * size_of::<u64>());
                    for (number, value) in (from..).zip(some) {
                        let value = value.rotate_left(turn);
                        put(&mut ends[part(value) & last], rows, R::of(value, number, leads))?;
                    }
                }
            } else {
                // Fingerprints of the range are picked first: a branch for each would be mispredicted too often.
                let mut picked = [0_u16; TOGETHER];
                for (some, from) in values.chunks(TOGETHER).zip((from..).step_by(TOGETHER)) {
                    let mut count = 0;
                    for (at, value) in (0..).zip(some) {
                        picked[count % TOGETHER] = at;
                        let part = part(value.rotate_left(turn));
                        count += usize::from(part.wrapping_sub(first) < ends.len());
                    }
                    for &at in &picked[..count] {
                        let (value, number) = (some[usize::from(at)].rotate_left(turn), from + u32::from(at));
                        put(&mut ends[part(value) - first], rows, R::of(value, number, leads))?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Puts a fingerprint at the end of its part. Parts are as long as the first reading said.
#[inline(always)]
fn put<R: TableRow>(end: &mut u32, rows: &mut [R], row: R) -> Result<()> {
    let place = *end as usize;
    prefetch(rows.as_bytes(), (place + AHEAD) * size_of::<R>());
    *rows.get_mut(place).ok_or_else(changed)? = row;
    *end += 1;
    Ok(())
}

#[cold]
fn changed() -> Error {
    Error::Invalid(
        "the fingerprints changed while they were joined: nothing may write to the files of an index".into(),
    )
}

/// Refuses more fingerprints than numbers.
pub(super) fn check_count(count: u64) -> Result<()> {
    if u32::try_from(count).is_ok() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{count} fingerprints: a join takes up to {}; divide them", u32::MAX)))
}
