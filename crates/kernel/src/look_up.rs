//! Looks up many hashes in a sorted set.

use std::hint::select_unpredictable;

use super::Simd;

/// Number of elements of the set that are compared with a hash at once.
pub(super) const WINDOW: usize = 8;

/// A sorted set of hashes, with a directory that maps each hash prefix to the position of its first hash.
#[derive(Clone, Copy, Debug)]
pub struct SortedSet<'a> {
    elements: &'a [u64],
    directory: &'a [u16],
    bits: u32,
}

impl<'a> SortedSet<'a> {
    /// Creates a set of `elements`, which must be ascending. `directory[i]` must be the number of elements whose first
    /// `bits` bits are less than i; the last entry, at index 2^`bits`, is the number of all elements. Returns `None` if
    /// there are fewer than 8 elements or if the directory does not have 2^`bits` + 1 entries. Other wrong values give
    /// wrong results but are memory-safe.
    #[must_use]
    pub fn new(elements: &'a [u64], directory: &'a [u16], bits: u32) -> Option<Self> {
        let fits = (1..u64::BITS).contains(&bits)
            && elements.len() >= WINDOW
            && directory.len() as u64 == (1_u64.checked_shl(bits)?).checked_add(1)?;
        fits.then_some(Self { elements, directory, bits })
    }
}

/// Sets `marks[i]` to 1 if element i occurs in `hashes`. Writes the hashes that are not in the set to the front of
/// `new`, in order, and returns their number. `marks` has one extra entry at its end, whose value is undefined.
///
/// No branch depends on whether a hash is found, because the processor could not predict it.
///
/// # Panics
/// Panics unless `marks` has one entry more than the set has elements and `new` is at least as long as `hashes`.
#[inline(always)]
pub fn look_up<S: Simd>(
    simd: S,
    set: SortedSet<'_>,
    hashes: &[u64],
    marks: &mut [u8],
    new: &mut [u64],
) -> usize {
    let SortedSet { elements, directory, bits } = set;
    let (none, last, shift) = (elements.len(), elements.len() - WINDOW, u64::BITS - bits);
    assert!(marks.len() == none + 1 && new.len() >= hashes.len(), "space for the hashes that are found");
    let mut count = 0;
    for &hash in hashes {
        let bucket = (hash >> shift) as usize;
        #[allow(unsafe_code, reason = "checks of bounds took a third of the time")]
        // SAFETY: `SortedSet::new` checked that `bits` is 1 to 63, so `bucket` is below 2^bits, and that the directory has
        // 2^bits + 1 entries. The fields of the set are private and never change.
        let (start, end) =
            unsafe { (*directory.get_unchecked(bucket), *directory.get_unchecked(bucket + 1)) };
        let mut from = usize::from(start).min(last);
        #[allow(unsafe_code, reason = "as above")]
        // SAFETY: `from` is at most `last`, the number of elements minus `WINDOW`, which is not negative because
        // `SortedSet::new` checked the number of elements. So at least `WINDOW` elements start at `from`. An array of
        // elements has the alignment of an element.
        let window = unsafe { &*elements.as_ptr().add(from).cast::<[u64; WINDOW]>() };
        let mut mask = simd.equal8(window, hash);
        // This branch is predictable, because buckets of more than `WINDOW` elements are rare.
        if usize::from(start) + WINDOW < usize::from(end) {
            (from, mask) = in_large_bucket(simd, elements, usize::from(start)..usize::from(end), hash);
        }
        let place = select_unpredictable(mask == 0, none, from + mask.trailing_zeros() as usize);
        #[allow(unsafe_code, reason = "as above")]
        // SAFETY: `marks` has `none + 1` entries, and `place` is at most `none`: it is either `none`, or `from`, which is at
        // most `none - WINDOW`, plus the index of a bit in a mask of `WINDOW` bits. `count` grows by at most one for each
        // hash, so it is below the number of hashes, and `new` is at least as long as `hashes`.
        unsafe {
            *marks.get_unchecked_mut(place) = 1;
            *new.get_unchecked_mut(count) = hash;
        }
        count += usize::from(mask == 0);
    }
    count
}

