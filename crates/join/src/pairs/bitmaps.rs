//! Finds candidate pairs by comparing the odd sketches of all sets with compatible sizes: an exact set-similarity join that
//! reads no elements.
//!
//! Sets with resemblance t have similar sizes and differ in few elements, so their odd sketches (Mitzenmacher, Pagh and
//! Pham, WWW 2014) differ in few bits. This module compares the sketches of all pairs of sets with compatible sizes. It is
//! a nested loop with the length filter of `AllPairs` (Bayardo, Ma and Srikant, WWW 2007) and the bitmap filter of Sandes,
//! Teodoro and Melo (*Bitmap filter: speeding up exact set similarity joins with bitwise operations*, Information Systems
//! 88, 2020). It misses no pair, because sketches never differ in more bits than the sets differ in elements.
//!
//! The time is quadratic, but up to some ten thousand sets this is faster than a linear join, as eight sets are compared at
//! once, and a part of the bits is enough to rule out unrelated sets. The caller bounds the estimated work by the cost of
//! its linear join.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use zerocopy::IntoBytes;

use crate::pairs::odd_sketches::{self, words_for};
use crate::pairs::prefix::Prefixes;
use crate::sets::shingle_sets::ShingleSets;
use twindex::error::{Error, Result};
use twindex::sys::Spill;
use twindex::sys::threads::{in_order, share_out};
use twindex_kernel::{Kernel, Level, Simd};
use twindex_sketch::nearness::{least_part, most_differences};

/// Number of sketches compared at once.
const LANES: usize = 8;
/// One word from each of [`LANES`] sketches.
type LaneRow = [u64; LANES];

/// Minimum threshold. With a lower threshold, small sketches do not distinguish near pairs from others.
const THRESHOLD: f64 = 0.7;
/// Total number of compared rows that is always allowed. It is small, because sketches of tiny sets are often equal by
/// chance.
const ROWS_LEAST: u64 = 1 << 20;
/// Number of rows that could be compared in the time that a group of [`LANES`] sketches takes in addition to its rows.
const ROWS_PER_GROUP: usize = 2;
/// Number of groups of sketches that a thread copies together.
const GROUPS: usize = 256;
/// Number of sets in a tile. Each row of the other sets is read once for all sets of a tile.
const TILE: usize = 64;
/// Number of tiles per thread that may be processed while the results of an earlier tile wait to be collected.
const PIECES: usize = 8;
/// Maximum number of pairs passed to the callback at once.
const BATCH: usize = 1 << 14;

/// The work beyond which a caller uses another join.
#[derive(Clone, Copy, Debug)]
pub struct BitmapLimits {
    /// Maximum estimated number of compared rows, per element of all sets. A row is one word of each of eight sketches.
    pub rows: u64,
    /// Maximum number of candidate pairs.
    pub pairs: u64,
    /// Maximum number of candidate pairs of a set.
    pub partners: usize,
}

/// The sets to compare, sorted by size.
struct TilePlan<'a> {
    sets: &'a ShingleSets,
    threshold: f64,
    /// The nonempty sets, sorted by size; `sizes` holds their sizes.
    list: Vec<u32>,
    sizes: Vec<u32>,
    /// For each set in `list`, the first position in `list` of a set that is large enough to resemble it.
    firsts: Vec<u32>,
}

/// The sketches of one length, in groups of [`LANES`] sketches.
struct SizeClass {
    /// The length of each sketch in words.
    words: usize,
    /// The positions in [`TilePlan::list`] of the sets whose sketches have this length.
    places: Range<usize>,
    /// For each group of sketches, one row per word.
    rows: Vec<LaneRow>,
}

impl<'a> TilePlan<'a> {
    /// Returns the plan, or `None` if the threshold is too low or more than `max_rows` rows per element would be compared.
    fn of(sets: &'a ShingleSets, threshold: f64, max_rows: u64) -> Option<Self> {
        if threshold < THRESHOLD || !Self::is_little(sets, threshold, max_rows) {
            return None;
        }
        let list = sets.by_size();
        let sizes: Vec<u32> = list.iter().map(|&set| sets.size(set) as u32).collect();
        let mut firsts = Vec::with_capacity(list.len());
        let mut first = 0;
        for (place, &size) in sizes.iter().enumerate() {
            let size = size as usize;
            if place == 0 || sizes[place - 1] as usize != size {
                let min = least_part(size, threshold);
                while first < place && (sizes[first] as usize) < min {
                    first += 1;
                }
            }
            firsts.push(first as u32);
        }
        Some(Self { sets, threshold, list, sizes, firsts })
    }

