//! Sorts items by radix, in memory or, if they exceed the memory budget, with scratch files; merges sorted runs.
//!
//! [`sort`] distributes items by their first differing bits, and sorts the remaining small groups by comparison, so
//! that it takes O(n log n) in the worst case. [`sort_tail_in_order`] is faster for items that are sorted except for
//! their leading bits, such as the keys of a table computed from ascending fingerprints. `RadixSorter` sorts any number
//! of items within a memory budget. `RunMerge` merges sorted runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::spilled::{ChunkedValues, Item, SliceSource, SpillBudget, decode};
use crate::error::Result;
use crate::sys::Spill;
use crate::sys::threads::share_out;

/// Maximum number of items that are sorted by comparison.
const SMALL: usize = 64;
/// Number of items that fit into the second-level cache together with the copies that sorting needs.
const CACHED: usize = 1 << 16;
/// If items exceed the cache, one pass distributes them by this number of bits. The TLB then covers the output streams
/// of all buckets.
const FAR_BITS: u32 = 8;
const FAR: usize = 1 << FAR_BITS;
/// If items fit into the cache, one pass distributes them by at most this number of bits.
const NEAR_BITS: u32 = 11;
const NEAR: usize = 1 << NEAR_BITS;
/// Items are distributed by this number of bits more than the binary logarithm of their count. Of random items, about
/// one in 16 then shares its bucket with another one.
const APART_BITS: u32 = 4;

/// Sorts `items`. Takes O(n) time if the keys are random from their first differing bit on, and O(n log n) in the worst
/// case. `scratch` is overwritten and resized to the length of `items`.
pub fn sort<T: Item>(items: &mut [T], scratch: &mut Vec<T>) {
    resize(scratch, items.len());
    scatter_unordered(items, scratch, false);
}

/// Resizes scratch memory, whose contents do not matter. New memory is zeroed by the system when it is first used, by the
/// thread that uses it.
fn resize<T: Item>(scratch: &mut Vec<T>, length: usize) {
    if scratch.capacity() < length {
        *scratch = vec![T::default(); length];
    } else {
        scratch.resize(length, T::default());
    }
}

/// Sorts as [`sort`] does, on up to `threads` threads. The first distribution and the sorting of its buckets are shared out.
/// Fewer threads are busy if most keys agree in the eight bits after their first difference.
pub fn sort_on_threads<T: Item>(threads: usize, items: &mut [T], scratch: &mut Vec<T>) {
    if threads < 2 || items.len() <= CACHED {
        return sort(items, scratch);
    }
    resize(scratch, items.len());
    let (from, to) = (items, &mut scratch[..]);
    let piece = from.len().div_ceil(threads);
    let (first, differ) = (from[0].key(), AtomicU64::new(0));
    share_out(threads, from.chunks(piece), |piece| {
        let bits = piece.iter().fold(0, |bits, item| bits | item.key() ^ first);
        differ.fetch_or(bits, Ordering::Relaxed);
    });
    let top = 64 - differ.into_inner().leading_zeros();
    let now = top.min(FAR_BITS);
    let bucket = |item: T| (item.key().checked_shr(top - now).unwrap_or(0) & ((1 << now) - 1)) as usize;
    let mut pieces: Vec<DistributedPiece<'_, T>> =
        from.chunks(piece).map(|from| DistributedPiece { from, counts: [0; FAR], to: Vec::new() }).collect();
    share_out(threads, &mut pieces, |piece| {
        for &item in piece.from {
            piece.counts[bucket(item) % FAR] += 1;
        }
    });
    let (mut rest, mut lengths) = (&mut *to, [0; FAR]);
    for (number, length) in lengths.iter_mut().enumerate() {
        for piece in &mut pieces {
            let own;
            (own, rest) = rest.split_at_mut(piece.counts[number]);
            *length += own.len();
            piece.to.push(own);
        }
    }
    share_out(threads, pieces, |piece| {
        let (mut to, mut next) = (piece.to, [0; FAR]);
        for &item in piece.from {
            let number = bucket(item) % FAR;
            to[number][next[number]] = item;
            next[number] += 1;
        }
    });
    let bits = top.min(from.len().ilog2() + APART_BITS);
    let (mut from, mut to) = (from, to);
    let buckets = lengths.map(|length| {
        let (sorted, copy);
        (sorted, from) = std::mem::take(&mut from).split_at_mut(length);
        (copy, to) = std::mem::take(&mut to).split_at_mut(length);
        (sorted, copy)
    });
    share_out(threads, buckets, |(to, from)| scatter(from, to, true, top - now, bits - now));
}

