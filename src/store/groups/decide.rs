//! Computes the leader of one document: the first document near it that is itself a leader. To decide whether a near
//! document is a leader, its own near documents are decided first.
//!
//! The recursion uses a stack on the heap, so a long chain of documents does not overflow the thread's stack. Each query
//! finds the documents near one document. Those that precede it are decided in order, until one of them is a leader.
//!
//! A document that waits for decisions keeps only its next few candidates, and searches for more when these are
//! decided. So each document of a chain takes at most 32 KiB for candidates, even if it has many, plus about 32 bytes
//! for each one that is known not to be a leader.
//!
//! A cached result adds the number of queries that computed it, as if it were computed again. So the number of queries
//! for a document depends only on the snapshot, and a limit on queries always gives the same result.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_128;

use super::answer::Decision;
use super::candidates::{LeaderCandidate, Span};
use super::near::{GroupRule, Neighbourhood, PriorityRank};
use crate::error::Result;
use crate::store::known_leaders::{DocRef, KnownLeader};
use crate::store::query::Query;

/// Number of candidates that the first search for a document returns if candidates must be compared. The leader is
/// usually one of them.
const HELD_FIRST: usize = 32;
/// Maximum number of candidates that a waiting document keeps.
const HELD: usize = 1024;

/// A limit on the number of queries, and the number of queries made so far.
pub(super) struct QueryLimit {
    max: u64,
    spent: u64,
}

impl QueryLimit {
    pub(super) fn new(max: u64) -> Self {
        Self { max, spent: 0 }
    }

    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// Adds `queries` to the number of queries made. Returns false if the sum exceeds the limit.
    fn spend(&mut self, queries: u64) -> bool {
        self.spent = self.spent.saturating_add(queries);
        // guard: a document is undecided by its own count of queries
        // without it: self.spent <= self.max -> true
        self.spent <= self.max
    }
}

/// A document whose leader is being computed. It waits until its candidates are decided.
struct DecisionFrame {
    document: DocRef,
    rank: PriorityRank,
    /// The number of queries made before this document was reached.
    before: u64,
    /// The next few documents that precede this one and can be near it, in the order of priority.
    candidates: Vec<LeaderCandidate>,
    /// The position in `candidates` of the candidate that is being decided.
    next: usize,
    /// The number of candidates to read next.
    count: usize,
    /// Whether the document has more candidates after the last one in `candidates`.
    has_more: bool,
    /// Candidates known not to be leaders; the key is the hash of their contents.
    refuted: HashMap<u128, DocRef>,
}

impl Neighbourhood {
    /// Returns the leader of a document; undecided if this needs more queries than the budget allows.
    pub(super) fn leader(&self, of: DocRef, budget: &mut QueryLimit) -> Result<Decision<DocRef>> {
        let known_leaders = &self.state.known_leaders;
        let mut stack: Vec<DecisionFrame> = Vec::new();
        let mut asked = of;
        let mut query = None;
        loop {
            // Takes the leader of the document from the cache. If it is not cached, pushes a frame to compute it.
            let mut answer = known_leaders.get(asked);
            if !budget.spend(answer.map_or(1, |known| known.queries)) {
                return Ok(Decision::Undecided);
            }
            if answer.is_none() {
                stack.push(self.frame(asked, budget.spent - 1)?);
            }
            // Passes the result down the stack of waiting documents, until one of them needs another query.
            loop {
                let Some(frame) = stack.last_mut() else {
                    return Ok(answer.map_or(Decision::Undecided, |known| Decision::Decided(known.leader)));
                };
                let mut leader = None;
                if let Some(known) = answer.take() {
                    let neighbour = frame.candidates[frame.next].document;
                    if known.leader == neighbour {
                        leader = Some(neighbour);
                    } else {
                        self.refute(frame, neighbour)?;
                        frame.next += 1;
                    }
                }
                if leader.is_none() {
                    match self.next_of(frame, &mut query)? {
                        Some(neighbour) => {
                            asked = neighbour;
                            break;
                        }
                        None => leader = Some(frame.document),
                    }
                }
                if let Some(leader) = leader {
                    let known = KnownLeader { leader, queries: budget.spent - frame.before };
                    known_leaders.add(frame.document, known);
                    answer = Some(known);
                    stack.pop();
                }
            }
        }
    }

