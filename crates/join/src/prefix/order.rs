//! The global order of elements, and the prefix of each set in it.

use std::ops::Range;

use super::super::sets::ShingleSets;
use super::super::threads::cut;
use super::spread;
use twindex::error::Result;
use twindex_sketch::nearness::{could_resemble, least_intersection, least_part};

/// The frequency class of each element, from 0 for rare to 3, four classes per byte.
pub(in super::super) struct FrequencyClasses(Vec<u8>);

impl FrequencyClasses {
    /// The table has 2^20 entries of 2 bits, a quarter of a megabyte, and fits in the cache.
    const BITS: u32 = 20;
    /// Number of elements to count: as many as the table has entries.
    const SAMPLE: u64 = 1 << Self::BITS;
    /// The count at which each next class begins.
    const STEPS: [u8; 3] = [4, 16, 64];

    /// Counts the elements of every n-th set.
    pub(in super::super) fn of(sets: &ShingleSets) -> Result<Self> {
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
        let class = |count: &u8| Self::STEPS.iter().filter(|&step| count >= step).count() as u8;
        let four = |counts: &[u8; 4]| (0..4).map(|at| class(&counts[at]) << (2 * at)).sum();
        Ok(Self(counts.as_chunks().0.iter().map(four).collect()))
    }

    #[inline(always)]
    pub(in super::super) fn of_element(&self, element: u64) -> u8 {
        let at = spread(element, Self::BITS);
        self.0[at >> 2] >> (2 * (at & 3)) & 3
    }
}

/// The sets, and the order of their elements.
#[derive(Clone, Copy)]
pub(super) struct Ordered<'a> {
    pub(super) sets: &'a ShingleSets,
    pub(super) classes: &'a FrequencyClasses,
    pub(super) threshold: f64,
}

/// Working memory of [`Ordered::head`]. Aligned so that threads share no cache line.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct HeadScratch {
    read: Vec<u64>,
    head: Vec<u64>,
}

impl Ordered<'_> {
    /// Returns the prefix of a set: the elements to look up, and the number of them to index.
    pub(super) fn head<'r>(&self, set: u32, head_scratch: &'r mut HeadScratch) -> Result<(&'r [u64], usize)> {
        let HeadScratch { read, head } = head_scratch;
        read.clear();
        let elements = self.sets.set(set, read)?;
        let size = elements.len();
        let wanted = size + 1 - least_part(size, self.threshold);
        let indexed = indexed_part(size, self.threshold);
        if head.len() < wanted {
            head.resize(wanted, 0);
        }
        let mut found = 0;
        for class in 0..4 {
            for &element in elements {
                if found == wanted {
                    break;
                }
                // Writes every element, and overwrites elements of other classes: this is cheaper than a mispredicted
                // branch.
                head[found] = element;
                found += usize::from(self.classes.of_element(element) == class);
            }
        }
        Ok((&head[..found], indexed))
    }

    /// Returns the maximum length of the [head](Self::head) of a set.
    pub(super) fn head_most(&self, set: u32) -> usize {
        let size = self.sets.size(set) as usize;
        size + 1 - least_part(size, self.threshold)
    }

    pub(super) fn could_resemble(&self, small: u64, large: u64) -> bool {
        could_resemble(small, large, self.threshold)
    }

    /// Splits a list of sets into pieces for threads.
    pub(super) fn pieces(&self, list: &[u32], start: usize) -> impl Iterator<Item = Range<usize>> {
        cut(start..list.len(), (PIECE_SETS, PIECE_ELEMENTS), |at| self.sets.size(list[at]))
    }
}

/// Maximum number of elements, and of sets, that a thread processes at once, so that pieces are short and need little
/// memory.
const PIECE_ELEMENTS: u64 = 1 << 17;
const PIECE_SETS: usize = 1 << 8;

/// Returns the number of a set's first elements to index, so that sets of at least its `size` find it.
fn indexed_part(size: usize, threshold: f64) -> usize {
    (size + 1).saturating_sub(least_intersection(2 * size, threshold))
}
