//! Pairs of a document of one index and a document of another.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::segment::{Ask, Scratch};
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Fingerprints of the left that are looked up together, so that their waits for memory overlap.
const BATCH: usize = 1 << 12;

/// Hands each pair of a live document of `left` and a live document of `right` whose fingerprints are within `within`
/// bits to `each`, once, with the distance; in no particular order. Documents of the same key are a pair like any
/// other.
///
/// Each distinct fingerprint of the left is looked up in all segments of the right, in the order of table 1. Time
/// O(n x probes + pairs); memory O(answers of a batch).
///
/// # Errors
/// [`Error::ParamsMismatch`] if fingerprints of the two cannot be compared, [`Error::Invalid`] for a radius that is
/// not answered or an index without fingerprints, [`Error::Corrupt`], or what `each` returns.
pub fn pairs_across(
    left: &Snapshot,
    right: &Snapshot,
    within: u32,
    mut each: impl FnMut(Place<'_>, Place<'_>, u32) -> Result<()>,
) -> Result<()> {
    left.params().check_same_sketch(right.params())?;
    left.check_within(within)?;
    right.check_within(within)?;
    let mut scratch = Scratch::default();
    let (mut ranks, mut fingerprints, mut near) = (Vec::new(), Vec::new(), Vec::new());
    for (segment, deleted) in left.segments() {
        let mut answer = |ranks: &mut Vec<u32>, fingerprints: &mut Vec<u64>| -> Result<()> {
            for (other, other_deleted) in right.segments() {
                near.clear();
                other.search_documents(
                    fingerprints,
                    Ask::within(within),
                    &mut scratch,
                    |query, ordinal, distance| {
                        if !other_deleted.contains(ordinal) {
                            near.push((query, ordinal, distance));
                        }
                        Ok(ControlFlow::Continue(()))
                    },
                )?;
                for &(query, there, distance) in &near {
                    let there = Place { segment: other, ordinal: there };
                    let mut failure = None;
                    segment.postings(ranks[query], |ordinal| {
                        if failure.is_none() && !deleted.contains(ordinal) {
                            failure = each(Place { segment, ordinal }, there, distance).err();
                        }
                    })?;
                    failure.map_or(Ok(()), Err::<(), Error>)?;
                }
            }
            ranks.clear();
            fingerprints.clear();
            Ok(())
        };
        segment.for_each_fingerprint(|rank, fingerprint| {
            ranks.push(rank);
            fingerprints.push(fingerprint);
            if ranks.len() < BATCH { Ok(()) } else { answer(&mut ranks, &mut fingerprints) }
        })?;
        answer(&mut ranks, &mut fingerprints)?;
    }
    Ok(())
}
