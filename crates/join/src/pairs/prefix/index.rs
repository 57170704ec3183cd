//! Maps the indexed elements of prefixes to the sets of a block.

use zerocopy::{Immutable, IntoBytes};

use super::spread::{part_of, spread};
use twindex::error::Result;
use twindex::sys::threads::on_threads;
use twindex_kernel::prefetch;

/// Postings are prefetched this number of lookups ahead, and slots twice as early.
pub(super) const AHEAD: usize = 8;

/// An element of a set's prefix that other sets may have in their prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedElement {
    pub(super) element: u64,
    /// Number of elements of the set that follow this element in the global order.
    pub(super) elements_after: u32,
    /// Number of capped elements of the set that precede this element. Capped elements are not looked up.
    pub(super) capped_elements: u32,
}

/// The prefix elements of consecutive sets, concatenated.
#[derive(Default)]
pub(super) struct SetPrefixes {
    pub(super) shared_elements: Vec<SharedElement>,
    pub(super) ends: Vec<ElementEnds>,
}

/// The end of a set's indexed elements, and the end of all its prefix elements.
#[derive(Clone, Copy)]
pub(super) struct ElementEnds {
    pub(super) indexed: usize,
    pub(super) all: usize,
}

impl SetPrefixes {
    /// Iterates over the prefix elements of each set, with the number of indexed elements, which come first.
    pub(super) fn sets(&self) -> impl Iterator<Item = (&[SharedElement], usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|ends| ends.all));
        starts
            .zip(&self.ends)
            .map(|(start, ends)| (&self.shared_elements[start..ends.all], ends.indexed - start))
    }
}

/// A posting: a set that has an element in its prefix.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct SetPosting {
    /// The position of the set in the block.
    pub(super) place: u32,
    /// Number of elements of the set that follow this element in the global order.
    pub(super) elements_after: u32,
}

/// A slot for an element, and the end of its postings, which begin at the end of the previous slot's postings.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ElementSlot {
    /// Bits of the element's hash that do not follow from the position of the slot. Two elements with the same slot and
    /// tag are treated as one. Sets then seem to share more elements, so fewer pairs are ruled out.
    tag: u32,
    end: u32,
}

/// Maps the indexed elements of a block to their postings.
pub(super) struct PrefixIndex {
    /// Hash tables, selected by the first bits of an element's hash.
    parts: Vec<PrefixPart>,
    part_bits: u32,
}

/// A hash table with linear probing. At least a quarter of the slots are empty.
struct PrefixPart {
    /// The slots. Before them is an empty slot, whose end is the start of the first postings.
    slots: Vec<ElementSlot>,
    bits: u32,
    /// The postings of all elements; for each element, sorted by position in the block.
    postings: Vec<SetPosting>,
}

impl PrefixIndex {
    /// Indexes the sets of a block, on up to `threads` threads.
    pub(super) fn of(block: &[SetPrefixes], threads: usize) -> Result<Self> {
        let part_bits = threads.max(1).next_power_of_two().ilog2();
        let parts: Vec<usize> = (0..1 << part_bits).collect();
        let mut states = vec![(); threads.max(1)];
        let parts = on_threads(&mut states, &parts, |(), &part| Ok(PrefixPart::of(block, part, part_bits)))?;
        Ok(Self { parts, part_bits })
    }

    #[inline(always)]
    fn part(&self, element: u64) -> &PrefixPart {
        &self.parts[part_of(element, self.part_bits)]
    }

    /// Prefetches the slot at which the search for an element begins.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, element: u64) {
        let part = self.part(element);
        prefetch(part.slots.as_bytes(), place(element, part.bits, self.part_bits) * size_of::<ElementSlot>());
    }

    /// Prefetches the postings of an element, assuming that the search finds the element in its first slot.
    #[inline(always)]
    pub(super) fn prefetch_postings(&self, element: u64) {
        let part = self.part(element);
        let start = part.slots[place(element, part.bits, self.part_bits)].end;
        prefetch(part.postings.as_bytes(), start as usize * size_of::<SetPosting>());
    }

    /// Returns the postings of an element, sorted by position.
    #[inline(always)]
    pub(super) fn postings(&self, element: u64) -> &[SetPosting] {
        let part = self.part(element);
        let tag = tag(element);
        let mut at = place(element, part.bits, self.part_bits);
        loop {
            let (before, slot) = (part.slots[at], part.slots[at + 1]);
            if before.end == slot.end {
                return &[];
            }
            if slot.tag == tag {
                return &part.postings[before.end as usize..slot.end as usize];
            }
            at = (at + 1) & ((1 << part.bits) - 1);
        }
    }
}

#[inline(always)]
fn tag(element: u64) -> u32 {
    element.wrapping_mul(0x9E37_79B9_7F4A_7C15) as u32
}