    /// Returns whether the estimated work is small enough for this join. Allocates nothing per set, as there may be too many
    /// sets.
    fn is_little(sets: &ShingleSets, threshold: f64, max_rows: u64) -> bool {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for set in 0..sets.len() as u32 {
            *counts.entry(sets.size(set)).or_default() += 1;
        }
        counts.remove(&0);
        let max = sets.elements().saturating_mul(max_rows).max(ROWS_LEAST);
        let (mut before, mut rows, mut words) = (0, 0_u64, 0);
        // `reached` and `first` track the number of sets that are too small to resemble sets of the current size.
        let mut reached = counts.iter().peekable();
        let mut first = 0;
        for (&size, &count) in &counts {
            let size = size as usize;
            let min = least_part(size, threshold);
            while let Some((_, &count)) = reached.next_if(|&(&other, _)| (other as usize) < min) {
                first += count;
            }
            // On average one bit in three differs, and a comparison ends once too many bits differ.
            let until_far = most_differences(2 * size, threshold).unwrap_or(0) / 24 + 4;
            let each = until_far.min(words_for(size)) + ROWS_PER_GROUP;
            for place in before..before + count {
                rows = rows.saturating_add((each * (place - first)).div_ceil(LANES) as u64);
            }
            words += count * words_for(size);
            before += count;
        }
        words <= odd_sketches::BYTES / size_of::<u64>() && rows <= max
    }

    fn size(&self, place: usize) -> usize {
        self.sizes[place] as usize
    }

    fn classes(&self, threads: usize) -> Vec<SizeClass> {
        let sketches = self.sets.sketches();
        let mut classes = Vec::new();
        let mut start = 0;
        while start < self.list.len() {
            let words = words_for(self.size(start));
            // Sets are sorted by size, so sketch lengths ascend.
            let end = start + self.sizes[start..].partition_point(|&size| words_for(size as usize) == words);
            let mut rows = vec![[0; LANES]; (end - start).div_ceil(LANES) * words];
            let parts = rows.chunks_mut(GROUPS * words).zip(self.list[start..end].chunks(GROUPS * LANES));
            share_out(threads, parts, |(rows, sets)| {
                for (group, sets) in rows.chunks_exact_mut(words).zip(sets.chunks(LANES)) {
                    for (lane, &set) in sets.iter().enumerate() {
                        for (row, &word) in group.iter_mut().zip(sketches.of(set)) {
                            row[lane] = word;
                        }
                    }
                }
            });
            classes.push(SizeClass { words, places: start..end, rows });
            start = end;
        }
        classes
    }

    /// Returns the pairs of a set in the tile and an earlier set in the list.
    fn pairs_of(&self, tile: Range<usize>, classes: &[SizeClass]) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let first = self.firsts[tile.start] as usize;
        let mut folded = Vec::new();
        for class in classes {
            // The range of positions of all sets that some set of the tile may resemble.
            let from = first.max(class.places.start);
            let to = (tile.end - 1).min(class.places.end);
            if from >= to {
                continue;
            }
            folded.clear();
            for place in tile.clone() {
                let words = folded.len()..folded.len() + class.words;
                folded.resize(words.end, 0);
                // Folds the sketch to the length of the class. Sketches of the class are never longer than sketches of the
                // tile.
                for some in self.sets.sketches().of(self.list[place]).chunks(class.words) {
                    folded[words.clone()].iter_mut().zip(some).for_each(|(folded, word)| *folded ^= word);
                }
            }
            let range = from..to;
            let tile = tile.clone();
            Level::chosen().dispatch(TileComparison {
                plan: self,
                tile,
                folded: &folded,
                class,
                range,
                found: &mut found,
            });
        }
        // Sorts pairs by the set of the tile, then by partner, so that partners are read in the order of the scratch file.
        found.sort_unstable();
        found.iter().map(|&(place, partner)| (self.list[place as usize], partner)).collect()
    }

    /// Adds pairs of the set at `place` and the sets of a group that precede it and may resemble it. Sets that resemble it
    /// have at most `limit` differences.
    #[cold]
    fn take(
        &self,
        place: usize,
        group: Range<usize>,
        (differences, limit): (&LaneRow, u64),
        found: &mut Vec<(u32, u32)>,
    ) {
        for (other, &differences) in group.zip(differences) {
            let may_be_near = |max| differences <= max as u64;
            if differences <= limit
                && (self.firsts[place] as usize..place).contains(&other)
                && most_differences(self.size(place) + self.size(other), self.threshold)
                    .is_some_and(may_be_near)
            {
                found.push((place as u32, self.list[other]));
            }
        }
    }
}

