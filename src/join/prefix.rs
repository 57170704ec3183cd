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
//! - Work is bounded. An element in the prefixes of c sets leads to up to c^2 / 2 meetings. Elements of more than the
//!   cap are *crowded*, and pairs are not looked for through them: each set that has any is paired with the first set
//!   and with the one before that has the same crowded elements, and with the first and the one before that has each
//!   of them. So sets that have nothing but crowded elements in common hang together in their families, at linear
//!   cost. The cap is `max_bucket`, and less where that would allow more than [`MEETINGS`] or about
//!   [`PAIRS`] a set. It is found from the sets alone, so that results do not depend on memory.

use std::collections::HashMap;
use std::hash::Hash;

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::{Immutable, IntoBytes};

use super::candidates::{PAIRS, PAIRS_LEAST};
use super::sets::{ShingleSets, could_resemble, least_intersection};
use crate::error::Result;
use crate::kernel::prefetch;

/// What was looked at, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefixes {
    /// Pairs handed out.
    pub candidates: u64,
    /// Crowded elements: those in the prefixes of more than `cap` sets.
    pub capped: u64,
    /// Sets in whose prefixes the most frequent element is. Where none is crowded, up to so many: it is counted in a
    /// table in which elements may fall together.
    pub largest: u64,
    /// The cap: `max_bucket`, or less to bound the work.
    pub cap: u64,
}

/// Pairs that are handed out at once.
const BATCH: usize = 1 << 14;
/// Bytes that an indexed element takes at most: a posting, in a vector that may be half empty, and less than three slots.
const INDEXED_BYTES: usize = 2 * size_of::<Posting>() + 3 * size_of::<Slot>();
/// Meetings of two sets in one element, for each set, above which the cap is lowered; and in all where that is more.
pub const MEETINGS: u64 = 4_000;
/// See [`MEETINGS`].
const MEETINGS_LEAST: u64 = 1_000_000_000;
/// How many elements before it is looked up a slot's postings are asked for; and the slot twice as many.
const AHEAD: usize = 8;
/// The least memory of each part.
const LEAST: usize = 1 << 16;