/// Consecutive items, their number in each bucket, and the part of each bucket to which they are moved.
struct DistributedPiece<'a, T> {
    from: &'a [T],
    counts: [usize; FAR],
    to: Vec<&'a mut [T]>,
}

/// Sorts as [`sort`] does. Correct for any order, but faster if the items are already sorted by the bits after the
/// first `lead` bits of their keys.
pub fn sort_tail_in_order<T: Item>(items: &mut [T], scratch: &mut Vec<T>, lead: u32) {
    resize(scratch, items.len());
    scatter(items, scratch, false, 64, lead.min(64));
}

/// Sorts `from` by radix, starting at the first bit in which the keys differ. The result is in `to` if `across` is true,
/// otherwise in `from`.
fn scatter_unordered<T: Item>(from: &mut [T], to: &mut [T], across: bool) {
    let first = from.first().map_or(0, |item| item.key());
    let differ = from.iter().fold(0, |bits, item| bits | item.key() ^ first);
    let top = 64 - differ.leading_zeros();
    if from.len() <= SMALL || top == 0 {
        from.sort_unstable();
        if across {
            to.copy_from_slice(from);
        }
        return;
    }
    scatter(from, to, across, top, top.min(from.len().ilog2() + APART_BITS));
}

/// Sorts `from`, whose keys differ only in the lowest `top` bits. Distributes the items stably by the first `bits` of
/// these bits, then sorts each group that is not in order. The result is in `to` if `across` is true, otherwise in
/// `from`.
fn scatter<T: Item>(from: &mut [T], to: &mut [T], across: bool, top: u32, bits: u32) {
    if from.len() <= SMALL || bits == 0 {
        settle(from, to);
        if across {
            to.copy_from_slice(from);
        }
        return;
    }
    if from.len() > CACHED {
        let now = bits.min(FAR_BITS);
        let ends = distribute(from, to, top - now, now);
        let mut start = 0;
        for &end in &ends[..1 << now] {
            let bucket = start..end as usize;
            start = end as usize;
            scatter(&mut to[bucket.clone()], &mut from[bucket], !across, top - now, bits - now);
        }
        return;
    }
    // If the remaining bits are random, the first few distinguish nearly all items. If the items are already in the
    // order of the remaining bits, a stable distribution keeps this order.
    let bits = bits.min(from.len().ilog2() + APART_BITS).min(2 * NEAR_BITS);
    let shift = top - bits;
    let twice = bits > NEAR_BITS;
    if twice {
        let low = bits / 2;
        distribute(from, to, shift, low);
        distribute(to, from, shift + low, bits - low);
    } else {
        distribute(from, to, shift, bits);
    }
    let (sorted, other) = if twice { (from, to) } else { (to, from) };
    let mut start = 0;
    for end in 1..=sorted.len() {
        if end == sorted.len() || sorted[end].key() >> shift != sorted[start].key() >> shift {
            if end - start > 1 {
                settle(&mut sorted[start..end], &mut other[start..end]);
            }
            start = end;
        }
    }
    if across == twice {
        other.copy_from_slice(sorted);
    }
}

/// Sorts a group of items that agree in the distributed bits. Fast if the group is small or already in order.
fn settle<T: Item>(items: &mut [T], scratch: &mut [T]) {
    if items.is_sorted() {
        return;
    }
    if items.len() <= SMALL { items.sort_unstable() } else { scatter_unordered(items, scratch, false) }
}

/// Distributes items stably into buckets by the `bits` bits above the lowest `shift` bits of their keys. Returns the
/// end of each bucket in `to`.
fn distribute<T: Item>(from: &[T], to: &mut [T], shift: u32, bits: u32) -> [u32; NEAR] {
    let mask = (1_u64 << bits) - 1;
    let bucket = |item: T| (item.key().checked_shr(shift).unwrap_or(0) & mask) as usize % NEAR;
    let mut next = [0_u32; NEAR];
    for &item in from {
        next[bucket(item)] += 1;
    }
    let mut sum = 0;
    for count in &mut next[..1 << bits] {
        sum += std::mem::replace(count, sum);
    }
    for &item in from {
        let place = &mut next[bucket(item)];
        to[*place as usize] = item;
        *place += 1;
    }
    next
}

