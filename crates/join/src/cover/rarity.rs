//! Rarity of elements: sets are looked up by their rarest elements, so that few candidates are found by accident.
//!
//! Any order of elements is correct if all sets use the same one; the order only determines the speed. Here elements that no
//! other set has come first, then the others by their frequency in a sample. A set whose looked-up elements are all its own
//! is near no other set, and is skipped.
//!
//! Elements are counted in a table of two bits each: no set, one set, several sets. Elements that collide are treated as
//! elements of several sets, which costs time but changes no result. If the table is too small for all elements, only
//! elements below some hash are counted, in all sets.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::super::prefix::order::FrequencyClasses;
use super::super::sets::{SetReader, ShingleSets};
use super::super::threads::{cut, on_threads};
use twindex::error::Result;
use twindex_kernel::prefetch;

/// Number of cells per counted element, if memory suffices.
const CELLS: u64 = 4;
/// Minimum number of cells per counted element; with less memory, fewer elements are counted.
const CELLS_LEAST: u64 = 2;
/// The number of counted elements is at least the number of looked-up elements of a set times this factor.
const SPARE: f64 = 1.5;
/// Minimum size of the table in bytes.
const LEAST: usize = 1 << 12;
/// Number of elements of consecutive sets that a thread counts at once.
const PIECE: u64 = 1 << 17;
/// Number of frequency classes of elements that several sets have.
const CLASSES: u8 = 4;

/// Estimates the rarity of elements.
pub(super) struct Rarity {
    cells: Vec<AtomicU8>,
    bits: u32,
    /// Elements up to this one were counted.
    last: u64,
    classes: FrequencyClasses,
}

/// The elements by which a set is looked up, which other sets may have; in a reused buffer.
#[derive(Default)]
pub(super) struct RareElements {
    pub(super) shared: Vec<u64>,
    others: Vec<u64>,
}

impl Rarity {
    /// Counts the elements of all sets, in about `memory` bytes, on `threads` threads. `part` is the approximate fraction of
    /// elements by which sets are looked up.
    pub(super) fn of(sets: &ShingleSets, part: f64, memory: usize, threads: usize) -> Result<Self> {
        let elements = sets.elements();
        let max = 4 * memory.max(LEAST) as u64;
        let bits = (CELLS * elements).clamp(64, max).ilog2();
        let cells = 1_u64 << bits;
        // As many elements as the table has cells for, and enough to detect sets that share nothing.
        let fitting = cells as f64 / (CELLS_LEAST * elements.max(1)) as f64;
        let share = fitting.max(SPARE * part).min(1.0);
        #[allow(clippy::cast_sign_loss, reason = "a share")]
        let last = if share < 1.0 { (share * u64::MAX as f64) as u64 } else { u64::MAX };
        let mut table = Vec::new();
        table.resize_with((cells / 4) as usize, AtomicU8::default);
        let rarity = Self { cells: table, bits, last, classes: FrequencyClasses::of(sets)? };
        let pieces: Vec<_> = cut(0..sets.len(), (usize::MAX, PIECE), |set| sets.size(set as u32)).collect();
        let mut readers: Vec<_> = (0..threads.max(1)).map(|_| SetReader::new(sets)).collect();
        on_threads(&mut readers, &pieces, |reader, piece| {
            reader.ahead(piece.start as u32..piece.end as u32)?;
            for set in piece.clone() {
                rarity.count(reader.set(set as u32)?);
            }
            Ok(())
        })?;
        Ok(rarity)
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.cells.len()
    }

    /// Returns the counter of an element: its byte, and its position in the byte.
    #[inline(always)]
    fn cell(&self, element: u64) -> (usize, u32) {
        // Elements are usually hashes, but callers may pass any numbers. Elements of a set ascend, so their bits are mixed.
        let at = element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - self.bits);
        ((at >> 2) as usize, 2 * (at & 3) as u32)
    }

    fn count(&self, set: &[u64]) {
        let counted = &set[..set.partition_point(|&element| element <= self.last)];
        for (at, &element) in counted.iter().enumerate() {
            if let Some(&later) = counted.get(at + AHEAD) {
                self.fetch(later);
            }
            let (byte, place) = self.cell(element);
            let cell = &self.cells[byte];
            // The lower bit records the first set, the upper bit a second one. Only one thread finds the lower bit unset.
            let before = cell.load(Relaxed) >> place & 3;
            if before & 1 == 0 {
                let before = cell.fetch_or(1 << place, Relaxed) >> place;
                if before & 1 == 0 {
                    continue;
                }
            }
            if before & 2 == 0 {
                cell.fetch_or(2 << place, Relaxed);
            }
        }
    }

    /// Prefetches the cell of an element.
    #[inline(always)]
    fn fetch(&self, element: u64) {
        prefetch(&self.cells, self.cell(element).0);
    }

    /// Whether an element is known to be in only one set.
    #[inline(always)]
    fn is_alone(&self, element: u64) -> bool {
        let (byte, place) = self.cell(element);
        self.cells[byte].load(Relaxed) >> place & 2 == 0
    }

    /// Finds the elements that other sets may have among the `wanted` rarest elements of a set. Returns false if there are
    /// none.
    pub(super) fn head(&self, set: &[u64], wanted: usize, head: &mut RareElements) -> bool {
        let RareElements { shared, others } = head;
        let (counted, rest) = set.split_at(set.partition_point(|&element| element <= self.last));
        // Always written, and overwritten if only this set has it; this is cheaper than a mispredicted branch.
        others.resize(set.len(), 0);
        let (mut alone, mut left) = (0, 0);
        for (at, &element) in counted.iter().enumerate() {
            if let Some(&later) = counted.get(at + AHEAD) {
                self.fetch(later);
            }
            let is_alone = self.is_alone(element);
            others[left] = element;
            left += usize::from(!is_alone);
            alone += usize::from(is_alone);
            if alone == wanted {
                return false;
            }
        }
        others[left..left + rest.len()].copy_from_slice(rest);
        others.truncate(left + rest.len());
        let wanted = wanted - alone;
        shared.clear();
        if wanted >= others.len() {
            shared.append(others);
            return !shared.is_empty();
        }
        shared.resize(wanted, 0);
        let mut found = 0;
        for class in 0..CLASSES {
            for &element in &*others {
                if found == wanted {
                    return true;
                }
                shared[found] = element;
                found += usize::from(self.classes.of_element(element) == class);
            }
        }
        true
    }

    /// Finds all elements of a set that others may have.
    pub(super) fn all(&self, set: &[u64], head: &mut RareElements) {
        head.shared.clear();
        head.shared
            .extend(set.iter().copied().filter(|&element| element > self.last || !self.is_alone(element)));
    }
}

/// Number of elements ahead whose cells are prefetched.
const AHEAD: usize = 16;