/// Hands pairs of sets to `each`, many at a time: all whose resemblance is at least `threshold`, above 0, and others.
/// The pairs of one set follow one another; it is the first of them, and has the larger set. Each pair comes once, or,
/// if elements are crowded, up to twice.
///
/// Takes about `memory` bytes, at least 1 MiB and up to 16 MiB more for counters, beside 16 bytes a set. Where elements
/// are crowded, pairs may be missing, as [`Prefixes::capped`] says, and up to 60 bytes more are needed for each set
/// that has such elements.
///
/// Time: linear in the shares of the sets that are looked at, about 1 - `threshold` of their elements, and in the
/// pairs of sets that have such an element in common. Of these there are at most about [`PAIRS`] a set, or 20
/// million in all.
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
    let (shared, crowds, indexed) = counted(&mut heads, max_bucket as u64, memory / 4)?;
    let most = ((memory / 2).max(LEAST) / INDEXED_BYTES).min(1 << 30);
    // A block ends behind the set with which it is full.
    let largest = order.last().map_or(0, |&set| indexed_part(sets.size(set) as usize, threshold));
    let mut join = Join {
        sets,
        order: &order,
        heads,
        shared: &shared,
        crowds: &crowds,
        threshold,
        most,
        found: Prefixes { cap: crowds.cap, largest: crowds.largest.into(), ..Prefixes::default() },
        batch: Vec::new(),
        seen: Vec::new(),
        touched: Vec::new(),
        met: Vec::new(),
        index: Index::for_elements((most + largest).min(indexed)),
    };
    if u64::from(crowds.largest) > crowds.cap {
        join.stars(&mut each)?;
    }
    let mut start = 0;
    while start < order.len() {
        start = join.block(start, &mut each)?;
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
        let indexed = indexed_part(size, self.threshold);
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

/// How many of the first elements of a set of `size` others of its size or more are to find it by.
fn indexed_part(size: usize, threshold: f64) -> usize {
    (size + 1).saturating_sub(least_intersection(2 * size, threshold))
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
    #[inline(always)]
    fn has(&self, element: u64) -> bool {
        self.counts.get(spread(element, self.bits)) > 1
    }
}

/// How many sets elements begin, in a table in which some fall together: at least as many as there are.
struct Crowds {
    counts: Vec<u32>,
    bits: u32,
    cap: u64,
    largest: u32,
}

impl Crowds {
    fn count(&self, element: u64) -> u32 {
        self.counts[spread(element, self.bits)]
    }

    /// Finds the cap up to which elements do not lead to too many meetings, nor to too many pairs.
    ///
    /// A set that has an element with c - 1 others is at least in so many pairs, and more only by other elements: pairs
    /// are estimated by each set's most frequent element up to the cap.
    fn limit(&mut self, heads: &mut Heads<'_>, max_bucket: u64) -> Result<()> {
        self.largest = self.counts.iter().copied().max().unwrap_or(0);
        self.cap = max_bucket;
        let (largest, sets) = (u64::from(self.largest), heads.sets.len() as u64);
        let caps: Vec<u64> = std::iter::successors(Some(max_bucket.min(largest)), |&cap| {
            (cap > 2).then(|| cap - (cap / 4).max(1))
        })
        .collect();
        let allowed = (PAIRS * sets).max(PAIRS_LEAST);
        let mut pairs = vec![0_u64; caps.len()];
        if sets.saturating_mul(caps[0]) / 2 > allowed {
            let mut most = vec![0; caps.len()];
            for set in 0..heads.sets.len() as u32 {
                most.fill(0);
                for &element in heads.head(set)?.0 {
                    let count = u64::from(self.count(element));
                    // Of the caps that it is within, the least.
                    if let Some(within) = caps.partition_point(|&cap| cap >= count).checked_sub(1) {
                        most[within] = count.max(most[within]);
                    }
                }
                let mut below = 0;
                for (pairs, &most) in pairs.iter_mut().zip(&most).rev() {
                    below = most.max(below);
                    *pairs += below;
                }
            }
        }
        let meetings = |cap: u64| {
            let below = self.counts.iter().map(|&count| u64::from(count)).filter(|&count| count <= cap);
            below.map(|count| count * count / 2).fold(0, u64::saturating_add)
        };
        let is_bounded = |&(&cap, &pairs): &(&u64, &u64)| {
            pairs / 2 <= allowed && meetings(cap) <= (MEETINGS * sets).max(MEETINGS_LEAST)
        };
        let cap = caps.iter().zip(&pairs).find(is_bounded).map_or(2, |(&cap, _)| cap);
        if cap < largest {
            self.cap = cap;
        }
        Ok(())
    }

    #[inline(always)]
    fn has(&self, element: u64) -> bool {
        u64::from(self.count(element)) > self.cap
    }
}

/// What all prefixes say of their elements, about sharing within `memory` bytes; and how many are to be indexed.
fn counted(heads: &mut Heads<'_>, max_bucket: u64, memory: usize) -> Result<(Shared, Crowds, usize)> {
    // Four to eight places for an element of a prefix.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are at most 1")]
    let all = (heads.sets.elements() as f64 * (1.0 - heads.threshold)) as u64 + heads.sets.len() as u64;
    let bits = (8 * all).clamp(4, 4 * memory.max(LEAST) as u64).ilog2();
    let mut counts = Quarters(vec![0; 1 << (bits - 2)]);
    // Of the same size whatever the memory, so that results are the same.
    let crowd_bits = (all / 4).clamp(1 << 10, 1 << 22).ilog2();
    let mut crowds = vec![0_u32; 1 << crowd_bits];
    let mut all_indexed = 0;
    for set in 0..heads.sets.len() as u32 {
        if heads.sets.size(set) > 0 {
            let (head, indexed) = heads.head(set)?;
            all_indexed += indexed.min(head.len());
            for &element in head {
                let at = spread(element, bits);
                // 0, 1, 3: one bit for once, one for more.
                let seen = counts.get(at);
                counts.set(at, (seen << 1 | 1) & 3);
                let crowd = &mut crowds[spread(element, crowd_bits)];
                *crowd = crowd.saturating_add(1);
            }
        }
    }
    let mut crowds = Crowds { counts: crowds, bits: crowd_bits, cap: max_bucket, largest: 0 };
    crowds.limit(heads, max_bucket)?;
    Ok((Shared { counts, bits }, crowds, all_indexed))
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
    crowds: &'a Crowds,
    threshold: f64,
    /// A block is full with so many postings.
    most: usize,
    found: Prefixes,
    batch: Vec<(u32, u32)>,
    /// By place in the block.
    seen: Vec<Seen>,
    touched: Vec<u32>,
    /// Elements of the set that is looked up, which others have too, and their places in it; then room.
    met: Vec<(usize, u64)>,
    index: Index,
}

/// The sets that have an element, or the same elements.
#[derive(Clone, Copy)]
struct Star {
    first: u32,
    last: u32,
    sets: u32,
}

impl Star {
    /// Adds a set to the star of `key`, and those that it is paired with to `partners`; returns how many it has.
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

impl Join<'_> {
    /// Pairs the sets that have crowded elements.
    fn stars<E: From<crate::Error>>(
        &mut self,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut by_element: HashMap<u64, Star> = HashMap::new();
        let mut by_all: HashMap<u128, Star> = HashMap::new();
        let (mut partners, mut crowded) = (Vec::new(), Vec::new());
        self.found.largest = 0;
        for &set in self.order {
            let (head, _) = self.heads.head(set)?;
            crowded.clear();
            crowded.extend(head.iter().copied().filter(|&element| self.crowds.has(element)));
            if crowded.is_empty() {
                continue;
            }
            partners.clear();
            for &element in &crowded {
                let sets = Star::add(&mut by_element, element, set, &mut partners);
                self.found.largest = self.found.largest.max(sets.into());
            }
            Star::add(&mut by_all, xxh3_128(crowded.as_bytes()), set, &mut partners);
            partners.sort_unstable();
            partners.dedup();
            let size = self.sets.size(set);
            let near = |&&other: &&u32| could_resemble(self.sets.size(other), size, self.threshold);
            self.batch.extend(partners.iter().filter(near).map(|&other| (set, other)));
            if self.batch.len() >= BATCH {
                self.hand_out(each)?;
            }
        }
        self.found.capped = by_element.len() as u64;
        Ok(())
    }

    /// Finds the pairs of which the smaller set is in the block that begins at `start`. Returns where the next begins.
    fn block<E: From<crate::Error>>(
        &mut self,
        start: usize,
        each: &mut impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<usize, E> {
        self.index.clear();
        self.seen.clear();
        let mut end = None;
        let mut largest = u64::MAX;
        for place in start..self.order.len() {
            let size = self.sets.size(self.order[place]);
            if end.is_none() && self.index.postings.len() >= self.most {
                end = Some(place);
                largest = self.sets.size(self.order[place - 1]);
            }
            if !could_resemble(largest.min(size), size, self.threshold) {
                break;
            }
            self.look_up(place, start, end.is_none())?;
            if self.batch.len() >= BATCH {
                self.hand_out(each)?;
            }
        }
        Ok(end.unwrap_or(self.order.len()))
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

    /// Finds the sets of the block that begins at `start`, so far, that may resemble the one at `place`, and then
    /// adds this one, if it is of the block.
    fn look_up(&mut self, place: usize, start: usize, is_of_block: bool) -> Result<()> {
        let set = self.order[place];
        let size = self.sets.size(set) as usize;
        let smallest = least_part(size, self.threshold) as u64;
        if is_of_block {
            self.seen.push(Seen::default());
        }
        let order = &self.order[start..start + self.seen.len()];
        let first = order.partition_point(|&other| self.sets.size(other) < smallest);
        let (head, indexed) = self.heads.head(set)?;
        let indexed = if is_of_block { indexed } else { 0 };
        let index = &mut self.index;
        let mut meeting = Meeting {
            sets: self.sets,
            order,
            threshold: self.threshold,
            size,
            seen: &mut self.seen,
            touched: &mut self.touched,
        };
        if self.met.len() < head.len() {
            self.met.resize(head.len(), (0, 0));
        }
        let mut count = 0;
        for (i, &element) in (0..).zip(head) {
            // Written, and kept if others have it: which ones these are is hard to foresee.
            self.met[count] = (i, element);
            count += usize::from(self.shared.has(element));
        }
        let met = &self.met[..count];
        // Elements that are not met in the sets that have them.
        let mut crowded = 0;
        let any_crowded = self.found.capped > 0;
        for (number, &(i, element)) in met.iter().enumerate() {
            // The slot of one that comes later, and what the slot of one that comes sooner leads to.
            if let Some(&(_, later)) = met.get(number + 2 * AHEAD) {
                prefetch(index.slots.as_bytes(), index.place(later) * size_of::<Slot>());
            }
            if let Some(&(_, later)) = met.get(number + AHEAD) {
                let last = index.slots[index.place(later)].last;
                prefetch(index.postings.as_bytes(), last as usize * size_of::<Posting>());
            }
            if any_crowded && self.crowds.has(element) {
                crowded += 1;
                continue;
            }
            let behind = size - i - 1;
            let at = index.slot(element);
            // From the largest down to the smallest that is large enough.
            let mut next = index.slots[at].last;
            while let Some(&posting) = index.postings.get(next as usize) {
                if (posting.place as usize) < first {
                    break;
                }
                meeting.meet(posting, behind, crowded);
                next = posting.before;
            }
            if i < indexed {
                index.add(at, element, (place - start) as u32, behind as u32);
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
    /// Takes notice of a posting of an element that this set has too, with `behind` elements behind it, and `crowded`
    /// ones before it that were passed over.
    #[inline(always)]
    fn meet(&mut self, posting: Posting, behind: usize, crowded: usize) {
        let seen = &mut self.seen[posting.place as usize];
        if seen.shared == 0 {
            self.touched.push(posting.place);
            let other = self.sets.size(self.order[posting.place as usize]) as usize;
            seen.least = least_intersection(self.size + other, self.threshold) as u32;
        }
        // Elements are met in their order: all that both have before this one have been met. If this one is among
        // those of the smaller set that are to be found, they are, too.
        seen.shared += 1;
        if seen.shared as usize + crowded + behind.min(posting.behind as usize) < seen.least as usize {
            seen.least = Seen::OUT;
        }
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
    /// The posting of the same element before this one, or [`Slot::NONE`].
    before: u32,
}

/// An element, and the last of its postings.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct Slot {
    /// Bits of the element that its place in the table does not tell. Elements that agree in these too, of one place,
    /// would be taken for one: sets then seem to share more than they do, which rules out less.
    tag: u32,
    last: u32,
}

impl Slot {
    /// What stands for a posting where there is none.
    const NONE: u32 = u32::MAX;
    const EMPTY: Self = Self { tag: 0, last: Self::NONE };
}

/// The indexed elements of a block.
struct Index {
    /// A hash table, in which those that fall together follow one another; a fifth of it at least is empty.
    slots: Vec<Slot>,
    bits: u32,
    postings: Vec<Posting>,
}

impl Index {
    /// With room for so many elements.
    fn for_elements(most: usize) -> Self {
        let bits = (most + most / 4 + 1).ilog2() + 1;
        Self { slots: vec![Slot::EMPTY; 1 << bits], bits, postings: Vec::new() }
    }

    fn clear(&mut self) {
        if !self.postings.is_empty() {
            self.slots.fill(Slot::EMPTY);
            self.postings.clear();
        }
    }

    #[inline(always)]
    fn place(&self, element: u64) -> usize {
        spread(element, self.bits)
    }

    #[inline(always)]
    fn tag(element: u64) -> u32 {
        element.wrapping_mul(0x9E37_79B9_7F4A_7C15) as u32
    }

    /// The slot of an element, or the empty one where it would stand.
    #[inline(always)]
    fn slot(&self, element: u64) -> usize {
        let (mut at, tag) = (self.place(element), Self::tag(element));
        while self.slots[at].last != Slot::NONE && self.slots[at].tag != tag {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    /// Adds a posting of the element whose slot is `at`.
    #[inline(always)]
    fn add(&mut self, at: usize, element: u64, place: u32, behind: u32) {
        let last = self.postings.len() as u32;
        self.postings.push(Posting { place, behind, before: self.slots[at].last });
        self.slots[at] = Slot { tag: Self::tag(element), last };
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
        let twice = pairs.windows(2).any(|two| two[0] == two[1]);
        assert!(!twice || found.capped > 0, "each pair once");
        pairs.dedup();
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
        assert_eq!(blocks.1, whole.1);
    }

    /// Families of sets that are like one: each has `changed` of its elements exchanged for its own.
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

    /// The components that near pairs among the candidates make.
    fn components(stored: &ShingleSets, pairs: &[(u32, u32)], threshold: f64) -> Vec<u32> {
        let mut forest = super::super::Forest::new(stored.len() as u32);
        for &(a, b) in pairs {
            if stored.resemblance_from(a, b, threshold).unwrap().is_some() {
                forest.join(a, b);
            }
        }
        (0..stored.len() as u32).map(|set| forest.root(set)).collect()
    }

    #[test]
    fn crowded_elements_cost_linear_work_are_counted_and_leave_families_whole() {
        let dir = tempfile::tempdir().unwrap();
        let stored = stored(&crowd(11, 3, 2000, 40, 1), dir.path(), usize::MAX);
        let families: Vec<u32> = (0..6000).map(|set| set / 2000 * 2000).collect();
        let (all, summary) = candidates(&stored, 0.8, 10_000, 1 << 24);
        assert_eq!((summary.capped, summary.cap), (0, 10_000));
        assert_eq!(components(&stored, &all, 0.8), families);
        let (capped, summary) = candidates(&stored, 0.8, 100, 1 << 24);
        assert!(summary.capped > 0 && summary.cap == 100 && summary.largest > 1000, "{summary:?}");
        assert!(capped.len() < 30 * 6000 && all.len() > 20 * capped.len(), "{} {}", capped.len(), all.len());
        assert_eq!(components(&stored, &capped, 0.8), families);
        // Whatever the memory.
        let (again, small) = candidates(&stored, 0.8, 100, 0);
        assert_eq!((again, small), (capped, summary));
    }

    #[test]
    fn the_cap_is_lowered_where_it_would_allow_more_pairs_than_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let stored = stored(&crowd(12, 2, 7000, 24, 1), dir.path(), usize::MAX);
        let (pairs, summary) = candidates(&stored, 0.8, 10_000, 1 << 24);
        // All with all would be 49 million pairs, most of them near.
        assert!(summary.cap < 7000 && summary.capped > 0 && summary.largest > 5000, "{summary:?}");
        assert!(pairs.len() < 25_000_000, "{}", pairs.len());
        let families: Vec<u32> = (0..14_000).map(|set| set / 7000 * 7000).collect();
        assert_eq!(components(&stored, &pairs, 0.8), families);
    }
}