/// Searches for a hash in a bucket of more than `WINDOW` elements. Returns the start of the window that contains the
/// hash, and the mask of its elements that equal the hash; the mask is 0 if the hash is not found.
#[cold]
#[inline(never)]
fn in_large_bucket<S: Simd>(
    simd: S,
    elements: &[u64],
    bucket: std::ops::Range<usize>,
    hash: u64,
) -> (usize, u32) {
    let last = elements.len() - WINDOW;
    for start in bucket.step_by(WINDOW) {
        let from = start.min(last);
        let mask = elements[from..].first_chunk().map_or(0, |window| simd.equal8(window, hash));
        if mask != 0 {
            return (from, mask);
        }
    }
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, Level};
    use super::*;
    use crate::splitmix::SplitMix;

    struct LookUp<'a>(SortedSet<'a>, &'a [u64], &'a mut [u8], &'a mut [u64]);

    impl Kernel for LookUp<'_> {
        type Output = usize;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> usize {
            look_up(simd, self.0, self.1, self.2, self.3)
        }
    }

    fn directory(elements: &[u64], bits: u32) -> Vec<u16> {
        let below = |bucket: u64| elements.partition_point(|element| element >> (64 - bits) < bucket) as u16;
        (0..=1 << bits).map(below).collect()
    }

    #[test]
    fn look_up_marks_known_hashes_and_writes_unknown_ones() {
        let mut random = SplitMix(5);
        for (size, bits, crowded) in
            [(8, 1, 0), (9, 3, 0), (100, 6, 0), (1000, 9, 0), (500, 3, 0), (300, 8, 40)]
        {
            let mut elements: Vec<u64> = (0..size).map(|_| random.next() >> crowded).collect();
            elements.sort_unstable();
            elements.dedup();
            let directory = directory(&elements, bits);
            let set = SortedSet::new(&elements, &directory, bits).unwrap();
            let hashes: Vec<u64> = (0..3 * size)
                .map(|_| match random.next() {
                    number if number.is_multiple_of(2) => elements[(number >> 1) as usize % elements.len()],
                    number if number.is_multiple_of(3) => {
                        elements[(number >> 2) as usize % elements.len()] ^ 1
                    }
                    number => number,
                })
                .chain([0, u64::MAX, elements[0], elements[elements.len() - 1]])
                .collect();
            let is_in = |hash: &u64| elements.binary_search(hash).is_ok();
            let missing: Vec<u64> = hashes.iter().copied().filter(|hash| !is_in(hash)).collect();
            let marked: Vec<u8> = elements.iter().map(|element| hashes.contains(element).into()).collect();
            assert!(missing.len() > 5 && marked.contains(&1) && marked.contains(&0), "a test of something");
            for level in Level::tested() {
                let (mut marks, mut new) = (vec![0; elements.len() + 1], vec![0; hashes.len()]);
                let count = level.dispatch(LookUp(set, &hashes, &mut marks, &mut new));
                assert_eq!(
                    (&new[..count], &marks[..elements.len()]),
                    (&missing[..], &marked[..]),
                    "{level} {size}"
                );
            }
        }
    }

    #[test]
    fn set_with_mismatched_directory_is_refused() {
        let elements: Vec<u64> = (0..8).map(|i| i << 60).collect();
        let right = directory(&elements, 2);
        assert!(SortedSet::new(&elements, &right, 2).is_some());
        assert!(SortedSet::new(&elements[1..], &right, 2).is_none());
        assert!(SortedSet::new(&elements, &right[1..], 2).is_none());
        for bits in [0, 1, 3, 63, 64, 65] {
            assert!(SortedSet::new(&elements, &right, bits).is_none(), "{bits}");
        }
        // Wrong directory entries never cause an access out of bounds.
        let wrong = [u16::MAX; 5];
        let set = SortedSet::new(&elements, &wrong, 2).unwrap();
        for level in Level::tested() {
            let (mut marks, mut new) = ([0; 9], [0; 8]);
            assert!(level.dispatch(LookUp(set, &elements, &mut marks, &mut new)) <= 8);
        }
    }
}
