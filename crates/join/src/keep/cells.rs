//! Counts in how many sets an element occurs: in none, one or several, in a table with two bits per element; and in a
//! smaller table, in how many sets after the first two.
//!
//! The table is larger than the caches, so that adding elements one by one would mostly wait for cache and TLB misses.
//! [`CellAdder`] collects elements by parts of the table, and adds many to one part at once.

use std::sync::atomic::{AtomicU8, AtomicU16, Ordering::Relaxed};

use parking_lot::Mutex;
use twindex_kernel::prefetch;

/// A table with one cell of two bits for each hash value. Colliding elements share a cell, so an element may appear to be
/// in several sets although it is in one, but never the reverse.
pub(super) struct Cells {
    bytes: Vec<AtomicU8>,
    bits: u32,
    factor: u64,
    /// A lock for each part of the table, held while elements are added. The number of parts is a power of two.
    parts: Vec<Mutex<()>>,
    /// For each group of consecutive cells, the number of elements added to these cells after the first two of each.
    /// Empty if they are not counted.
    further: Vec<AtomicU16>,
}

/// Odd factors of multiplicative hash functions. Elements that collide under one function rarely collide under another.
const FACTORS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];

/// Number of elements between the current element and the one whose cell is prefetched.
pub(super) const AHEAD: usize = 32;

/// The size of a part of the table in bytes. A part fits in the cache, and its pages fit in the TLB.
const PART: usize = 1 << 18;
/// Maximum number of parts.
const PARTS: usize = 1 << 9;
/// Number of elements that are added to a part at once.
const GROUP: usize = 1 << 12;

impl Cells {
    /// Creates a table of empty cells: `per_element` for each of `elements` elements, rounded down to a power of two,
    /// and at most `memory` bytes. Occurrences after the first two are counted in about `counters` counters; 0 means
    /// that they are not counted. Tables of consecutive rounds use different hash functions.
    pub(super) fn new(elements: u64, per_element: u64, memory: usize, counters: usize, round: usize) -> Self {
        let bits = elements.saturating_mul(per_element).clamp(64, 4 * memory.max(16) as u64).ilog2();
        let mut bytes = Vec::new();
        bytes.resize_with(1 << (bits - 2), AtomicU8::default);
        let mut further = Vec::new();
        if let Some(log) = counters.min(bytes.len()).checked_ilog2() {
            further.resize_with(1 << log, AtomicU16::default);
        }
        let most = if further.is_empty() { PARTS } else { PARTS.min(further.len()) };
        let parts = (bytes.len() / PART).clamp(1, most);
        let parts = std::iter::repeat_with(Mutex::default).take(1 << parts.ilog2()).collect();
        Self { bytes, bits, factor: FACTORS[round % FACTORS.len()], parts, further }
    }

    pub(super) fn count(&self) -> u64 {
        1 << self.bits
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.further)
    }

    #[inline(always)]
    fn cell(&self, element: u64) -> u64 {
        // Multiplies by an odd constant, because callers may pass elements that are not hashes, and the elements of a set
        // ascend.
        element.wrapping_mul(self.factor) >> (u64::BITS - self.bits)
    }

    /// Prefetches the cell of an element.
    #[inline(always)]
    pub(super) fn fetch(&self, element: u64) {
        prefetch(&self.bytes, (self.cell(element) >> 2) as usize);
    }

    /// Returns whether an element is known to occur in at most one set.
    #[inline(always)]
    pub(super) fn is_alone(&self, element: u64) -> bool {
        let cell = self.cell(element);
        self.bytes[(cell >> 2) as usize].load(Relaxed) >> (2 * (cell & 3)) & 2 == 0
    }

    /// Prefetches the counter of an element.
    #[inline(always)]
    pub(super) fn fetch_further(&self, element: u64) {
        prefetch(&self.further, self.counter(self.cell(element)));
    }

    /// Returns an estimate of the number of times that an element was added after the first two times, at most 65,535.
    #[inline(always)]
    pub(super) fn further(&self, element: u64) -> u16 {
        self.further.get(self.counter(self.cell(element))).map_or(0, |counter| counter.load(Relaxed))
    }

    #[inline(always)]
    fn counter(&self, cell: u64) -> usize {
        (cell >> (self.bits - self.further.len().max(1).ilog2())) as usize
    }

    /// Base-2 logarithm of the number of cells of a part.
    fn part_bits(&self) -> u32 {
        self.bits - self.parts.len().ilog2()
    }

    /// Adds elements to a part of the table, given by the positions of their cells in the part. The result does not depend
    /// on the order in which elements are added.
    fn add(&self, part: usize, places: &[u32]) {
        let start = (part as u64) << self.part_bits();
        // All cells of a byte and of a counter are in one part, which only this thread changes.
        let _lock = self.parts[part].lock();
        for (at, &place) in places.iter().enumerate() {
            if let Some(&later) = places.get(at + AHEAD) {
                prefetch(&self.bytes, ((start + u64::from(later)) >> 2) as usize);
            }
            let cell = start + u64::from(place);
            let (byte, shift) = (&self.bytes[(cell >> 2) as usize], 2 * (cell & 3));
            let all = byte.load(Relaxed);
            let before = all >> shift & 3;
            byte.store(all | ((2 * before + 1) & 3) << shift, Relaxed);
            if before == 3
                && let Some(counter) = self.further.get(self.counter(cell))
            {
                counter.store(counter.load(Relaxed).saturating_add(1), Relaxed);
            }
        }
    }
}

