//! Finds all pairs of fingerprints within a Hamming radius, with temporary tables that are built and compared one at a
//! time.
//!
//! If two fingerprints differ in at most k bits, they agree in at least one of k + 1 blocks of bits (Manku, Jain and
//! Das Sarma, WWW 2007, section 3, where the blocks are used for searches). For each block, all fingerprints are
//! distributed to buckets by the first bits of the block: as many bits as are needed for buckets of about 8 to 16
//! fingerprints, if the block has that many. Then the fingerprints of each bucket are compared (module `inside`). A
//! pair is reported only for the first block in whose used bits it agrees, so no duplicates need to be removed.
//!
//! Distribution takes two steps. The first step writes *parts*. It uses few enough bits that there are no more parts
//! than TLB entries, and enough bits that a part fits in the second-level cache. The second step distributes each part
//! just before it is compared. A table is thus written to memory once and read once. Threads share each table: each
//! thread distributes its piece of the fingerprints into its own memory. Then threads process one part after the other,
//! gathering its rows from all pieces. If the memory is too small for a whole table, the table is built and compared
//! one range of parts at a time. Each range takes another pass over all fingerprints. The rows are defined in `rows`.
//!
//! A pair that is reported for the last block differs in each of the k earlier blocks, so it differs in exactly k bits.
//! So in the buckets of the last block, only the half of the pairs with matching parities is compared.
//!
//! A search needs designs with more tables and more bits as the number of fingerprints grows. A join does not, because
//! it divides large buckets further in the cache (`inside`).

pub mod batch;
pub mod codes;
pub mod documents;
mod inside;
pub mod pairs;
mod parts;
pub mod raw;
mod rows;
mod sorted;
mod table;
mod tiles;
mod values;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use inside::{BucketJoin, Partitioner, ReportCondition, Slice, TOGETHER};
use parking_lot::Mutex;
use rows::{PrefixEnds, PrefixStarts, Row, RowParts, ShortRow, ShortRows, TableRow};
use table::{JoinTable, Parity};
use zerocopy::IntoBytes;

pub use inside::NearPair;
pub(crate) use sorted::Distinct;
pub use values::{FingerprintValues, Piece, PieceReader};

use twindex::error::{Error, Result};
use twindex::segment::near::check_radius;
use twindex_kernel::{CACHE_LINE, prefetch, prefetch_ahead};

/// Base-2 logarithm of the target number of fingerprints in a part.
const PART_BITS: u32 = 14;
/// Maximum number of bits of the first distribution. This gives at most as many output streams as the TLB has entries.
const PARTS_BITS_MAX: u32 = 10;
/// Target number of bits of the second distribution: as many buckets as the first-level cache has lines. The first
/// distribution uses the other used bits of the block, or more bits if parts would otherwise exceed their target size.
const BUCKETS_BITS: u32 = 9;
/// Maximum number of bits of the second distribution.
const BUCKETS_BITS_MAX: u32 = 11;
/// Base-2 logarithm of the minimum target number of fingerprints in a bucket: 8, so that buckets have about 8 to 16.
/// Buckets have more if a block has too few bits.
const BUCKET_BITS: u32 = 3;
/// Minimum mean number of fingerprints in a bucket that is divided by parity; in smaller buckets, this does not pay.
const HALVED: usize = 32;
/// Maximum number of fingerprints that are compared without building tables first.
const FEW: usize = 1 << 12;
/// How many rows ahead of the current one the destinations of rows are prefetched.
const AHEAD: usize = 8;
/// Minimum number of fingerprints for each thread that is started.
const THREAD_LEAST: usize = 1 << 11;
/// Number of ranges of parts per thread for sorting. Several ranges let the threads finish at about the same time.
const RANGES_A_THREAD: usize = 4;
/// Extra prefix bits, beyond the minimum, used to recover a rank from its stored low bits.
const FIRST_BITS: u32 = 3;
/// Number of fingerprints that are distributed between two prefetches, and of cache lines that a prefetch is ahead.
const ASKED: usize = 16;
const LINES_AHEAD: usize = 32;
/// Number of fingerprints that are counted between two prefetches.
const COUNTED: usize = 512;

/// The resources of a join: scratch directory, memory and threads.
#[derive(Clone, Copy, Debug)]
pub struct JoinResources<'a> {
    /// The directory of scratch files. They have no names, and are removed when the work or the process ends.
    pub dir: &'a Path,
    /// Memory budget in bytes.
    pub memory: usize,
    /// Number of threads, at least 1. The result does not depend on it.
    pub threads: usize,
}

impl<'a> JoinResources<'a> {
    /// Returns the resources of one thread per core, 1 GiB of memory, and scratch files in `dir`.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads }
    }
}

/// Unused memory of tables, kept because reusing memory is cheaper than allocating it.
#[derive(Debug, Default)]
pub(crate) struct TablePool(Mutex<Vec<RowParts>>);

impl TablePool {
    fn take(&self) -> RowParts {
        self.0.lock().pop().unwrap_or_default()
    }

    fn put(&self, parts: RowParts) {
        self.0.lock().push(parts);
    }
}

/// The data of one join that all threads share.
struct HammingJoin<'a> {
    sides: &'a [FingerprintValues<'a>],
    tables: Vec<JoinTable>,
    /// The number of fingerprints in each part, by side, piece and table.
    counts: Vec<Vec<Vec<Vec<u32>>>>,
    /// For each side with short rows, the data that recovers ranks from their low bits; `None` for full rows.
    starts: Vec<Option<PrefixStarts<'a>>>,
}

