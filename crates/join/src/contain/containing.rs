//! Finds earlier sets that contain a new set or are contained in it, for deduplicating a stream by containment.
//!
//! With a minimum share t, a set of n elements is contained in a larger set if the larger set has at least ceil(t n) of
//! its elements. Then the larger set has at least one of any n - ceil(t n) + 1 elements of the smaller set. To find
//! earlier sets that contain a new set, this number of the new set's rarest elements are looked up in an index of all
//! elements of earlier sets. To find earlier sets that a new set contains, each set is also indexed by the elements
//! that are its rarest when it is added, and all elements of the new set are looked up. Both searches find all sets.
//! They need no fixed order of elements, so frequencies need not be known in advance.

use std::mem;

use crate::work::slots::{NUMBERS, Postings, Slots};
use twindex::error::{Error, Result};
use twindex_sketch::Nearness;

/// Finds the sets that contain a given set, and the sets that a given set contains. Holds in memory a map from elements
/// to the numbers of the sets that have them. Sets are numbered from 0 in the order in which they were added.
///
/// A lookup returns all sets it should find, and possibly others. The elements of a set are not stored together, so the
/// caller must verify each returned set. The index takes about 17 bytes for each distinct element, and 4 bytes for each
/// further set with the same element. A set of 300 shingles takes about 5 KB if two thirds of the shingles occur in no
/// other set.
///
/// ```
/// use twindex_join::Containing;
/// use twindex_sketch::Nearness;
///
/// let mut containing = Containing::new(0.8, 1 << 20)?;
/// let page = [1, 2, 3, 4, 5, 6, 7, 8];
/// let page_number = containing.push(&page)?;
/// // Four of the five elements of `part` are in `page`.
/// let part = [2, 3, 4, 5, 90];
/// assert_eq!(containing.containing(&part), [page_number]);
/// let part_number = containing.push(&part)?;
/// // A larger set contains all elements of `part`.
/// let larger = [2, 3, 4, 5, 90, 91, 92, 93, 94, 95];
/// assert!(containing.contained_in(&larger).contains(&part_number));
/// assert!(Nearness::Containment(0.8).shared(&part, &larger).is_some(), "verified by the caller");
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct Containing {
    near: Nearness,
    memory: usize,
    /// Indexes each set by all of its elements.
    all: Slots,
    /// Indexes each set by its rarest elements: just enough that every set that contains it has at least one of them.
    rarest: Slots,
    sizes: Vec<u32>,
    /// Scratch memory: for each element of a set, the number of indexed sets that have it, and the element. `found`
    /// holds the result of a lookup.
    by_count: Vec<(u32, u64)>,
    found: Vec<u32>,
}

impl Containing {
    /// Creates an empty collection that uses about `memory` bytes at most. A set contains another set if it has at
    /// least the share `threshold` of the elements of that set; `threshold` is above 0 and at most 1.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a threshold out of this range.
    pub fn new(threshold: f64, memory: usize) -> Result<Self> {
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::Invalid(format!("containment {threshold}: expected above 0 and up to 1")));
        }
        Ok(Self {
            near: Nearness::Containment(threshold),
            memory,
            all: Slots::new(),
            rarest: Slots::new(),
            sizes: Vec::new(),
            by_count: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Returns the number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Returns whether the collection has no sets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Returns the number of bytes used.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let working =
            size_of::<(u32, u64)>() * self.by_count.capacity() + size_of::<u32>() * self.found.capacity();
        self.all.bytes() + self.rarest.bytes() + size_of::<u32>() * self.sizes.capacity() + working
    }

    /// Adds a set and returns the number of the set. `set` holds its elements in any order, without duplicates.
    ///
    /// # Errors
    /// [`Error::Limit`] if the set does not fit in the memory, or if there are already 2^31 - 1 sets. The set is then not
    /// added.
    pub fn push(&mut self, set: &[u64]) -> Result<u32> {
        let prefix = self.prefix(set);
        let own = LIST_BYTES * (set.len() + prefix) + 2 * size_of::<u32>() * (self.sizes.len() + 1);
        let needed = self.all.bytes_with(set.len()) + self.rarest.bytes_with(prefix) + own;
        if needed > self.memory {
            let (limit, found) = (self.memory as u64, needed as u64);
            return Err(Error::Limit { what: "bytes of memory for the elements of all sets", limit, found });
        }
        if self.sizes.len() >= NUMBERS {
            return Err(Error::Limit { what: "sets", limit: NUMBERS as u64, found: NUMBERS as u64 + 1 });
        }
        let number = self.sizes.len() as u32;
        self.sort_by_count(set);
        let mut rarest: Vec<u64> = self.by_count[..prefix].iter().map(|&(_, element)| element).collect();
        rarest.sort_unstable();
        self.rarest.add(number, &rarest);
        self.all.add(number, set);
        self.sizes.push(set.len() as u32);
        Ok(number)
    }

    /// Returns candidates for sets that contain `set`, in ascending order without repetition: all sets that contain it, and
    /// possibly others. No candidate is smaller than `set`.
    pub fn containing(&mut self, set: &[u64]) -> &[u32] {
        self.sort_by_count(set);
        let prefix = self.prefix(set);
        let Self { all, sizes, by_count, found, .. } = self;
        found.clear();
        for &(_, element) in &by_count[..prefix] {
            collect(all.postings(element), found, |number| sizes[number as usize] as usize >= set.len());
        }
        self.found()
    }

    /// Returns candidates for sets that `set` contains, in ascending order without repetition: all sets that it contains,
    /// and possibly others. No candidate is larger than `set` or empty.
    pub fn contained_in(&mut self, set: &[u64]) -> &[u32] {
        let Self { rarest, sizes, found, .. } = self;
        found.clear();
        for &element in set {
            collect(rarest.postings(element), found, |number| sizes[number as usize] as usize <= set.len());
        }
        self.found()
    }

    /// Returns the smallest n such that each containing set has at least one of any n elements of `set`.
    fn prefix(&self, set: &[u64]) -> usize {
        self.near.prefix(set.len()).min(set.len())
    }

    /// Replaces `by_count` with the elements of `set`, sorted by the number of indexed sets that have them, ascending.
    fn sort_by_count(&mut self, set: &[u64]) {
        let mut by_count = mem::take(&mut self.by_count);
        by_count.clear();
        by_count.extend(set.iter().map(|&element| (self.all.postings(element).len() as u32, element)));
        by_count.sort_unstable();
        self.by_count = by_count;
    }

    fn found(&mut self) -> &[u32] {
        self.found.sort_unstable();
        self.found.dedup();
        &self.found
    }
}

