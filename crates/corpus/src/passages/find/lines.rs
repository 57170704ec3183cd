//! Joins t-grams that repeat earlier ones into lines. One external sort finds the first occurrence of each t-gram. A
//! second external sort orders the repeated positions by document and position.

use std::path::Path;

use twindex::extsort::{Sorted, Sorter};
use twindex::{Error, Result};

use crate::passages::find::finder::{Gram, WORDS_MAX};

/// A repeated passage: a maximal run of repeated positions whose sources advance by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The number of the document that contains the repeat.
    pub document: u32,
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
    shape: WordCounting,
}

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
        Self { sorter: Sorter::new(folder, memory), repeats: Sorter::new(folder, memory), shape }
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
        let Self { sorter, mut repeats, shape } = self;
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
            if !within && halves(source[2]).0 == halves(gram[2]).0 {
                return Ok(());
            }
            let beside = pair(halves(source[3]).0, shape.of_hash(gram[1]));
            repeats.push([numbered(gram[2]), gram[3], numbered(source[2]), beside])
        })?;
        drop(sorted);
        Ok(Repeats { sorted: repeats.finish()?, shape })
    }
}

/// The repeated positions of all documents, sorted by document and position. [`for_each_line`](Self::for_each_line)
/// joins consecutive positions into lines.
#[derive(Debug)]
pub struct Repeats {
    sorted: Sorted<[u64; 4]>,
    shape: WordCounting,
}

/// A line that later positions may still extend.
#[derive(Clone, Copy)]
struct OpenLine {
    line: Line,
    /// The position that would extend the line, and the position that its source must have.
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
        mut each: impl FnMut(Line) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut open: Option<OpenLine> = None;
        self.sorted.for_each(|[at, place, source, beside]: [u64; 4]| {
            let ((document, position), (start, end)) = (halves(at), halves(place));
            let ((first_document, first_position), (first_start, words)) = (halves(source), halves(beside));
            let next = (position.wrapping_add(1), first_position.wrapping_add(1));
            if let Some(OpenLine { line, next: expected }) = &mut open
                && (line.document, line.first_document) == (document, first_document)
                && *expected == (position, first_position)
            {
                (line.end, line.words, *expected) = (end, line.words.saturating_add(words), next);
                return Ok(());
            }
            let words = match self.shape {
                WordCounting::Run(width) => width,
                WordCounting::Units => words,
            };
            let line = Line { document, start, end, first_document, first_position, first_start, words };
            open.replace(OpenLine { line, next }).map_or(Ok(()), |before| each(before.line))
        })?;
        open.map_or(Ok(()), |last| each(last.line))
    }
}
