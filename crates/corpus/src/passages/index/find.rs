//! Finds the documents of an index that share passages with a text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use twindex::Result;

use crate::passages::find::finder::{FinderScratch, Gram};
use crate::passages::find::hashed::Hashed;
use crate::passages::index::folder::PassageIndex;
use crate::passages::index::part::{Hashes, Part, Postings};

/// A run of units that a text shares with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Where the run starts in the text, as a byte offset.
    pub start: u32,
    /// Where the run ends in the text, as a byte offset.
    pub end: u32,
    /// Where the run starts in the document, as a byte offset.
    pub document_start: u32,
    /// Where the run ends in the document, as a byte offset.
    pub document_end: u32,
    /// Number of units in the run.
    pub words: u32,
}

/// The runs that a text shares with one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// The number of the document.
    pub document: u32,
    /// Number of units of the text that are in at least one of the runs.
    pub words: u32,
    /// The runs, in the order of the text. They may overlap.
    pub runs: Vec<Match>,
}

/// The documents that share runs with a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The documents that share the most units with the text, at most [`Limits::documents`]. They are sorted by shared
    /// units, descending; documents with equally many are in the order of the index.
    pub documents: Vec<Matches>,
    /// Number of documents that share a run with the text, including documents beyond the limit.
    pub documents_found: u64,
    /// Number of units in the text.
    pub words: u32,
    /// Number of units of the text that occur in a shared run of at least one document.
    pub words_found: u32,
    /// Number of fingerprints with more than [`Limits::places`] postings. The postings beyond the limit were ignored,
    /// so documents and matches may be missing.
    pub capped: u32,
}

/// Limits of the size of an answer and of the work of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of documents in an answer.
    pub documents: usize,
    /// Maximum number of postings that a query reads for each fingerprint. [`Answer::capped`] counts the fingerprints
    /// that have more.
    pub places: usize,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { documents: usize::MAX, places: usize::MAX };
}

/// A document that shares runs with a text. The order is by shared units, descending, then by document.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RankedDocument {
    words: Reverse<u32>,
    document: u32,
    runs: Vec<Run>,
}

struct FindState {
    answer: Answer,
    /// For each unit of the text, whether it is in a run that a document found so far shares.
    covered: Vec<bool>,
    /// The documents with the most shared units so far; the top of the heap has the fewest.
    best: BinaryHeap<RankedDocument>,
}

impl FindState {
    /// Adds a document with its runs, unless there are none. Keeps at most `max` documents.
    fn add(&mut self, document: u32, runs: Vec<Run>, max: usize) {
        if runs.is_empty() {
            return;
        }
        for run in &runs {
            self.covered[run.start..run.end].fill(true);
        }
        self.answer.documents_found += 1;
        let words = union(runs.iter().map(|run| run.start..run.end).collect());
        self.best.push(RankedDocument { words: Reverse(words), document, runs });
        if self.best.len() > max {
            self.best.pop();
        }
    }
}

/// A run that a text shares with a document. `start` and `end` are positions in the text; the diagonal is the position
/// in the text minus the position in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    diagonal: usize,
    start: usize,
    end: usize,
}

/// Compares units in both directions, from position `at` of the text and position `there` of the document. Returns the
/// number of equal units before these positions and from these positions on, each at most its entry of `max`.
fn agreeing(
    own: impl Fn(usize) -> Option<u32>,
    other: Hashes<'_>,
    at: usize,
    there: usize,
    max: (usize, usize),
) -> (usize, usize) {
    let same = |a: Option<usize>, b: Option<usize>| {
        a.zip(b).is_some_and(|(a, b)| own(a).is_some_and(|hash| other.get(b) == Some(hash)))
    };
    let before = (1..=max.0).take_while(|&n| same(at.checked_sub(n), there.checked_sub(n))).count();
    let after = (0..max.1).take_while(|&n| same(at.checked_add(n), there.checked_add(n))).count();
    (before, after)
}

impl PassageIndex {
    /// Passes each posting of a fingerprint in all parts to `each`, until `each` returns false. Skips deleted
    /// documents. The arguments of `each` are the document's number in the index, the position, the part, and the
    /// document's number in the part.
    fn for_each_posting(
        &self,
        fingerprint: u64,
        mut each: impl FnMut(u32, usize, (&Part, u32)) -> Result<bool>,
    ) -> Result<()> {
        for (part, &start) in self.parts.iter().zip(&self.starts) {
            let mut postings = part.postings(fingerprint)?;
            while let Some((document, position)) = postings.first() {
                if !each(start.saturating_add(document), position as usize, (part, document))? {
                    return Ok(());
                }
                postings.step()?;
            }
        }
        Ok(())
    }