/// Compares the sets of a tile with the sets of a class whose positions are in `range`.
struct TileComparison<'c> {
    plan: &'c TilePlan<'c>,
    tile: Range<usize>,
    /// The sketches of the tile, folded to the length of the class's sketches.
    folded: &'c [u64],
    class: &'c SizeClass,
    range: Range<usize>,
    /// The pairs found, each as the position of a set of the tile and the number of its partner.
    found: &'c mut Vec<(u32, u32)>,
}

impl Kernel for TileComparison<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        match self.class.words {
            1 => self.compare(sums_below::<1>),
            2 => self.compare(sums_below::<2>),
            _ => self.compare(sums_below::<4>),
        }
    }
}

impl TileComparison<'_> {
    #[inline(always)]
    fn compare(self, sums_below: impl Fn(&[u64], &[LaneRow], u64) -> Option<LaneRow>) {
        let Self { plan, tile, folded, class, range, found } = self;
        // An upper bound, despite rounding, of the number of differences between resembling sets, per element of both sets,
        // as a multiple of 2^-32.
        let share = (1.0 - plan.threshold) / (1.0 + plan.threshold);
        #[allow(clippy::cast_sign_loss, reason = "a share")]
        let share = (share * f64::from(u32::MAX)) as u64 + 1;
        let mut end_of_tile = tile.start;
        let groups =
            (range.start - class.places.start) / LANES..(range.end - class.places.start).div_ceil(LANES);
        for group in groups {
            let start = class.places.start + group * LANES;
            let end = (start + LANES).min(class.places.end);
            let rows = &class.rows[group * class.words..(group + 1) * class.words];
            let largest = plan.sizes[end - 1];
            // Extends the tile to all sets that may resemble a set of the group.
            while end_of_tile < tile.end && (plan.firsts[end_of_tile] as usize) < end {
                end_of_tile += 1;
            }
            let places = tile.start.max(start + 1)..end_of_tile;
            let Some(skipped) = places.start.checked_sub(tile.start).filter(|_| !places.is_empty()) else {
                continue;
            };
            let sketches = folded[skipped * class.words..].chunks_exact(class.words);
            for ((place, &size), words) in places.clone().zip(&plan.sizes[places]).zip(sketches) {
                let limit = (u64::from(size) + u64::from(largest)) * share / (1 << 32) + 2;
                if let Some(differences) = sums_below(words, rows, limit) {
                    plan.take(place, start..end, (&differences, limit), found);
                }
            }
        }
    }
}

/// Returns the number of bits in which a sketch differs from each of [`LANES`] sketches, or `None` if all of these numbers
/// exceed `limit`. Checks the limit after every `STEP` words; the number of words must be a multiple of `STEP`.
#[inline(always)]
fn sums_below<const STEP: usize>(words: &[u64], rows: &[LaneRow], limit: u64) -> Option<LaneRow> {
    let mut sums = [0; LANES];
    for (words, rows) in words.as_chunks::<STEP>().0.iter().zip(rows.as_chunks::<STEP>().0) {
        for (&word, row) in words.iter().zip(rows) {
            for (sum, &other) in sums.iter_mut().zip(row) {
                *sum += u64::from((word ^ other).count_ones());
            }
        }
        if sums.iter().all(|&sum| sum > limit) {
            return None;
        }
    }
    Some(sums)
}

/// Pairs that are passed to the callback at the end. Held in memory up to a limit, then in a scratch file.
struct PendingPairs<'a> {
    sets: &'a ShingleSets,
    max: usize,
    held: Vec<(u32, u32)>,
    spill: Option<Spill>,
}

impl PendingPairs<'_> {
    fn push(&mut self, pairs: &[(u32, u32)]) -> Result<()> {
        if self.held.len() + pairs.len() <= self.max {
            self.held.extend_from_slice(pairs);
            return Ok(());
        }
        let io_error = |e| Error::io("write a scratch file in", self.sets.dir(), e);
        if self.spill.is_none() {
            self.spill = Some(Spill::create(self.sets.dir()).map_err(io_error)?);
        }
        self.max = 0; // all later pairs are written to the file
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let numbers: Vec<[u32; 2]> = pairs.iter().map(|&(a, b)| [a, b]).collect();
        spill.append(numbers.as_bytes()).map_err(io_error)?;
        Ok(())
    }

    fn hand_out<E: From<Error>>(
        self,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.held.chunks(BATCH).try_for_each(&mut *each)?;
        let Some(spill) = &self.spill else { return Ok(()) };
        let mut at = 0;
        while at < spill.len() {
            let left = (spill.len() - at) as usize / size_of::<[u32; 2]>();
            let mut numbers = vec![[0_u32; 2]; left.min(BATCH)];
            let read = spill.read_exact_at(numbers.as_mut_bytes(), at);
            read.map_err(|e| Error::io("read a scratch file in", self.sets.dir(), e))?;
            at += size_of_val(numbers.as_slice()) as u64;
            let batch: Vec<_> = numbers.into_iter().map(<(u32, u32)>::from).collect();
            each(&batch)?;
        }
        Ok(())
    }
}