/// The state of one thread of a join.
struct JoinWorker<S> {
    /// The number of the piece of each side that the thread distributes.
    piece: usize,
    /// The rows of this piece, for each side.
    parts: [RowParts; 2],
    /// Buffers for gathering the rows of the current part, for each side.
    gather_buffers: [Vec<u32>; 2],
    inside: BucketJoin,
    state: S,
}

/// Passes all pairs of fingerprints within `within` bits to `take`, in batches. `sides` holds either one input, for
/// pairs inside it, or two, for pairs of a left and a right fingerprint. Passes each pair once. Creates a state for
/// each thread with `begin`, and returns the states. The order of pairs and of states is unspecified.
///
/// # Errors
/// [`Error::Invalid`] for an unsupported radius, or the errors of reading fingerprints and of `take`.
pub(crate) fn join<S: Send>(
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
    // Releasing memory takes a noticeable time, so each thread releases its own buffers.
    on_threads(&mut workers, |worker| {
        (worker.parts, worker.gather_buffers) = Default::default();
        Ok(())
    })?;
    Ok(workers.into_iter().map(|worker| worker.state).collect())
}

/// Returns the tables of a join of up to `max` fingerprints.
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

/// Calls `work` for each state, each on its own thread. A single state is processed on the calling thread.
///
/// # Errors
/// The first error that a thread returns.
pub(crate) fn on_threads<S: Send>(
    states: &mut [S],
    work: impl Fn(&mut S) -> Result<()> + Sync,
) -> Result<()> {
    if let [state] = states {
        return work(state);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = states.iter_mut().map(|state| scope.spawn(move || work(state))).collect();
        // Waits for all threads, even if one of them has failed.
        let ended: Vec<Result<()>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        ended.into_iter().collect()
    })
}

/// Like [`join`], for a small number of fingerprints, without tables.
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
    /// Counts the fingerprints of each part, for each piece of each side.
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
                // The fingerprints are already in the order of this table's parts, so binary searches find the ends of
                // the parts.
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

    /// Returns the number of low bits of a rank that short rows can store in all tables.
    fn rank_bits(&self) -> u32 {
        self.tables[1..].iter().map(|table| table.part_bits).min().unwrap_or(0)
    }

    /// Returns the length of the prefixes that recover ranks on a side. The length is chosen so that few fingerprints
    /// share a prefix. Returns `None` if the fingerprints of the side are not ascending, or if no table needs ranks.
    fn first_bits(&self, side: &FingerprintValues<'_>) -> Option<u32> {
        let is_of_use = side.ascends() && self.tables.len() > 1;
        is_of_use.then(|| (side.len().max(1).ilog2() + FIRST_BITS).saturating_sub(self.rank_bits()))
    }

    /// Returns the number of fingerprints of side `of` in a part of a table.
    fn count(&self, of: usize, table: usize, part: usize) -> usize {
        self.counts.get(of).map_or(0, |pieces| pieces.iter().map(|counts| counts[table][part] as usize).sum())
    }

    /// Returns whether the fingerprints of side `of` are already in the order of this table.
    fn is_sorted(&self, of: usize, table: usize) -> bool {
        table == 0 && self.sides[of].ascends()
    }

    /// Splits the parts of a table into ranges that fit in memory.
    fn ranges(&self, table: usize, resources: JoinResources<'_>) -> Vec<Range<usize>> {
        let parts = 1 << self.tables[table].part_bits;
        let distributed: Vec<usize> =
            (0..self.sides.len()).filter(|&of| !self.is_sorted(of, table)).collect();
        let are_short = distributed.iter().all(|&of| self.starts[of].is_some());
        let max = resources.memory / if are_short { size_of::<ShortRow>() } else { size_of::<Row>() };
        let pieces = self.counts.first().map_or(1, Vec::len);
        // Each thread needs a buffer for the rows of one part from all pieces.
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

    /// Builds these parts of a table on all threads, and compares the fingerprints in each bucket.
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

    /// Claims a part and compares its fingerprints, until no part is left. Rows come from `distributed`, or from
    /// ascending fingerprints, whose parts begin at `starts`.
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

    /// Returns the rows of a part for comparison.
    fn slice<'s>(&'s self, of: usize, table: usize, part: usize, words: &'s [u32]) -> Slice<'s> {
        let table = self.tables[table];
        match &self.starts[of] {
            Some(starts) => Slice::Short(ShortRows::new(rows::of_words(words), table, part, starts)),
            None => Slice::Rows { rows: rows::of_words(words), turn: table.turn(), leads: table.leads() },
        }
    }

    /// Distributes a piece of one side to parts.
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
            // The compiler need not reload reborrowed slices after each write.
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
                // First selects the fingerprints of the range, without branches that would often be mispredicted.
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

/// Writes a row to the end of its part. Returns an error if the part is full, because the fingerprints have then
/// changed since they were counted.
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

/// Returns an error if there are too many fingerprints for 32-bit numbers.
pub(crate) fn check_count(count: u64) -> Result<()> {
    if u32::try_from(count).is_ok() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{count} fingerprints: a join takes up to {}; divide them", u32::MAX)))
}