    /// Finds the documents that share a run of units with a text. The text must be split and hashed as the documents
    /// were.
    ///
    /// Merges the postings of all fingerprints by document, so all runs of one document are found together. Only the
    /// `limits.documents` best documents are held in memory.
    ///
    /// Time: one lookup per selected fingerprint, one comparison of units per posting, and the total length of all
    /// shared runs. Memory: up to 128 postings of each selected fingerprint, and the runs of `limits.documents`
    /// documents.
    ///
    /// # Errors
    ///
    /// [`twindex::Error::Corrupt`].
    pub fn find(&self, hashed: &Hashed, work: &mut FinderScratch, limits: Limits) -> Result<Answer> {
        let own: Vec<u32> = (0..hashed.len()).map(|unit| work.unit_hash(hashed, unit)).collect();
        let mut selected: Vec<(u64, usize)> = Vec::new();
        work.for_each_selected(hashed, |at, fingerprint| selected.push((fingerprint, at)));
        selected.sort_unstable();
        let mut found =
            FindState { answer: Answer::default(), covered: vec![false; own.len()], best: BinaryHeap::new() };
        // Number of postings followed for each fingerprint, at the index of its first entry in `selected`.
        let mut followed: Vec<usize> = vec![0; selected.len()];
        for (part, &start) in self.parts.iter().zip(&self.starts) {
            self.find_in_part((part, start), (&selected, &mut followed), &own, limits, &mut found)?;
        }
        let FindState { mut answer, covered, best } = found;
        answer.capped = followed.iter().filter(|&&followed| followed > limits.places).count() as u32;
        answer.words = own.len() as u32;
        answer.words_found = covered.iter().filter(|&&covered| covered).count() as u32;
        for one in best.into_sorted_vec() {
            answer.documents.push(self.matches(one, hashed)?);
        }
        Ok(answer)
    }

    fn find_in_part(
        &self,
        (part, start): (&Part, u32),
        (selected, followed): (&[(u64, usize)], &mut [usize]),
        own: &[u32],
        limits: Limits,
        found: &mut FindState,
    ) -> Result<()> {
        // For each fingerprint, its range in `selected` and its postings in this part. `next` is a heap of indexes into
        // `open`, ordered by the document of the next posting.
        let mut open: Vec<(Range<usize>, Postings<'_>)> = Vec::new();
        let mut next: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        let mut first = 0;
        while first < selected.len() {
            let same = selected[first..].iter().take_while(|one| one.0 == selected[first].0).count();
            let postings = part.postings(selected[first].0)?;
            if let Some((document, _)) = postings.first() {
                next.push(Reverse((document, open.len())));
                open.push((first..first + same, postings));
            }
            first += same;
        }
        let mut seeds: Vec<(usize, usize)> = Vec::new();
        while let Some(&Reverse((document, _))) = next.peek() {
            seeds.clear();
            while let Some(&Reverse((of, number))) = next.peek()
                && of == document
            {
                next.pop();
                let (ats, postings) = &mut open[number];
                while let Some((_, there)) = postings.first().filter(|one| one.0 == document) {
                    let followed = &mut followed[ats.start];
                    *followed = followed.saturating_add(1);
                    if *followed > limits.places {
                        break;
                    }
                    // The diagonal may be negative, so it wraps around.
                    let of =
                        selected[ats.clone()].iter().map(|one| (one.1.wrapping_sub(there as usize), one.1));
                    seeds.extend(of);
                    postings.step()?;
                }
                let later = postings.first().filter(|_| followed[ats.start] <= limits.places);
                next.extend(later.map(|(document, _)| Reverse((document, number))));
            }
            seeds.sort_unstable();
            let runs = self.runs(&seeds, own, part.hashes(document)?);
            found.add(start.saturating_add(document), runs, limits.documents);
        }
        Ok(())
    }

    /// Returns the runs that the text shares with a document, by extending seeds in both directions. A seed is a
    /// diagonal and a position in the text; seeds must be in ascending order.
    fn runs(&self, seeds: &[(usize, usize)], own: &[u32], hashes: Hashes<'_>) -> Vec<Run> {
        let width = self.shape.width();
        let mut runs: Vec<Run> = Vec::new();
        for &(diagonal, at) in seeds {
            // The last run already contains this seed.
            if runs.last().is_some_and(|run| run.diagonal == diagonal && (run.start..run.end).contains(&at)) {
                continue;
            }
            let far = (usize::MAX, usize::MAX);
            let there = at.wrapping_sub(diagonal);
            let (before, after) = agreeing(|unit| own.get(unit).copied(), hashes, at, there, far);
            if before + after >= width && after > 0 {
                runs.push(Run { diagonal, start: at - before, end: at + after });
            }
        }
        runs
    }

    /// Converts the runs of a document to matches with byte offsets.
    fn matches(&self, one: RankedDocument, hashed: &Hashed) -> Result<Matches> {
        let RankedDocument { words: Reverse(words), document, runs } = one;
        let places = self.places(document)?;
        let mut matches = Vec::new();
        for Run { diagonal, start, end } in runs {
            let place = hashed.place(start, end - start);
            let there = |unit: usize| unit.wrapping_sub(diagonal);
            let (first, last) = (places.get(there(start)), places.get(there(end - 1)));
            let Some((first, last)) = first.zip(last) else { continue };
            matches.push(Match {
                start: place.start,
                end: place.end,
                document_start: first.0,
                document_end: last.1,
                words: (end - start) as u32,
            });
        }
        matches.sort_unstable();
        Ok(Matches { document, words, runs: matches })
    }

    /// Returns whether the same t-gram is at two places, each a document and a position.
    ///
    /// # Errors
    ///
    /// [`twindex::Error::Corrupt`].
    pub fn is_same_gram(&self, one: (u32, u32), other: (u32, u32)) -> Result<bool> {
        let hashes = |document| -> Result<Hashes<'_>> {
            let (part, in_part) = self.part_of(document)?;
            part.hashes(in_part)
        };
        let (ones, others) = (hashes(one.0)?, hashes(other.0)?);
        let unit = |hashes: &Hashes<'_>, start: u32, number: usize| hashes.get(start as usize + number);
        Ok((0..self.shape.width()).all(|number| {
            let hash = unit(&ones, one.1, number);
            hash.is_some() && hash == unit(&others, other.1, number)
        }))
    }

