//! Finds candidate pairs by prefix filtering: an exact set-similarity join.
//!
//! The method is `AllPairs` (Bayardo, Ma and Srikant, *Scaling up all pairs similarity search*, WWW 2007) with the
//! positional filter of `PPJoin` (Xiao, Wang, Lin and Yu, *Efficient similarity joins for near duplicate detection*,
//! WWW 2008). All sets are sorted by the same order of elements. Two sets x and y with at least o common elements then
//! have a common element among the first |x| - o + 1 elements of x and the first |y| - o + 1 elements of y. If rare
//! elements come first in the order, few candidates are found by chance.
//!
//! If the resemblance is at least t, o is at least t |x| for any y, and at least 2 t / (1 + t) |y| if y is the smaller
//! set. So it suffices to index the first (1 - t) / (1 + t) |y| + 1 elements of each smaller set, and to look up the
//! first (1 - t) |x| + 1 elements of each larger set.
//!
//! Differences from the papers, which bound the memory and avoid reading most elements:
//!
//! - The order of elements is approximate: four classes, by the frequency of an element in a sample of the sets; within a
//!   class, by the elements themselves, which are hashes. Frequencies are counted in a table of a fixed size, in which
//!   elements may collide. Any order is correct if all sets use the same one. A prefix is thus found near the beginning of
//!   a set, without counting all elements.
//! - Prefix elements that are in no other set's prefix, according to a table of counters, are neither stored nor looked up.
//! - Sets are indexed in blocks, by ascending size. The sets of a block are looked up in the block's index, then all
//!   following sets that are small enough to resemble a set of the block. The index is complete before the first lookup, so
//!   any number of threads can look up sets at the same time.
//! - The work is bounded. An element in the prefixes of c sets leads to up to c^2 / 2 candidates. Elements of more sets
//!   than the cap are *capped*: a set with capped elements is paired only with the first and the previous set that have the
//!   same capped elements, and with the first and the previous set of each of these elements. Families of sets that share
//!   only capped elements thus stay connected, in linear time. The cap is `max_bucket`, or less if there would be more than
//!   [`CANDIDATES_PER_SET`] candidates or about [`PAIRS`](crate::bands::candidates::PAIRS) pairs per set. It depends only on the
//!   sets, so the results do not depend on the memory.

mod counts;
mod index;
pub(crate) mod order;
mod spread;

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::IntoBytes;

pub use self::counts::CANDIDATES_PER_SET;
use self::counts::{ElementCounts, LEAST, PIECES, SharedFilter, counted};
use self::index::{AHEAD, ElementEnds, ElementSlot, PrefixIndex, SetPosting, SetPrefixes, SharedElement};
use self::order::{FrequencyClasses, HeadScratch, Ordered};
use crate::sets::shingle_sets::ShingleSets;
use twindex::error::Result;
use twindex::sys::threads::on_threads;
use twindex_sketch::nearness::{least_intersection, least_part};

/// The number of candidates of a join, and statistics of capped elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefixes {
    /// Number of candidate pairs that were found.
    pub candidates: u64,
    /// Number of capped elements, which are in the prefixes of more than `cap` sets.
    pub capped: u64,
    /// Number of sets whose prefix contains the most frequent element. If no element is capped, this is an upper bound,
    /// because elements may collide in the table of counters.
    pub largest: u64,
    /// The cap: `max_bucket`, or less if there would be too many candidates or pairs.
    pub cap: u64,
}

/// Minimum number of pairs in each batch that is passed to the callback, except the last batch.
const BATCH: usize = 1 << 14;
/// Maximum memory in bytes per indexed element. It holds the element, another prefix element that is only looked up,
/// and a posting. While the index is built, it also holds the element with its count (12 bytes), its number, and fewer
/// than three slots in each of two hash tables.
const INDEXED_BYTES: usize = 2 * size_of::<SharedElement>()
    + 12
    + size_of::<u32>()
    + 6 * size_of::<ElementSlot>()
    + size_of::<SetPosting>();
