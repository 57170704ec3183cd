//! Counts how many sets contain an element, so that a memtable indexes a set under its rarest elements.

use crate::error::Result;
use crate::format::fields::{Fields, unread};
use crate::format::prefixes;
use twindex_sketch::Nearness;

/// Counts, for each element, the sets that contain it. The counts are approximate, because elements share counters: the
/// counter of an element is the tag of the element (its upper 32 bits) modulo [`Self::CELLS`].
#[derive(Clone, Debug, Default)]
struct TagCounts(Vec<u16>);

impl TagCounts {
    /// The number of counters. Tags that are equal modulo this number share a counter.
    const CELLS: u32 = 1 << 20;

    fn count(&self, tag: u32) -> u32 {
        self.0.get((tag % Self::CELLS) as usize).copied().unwrap_or(0).into()
    }

    fn faded(&self) -> Self {
        Self(self.0.iter().map(|count| count / 2).collect())
    }

    fn add(&mut self, set: &[u64]) {
        if self.0.is_empty() {
            self.0 = vec![0; Self::CELLS as usize];
        }
        for &hash in set {
            let cell = &mut self.0[(prefixes::tag(hash) % Self::CELLS) as usize];
            *cell = cell.saturating_add(1);
        }
    }
}

/// Statistics about the sets that were added so far.
#[derive(Debug)]
pub(super) struct SetStatistics {
    rarity: TagCounts,
    nearness: Option<Nearness>,
}

impl SetStatistics {
    pub(super) fn new(nearness: Option<Nearness>) -> Self {
        Self { rarity: TagCounts::default(), nearness }
    }

    /// Returns a copy with all counters halved.
    pub(super) fn faded(&self) -> Self {
        Self { rarity: self.rarity.faded(), nearness: self.nearness }
    }

    /// Returns whether sets are indexed.
    pub(super) fn is_kept(&self) -> bool {
        self.nearness.is_some()
    }

    pub(super) fn memory(&self) -> usize {
        2 * self.rarity.0.len()
    }

    /// Counts the elements of a document's set. Returns the prefix keys under which the document is to be indexed.
    pub(super) fn keys_of(&mut self, fields: Fields<'_>) -> Result<Vec<u32>> {
        let (mut set, mut keys) = (Vec::new(), Vec::new());
        if let Some(near) = self.nearness {
            fields.set_into(&mut set).map_err(unread)?;
            prefixes::rarest_tags(&set, near.indexed(set.len()), |tag| self.rarity.count(tag), &mut keys);
            self.rarity.add(&set);
            for tag in &mut keys {
                *tag = prefixes::key(*tag, fields.is_marked());
            }
        }
        Ok(keys)
    }
}
