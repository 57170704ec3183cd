//! An in-memory index that maps elements to lists of numbers.

use twindex_kernel::prefetch;

/// Maps elements to the numbers that were added for them.
///
/// An element is represented by 32 bits of its hash. If two elements have the same 32 bits, lookups of either return the
/// numbers of both. This costs time, but changes no result if the caller verifies the numbers.
#[derive(Debug)]
pub(crate) struct Slots {
    /// A hash table. A slot holds a tag (32 bits of an element's hash), and either a number or the index of a list in
    /// `chains`; 0 marks a free slot. The first bits of the tag select the slot.
    table: Vec<u64>,
    bits: u32,
    used: usize,
    /// For each tag with several numbers, the list of these numbers, ascending.
    chains: Vec<Vec<u32>>,
    chain_bytes: usize,
}

/// The numbers that were added for an element, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Postings<'i> {
    None,
    One(u32),
    Several(&'i [u32]),
}

impl Postings<'_> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Several(numbers) => numbers.len(),
        }
    }
}

/// This bit of a slot is 1 if the slot holds the index of a list instead of a number.
const CHAIN: u32 = 1 << 31;
/// Numbers must be below this bound.
pub(crate) const NUMBERS: usize = CHAIN as usize - 1;
/// Base-2 logarithm of the initial number of slots.
const BITS: u32 = 10;

/// Returns the tag of an element: the 32 bits of its hash that represent it.
#[inline(always)]
pub(crate) fn tag(element: u64) -> u32 {
    (element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

impl Slots {
    /// Creates an empty index.
    pub(crate) fn new() -> Self {
        Self { table: vec![0; 1 << BITS], bits: BITS, used: 0, chains: Vec::new(), chain_bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.table) + self.chain_bytes
    }

    /// Returns the maximum number of bytes that the index uses while `elements` elements are added. The table may grow.
    pub(crate) fn bytes_with(&self, elements: usize) -> usize {
        let grown = if self.needs_more(elements) { 2 * size_of_val(&*self.table) } else { 0 };
        self.bytes() + grown + 16 * elements
    }

    fn needs_more(&self, elements: usize) -> bool {
        4 * (self.used + elements) > 3 * self.table.len()
    }

    /// Returns the slot of a tag, or the free slot into which to insert it.
    #[inline(always)]
    fn slot(&self, tag: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (tag >> (u32::BITS - self.bits)) as usize;
        while self.table[at] != 0 && (self.table[at] >> 32) as u32 != tag {
            at = (at + 1) & mask;
        }
        at
    }

    /// Prefetches the slot of an element.
    #[inline(always)]
    pub(crate) fn fetch(&self, element: u64) {
        self.fetch_tag(tag(element));
    }

    /// Prefetches the slot of the elements with a tag.
    #[inline(always)]
    pub(crate) fn fetch_tag(&self, tag: u32) {
        prefetch(&self.table, (tag >> (u32::BITS - self.bits)) as usize);
    }

    /// Returns the numbers that were added for an element, ascending.
    #[inline(always)]
    pub(crate) fn postings(&self, element: u64) -> Postings<'_> {
        self.postings_of_tag(tag(element))
    }

    /// Returns the numbers that were added for the elements with a tag, ascending.
    #[inline(always)]
    pub(crate) fn postings_of_tag(&self, tag: u32) -> Postings<'_> {
        let slot = self.table[self.slot(tag)];
        match slot as u32 {
            0 => Postings::None,
            number if number & CHAIN == 0 => Postings::One(number - 1),
            chain => Postings::Several(&self.chains[(chain & !CHAIN) as usize]),
        }
    }

    /// Adds `number` for each of these elements. `number` must be greater than all numbers added before.
    pub(crate) fn add(&mut self, number: u32, elements: &[u64]) {
        self.add_tags(number, elements.iter().map(|&element| tag(element)));
    }

    /// Like [`add`](Self::add), for the tags of elements.
    pub(crate) fn add_tags(&mut self, number: u32, tags: impl ExactSizeIterator<Item = u32>) {
        while self.needs_more(tags.len()) {
            self.grow();
        }
        for tag in tags {
            let at = self.slot(tag);
            match self.table[at] as u32 {
                0 => {
                    self.table[at] = u64::from(tag) << 32 | u64::from(number + 1);
                    self.used += 1;
                }
                other if other & CHAIN == 0 => {
                    // If two elements of a set have the same tag, the number is stored only once.
                    if other - 1 != number {
                        let chain = vec![other - 1, number];
                        self.chain_bytes += size_of::<Vec<u32>>() + size_of::<u32>() * chain.capacity();
                        self.table[at] = u64::from(tag) << 32 | u64::from(CHAIN | self.chains.len() as u32);
                        self.chains.push(chain);
                    }
                }
                chain => {
                    let chain = &mut self.chains[(chain & !CHAIN) as usize];
                    if chain.last() != Some(&number) {
                        let before = chain.capacity();
                        chain.push(number);
                        self.chain_bytes += size_of::<u32>() * (chain.capacity() - before);
                    }
                }
            }
        }
    }

    fn grow(&mut self) {
        let before = std::mem::take(&mut self.table);
        self.bits += 1;
        self.table = vec![0; 2 * before.len()];
        for slot in before.into_iter().filter(|&slot| slot != 0) {
            let at = self.slot((slot >> 32) as u32);
            self.table[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn added_numbers_are_found_by_elements_of_any_frequency() {
        let mut random = SplitMix(5);
        let mut slots = Slots::new();
        let mut wanted: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for number in 0..2000_u32 {
            let mut elements: Vec<u64> =
                (0..random.next() % 30).map(|i| if i < 3 { i } else { random.next() % 50_000 }).collect();
            elements.sort_unstable();
            elements.dedup();
            slots.add(number, &elements);
            for element in elements {
                wanted.entry(element).or_default().push(number);
            }
        }
        assert!(slots.bits > BITS && slots.bytes() > 8 * slots.used);
        for element in 0..50_000 {
            let found = match slots.postings(element) {
                Postings::None => Vec::new(),
                Postings::One(number) => vec![number],
                Postings::Several(numbers) => numbers.to_vec(),
            };
            assert_eq!(slots.postings(element).len(), found.len());
            assert_eq!(found, wanted.remove(&element).unwrap_or_default(), "{element}");
        }
    }
}
