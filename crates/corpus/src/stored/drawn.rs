//! Draws documents at random, by the hashes of their keys, and draws some of the documents that were removed because they
//! are near a document of an index.

use std::io;
use std::path::Path;

use twindex::KeyBuf;
use twindex::sys::MemoryBudget;
use xxhash_rust::xxh3::xxh3_64;

use crate::input::content::{Ending, Form};
use crate::rule::score::Score;
use crate::sketching::documents::DocumentLine;
use crate::stored::lines::LineStore;

/// Number of documents that are drawn.
pub(crate) const DRAWN: usize = 4;
/// Documents with a longer line are not drawn, so that the page about a run needs little memory.
pub(crate) const LINE_MAX: usize = 1 << 20;

/// Keeps an element if it is one of the `most` smallest. Of elements that are alike, keeps only the smallest. Returns
/// whether the element was kept.
pub(crate) fn draw<T: Ord>(
    drawn: &mut Vec<T>,
    most: usize,
    one: T,
    are_alike: impl Fn(&T, &T) -> bool,
) -> bool {
    let place = if let Some(place) = drawn.iter_mut().find(|other| are_alike(other, &one)) {
        place
    } else if drawn.len() < most {
        drawn.push(one);
        return true;
    } else if let Some(last) = drawn.iter_mut().max() {
        last
    } else {
        return false;
    };
    let is_smaller = one < *place;
    if is_smaller {
        *place = one;
    }
    is_smaller
}

/// Returns the order in which documents that were removed because of a history are drawn: by the hashes of their keys,
/// and last of all those with the highest score, since their texts are often equal.
pub(crate) fn order_against(key: &[u8], score: Score) -> u64 {
    xxh3_64(key) >> 1 | u64::from(score.is_highest()) << 63
}

/// A document that was removed because it is near a document of an index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DrawnDropped {
    order: u64,
    /// The number of the document among all such documents.
    pub(crate) number: u32,
    /// The number of its line.
    line: usize,
    other: KeyBuf,
    /// The packed score.
    pub(crate) score: u64,
}

/// Some of the documents that were removed because they are near a document of an index, with their lines.
pub(crate) struct DroppedSample {
    drawn: Vec<DrawnDropped>,
    lines: LineStore,
    /// Number of stored lines. Includes the lines of documents that smaller ones have replaced.
    stored: usize,
}

impl DroppedSample {
    /// Creates an empty sample of documents whose lines are packed as for `others`.
    pub(crate) fn new(folder: &Path, budget: &MemoryBudget, others: &LineStore) -> anyhow::Result<Self> {
        Ok(Self { drawn: Vec::new(), lines: others.beside(folder, budget)?, stored: 0 })
    }

    /// Stores the line of a document if it is drawn. `other` is the key of the near document in the index.
    pub(crate) fn add(
        &mut self,
        (number, key): (u32, &[u8]),
        (other, score): (&KeyBuf, Score),
        (form, ending, line): (Form, Ending, &DocumentLine),
    ) -> anyhow::Result<()> {
        let length = match line {
            DocumentLine::Held(line) => line.len(),
            DocumentLine::Packed { length, .. } | DocumentLine::In { length, .. } => *length,
        };
        let order = order_against(key, score);
        let one =
            DrawnDropped { order, number, line: self.stored, other: other.clone(), score: score.pack() };
        if length <= LINE_MAX && draw(&mut self.drawn, DRAWN, one, |a, b| a.other == b.other) {
            self.lines.push(form, ending, line)?;
            self.stored += 1;
        }
        Ok(())
    }

    /// Returns the drawn documents in input order.
    pub(crate) fn drawn(&self) -> Vec<&DrawnDropped> {
        let mut drawn: Vec<_> = self.drawn.iter().collect();
        drawn.sort_unstable_by_key(|one| one.number);
        drawn
    }

    /// Returns the form and the line of a drawn document; `None` if its file has changed.
    pub(crate) fn line(&self, one: &DrawnDropped) -> io::Result<Option<(Form, Vec<u8>)>> {
        Ok(self.lines.get(one.line)?.map(|line| (self.lines.form(one.line), line)))
    }
}
