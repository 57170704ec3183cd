//! Estimates the rarity of elements. Sets are looked up by their rarest elements, so that few candidates are found by
//! chance.
//!
//! Any order of elements is correct if all sets use the same order; the order only determines the speed. Here, elements
//! that occur in no other set come first, then the others by the logarithm of the number of sets that have them. If no
//! other set has any of the elements with which a set is looked up, the set is near no other set, and is skipped.
//!
//! Elements below a limit, the same in all sets, are counted ([`Cells`]): enough for the prefixes of sets. Other
//! elements are sorted after elements of few sets, by their frequency in a sample. Colliding elements appear to be more
//! frequent than they are, which costs time but changes no result.

use super::cells::{AHEAD, CellAdder, Cells};
use crate::pairs::prefix::order::FrequencyClasses;
use crate::sets::shingle_sets::{SetReader, ShingleSets};
use twindex::error::Result;
use twindex::sys::threads::{cut, on_threads};

/// Number of cells per counted element, if the memory suffices.
const CELLS: u64 = 4;
/// Minimum number of cells per counted element. With less memory, fewer elements are counted.
const CELLS_LEAST: u64 = 2;
/// The fraction of elements that is counted, if the memory suffices and sets are not looked up by more elements.
const COUNTED: f64 = 0.5;
/// The fraction of elements that is counted is at least this factor times the fraction with which sets are looked up.
const SPARE: f64 = 1.5;
/// Minimum size of the table of cells in bytes.
const LEAST: usize = 1 << 12;
/// Approximate number of elements of the consecutive sets that a thread counts at a time.
const PIECE: u64 = 1 << 17;
/// Number of counted elements per counter of further sets, if the memory suffices.
const ELEMENTS_PER_COUNTER: u64 = 4;
/// Number of classes of elements, by the number of sets after the first two: class 0 for none, class n for fewer than 2^n.
const CLASSES: usize = u16::BITS as usize + 1;
/// The classes of elements that are not counted, by their class in the sample.
const CLASSES_OF_SAMPLED: [u8; 4] = [4, 12, 14, 16];

/// Records which elements occur in several sets, and how frequent these are.
pub(super) struct Rarity {
    cells: Cells,
    /// The largest element that was counted.
    last: u64,
    sampled: FrequencyClasses,
}

/// Buffers for the rarest elements of a set. `shared` holds the selected elements that other sets may have, too.
#[derive(Default)]
pub(super) struct RareElements {
    pub(super) shared: Vec<u64>,
    others: Vec<u64>,
    classes: Vec<u8>,
}

impl Rarity {
    /// Counts the elements of all sets in tables of at most 3/4 of `memory` bytes, on `threads` threads. `part` is the
    /// approximate fraction of elements with which sets are looked up.
    pub(super) fn of(sets: &ShingleSets, part: f64, memory: usize, threads: usize) -> Result<Self> {
        let elements = sets.elements();
        let wanted = COUNTED.max(SPARE * part).min(1.0);
        #[allow(clippy::cast_sign_loss, reason = "a share")]
        let part_of = |share: f64, whole: u64| (share * whole as f64) as u64;
        let (counted, memory) = (part_of(wanted, elements), memory / 2);
        let counters = ((counted / ELEMENTS_PER_COUNTER) as usize).clamp(1, (memory / 8).max(1));
        let cells = Cells::new(counted, CELLS, memory.max(LEAST), counters, 0);
        // Counts as many elements as the table has cells for, but at least enough to recognize sets that share no element.
        let fitting = cells.count() as f64 / (CELLS_LEAST * elements.max(1)) as f64;
        let share = fitting.clamp((SPARE * part).min(wanted), wanted);
        let last = if share < 1.0 { part_of(share, u64::MAX) } else { u64::MAX };
        let rarity = Self { cells, last, sampled: FrequencyClasses::of(sets)? };
        let pieces: Vec<_> = cut(0..sets.len(), (usize::MAX, PIECE), |set| sets.size(set as u32)).collect();
        let mut counters: Vec<_> =
            (0..threads.max(1)).map(|_| (SetReader::new(sets), CellAdder::new(&rarity.cells))).collect();
        on_threads(&mut counters, &pieces, |(reader, adder), piece| {
            reader.ahead(piece.start as u32..piece.end as u32)?;
            for set in piece.clone() {
                reader.prefetch(set as u32 + 1);
                let set = reader.set(set as u32)?;
                rarity.counted(set).iter().for_each(|&element| adder.add(element));
            }
            Ok(())
        })?;
        for (_, adder) in counters {
            adder.finish();
        }
        Ok(rarity)
    }

    pub(super) fn bytes(&self) -> usize {
        self.cells.bytes()
    }

