//! All pairs of fingerprints within a Hamming radius: tables that are made, compared and dropped.
//!
//! Of two fingerprints that differ in at most k bits, one of k + 1 blocks of bits is equal (Manku, Jain and Das Sarma,
//! WWW 2007, section 3, used for a join). For each block all fingerprints are distributed by its first bits, as many as
//! make buckets of some 8 to 16 or the block has, and what meets in a bucket is compared (`inside`). A pair is
//! reported by the first block whose bits used are equal, so that nothing is collected to remove repeats.
//!
//! A distribution is done twice. The first goes by so few bits that its streams fit the processor's page tables, and
//! leaves parts that fit the second-level cache; the second is done part by part, just before the part is compared, so
//! that a table is written to memory once and read once. A table is cut into ranges of parts, as many as memory asks
//! for and as there are threads to feed. Ranges know nothing of each other: each reads all fingerprints and takes its
//! own.
//!
//! There is no design of more tables of more bits for more fingerprints, as a search has: buckets that have grown are
//! divided once more where they are, in the cache (`inside`), which is as many tables of as many bits.

mod inside;
mod values;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use inside::{By, Inside, Place, Slice};
use parking_lot::Mutex;

pub use inside::Pair;
pub use values::{Read, Values};

use crate::error::{Error, Result};
use crate::segment::near::check_radius;
use crate::segment::sorted::sort;

/// Mean fingerprints of a part, as a power of two.
const PART_BITS: u32 = 14;
/// Bits of the first distribution at most: as many streams as the processor's page tables know.
const PARTS_BITS_MAX: u32 = 10;
/// Bits of the second at most.
const BUCKETS_BITS_MAX: u32 = 11;
/// Fingerprints of a bucket, as a power of two, where blocks have bits enough.
const BUCKET_BITS: u32 = 3;
/// As many are compared without tables, or by those that are made inside buckets.
const FEW: usize = 1 << 12;
/// Bytes of a fingerprint in a table.
const ROW_BYTES: usize = size_of::<u64>() + size_of::<u32>();
/// Ranges for each thread of a table that is in order as it stands: with more of them, none waits long for the last.
const RANGES_A_THREAD: usize = 4;
/// Pairs that are handed out together, and fingerprints that are looked at together.
const TOGETHER: usize = 1 << 12;

/// What a join may use.
#[derive(Clone, Copy, Debug)]
pub struct Effort<'a> {
    /// Where scratch files go; they have no name, and are gone when the work or the process ends.
    pub dir: &'a Path,
    /// Bytes of memory.
    pub memory: usize,
    /// Threads, at least 1. What is found does not depend on them.
    pub threads: usize,
}

impl<'a> Effort<'a> {
    /// All cores, 1 GiB, and scratch files on the file system of `dir`.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads }
    }
}

/// A table of a join.
#[derive(Clone, Copy, Debug)]
struct Table {
    /// Bits in front of its block.
    start: u32,
    /// Bits of it that are used.
    bits: u32,
    /// Bits of these for the first distribution.
    part_bits: u32,
}

impl Table {
    /// The bits used.
    fn mask(self) -> u64 {
        !u64::MAX.unbounded_shr(self.bits) >> self.start
    }

    #[inline(always)]
    fn part(self, value: u64) -> usize {
        (value.unbounded_shr(64 - self.start - self.part_bits) & low_bits(self.part_bits)) as usize
    }
}

/// So many bits, the lowest ones.
const fn low_bits(bits: u32) -> u64 {
    !u64::MAX.unbounded_shl(bits)
}

/// A range of a table's parts.
#[derive(Debug)]
struct Job {
    table: usize,
    parts: Range<usize>,
}

/// What a thread keeps from one job to the next.
#[derive(Debug, Default)]
struct Room {
    sides: [Rows; 2],
    numbers: Vec<u32>,
}

/// Fingerprints and their numbers, in parts.
#[derive(Debug, Default)]
struct Rows {
    values: Vec<u64>,
    numbers: Vec<u32>,
    /// Where each part ends.
    ends: Vec<u32>,
}

impl Rows {
    fn slice(&self, part: usize) -> Slice<'_> {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let range = start..self.ends[part] as usize;
        Slice { values: &self.values, numbers: &self.numbers, in_order: false }.part(range)
    }
}

