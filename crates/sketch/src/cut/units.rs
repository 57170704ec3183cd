//! The units of a document in one buffer.

use std::ops::Range;

use super::CutScratch;

/// The units of one document, in text order; shingles are runs of them.
///
/// The units are in one buffer: words are separated by a space, sentences by a line feed, and characters by nothing, so
/// that the bytes of a shingle are a range of the buffer. Filled by [`Cutter::cut`](super::Cutter::cut), and reused for
/// the next document. Memory: 8 bytes a unit, plus the text.
#[derive(Clone, Debug, Default)]
pub struct Units {
    bytes: Vec<u8>,
    /// The end of each unit in `bytes`.
    ends: Vec<usize>,
    /// The separator between two units.
    separator: Option<u8>,
    pub(super) work: CutScratch,
}

impl Units {
    /// The number of units.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the document has no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of each unit, which are valid UTF-8 and not empty.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|unit| &self.bytes[self.start(unit)..self.ends[unit]])
    }

    /// The bytes of the shingle of the `width` units from `first` on: from the start of the first unit to the end of the
    /// last.
    ///
    /// # Panics
    /// If there are no such units, or `width` is 0.
    #[must_use]
    pub fn shingle(&self, first: usize, width: usize) -> &[u8] {
        &self.bytes[self.start(first)..self.ends[first + width - 1]]
    }

    /// The bytes of all units and their separators.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The ranges of the units in [`bytes`](Self::bytes), ascending and not overlapping.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        (0..self.len()).map(|unit| self.start(unit)..self.ends[unit])
    }

    /// Creates units with arbitrary bytes.
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

    /// Removes all units and sets the separator.
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

/// A unit that is built word by word.
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

    /// Completes the unit; a sentence without words is not a unit.
    pub(super) fn finish(self) {
        if self.words > 0 {
            self.units.ends.push(self.units.bytes.len());
        }
    }
}
