//! Candidate pairs: documents that share a band (Broder's fungible documents with threshold 1; the LSH bands of
//! Indyk and Motwani 1998).

use crate::error::Result;
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Pairs waiting beyond which repetitions are weeded out.
const WEED: usize = 1 << 24;

/// Candidate pairs, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
/// Memory: 12 bytes a document, and 8 a pair.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt), or what `number` returns.
pub fn candidates(
    snapshot: &Snapshot,
    max_bucket: usize,
    mut number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    let bands = snapshot.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
    let numbers: Vec<Vec<Option<u32>>> = snapshot
        .segments()
        .map(|(segment, deleted)| {
            let mut number = |ordinal| number(Place { segment, ordinal });
            (0..segment.documents() as u32)
                .map(|ordinal| if deleted.contains(ordinal) { Ok(None) } else { number(ordinal) })
                .collect()
        })
        .collect::<Result<_>>()?;
    let mut found = Candidates::default();
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let mut weed_at = WEED;
    let mut entries: Vec<(u32, u32)> = Vec::new();
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
            if pairs.len() >= weed_at {
                weed(&mut pairs);
                weed_at = WEED.max(pairs.len() * 2);
            }
        }
    }
    weed(&mut pairs);
    found.pairs = pairs;
    Ok(found)
}

fn weed(pairs: &mut Vec<(u32, u32)>) {
    pairs.sort_unstable();
    pairs.dedup();
}