/// Passes all pairs of sets whose resemblance is at least `threshold`, which must be above 0, and some other pairs to
/// `each`, in batches. The larger set of a pair comes first, and the pairs with the same first set are consecutive.
/// Each pair is passed once, or up to twice if elements are capped. Up to `threads` threads find pairs; `each` is
/// called only on the calling thread. The result depends on neither the number of threads nor `memory`.
///
/// Memory: about `memory` bytes, at least 1 MiB; up to 16 MiB for counters; and 16 bytes per set. Fewer threads are started
/// if the memory does not suffice for all. If elements are capped, pairs may be missing (see [`Prefixes::capped`]), and
/// each set with capped elements takes up to 60 bytes more.
///
/// Time: linear in the number of prefix elements, about 1 - `threshold` of all elements, and in the number of pairs of sets
/// that share a prefix element: at most about [`PAIRS`](crate::bands::candidates::PAIRS) per set, or 20 million in total.
///
/// # Errors
/// [`Error::Io`](twindex::Error::Io) from the scratch file of `sets`, or the error of `each`.
pub fn prefix_candidates<E: From<twindex::Error>>(
    sets: &ShingleSets,
    threshold: f64,
    max_bucket: usize,
    memory: usize,
    threads: usize,
    mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
) -> std::result::Result<Prefixes, E> {
    let classes = FrequencyClasses::of(sets)?;
    let list = sets.by_size();
    let ordered = Ordered { sets, classes: &classes, threshold };
    let max = ((memory / 2).max(LEAST) / INDEXED_BYTES).min(1 << 30);
    // Each thread has a `PairState` for every set of a block.
    let most_sets = max / 4;
    let known = size_of::<PairState>() * most_sets.min(sets.len()).max(1);
    let threads = threads.min(memory / 8 / known).max(1);
    let mut lookers: Vec<PrefixLookup> = (0..threads).map(|_| PrefixLookup::default()).collect();
    let mut head_scratches: Vec<HeadScratch> = (0..threads).map(|_| HeadScratch::default()).collect();
    let (shared, element_counts) = counted(ordered, max_bucket as u64, memory / 4, &mut head_scratches)?;
    let mut join = PrefixJoin {
        ordered,
        list: &list,
        shared: &shared,
        element_counts: &element_counts,
        max,
        most_sets,
        found: Prefixes {
            cap: element_counts.cap,
            largest: element_counts.largest.into(),
            ..Prefixes::default()
        },
        batch: Vec::new(),
        head_scratches,
    };
    if element_counts.any() {
        join.stars(&mut each)?;
    }
    let mut start = 0;
    while start < list.len() {
        start = join.block(start, &mut lookers, &mut each)?;
    }
    join.hand_out(&mut each)?;
    Ok(join.found)
}

struct PrefixJoin<'a> {
    ordered: Ordered<'a>,
    /// The nonempty sets, sorted by size.
    list: &'a [u32],
    shared: &'a SharedFilter,
    element_counts: &'a ElementCounts,
    /// A block ends when it has `max` postings or `most_sets` sets.
    max: usize,
    most_sets: usize,
    found: Prefixes,
    batch: Vec<(u32, u32)>,
    /// Working memory of each thread.
    head_scratches: Vec<HeadScratch>,
}

/// The sets that have a given capped element, or the sets that have the same capped elements. Each set is paired only
/// with the first and the previous set of the star.
#[derive(Clone, Copy)]
struct Star {
    first: u32,
    last: u32,
    sets: u32,
}

impl Star {
    /// Adds a set to the star of `key`, and appends its partners to `partners`. Returns the number of sets in the star.
    fn add<K: Hash + Eq>(stars: &mut HashMap<K, Self>, key: K, set: u32, partners: &mut Vec<u32>) -> u32 {
        let star = stars.entry(key).or_insert(Self { first: set, last: set, sets: 0 });
        if star.sets > 0 {
            partners.extend([star.first, star.last]);
        }
        star.last = set;
        star.sets += 1;
        star.sets
    }
}