/// Number of bits by which one pass partitions items into buckets of a scratch file.
const DIGIT_BITS: u32 = 8;
/// Maximum number of bytes of a bucket that are buffered before they are written.
const WAITING_BYTES: usize = 1 << 14;

/// Sorts any number of items. If they exceed the memory, partitions them by their leading bits into buckets in a
/// scratch file, and partitions large buckets again. Then sorts each bucket in memory.
#[derive(Debug)]
pub(super) struct RadixSorter<'r, T> {
    budget: SpillBudget<'r>,
    /// Maximum number of items in memory. To sort them, scratch memory for the same number of items is needed.
    max: usize,
    top: u32,
    items: Vec<T>,
    buckets: Option<Partition<T>>,
}

impl<'r, T: Item> RadixSorter<'r, T> {
    /// Creates a sorter that uses at most `bytes` bytes of memory, for items whose keys have at most `top` bits. If
    /// more items can have the same key than fit into memory, these must be pushed in order.
    pub(super) fn new(budget: SpillBudget<'r>, bytes: usize, top: u32) -> Self {
        let max = (bytes / 2 / size_of::<T>()).max(SMALL);
        Self { budget, max, top, items: Vec::new(), buckets: None }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) -> Result<()> {
        if self.items.len() == self.max {
            self.spill()?;
        }
        self.items.push(item);
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        if self.buckets.is_none() {
            self.buckets = Some(Partition::new(self.budget, self.top, self.max * size_of::<T>())?);
        }
        if let Some(buckets) = &mut self.buckets {
            self.items.iter().try_for_each(|&item| buckets.push(self.budget, item))?;
        }
        self.items.clear();
        Ok(())
    }

    /// Sorts the pushed items.
    pub(super) fn finish(mut self) -> Result<RadixSorted<'r, T>> {
        if self.buckets.is_some() {
            self.spill()?;
            self.items = Vec::new();
        }
        let Self { budget, max, mut items, buckets, .. } = self;
        match buckets {
            None => sort_on_threads(budget.threads(), &mut items, &mut Vec::new()),
            Some(buckets) => return Ok(RadixSorted { budget, max, items, buckets: buckets.finish(budget)? }),
        }
        Ok(RadixSorted { budget, max, items, buckets: Vec::new() })
    }
}

/// The result of a `RadixSorter`. It can be iterated repeatedly.
#[derive(Debug)]
pub(super) struct RadixSorted<'r, T> {
    budget: SpillBudget<'r>,
    max: usize,
    items: Vec<T>,
    /// The buckets in scratch files, in ascending order. Empty if all items are in memory.
    buckets: Vec<SpilledBucket>,
}

impl<'r, T: Item> RadixSorted<'r, T> {
    /// Returns all items in ascending order.
    pub(super) fn values(&self) -> ChunkedValues<'_, T> {
        if self.buckets.is_empty() {
            return ChunkedValues::of(&self.items);
        }
        let mut rest = RemainingBuckets::of(self.budget, self.max, self.buckets.clone());
        ChunkedValues::from_chunks(move || rest.next())
    }

    /// Returns all items in ascending order, if they are in memory.
    pub(super) fn in_memory(&self) -> Option<&[T]> {
        self.buckets.is_empty().then_some(&self.items[..])
    }

    /// Returns all items in ascending order, and consumes the result.
    pub(super) fn into_values(self) -> ChunkedValues<'r, T> {
        if self.buckets.is_empty() {
            return ChunkedValues::from(self.items);
        }
        let mut rest = RemainingBuckets::of(self.budget, self.max, self.buckets);
        ChunkedValues::from_chunks(move || rest.next())
    }
}

/// The buckets that have not been sorted yet. The last one has the smallest keys.
struct RemainingBuckets<'r, T> {
    budget: SpillBudget<'r>,
    max: usize,
    buckets: Vec<SpilledBucket>,
    scratch: Vec<T>,
}

impl<'r, T: Item> RemainingBuckets<'r, T> {
    fn of(budget: SpillBudget<'r>, max: usize, mut buckets: Vec<SpilledBucket>) -> Self {
        buckets.reverse();
        Self { budget, max, buckets, scratch: Vec::new() }
    }

