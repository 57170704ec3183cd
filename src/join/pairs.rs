//! All pairs of documents within a Hamming radius.

use std::path::Path;

use super::numbers;
use super::runs::Sorter;
use crate::error::{Error, Result};
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
/// [`Error::Invalid`] for a radius that is not answered or an index without fingerprints,
/// [`Error::Corrupt`], or what `each` returns.
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

/// As [`pairs_within`], for pairs of the numbers that `number` gives to documents: hands each pair of different numbers
/// that some documents within the radius have to `each`, the smaller first, with the least distance; ascending.
/// Documents without a number are left out.
///
/// Identical documents that share a number cost no pairs: time O(n x probes + documents near each fingerprint).
/// Memory: 8 bytes a document, and `memory` bytes for pairs; what is more goes to an unnamed file in `dir`.
///
/// # Errors
/// As [`pairs_within`], or what `number` returns, or [`Error::Io`] from the scratch file.
pub fn numbered_pairs_within<E: From<Error>>(
    snapshot: &Snapshot,
    within: u32,
    (dir, memory): (&Path, usize),
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
    mut each: impl FnMut(u32, u32, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let numbers = numbers(snapshot, number)?;
    let number_of = |(segment, ordinal): (usize, u32)| numbers[segment][ordinal as usize];
    let mut pairs: Sorter<u128> = Sorter::new(dir, memory);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for_each_neighbourhood(snapshot, within, |mine, near| {
        left.clear();
        left.extend(mine.iter().filter_map(|&here| number_of(here)));
        left.sort_unstable();
        left.dedup();
        right.clear();
        right.extend(near.iter().filter_map(|&(there, distance)| Some((number_of(there)?, distance))));
        right.sort_unstable();
        right.dedup();
        for &(b, distance) in &right {
            for &a in left.iter().filter(|&&a| a < b) {
                pairs.push(u128::from(a) << 64 | u128::from(b) << 32 | u128::from(distance))?;
            }
        }
        Ok(())
    })?;
    let mut last = None;
    pairs.finish()?.for_each(|pair| {
        let (a, b, distance) = ((pair >> 64) as u32, (pair >> 32) as u32, pair as u32);
        // The first has the least distance.
        if last.replace((a, b)) == Some((a, b)) { Ok(()) } else { each(a, b, distance) }
    })
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