impl PrefixJoin<'_> {
    /// Pairs each set that has capped elements with the representatives of these elements.
    fn stars<E: From<twindex::Error>>(
        &mut self,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut by_element: HashMap<u64, Star> = HashMap::new();
        let mut by_all: HashMap<u128, Star> = HashMap::new();
        let (mut partners, mut capped_elements) = (Vec::new(), Vec::new());
        self.found.largest = 0;
        for &set in self.list {
            let (head, _) = self.ordered.head(set, &mut self.head_scratches[0])?;
            capped_elements.clear();
            capped_elements.extend(head.iter().copied().filter(|&element| self.element_counts.has(element)));
            if capped_elements.is_empty() {
                continue;
            }
            partners.clear();
            for &element in &capped_elements {
                let sets = Star::add(&mut by_element, element, set, &mut partners);
                self.found.largest = self.found.largest.max(sets.into());
            }
            Star::add(&mut by_all, xxh3_128(capped_elements.as_bytes()), set, &mut partners);
            partners.sort_unstable();
            partners.dedup();
            let (sets, size) = (self.ordered.sets, self.ordered.sets.size(set));
            let near = |&&other: &&u32| self.ordered.could_resemble(sets.size(other), size);
            self.batch.extend(partners.iter().filter(near).map(|&other| (set, other)));
            if self.batch.len() >= BATCH {
                self.hand_out(each)?;
            }
        }
        self.found.capped = by_element.len() as u64;
        Ok(())
    }

    fn hand_out<E>(
        &mut self,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.found.candidates += self.batch.len() as u64;
        each(&self.batch)?;
        self.batch.clear();
        Ok(())
    }

    /// Finds the pairs whose smaller set is in the block that begins at `start`. Returns the start of the next block.
    fn block<E: From<twindex::Error>>(
        &mut self,
        start: usize,
        lookers: &mut [PrefixLookup],
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<usize, E> {
        let heads = self.heads_from(start)?;
        let end = start + heads.iter().map(|heads| heads.ends.len()).sum::<usize>();
        let index = PrefixIndex::of(&heads, lookers.len())?;
        let (ordered, list) = (self.ordered, self.list);
        let block = SetBlock { ordered, members: &list[start..end], index: &index };
        let mut from = 0;
        let own: Vec<(usize, &SetPrefixes)> = heads
            .iter()
            .map(|heads| {
                from += heads.ends.len();
                (from - heads.ends.len(), heads)
            })
            .collect();
        for some in own.chunks(PIECES * lookers.len()) {
            let found = on_threads(lookers, some, |looker, &(from, heads)| {
                for (place, (shared_elements, _)) in (from..).zip(heads.sets()) {
                    block.look_up(block.members[place], shared_elements, place, looker);
                }
                Ok(std::mem::take(&mut looker.found))
            })?;
            self.take(found, each)?;
        }
        drop(own);
        drop(heads);
        // Looks up the sets after the block, up to the largest set that can resemble the largest set of the block.
        let largest = ordered.sets.size(list[end - 1]);
        let near = |&set: &u32| ordered.could_resemble(largest, ordered.sets.size(set));
        let list = &list[..end + list[end..].partition_point(near)];
        let pieces: Vec<_> = ordered.pieces(list, end).collect();
        for some in pieces.chunks(PIECES * lookers.len()) {
            let mut states: Vec<_> = lookers.iter_mut().zip(&mut self.head_scratches).collect();
            let (shared, element_counts) = (self.shared, self.element_counts);
            let found = on_threads(&mut states, some, |(looker, head_scratch), piece| {
                let heads = heads_of(ordered, &list[piece.clone()], shared, element_counts, head_scratch)?;
                for (&set, (shared_elements, _)) in list[piece.clone()].iter().zip(heads.sets()) {
                    block.look_up(set, shared_elements, block.members.len(), looker);
                }
                Ok(std::mem::take(&mut looker.found))
            })?;
            self.take(found, each)?;
        }
        Ok(end)
    }

    /// Returns the prefixes of the sets from `start` on, until a block is full.
    fn heads_from(&mut self, start: usize) -> Result<Vec<SetPrefixes>> {
        let (ordered, shared, element_counts, list) =
            (self.ordered, self.shared, self.element_counts, self.list);
        let mut block = Vec::new();
        let (mut postings, mut members) = (0, 0);
        let mut pieces = ordered.pieces(list, start).peekable();
        while pieces.peek().is_some() {
            let some: Vec<Range<usize>> = pieces.by_ref().take(PIECES * self.head_scratches.len()).collect();
            let made = on_threads(&mut self.head_scratches, &some, |head_scratch, piece| {
                heads_of(ordered, &list[piece.clone()], shared, element_counts, head_scratch)
            })?;
            for mut heads in made {
                // The block ends with the set that fills it.
                let last = heads.sets().position(|(_, indexed)| {
                    postings += indexed;
                    members += 1;
                    postings >= self.max || members >= self.most_sets
                });
                if let Some(last) = last {
                    heads.ends.truncate(last + 1);
                    heads.shared_elements.truncate(heads.ends[last].all);
                    block.push(heads);
                    return Ok(block);
                }
                block.push(heads);
            }
        }
        Ok(block)
    }

    /// Passes the pairs found by threads to `each`, in batches.
    fn take<E>(
        &mut self,
        found: Vec<Vec<(u32, u32)>>,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for pairs in found {
            self.batch.extend(pairs);
            if self.batch.len() >= BATCH {
                self.hand_out(each)?;
            }
        }
        Ok(())
    }
}