    fn next(&mut self) -> Result<Option<Vec<T>>> {
        while let Some(mut bucket) = self.buckets.pop() {
            if bucket.items <= self.max as u64 {
                let mut items = bucket.load(self.budget, &bucket.places)?;
                sort_on_threads(self.budget.threads(), &mut items, &mut self.scratch);
                return Ok(Some(items));
            }
            if bucket.top == 0 {
                // All items of this bucket have the same key. They were pushed in order, so they are sorted.
                let items: Vec<T> = bucket.load(self.budget, &bucket.places[..1])?;
                bucket.places.remove(0);
                bucket.items -= items.len() as u64;
                self.buckets.push(bucket);
                return Ok(Some(items));
            }
            let mut parts = Partition::new(self.budget, bucket.top, self.max * size_of::<T>())?;
            for place in bucket.places.chunks(1) {
                let items: Vec<T> = bucket.load(self.budget, place)?;
                items.into_iter().try_for_each(|item| parts.push(self.budget, item))?;
            }
            self.buckets.extend(parts.finish(self.budget)?.into_iter().rev());
        }
        Ok(None)
    }
}

/// A bucket in a scratch file. Its keys differ only in their lowest `top` bits.
#[derive(Clone, Debug)]
struct SpilledBucket {
    spill: Arc<Spill>,
    /// The offset and the length in bytes of each chunk in the scratch file.
    places: Vec<(u64, u32)>,
    items: u64,
    top: u32,
}

impl SpilledBucket {
    fn load<T: Item>(&self, budget: SpillBudget<'_>, places: &[(u64, u32)]) -> Result<Vec<T>> {
        let mut items = Vec::new();
        for &(place, length) in places {
            decode(&budget.read(&self.spill, place, length)?, &mut items);
        }
        Ok(items)
    }
}

/// A scratch file that is being written. It has a bucket for each value of the leading bits of the keys.
#[derive(Debug)]
struct Partition<T> {
    spill: Spill,
    /// The number of key bits after those that select a bucket.
    shift: u32,
    waiting_bytes: usize,
    buckets: Vec<PendingBucket>,
    of: std::marker::PhantomData<T>,
}

#[derive(Clone, Debug, Default)]
struct PendingBucket {
    bytes: Vec<u8>,
    places: Vec<(u64, u32)>,
    items: u64,
}

impl<T: Item> Partition<T> {
    fn new(budget: SpillBudget<'_>, top: u32, bytes: usize) -> Result<Self> {
        let bits = top.min(DIGIT_BITS);
        let waiting_bytes = ((bytes / 2) >> bits).clamp(T::BYTES, WAITING_BYTES);
        let buckets = vec![PendingBucket::default(); 1 << bits];
        Ok(Self {
            spill: budget.spill()?,
            shift: top - bits,
            waiting_bytes,
            buckets,
            of: std::marker::PhantomData,
        })
    }

    #[inline]
    fn push(&mut self, budget: SpillBudget<'_>, item: T) -> Result<()> {
        let digit = item.key().checked_shr(self.shift).unwrap_or(0) as usize % self.buckets.len();
        let bucket = &mut self.buckets[digit];
        item.put(&mut bucket.bytes);
        bucket.items += 1;
        if bucket.bytes.len() >= self.waiting_bytes {
            bucket.write(budget, &mut self.spill)?;
        }
        Ok(())
    }

    /// Returns the non-empty buckets in ascending order.
    fn finish(mut self, budget: SpillBudget<'_>) -> Result<Vec<SpilledBucket>> {
        for bucket in &mut self.buckets {
            bucket.write(budget, &mut self.spill)?;
        }
        let (spill, top) = (Arc::new(self.spill), self.shift);
        let some = self.buckets.into_iter().filter(|bucket| bucket.items > 0);
        Ok(some
            .map(|PendingBucket { places, items, .. }| SpilledBucket {
                spill: Arc::clone(&spill),
                places,
                items,
                top,
            })
            .collect())
    }
}

impl PendingBucket {
    fn write(&mut self, budget: SpillBudget<'_>, spill: &mut Spill) -> Result<()> {
        if !self.bytes.is_empty() {
            let length = self.bytes.len() as u32;
            self.places.push((budget.append(spill, &self.bytes)?, length));
            self.bytes.clear();
        }
        Ok(())
    }
}

