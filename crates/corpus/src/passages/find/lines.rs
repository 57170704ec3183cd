//! Joins t-grams that repeat earlier ones into lines. One external sort finds the first occurrence of each t-gram. A
//! second external sort orders the repeated positions by document and position.
//!
//! A line goes on while the t-gram at the next position equals the t-gram at the next position of its source. Two t-grams
//! are equal if their first occurrences are the same, so a column with the first occurrence of each position decides.

use std::path::Path;

use twindex::extsort::{Sorted, Sorter};
use twindex::sys::{Column, MemoryBudget};
use twindex::{Error, Result};

use crate::passages::find::finder::{Gram, WORDS_MAX};

/// A repeated passage: a run of repeated positions. Its source is the first occurrence of its first t-gram, and it ends where
/// a position is not repeated, or where its t-gram differs from the t-gram at the same place after the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The number of the document that contains the repeat.
    pub document: u32,
    /// The index of the first unit of the line in the document.
    pub position: u32,
    /// Number of units in the line: its tokens, or the units of several words.
    pub units: u32,
    /// The byte offset in the document's text at which the line starts: the start of its first token.
    pub start: u32,
    /// The byte offset in the document's text at which the line ends: the end of its last token.
    pub end: u32,
    /// The number of the document that contains the source.
    pub first_document: u32,
    /// The index of the source's first unit in the first document.
    pub first_position: u32,
    /// The byte offset in the text of the first document at which the source starts; 0 if the source was given to
    /// [`push_sourced`](Grams::push_sourced).
    pub first_start: u32,
    /// Number of tokens in the line, or of words if units have several words.
    pub words: u32,
}

/// Collects the t-grams that may recur, 32 bytes each, and sorts them externally by their hashes.
#[derive(Debug)]
pub struct Grams {
    sorter: Sorter<[u64; 4]>,
    /// The repeated positions that were pushed with a known source.
    repeats: Sorter<[u64; 4]>,
    budget: MemoryBudget,
    shape: WordCounting,
}

/// The bit in the number of words of a position that is set if its t-gram occurs before in its own document alone. Such a
/// position is not repeated, but a source may move over it.
const OWN: u32 = 1 << 31;

/// The rule for counting the words of a line.
#[derive(Clone, Copy, Debug)]
enum WordCounting {
    /// Lines are runs of tokens. The first t-gram of a line has this number of words; each further t-gram adds one
    /// word.
    Run(u32),
    /// Lines are runs of units. The hash of each unit contains its number of words.
    Units,
}

impl WordCounting {
    /// Returns the number of words that a t-gram adds to the line that it extends.
    #[inline]
    fn of_hash(self, hash: u64) -> u32 {
        match self {
            Self::Run(_) => 1,
            Self::Units => (hash & WORDS_MAX) as u32,
        }
    }
}

