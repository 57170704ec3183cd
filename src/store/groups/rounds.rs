//! Rounds of a sweep. One round computes the near documents of several documents at once.
//!
//! Documents are queried in the order of priority, several per round. A query is wasted if its document joins the group
//! of an earlier document of the same round. So rounds grow while few queries are wasted, and shrink while many are. If
//! only the distance of fingerprints decides which documents are near, one search of the tables runs all queries of a
//! round: memory accesses overlap, and queries with equal prefixes share buckets.

use std::ops::{ControlFlow, Range};

use super::listing::Groups;
use super::near::Neighbourhood;
use super::order::{NONE, Turn};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::segment::{SearchOptions, SearchScratch};
use crate::sys::threads::on_threads;

/// Number of documents per thread in the first round.
const FIRST: usize = 32;
/// Number of work items per thread in a round.
const PIECES: usize = 4;

/// Limits on the size of a round. They do not affect the groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundLimits {
    /// Maximum number of documents in a round.
    pub(super) documents: usize,
    /// Maximum number of near documents that a round may keep. It does not apply to a round of one query.
    pub(super) found: usize,
}

impl RoundLimits {
    /// Returns limits with which a round keeps at most a sixteenth of `memory` bytes.
    pub(super) fn within(memory: usize) -> Self {
        Self { documents: 1 << 15, found: (memory / 16 / size_of::<(u32, u32)>()).max(1 << 12) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RoundSize {
    pub(super) documents: usize,
    min: usize,
    max: usize,
}

impl RoundSize {
    /// Creates the size of the first round. It is 1 if a single thread compares documents one after the other; then no
    /// query is wasted.
    pub(super) fn new(limits: RoundLimits, threads: usize, searches_together: bool) -> Self {
        let max = if threads == 1 && !searches_together { 1 } else { limits.documents.max(1) };
        let min = (FIRST * threads).min(max);
        Self { documents: min, min, max }
    }

    /// Sets the size of the next round. `documents` is the size of the last round, and `wasted` the number of its documents
    /// whose queries were not needed.
    pub(super) fn adjust(&mut self, documents: usize, wasted: usize) {
        if wasted * 4 > documents {
            self.documents = (self.documents / 2).max(self.min.min(self.documents));
        } else if wasted * 8 <= documents && documents >= self.documents {
            self.documents = (self.documents * 2).min(self.max);
        }
    }

    /// Halves the size of the round, after a round of two or more found more near documents than it may keep.
    pub(super) fn shrink(&mut self, documents: usize) {
        self.documents = documents / 2;
    }
}

/// The result of a round: the documents without a leader that are near the documents of the round.
#[derive(Debug)]
pub(super) struct NearDocuments {
    /// For each document of the round, the number of its query; `NONE` if the document is near no document.
    query_of: Vec<u32>,
    /// Number of queries made.
    pub(super) queries: u64,
    /// Pairs of a query number and the number of a near document, ascending by query number.
    found: Vec<(u32, u32)>,
}

impl NearDocuments {
    /// Returns the numbers of the documents near the document at this position in the round.
    pub(super) fn of(&self, place: usize) -> impl Iterator<Item = u32> + '_ {
        let query = self.query_of[place];
        let start = self.found.partition_point(|&(of, _)| of < query);
        self.found[start..].iter().take_while(move |&&(of, _)| of == query).map(|&(_, number)| number)
    }
}

/// Runs the queries of rounds.
pub(super) struct RoundSearch<'a> {
    pub(super) around: &'a Neighbourhood,
    pub(super) groups: &'a Groups,
    pub(super) threads: usize,
    pub(super) limits: RoundLimits,
    pub(super) cancel: Option<&'a Cancel>,
}

impl RoundSearch<'_> {
    /// Runs the queries of a round. Returns `None` if they find more documents than the round may keep, and the round
    /// has two or more documents.
    pub(super) fn near(&self, round: &[Turn]) -> Result<Option<NearDocuments>> {
        let Some(radius) = self.around.radius() else {
            let query_of: Vec<u32> = (0..round.len() as u32).collect();
            return self.on_pieces(query_of, round.len(), |range, max| self.by_rule(round, range, max));
        };
        // Documents with the same fingerprint are near the same documents.
        let mut order: Vec<(u64, u32)> =
            (0..).zip(round).filter_map(|(at, of)| Some((of.fingerprint?, at))).collect();
        order.sort_unstable();
        let (mut query_of, mut queries) = (vec![NONE; round.len()], Vec::new());
        for (fingerprint, at) in order {
            if queries.last() != Some(&fingerprint) {
                queries.push(fingerprint);
            }
            query_of[at as usize] = queries.len() as u32 - 1;
        }
        self.on_pieces(query_of, queries.len(), |range, max| self.by_distance(&queries, range, radius, max))
    }

    /// Splits `queries` queries into ranges that threads process. `search` runs the queries of one range, and returns
    /// `None` if they find more documents than its second argument. A single query may find any number.
    fn on_pieces(
        &self,
        query_of: Vec<u32>,
        queries: usize,
        search: impl Fn(Range<usize>, usize) -> Result<Option<Vec<(u32, u32)>>> + Sync,
    ) -> Result<Option<NearDocuments>> {
        let pieces = queries.min(self.threads * PIECES);
        let max = self.limits.found / pieces.max(1);
        let states = &mut vec![(); self.threads.max(1)];
        let found = on_threads(states, &(0..pieces).collect::<Vec<_>>(), |(), &piece| {
            let range = queries * piece / pieces..queries * (piece + 1) / pieces;
            let max = if queries == 1 { usize::MAX } else { max };
            search(range, max)
        })?;
        let found: Option<Vec<_>> = found.into_iter().collect();
        Ok(found.map(|found| NearDocuments { query_of, queries: queries as u64, found: found.concat() }))
    }

    /// Queries the documents of a round one by one, by the near relation of the index.
    fn by_rule(&self, round: &[Turn], range: Range<usize>, max: usize) -> Result<Option<Vec<(u32, u32)>>> {
        let (numbers, mut found) = (&self.groups.numbers, Vec::new());
        for place in range {
            self.cancel.map_or(Ok(()), Cancel::check)?;
            self.around.for_each_near(
                numbers.place(round[place].number),
                |document, _| Ok(self.groups.is_undecided(numbers.number(document))),
                |document, _| {
                    found.push((place as u32, numbers.number(document)));
                    Ok(())
                },
            )?;
            if found.len() > max {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Searches the tables for fingerprints within `radius` of these queries.
    fn by_distance(
        &self,
        queries: &[u64],
        range: Range<usize>,
        radius: u32,
        max: usize,
    ) -> Result<Option<Vec<(u32, u32)>>> {
        let (mut found, mut has_more) = (Vec::new(), false);
        let mut scratch = SearchScratch::default();
        let first = range.start as u32;
        for (start, segment, deleted) in self.groups.numbers.segments() {
            let queries = &queries[range.clone()];
            segment.search_documents(
                queries,
                SearchOptions::within(radius),
                &mut scratch,
                |query, ordinal, _| {
                    let number = start + ordinal;
                    if !self.groups.is_undecided(number) || deleted.contains(ordinal) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    if found.len() >= max {
                        has_more = true;
                        return Ok(ControlFlow::Break(()));
                    }
                    found.push((first + query as u32, number));
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            segment.check_map()?;
            if has_more {
                return Ok(None);
            }
        }
        found.sort_unstable();
        Ok(Some(found))
    }
}
