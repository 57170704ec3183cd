//! The units of a document, stored in one buffer.

use std::ops::Range;

#[cfg(feature = "languages")]
use super::normal;
use super::stems::Stems;

/// The scratch memory that a [`Cutter`](super::Cutter) uses. It is part of [`Units`].
#[derive(Clone, Debug, Default)]
pub(super) struct CutScratch {
    pub(super) lower: Vec<u8>,
    /// The text in its normal form, if the normal form differs from the text.
    #[cfg(feature = "languages")]
    pub(super) normal: normal::CutScratch,
    /// The text without marks, if the text has marks.
    #[cfg(feature = "languages")]
    pub(super) unmarked: normal::CutScratch,
    /// The text without invisible characters, if the text has any.
    pub(super) visible: String,
    /// A line with its long gaps shortened.
    #[cfg(feature = "languages")]
    pub(super) line: String,
    pub(super) stems: Stems,
}

/// The units of one document, in text order. Shingles are sequences of consecutive units.
///
/// The units are in one buffer, so that the bytes of a shingle are a range of the buffer. Words are separated by a space,
/// sentences by a line feed, and characters by nothing. [`Cutter::cut`](super::Cutter::cut) fills the buffer, which is
/// reused for the next document. Takes 8 bytes of memory for each unit, plus the text.
#[derive(Clone, Debug, Default)]
pub struct Units {
    bytes: Vec<u8>,
    /// The end of each unit in `bytes`.
    ends: Vec<usize>,
    /// The byte between two units; `None` if units are not separated.
    separator: Option<u8>,
    pub(super) work: CutScratch,
}

impl Units {
    /// Returns the number of units.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the document has no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of each unit. They are valid UTF-8 and not empty.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|unit| &self.bytes[self.start(unit)..self.ends[unit]])
    }

    /// Returns the bytes of the shingle of the `width` units from `first` on: from the start of its first unit to the end of
    /// its last.
    ///
    /// # Panics
    /// Panics if the document has fewer than `first + width` units, or if `width` is 0.
    #[must_use]
    pub fn shingle(&self, first: usize, width: usize) -> &[u8] {
        &self.bytes[self.start(first)..self.ends[first + width - 1]]
    }

    /// Returns the bytes of all units, with the separators between them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the ranges of the units in [`bytes`](Self::bytes), ascending and without overlaps.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        (0..self.len()).map(|unit| self.start(unit)..self.ends[unit])
    }

    /// Creates units from arbitrary bytes, which need not be UTF-8.
    #[cfg(test)]
    pub(crate) fn of<'a>(units: impl IntoIterator<Item = &'a [u8]>, separator: Option<u8>) -> Self {
        let mut all = Self { separator, ..Self::default() };
        for unit in units {
            all.push(unit);
        }
        all
    }

    fn start(&self, unit: usize) -> usize {
        match unit.checked_sub(1) {
            None => 0,
            Some(before) => self.ends[before] + usize::from(self.separator.is_some()),
        }
    }

    pub(super) fn clear(&mut self, separator: Option<u8>) {
        self.bytes.clear();
        self.ends.clear();
        self.separator = separator;
    }

    /// Appends a unit, which must not be empty.
    #[inline]
    pub(super) fn push(&mut self, unit: &[u8]) {
        self.separate();
        self.bytes.extend_from_slice(unit);
        self.ends.push(self.bytes.len());
    }

    /// Appends a unit of one character.
    #[inline]
    pub(super) fn push_character(&mut self, unit: char) {
        if unit.is_ascii() {
            self.bytes.push(unit as u8);
        } else {
            self.bytes.extend_from_slice(unit.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.ends.push(self.bytes.len());
    }

    fn separate(&mut self) {
        if let (Some(separator), false) = (self.separator, self.ends.is_empty()) {
            self.bytes.push(separator);
        }
    }
}

/// Appends the words of one sentence to [`Units`] as one unit.
#[cfg(feature = "languages")]
pub(super) struct Sentence<'a> {
    units: &'a mut Units,
    words: usize,
}

#[cfg(feature = "languages")]
impl Units {
    pub(super) fn sentence(&mut self) -> Sentence<'_> {
        Sentence { units: self, words: 0 }
    }
}

#[cfg(feature = "languages")]
impl Sentence<'_> {
    pub(super) fn push(&mut self, word: &[u8]) {
        if self.words == 0 {
            self.units.separate();
        } else {
            self.units.bytes.push(b' ');
        }
        self.units.bytes.extend_from_slice(word);
        self.words += 1;
    }

    /// Completes the unit. Adds no unit if no word was appended.
    pub(super) fn finish(self) {
        if self.words > 0 {
            self.units.ends.push(self.units.bytes.len());
        }
    }
}
