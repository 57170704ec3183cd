//! Represents a set by its differences from a reference set.

use twindex_sketch::intersection_from;

/// A delta-encoded set: one bit per element of its reference, and new elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetDelta<'a> {
    /// One bit for each element of the reference, in ascending order of elements: whether the set has the element.
    pub(crate) bits: &'a [u64],
    /// Elements that the reference does not have, ascending.
    pub(crate) new: &'a [u64],
}

impl<'a> SetDelta<'a> {
    /// Splits the words of a delta-encoded set whose reference has `elements` elements.
    pub(crate) fn of(elements: usize, words: &'a [u64]) -> Self {
        let bits = elements.div_ceil(u64::BITS as usize);
        let (bits, new) = words.split_at(bits.min(words.len()));
        Self { bits, new }
    }

    /// Returns whether this delta is valid for a reference of `elements` elements: the number of bits fits, padding
    /// bits are zero, and new elements ascend.
    pub(crate) fn fit(self, elements: usize) -> bool {
        let word = u64::BITS as usize;
        let padding =
            self.bits.last().map_or(0, |last| last.unbounded_shr(((elements - 1) % word + 1) as u32));
        self.bits.len() == elements.div_ceil(word) && padding == 0 && self.new.is_sorted()
    }
}

impl SetDelta<'_> {
    /// Passes the elements of the set to `each`, ascending.
    pub(crate) fn for_each(self, reference: &[u64], mut each: impl FnMut(u64)) {
        let mut new = self.new.iter().copied().peekable();
        for (elements, &bits) in reference.chunks(u64::BITS as usize).zip(self.bits) {
            let mut bits = bits;
            while bits != 0 {
                let element = elements[bits.trailing_zeros() as usize];
                bits &= bits - 1;
                while let Some(new) = new.next_if(|&new| new < element) {
                    each(new);
                }
                each(element);
            }
        }
        new.for_each(each);
    }

    /// Passes the elements of the reference that are not in the set to `each`, ascending.
    pub(crate) fn for_each_lacking(self, reference: &[u64], mut each: impl FnMut(u64)) {
        for (elements, &bits) in reference.chunks(u64::BITS as usize).zip(self.bits) {
            let mut lacking = !bits & (u64::MAX >> (u64::BITS as usize - elements.len()));
            while lacking != 0 {
                each(elements[lacking.trailing_zeros() as usize]);
                lacking &= lacking - 1;
            }
        }
    }

    /// Returns the size of the intersection of two sets with the same reference, or `None` if it is below `min`.
    pub(crate) fn shared(self, other: Self, min: usize) -> Option<usize> {
        let bits = twindex_kernel::vectorized(
            #[inline(always)]
            || self.bits.iter().zip(other.bits).map(|(a, b)| (a & b).count_ones() as usize).sum::<usize>(),
        );
        let least_new = min.saturating_sub(bits);
        if least_new > self.new.len().min(other.new.len()) {
            return None;
        }
        Some(bits + intersection_from(self.new, other.new, least_new)?)
    }
}

/// Returns the number of one bits in `words`.
pub(crate) fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}
