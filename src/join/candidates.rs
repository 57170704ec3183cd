//! Candidate pairs: documents that share a band (Broder's fungible documents with threshold 1; the LSH bands of
//! Indyk and Motwani 1998).

use crate::error::Result;
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Candidate pairs, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidates {
    /// Pairs of numbers, the smaller first, each once, ascending.
    pub pairs: Vec<(u32, u32)>,
    /// Buckets with more members than the cap. Of these, only the pairs of neighbours in ascending order and the
    /// pairs with the first member are candidates, so that a chain stays connected at linear cost.
    pub capped_buckets: u64,
    /// Members of the largest bucket.
    pub largest_bucket: u64,
}

/// The pairs of documents that share at least one band. `number` gives documents their numbers; documents of the
/// same number count as one (identical documents need no comparison), documents without one are left out.
///
/// Memory: 16 bytes a document, and up to 24 a pair while a band is taken in.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt), or what `number` returns.
pub fn candidates(
    snapshot: &Snapshot,
    max_bucket: usize,
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    let bands = snapshot.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
    let numbers = super::numbers(snapshot, number)?;
    let mut found = Candidates::default();
    let mut entries: Vec<(u32, u32)> = Vec::new();
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for band in 0..bands {
        entries.clear();
        for ((segment, _), numbers) in snapshot.segments().zip(&numbers) {
            segment.for_each_band_entry(band, |key, ordinal| {
                entries.extend(numbers[ordinal as usize].map(|number| (key, number)));
                Ok(())
            })?;
        }
        entries.sort_unstable();
        entries.dedup();
        for bucket in entries.chunk_by(|a, b| a.0 == b.0) {
            found.largest_bucket = found.largest_bucket.max(bucket.len() as u64);
            if bucket.len() > max_bucket {
                found.capped_buckets += 1;
                pairs.extend(bucket.windows(2).map(|pair| (pair[0].1, pair[1].1)));
                pairs.extend(bucket[1..].iter().map(|member| (bucket[0].1, member.1)));
            } else {
                for (place, a) in bucket.iter().enumerate() {
                    pairs.extend(bucket[place + 1..].iter().map(|b| (a.1, b.1)));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        found.pairs = union(&found.pairs, &pairs);
        pairs.clear();
    }
    Ok(found)
}

/// The union of two ascending lists. A bucket that many bands agree on is sorted once a band and merged, not
/// gathered from all bands.
fn union(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut both = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        both.push(a[i].min(b[j]));
        let (from_a, from_b) = (a[i] <= b[j], b[j] <= a[i]);
        i += usize::from(from_a);
        j += usize::from(from_b);
    }
    both.extend_from_slice(&a[i..]);
    both.extend_from_slice(&b[j..]);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_is_ascending_and_has_each_pair_once() {
        let (a, b) = ([(0, 1), (0, 3), (2, 3)], [(0, 2), (0, 3), (5, 6), (7, 8)]);
        let both = vec![(0, 1), (0, 2), (0, 3), (2, 3), (5, 6), (7, 8)];
        assert_eq!((union(&a, &b), union(&b, &a)), (both.clone(), both));
        assert_eq!((union(&a, &[]), union(&[], &b)), (a.to_vec(), b.to_vec()));
    }
}