/// Number of items of all runs that are sorted together. They and their copies fit into the first-level cache.
const MERGED: usize = 1 << 11;
/// Minimum number of items that are read from each run at once.
const WINDOW_MIN: usize = 32;

/// Merges ascending runs. Each step reads a window of items from each run. The smallest of the windows' last items is
/// the bound of the step: the items of all runs up to it are sorted and returned. For eight runs of random numbers this
/// is faster than a loser tree, because no step waits for a comparison.
#[derive(Debug)]
pub(super) struct RunMerge<R, T> {
    runs: Vec<MergeHead<R, T>>,
    window: usize,
    merged: Vec<T>,
    scratch: Vec<T>,
    counts: Vec<u32>,
}

/// Sorts a few thousand items, fastest if their keys are evenly spread. Distributes the items into more buckets than
/// there are items, then uses insertion sort. Falls back to a comparison sort, for O(n log n) in the worst case.
fn sort_even<T: Item>(items: &mut Vec<T>, scratch: &mut Vec<T>, counts: &mut Vec<u32>) {
    let (min, max) =
        items.iter().fold((u64::MAX, 0), |(min, max), item| (min.min(item.key()), max.max(item.key())));
    let span = 64 - max.wrapping_sub(min).leading_zeros();
    if items.len() <= SMALL || span == 0 {
        return items.sort_unstable();
    }
    let bits = items.len().ilog2() + 1;
    let shift = span.saturating_sub(bits);
    counts.clear();
    counts.resize(1 << bits, 0);
    let last = counts.len() - 1;
    let place = |item: T| ((item.key() - min) >> shift) as usize & last;
    for &item in &*items {
        counts[place(item)] += 1;
    }
    let mut sum = 0;
    for count in &mut *counts {
        sum += std::mem::replace(count, sum);
    }
    scratch.resize(items.len(), T::default());
    for &item in &*items {
        let next = &mut counts[place(item)];
        scratch[*next as usize] = item;
        *next += 1;
    }
    std::mem::swap(items, scratch);
    let mut moves = MOVES * items.len();
    for end in 1..items.len() {
        let item = items[end];
        if item < items[end - 1] {
            let mut to = end;
            while to > 0 && items[to - 1] > item {
                items[to] = items[to - 1];
                to -= 1;
            }
            items[to] = item;
            let Some(left) = moves.checked_sub(end - to) else { return items.sort_unstable() };
            moves = left;
        }
    }
}

/// If insertion sort would move items more often than this on average, a comparison sort is used.
const MOVES: usize = 4;

#[derive(Debug)]
struct MergeHead<R, T> {
    run: R,
    window: Vec<T>,
    at: usize,
    ended: bool,
}

/// An ascending run that is read piece by piece.
pub(super) trait SortedRun<T> {
    /// Appends at most `max` items; a long posting list may add more. Appends none only at the end of the run.
    fn fill(&mut self, items: &mut Vec<T>, max: usize) -> Result<()>;
}

impl<T: Item> SortedRun<T> for ChunkedValues<'_, T> {
    fn fill(&mut self, items: &mut Vec<T>, max: usize) -> Result<()> {
        self.take_some(max, |some| items.extend_from_slice(some))
    }
}

impl<T: Item, R: SortedRun<T>> RunMerge<R, T> {
    pub(super) fn new(runs: Vec<R>) -> Self {
        let window = (MERGED / runs.len().max(1)).max(WINDOW_MIN);
        let front = |run| MergeHead { run, window: Vec::new(), at: 0, ended: false };
        let runs = runs.into_iter().map(front).collect();
        Self { runs, window, merged: Vec::new(), scratch: Vec::new(), counts: Vec::new() }
    }
}