/// Adds elements to a table in batches: collects the elements of each part of the table, and adds them together.
pub(super) struct CellAdder<'c> {
    cells: &'c Cells,
    /// For each part, space for [`GROUP`] positions of cells in the part.
    places: Vec<u32>,
    /// For each part, the number of its positions that are not added yet.
    waiting: Vec<usize>,
}

impl<'c> CellAdder<'c> {
    pub(super) fn new(cells: &'c Cells) -> Self {
        let parts = cells.parts.len();
        Self { cells, places: vec![0; parts * GROUP], waiting: vec![0; parts] }
    }

    /// Adds an element of a set. The table is complete after [`finish`](Self::finish).
    #[inline(always)]
    pub(super) fn add(&mut self, element: u64) {
        let (cell, part_bits) = (self.cells.cell(element), self.cells.part_bits());
        let part = (cell >> part_bits) as usize;
        let waiting = &mut self.waiting[part];
        self.places[part * GROUP + *waiting] = (cell & ((1 << part_bits) - 1)) as u32;
        *waiting += 1;
        if *waiting == GROUP {
            self.flush(part);
        }
    }

    fn flush(&mut self, part: usize) {
        let waiting = std::mem::take(&mut self.waiting[part]);
        self.cells.add(part, &self.places[part * GROUP..][..waiting]);
    }

    /// Adds all waiting elements.
    pub(super) fn finish(mut self) {
        (0..self.waiting.len()).for_each(|part| self.flush(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cells: Cells, elements: impl IntoIterator<Item = u64>) -> Cells {
        let mut adder = CellAdder::new(&cells);
        elements.into_iter().for_each(|element| adder.add(element));
        adder.finish();
        cells
    }

    #[test]
    fn elements_added_twice_are_never_alone() {
        for (memory, fewest) in [(1 << 20, 500), (64, 0)] {
            let elements: Vec<u64> = (0..2000).map(|at| at << 20).collect();
            let cells =
                with(Cells::new(2000, 4, memory, 0, 7), elements.iter().chain(&elements[..1000]).copied());
            assert!(cells.bytes() <= memory && cells.count() == 4 * cells.bytes() as u64);
            assert!(elements[..1000].iter().all(|&element| !cells.is_alone(element)));
            let alone = elements[1000..].iter().filter(|&&element| cells.is_alone(element)).count();
            assert!((fewest..=1000).contains(&alone) && (memory > 1000 || alone < 100), "{alone}");
        }
    }

    #[test]
    fn elements_are_counted_in_several_parts_and_on_several_threads() {
        let cells = Cells::new(1 << 24, 4, 1 << 22, 1 << 20, 0);
        assert_eq!(cells.parts.len(), 16);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let cells = &cells;
                scope.spawn(move || {
                    let mut adder = CellAdder::new(cells);
                    for element in 0..10_000_u64 {
                        // Element i is added i % 7 times in total.
                        (0..element % 7)
                            .filter(|time| time % 2 == thread)
                            .for_each(|_| adder.add(element << 32 | element));
                    }
                    adder.finish();
                });
            }
        });
        let mut exact = 0;
        for (added, element) in (0..10_000).map(|element| (element % 7, element << 32 | element)) {
            let (alone, further) = (cells.is_alone(element), u64::from(cells.further(element)));
            assert!(further + 2 >= added && (added < 2 || !alone), "{added} {further}");
            exact += u32::from(further == added.saturating_sub(2) && alone == (added < 2));
        }
        assert!(exact > 9_000, "{exact}");
    }
}