/// Tables that are not in use: memory that was used before costs less than fresh.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Rows>>);

impl Spare {
    fn take(&self) -> Rows {
        self.0.lock().pop().unwrap_or_default()
    }

    fn put(&self, rows: Rows) {
        self.0.lock().push(rows);
    }
}

/// One join.
struct Join<'a> {
    sides: &'a [Values<'a>],
    tables: Vec<Table>,
    /// For each side and table, the fingerprints of each part.
    counts: Vec<Vec<Vec<u32>>>,
}

/// Hands the pairs of different fingerprints of one set (`sides` of one), or of one of each of two sets, that are
/// within `within` bits, to `take`, each once, many at a time, in no particular order. Each thread has a state of its
/// own, made by `begin`; they are returned in no particular order.
///
/// # Errors
/// [`Error::Invalid`] for a radius that is not answered, or what reading fingerprints or `take` returns.
pub(super) fn join<S: Send>(
    sides: &[Values<'_>],
    within: u32,
    effort: Effort<'_>,
    spare: &Spare,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &[Pair]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    check_radius(within)?;
    let most = sides.iter().map(Values::len).max().unwrap_or(0);
    let across = sides.len() > 1;
    if sides.iter().any(|side| side.len() == 0) {
        return Ok(vec![begin()]);
    }
    if sides.iter().map(Values::len).sum::<usize>() <= FEW {
        return few(sides, within, begin, take).map(|state| vec![state]);
    }
    let groups = within + 1;
    let tables = (0..groups)
        .map(|block| {
            let (start, end) = (64 * block / groups, 64 * (block + 1) / groups);
            let wanted = most.ilog2().saturating_sub(BUCKET_BITS).max(1);
            let bits = wanted.min(end - start).min(PARTS_BITS_MAX + BUCKETS_BITS_MAX);
            let few = bits.saturating_sub(BUCKETS_BITS_MAX);
            let part_bits = most.ilog2().saturating_sub(PART_BITS).max(few).min(PARTS_BITS_MAX).min(bits);
            Table { start, bits, part_bits }
        })
        .collect();
    let mut join = Join { sides, tables, counts: Vec::new() };
    join.counts = sides.iter().map(|side| join.count(side, effort.threads)).collect::<Result<_>>()?;
    let jobs = join.jobs(effort);
    let threads = effort.threads.clamp(1, jobs.len().max(1));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = |state: &mut S| -> Result<()> {
        let mut inside = Inside::new(within, across);
        let mut room = Room { sides: [spare.take(), Rows::default()], numbers: Vec::new() };
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let done = join.run(job, &mut room, &mut inside, |pairs| take(state, pairs));
            if done.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done?;
        }
        Ok(())
    };
    let mut states: Vec<S> = (0..threads).map(|_| begin()).collect();
    on_threads(&mut states, work)?;
    Ok(states)
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
    sides: &[Values<'_>],
    within: u32,
    begin: impl Fn() -> S,
    take: impl Fn(&mut S, &[Pair]) -> Result<()>,
) -> Result<S> {
    let mut rows = [Rows::default(), Rows::default()];
    for (side, rows) in sides.iter().zip(&mut rows) {
        side.for_each_slice(|first, values| {
            rows.values.extend_from_slice(values);
            rows.numbers.extend((first..).take(values.len()));
            Ok(())
        })?;
    }
    let mut inside = Inside::new(within, sides.len() > 1);
    let mut state = begin();
    let mut take = |pairs: &[Pair]| take(&mut state, pairs);
    inside.large(
        rows.each_ref().map(|rows| Slice { values: &rows.values, numbers: &rows.numbers, in_order: false }),
        &Place::default(),
        &mut take,
    )?;
    inside.hand_on(1, &mut take)?;
    Ok(state)
}

impl Join<'_> {
    /// Fingerprints of each part of each table.
    fn count(&self, side: &Values<'_>, threads: usize) -> Result<Vec<Vec<u32>>> {
        let none =
            || -> Vec<Vec<u32>> { self.tables.iter().map(|table| vec![0; 1 << table.part_bits]).collect() };
        let add = |counts: &mut Vec<Vec<u32>>, values: &[u64]| {
            for some in values.chunks(TOGETHER) {
                for (table, counts) in self.tables.iter().zip(&mut *counts) {
                    let last = counts.len() - 1;
                    for &value in some {
                        counts[table.part(value) & last] += 1;
                    }
                }
            }
        };
        let Some(held) = side.held().filter(|_| threads > 1) else {
            let mut counts = none();
            side.for_each_slice(|_, values| {
                add(&mut counts, values);
                Ok(())
            })?;
            return Ok(counts);
        };
        let all: Vec<Vec<Vec<u32>>> = std::thread::scope(|scope| {
            let workers: Vec<_> = held
                .chunks(held.len().div_ceil(threads).max(1))
                .map(|values| {
                    scope.spawn(move || {
                        let mut counts = none();
                        add(&mut counts, values);
                        counts
                    })
                })
                .collect();
            let ended = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().map(ended).collect()
        });
        let mut sum = none();
        for counts in &all {
            for (sum, counts) in sum.iter_mut().zip(counts) {
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        Ok(sum)
    }

    /// Ranges of parts that fit memory together.
    ///
    /// Each range reads all fingerprints, so that threads take whole tables as long as there is one for each, and share
    /// those that are left. The first table is in order already where fingerprints ascend; it is read once however it is
    /// divided, and comes last, in small ranges, to keep all threads at work.
    fn jobs(&self, effort: Effort<'_>) -> Vec<Job> {
        let all: usize = self.sides.iter().map(Values::len).sum();
        let threads = effort.threads.max(1);
        let by_memory = effort.memory / ROW_BYTES / threads;
        let in_order = usize::from(self.sides.iter().all(Values::ascends));
        let whole = (self.tables.len() - in_order) / threads * threads;
        let mut jobs = Vec::new();
        for table in (in_order..self.tables.len()).chain(0..in_order) {
            let ranges = match table.checked_sub(in_order) {
                None if threads > 1 => threads * RANGES_A_THREAD,
                Some(table) if table >= whole => threads,
                _ => 1,
            };
            let most = (all.div_ceil(ranges)).min(by_memory).max(1) as u64;
            let rows =
                |part: usize| self.counts.iter().map(|counts| u64::from(counts[table][part])).sum::<u64>();
            let (mut start, mut sum) = (0, 0);
            let parts = 1 << self.tables[table].part_bits;
            for part in 0..parts {
                let now = rows(part);
                if sum > 0 && sum + now > most {
                    jobs.push(Job { table, parts: start..part });
                    (start, sum) = (part, 0);
                }
                sum += now;
            }
            jobs.push(Job { table, parts: start..parts });
        }
        jobs
    }

    fn run(
        &self,
        job: &Job,
        room: &mut Room,
        inside: &mut Inside,
        mut take: impl FnMut(&[Pair]) -> Result<()>,
    ) -> Result<()> {
        let table = self.tables[job.table];
        let place = Place {
            equal: table.mask(),
            unequal: self.tables[..job.table].iter().map(|table| table.mask()).collect(),
        };
        let by = By::Bits { start: table.start + table.part_bits, bits: table.bits - table.part_bits };
        let Room { sides, numbers } = room;
        // What ascends is in order for the first table as it stands.
        let sorted = |side: &Values<'_>| job.table == 0 && side.ascends();
        for (of, side) in self.sides.iter().enumerate().filter(|(_, side)| !sorted(side)) {
            self.distribute(of, side, job, &mut sides[of])?;
        }
        let mut starts = [0_usize; 2];
        for (of, _) in self.sides.iter().enumerate().filter(|(_, side)| sorted(side)) {
            starts[of] =
                self.counts[of][job.table][..job.parts.start].iter().map(|&count| count as usize).sum();
        }
        for (at, part) in job.parts.clone().enumerate() {
            let counts =
                [0, 1].map(|of| self.counts.get(of).map_or(0, |counts| counts[job.table][part] as usize));
            if if self.sides.len() > 1 { counts.contains(&0) } else { counts[0] < 2 } {
                starts.iter_mut().zip(counts).for_each(|(start, count)| *start += count);
                continue;
            }
            // The numbers of what is in order are consecutive: one side of a join inside, two of one across.
            let mut filled = [0..0, 0..0];
            numbers.clear();
            for (of, _) in self.sides.iter().enumerate().filter(|(_, side)| sorted(side)) {
                let from = numbers.len();
                numbers.extend((starts[of] as u32..).take(counts[of]));
                filled[of] = from..numbers.len();
            }
            let slices = [0, 1].map(|of| match self.sides.get(of) {
                None => Slice::default(),
                Some(side) if sorted(side) => Slice {
                    values: &side.held().unwrap_or_default()[starts[of]..starts[of] + counts[of]],
                    numbers: &numbers[filled[of].clone()],
                    in_order: true,
                },
                Some(_) => sides[of].slice(at),
            });
            starts.iter_mut().zip(counts).for_each(|(start, count)| *start += count);
            inside.divide(slices, by, &place, &mut take)?;
        }
        inside.hand_on(1, &mut take)
    }

    /// The first distribution of one side.
    fn distribute(&self, of: usize, side: &Values<'_>, job: &Job, rows: &mut Rows) -> Result<()> {
        let table = self.tables[job.table];
        let counts = &self.counts[of][job.table];
        let Rows { values: to, numbers, ends } = rows;
        ends.clear();
        let mut sum = 0_u32;
        for &count in &counts[job.parts.clone()] {
            ends.push(sum);
            sum += count;
        }
        if to.len() < sum as usize {
            // What is there need not be kept, and fresh memory is zero already.
            (*to, *numbers) = (Vec::new(), Vec::new());
            *to = vec![0; sum as usize];
            *numbers = vec![0; sum as usize];
        }
        let (to, numbers) = (&mut to[..sum as usize], &mut numbers[..sum as usize]);
        let (first, all) = (job.parts.start, job.parts.len() == counts.len());
        side.for_each_slice(|from, values| {
            // Borrowed anew, so that the loops need not ask where they are after each write.
            let (ends, to, numbers) = (&mut ends[..], &mut *to, &mut *numbers);
            if all {
                for (number, &value) in (from..).zip(values) {
                    put(&mut ends[table.part(value)], to, numbers, value, number)?;
                }
            } else {
                // Those of the range are picked first: a branch for each would be guessed wrongly too often.
                let mut picked = [0_u16; TOGETHER];
                for (some, from) in values.chunks(TOGETHER).zip((from..).step_by(TOGETHER)) {
                    let mut count = 0;
                    for (at, &value) in (0..).zip(some) {
                        picked[count % TOGETHER] = at;
                        count += usize::from(table.part(value).wrapping_sub(first) < ends.len());
                    }
                    for &at in &picked[..count] {
                        let value = some[usize::from(at)];
                        put(&mut ends[table.part(value) - first], to, numbers, value, from + u32::from(at))?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Puts a fingerprint at the end of its part. Parts are as long as the first reading said.
#[inline(always)]
fn put(end: &mut u32, to: &mut [u64], numbers: &mut [u32], value: u64, number: u32) -> Result<()> {
    let place = *end as usize;
    match (to.get_mut(place), numbers.get_mut(place)) {
        (Some(to), Some(of)) => (*to, *of) = (value, number),
        _ => return Err(changed()),
    }
    *end += 1;
    Ok(())
}

#[cold]
fn changed() -> Error {
    Error::Invalid(
        "the fingerprints changed while they were joined: nothing may write to the files of an index".into(),
    )
}

/// Fingerprints in ascending order, each once, and where each was found.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    pub(super) values: Vec<u64>,
    /// Where the numbers of each begin, and the end of the last.
    pub(super) starts: Vec<u32>,
    /// The numbers that each had, ascending.
    pub(super) numbers: Vec<u32>,
}

impl Distinct {
    /// Sorts fingerprints: distributed by their first bits, as tables are, and part by part in the cache.
    pub(super) fn of(values: Values<'_>, effort: Effort<'_>, spare: &Spare) -> Result<Self> {
        let count = values.len();
        check_count(count as u64)?;
        if count == 0 {
            return Ok(Self { starts: vec![0], ..Self::default() });
        }
        let sides = [values];
        let bits = count.ilog2().saturating_sub(PART_BITS).clamp(1, PARTS_BITS_MAX);
        let mut join = Join {
            sides: &sides,
            tables: vec![Table { start: 0, bits, part_bits: bits }],
            counts: Vec::new(),
        };
        join.counts = vec![join.count(&sides[0], effort.threads)?];
        let jobs = join.jobs(effort);
        let next = AtomicUsize::new(0);
        let mut states: Vec<Vec<(usize, Self)>> = Vec::new();
        states.resize_with(effort.threads.clamp(1, jobs.len()), Vec::new);
        on_threads(&mut states, |state| {
            let (mut rows, mut items, mut scratch) = (spare.take(), Vec::new(), Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(number) else {
                    // Tables of several threads would be too small for what a join makes of them.
                    if effort.threads == 1 {
                        spare.put(rows);
                    }
                    return Ok(());
                };
                join.distribute(0, &sides[0], job, &mut rows)?;
                let mut sorted = Self::default();
                let most = rows.ends.last().map_or(0, |&end| end as usize);
                sorted.values.reserve_exact(most);
                sorted.starts.reserve_exact(most);
                sorted.numbers.reserve_exact(most);
                for part in 0..job.parts.len() {
                    let Slice { values, numbers, .. } = rows.slice(part);
                    items.clear();
                    let item = |(&value, &number): (&u64, &u32)| u128::from(value) << 32 | u128::from(number);
                    items.extend(values.iter().zip(numbers).map(item));
                    sort(&mut items, &mut scratch);
                    for &item in &items {
                        let value = (item >> 32) as u64;
                        if sorted.values.last() != Some(&value) {
                            sorted.values.push(value);
                            sorted.starts.push(sorted.numbers.len() as u32);
                        }
                        sorted.numbers.push(item as u32);
                    }
                }
                state.push((number, sorted));
            }
        })?;
        let mut parts: Vec<(usize, Self)> = states.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|(number, _)| *number);
        let mut parts: Vec<Self> = parts.into_iter().map(|(_, part)| part).collect();
        let mut all = if parts.len() == 1 { parts.remove(0) } else { Self::joined(parts, effort.threads)? };
        all.starts.push(all.numbers.len() as u32);
        Ok(all)
    }

    /// Parts one behind the other, copied by threads.
    fn joined(parts: Vec<Self>, threads: usize) -> Result<Self> {
        let (distinct, count) = parts.iter().fold((0, 0), |(distinct, count), part| {
            (distinct + part.values.len(), count + part.numbers.len())
        });
        let mut all = Self { values: vec![0; distinct], starts: Vec::new(), numbers: vec![0; count] };
        // One more is pushed in the end.
        all.starts.reserve_exact(distinct + 1);
        all.starts.resize(distinct, 0);
        let mut rest = (&mut all.values[..], &mut all.starts[..], &mut all.numbers[..]);
        let mut work: Vec<Vec<_>> = Vec::new();
        work.resize_with(threads.clamp(1, parts.len().max(1)), Vec::new);
        let (threads, mut behind) = (work.len(), 0);
        for (at, part) in parts.into_iter().enumerate() {
            let (values, starts, numbers) = rest;
            let (values, more_values) = values.split_at_mut(part.values.len());
            let (starts, more_starts) = starts.split_at_mut(part.starts.len());
            let (numbers, more_numbers) = numbers.split_at_mut(part.numbers.len());
            rest = (more_values, more_starts, more_numbers);
            let first = behind;
            behind += numbers.len() as u32;
            work[at % threads].push((part, first, values, starts, numbers));
        }
        on_threads(&mut work, |work| {
            for (part, first, values, starts, numbers) in work.drain(..) {
                values.copy_from_slice(&part.values);
                starts.iter_mut().zip(&part.starts).for_each(|(to, start)| *to = start + first);
                numbers.copy_from_slice(&part.numbers);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// The numbers of the fingerprint at a place.
    #[inline]
    pub(super) fn at(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.numbers[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Refuses more fingerprints than numbers.
pub(super) fn check_count(count: u64) -> Result<()> {
    if u32::try_from(count).is_ok() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{count} fingerprints: a join takes up to {}; divide them", u32::MAX)))
}