impl PrefixPart {
    fn of(block: &[SetPrefixes], part: usize, part_bits: u32) -> Self {
        // First pass: assigns numbers to the elements, and counts the sets of each element.
        let mut numbers = ElementNumbers::new();
        let mut of_postings = Vec::new();
        let mut mine = PartPostings { part, part_bits, postings: Vec::new() };
        for heads in block {
            let mine = mine.of(heads, 0);
            for (at, &(element, _)) in mine.iter().enumerate() {
                if let Some(&(later, _)) = mine.get(at + AHEAD) {
                    numbers.prefetch(later, part_bits);
                }
                of_postings.push(numbers.of(element, part_bits));
            }
        }
        let ElementNumbers { slots, bits, mut counts, .. } = numbers;
        // Postings are in the order of slots; the postings of a slot begin where the postings of the previous slot end.
        let mut end = 0;
        let mut ends = Vec::with_capacity(slots.len() + 1);
        ends.push(ElementSlot::default());
        for slot in &slots {
            // The number of an empty slot is out of range, so it has no count.
            if let Some(count) = counts.get_mut(slot.number as usize) {
                end += std::mem::replace(count, end);
            }
            ends.push(ElementSlot { tag: slot.tag, end });
        }
        drop(slots);
        let mut postings = vec![SetPosting::default(); of_postings.len()];
        let mut of_postings = of_postings.iter();
        let mut place = 0;
        for heads in block {
            let mine = mine.of(heads, place);
            for (&number, &(_, posting)) in of_postings.by_ref().take(mine.len()).zip(mine) {
                let start = &mut counts[number as usize];
                postings[*start as usize] = posting;
                *start += 1;
            }
            place += heads.ends.len() as u32;
        }
        Self { slots: ends, bits, postings }
    }
}

/// Returns the slot at which the search for an element begins, in a part's table of 2^`bits` slots.
#[inline(always)]
fn place(element: u64, bits: u32, part_bits: u32) -> usize {
    spread(element, bits + part_bits) & ((1 << bits) - 1)
}

/// Selects the postings of one part, for a few sets at a time.
struct PartPostings {
    part: usize,
    part_bits: u32,
    postings: Vec<(u64, SetPosting)>,
}

impl PartPostings {
    /// Returns the postings of these sets in this part. The first set is at position `place`.
    fn of(&mut self, heads: &SetPrefixes, mut place: u32) -> &[(u64, SetPosting)] {
        self.postings.resize(heads.shared_elements.len(), (0, SetPosting::default()));
        let mut count = 0;
        for (shared_elements, indexed) in heads.sets() {
            for shared_elements in &shared_elements[..indexed] {
                // Has no branch: writes each posting, and advances the count only if the posting is in this part.
                self.postings[count] = (
                    shared_elements.element,
                    SetPosting { place, elements_after: shared_elements.elements_after },
                );
                count += usize::from(part_of(shared_elements.element, self.part_bits) == self.part);
            }
            place += 1;
        }
        &self.postings[..count]
    }
}

/// Assigns numbers to elements, in order of first occurrence, and counts their occurrences.
struct ElementNumbers {
    /// A hash table that grows with the number of elements.
    slots: Vec<NumberSlot>,
    bits: u32,
    elements: Vec<u64>,
    counts: Vec<u32>,
}

/// A slot for the number of an element.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct NumberSlot {
    tag: u32,
    number: u32,
}

impl NumberSlot {
    const EMPTY: Self = Self { tag: 0, number: u32::MAX };
}

impl ElementNumbers {
    fn new() -> Self {
        let bits = 12;
        Self { slots: vec![NumberSlot::EMPTY; 1 << bits], bits, elements: Vec::new(), counts: Vec::new() }
    }

    fn prefetch(&self, element: u64, part_bits: u32) {
        let at = place(element, self.bits, part_bits);
        prefetch(self.slots.as_bytes(), at * size_of::<NumberSlot>());
    }

    /// Adds the element if it is new, increments its count, and returns its number.
    #[inline(always)]
    fn of(&mut self, element: u64, part_bits: u32) -> u32 {
        let tag = tag(element);
        let mut at = place(element, self.bits, part_bits);
        loop {
            let slot = self.slots[at];
            if slot.number == NumberSlot::EMPTY.number {
                break;
            }
            if slot.tag == tag {
                self.counts[slot.number as usize] += 1;
                return slot.number;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        let number = self.counts.len() as u32;
        self.slots[at] = NumberSlot { tag, number };
        self.counts.push(1);
        self.elements.push(element);
        if 4 * self.counts.len() > 3 * self.slots.len() {
            self.grow(part_bits);
        }
        number
    }

    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self, part_bits: u32) {
        self.bits += 1;
        self.slots.clear();
        self.slots.resize(1 << self.bits, NumberSlot::EMPTY);
        for (number, &element) in (0..).zip(&self.elements) {
            let mut at = place(element, self.bits, part_bits);
            while self.slots[at].number != NumberSlot::EMPTY.number {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = NumberSlot { tag: tag(element), number };
        }
    }
}