    fn counted<'s>(&self, set: &'s [u64]) -> &'s [u64] {
        &set[..set.partition_point(|&element| element <= self.last)]
    }

    /// Returns the frequency class of an element of several sets.
    #[inline(always)]
    fn class(&self, element: u64) -> u8 {
        if element > self.last {
            return CLASSES_OF_SAMPLED[usize::from(self.sampled.of_element(element))];
        }
        (u16::BITS - self.cells.further(element).leading_zeros()) as u8
    }

    /// Selects the `wanted` rarest elements of a set, and stores in `head` the selected elements that other sets may have.
    /// Returns false if there are no such elements.
    pub(super) fn head(&self, set: &[u64], wanted: usize, head: &mut RareElements) -> bool {
        let RareElements { shared, others, classes } = head;
        shared.clear();
        let (counted, rest) = set.split_at(self.counted(set).len());
        // Branch-free: each element is written, and the count advances only if several sets have the element.
        others.resize(set.len(), 0);
        let (mut alone, mut left) = (0, 0);
        for (at, &element) in counted.iter().enumerate() {
            if let Some(&later) = counted.get(at + AHEAD) {
                self.cells.fetch(later);
            }
            let is_alone = self.cells.is_alone(element);
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
        if wanted >= others.len() {
            shared.append(others);
            return !shared.is_empty();
        }
        classes.clear();
        classes.extend(others.iter().enumerate().map(|(at, &element)| {
            if let Some(&later) = others.get(at + AHEAD) {
                self.cells.fetch_further(later);
            }
            self.class(element)
        }));
        rarest(others, classes, wanted, shared);
        true
    }

    /// Replaces the contents of `shared` by the elements of a set that other sets may have.
    pub(super) fn shared(&self, set: &[u64], shared: &mut Vec<u64>) {
        shared.clear();
        shared.extend(set.iter().copied().filter(|&element| self.may_be_shared(element)));
    }

    /// Returns whether other sets may have an element of the set.
    pub(super) fn has_shared(&self, set: &[u64]) -> bool {
        set.iter().any(|&element| self.may_be_shared(element))
    }

    fn may_be_shared(&self, element: u64) -> bool {
        element > self.last || !self.cells.is_alone(element)
    }
}

/// Stores the `wanted` rarest of more elements in `head`, given the frequency class of each element.
fn rarest(elements: &[u64], classes: &[u8], wanted: usize, head: &mut Vec<u64>) {
    let mut counts = [0; CLASSES];
    for &class in classes {
        counts[usize::from(class)] += 1;
    }
    let (mut before, mut last) = (0, 0);
    while before + counts[last] < wanted {
        before += counts[last];
        last += 1;
    }
    // Of the last class, the smallest elements are selected. Branch-free: each element is written, and the count advances
    // only if it is selected.
    let mut of_last = wanted - before;
    head.resize(wanted + 1, 0);
    let mut found = 0;
    for (&element, &class) in elements.iter().zip(classes) {
        let is_last = usize::from(class) == last && of_last > 0;
        head[found] = element;
        found += usize::from(usize::from(class) < last || is_last);
        of_last -= usize::from(is_last);
    }
    head.truncate(wanted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn sets_are_looked_up_by_their_rarest_elements() {
        let dir = tempfile::tempdir().unwrap();
        let mut sets = ShingleSets::new(dir.path(), 1 << 24);
        let element = |number: u64| SplitMix(number).next();
        // Element i is in 1000 / (i + 1) of the sets; each set has 50 elements of its own.
        for number in 0..1000_u64 {
            let mut set: Vec<u64> = (0..100).filter(|i| number % (i + 1) == 0).map(element).collect();
            set.extend((0..50).map(|own| element(1000 * (number + 1) + own)));
            set.sort_unstable();
            sets.push(&set).unwrap();
        }
        let rarity = Rarity::of(&sets, 1.0, 1 << 24, 2).unwrap();
        let (mut read, mut head) = (Vec::new(), RareElements::default());
        assert!(!rarity.head(sets.set(7, &mut read).unwrap(), 30, &mut head));
        // Set 0 has all of the 100 elements. Of the 50 elements that only this set has, few collide with others.
        read.clear();
        let set = sets.set(0, &mut read).unwrap();
        let rare: Vec<u64> = (40..100).map(element).chain((1000..1050).map(element)).collect();
        for (wanted, least) in [(70, 20), (140, 90), (200, 100)] {
            assert!(rarity.head(set, wanted, &mut head));
            assert!((least..least + 30).contains(&head.shared.len()), "{}", head.shared.len());
            assert!(wanted > 100 || head.shared.iter().all(|one| rare.contains(one)));
        }
    }
}