/// Returns the prefix elements of these sets that are shared with other sets and not capped.
fn heads_of(
    ordered: Ordered<'_>,
    sets: &[u32],
    shared: &SharedFilter,
    element_counts: &ElementCounts,
    head_scratch: &mut HeadScratch,
) -> Result<SetPrefixes> {
    let mut heads = SetPrefixes::default();
    let max = sets.iter().map(|&set| ordered.head_most(set)).sum();
    heads.shared_elements.reserve_exact(max);
    heads.ends.reserve_exact(sets.len());
    let any_capped = element_counts.any();
    for &set in sets {
        let size = ordered.sets.size(set) as u32;
        let (head, indexed) = ordered.head(set, head_scratch)?;
        let start = heads.shared_elements.len();
        heads
            .shared_elements
            .resize(start + head.len(), SharedElement { element: 0, elements_after: 0, capped_elements: 0 });
        let shared_elements = &mut heads.shared_elements[start..];
        let (mut count, mut capped_elements, mut found_by) = (0, 0, 0);
        for (i, &element) in head.iter().enumerate() {
            // Has no branch: writes each element, and advances the count only if the element is shared.
            let is_shared = shared.has(element);
            shared_elements[count] =
                SharedElement { element, elements_after: size - 1 - i as u32, capped_elements };
            if any_capped && is_shared && element_counts.has(element) {
                capped_elements += 1;
                continue;
            }
            count += usize::from(is_shared);
            found_by += usize::from(is_shared && i < indexed);
        }
        heads.shared_elements.truncate(start + count);
        heads.ends.push(ElementEnds { indexed: start + found_by, all: start + count });
    }
    Ok(heads)
}

/// The state of a set of the block during the lookup of another set.
#[derive(Clone, Copy, Debug, Default)]
struct PairState {
    /// Number of common elements found so far.
    shared: u32,
    /// Minimum number of common elements; [`Self::OUT`] if the pair is ruled out.
    min: u32,
}

impl PairState {
    const OUT: u32 = u32::MAX;
}

/// Working memory of a thread that looks up sets, and the pairs it found. Aligned to prevent false sharing.
#[derive(Default)]
#[repr(align(128))]
struct PrefixLookup {
    /// States by position in the block; all zero between two lookups.
    seen: Vec<PairState>,
    touched: Vec<u32>,
    found: Vec<(u32, u32)>,
}

/// A block of indexed sets.
#[derive(Clone, Copy)]
struct SetBlock<'a> {
    ordered: Ordered<'a>,
    /// The sets of the block, sorted by size.
    members: &'a [u32],
    index: &'a PrefixIndex,
}

