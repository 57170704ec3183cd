//! Computes lower bounds of the difference between two sets from sketches with a few bits per element.
//!
//! An *odd sketch* (Mitzenmacher, Pagh and Pham, *Efficient estimation for high similarities using odd sketches*, WWW
//! 2014) is a bit array to which the elements of a set are hashed. A bit is 1 if an odd number of elements hash to it.
//! A common element of two sets flips the same bit in both sketches. So the number of bits in which the sketches differ
//! is at most the size of the symmetric difference of the sets. Here, sketches are not used for estimates: they only
//! rule out pairs whose difference is certainly too large (the bitmap filter of Sandes, Teodoro and Melo, *Bitmap
//! filter: speeding up exact set similarity joins with bitwise operations*, Information Systems 88, 2020).

use std::ops::Range;

use crate::sets::delta::SetDelta;
use twindex::error::Result;
use twindex::sys::{Column, MemoryBudget};
use twindex_kernel::vectorized;

/// Number of bytes that sketches may always use, regardless of the memory budget, so that results do not depend on the
/// budget.
pub(crate) const BYTES: usize = 32 << 20;

/// The odd sketches of sets, numbered in the order in which they were added. They fit in a memory limit unless each has
/// been reduced to one word.
#[derive(Debug)]
pub(crate) struct OddSketches {
    words: Column<u64>,
    /// The start of each sketch in `words`.
    starts: Column<u64>,
    /// Maximum total number of words. It is exceeded only by one-word sketches of more sets.
    max: usize,
    /// Number of times that all sketches were halved.
    halved: u32,
}

/// Number of halvings after which each sketch is one word.
const ALL: u32 = u32::BITS;

/// Maximum number of elements of a set whose sketch has two to four bits per element. Larger sets have one to two bits per
/// element, because their sketches deviate less from the expected difference.
const SMALL: usize = 1024;

/// Replaces the contents of `words` with the sketch of `set`.
pub(crate) fn make_sketch(set: &[u64], words: &mut Vec<u64>) {
    words.clear();
    words.resize(words_for(set.len()), 0);
    for &element in set {
        toggle(words, element);
    }
}

/// Returns the number of words of a set's sketch before halving. Larger sets never have shorter sketches.
pub(crate) fn words_for(size: usize) -> usize {
    let bits = if size <= SMALL { 2 * size } else { size };
    bits.div_ceil(u64::BITS as usize).next_power_of_two()
}

impl OddSketches {
    /// Creates an empty collection for at most `memory` bytes, but at least for 32 MiB or 8 bytes per set. Sketches are
    /// in memory if `budget` allows it, otherwise in scratch files.
    pub(crate) fn new(memory: usize, budget: &MemoryBudget) -> Self {
        Self::within(memory.max(BYTES), budget)
    }

    /// Like [`new`](Self::new), without the minimum of 32 MiB.
    pub(crate) fn within(memory: usize, budget: &MemoryBudget) -> Self {
        let max = memory / size_of::<u64>();
        Self { words: Column::new(budget), starts: Column::new(budget), max, halved: 0 }
    }

    /// Adds a sketch that [`make_sketch`] computed for a set of `size` elements.
    pub(crate) fn push_made(&mut self, words: &[u64], size: usize) -> Result<()> {
        let start = self.begin(size)?;
        let own = &mut self.words[start..];
        for some in words.chunks(own.len()) {
            own.iter_mut().zip(some).for_each(|(own, word)| *own ^= word);
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.starts)
    }

    /// Like [`least_difference`](Self::least_difference), for a set with the sketch `sketch` and a stored set.
    pub(crate) fn least_difference_from(&self, sketch: &[u64], number: u32) -> u64 {
        let other = self.of(number);
        let (short, long) = if sketch.len() < other.len() { (sketch, other) } else { (other, sketch) };
        vectorized(
            #[inline(always)]
            || differing(short, long),
        )
    }

    /// Returns the number of words of a set's sketch after the halvings so far.
    fn words_for(&self, size: usize) -> usize {
        (words_for(size) >> self.halved).max(1)
    }

    /// Adds the sketch of a set of fewer than 2^32 elements.
    pub(crate) fn push(&mut self, set: &[u64]) -> Result<()> {
        let start = self.begin(set.len())?;
        let words = &mut self.words[start..];
        for &element in set {
            toggle(words, element);
        }
        Ok(())
    }

    /// Adds an empty sketch for a set of `size` elements, and returns its start. Halves all sketches if the limit is
    /// exceeded.
    fn begin(&mut self, size: usize) -> Result<usize> {
        while self.words.len() + self.words_for(size) > self.max && self.halved < ALL {
            self.halve();
        }
        let start = self.words.len();
        self.starts.push(start as u64)?;
        self.words.resize(start + self.words_for(size), 0)?;
        Ok(start)
    }

    /// Adds the sketch of a set of `size` elements, which is delta-encoded against the set `reference`. `elements` are
    /// the elements of `reference`.
    pub(crate) fn push_delta(
        &mut self,
        (reference, elements): (u32, &[u64]),
        delta: SetDelta<'_>,
        size: usize,
    ) -> Result<()> {
        let start = self.begin(size)?;
        let of_leader = self.range(reference);
        if of_leader.len() == self.words.len() - start {
            self.words.copy_within(of_leader, start);
            let words = &mut self.words[start..];
            delta.for_each_lacking(elements, |element| toggle(words, element));
            for &element in delta.new {
                toggle(words, element);
            }
        } else {
            let words = &mut self.words[start..];
            delta.for_each(elements, |element| toggle(words, element));
        }
        Ok(())
    }

