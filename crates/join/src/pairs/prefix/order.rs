//! Defines the global order of elements, and computes the prefix of each set in this order.

use std::ops::Range;

use super::spread::spread;
use crate::sets::shingle_sets::ShingleSets;
use twindex::error::Result;
use twindex::sys::threads::cut;
use twindex_sketch::nearness::{could_resemble, least_intersection, least_part};

/// The frequency class of each element, from 0 (rare) to 3, with four classes in a byte.
pub(crate) struct FrequencyClasses(Vec<u8>);

impl FrequencyClasses {
    /// The table has 2^20 entries of 2 bits: 256 KiB, which fit in the cache.
    const BITS: u32 = 20;
    /// Number of elements to sample: as many as the table has entries.
    const SAMPLE: u64 = 1 << Self::BITS;
    /// The minimum counts of the classes 1, 2 and 3.
    const STEPS: [u8; 3] = [4, 16, 64];

    /// Determines the classes from the elements of every n-th set. Counts about [`Self::SAMPLE`] elements.
    pub(crate) fn of(sets: &ShingleSets) -> Result<Self> {
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
    pub(crate) fn of_element(&self, element: u64) -> u8 {
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

/// Working memory of [`Ordered::head`], aligned so that no two threads write to the same cache line.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct HeadScratch {
    read: Vec<u64>,
    head: Vec<u64>,
}

impl Ordered<'_> {
    /// Returns the prefix of a set, all of whose elements are looked up, and the number of its first elements that are
    /// indexed.
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
                // Has no branch, which would often be mispredicted: writes each element, and advances the count only if
                // the element is in the class.
                head[found] = element;
                found += usize::from(self.classes.of_element(element) == class);
            }
        }
        Ok((&head[..found], indexed))
    }

    /// Returns the maximum length of the prefix that [`head`](Self::head) returns for a set.
    pub(super) fn head_most(&self, set: u32) -> usize {
        let size = self.sets.size(set) as usize;
        size + 1 - least_part(size, self.threshold)
    }

    pub(super) fn could_resemble(&self, small: u64, large: u64) -> bool {
        could_resemble(small, large, self.threshold)
    }

    /// Splits the sets of `list` from `start` on into pieces, each processed by one thread.
    pub(super) fn pieces(&self, list: &[u32], start: usize) -> impl Iterator<Item = Range<usize>> {
        cut(start..list.len(), (PIECE_SETS, PIECE_ELEMENTS), |at| self.sets.size(list[at]))
    }
}

/// Maximum number of elements in all sets of a piece, and of sets in a piece. Small pieces take little time and memory.
const PIECE_ELEMENTS: u64 = 1 << 17;
const PIECE_SETS: usize = 1 << 8;

/// Returns how many of its first elements a set must index, so that the lookup of any resembling set of the same or a
/// larger size finds it.
fn indexed_part(size: usize, threshold: f64) -> usize {
    (size + 1).saturating_sub(least_intersection(2 * size, threshold))
}
