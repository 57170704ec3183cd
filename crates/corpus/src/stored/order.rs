//! Stores the numbers by which documents are ordered, as the rules of `--keep` compare them.

use std::ops::Range;

use twindex::Key;
use twindex::sys::{Column, MemoryBudget};
use twindex_join::Sorter;

use crate::input::fields::deciding::DecidingNumber;
use crate::input::fields::keep::{Keep, KeepOrder};
use crate::stored::keys::{ByKey, arrange};

/// The numbers by which the rules of [`KeepOrder`] compare documents, the smallest first. The numbers of a document are
/// compared as one long number, which is stored in parts of 128 bits.
pub struct KeepValues {
    order: KeepOrder,
    /// The part of each rule, and the place of its lowest bit in the part.
    places: Vec<(usize, u32)>,
    parts: Vec<Column<u128>>,
}

impl KeepValues {
    /// Creates an empty list for these rules. Documents beyond `budget` are in scratch files.
    #[must_use]
    pub fn new(order: &KeepOrder, budget: &MemoryBudget) -> Self {
        let (mut places, mut parts, mut free) = (Vec::new(), Vec::new(), 0);
        for rule in order.rules() {
            let bits = bits(rule);
            if bits > free {
                parts.push(Column::new(budget));
                free = u128::BITS;
            }
            free -= bits;
            places.push((parts.len().saturating_sub(1), free));
        }
        Self { order: order.clone(), places, parts }
    }

    /// Returns whether there are several rules.
    pub(crate) fn are_several(&self) -> bool {
        self.order.single().is_none()
    }

    /// Adds the next document. `numbers` are those that the rules read of it, or empty if they read none.
    ///
    /// # Errors
    ///
    /// I/O errors of scratch files.
    pub fn push(&mut self, tokens: u64, key: &[u8], numbers: &[DecidingNumber]) -> twindex::Result<()> {
        for (at, part) in self.parts.iter_mut().enumerate() {
            let rules = self.order.rules().iter().zip(&self.places).enumerate();
            let of_part = rules.filter(|(_, (rule, place))| place.0 == at && bits(rule) > 0);
            let number = |(rule, (which, (_, shift))): (usize, (&Keep, &(usize, u32)))| {
                let number = numbers.get(rule).map(|read| read.number).unwrap_or_default();
                let number = match which {
                    Keep::First | Keep::SmallestKey => 0,
                    Keep::Longest => (u64::MAX - tokens).into(),
                    Keep::KeyHash => Key::Bytes(key).priority_hash().into(),
                    Keep::Max(_) => !number.bits(),
                    Keep::Min(_) | Keep::Earliest(_) => number.bits(),
                    Keep::Rank(..) | Keep::Https | Keep::ShortestUrl | Keep::Canonical => {
                        number.small().into()
                    }
                };
                number << shift
            };
            part.push(of_part.map(number).fold(0, |all: u128, number| all | number))?;
        }
        Ok(())
    }

    /// Replaces the list by these runs of its documents.
    pub(crate) fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        self.parts.iter_mut().try_for_each(|part| arrange(part, runs))
    }

    /// Returns the rank of each of `documents` documents, from 0: documents that the rules do not distinguish have the same. Sorts
    /// them in about `memory` bytes.
    ///
    /// # Errors
    ///
    /// I/O errors of scratch files.
    pub fn ranks(
        &self,
        documents: usize,
        budget: &MemoryBudget,
        memory: usize,
    ) -> twindex::Result<Column<u32>> {
        let mut ranks = Column::filled(budget, documents, 0)?;
        for part in self.parts.iter().rev() {
            ranks = ranks_of(part, &ranks, budget, memory)?;
        }
        Ok(ranks)
    }

    /// Sorts the documents if their numbers have several parts, in about `memory` bytes.
    pub(crate) fn sorted(&self, budget: &MemoryBudget, memory: usize) -> twindex::Result<SortedValues<'_>> {
        let ranks = match &self.parts[..] {
            [first, _, ..] => Some(self.ranks(first.len(), budget, memory)?),
            _ => None,
        };
        Ok(SortedValues { values: self, ranks })
    }

    /// Returns the rule that decides which of two documents comes first.
    pub(crate) fn decided(&self, a: u32, b: u32) -> Keep {
        let of = |rule: usize, document: u32| {
            let ((part, shift), bits) = (self.places[rule], bits(&self.order.rules()[rule]));
            let above = u128::BITS - bits - shift;
            (bits > 0).then(|| self.parts[part][document as usize] << above >> (above + shift))
        };
        let rules = self.order.rules();
        let found = (0..rules.len()).find(|&rule| of(rule, a) != of(rule, b));
        found.map_or_else(|| self.order.tie(), |rule| rules[rule].clone())
    }
}

/// Returns the number of bits of the number that a rule compares.
fn bits(rule: &Keep) -> u32 {
    match rule {
        Keep::First | Keep::SmallestKey => 0,
        Keep::Https => 1,
        Keep::Canonical => 2,
        Keep::Rank(..) | Keep::ShortestUrl => 16,
        Keep::Longest | Keep::KeyHash => 64,
        Keep::Max(_) | Keep::Min(_) | Keep::Earliest(_) => 128,
    }
}

/// Sorts documents by a number and, among equals, by a rank. Returns their ranks: how many smaller pairs there are.
fn ranks_of(
    numbers: &[u128],
    ranks: &[u32],
    budget: &MemoryBudget,
    memory: usize,
) -> twindex::Result<Column<u32>> {
    let mut sorter: Sorter<[u64; 4]> = Sorter::new(budget.dir(), memory);
    for (document, (&number, &rank)) in numbers.iter().zip(ranks).enumerate() {
        sorter.push([(number >> 64) as u64, number as u64, rank.into(), document as u64])?;
    }
    let mut sorted = Column::filled(budget, numbers.len(), 0)?;
    let (mut last, mut rank) = (None, 0);
    sorter.finish()?.for_each(|[high, low, second, document]| {
        rank += u32::from(last.replace([high, low, second]).is_some_and(|last| last != [high, low, second]));
        sorted[document as usize] = rank;
        twindex::Result::Ok(())
    })?;
    Ok(sorted)
}

/// The numbers of documents, as one number for each document.
pub(crate) struct SortedValues<'v> {
    values: &'v KeepValues,
    /// The rank of each document; `None` if its number has only one part.
    ranks: Option<Column<u32>>,
}

impl SortedValues<'_> {
    pub(crate) fn order(&self) -> &KeepOrder {
        &self.values.order
    }

    /// Returns the number by which documents are sorted in ascending order. Documents with equal numbers are sorted by
    /// [place](Self::place), then in input order.
    pub(crate) fn choice(&self, document: u32) -> u128 {
        match (&self.ranks, &self.values.parts[..]) {
            (Some(ranks), _) => ranks[document as usize].into(),
            (None, [only]) => only[document as usize],
            (None, _) => 0,
        }
    }

    /// Returns the rank of the document's key if the order breaks ties by key; otherwise 0.
    pub(crate) fn place(&self, document: u32, by_key: Option<&ByKey>) -> u32 {
        by_key.filter(|_| !self.order().is_by_place()).map_or(0, |by_key| by_key.place(document))
    }
}