    /// Halves each sketch by combining its two halves with XOR. The result is the sketch with half as many bits.
    fn halve(&mut self) {
        let mut end = 0;
        let all = self.words.len() as u64;
        let (words, starts) = (&mut self.words[..], &mut self.starts[..]);
        for number in 0..starts.len() {
            let from = starts[number] as usize..starts.get(number + 1).copied().unwrap_or(all) as usize;
            starts[number] = end as u64;
            let left = from.len().div_ceil(2);
            for word in 0..left {
                let folded = if from.len() > 1 { words[from.start + left + word] } else { 0 };
                words[end + word] = words[from.start + word] ^ folded;
            }
            end += left;
        }
        self.words.truncate(end);
        self.halved += 1;
    }

    fn range(&self, number: u32) -> Range<usize> {
        let (number, starts) = (number as usize, &self.starts[..]);
        starts[number] as usize..starts.get(number + 1).map_or(self.words.len(), |&start| start as usize)
    }

    pub(crate) fn of(&self, number: u32) -> &[u64] {
        &self.words[self.range(number)]
    }

    /// Returns a lower bound of the number of elements that are in exactly one of two sets.
    pub(crate) fn least_difference(&self, a: u32, b: u32) -> u64 {
        let (a, b) = (self.of(a), self.of(b));
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        vectorized(|| differing(short, long))
    }
}

/// Flips the bit to which an element hashes: adds a missing element, or removes an existing one.
#[inline(always)]
fn toggle(words: &mut [u64], element: u64) {
    // The low bits of the element select the word. The elements of a set ascend, so if high bits selected the word,
    // consecutive writes would go to the same word and wait for each other.
    let place = (element >> 6) as usize & (words.len() - 1);
    words[place] ^= 1 << (element & 63);
}

/// Returns the number of bits in which two sketches differ. The longer sketch is folded to the length of the shorter one.
#[inline(always)]
fn differing(short: &[u64], long: &[u64]) -> u64 {
    if short.len() == long.len() {
        return short.iter().zip(long).map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
    }
    let folded = |place: usize| long[place..].iter().step_by(short.len()).fold(0, |all, word| all ^ word);
    (0..).zip(short).map(|(place, word)| u64::from((word ^ folded(place)).count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    /// Returns sets of many sizes. Each is derived from the previous set if possible, with few or many changes.
    fn some_sets() -> Vec<BTreeSet<u64>> {
        let mut random = SplitMix(9);
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for size in [0, 1, 2, 63, 64, 65, 128, 129, 700, 1000, 5000] {
            for changes in [0, 1, size / 20, size / 4] {
                let mut set: BTreeSet<u64> = sets.last().into_iter().flatten().copied().take(size).collect();
                for _ in 0..changes.min(set.len()) {
                    set.pop_first();
                }
                set.extend(std::iter::repeat_with(|| random.next()).take(size - set.len()));
                sets.push(set);
            }
        }
        sets
    }

    fn sketches_of(sets: &[BTreeSet<u64>], memory: usize) -> OddSketches {
        let mut sketches = OddSketches::within(memory, &MemoryBudget::unlimited());
        for set in sets {
            sketches.push(&set.iter().copied().collect::<Vec<_>>()).unwrap();
        }
        sketches
    }

    #[test]
    fn odd_sketch_distance_is_a_tight_lower_bound_of_the_difference() {
        let sets = some_sets();
        for memory in [usize::MAX, 4096, 1000, 0] {
            let sketches = sketches_of(&sets, memory);
            // On average, `d` differences in `m` bits flip `m / 2 * (1 - exp(-2 d / m))` bits: 0.885 `d` if `d` is an
            // eighth of `m`.
            let (mut seen, mut close) = (0, 0);
            for (a, of_a) in (0..).zip(&sets) {
                for (b, of_b) in (0..).zip(&sets) {
                    let different = of_a.symmetric_difference(of_b).count() as u64;
                    let min = sketches.least_difference(a, b);
                    assert!(
                        min <= different && (different - min).is_multiple_of(2),
                        "{a} {b}: {min} {different}"
                    );
                    let places = 64 * sketches.of(a).len().min(sketches.of(b).len()) as u64;
                    if different > 0 && 8 * different < places {
                        seen += min;
                        close += different;
                    }
                }
            }
            assert!(close > 100 && 20 * seen >= 17 * close, "{memory}: {seen} of {close}");
        }
    }

    #[test]
    fn odd_sketches_fit_in_memory_or_take_one_word_each() {
        let sets = some_sets();
        let all = sketches_of(&sets, usize::MAX).words.len();
        assert!(all > 600, "{all}");
        for memory in [8 * all, 8 * all - 1, 4096, 1000, 8 * sets.len(), 8, 0] {
            let sketches = sketches_of(&sets, memory);
            let taken = sketches.words.len();
            assert!(taken <= (memory / 8).max(sets.len()), "{taken} words in {memory} bytes");
            assert_eq!(taken == all, memory == 8 * all);
        }
    }
}
