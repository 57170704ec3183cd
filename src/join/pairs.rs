//! All pairs of documents within a Hamming radius.

use crate::error::Result;
use crate::segment::Segment;
use crate::sketch::Fingerprint;
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Hands each unordered pair of live documents whose fingerprints are within `within` bits to `each`, once, with
/// the distance; in no particular order. Documents with the same fingerprint are a pair at distance 0.
///
/// Each distinct fingerprint of each segment is looked up in all of them, in the order of table 1, so that
/// neighbouring look-ups touch neighbouring buckets. Time O(n x probes); memory O(answers of one look-up).
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for a radius that is not answered,
/// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
pub fn pairs_within(
    snapshot: &Snapshot,
    within: u32,
    mut each: impl FnMut(Place<'_>, Place<'_>, u32) -> Result<()>,
) -> Result<()> {
    let segments: Vec<_> = snapshot.segments().collect();
    let place_of = |segment: &Segment| segments.iter().position(|(other, _)| std::ptr::eq(*other, segment));
    let mut mine: Vec<u32> = Vec::new();
    let mut near: Vec<(usize, u32, u32)> = Vec::new();
    for (here, &(segment, deleted)) in segments.iter().enumerate() {
        segment.for_each_fingerprint(|rank, fingerprint| {
            mine.clear();
            segment.postings(rank, |ordinal| {
                if !deleted.contains(ordinal) {
                    mine.push(ordinal);
                }
            })?;
            if mine.is_empty() {
                return Ok(());
            }
            near.clear();
            snapshot.for_each_within(Fingerprint(fingerprint), within, |place, distance| {
                near.push((place_of(place.segment).unwrap_or(0), place.ordinal, distance));
            })?;
            for &(there, other, distance) in &near {
                for &ordinal in &mine {
                    // Both sides find the pair; the one that comes first by (segment, ordinal) reports it.
                    if (here, ordinal) < (there, other) {
                        let (a, b) = (
                            Place { segment, ordinal },
                            Place { segment: segments[there].0, ordinal: other },
                        );
                        each(a, b, distance)?;
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
