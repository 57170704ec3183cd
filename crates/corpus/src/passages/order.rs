//! The order of documents: of equal passages, the passage in the first document is kept.

use std::path::Path;

use twindex::sys::{Column, MemoryBudget};
use twindex_join::Sorter;

use crate::rule::priority::KeepOrder;
use crate::stored::keys::{ByKey, DocumentKeys};

/// The numbers by which documents are ordered: numbers of words, or numbers in a field. Empty if `keep` uses neither.
pub(crate) struct SourceOrder {
    keep: KeepOrder,
    tokens: Column<u64>,
    numbers: Column<u128>,
}

impl SourceOrder {
    pub(crate) fn new(keep: KeepOrder, budget: &MemoryBudget) -> Self {
        Self { keep, tokens: Column::new(budget), numbers: Column::new(budget) }
    }

    /// Adds the next document, given its number of words and the number in its field.
    pub(crate) fn push(&mut self, tokens: u64, number: u128) -> twindex::Result<()> {
        match self.keep {
            KeepOrder::Longest => self.tokens.push(tokens),
            KeepOrder::Max | KeepOrder::Min => self.numbers.push(number),
            KeepOrder::First | KeepOrder::SmallestKey | KeepOrder::KeyHash => Ok(()),
        }
    }
}

/// The documents by rank, and the rank of each document.
pub(crate) struct Order {
    documents: Column<u32>,
    ranks: Column<u32>,
}

impl Order {
    /// Sorts these documents with an external sort that uses about `memory` bytes; `None` if they are in input order.
    pub(crate) fn of(
        standing: &SourceOrder,
        keys: &DocumentKeys,
        folder: &Path,
        budget: &MemoryBudget,
        memory: usize,
    ) -> twindex::Result<Option<Self>> {
        let SourceOrder { keep, tokens, numbers } = standing;
        if *keep == KeepOrder::First {
            return Ok(None);
        }
        let count = keys.len() as u32;
        let by_key = keep.by_key().then(|| ByKey::of(keys, 0..count, budget, memory)).transpose()?;
        let by_key = by_key.as_ref().map(|by_key| (keys, by_key));
        let mut sorter: Sorter<[u64; 4]> = Sorter::new(folder, memory);
        for document in 0..count {
            let at = document as usize;
            let choice = keep.choice(|| tokens[at], || numbers[at], document, by_key);
            let place = keep.place(document, by_key);
            sorter.push([(choice >> 64) as u64, choice as u64, place.into(), document.into()])?;
        }
        let mut ranks = Column::filled(budget, keys.len(), 0)?;
        let mut documents = Column::new(budget);
        sorter.finish()?.for_each(|[.., document]: [u64; 4]| {
            ranks[document as usize] = documents.len() as u32;
            documents.push(document as u32)
        })?;
        Ok(Some(Self { documents, ranks }))
    }

    /// Returns the rank of a document.
    pub(crate) fn rank(&self, document: u32) -> u32 {
        self.ranks[document as usize]
    }

    /// Returns the document with a rank.
    pub(crate) fn document(&self, rank: u32) -> u32 {
        self.documents[rank as usize]
    }
}
