//! Candidate pairs by prefix filtering: an exact set-similarity join.
//!
//! `AllPairs` (Bayardo, Ma and Srikant, *Scaling up all pairs similarity search*, WWW 2007) with the positional filter
//! of `PPJoin` (Xiao, Wang, Lin and Yu, *Efficient similarity joins for near duplicate detection*, WWW 2008): let all
//! sets be sorted by one order. Sets x and y that share at least o elements share one among the first |x| - o + 1
//! elements of x and the first |y| - o + 1 of y. With rare elements first, few sets meet by accident.
//!
//! With resemblance t, o is at least t |x|, whatever y is, and at least 2 t / (1 + t) |y| if y is the smaller; so
//! larger sets look up their first (1 - t) |x| + 1 elements among the first (1 - t) / (1 + t) |y| + 1 of the
//! smaller ones. No pair is missed.
//!
//! What differs from the papers, so that memory is bounded and most elements are never looked at:
//!
//! - The order is a rough one: four classes, by how often an element was counted in a sample of the sets, in a
//!   table of a fixed size in which elements may fall together; within a class, by the elements themselves, which
//!   are hashes. Any order will do, as long as all sets have the same. So a prefix is found near the beginning of a
//!   set, without counting all elements.
//! - Prefix elements that no other set has in its prefix, by a table of counters, are neither stored nor looked up.
//! - Sets are indexed in blocks, in the order of their sizes; for each block, the sets that follow, up to the largest
//!   that can resemble any of the block's, are looked up.
//! - An element that begins more than `max_bucket` sets of a block leads to the first and to the last of them only.

use std::ops::Range;

use zerocopy::{Immutable, IntoBytes};

use super::sets::{ShingleSets, could_resemble, least_intersection};
use crate::error::Result;
use crate::kernel::prefetch;

/// What was looked at, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefixes {
    /// Pairs handed out.
    pub candidates: u64,
    /// Elements that begin more sets than the cap, and so led to two of them only.
    pub capped: u64,
    /// Sets that the most frequent of the indexed elements begins.
    pub largest: u64,
}

/// Pairs that are handed out at once.
const BATCH: usize = 1 << 14;
/// Bytes that an indexed element takes at most: itself, a posting, and less than three slots.
const INDEXED_BYTES: usize = size_of::<u64>() + size_of::<Posting>() + 3 * size_of::<Slot>();
/// How many elements before it is looked up a slot's postings are asked for; and the slot twice as many.
const AHEAD: usize = 8;
/// The least memory of each part.
const LEAST: usize = 1 << 16;

/// Hands pairs of sets to `each`, many at a time, each pair once: all whose resemblance is at least `threshold`, above
/// 0, and others. The pairs of one set follow one another; it is the first of them, and has the larger set.
///
/// Takes about `memory` bytes, at least 1 MiB, beside 16 bytes a set. With more than `max_bucket` sets that begin with
/// the same element, pairs may be missing, as [`Prefixes::capped`] says.
///
/// Time: linear in the shares of the sets that are looked at, about 1 - `threshold` of their elements, and in the
/// pairs of sets that have such an element in common.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) from the scratch file of `sets`, or what `each` returns.
pub fn prefix_candidates<E: From<crate::Error>>(
    sets: &ShingleSets,
    threshold: f64,
    max_bucket: usize,
    memory: usize,
    mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
) -> std::result::Result<Prefixes, E> {
    let classes = Classes::of(sets)?;
    let mut order: Vec<u32> = (0..sets.len() as u32).filter(|&set| sets.size(set) > 0).collect();
    order.sort_unstable_by_key(|&set| (sets.size(set), set));
    let mut heads = Heads { sets, classes: &classes, threshold, read: Vec::new(), head: Vec::new() };
    let shared = Shared::of(&mut heads, memory / 4)?;
    let mut join = Join {
        sets,
        order: &order,
        heads,
        shared: &shared,
        threshold,
        max_bucket,
        found: Prefixes::default(),
        batch: Vec::new(),
        seen: Vec::new(),
        touched: Vec::new(),
        met: Vec::new(),
    };
    let most = ((memory / 2).max(LEAST) / INDEXED_BYTES).min(1 << 30);
    let mut start = 0;
    while start < order.len() {
        start = join.block(start, most, &mut each)?;
    }
    join.hand_out(&mut each)?;
    Ok(join.found)
}