/// Like [`prefix_candidates`](crate::prefix_candidates), by comparing the sketches of the sets. Returns `None`, without
/// passing any pair, if this join is unsuitable: if the threshold is below 0.7, or if a limit is exceeded.
///
/// Memory: up to 32 MiB for the sketches, `memory` bytes for pairs, and 8 bytes per set.
///
/// Time: linear in the number of pairs of sets with compatible sizes.
///
/// # Errors
/// [`Error::Io`] from a scratch file, or the error of `each`.
pub fn bitmap_candidates<E: From<Error>>(
    sets: &ShingleSets,
    threshold: f64,
    limits: BitmapLimits,
    memory: usize,
    threads: usize,
    mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
) -> std::result::Result<Option<Prefixes>, E> {
    let Some(plan) = TilePlan::of(sets, threshold, limits.rows) else { return Ok(None) };
    let classes = plan.classes(threads);
    let tiles: Vec<Range<usize>> =
        (0..plan.list.len()).step_by(TILE).map(|at| at..(at + TILE).min(plan.list.len())).collect();
    let mut partners = vec![0_u32; sets.len()];
    let mut waiting =
        PendingPairs { sets, max: memory / size_of::<(u32, u32)>(), held: Vec::new(), spill: None };
    let mut candidates = 0;
    let mut states = vec![(); threads.max(1)];
    let pairs_of = |(): &mut (), tile: &Range<usize>| Ok(plan.pairs_of(tile.clone(), &classes));
    let found = in_order(&mut states, &tiles, PIECES, pairs_of, |pairs: Vec<(u32, u32)>| {
        candidates += pairs.len() as u64;
        for &(a, b) in &pairs {
            for set in [a, b] {
                partners[set as usize] += 1;
                if partners[set as usize] as usize > limits.partners {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if candidates > limits.pairs {
            return Ok(ControlFlow::Break(()));
        }
        waiting.push(&pairs)?;
        Ok(ControlFlow::Continue(()))
    })?;
    if found.is_break() {
        return Ok(None);
    }
    drop(classes);
    let largest = partners.iter().copied().max().map_or(0, u64::from);
    waiting.hand_out(&mut each)?;
    Ok(Some(Prefixes { candidates, largest, cap: limits.partners as u64, ..Prefixes::default() }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;
    use twindex_sketch::Resemblance;

    /// Returns sets of up to `max` elements. Half of them are derived from earlier sets by a few changes.
    fn families(seed: u64, count: usize, max: u64) -> Vec<Vec<u64>> {
        let mut random = SplitMix(seed);
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for _ in 0..count {
            let number = random.next() as usize;
            let of_family = if number.is_multiple_of(2) { sets.get(number / 2 % count.max(1)) } else { None };
            let mut set = of_family.cloned().unwrap_or_default();
            if set.is_empty() {
                set.extend(std::iter::repeat_with(|| random.next()).take((number % max as usize) + 1));
            }
            for _ in 0..random.next() % (1 + set.len() as u64 / 8) {
                set.pop_first();
                set.insert(random.next());
            }
            sets.push(set);
        }
        sets.into_iter().map(|set| set.into_iter().collect()).collect()
    }

    fn stored(sets: &[Vec<u64>], dir: &std::path::Path) -> ShingleSets {
        let mut stored = ShingleSets::new(dir, usize::MAX);
        for set in sets {
            stored.push(set).unwrap();
        }
        stored
    }

    fn found(
        sets: &ShingleSets,
        threshold: f64,
        partners: usize,
        (memory, threads): (usize, usize),
    ) -> Option<(Vec<(u32, u32)>, Prefixes)> {
        let mut pairs = Vec::new();
        let each = |batch: &[(u32, u32)]| {
            pairs.extend_from_slice(batch);
            Ok::<_, Error>(())
        };
        let limits = BitmapLimits { rows: 0, pairs: u64::MAX, partners };
        let found = bitmap_candidates(sets, threshold, limits, memory, threads, each).unwrap();
        assert!(found.is_some() || pairs.is_empty(), "a search that stops early has handed out nothing");
        found.map(|found| (pairs, found))
    }

    #[test]
    fn all_pairs_at_the_threshold_and_few_others_are_candidates() {
        let dir = tempfile::tempdir().unwrap();
        for (seed, count, max) in
            [(1, 600, 12), (2, 600, 70), (3, 400, 700), (4, 200, 5000), (5, 1, 5), (6, 0, 1)]
        {
            let sets = families(seed, count, max);
            let stored = stored(&sets, dir.path());
            for threshold in [0.7, 0.75, 0.8, 0.9, 0.99, 1.0] {
                let (pairs, summary) = found(&stored, threshold, usize::MAX, (usize::MAX, 1)).unwrap();
                assert_eq!(summary.candidates, pairs.len() as u64);
                let mut sorted: Vec<_> = pairs.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
                sorted.sort_unstable();
                assert!(sorted.windows(2).all(|two| two[0] != two[1]), "each pair once");
                let mut near = 0;
                for (b, large) in (0..).zip(&sets) {
                    for (a, small) in (0..).zip(&sets[..b as usize]) {
                        if Resemblance::of_sets(small, large).at_least(threshold) {
                            near += 1;
                            assert!(sorted.binary_search(&(a, b)).is_ok(), "{seed} {threshold}: {a} {b}");
                        }
                    }
                }
                assert!(
                    count < 200 || threshold > 0.95 || near > 2,
                    "a test of something: {seed} {threshold} {near}"
                );
                assert!(
                    max < 70 || pairs.len() <= 3 * near + 10,
                    "{seed} {threshold}: {} for {near}",
                    pairs.len()
                );
                assert!(pairs.iter().all(|&(a, b)| stored.size(a) >= stored.size(b)), "the larger first");
                // The result must not depend on the memory or the number of threads.
                for resources in [(0, 1), (1000, 3)] {
                    let again = found(&stored, threshold, usize::MAX, resources).unwrap();
                    assert_eq!(again, (pairs.clone(), summary), "{seed} {threshold} {resources:?}");
                }
            }
        }
    }

    #[test]
    fn subset_exactly_at_the_threshold_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(6);
        for size in (5..400).step_by(5) {
            let mut set: Vec<u64> = std::iter::repeat_with(|| random.next()).take(size).collect();
            set.sort_unstable();
            let sets = [set[..size * 4 / 5].to_vec(), set[..size * 4 / 5 - 1].to_vec(), set];
            let (mut pairs, _) = found(&stored(&sets, dir.path()), 0.8, 10, (usize::MAX, 1)).unwrap();
            pairs.sort_unstable();
            let near = Resemblance::of_sets(&sets[0], &sets[1]).at_least(0.8);
            assert_eq!(pairs, if near { vec![(0, 1), (2, 0)] } else { vec![(2, 0)] }, "{size}");
        }
    }

    #[test]
    fn bitmaps_are_not_used_for_low_thresholds_or_sets_with_too_many_partners() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(7);
        let common: Vec<u64> = std::iter::repeat_with(|| random.next()).take(100).collect();
        let crowd: Vec<Vec<u64>> = (0..50)
            .map(|_| {
                let mut set = common.clone();
                set[random.next() as usize % 100] = random.next();
                set.sort_unstable();
                set
            })
            .collect();
        let stored = stored(&crowd, dir.path());
        let (pairs, summary) = found(&stored, 0.8, 49, (usize::MAX, 2)).unwrap();
        assert_eq!((pairs.len(), summary.largest, summary.capped), (50 * 49 / 2, 49, 0));
        assert!(found(&stored, 0.8, 48, (usize::MAX, 2)).is_none());
        assert!(found(&stored, 0.69, 49, (usize::MAX, 2)).is_none());
    }

    #[test]
    fn bitmaps_are_not_used_if_too_many_rows_would_be_compared() {
        let dir = tempfile::tempdir().unwrap();
        let many = |count: u64| {
            let mut sets = ShingleSets::new(dir.path(), 0);
            let mut random = SplitMix(8);
            for _ in 0..count {
                sets.push(&[random.next() >> 1, u64::MAX]).unwrap();
            }
            sets
        };
        // n sets of two elements form n^2 / 2 pairs, compared eight at a time, and each group counts as three rows.
        let is_used = |count, max_rows| TilePlan::of(&many(count), 0.8, max_rows).is_some();
        assert!(is_used(2000, 0) && !is_used(2500, 0));
        assert!(is_used(4000, 400) && !is_used(5000, 400));
    }
}
