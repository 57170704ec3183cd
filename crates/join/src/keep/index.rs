//! Indexes kept sets by the tags of their elements.

use crate::pairs::odd_sketches::OddSketches;
use crate::work::slots::{NUMBERS, Postings, Slots};
use twindex::error::Result;
use twindex::sys::MemoryBudget;

/// Kept sets, indexed by the tags of elements. Sets are identified by their *position*: the order in which they were added.
pub(super) struct CoverIndex {
    slots: Slots,
    /// The number of each set, by position.
    pub(super) members: Vec<u32>,
    pub(super) sizes: Vec<u32>,
    pub(super) odd: OddSketches,
    max: usize,
}

impl CoverIndex {
    /// Creates an empty index with a limit of `max` bytes; see [`is_full`](Self::is_full).
    pub(super) fn new(max: usize) -> Self {
        Self {
            slots: Slots::new(),
            members: Vec::new(),
            sizes: Vec::new(),
            odd: OddSketches::within(max / 4, &MemoryBudget::unlimited()),
            max,
        }
    }

    /// Returns whether a further set with `tags` tags does not fit. An empty index is never full.
    pub(super) fn is_full(&self, tags: usize) -> bool {
        let members = 2 * size_of::<u32>() * self.members.capacity();
        let is_over = self.slots.bytes_with(tags) + members + self.odd.bytes() > self.max;
        !self.members.is_empty() && (is_over || self.members.len() >= NUMBERS)
    }

    /// Prefetches the slot of a tag.
    #[inline(always)]
    pub(super) fn fetch(&self, tag: u32) {
        self.slots.fetch_tag(tag);
    }

    /// Returns the positions of the sets that are indexed by a tag, ascending.
    #[inline(always)]
    pub(super) fn postings(&self, tag: u32) -> Postings<'_> {
        self.slots.postings_of_tag(tag)
    }

    /// Adds a set with its odd sketch. The set is indexed by `tags`.
    pub(super) fn add(&mut self, set: u32, size: u32, tags: &[u32], sketch: &[u64]) -> Result<()> {
        let place = self.members.len() as u32;
        self.members.push(set);
        self.sizes.push(size);
        self.odd.push_made(sketch, size as usize)?;
        self.slots.add_tags(place, tags.iter().copied());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_full_if_a_set_does_not_fit_unless_empty() {
        let mut index = CoverIndex::new(1 << 20);
        for place in 0..2000_u32 {
            let tags: Vec<u32> = (0..20).map(|at| place << 8 | at).collect();
            index.add(place + 7, 20, &tags, &[0]).unwrap();
        }
        assert_eq!((index.members[3], index.sizes[3]), (10, 20));
        assert_eq!(index.postings(3 << 8), Postings::One(3));
        assert!(!CoverIndex::new(0).is_full(1 << 20) && index.is_full(1 << 20));
        assert!(!CoverIndex { max: 1 << 30, ..index }.is_full(100));
    }
}