/// A number below 2^bits.
#[inline(always)]
fn spread(element: u64, bits: u32) -> usize {
    // Elements are hashes, but may be a caller's.
    (element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
}

/// Four small numbers to a byte.
struct Quarters(Vec<u8>);

impl Quarters {
    #[inline(always)]
    fn get(&self, at: usize) -> u8 {
        self.0[at >> 2] >> (2 * (at & 3)) & 3
    }

    #[inline(always)]
    fn set(&mut self, at: usize, value: u8) {
        self.0[at >> 2] |= value << (2 * (at & 3));
    }
}

/// How frequent elements are: 0 for rare ones to 3.
struct Classes(Quarters);

impl Classes {
    /// The table has 2^20 places, a quarter of a megabyte, and stays in a cache.
    const BITS: u32 = 20;
    /// Elements that are counted, as many as there are places.
    const SAMPLE: u64 = 1 << Self::BITS;
    /// Elements that are counted as often are of the next class.
    const STEPS: [u8; 3] = [4, 16, 64];

    /// From every so many-th set.
    fn of(sets: &ShingleSets) -> Result<Self> {
        let mut counts = vec![0_u8; 1 << Self::BITS];
        let step = sets.elements().div_ceil(Self::SAMPLE).max(1) as usize;
        let mut read = Vec::new();
        for set in (0..sets.len() as u32).step_by(step) {
            read.clear();
            for &element in sets.set(set, &mut read)? {
                let count = &mut counts[spread(element, Self::BITS)];
                *count = count.saturating_add(1);
            }
        }
        let mut classes = Quarters(vec![0; counts.len() / 4]);
        for (at, count) in counts.iter().enumerate() {
            classes.set(at, Self::STEPS.iter().filter(|step| count >= step).count() as u8);
        }
        Ok(Self(classes))
    }

    #[inline(always)]
    fn of_element(&self, element: u64) -> u8 {
        self.0.get(spread(element, Self::BITS))
    }
}

/// Finds the first elements of sets, in the order of all.
struct Heads<'a> {
    sets: &'a ShingleSets,
    classes: &'a Classes,
    threshold: f64,
    read: Vec<u64>,
    head: Vec<u64>,
}

impl Heads<'_> {
    /// The elements of a set that are to be looked up, and how many of them are to be found.
    fn head(&mut self, set: u32) -> Result<(&[u64], usize)> {
        self.read.clear();
        let elements = self.sets.set(set, &mut self.read)?;
        let size = elements.len();
        let wanted = size + 1 - least_part(size, self.threshold);
        let indexed = (size + 1).saturating_sub(least_intersection(2 * size, self.threshold));
        self.head.resize(wanted, 0);
        let mut found = 0;
        for class in 0..4 {
            for &element in elements {
                if found == wanted {
                    break;
                }
                // Written and, unless it is of the class, written over: that costs less than to guess.
                self.head[found] = element;
                found += usize::from(self.classes.of_element(element) == class);
            }
        }
        self.head.truncate(found);
        Ok((&self.head, indexed))
    }
}

/// The least size of a set that can resemble one of `size` elements; more than `size` for none.
fn least_part(size: usize, threshold: f64) -> usize {
    let resembles = |part: usize| could_resemble(part as u64, size as u64, threshold);
    // As in `least_intersection`: a guess, and then the definition.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are positive, and any start will do")]
    let mut least = ((threshold * size as f64) as usize).min(size);
    while least > 0 && resembles(least - 1) {
        least -= 1;
    }
    while least <= size && !resembles(least) {
        least += 1;
    }
    least
}

/// Which elements begin more than one set; some others, too.
struct Shared {
    counts: Quarters,
    bits: u32,
}

impl Shared {
    /// Of all sets, within `memory` bytes.
    fn of(heads: &mut Heads<'_>, memory: usize) -> Result<Self> {
        // Four to eight places for an element of a prefix.
        #[allow(clippy::cast_sign_loss, reason = "thresholds are at most 1")]
        let all = (heads.sets.elements() as f64 * (1.0 - heads.threshold)) as u64 + heads.sets.len() as u64;
        let bits = (8 * all).clamp(4, 4 * memory.max(LEAST) as u64).ilog2();
        let mut shared = Self { counts: Quarters(vec![0; 1 << (bits - 2)]), bits };
        for set in 0..heads.sets.len() as u32 {
            if heads.sets.size(set) > 0 {
                for &element in heads.head(set)?.0 {
                    let at = spread(element, bits);
                    // 0, 1, 3: one bit for once, one for more.
                    let seen = shared.counts.get(at);
                    shared.counts.set(at, (seen << 1 | 1) & 3);
                }
            }
        }
        Ok(shared)
    }