#[inline]
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline]
fn halves(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

impl Grams {
    /// Creates an empty collection for runs of `width` words. Each of two sorters uses up to `memory` bytes, then
    /// scratch files in `folder`.
    #[must_use]
    pub fn of_words(folder: &Path, memory: usize, width: usize) -> Self {
        Self::of(folder, memory, WordCounting::Run(width as u32))
    }

    /// Creates an empty collection as [`of_words`](Self::of_words) does, but for units of several words.
    #[must_use]
    pub fn of_units(folder: &Path, memory: usize) -> Self {
        Self::of(folder, memory, WordCounting::Units)
    }

    fn of(folder: &Path, memory: usize, shape: WordCounting) -> Self {
        let budget = MemoryBudget::new(folder, memory);
        let [sorter, repeats] =
            [0, 1].map(|_| Sorter::new(folder, memory).on_threads(rayon::current_num_threads()));
        Self { sorter, repeats, budget, shape }
    }

    /// Adds a t-gram of a document.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from the scratch file.
    #[inline]
    pub fn push(&mut self, document: u32, gram: &Gram) -> Result<()> {
        let [a, b] = gram.hash;
        self.sorter.push([a, b, pair(document, gram.position), pair(gram.start, gram.end)])
    }

    /// Adds a t-gram whose first occurrence is already known: `source` is its document number and position.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from the scratch file.
    pub fn push_sourced(&mut self, document: u32, gram: &Gram, source: (u32, u32)) -> Result<()> {
        let words = self.shape.of_hash(gram.hash[1]);
        let source = pair(source.0, source.1);
        self.repeats.push([pair(document, gram.position), pair(gram.start, gram.end), source, words.into()])
    }

    /// Finds the first occurrence of each t-gram, and the positions that repeat it. With `within`, positions may also
    /// repeat earlier positions of the same document.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file.
    pub fn finish(self, within: bool) -> Result<Repeats> {
        self.finish_by_rank(within, |document| document)
    }

    /// Like [`finish`](Self::finish), for t-grams that were pushed with the rank of their document instead of its
    /// number. The source of a t-gram is then its occurrence in the document of lowest rank. `document` maps a rank to
    /// the number of the document. Lines contain document numbers and are sorted by document number. T-grams with a
    /// known source must be pushed with the number, not the rank.
    ///
    /// ```
    /// use twindex_corpus::passages::{Gram, Grams};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let mut grams = Grams::of_words(dir.path(), 1 << 16, 2);
    /// let gram = Gram { hash: [1, 2], position: 0, start: 0, end: 3 };
    /// grams.push(1, &gram)?; // document 0 has rank 1
    /// grams.push(0, &gram)?; // document 1 has rank 0
    /// let mut lines = Vec::new();
    /// grams.finish_by_rank(false, |rank| 1 - rank)?.for_each_line(|line| Ok::<_, twindex::Error>(lines.push(line)))?;
    /// assert_eq!((lines.len(), lines[0].document, lines[0].first_document), (1, 0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file.
    pub fn finish_by_rank(self, within: bool, document: impl Fn(u32) -> u32) -> Result<Repeats> {
        let Self { sorter, mut repeats, budget, shape } = self;
        let sorted = sorter.finish()?;
        let numbered = |place: u64| {
            let (rank, position) = halves(place);
            pair(document(rank), position)
        };
        let mut first: Option<[u64; 4]> = None;
        sorted.for_each(|gram: [u64; 4]| {
            let source = match first {
                Some(source) if source[..2] == gram[..2] => source,
                _ => {
                    first = Some(gram);
                    return Ok(());
                }
            };
            let own = if !within && halves(source[2]).0 == halves(gram[2]).0 { OWN } else { 0 };
            let beside = pair(halves(source[3]).0, shape.of_hash(gram[1]) | own);
            repeats.push([numbered(gram[2]), gram[3], numbered(source[2]), beside])
        })?;
        drop(sorted);
        let (sorted, mut firsts) = (repeats.finish()?, Column::new(&budget));
        sorted.for_each(|[at, _, source, _]: [u64; 4]| firsts.push([at, source]))?;
        Ok(Repeats { sorted, firsts, shape })
    }
}

/// The repeated positions of all documents, sorted by document and position. [`for_each_line`](Self::for_each_line)
/// joins consecutive positions into lines.
#[derive(Debug)]
pub struct Repeats {
    sorted: Sorted<[u64; 4]>,
    /// The positions of `sorted`, each with the first occurrence of its t-gram.
    firsts: Column<[u64; 2]>,
    shape: WordCounting,
}

/// A line that later positions may still extend.
#[derive(Clone, Copy)]
struct OpenLine {
    line: Line,
    /// The position that would extend the line, and the position that follows in the source.
    next: (u32, u32),
}

impl Repeats {
    /// Passes each line to `each`, sorted by document and position.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from the scratch file, or the error of `each`.
    pub fn for_each_line<E: From<Error>>(
        &self,
        each: impl FnMut(Line) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.for_each_line_after(|_, _| Ok(None), each)
    }

    /// Like [`for_each_line`](Self::for_each_line), for a run with a history. `is_same` is called with a place and the
    /// first occurrence of another t-gram. If the place is in the history, it returns whether the t-gram there is the
    /// same; otherwise `None`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_each_line`](Self::for_each_line), or the error of `is_same`.
    pub fn for_each_line_after<E: From<Error>>(
        &self,
        mut is_same: impl FnMut((u32, u32), (u32, u32)) -> std::result::Result<Option<bool>, E>,
        mut each: impl FnMut(Line) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut open: Option<OpenLine> = None;
        let mut cursor = 0;
        self.sorted.for_each(|[at, place, source, beside]: [u64; 4]| {
            let ((document, position), (start, end)) = (halves(at), halves(place));
            let ((first_document, first_position), (first_start, words)) = (halves(source), halves(beside));
            if words & OWN != 0 {
                return Ok(());
            }
            if let Some(OpenLine { line, next }) = &mut open
                && (line.document, next.0) == (document, position)
            {
                let (beside, first) = ((line.first_document, next.1), (first_document, first_position));
                let is_same = beside == first
                    || match is_same(beside, first)? {
                        Some(is_same) => is_same,
                        None => self.first_of(beside, &mut cursor) == Some(first),
                    };
                if is_same {
                    (line.end, line.words) = (end, line.words.saturating_add(words));
                    line.units += 1;
                    *next = (position.wrapping_add(1), next.1.wrapping_add(1));
                    return Ok(());
                }
            }
            let (words, units) = match self.shape {
                WordCounting::Run(width) => (width, width),
                WordCounting::Units => (words, 1),
            };
            let line = Line {
                document,
                position,
                units,
                start,
                end,
                first_document,
                first_position,
                first_start,
                words,
            };
            let next = (position.wrapping_add(1), first_position.wrapping_add(1));
            open.replace(OpenLine { line, next }).map_or(Ok(()), |before| each(before.line))
        })?;
        open.map_or(Ok(()), |last| each(last.line))
    }

    /// Returns the first occurrence of the t-gram at a place; `None` if the place is no position of `sorted`. `cursor` is
    /// where the next place is expected.
    fn first_of(&self, (document, position): (u32, u32), cursor: &mut usize) -> Option<(u32, u32)> {
        let at = pair(document, position);
        let found = match self.firsts.get(*cursor) {
            Some(&[here, _]) if here == at => *cursor,
            _ => self.firsts.binary_search_by_key(&at, |&[here, _]| here).ok()?,
        };
        *cursor = found + 1;
        Some(halves(self.firsts[found][1]))
    }
}
