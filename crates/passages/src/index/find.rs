//! Which documents of an index contain parts of a text.

use std::collections::BTreeMap;
use std::ops::Range;

use twindex::Result;

use super::PassageIndex;
use super::part::{Hashes, Part};
use crate::finder::{Gram, Work};
use crate::hashed::Hashed;

/// A run of units that a text shares with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Where it begins in the text, in bytes.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// Where it begins in the text of the document.
    pub document_start: u32,
    /// Where it ends there.
    pub document_end: u32,
    /// Its units.
    pub words: u32,
}

/// What a text shares with one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// The number of the document.
    pub document: u32,
    /// Units of the text that occur in the document, in runs of `t` or more.
    pub words: u32,
    /// The runs, in the order of the text; they may overlap.
    pub matches: Vec<Match>,
}

/// What was found of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Documents, those with the most units first, equal ones in the order in which they were added.
    pub documents: Vec<Matches>,
    /// Units of the text.
    pub words: u32,
    /// Units of the text that occur in one or more of these documents.
    pub words_found: u32,
    /// Fingerprints with too many postings: only the first were followed.
    pub capped: u32,
}

/// How far the units around a place agree: the number of units before it, and from it on.
fn agreeing(
    own: impl Fn(usize) -> Option<u32>,
    other: Hashes<'_>,
    at: usize,
    there: usize,
    most: (usize, usize),
) -> (usize, usize) {
    let same = |a: Option<usize>, b: Option<usize>| {
        a.zip(b).is_some_and(|(a, b)| own(a).is_some_and(|hash| other.get(b) == Some(hash)))
    };
    let before = (1..=most.0).take_while(|&n| same(at.checked_sub(n), there.checked_sub(n))).count();
    let after = (0..most.1).take_while(|&n| same(at.checked_add(n), there.checked_add(n))).count();
    (before, after)
}

impl PassageIndex {
    /// Passes the postings of a fingerprint in all parts to `each`: the document, the unit, and its part with the number
    /// of the document there; until it returns false.
    fn for_each_posting(
        &self,
        fingerprint: u64,
        mut each: impl FnMut(u32, usize, (&Part, u32)) -> Result<bool>,
    ) -> Result<()> {
        for (part, &start) in self.parts.iter().zip(&self.starts) {
            let mut goes_on = true;
            part.for_each_posting(fingerprint, |(document, position)| {
                goes_on = each(start.saturating_add(document), position as usize, (part, document))?;
                Ok(goes_on)
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The documents that share a run of units with a text: the text was cut and hashed as the index was. Of each
    /// fingerprint up to `most` postings are followed.
    ///
    /// Time: a look-up for each selected fingerprint, and the shared runs for each document that has them.
    ///
    /// # Errors
    ///
    /// [`twindex::Error::Corrupt`].
    pub fn find(&self, hashed: &Hashed, work: &mut Work, most: usize) -> Result<Answer> {
        let own: Vec<u32> = (0..hashed.len()).map(|unit| work.unit_hash(hashed, unit)).collect();
        let width = self.shape.width();
        let mut selected = Vec::new();
        work.for_each_selected(hashed, |at, fingerprint| selected.push((at, fingerprint)));
        // Runs by document and diagonal; of each diagonal the last one, which may cover the next seed.
        let mut runs: BTreeMap<u32, BTreeMap<usize, Vec<Range<usize>>>> = BTreeMap::new();
        let mut capped = 0;
        for (at, fingerprint) in selected {
            let mut followed = 0;
            self.for_each_posting(fingerprint, |document, there, (part, in_part)| {
                if followed == most {
                    capped += 1;
                    return Ok(false);
                }
                followed += 1;
                // Modulo the numbers of the machine.
                let diagonal = at.wrapping_sub(there);
                let known = runs.get(&document).and_then(|runs| runs.get(&diagonal)?.last());
                if known.is_some_and(|run| run.contains(&at)) {
                    return Ok(true);
                }
                let hashes = part.hashes(in_part)?;
                let far = (usize::MAX, usize::MAX);
                let (before, after) = agreeing(|unit| own.get(unit).copied(), hashes, at, there, far);
                if before + after >= width && after > 0 {
                    let run = at - before..at + after;
                    runs.entry(document).or_default().entry(diagonal).or_default().push(run);
                }
                Ok(true)
            })?;
        }
        let mut covered = vec![false; own.len()];
        let mut documents = Vec::new();
        for (document, diagonals) in runs {
            let places = self.places(document)?;
            let (mut matches, mut units) = (Vec::new(), Vec::new());
            for (diagonal, run) in
                diagonals.iter().flat_map(|(diagonal, runs)| runs.iter().map(move |run| (diagonal, run)))
            {
                let place = hashed.place(run.start, run.len());
                let there = |unit: usize| unit.wrapping_sub(*diagonal);
                let first = places.get(there(run.start));
                let last = places.get(there(run.end - 1));
                let Some((first, last)) = first.zip(last) else { continue };
                let (document_start, document_end) = (first.0, last.1);
                let words = run.len() as u32;
                matches.push(Match {
                    start: place.start,
                    end: place.end,
                    document_start,
                    document_end,
                    words,
                });
                units.push(run.clone());
                covered[run.clone()].fill(true);
            }
            matches.sort_unstable();
            documents.push(Matches { document, words: union(units), matches });
        }
        documents.sort_by_key(|one| (std::cmp::Reverse(one.words), one.document));
        let words_found = covered.iter().filter(|&&covered| covered).count() as u32;
        Ok(Answer { documents, words: own.len() as u32, words_found, capped })
    }

    /// As [`Work::for_each_recurring`], for documents that come after those of an index: passes each t-gram of
    /// the index with its first place there, and each other t-gram whose fingerprint `wanted` accepts. All postings of a fingerprint are followed until the first occurrences are known.
    ///
    /// # Errors
    ///
    /// [`twindex::Error::Corrupt`].
    pub fn for_each_sourced(
        &self,
        hashed: &Hashed,
        work: &mut Work,
        wanted: impl Fn(u64) -> bool,
        mut each: impl FnMut(Gram, Option<(u32, u32)>),
    ) -> Result<()> {
        let own: Vec<u32> = (0..hashed.len()).map(|unit| work.unit_hash(hashed, unit)).collect();
        let width = self.shape.width();
        // Windows that select the same fingerprint follow one another.
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
                let most = (at - windows.start, windows.end - 1 + width - at);
                let own = |unit: usize| own.get(unit).copied();
                let (before, after) = agreeing(own, part.hashes(in_part)?, at, there, most);
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

/// How many units ranges have together.
fn union(mut ranges: Vec<Range<usize>>) -> u32 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut units, mut end) = (0, 0);
    for range in ranges {
        units += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    units as u32
}