    #[inline(always)]
    fn has(&self, element: u64) -> bool {
        self.counts.get(spread(element, self.bits)) > 1
    }
}

/// An indexed element of a set.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Posting {
    /// Place of the set in the block.
    place: u32,
    /// Elements of the set behind this one.
    behind: u32,
}

/// An element with its postings: `filled` of them, from `start` on.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct Slot {
    element: u64,
    start: u32,
    filled: u32,
}

impl Slot {
    /// What stands for `start` where no element is.
    const NONE: u32 = u32::MAX;
    /// A bit of `start`: there are more postings than the cap.
    const CAPPED: u32 = 1 << 31;
    const EMPTY: Self = Self { element: 0, start: Self::NONE, filled: 0 };
}

/// What is known of a set of the block while another is looked up.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Elements met in both.
    shared: u32,
    /// Elements that both must have; more than there are if it is known that they cannot.
    least: u32,
}

impl Seen {
    const OUT: u32 = u32::MAX;
}

struct Join<'a> {
    sets: &'a ShingleSets,
    /// The sets that have elements, by size.
    order: &'a [u32],
    heads: Heads<'a>,
    shared: &'a Shared,
    threshold: f64,
    max_bucket: usize,
    found: Prefixes,
    batch: Vec<(u32, u32)>,
    /// By place in the block.
    seen: Vec<Seen>,
    touched: Vec<u32>,
    /// Elements of the set that is looked up, which others have too, and their places in it.
    met: Vec<(usize, u64)>,
}