    /// Like [`FinderScratch::for_each_recurring`], for a document that comes after the documents of the index. Passes
    /// each t-gram that occurs in the index to `each`, with the document and the position of its first occurrence.
    /// Passes each other t-gram if `wanted` accepts its fingerprint. Stops reading the postings of a fingerprint when
    /// the sources of all its t-grams are found.
    ///
    /// # Errors
    ///
    /// [`twindex::Error::Corrupt`].
    pub fn for_each_sourced(
        &self,
        hashed: &Hashed,
        work: &mut FinderScratch,
        wanted: impl Fn(u64) -> bool,
        mut each: impl FnMut(Gram, Option<(u32, u32)>),
    ) -> Result<()> {
        let own: Vec<u32> = (0..hashed.len()).map(|unit| work.unit_hash(hashed, unit)).collect();
        let width = self.shape.width();
        // Groups the adjacent windows that select the same position. A group is the range of windows, the position and
        // the fingerprint.
        let mut groups: Vec<(Range<usize>, usize, u64)> = Vec::new();
        work.for_each_window(hashed, |position, at, fingerprint| match groups.last_mut() {
            Some((windows, last, _)) if *last == at => windows.end = position + 1,
            _ => groups.push((position..position + 1, at, fingerprint)),
        });
        let mut sources = Vec::new();
        for (windows, at, fingerprint) in groups {
            sources.clear();
            sources.resize(windows.len(), None);
            let mut missing = windows.len();
            self.for_each_posting(fingerprint, |document, there, (part, in_part)| {
                let max = (at - windows.start, windows.end - 1 + width - at);
                let own = |unit: usize| own.get(unit).copied();
                let (before, after) = agreeing(own, part.hashes(in_part)?, at, there, max);
                for (window, source) in windows.clone().zip(&mut sources) {
                    let offset = at - window;
                    if source.is_none() && offset <= before && width - offset <= after {
                        *source = Some((document, (there - offset) as u32));
                        missing -= 1;
                    }
                }
                Ok(missing > 0)
            })?;
            let is_wanted = missing > 0 && wanted(fingerprint);
            for (window, source) in windows.zip(&sources) {
                if (source.is_some() || is_wanted)
                    && let Some(gram) = work.gram(hashed, window)
                {
                    each(gram, *source);
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of units that at least one of these ranges covers.
fn union(mut ranges: Vec<Range<usize>>) -> u32 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut units, mut end) = (0, 0);
    for range in ranges {
        units += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    units as u32
}
