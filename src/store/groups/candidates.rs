//! Finds the candidates for a document's leader: documents that precede it by priority and can be near it. Returns a
//! few of them at a time, in the order of priority.
//!
//! The leader is usually among the first candidates. So long buckets are read in the order of priority and only as far as
//! needed, and a candidate is compared only when all earlier candidates are decided.

use super::near::{GroupRule, Neighbourhood, PriorityRank, rank};
use crate::error::Result;
use crate::segment::Segment;
use crate::store::known_leaders::DocRef;
use crate::store::part::IndexPart;
use crate::store::query::Query;

/// A document that can be near the given document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaderCandidate {
    pub(super) rank: PriorityRank,
    pub(super) document: DocRef,
    /// Whether the candidate is known to be near without a comparison.
    pub(super) is_near: bool,
}

/// A range of candidates: the first `count` of the documents whose ranks are above `from` and at most `upto`.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Option<PriorityRank>,
    pub(super) upto: PriorityRank,
    pub(super) count: usize,
}

impl Span {
    fn has(&self, rank: PriorityRank) -> bool {
        self.from.is_none_or(|from| rank > from) && rank <= self.upto
    }
}

/// The candidates collected from one part.
#[derive(Default)]
struct PartCandidates {
    /// Ordinals, possibly repeated, and for each a flag whether the document is known to be near.
    ordinals: Vec<(u32, bool)>,
    has_more: bool,
}

impl PartCandidates {
    fn add(&mut self, ordinal: u32, is_near: bool) {
        self.ordinals.push((ordinal, is_near));
    }

    /// Returns each ordinal once. Its flag is set if any repetition had it set.
    fn distinct(mut self) -> Vec<(u32, bool)> {
        self.ordinals.sort_unstable_by_key(|&(ordinal, is_near)| (ordinal, !is_near));
        self.ordinals.dedup_by_key(|&mut (ordinal, _)| ordinal);
        self.ordinals
    }
}

impl Neighbourhood {
    /// Returns the first candidates of a span, in order, and whether there are more. Documents of equal rank are always
    /// returned together.
    pub(super) fn candidates(&self, of: DocRef, span: Span) -> Result<(Vec<LeaderCandidate>, bool)> {
        let query = self.query_of(of)?;
        let (mut all, mut has_more) = (Vec::new(), false);
        self.for_each_part(|number, part| {
            let mut found = PartCandidates::default();
            if let IndexPart::Segment { segment, .. } = part {
                self.of_segment(&query, segment, part, span, &mut found)?;
            } else {
                query.for_each_candidate(part, |ordinal, is_near| found.add(ordinal, is_near))?;
            }
            has_more |= found.has_more;
            let distinct = found.distinct();
            if let IndexPart::Segment { segment, .. } = part {
                segment.prepare_priorities(distinct.len() as u64)?;
            }
            for (ordinal, is_near) in distinct {
                let (rank, document) = (rank(part, ordinal)?, DocRef { part: number, ordinal });
                if span.has(rank) && document != of {
                    all.push(LeaderCandidate { rank, document, is_near });
                }
            }
            Ok(())
        })?;
        all.sort_unstable();
        if let Some(last) = all.get(span.count.saturating_sub(1)).map(|last| last.rank) {
            let kept = all.partition_point(|candidate| candidate.rank <= last);
            has_more |= kept < all.len();
            all.truncate(kept);
        }
        self.order_by_key(&mut all, of, span.upto)?;
        Ok((all, has_more))
    }

    /// Sorts candidates of equal rank by key, and removes the candidates that have the rank of `of` but a larger key.
    fn order_by_key(&self, all: &mut Vec<LeaderCandidate>, of: DocRef, mine: PriorityRank) -> Result<()> {
        if all.windows(2).all(|two| two[0].rank != two[1].rank)
            && all.last().is_none_or(|last| last.rank < mine)
        {
            return Ok(());
        }
        let mut ordered = Vec::with_capacity(all.len());
        for same in all.chunk_by(|a, b| a.rank == b.rank) {
            let mut documents: Vec<DocRef> = same.iter().map(|candidate| candidate.document).collect();
            if same[0].rank == mine {
                self.retain_by_key(&mut documents, of, |theirs, mine| theirs < mine)?;
            }
            self.sort_by_key(&mut documents)?;
            for document in documents {
                ordered.extend(same.iter().find(|candidate| candidate.document == document));
            }
        }
        *all = ordered;
        Ok(())
    }

    /// Collects candidates from the buckets of a segment: the first live documents of the span from each long bucket,
    /// and all live documents from the others.
    fn of_segment(
        &self,
        query: &Query,
        segment: &Segment,
        part: &IndexPart<'_>,
        span: Span,
        found: &mut PartCandidates,
    ) -> Result<()> {
        // By the rule `Distance`, documents with equal fingerprints are near each other. Only the first of them can be
        // a leader, so only the first is a candidate.
        let is_one = self.rule == GroupRule::Distance;
        if segment.params().codes.is_some() {
            return query.for_each_candidate(part, |ordinal, is_near| found.add(ordinal, is_near));
        }
        let mut short = Vec::new();
        query.for_each_bucket(segment, |bucket, is_near| {
            short.clear();
            let Some(long) = segment.bucket_by_priority(bucket, &mut short)? else {
                short
                    .iter()
                    .filter(|&&ordinal| part.is_live(ordinal))
                    .for_each(|&ordinal| found.add(ordinal, is_near));
                return Ok(());
            };
            if is_one {
                if let Some(&first) = long.iter().find(|&&ordinal| part.is_live(ordinal)) {
                    found.add(first, is_near);
                }
                return Ok(());
            }
            let start = match span.from {
                Some(from) => places_upto(&long, |ordinal| Ok(rank(part, ordinal)? <= from))?,
                None => 0,
            };
            let (mut taken, mut last) = (0, None);
            for &ordinal in long[start..].iter().filter(|&&ordinal| part.is_live(ordinal)) {
                let rank = rank(part, ordinal)?;
                if rank > span.upto {
                    break;
                }
                if taken >= span.count && last != Some(rank) {
                    found.has_more = true;
                    break;
                }
                found.add(ordinal, is_near);
                (taken, last) = (taken + 1, Some(rank));
            }
            Ok(())
        })
    }

    /// Returns whether a candidate resembles the document `of`. `asked` caches the query of the previous call.
    pub(super) fn resembles(
        &self,
        of: DocRef,
        candidate: DocRef,
        asked: &mut Option<(DocRef, Query)>,
    ) -> Result<bool> {
        let query = match asked.take() {
            Some((document, query)) if document == of => query,
            _ => self.query_of(of)?,
        };
        let near = self.read(candidate, |part, ordinal| query.resembles(part, ordinal, &mut Vec::new()))?;
        *asked = Some((of, query));
        Ok(near)
    }
}

/// Returns the number of leading entries of a list for which `is_before` is true. The list must begin with all entries
/// for which it is true.
fn places_upto(list: &[u32], is_before: impl Fn(u32) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, list.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(list[middle])? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
