//! Surveys the removed documents of a run: why each was removed, how near it is to the kept one, and which pairs of
//! documents the page shows.

use std::collections::BinaryHeap;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::results::code_lines::same_code;
use crate::results::page::scores::ScoreCounts;
use crate::rule::clusters::Clusters;
use crate::rule::score::{Score, ScoreKind};
use crate::settings::near::Near;
use crate::stored::corpus::Corpus;
use crate::stored::drawn::{DRAWN, LINE_MAX, draw, order_against};

/// Maximum number of pairs with the same words whose texts are read again to compare lines of code, and maximum total
/// length of their lines in bytes.
const SAME_READ: (usize, usize) = (2048, 8 << 20);

/// Number of removed documents by the difference to the document that is kept for them. Documents that were removed
/// because of a history are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RemovedKinds {
    /// Number of documents whose text equals the text of the kept document: byte for byte or, if normalised texts are
    /// compared, after normalization.
    pub identical: u64,
    /// Number of documents with the same shingles and the same number of tokens as the kept document, but other bytes.
    /// They differ only in what is not compared: by default in case, symbols and white space.
    pub same_words: u64,
    /// Number of all other removed documents.
    pub near: u64,
    /// Number of documents of `same_words` that were read again, drawn by the hashes of their keys.
    pub same_words_read: u64,
    /// Number of documents read again that differ in a line of code from the kept one.
    pub same_words_in_code: u64,
}

/// The bands of scores from which pairs are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Band {
    /// At the threshold, or a little above it.
    Edge,
    /// Between the other two bands.
    Middle,
    /// The highest score.
    Same,
}

impl Band {
    pub(crate) fn of_distance(distance: u32, within: u32) -> Self {
        match distance {
            0 => Self::Same,
            distance if distance >= within => Self::Edge,
            _ => Self::Middle,
        }
    }

    /// Returns the band of a resemblance or containment.
    pub(crate) fn of_share(share: f64, threshold: f64) -> Self {
        match share {
            share if share >= 1.0 => Self::Same,
            share if share < threshold + (1.0 - threshold) / 4.0 => Self::Edge,
            _ => Self::Middle,
        }
    }
}

/// A removed document and the document that is kept for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DrawnPair {
    /// A hash of the key of the removed document. The pairs with the smallest hashes are drawn.
    hash: u64,
    pub(crate) removed: u32,
    pub(crate) kept: u32,
    /// The packed score.
    pub(crate) score: u64,
}

impl DrawnPair {
    pub(crate) fn new(hash: u64, removed: u32, kept: u32, score: Score) -> Self {
        Self { hash, removed, kept, score: score.pack() }
    }
}

/// The result of the survey.
pub(crate) struct Survey {
    pub(crate) kinds: RemovedKinds,
    /// Number of documents in `kinds.near` with a score of 0.9 or more.
    pub(crate) nearest: u64,
    /// Sum of the lengths of the texts of all removed documents, in bytes.
    pub(crate) text_bytes: u64,
    pub(crate) scores: ScoreCounts,
    pub(crate) edge: Vec<DrawnPair>,
    pub(crate) middle: Vec<DrawnPair>,
    pub(crate) same: Vec<DrawnPair>,
    /// Pairs whose kept document belongs to a history.
    pub(crate) against: Vec<DrawnPair>,
}

