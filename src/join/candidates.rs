//! Candidate pairs: documents that share a band (Broder's fungible documents with threshold 1; the LSH bands of
//! Indyk and Motwani 1998).

use std::collections::BTreeMap;
use std::path::Path;

use super::prefix::{MEETINGS, MEETINGS_LEAST};
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
    /// The cap: `max_bucket`, or less to bound the work.
    pub cap: u64,
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
    let mut entries: Vec<(u32, u32)> = Vec::new();
    let mut read = |band| {
        entries.clear();
        for ((segment, _), numbers) in snapshot.segments().zip(&numbers) {
            segment.for_each_band_entry(band, |key, ordinal| {
                entries.extend(numbers[ordinal as usize].map(|number| (key, number)));
                Ok(())
            })?;
        }
        entries.sort_unstable();
        entries.dedup();
        Ok::<_, Error>(std::mem::take(&mut entries))
    };
    // How many buckets there are of each size, of those that have the most pairs.
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    let mut small = 0;
    for band in 0..bands {
        for bucket in read(band)?.chunk_by(|a, b| a.0 == b.0) {
            match bucket.len() as u64 {
                size @ 0..SMALL => small += size * size / 2,
                size => *sizes.entry(size).or_default() += 1,
            }
        }
    }
    let documents: usize = numbers.iter().map(Vec::len).sum();
    let cap = cap(&sizes, small, max_bucket as u64, documents as u64);
    let (mut capped_buckets, mut largest_bucket) = (0, 0);
    let mut pairs = Sorter::new(dir, memory);
    for band in 0..bands {
        let entries = read(band)?;
        for bucket in entries.chunk_by(|a, b| a.0 == b.0) {
            largest_bucket = largest_bucket.max(bucket.len() as u64);
            let mut pair = |a: (u32, u32), b: (u32, u32)| pairs.push(u64::from(a.1) << 32 | u64::from(b.1));
            if bucket.len() as u64 > cap {
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
    Ok(Candidates { pairs: pairs.finish()?, capped_buckets, largest_bucket, cap })
}

/// Buckets of fewer members are never capped.
const SMALL: u64 = 64;

/// The largest size up to which buckets may be paired all with all: `max_bucket`, or what leaves no more pairs than
/// [`MEETINGS`] a document, or 100 million in all where that is more. `sizes` has the number of buckets of each size.
fn cap(sizes: &BTreeMap<u64, u64>, small: u64, max_bucket: u64, documents: u64) -> u64 {
    let mut left = (MEETINGS * documents).max(MEETINGS_LEAST).saturating_sub(small);
    for (&size, &buckets) in sizes.range(..=max_bucket) {
        let pairs = (size * size / 2).saturating_mul(buckets);
        match left.checked_sub(pairs) {
            Some(less) => left = less,
            None => return (size - 1).max(SMALL),
        }
    }
    max_bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_capped_where_their_pairs_would_be_more_than_the_bound() {
        let sizes = BTreeMap::from([(100, 1000), (5000, 6), (9000, 3), (20_000, 1)]);
        assert_eq!(cap(&sizes, 0, 10_000, 10), 8999, "5 million, 75 million, and 121 million more");
        assert_eq!(cap(&sizes, 0, 10_000, 100_000), 10_000);
        assert_eq!(cap(&sizes, 90_000_000, 10_000, 10), 4999);
        assert_eq!(cap(&sizes, 0, 300, 10), 300);
        assert_eq!(cap(&sizes, u64::MAX, 10_000, 10), 99);
        assert_eq!(cap(&BTreeMap::new(), 0, 2, 10), 2);
    }
}