impl<T: Item, R: SortedRun<T>> SliceSource<T> for RunMerge<R, T> {
    fn next_slice(&mut self) -> Result<Option<&[T]>> {
        for front in &mut self.runs {
            front.window.drain(..front.at);
            front.at = 0;
            while !front.ended && front.window.len() < self.window {
                let before = front.window.len();
                front.run.fill(&mut front.window, self.window - before)?;
                front.ended = front.window.len() == before;
            }
        }
        // The unread items of a run are at or above the last item that was read from this run.
        let bound = self.runs.iter().filter_map(|front| front.window.last()).min().copied();
        let Some(bound) = bound else { return Ok(None) };
        self.merged.clear();
        let mut pieces = 0;
        for front in &mut self.runs {
            front.at = front.window.partition_point(|&item| item <= bound);
            self.merged.extend_from_slice(&front.window[..front.at]);
            pieces += usize::from(front.at > 0);
        }
        if pieces > 1 {
            sort_even(&mut self.merged, &mut self.scratch, &mut self.counts);
        }
        Ok(Some(&self.merged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// Returns lists of test items. Each list is difficult for one of the sorting steps.
    fn lists() -> Vec<Vec<u64>> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ state >> 29
        };
        let mut lists = vec![vec![], vec![7], vec![9; 1000], (0..5000).rev().collect()];
        for count in [2, 63, 65, 1000, 70_000, 200_000] {
            lists.push((0..count).map(|_| next()).collect());
            lists.push((0..count).map(|_| next() >> 50).collect());
            lists.push((0..count).map(|_| next() << 55).collect());
            // Nearly all items agree in all bits that the first distribution uses.
            lists.push(
                (0..count).map(|i| if i % 100 == 0 { next() } else { 5 << 60 | next() >> 44 }).collect(),
            );
        }
        lists
    }

    #[test]
    fn radix_sort_agrees_with_comparison_sort() {
        for list in lists() {
            let mut expected = list.clone();
            expected.sort_unstable();
            let mut scratch = Vec::new();
            for lead in [None, Some(0), Some(3), Some(16), Some(33), Some(64)] {
                let mut found = list.clone();
                match lead {
                    None => sort(&mut found, &mut scratch),
                    Some(lead) => sort_tail_in_order(&mut found, &mut scratch, lead),
                }
                assert!(found == expected, "{} items, lead {lead:?}", list.len());
            }
            let pairs: Vec<u128> = (0..)
                .zip(&list)
                .map(|(i, &value)| (u128::from(value >> 3) << 32) | (i * 7919 % 1000))
                .collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            for threads in [1, 2, 3, 16] {
                let mut pairs = pairs.clone();
                sort_on_threads(threads, &mut pairs, &mut Vec::new());
                assert!(pairs == expected, "{} pairs, {threads} threads", list.len());
            }
        }
    }

    #[test]
    fn radix_sorter_output_is_repeatable_and_independent_of_memory() {
        let dir = tempfile::tempdir().unwrap();
        for list in lists() {
            let mut expected: Vec<u128> =
                (0..).zip(&list).map(|(i, &value)| u128::from(value) << 32 | i).collect();
            let pushed = expected.clone();
            expected.sort_unstable();
            for memory in [usize::MAX, 1 << 20, 40_000, 1] {
                let mut sorter = RadixSorter::new(SpillBudget::new(memory, dir.path()), memory, 64);
                pushed.iter().try_for_each(|&item| sorter.push(item)).unwrap();
                let sorted = sorter.finish().unwrap();
                for _ in 0..2 {
                    let found: Vec<u128> = sorted.values().collect::<Result<_>>().unwrap();
                    assert!(found == expected, "{} items, {memory} bytes", list.len());
                }
            }
        }
    }

    #[test]
    fn merge_of_runs_of_any_length_is_their_sorted_union() {
        for list in lists() {
            for runs in [1, 2, 3, 8, 200] {
                let mut pieces: Vec<Vec<u64>> = vec![Vec::new(); runs];
                for (i, &value) in list.iter().enumerate() {
                    // Makes the runs differ in length.
                    pieces[i * i % runs].push(value);
                }
                for piece in &mut pieces {
                    piece.sort_unstable();
                }
                let mut merge = RunMerge::new(pieces.iter().map(|piece| ChunkedValues::of(piece)).collect());
                let mut found: Vec<u64> = Vec::new();
                while let Some(chunk) = merge.next_slice().unwrap() {
                    assert!(!chunk.is_empty());
                    found.extend_from_slice(chunk);
                }
                let mut expected = list.clone();
                expected.sort_unstable();
                assert!(found == expected, "{} items, {runs} runs", list.len());
            }
        }
    }

    #[test]
    fn failure_to_create_a_scratch_file_names_the_directory() {
        let budget = SpillBudget::new(1, std::path::Path::new("/no/such/directory"));
        let mut sorter: RadixSorter<'_, u64> = RadixSorter::new(budget, 1, 64);
        let error = (0..1000).try_for_each(|item| sorter.push(item)).unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("directory")), "{error:?}");
    }
}