impl Survey {
    /// Surveys the removed documents. Reads texts again only to compare lines of code.
    pub(crate) fn of(
        corpus: &Corpus,
        clusters: &Clusters,
        (kind, near): (ScoreKind, Near),
    ) -> anyhow::Result<Self> {
        let mut survey = Self {
            kinds: RemovedKinds::default(),
            nearest: 0,
            text_bytes: corpus.dropped_text_bytes,
            scores: ScoreCounts::new(kind, near),
            edge: Vec::new(),
            middle: Vec::new(),
            same: Vec::new(),
            against: Vec::new(),
        };
        let mut same_words = BinaryHeap::new();
        let grouped = &corpus.grouped;
        for removed in corpus.documents() {
            let group = grouped.group_of[removed as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept == removed {
                continue;
            }
            survey.text_bytes += corpus.text_bytes(removed);
            let is_short = [removed, kept].iter().all(|&document| corpus.line_length(document) <= LINE_MAX);
            let key = corpus.keys.get(removed);
            if kept < corpus.history {
                let score = clusters.score(grouped, group);
                let pair = DrawnPair::new(order_against(key, score), removed, kept, score);
                if is_short {
                    draw(&mut survey.against, DRAWN, pair, have_same_kept);
                }
                continue;
            }
            let of_kept = grouped.group_of[kept as usize];
            if of_kept == group {
                survey.kinds.identical += 1;
                continue;
            }
            let score = clusters.score(grouped, group);
            let pair = DrawnPair::new(xxh3_64(key), removed, kept, score);
            let is_highest = score.is_highest();
            if is_highest && kind != ScoreKind::Distance && grouped.has_equal_tokens(group, of_kept) {
                survey.kinds.same_words += 1;
                if is_short {
                    same_words.push(pair);
                    if same_words.len() > SAME_READ.0 {
                        same_words.pop();
                    }
                }
            } else {
                survey.kinds.near += 1;
                survey.nearest += u64::from(is_at_least_nine_tenths(score));
            }
            survey.scores.add(score);
            if is_short {
                let drawn = match band(score, near) {
                    Band::Edge => &mut survey.edge,
                    Band::Middle => &mut survey.middle,
                    Band::Same => &mut survey.same,
                };
                draw(drawn, DRAWN, pair, have_same_kept);
            }
        }
        survey.read_same_words(corpus, same_words.into_sorted_vec())?;
        for drawn in [&mut survey.edge, &mut survey.middle, &mut survey.same, &mut survey.against] {
            drawn.sort_unstable_by_key(|pair| (pair.removed, pair.kept));
        }
        Ok(survey)
    }

    /// Reads pairs of documents with the same words again, and counts those that differ in a line of code.
    fn read_same_words(&mut self, corpus: &Corpus, pairs: Vec<DrawnPair>) -> anyhow::Result<()> {
        let mut bytes = 0;
        let fits = |pair: &DrawnPair| {
            bytes += corpus.line_length(pair.removed) + corpus.line_length(pair.kept);
            bytes <= SAME_READ.1
        };
        let mut pairs: Vec<DrawnPair> = pairs.into_iter().take_while(fits).collect();
        pairs.sort_unstable_by_key(|pair| pair.removed);
        let (mut of_removed, mut of_kept) = (corpus.reading(), corpus.reading());
        for DrawnPair { removed, kept, .. } in pairs {
            let texts = (corpus.text(removed, &mut of_removed)?, corpus.text(kept, &mut of_kept)?);
            self.kinds.same_words_read += 1;
            self.kinds.same_words_in_code += u64::from(!same_code(&texts.0, &texts.1));
        }
        Ok(())
    }
}

/// Of the pairs of a kept document, only one is drawn.
fn have_same_kept(a: &DrawnPair, b: &DrawnPair) -> bool {
    a.kept == b.kept
}

fn is_at_least_nine_tenths(score: Score) -> bool {
    match score {
        Score::Resemblance { intersection, union } => 10 * u64::from(intersection) >= 9 * u64::from(union),
        Score::Distance(_) => false,
    }
}

/// Returns the band of a score of two different texts.
fn band(score: Score, near: Near) -> Band {
    match (score, near) {
        (Score::Distance(distance), Near::Within(within)) => Band::of_distance(distance, within.into()),
        (score, near) => {
            let share = score.resemblance().map_or(1.0, |resemblance| resemblance.value());
            Band::of_share(share, near.threshold().unwrap_or(1.0))
        }
    }
}
