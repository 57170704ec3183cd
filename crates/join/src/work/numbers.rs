//! A hash table from hashes to the numbers of items, with slots of 8 bytes in a column.
//!
//! A slot stores the number of an item and 32 bits of the item's hash. Eight more bits of the hash determine the part
//! of the table that contains the slot, so the table can grow without the full hashes. In a table of ten million
//! numbers, one lookup in 10^5 finds the number of an item with another hash.

use twindex::error::Result;
use twindex::sys::{Column, MemoryBudget};
use twindex_kernel::prefetch;

/// Number of hash bits that select a part of the table.
const PART_BITS: u32 = 8;
const PARTS: usize = 1 << PART_BITS;
/// Base-2 logarithm of the initial number of slots in a part.
const BITS: u32 = 4;

/// A hash table of numbers. The caller verifies that two items are equal.
///
/// ```
/// use twindex_join::HashNumbers;
/// use twindex::sys::MemoryBudget;
///
/// let words = ["a", "rose", "is", "a", "rose"];
/// let mut numbers = HashNumbers::new(&MemoryBudget::unlimited())?;
/// for (number, word) in (0..).zip(words) {
///     let hash = u64::from(word.as_bytes()[0]) << 56; // a real hash is uniform
///     if numbers.find(hash, |other: u32| Ok::<_, twindex::Error>(words[other as usize] == word))?.is_none() {
///         numbers.insert(hash, number)?;
///     }
/// }
/// assert_eq!(numbers.len(), 3);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct HashNumbers {
    budget: MemoryBudget,
    /// The slots of all parts; 0 for a free slot. A used slot holds the tag (32 bits of the hash) in its upper 32 bits, and
    /// the number plus 1 in its lower 32 bits.
    slots: Column<u64>,
    /// Base-2 logarithm of the number of slots in a part.
    bits: u32,
    /// Number of used slots in each part.
    used: Box<[u32; PARTS]>,
    len: usize,
}

/// The slot at which the search for a hash begins, and the tag to compare.
#[derive(Clone, Copy)]
struct ProbeStart {
    part: usize,
    tag: u32,
    /// The index of the slot in its part.
    at: usize,
}

impl HashNumbers {
    /// Creates an empty table.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file, if the budget is exhausted.
    pub fn new(budget: &MemoryBudget) -> Result<Self> {
        let slots = Column::filled(budget, PARTS << BITS, 0)?;
        Ok(Self { budget: budget.clone(), slots, bits: BITS, used: Box::new([0; PARTS]), len: 0 })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn start(&self, hash: u64) -> ProbeStart {
        let tag = (hash >> (u32::BITS - PART_BITS)) as u32;
        ProbeStart {
            part: (hash >> (u64::BITS - PART_BITS)) as usize,
            tag,
            at: (tag >> (u32::BITS - self.bits)) as usize,
        }
    }

    /// Returns the first number with this hash for which `is_same` returns true, or `None`. `is_same` may also be
    /// called for a number with another hash.
    ///
    /// # Errors
    /// The error of `is_same`.
    #[inline]
    pub fn find<E>(
        &self,
        hash: u64,
        mut is_same: impl FnMut(u32) -> std::result::Result<bool, E>,
    ) -> std::result::Result<Option<u32>, E> {
        let ProbeStart { part, tag, mut at } = self.start(hash);
        let slots = &self.slots[part << self.bits..][..1 << self.bits];
        // The loop ends, because at least a quarter of the slots are free.
        while slots[at] != 0 {
            let number = slots[at] as u32 - 1;
            if (slots[at] >> u32::BITS) as u32 == tag && is_same(number)? {
                return Ok(Some(number));
            }
            at = (at + 1) & (slots.len() - 1);
        }
        Ok(None)
    }

    /// Prefetches the slot at which the search for this hash begins.
    pub fn prefetch(&self, hash: u64) {
        let ProbeStart { part, at, .. } = self.start(hash);
        prefetch(&self.slots, (part << self.bits) + at);
    }

    /// Adds a number below 2^32 - 1 with its hash.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn insert(&mut self, hash: u64, number: u32) -> Result<()> {
        let part = self.start(hash).part;
        if 4 * (self.used[part] as usize + 1) > 3 << self.bits {
            self.grow()?;
        }
        let ProbeStart { part, tag, mut at } = self.start(hash);
        let slots = &mut self.slots[part << self.bits..][..1 << self.bits];
        while slots[at] != 0 {
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = u64::from(tag) << u32::BITS | u64::from(number + 1);
        self.used[part] += 1;
        self.len += 1;
        Ok(())
    }

    /// Doubles the number of slots. Reads and writes both tables sequentially.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let bits = self.bits + 1;
        let mut grown = Column::filled(&self.budget, PARTS << bits, 0_u64)?;
        let mask = (1 << self.bits) - 1;
        for (old, new) in self.slots.chunks_exact(1 << self.bits).zip(grown.chunks_exact_mut(1 << bits)) {
            // Starts at a free slot, so that slots with equal tags keep their order even if a run of used slots wraps
            // around the end.
            let first = old.iter().position(|&slot| slot == 0).unwrap_or(0);
            for at in first..first + old.len() {
                let slot = old[at & mask];
                if slot != 0 {
                    let mut to = (slot >> (u64::BITS - bits)) as usize;
                    while new[to] != 0 {
                        to = (to + 1) & (new.len() - 1);
                    }
                    new[to] = slot;
                }
            }
        }
        (self.slots, self.bits) = (grown, bits);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn numbers_with_equal_hashes_are_found_in_insertion_order() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [0, 100_000, usize::MAX] {
            let mut random = SplitMix(bytes as u64);
            let mut numbers = HashNumbers::new(&MemoryBudget::new(dir.path(), bytes)).unwrap();
            let mut wanted: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for number in 0..30_000 {
                // Some hashes are equal or nearly equal to the hashes of other numbers.
                let hash = match number % 1000 {
                    0..99 => SplitMix(number / 40).next(),
                    99 => (u64::MAX << 8) | (number / 1000),
                    _ => random.next(),
                };
                numbers.insert(hash, number as u32).unwrap();
                wanted.entry(hash).or_default().push(number as u32);
            }
            assert_eq!(numbers.len(), 30_000);
            assert!(numbers.slots.len() < 8 * 30_000 && numbers.slots.is_on_disk() == (bytes < 200_000));
            for (hash, all) in wanted {
                let mut seen = Vec::new();
                let found = numbers.find(hash, |number| {
                    seen.push(number);
                    Ok::<_, ()>(false)
                });
                assert_eq!(found, Ok(None));
                assert!(seen.len() < all.len() + 3 || hash >= u64::MAX << 8, "others are rare");
                seen.retain(|number| all.contains(number));
                assert_eq!(seen, all);
                assert_eq!(numbers.find(hash, |number| Ok::<_, ()>(number == all[0])), Ok(Some(all[0])));
                assert_eq!(numbers.find(hash, |_| Err("unreadable")), Err("unreadable"));
            }
            assert_eq!(numbers.find(random.next(), |_| Err("not asked")), Ok(None));
        }
    }
}
