//! Units side by side in one buffer.

use std::ops::Range;

use super::CutScratch;

/// The units of one document, in the order of the text: what shingles are runs of.
///
/// They are in one buffer, words with a space between two, sentences with a line feed, characters with nothing, so
/// that the bytes of a shingle are a range of it. Made by [`Cutter::cut`](super::Cutter::cut), and reused from document
/// to document; 8 bytes a unit, and the text.
#[derive(Clone, Debug, Default)]
pub struct Units {
    bytes: Vec<u8>,
    /// The end of each unit.
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

    /// The bytes of each unit, which are UTF-8; none is empty.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|unit| &self.bytes[self.start(unit)..self.ends[unit]])
    }

    /// The bytes of the shingle of the `width` units from `first` on: from the start of the first to the end of the
    /// last.
    ///
    /// # Panics
    /// If there are no such units, or `width` is 0; as an index out of range does.
    #[must_use]
    pub fn shingle(&self, first: usize, width: usize) -> &[u8] {
        &self.bytes[self.start(first)..self.ends[first + width - 1]]
    }

    /// The bytes of all units, and what is between them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The ranges of the units in [`bytes`](Self::bytes): ascending, no two overlap.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        (0..self.len()).map(|unit| self.start(unit)..self.ends[unit])
    }

    /// Units of any bytes.
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

    /// Starts over.
    pub(super) fn clear(&mut self, separator: Option<u8>) {
        self.bytes.clear();
        self.ends.clear();
        self.separator = separator;
    }

    /// Appends a unit, which is not empty.
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

/// A unit that comes word by word.
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

    /// The unit is complete; without a word it is none.
    pub(super) fn finish(self) {
        if self.words > 0 {
            self.units.ends.push(self.units.bytes.len());
        }
    }
}