    /// Creates the frame of a document, and searches for its first candidates.
    fn frame(&self, document: DocRef, before: u64) -> Result<DecisionFrame> {
        let (candidates, refuted) = (Vec::new(), HashMap::new());
        let rank = self.rank(document)?;
        // A search by distance finds all candidates at once. Repeating it would cost more than keeping them.
        let count = if self.rule == GroupRule::Distance { HELD } else { HELD_FIRST };
        let mut frame =
            DecisionFrame { document, rank, before, candidates, next: 0, count, has_more: true, refuted };
        self.hold_next(&mut frame)?;
        Ok(frame)
    }

    /// Replaces the decided candidates of a document with the next ones.
    fn hold_next(&self, frame: &mut DecisionFrame) -> Result<()> {
        let from = frame.candidates.last().map(|last| last.rank);
        let span = Span { from, upto: frame.rank, count: frame.count };
        (frame.candidates, frame.has_more) = self.candidates(frame.document, span)?;
        // The next search would begin after the last of these candidates. If this search finds none, there are no more.
        frame.has_more &= !frame.candidates.is_empty();
        frame.count = (frame.count * 2).min(HELD);
        frame.next = 0;
        Ok(())
    }

    /// Records that a document is not a leader. Later candidates with the same contents are then not leaders either.
    fn refute(&self, frame: &mut DecisionFrame, document: DocRef) -> Result<()> {
        if frame.has_more || frame.next + 1 < frame.candidates.len() {
            let mut bytes = Vec::new();
            self.content(document, &mut bytes)?;
            frame.refuted.entry(xxh3_128(&bytes)).or_insert(document);
        }
        Ok(())
    }

    /// Returns the next candidate that can be a leader; `None` if there are no more. Of documents with the same
    /// contents, only the first can be a leader: it is near the others and precedes them. If it is not a leader, its
    /// leader is also near the others.
    fn next_of(
        &self,
        frame: &mut DecisionFrame,
        query: &mut Option<(DocRef, Query)>,
    ) -> Result<Option<DocRef>> {
        loop {
            if frame.next == frame.candidates.len() && frame.has_more {
                self.hold_next(frame)?;
            }
            let Some(&candidate) = frame.candidates.get(frame.next) else { return Ok(None) };
            let may_lead = (candidate.is_near
                || self.resembles(frame.document, candidate.document, query)?)
                && !self.is_refuted(frame, candidate.document)?;
            if may_lead {
                return Ok(Some(candidate.document));
            }
            frame.next += 1;
        }
    }

    /// Returns whether an earlier document with the same contents is known not to be a leader.
    fn is_refuted(&self, frame: &DecisionFrame, document: DocRef) -> Result<bool> {
        if frame.refuted.is_empty() {
            return Ok(false);
        }
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        self.content(document, &mut mine)?;
        let Some(&same) = frame.refuted.get(&xxh3_128(&mine)) else { return Ok(false) };
        self.content(same, &mut theirs)?;
        Ok(mine == theirs) // false if different contents have the same hash
    }

    /// Returns the leader of a document, and all documents with the same leader, including the leader.
    pub(super) fn group(
        &self,
        of: DocRef,
        budget: &mut QueryLimit,
    ) -> Result<Decision<(DocRef, Vec<DocRef>)>> {
        let Decision::Decided(leader) = self.leader(of, budget)? else { return Ok(Decision::Undecided) };
        if !budget.spend(1) {
            return Ok(Decision::Undecided);
        }
        let mut members = vec![leader];
        // Documents that precede the leader cannot be in its group: their own leaders are even earlier. Documents after
        // the leader that have the same contents as the leader belong to its group.
        let mut known: HashMap<u128, (DocRef, bool)> = HashMap::new();
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        self.content(leader, &mut mine)?;
        known.insert(xxh3_128(&mine), (leader, true));
        for document in self.after(leader)? {
            self.content(document, &mut mine)?;
            let hash = xxh3_128(&mine);
            let mut is_known = None;
            if let Some(&(same, is_member)) = known.get(&hash) {
                self.content(same, &mut theirs)?;
                is_known = (mine == theirs).then_some(is_member);
            }
            let is_member = if let Some(is_member) = is_known {
                is_member
            } else {
                let Decision::Decided(of_it) = self.leader(document, budget)? else {
                    return Ok(Decision::Undecided);
                };
                known.entry(hash).or_insert((document, of_it == leader));
                of_it == leader
            };
            if is_member {
                members.push(document);
            }
        }
        Ok(Decision::Decided((leader, members)))
    }
}