impl SetBlock<'_> {
    /// Finds the sets of the block before position `place` that may resemble `set`, whose prefix elements are given.
    fn look_up(&self, set: u32, shared_elements: &[SharedElement], place: usize, looker: &mut PrefixLookup) {
        let PrefixLookup { seen, touched, found } = looker;
        if seen.len() < self.members.len() {
            seen.resize(self.members.len(), PairState::default());
        }
        let (sets, threshold) = (self.ordered.sets, self.ordered.threshold);
        let size = sets.size(set) as usize;
        let smallest = least_part(size, threshold) as u64;
        let first = self.members.partition_point(|&other| sets.size(other) < smallest);
        for (number, &SharedElement { element, elements_after, capped_elements }) in
            shared_elements.iter().enumerate()
        {
            // Prefetches the slot of an element far ahead, and the postings of an element half as far ahead.
            if let Some(later) = shared_elements.get(number + 2 * AHEAD) {
                self.index.prefetch_slot(later.element);
            }
            if let Some(later) = shared_elements.get(number + AHEAD) {
                self.index.prefetch_postings(later.element);
            }
            let postings = self.index.postings(element);
            // Skips sets that are too small; usually there are none.
            let is_small = |posting: &SetPosting| (posting.place as usize) < first;
            let from =
                if postings.first().is_some_and(is_small) { postings.partition_point(is_small) } else { 0 };
            for posting in postings[from..].iter().take_while(|posting| (posting.place as usize) < place) {
                let seen = &mut seen[posting.place as usize];
                if seen.shared == 0 {
                    touched.push(posting.place);
                    let other = sets.size(self.members[posting.place as usize]) as usize;
                    seen.min = least_intersection(size + other, threshold) as u32;
                }
                // Elements are in the same order in both sets. This element is indexed for the smaller set, so all earlier
                // common elements are indexed, too, and have been counted.
                seen.shared += 1;
                let at_most = u64::from(seen.shared)
                    + u64::from(capped_elements)
                    + u64::from(elements_after.min(posting.elements_after));
                if at_most < seen.min.into() {
                    seen.min = PairState::OUT;
                }
            }
        }
        let before = found.len();
        for place in touched.drain(..) {
            let seen = std::mem::take(&mut seen[place as usize]);
            if seen.min != PairState::OUT {
                found.push((set, self.members[place as usize]));
            }
        }
        found[before..].sort_unstable(); // sorts the pairs by the position of their sets in the scratch file
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    /// Returns families of sets: copies with some elements replaced by elements that few or many sets have.
    fn families(seed: u64, count: usize, max: u64) -> Vec<Vec<u64>> {
        let mut random = SplitMix(seed);
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for _ in 0..count {
            let mut set: BTreeSet<u64> = match random.next() % 3 {
                0 => BTreeSet::new(),
                _ if sets.is_empty() => BTreeSet::new(),
                _ => sets[(random.next() % sets.len() as u64) as usize].clone(),
            };
            let size = (random.next() % max) as usize;
            let common = random.next().is_multiple_of(2);
            let mut fresh = || {
                let element = random.next();
                if common { SplitMix(element % 50).next() } else { element }
            };
            while set.len() < size {
                let element = fresh();
                if !set.insert(element) {
                    break;
                }
            }
            for _ in 0..(random.next() % 4) {
                if let Some(&gone) = set.iter().nth((random.next() % max) as usize) {
                    set.remove(&gone);
                }
            }
            sets.push(set);
        }
        sets.into_iter().map(|set| set.into_iter().collect()).collect()
    }

    fn stored(sets: &[Vec<u64>], dir: &Path, budget: usize) -> ShingleSets {
        let mut stored = ShingleSets::new(dir, budget);
        for set in sets {
            stored.push(set).unwrap();
        }
        stored
    }

    fn candidates(
        sets: &ShingleSets,
        threshold: f64,
        max_bucket: usize,
        memory: usize,
        threads: usize,
    ) -> (Vec<(u32, u32)>, Prefixes) {
        let mut pairs = Vec::new();
        let found = prefix_candidates(sets, threshold, max_bucket, memory, threads, |batch| {
            pairs.extend(batch.iter().map(|&(a, b)| (a.min(b), a.max(b))));
            Ok::<_, twindex::Error>(())
        })
        .unwrap();
        assert_eq!(found.candidates, pairs.len() as u64);
        pairs.sort_unstable();
        let twice = pairs.windows(2).any(|two| two[0] == two[1]);
        assert!(!twice || found.capped > 0, "each pair once");
        pairs.dedup();
        (pairs, found)
    }

    #[test]
    fn every_pair_at_the_threshold_is_found_with_any_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (seed, count, max) in [(1, 300, 12), (2, 300, 60), (3, 200, 400), (4, 1, 5), (5, 0, 1)] {
            let sets = families(seed, count, max);
            for threshold in [0.05, 0.3, 0.5, 0.75, 0.8, 0.9, 0.95, 1.0] {
                let mut near = Vec::new();
                for (b, large) in sets.iter().enumerate() {
                    for (a, small) in sets[..b].iter().enumerate() {
                        if twindex_sketch::Resemblance::of_sets(small, large).at_least(threshold) {
                            near.push((a as u32, b as u32));
                        }
                    }
                }
                let ways = [
                    (usize::MAX, usize::MAX >> 8, 1),
                    (usize::MAX, 1 << 20, 3),
                    (0, 0, 1),
                    (500, 1 << 20, 2),
                ];
                for (budget, memory, threads) in ways {
                    let stored = stored(&sets, dir.path(), budget);
                    let (found, summary) = candidates(&stored, threshold, usize::MAX, memory, threads);
                    let missed: Vec<_> =
                        near.iter().filter(|pair| found.binary_search(pair).is_err()).collect();
                    assert!(missed.is_empty(), "{seed} {threshold} {budget}: {missed:?}");
                    assert_eq!(summary.capped, 0);
                }
                assert!(
                    count < 100 || near.len() > 20,
                    "a test of something: {seed} {threshold} {}",
                    near.len()
                );
            }
        }
    }

    #[test]
    fn several_blocks_find_the_same_near_pairs_as_one() {
        let dir = tempfile::tempdir().unwrap();
        // The sets have at least 40,000 postings. The minimum memory holds a few hundred, so there are many blocks.
        let sets = families(9, 3000, 300);
        let stored = stored(&sets, dir.path(), usize::MAX);
        let whole = candidates(&stored, 0.5, usize::MAX, 1 << 30, 1);
        let blocks = candidates(&stored, 0.5, usize::MAX, 0, 1);
        let near = |pairs: &[(u32, u32)]| {
            let far = |&&(a, b): &&(u32, u32)| stored.resemblance_from(a, b, 0.5).unwrap().is_some();
            pairs.iter().filter(far).count()
        };
        assert!(near(&whole.0) > 1000, "a test of something");
        assert_eq!(near(&whole.0), near(&blocks.0));
        assert_eq!(blocks.1, whole.1);
        for (memory, threads) in [(1 << 30, 2), (1 << 30, 5), (1 << 18, 2)] {
            let alone = candidates(&stored, 0.5, usize::MAX, memory, 1);
            assert_eq!(candidates(&stored, 0.5, usize::MAX, memory, threads), alone, "{memory} {threads}");
        }
    }

    /// Returns `families` families of `count` sets each. A set equals the common set of its family, except for
    /// `changed` elements of its own.
    fn crowd(seed: u64, families: usize, count: usize, size: usize, changed: usize) -> Vec<Vec<u64>> {
        let mut random = SplitMix(seed);
        let mut sets = Vec::new();
        for _ in 0..families {
            let common: Vec<u64> = (0..size).map(|_| random.next()).collect();
            for _ in 0..count {
                let mut set = common.clone();
                for _ in 0..changed {
                    set[(random.next() % size as u64) as usize] = random.next();
                }
                set.sort_unstable();
                set.dedup();
                sets.push(set);
            }
        }
        sets
    }

    /// Returns the component of each set if those of `pairs` that reach the threshold are edges.
    fn components(stored: &ShingleSets, pairs: &[(u32, u32)], threshold: f64) -> Vec<u32> {
        let mut forest = crate::Forest::new(stored.len() as u32);
        for &(a, b) in pairs {
            if stored.resemblance_from(a, b, threshold).unwrap().is_some() {
                forest.join(a, b);
            }
        }
        (0..stored.len() as u32).map(|set| forest.root(set)).collect()
    }

    #[test]
    fn capped_elements_take_linear_work_and_keep_families_connected() {
        let dir = tempfile::tempdir().unwrap();
        let stored = stored(&crowd(11, 3, 2000, 40, 1), dir.path(), usize::MAX);
        let families: Vec<u32> = (0..6000).map(|set| set / 2000 * 2000).collect();
        let (all, summary) = candidates(&stored, 0.8, 10_000, 1 << 24, 2);
        assert_eq!((summary.capped, summary.cap), (0, 10_000));
        assert_eq!(components(&stored, &all, 0.8), families);
        let (capped, summary) = candidates(&stored, 0.8, 100, 1 << 24, 1);
        assert!(summary.capped > 0 && summary.cap == 100 && summary.largest > 1000, "{summary:?}");
        assert!(capped.len() < 30 * 6000 && all.len() > 20 * capped.len(), "{} {}", capped.len(), all.len());
        assert_eq!(components(&stored, &capped, 0.8), families);
        // The result must not depend on the memory.
        let (again, small) = candidates(&stored, 0.8, 100, 0, 1);
        assert_eq!((again, small), (capped.clone(), summary));
        let (again, threads) = candidates(&stored, 0.8, 100, 1 << 24, 3);
        assert_eq!((again, threads), (capped, summary));
    }

    #[test]
    fn cap_is_lowered_if_pairs_would_exceed_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let stored = stored(&crowd(12, 2, 7000, 24, 1), dir.path(), usize::MAX);
        let (pairs, summary) = candidates(&stored, 0.8, 10_000, 1 << 24, 2);
        // Without a cap, there would be 49 million pairs, most of them near.
        assert!(summary.cap < 7000 && summary.capped > 0 && summary.largest > 5000, "{summary:?}");
        assert!(pairs.len() < 25_000_000, "{}", pairs.len());
        let families: Vec<u32> = (0..14_000).map(|set| set / 7000 * 7000).collect();
        assert_eq!(components(&stored, &pairs, 0.8), families);
    }
}