impl Join<'_> {
    /// Finds the pairs of which the smaller set is in the block that begins at `start` and has about `most` postings.
    /// Returns where the next begins.
    fn block<E: From<crate::Error>>(
        &mut self,
        start: usize,
        most: usize,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<usize, E> {
        let (block, mut index) = self.index(start, most)?;
        self.seen.clear();
        self.seen.resize(block.len(), Seen::default());
        let largest = self.sets.size(self.order[block.end - 1]);
        for place in block.start..self.order.len() {
            let size = self.sets.size(self.order[place]);
            if !could_resemble(largest.min(size), size, self.threshold) {
                break;
            }
            self.look_up(place, &block, &mut index)?;
            if self.batch.len() >= BATCH {
                self.hand_out(each)?;
            }
        }
        Ok(block.end)
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

    /// The block from `start` on, and an index with room for its postings, and none yet.
    fn index(&mut self, start: usize, most: usize) -> Result<(Range<usize>, Index)> {
        let mut end = start;
        let mut elements: Vec<u64> = Vec::new();
        for &set in &self.order[start..] {
            let before = elements.len();
            let (head, indexed) = self.heads.head(set)?;
            elements.extend(head.iter().take(indexed).filter(|&&element| self.shared.has(element)));
            if end > start && elements.len() > most {
                elements.truncate(before);
                break;
            }
            end += 1;
        }
        let postings = elements.len();
        let bits = (postings + postings / 4 + 1).ilog2() + 1;
        let mut index =
            Index { slots: vec![Slot::EMPTY; 1 << bits], bits, postings: vec![Posting::default(); postings] };
        for (number, &element) in elements.iter().enumerate() {
            if let Some(&later) = elements.get(number + AHEAD) {
                prefetch(index.slots.as_bytes(), spread(later, index.bits) * size_of::<Slot>());
            }
            let at = index.slot(element);
            let slot = &mut index.slots[at];
            (slot.element, slot.start) = (element, 0);
            slot.filled += 1;
        }
        let mut next = 0;
        for slot in index.slots.iter_mut().filter(|slot| slot.start != Slot::NONE) {
            let total = std::mem::take(&mut slot.filled);
            let is_capped = total as usize > self.max_bucket;
            slot.start = next | if is_capped { Slot::CAPPED } else { 0 };
            next += total;
            self.found.largest = self.found.largest.max(total.into());
            self.found.capped += u64::from(is_capped);
        }
        Ok((start..end, index))
    }

    /// Finds the sets of the block, so far, that may resemble the one at `place`, and then adds this one, if it is
    /// of the block.
    fn look_up(&mut self, place: usize, block: &Range<usize>, index: &mut Index) -> Result<()> {
        let set = self.order[place];
        let size = self.sets.size(set) as usize;
        let smallest = least_part(size, self.threshold) as u64;
        let order = &self.order[block.clone()];
        let first = order.partition_point(|&other| self.sets.size(other) < smallest);
        let (head, indexed) = self.heads.head(set)?;
        let indexed = if block.contains(&place) { indexed } else { 0 };
        let mut meeting = Meeting {
            sets: self.sets,
            order,
            threshold: self.threshold,
            size,
            seen: &mut self.seen,
            touched: &mut self.touched,
        };
        // Elements that are not met in all sets that have them.
        let mut capped = 0;
        self.met.clear();
        for (i, &element) in (0..).zip(head) {
            if self.shared.has(element) {
                self.met.push((i, element));
            }
        }
        for (number, &(i, element)) in self.met.iter().enumerate() {
            // The slot of one that comes later, and what the slot of one that comes sooner leads to.
            if let Some(&(_, later)) = self.met.get(number + 2 * AHEAD) {
                prefetch(index.slots.as_bytes(), spread(later, index.bits) * size_of::<Slot>());
            }
            if let Some(&(_, later)) = self.met.get(number + AHEAD) {
                let start = index.slots[spread(later, index.bits)].start & !Slot::CAPPED;
                prefetch(index.postings.as_bytes(), start as usize * size_of::<Posting>());
            }
            let at = index.slot(element);
            let Slot { start, filled, .. } = index.slots[at];
            if start == Slot::NONE {
                continue;
            }
            let (is_capped, start) = (start & Slot::CAPPED != 0, start & !Slot::CAPPED);
            let postings = &index.postings[start as usize..(start + filled) as usize];
            let behind = size - i - 1;
            // From the largest down to the smallest that is large enough.
            let mut near = postings.iter().rev().take_while(|posting| posting.place as usize >= first);
            if is_capped {
                capped += 1;
                let star = postings.first().filter(|star| filled > 1 && star.place as usize >= first);
                for posting in near.next().into_iter().chain(star) {
                    meeting.meet(*posting, behind, capped);
                }
            } else {
                for posting in near {
                    meeting.meet(*posting, behind, capped);
                }
            }
            if i < indexed {
                index.postings[(start + filled) as usize] =
                    Posting { place: (place - block.start) as u32, behind: behind as u32 };
                index.slots[at].filled += 1;
            }
        }
        let before = self.batch.len();
        for place in self.touched.drain(..) {
            let seen = std::mem::take(&mut self.seen[place as usize]);
            if seen.least != Seen::OUT {
                self.batch.push((set, order[place as usize]));
            }
        }
        self.batch[before..].sort_unstable(); // the order in which sets stand in their scratch file
        Ok(())
    }
}

/// A set that is looked up.
struct Meeting<'a> {
    sets: &'a ShingleSets,
    /// The sets of the block.
    order: &'a [u32],
    threshold: f64,
    size: usize,
    seen: &'a mut [Seen],
    touched: &'a mut Vec<u32>,
}

impl Meeting<'_> {
    /// Takes notice of a posting of an element that this set has too, with `behind` elements behind it, and `capped`
    /// up to it that may have been passed over.
    #[inline(always)]
    fn meet(&mut self, posting: Posting, behind: usize, capped: usize) {
        let seen = &mut self.seen[posting.place as usize];
        if seen.shared == 0 {
            self.touched.push(posting.place);
            let other = self.sets.size(self.order[posting.place as usize]) as usize;
            seen.least = least_intersection(self.size + other, self.threshold) as u32;
        }
        // Elements are met in their order: all that both have before this one have been met. If this one is among
        // those of the smaller set that are to be found, they are, too.
        seen.shared += 1;
        if seen.shared as usize + capped + behind.min(posting.behind as usize) < seen.least as usize {
            seen.least = Seen::OUT;
        }
    }
}

/// The indexed elements of a block.
struct Index {
    /// A hash table, in which those that fall together follow one another; a fifth of it at least is empty.
    slots: Vec<Slot>,
    bits: u32,
    postings: Vec<Posting>,
}

