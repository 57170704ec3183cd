//! All pairs of documents within a Hamming radius.

use super::numbers;
use crate::error::Result;
use crate::segment::Segment;
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Hands each unordered pair of live documents whose fingerprints are within `within` bits to `each`, once, with
/// the distance; in no particular order. Documents with the same fingerprint are a pair at distance 0.
///
/// Each distinct fingerprint of each segment is looked up in all of them, in the order of table 1, so that
/// neighbouring look-ups touch neighbouring buckets. Time O(n x probes + pairs); memory O(answers of one look-up).
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for a radius that is not answered or an index without fingerprints,
/// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
pub fn pairs_within(
    snapshot: &Snapshot,
    within: u32,
    mut each: impl FnMut(Place<'_>, Place<'_>, u32) -> Result<()>,
) -> Result<()> {
    let segments: Vec<&Segment> = snapshot.segments().map(|(segment, _)| segment).collect();
    let place_of = |(segment, ordinal): (usize, u32)| Place { segment: segments[segment], ordinal };
    for_each_neighbourhood(snapshot, within, |mine, near| {
        for &(there, distance) in near {
            // Both sides find the pair; the one that comes first by (segment, ordinal) reports it.
            for &here in mine.iter().filter(|&&here| here < there) {
                each(place_of(here), place_of(there), distance)?;
            }
        }
        Ok(())
    })
}

/// As [`pairs_within`], for pairs of the numbers that `number` gives to documents: each pair of different numbers
/// that some documents within the radius have, the smaller first, with the least distance; ascending. Documents
/// without a number are left out.
///
/// Identical documents that share a number cost no pairs: time O(n x probes + documents near each fingerprint).
/// Memory: 8 bytes a document, and 12 a pair.
///
/// # Errors
/// As [`pairs_within`], or what `number` returns.
pub fn numbered_pairs_within(
    snapshot: &Snapshot,
    within: u32,
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Vec<(u32, u32, u32)>> {
    let numbers = numbers(snapshot, number)?;
    let number_of = |(segment, ordinal): (usize, u32)| numbers[segment][ordinal as usize];
    let mut pairs: Vec<(u32, u32, u32)> = Vec::new();
    for_each_neighbourhood(snapshot, within, |mine, near| {
        let mut left: Vec<u32> = mine.iter().filter_map(|&here| number_of(here)).collect();
        left.sort_unstable();
        left.dedup();
        let mut right: Vec<(u32, u32)> =
            near.iter().filter_map(|&(there, distance)| Some((number_of(there)?, distance))).collect();
        right.sort_unstable();
        right.dedup();
        for &(b, distance) in &right {
            pairs.extend(left.iter().filter(|&&a| a < b).map(|&a| (a, b, distance)));
        }
        Ok(())
    })?;
    pairs.sort_unstable();
    pairs.dedup_by_key(|&mut (a, b, _)| (a, b)); // the first has the least distance
    Ok(pairs)
}

/// For each distinct fingerprint of each segment: its live documents, and the live documents of all segments within
/// the radius, both as (segment, ordinal), the second with their distances.
fn for_each_neighbourhood(
    snapshot: &Snapshot,
    within: u32,
    mut each: impl FnMut(&[(usize, u32)], &[((usize, u32), u32)]) -> Result<()>,
) -> Result<()> {
    snapshot.check_within(within)?;
    let (mut mine, mut near) = (Vec::new(), Vec::new());
    for (here, (segment, deleted)) in snapshot.segments().enumerate() {
        segment.for_each_fingerprint(|rank, fingerprint| {
            mine.clear();
            segment.postings(rank, |ordinal| {
                if !deleted.contains(ordinal) {
                    mine.push((here, ordinal));
                }
            })?;
            if mine.is_empty() {
                return Ok(());
            }
            near.clear();
            for (there, (other, deleted)) in snapshot.segments().enumerate() {
                other.documents_within(fingerprint, within, |ordinal, distance| {
                    if !deleted.contains(ordinal) {
                        near.push(((there, ordinal), distance));
                    }
                })?;
            }
            each(&mine, &near)
        })?;
    }
    Ok(())
}
