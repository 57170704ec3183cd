//! Finds the single nearest document by fingerprint, for `admit`.

use std::ops::ControlFlow;

use super::part::IndexPart;
use crate::error::Result;
use crate::key::KeyBuf;
use crate::segment::{SearchOptions, SearchScratch};

/// Returns the live document nearest to `fingerprint` within a radius, as its distance and its key; `None` if there is none.
/// Of equally near documents, it returns the one with the smallest key.
///
/// In a segment, only the first live document of each fingerprint is read: it has the smallest key, because ordinals
/// ascend with keys. So even if many documents share a fingerprint, one key is read.
pub(super) fn nearest<'a>(
    parts: impl Iterator<Item = IndexPart<'a>>,
    fingerprint: u64,
    within: u32,
    scratch: &mut SearchScratch,
) -> Result<Option<(u32, KeyBuf)>> {
    let mut best: Option<(u32, KeyBuf)> = None;
    let mut ranks: Vec<(u32, u32)> = Vec::new();
    for part in parts {
        let radius = best.as_ref().map_or(within, |best| best.0);
        match &part {
            IndexPart::Segment { segment, deleted } => {
                ranks.clear();
                segment.search(&[fingerprint], SearchOptions::within(radius), scratch, |_, near| {
                    ranks.push((near.distance, near.rank));
                    Ok(ControlFlow::Continue(()))
                })?;
                ranks.sort_unstable();
                let mut reached = None;
                for &(distance, rank) in &ranks {
                    if reached.is_some_and(|reached| distance > reached) {
                        break;
                    }
                    let mut first = None;
                    segment.postings_until(rank, |ordinal| {
                        first = Some(ordinal).filter(|&ordinal| !deleted.contains(ordinal));
                        if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    })?;
                    let Some(ordinal) = first else { continue };
                    reached = Some(distance);
                    let found = (distance, segment.key(ordinal)?);
                    if best.as_ref().is_none_or(|best| found < *best) {
                        best = Some(found);
                    }
                }
            }
            IndexPart::Memory(memory) => {
                memory.nearest(fingerprint, radius, |first, distance| {
                    let rows = memory.equal_rows(first, 1);
                    for &row in &rows {
                        let found = (distance, part.key(row)?);
                        if best.as_ref().is_none_or(|best| found < *best) {
                            best = Some(found);
                        }
                    }
                    Ok(!rows.is_empty())
                })?;
            }
        }
        part.check_map()?;
    }
    Ok(best)
}