impl Index {
    /// The slot of an element, or the empty one where it would stand.
    #[inline(always)]
    fn slot(&self, element: u64) -> usize {
        let mut at = spread(element, self.bits);
        while self.slots[at].start != Slot::NONE && self.slots[at].element != element {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::splitmix::SplitMix;

    /// Families of sets: copies with some elements changed, of elements that few or many sets have.
    fn families(seed: u64, count: usize, most: u64) -> Vec<Vec<u64>> {
        let mut random = SplitMix(seed);
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for _ in 0..count {
            let mut set: BTreeSet<u64> = match random.next() % 3 {
                0 => BTreeSet::new(),
                _ if sets.is_empty() => BTreeSet::new(),
                _ => sets[(random.next() % sets.len() as u64) as usize].clone(),
            };
            let size = (random.next() % most) as usize;
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
                if let Some(&gone) = set.iter().nth((random.next() % most) as usize) {
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
    ) -> (Vec<(u32, u32)>, Prefixes) {
        let mut pairs = Vec::new();
        let found = prefix_candidates(sets, threshold, max_bucket, memory, |batch| {
            pairs.extend(batch.iter().map(|&(a, b)| (a.min(b), a.max(b))));
            Ok::<_, crate::Error>(())
        })
        .unwrap();
        assert_eq!(found.candidates, pairs.len() as u64);
        pairs.sort_unstable();
        assert!(pairs.windows(2).all(|two| two[0] != two[1]), "each pair once");
        (pairs, found)
    }

    #[test]
    fn no_pair_that_reaches_the_threshold_is_missed_whatever_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (seed, count, most) in [(1, 300, 12), (2, 300, 60), (3, 200, 400), (4, 1, 5), (5, 0, 1)] {
            let sets = families(seed, count, most);
            for threshold in [0.05, 0.3, 0.5, 0.75, 0.8, 0.9, 0.95, 1.0] {
                let mut near = Vec::new();
                for (b, large) in sets.iter().enumerate() {
                    for (a, small) in sets[..b].iter().enumerate() {
                        if crate::sketch::Resemblance::of_sets(small, large).at_least(threshold) {
                            near.push((a as u32, b as u32));
                        }
                    }
                }
                for (budget, memory) in [(usize::MAX, usize::MAX >> 8), (0, 0), (500, 0)] {
                    let stored = stored(&sets, dir.path(), budget);
                    let (found, summary) = candidates(&stored, threshold, usize::MAX, memory);
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
    fn blocks_find_what_one_index_finds() {
        let dir = tempfile::tempdir().unwrap();
        // 40,000 postings and more, where the least memory holds a few hundred.
        let sets = families(9, 3000, 300);
        let stored = stored(&sets, dir.path(), usize::MAX);
        let whole = candidates(&stored, 0.5, usize::MAX, 1 << 30);
        let blocks = candidates(&stored, 0.5, usize::MAX, 0);
        let near = |pairs: &[(u32, u32)]| {
            let far = |&&(a, b): &&(u32, u32)| stored.resemblance_from(a, b, 0.5).unwrap().is_some();
            pairs.iter().filter(far).count()
        };
        assert!(near(&whole.0) > 1000, "a test of something");
        assert_eq!(near(&whole.0), near(&blocks.0));
        assert!(blocks.1.largest < whole.1.largest, "several blocks: {blocks:?}", blocks = blocks.1);
    }

    #[test]
    fn elements_of_many_sets_are_capped_at_linear_cost_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(11);
        let common: Vec<u64> = (0..40).map(|_| random.next()).collect();
        let sets: Vec<Vec<u64>> = (0..2000)
            .map(|_| {
                let set: BTreeSet<u64> = common.iter().copied().chain([random.next()]).collect();
                set.into_iter().collect()
            })
            .collect();
        let stored = stored(&sets, dir.path(), usize::MAX);
        let (all, summary) = candidates(&stored, 0.8, 10_000, 1 << 24);
        assert_eq!((all.len(), summary.capped, summary.largest), (2000 * 1999 / 2, 0, 2000));
        let (capped, summary) = candidates(&stored, 0.8, 100, 1 << 24);
        assert!(summary.capped > 0 && capped.len() < 5 * 2000, "{} {summary:?}", capped.len());
        // And yet they hang together.
        let mut forest = super::super::Forest::new(2000);
        for &(a, b) in &capped {
            forest.join(a, b);
        }
        assert!((0..2000).all(|set| forest.root(set) == 0));
    }
}
