//! Estimates the rarity of elements. Sets are looked up by their rarest elements, so that few candidates are found by
//! chance.
//!
//! Any order of elements is correct if all sets use the same order; the order only determines the speed. Here, elements
//! that occur in no other set come first, then the others by their frequency in a sample. If no other set has any of the
//! elements with which a set is looked up, the set is near no other set, and is skipped.
//!
//! Elements are counted in a table with two bits for each: in no set, in one set, or in several. Colliding elements are
//! treated as elements of several sets, which costs time but changes no result. If the table is too small for all elements,
//! only elements below a limit are counted, the same limit in all sets.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::super::prefix::order::FrequencyClasses;
use super::super::sets::{SetReader, ShingleSets};
use super::super::threads::{cut, on_threads};
use twindex::error::Result;
use twindex_kernel::prefetch;

/// Number of cells per counted element, if the memory suffices.
const CELLS: u64 = 4;
/// Minimum number of cells per counted element. With less memory, fewer elements are counted.
const CELLS_LEAST: u64 = 2;
/// The fraction of elements that is counted is at least this factor times the fraction with which sets are looked up.
const SPARE: f64 = 1.5;
/// Minimum size of the table in bytes.
const LEAST: usize = 1 << 12;
/// A thread counts the elements of consecutive sets at once: of sets with at most this number of elements in total.
const PIECE: u64 = 1 << 17;
/// Number of frequency classes of the elements that several sets have.
const CLASSES: u8 = 4;

/// Records which elements occur in several sets, and their frequency classes.
pub(super) struct Rarity {
    cells: Vec<AtomicU8>,
    bits: u32,
    /// The largest element that was counted.
    last: u64,
    classes: FrequencyClasses,
}

/// Buffers for the rarest elements of a set. `shared` holds the selected elements that other sets may have, too.
#[derive(Default)]
pub(super) struct RareElements {
    pub(super) shared: Vec<u64>,
    others: Vec<u64>,
}

impl Rarity {
    /// Counts the elements of all sets in a table of about `memory` bytes, on `threads` threads. `part` is the approximate
    /// fraction of elements with which sets are looked up.
    pub(super) fn of(sets: &ShingleSets, part: f64, memory: usize, threads: usize) -> Result<Self> {
        let elements = sets.elements();
        let max = 4 * memory.max(LEAST) as u64;
        let bits = (CELLS * elements).clamp(64, max).ilog2();
        let cells = 1_u64 << bits;
        // Counts as many elements as the table has cells for, but at least enough to recognize sets that share no element.
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

    /// Returns the size of the table in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.cells.len()
    }

    /// Returns the cell of an element: the index of a byte, and the position of the cell in this byte.
    #[inline(always)]
    fn cell(&self, element: u64) -> (usize, u32) {
        // Multiplies by an odd constant, because callers may pass elements that are not hashes, and the elements of a set
        // ascend.
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
            // The first set with the element sets the lower bit of the cell, a second set the upper bit. Only one thread
            // finds the lower bit unset.
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

    /// Returns whether an element is known to occur in only one set.
    #[inline(always)]
    fn is_alone(&self, element: u64) -> bool {
        let (byte, place) = self.cell(element);
        self.cells[byte].load(Relaxed) >> place & 2 == 0
    }

    /// Selects the `wanted` rarest elements of a set, and stores in `head` the selected elements that other sets may have.
    /// Returns false if there are no such elements.
    pub(super) fn head(&self, set: &[u64], wanted: usize, head: &mut RareElements) -> bool {
        let RareElements { shared, others } = head;
        let (counted, rest) = set.split_at(set.partition_point(|&element| element <= self.last));
        // Branch-free: each element is written, and the count advances only if several sets have the element.
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

    /// Stores all elements of a set that other sets may have in `head`.
    pub(super) fn all(&self, set: &[u64], head: &mut RareElements) {
        head.shared.clear();
        head.shared
            .extend(set.iter().copied().filter(|&element| element > self.last || !self.is_alone(element)));
    }
}

/// Number of elements between the current element and the one whose cell is prefetched.
const AHEAD: usize = 16;
