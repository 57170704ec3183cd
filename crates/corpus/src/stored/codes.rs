//! Stores fingerprints of up to 512 bits in memory or, beyond the memory budget, in scratch files.

use twindex::sys::{Column, MemoryBudget};
use twindex_join::Codes;

use crate::input::fields::fingerprint::Code;
use crate::stored::keys::{ByKey, DocumentKeys};

/// Fingerprints of the same number of bits.
struct CodeColumn {
    words: Column<u64>,
    /// Number of 64-bit words of a fingerprint.
    width: usize,
}

impl CodeColumn {
    fn new(budget: &MemoryBudget) -> Self {
        Self { words: Column::new(budget), width: 1 }
    }

    /// Adds a fingerprint, which must have as many bits as all others.
    fn push(&mut self, code: Code) -> twindex::Result<()> {
        self.width = code.words().len();
        self.words.extend(code.words())
    }

    fn all(&self) -> twindex::Result<Codes<'_>> {
        Codes::new(&self.words, self.width)
    }
}

/// The fingerprints of groups of equal documents.
pub(crate) struct GroupCodes {
    codes: CodeColumn,
    /// The group of each fingerprint, ascending. A group whose documents have no fingerprint is not listed.
    groups: Column<u32>,
}

impl GroupCodes {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { codes: CodeColumn::new(budget), groups: Column::new(budget) }
    }

    pub(crate) fn push(&mut self, group: u32, code: Code) -> twindex::Result<()> {
        self.codes.push(code)?;
        self.groups.push(group)
    }

    /// Returns the fingerprint of a group; `None` if its documents have none.
    pub(crate) fn of_group(&self, group: u32) -> Option<Code> {
        let at = self.groups.binary_search(&group).ok()?;
        let CodeColumn { words, width } = &self.codes;
        Code::of_words(&words[at * width..][..*width])
    }

    /// Returns the fingerprints, and the group of each.
    pub(crate) fn all(&self) -> twindex::Result<(Codes<'_>, &[u32])> {
        Ok((self.codes.all()?, &self.groups))
    }

    /// Returns whether the fingerprints have more than 64 bits.
    pub(crate) fn are_long(&self) -> bool {
        self.codes.width > 1
    }
}

/// The fingerprints of documents, with their keys.
pub struct KeyedCodes {
    codes: CodeColumn,
    keys: DocumentKeys,
    budget: MemoryBudget,
}

impl KeyedCodes {
    /// Creates an empty list. A document takes 8 bytes, the bytes of its key and those of its fingerprint.
    #[must_use]
    pub fn new(budget: &MemoryBudget) -> Self {
        Self { codes: CodeColumn::new(budget), keys: DocumentKeys::new(budget), budget: budget.clone() }
    }

    /// Adds a document. Its fingerprint must have as many bits as all others.
    ///
    /// # Errors
    ///
    /// I/O errors of scratch files.
    pub fn push(&mut self, key: &[u8], code: Code) -> twindex::Result<()> {
        self.codes.push(code)?;
        self.keys.push(key)
    }

    /// Returns the fingerprints, numbered in the order of addition.
    ///
    /// # Errors
    ///
    /// There are more than 2^32 - 1.
    pub fn codes(&self) -> twindex::Result<Codes<'_>> {
        self.codes.all()
    }

    /// Returns the key of a fingerprint.
    #[must_use]
    pub fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }

    /// Returns the numbers in ascending order of the keys, which must be distinct, and for each number its position in
    /// this order. Uses about `memory` bytes.
    ///
    /// # Errors
    ///
    /// I/O errors of scratch files.
    pub fn by_key(&self, memory: usize) -> twindex::Result<(Column<u32>, Column<u32>)> {
        let ByKey { documents, places } =
            ByKey::of(&self.keys, 0..self.keys.len() as u32, &self.budget, memory)?;
        Ok((documents, places))
    }
}
