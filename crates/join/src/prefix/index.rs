//! Which sets of a block have an element among those by which they are to be found.

use zerocopy::{Immutable, IntoBytes};

use super::super::threads::on_threads;
use super::{AHEAD, part_of, spread};
use twindex::error::Result;
use twindex_kernel::prefetch;

/// An element of a set that others may have, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) element: u64,
    /// Elements of the set after this one.
    pub(super) behind: u32,
    /// Capped elements of the set before this one, which are not looked up.
    pub(super) crowded: u32,
}

/// Elements of sets that follow one another, each set's in their order.
#[derive(Default)]
pub(super) struct Heads {
    pub(super) met: Vec<Met>,
    pub(super) ends: Vec<Ends>,
}

/// Of the elements of a set: where those end by which it is to be found, and where all of them do.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) indexed: usize,
    pub(super) all: usize,
}

impl Heads {
    /// The elements of each set, and how many of them it is to be found by.
    pub(super) fn sets(&self) -> impl Iterator<Item = (&[Met], usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|ends| ends.all));
        starts.zip(&self.ends).map(|(start, ends)| (&self.met[start..ends.all], ends.indexed - start))
    }
}

/// A set that has an element.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Posting {
    /// Place of the set in the block.
    pub(super) place: u32,
    /// Elements of the set after this one.
    pub(super) behind: u32,
}

/// A place for an element, and where its postings end; they begin where those of the place before end.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Slot {
    /// Bits of the element that its place in the table does not tell. Elements that agree in these too, of one place,
    /// would be taken for one: sets then seem to share more than they do, which rules out less.
    tag: u32,
    end: u32,
}

/// The elements of a block, and the sets that have them.
pub(super) struct Index {
    /// By the first bits of an element's place.
    parts: Vec<Part>,
    part_bits: u32,
}

/// A hash table, in which those that fall together follow one another; a quarter of it at least is empty.
struct Part {
    /// After an empty one, before which all begin.
    slots: Vec<Slot>,
    bits: u32,
    /// Of each element, by place in the block.
    postings: Vec<Posting>,
}

impl Index {
    /// Of the sets of a block, on as many threads as may be.
    pub(super) fn of(block: &[Heads], threads: usize) -> Result<Self> {
        let part_bits = threads.max(1).next_power_of_two().ilog2();
        let parts: Vec<usize> = (0..1 << part_bits).collect();
        let mut states = vec![(); threads.max(1)];
        let parts = on_threads(&mut states, &parts, |(), &part| Ok(Part::of(block, part, part_bits)))?;
        Ok(Self { parts, part_bits })
    }

    #[inline(always)]
    fn part(&self, element: u64) -> &Part {
        &self.parts[part_of(element, self.part_bits)]
    }

    /// Asks for what the search for an element will look at first.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, element: u64) {
        let part = self.part(element);
        prefetch(part.slots.as_bytes(), place(element, part.bits, self.part_bits) * size_of::<Slot>());
    }

    /// Asks for its postings, where they most likely are.
    #[inline(always)]
    pub(super) fn prefetch_postings(&self, element: u64) {
        let part = self.part(element);
        let start = part.slots[place(element, part.bits, self.part_bits)].end;
        prefetch(part.postings.as_bytes(), start as usize * size_of::<Posting>());
    }

    /// The sets that have an element, by their places.
    #[inline(always)]
    pub(super) fn postings(&self, element: u64) -> &[Posting] {
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

impl Part {
    fn of(block: &[Heads], part: usize, part_bits: u32) -> Self {
        // First how many sets each element has, and which number it gets.
        let mut numbers = Numbers::new();
        let mut of_postings = Vec::new();
        let mut mine = Mine { part, part_bits, postings: Vec::new() };
        for heads in block {
            let mine = mine.of(heads, 0);
            for (at, &(element, _)) in mine.iter().enumerate() {
                if let Some(&(later, _)) = mine.get(at + AHEAD) {
                    numbers.prefetch(later, part_bits);
                }
                of_postings.push(numbers.of(element, part_bits));
            }
        }
        let Numbers { slots, bits, mut counts, .. } = numbers;
        // In the order of the slots, each begins where the one before ends.
        let mut end = 0;
        let mut ends = Vec::with_capacity(slots.len() + 1);
        ends.push(Slot::default());
        for slot in &slots {
            // None for an empty one.
            if let Some(count) = counts.get_mut(slot.number as usize) {
                end += std::mem::replace(count, end);
            }
            ends.push(Slot { tag: slot.tag, end });
        }
        drop(slots);
        let mut postings = vec![Posting::default(); of_postings.len()];
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

/// Where the search for an element begins, in a table of 2^`bits` places for those of a part.
#[inline(always)]
fn place(element: u64, bits: u32, part_bits: u32) -> usize {
    spread(element, bits + part_bits) & ((1 << bits) - 1)
}

/// The elements of a part by which sets are to be found, of a few sets at a time.
struct Mine {
    part: usize,
    part_bits: u32,
    postings: Vec<(u64, Posting)>,
}

impl Mine {
    /// Of these sets; the first is at `place`.
    fn of(&mut self, heads: &Heads, mut place: u32) -> &[(u64, Posting)] {
        self.postings.resize(heads.met.len(), (0, Posting::default()));
        let mut count = 0;
        for (met, indexed) in heads.sets() {
            for met in &met[..indexed] {
                // Written, and kept if it is of the part.
                self.postings[count] = (met.element, Posting { place, behind: met.behind });
                count += usize::from(part_of(met.element, self.part_bits) == self.part);
            }
            place += 1;
        }
        &self.postings[..count]
    }
}

/// Elements, numbered as they come, and how often each came.
struct Numbers {
    /// A hash table that grows with them.
    slots: Vec<Numbered>,
    bits: u32,
    elements: Vec<u64>,
    counts: Vec<u32>,
}

/// A place for an element.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Numbered {
    tag: u32,
    number: u32,
}

impl Numbered {
    const EMPTY: Self = Self { tag: 0, number: u32::MAX };
}

impl Numbers {
    fn new() -> Self {
        let bits = 12;
        Self { slots: vec![Numbered::EMPTY; 1 << bits], bits, elements: Vec::new(), counts: Vec::new() }
    }

    fn prefetch(&self, element: u64, part_bits: u32) {
        let at = place(element, self.bits, part_bits);
        prefetch(self.slots.as_bytes(), at * size_of::<Numbered>());
    }

    /// The number of an element, which is counted.
    #[inline(always)]
    fn of(&mut self, element: u64, part_bits: u32) -> u32 {
        let tag = tag(element);
        let mut at = place(element, self.bits, part_bits);
        loop {
            let slot = self.slots[at];
            if slot.number == Numbered::EMPTY.number {
                break;
            }
            if slot.tag == tag {
                self.counts[slot.number as usize] += 1;
                return slot.number;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        let number = self.counts.len() as u32;
        self.slots[at] = Numbered { tag, number };
        self.counts.push(1);
        self.elements.push(element);
        if 4 * self.counts.len() > 3 * self.slots.len() {
            self.grow(part_bits);
        }
        number
    }

    /// Twice as many places.
    #[cold]
    fn grow(&mut self, part_bits: u32) {
        self.bits += 1;
        self.slots.clear();
        self.slots.resize(1 << self.bits, Numbered::EMPTY);
        for (number, &element) in (0..).zip(&self.elements) {
            let mut at = place(element, self.bits, part_bits);
            while self.slots[at].number != Numbered::EMPTY.number {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = Numbered { tag: tag(element), number };
        }
    }
}
