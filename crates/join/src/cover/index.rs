//! Where sets that are kept are found by their elements.

use super::super::odd_sketches::OddSketches;
use twindex::error::Result;
use twindex::sys::Room;
use twindex_kernel::prefetch;

/// Sets by the elements they are to be found by. They are numbered by their *places*, in the order in which they were
/// added.
///
/// An element is known by 32 bits of its hash: two that have the same are found together, which costs time and changes
/// nothing.
pub(super) struct Index {
    /// Tag and what it leads to, by the bits that the tag begins with; 0 for a free slot.
    slots: Vec<u64>,
    bits: u32,
    used: usize,
    /// The places of sets that share a tag, ascending.
    chains: Vec<Vec<u32>>,
    chain_bytes: usize,
    /// The number of the set at each place.
    pub(super) members: Vec<u32>,
    pub(super) sizes: Vec<u32>,
    pub(super) odd: OddSketches,
    most: usize,
}

/// What has an element.
#[derive(Clone, Copy)]
pub(super) enum Postings<'i> {
    None,
    One(u32),
    Several(&'i [u32]),
}

/// A slot leads to a chain, not to a place.
const CHAIN: u32 = 1 << 31;
/// Places at most.
pub(super) const PLACES: usize = CHAIN as usize - 1;
/// The least slots, as a power of two.
const BITS: u32 = 10;

impl Index {
    /// Nothing yet. When it takes `most` bytes, it [is full](Self::is_full).
    pub(super) fn new(most: usize) -> Self {
        Self {
            slots: vec![0; 1 << BITS],
            bits: BITS,
            used: 0,
            chains: Vec::new(),
            chain_bytes: 0,
            members: Vec::new(),
            sizes: Vec::new(),
            odd: OddSketches::within(most / 4, &Room::unlimited()),
            most,
        }
    }

    fn bytes(&self) -> usize {
        let members = 2 * size_of::<u32>() * self.members.capacity();
        size_of_val(&*self.slots) + self.chain_bytes + members + self.odd.bytes()
    }

    /// Whether a set with this number of elements does not fit any more. An empty index is never full.
    pub(super) fn is_full(&self, elements: usize) -> bool {
        let grown = if self.needs_more(elements) { 2 * size_of_val(&*self.slots) } else { 0 };
        let is_over = self.bytes() + grown + 16 * elements > self.most;
        !self.members.is_empty() && (is_over || self.members.len() >= PLACES)
    }

    fn needs_more(&self, elements: usize) -> bool {
        4 * (self.used + elements) > 3 * self.slots.len()
    }

    fn tag(element: u64) -> u32 {
        (element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    /// Where a tag is, or the free slot where it would be.
    #[inline(always)]
    fn slot(&self, tag: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (tag >> (u32::BITS - self.bits)) as usize;
        while self.slots[at] != 0 && (self.slots[at] >> 32) as u32 != tag {
            at = (at + 1) & mask;
        }
        at
    }

    /// Prefetches the slot of an element.
    #[inline(always)]
    pub(super) fn fetch(&self, element: u64) {
        prefetch(&self.slots, (Self::tag(element) >> (u32::BITS - self.bits)) as usize);
    }

    /// The places of the sets that are to be found by an element, ascending.
    #[inline(always)]
    pub(super) fn postings(&self, element: u64) -> Postings<'_> {
        let slot = self.slots[self.slot(Self::tag(element))];
        match slot as u32 {
            0 => Postings::None,
            place if place & CHAIN == 0 => Postings::One(place - 1),
            chain => Postings::Several(&self.chains[(chain & !CHAIN) as usize]),
        }
    }

    /// Adds a set, with its odd sketch, that is to be found by these elements.
    pub(super) fn add(&mut self, set: u32, size: u32, elements: &[u64], sketch: &[u64]) -> Result<()> {
        while self.needs_more(elements.len()) {
            self.grow();
        }
        let place = self.members.len() as u32;
        self.members.push(set);
        self.sizes.push(size);
        self.odd.push_made(sketch, size as usize)?;
        for &element in elements {
            let tag = Self::tag(element);
            let at = self.slot(tag);
            match self.slots[at] as u32 {
                0 => {
                    self.slots[at] = u64::from(tag) << 32 | u64::from(place + 1);
                    self.used += 1;
                }
                other if other & CHAIN == 0 => {
                    // Two elements of one set may have the same tag.
                    if other - 1 != place {
                        let chain = vec![other - 1, place];
                        self.chain_bytes += size_of::<Vec<u32>>() + size_of::<u32>() * chain.capacity();
                        self.slots[at] = u64::from(tag) << 32 | u64::from(CHAIN | self.chains.len() as u32);
                        self.chains.push(chain);
                    }
                }
                chain => {
                    let chain = &mut self.chains[(chain & !CHAIN) as usize];
                    if chain.last() != Some(&place) {
                        let before = chain.capacity();
                        chain.push(place);
                        self.chain_bytes += size_of::<u32>() * (chain.capacity() - before);
                    }
                }
            }
        }
        Ok(())
    }

    fn grow(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        self.bits += 1;
        self.slots = vec![0; 2 * slots.len()];
        for slot in slots.into_iter().filter(|&slot| slot != 0) {
            let at = self.slot((slot >> 32) as u32);
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn what_was_added_is_found_by_its_elements_however_many_have_them() {
        let mut random = SplitMix(5);
        let mut index = Index::new(1 << 20);
        let mut wanted: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for place in 0..2000_u32 {
            let mut elements: Vec<u64> =
                (0..random.next() % 30).map(|i| if i < 3 { i } else { random.next() % 50_000 }).collect();
            elements.sort_unstable();
            elements.dedup();
            index.add(place + 7, elements.len() as u32, &elements, &[0]).unwrap();
            for element in elements {
                wanted.entry(element).or_default().push(place);
            }
        }
        assert!(index.bits > BITS && index.members[3] == 10);
        for element in 0..50_000 {
            let found = match index.postings(element) {
                Postings::None => Vec::new(),
                Postings::One(place) => vec![place],
                Postings::Several(places) => places.to_vec(),
            };
            assert_eq!(found, wanted.remove(&element).unwrap_or_default(), "{element}");
        }
        assert!(index.bytes() > 8 * index.used && !index.is_full(100));
        assert!(index.is_full(1 << 20) && !Index::new(0).is_full(1 << 20));
    }
}
