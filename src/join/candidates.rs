//! Candidate pairs: documents that share a band (Broder's fungible documents with threshold 1; the LSH bands of
//! Indyk and Motwani 1998).

use std::path::Path;

use super::runs::{Sorted, Sorter};
use crate::error::{Error, Result};
use crate::store::Snapshot;
use crate::store::snapshot::Place;

/// Candidate pairs, and what was left out.
#[derive(Debug)]
pub struct Candidates {
    pairs: Sorted<u64>,
    /// Buckets with more members than the cap. Of these, only the pairs of neighbours in ascending order and the
    /// pairs with the first member are candidates, so that a chain stays connected at linear cost.
    pub capped_buckets: u64,
    /// Members of the largest bucket.
    pub largest_bucket: u64,
}

impl Candidates {
    /// Hands the pairs of numbers to `each`, many at a time: the smaller first, each once, ascending.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file, or what `each` returns.
    pub fn for_each_batch<E: From<Error>>(
        &self,
        mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut batch = Vec::with_capacity(BATCH);
        self.pairs.for_each(|pair| {
            batch.push(((pair >> 32) as u32, pair as u32));
            if batch.len() < BATCH {
                return Ok::<(), E>(());
            }
            each(&batch)?;
            batch.clear();
            Ok::<(), E>(())
        })?;
        each(&batch)
    }
}

/// Pairs that are handed out at once.
const BATCH: usize = 1 << 14;

/// The pairs of documents that share at least one band. `number` gives documents their numbers; documents of the
/// same number count as one (identical documents need no comparison), documents without one are left out.
///
/// Memory: 12 bytes a document, and `memory` bytes for pairs; what is more goes to an unnamed file in `dir`.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`] from the scratch file, or what `number` returns.
pub fn candidates(
    snapshot: &Snapshot,
    max_bucket: usize,
    (dir, memory): (&Path, usize),
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    let bands = snapshot.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
    let numbers = super::numbers(snapshot, number)?;
    let (mut capped_buckets, mut largest_bucket) = (0, 0);
    let mut entries: Vec<(u32, u32)> = Vec::new();
    let mut pairs = Sorter::new(dir, memory);
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
            largest_bucket = largest_bucket.max(bucket.len() as u64);
            let mut pair = |a: (u32, u32), b: (u32, u32)| pairs.push(u64::from(a.1) << 32 | u64::from(b.1));
            if bucket.len() > max_bucket {
                capped_buckets += 1;
                bucket.windows(2).try_for_each(|two| pair(two[0], two[1]))?;
                bucket[1..].iter().try_for_each(|&member| pair(bucket[0], member))?;
            } else {
                for (place, &a) in bucket.iter().enumerate() {
                    bucket[place + 1..].iter().try_for_each(|&b| pair(a, b))?;
                }
            }
        }
    }
    Ok(Candidates { pairs: pairs.finish()?, capped_buckets, largest_bucket })
}