/// Bytes of a posting list of two numbers, including its header.
const LIST_BYTES: usize = size_of::<Vec<u32>>() + 2 * size_of::<u32>();

fn collect(postings: Postings<'_>, found: &mut Vec<u32>, is_wanted: impl Fn(u32) -> bool) {
    match postings {
        Postings::None => {}
        Postings::One(number) => found.extend(is_wanted(number).then_some(number)),
        Postings::Several(numbers) => {
            found.extend(numbers.iter().copied().filter(|&number| is_wanted(number)));
        }
    }
}

#[cfg(test)]
#[path = "../../tests/support/nested_sets.rs"]
mod nested_sets;

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn candidates_include_all_containing_and_contained_sets() {
        let (mut over, mut under, mut others) = (0, 0, 0);
        for seed in 0..200 {
            let mut random = SplitMix(seed);
            let count = random.next() as usize % 80;
            let sets = nested_sets::sets(&mut random, count);
            for threshold in [0.05, 0.5, 0.8, 0.9, 1.0] {
                let near = Nearness::Containment(threshold);
                let mut containing = Containing::new(threshold, 1 << 24).unwrap();
                for (at, set) in sets.iter().enumerate() {
                    let before = 0..at as u32;
                    let is_over = |&other: &u32| near.shared(set, &sets[other as usize]).is_some();
                    let wanted: Vec<u32> = before.clone().filter(is_over).collect();
                    let found = containing.containing(set);
                    others += found.len() - wanted.len();
                    assert!(
                        found.is_sorted()
                            && found.iter().all(|&other| sets[other as usize].len() >= set.len())
                    );
                    assert_eq!(
                        found.iter().copied().filter(is_over).collect::<Vec<_>>(),
                        wanted,
                        "{seed} {threshold}"
                    );
                    over += wanted.len();
                    let is_under = |&other: &u32| near.shared(&sets[other as usize], set).is_some();
                    let wanted: Vec<u32> = before.filter(is_under).collect();
                    let found = containing.contained_in(set);
                    others += found.len() - wanted.len();
                    assert!(
                        found.is_sorted()
                            && found.iter().all(|&other| sets[other as usize].len() <= set.len())
                    );
                    assert_eq!(
                        found.iter().copied().filter(is_under).collect::<Vec<_>>(),
                        wanted,
                        "{seed} {threshold}"
                    );
                    under += wanted.len();
                    assert_eq!(containing.push(set).unwrap(), at as u32);
                }
                assert_eq!(containing.len(), sets.len());
            }
        }
        assert!(
            over > 20_000 && under > 20_000 && others > 10_000,
            "a test of something: {over} {under} {others}"
        );
    }

    #[test]
    fn memory_is_bounded_and_invalid_shares_are_refused() {
        for share in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(Containing::new(share, 1 << 20).is_err(), "{share}");
        }
        let (mut containing, mut random) = (Containing::new(0.8, 1 << 20).unwrap(), SplitMix(9));
        let mut pushed = 0;
        let error = loop {
            let mut set: Vec<u64> = (0..100).map(|at| if at < 20 { at } else { random.next() }).collect();
            set.sort_unstable();
            match containing.push(&set) {
                Ok(number) => assert_eq!(number, pushed),
                Err(error) => break error.to_string(),
            }
            pushed += 1;
            // The limit may be slightly exceeded, because vectors double their capacity when they grow.
            assert!(containing.bytes() <= (1 << 20) + (1 << 16));
        };
        assert!(pushed > 100 && error.contains("memory for the elements of all sets"), "{pushed} {error}");
        assert_eq!(containing.len() as u32, pushed, "nothing was added");
    }
}
