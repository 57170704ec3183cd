//! Reads the documents of a bucket in the order of priority.
//!
//! A bucket stores documents in the order of ordinals, but a query by priority needs only the first few by priority. So
//! a long bucket is sorted by priority at its first use, and the sorted ordinals (4 bytes per document) are cached
//! while the segment is open. Short buckets are read each time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::held::Bucket;
use super::open::{Fingerprints, Segment};
use crate::error::Result;
use crate::format::postings::{self, Posting};

/// Minimum number of documents in a long bucket, which is sorted and cached.
const LONG: usize = 32;
/// All priorities are cached when the number of priorities that were read reaches 1/`READS` of the number of documents.
const READS: u64 = 8;
/// Minimum number of priorities that are read one by one before all of them are cached.
const READS_MIN: u64 = 4096;

impl Segment {
    /// Returns the ordinals of a long bucket in the order of priority, including ordinals of deleted documents. For a short
    /// bucket, returns `None` and appends the ordinals to `short` in no particular order.
    ///
    /// The first call for a bucket of n documents takes O(n log n), later ones O(1).
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn bucket_by_priority(&self, bucket: Bucket, short: &mut Vec<u32>) -> Result<Option<Arc<[u32]>>> {
        if self.bucket_length(bucket)? < LONG {
            self.read_bucket(bucket, |ordinal| short.push(ordinal))?;
            return Ok(None);
        }
        if let Some(known) = self.ordered.lock().get(bucket) {
            return Ok(Some(known));
        }
        let mut ordinals = Vec::new();
        self.read_bucket(bucket, |ordinal| ordinals.push(ordinal))?;
        self.prepare_priorities(ordinals.len() as u64)?;
        let by_priority = |ordinal: u32| Ok((self.priority(ordinal)?, ordinal));
        // Documents of equal priority and equal hash are sorted by ordinal, and so by key.
        let mut keyed: Vec<([u64; 2], u32)> = ordinals.into_iter().map(by_priority).collect::<Result<_>>()?;
        keyed.sort_unstable();
        let sorted: Arc<[u32]> = keyed.into_iter().map(|(_, ordinal)| ordinal).collect();
        self.check_map()?;
        // If another thread has cached the same order in the meantime, replaces that.
        self.ordered.lock().add(bucket, &sorted, self.documents());
        Ok(Some(sorted))
    }

    /// Announces `reads` calls of [`priority`](Self::priority). When single reads have cost more than reading the
    /// priorities of all documents would, caches all of these, 16 bytes per document.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn prepare_priorities(&self, reads: u64) -> Result<()> {
        if self.priorities.get().is_some() {
            return Ok(());
        }
        let before = self.priority_reads.fetch_add(reads, Ordering::Relaxed);
        if before.saturating_add(reads) >= (self.documents() / READS).max(READS_MIN) {
            self.hold_priorities()?;
        }
        Ok(())
    }

    fn bucket_length(&self, bucket: Bucket) -> Result<usize> {
        match bucket {
            Bucket::Fingerprint(rank) => self.posting_count(rank),
            Bucket::Prefix(key) => {
                let Some([_, (section, layout)]) = &self.sets else { return Ok(0) };
                self.count_key(section, layout, key)
            }
            Bucket::Band(band, key) => {
                let (section, layout) = self.band(band)?;
                self.count_key(section, layout, key)
            }
        }
    }

    fn read_bucket(&self, bucket: Bucket, each: impl FnMut(u32)) -> Result<()> {
        match bucket {
            Bucket::Fingerprint(rank) => self.postings(rank, each),
            Bucket::Prefix(key) => {
                let Some([_, (section, layout)]) = &self.sets else { return Ok(()) };
                self.same_key(section, layout, key, each)
            }
            Bucket::Band(band, key) => {
                let (section, layout) = self.band(band)?;
                self.same_key(section, layout, key, each)
            }
        }
    }

    /// Returns the number of documents that have the fingerprint with rank `rank`.
    pub(super) fn posting_count(&self, rank: u32) -> Result<usize> {
        let Some(Fingerprints { postings: section, .. }) = &self.fingerprints else { return Ok(0) };
        let (rank, documents) = (u64::from(rank), self.documents());
        let bytes = self.read(section, postings::range(rank))?;
        match postings::decode(bytes, rank, documents).map_err(|e| self.corrupt_at(section, e))? {
            Posting::One(_) => Ok(1),
            Posting::List(place) => {
                let head = self.read(section, postings::list_head(section.rows, place))?;
                let range = postings::list_range(head, section.rows, place, documents)
                    .map_err(|e| self.corrupt_at(section, e))?;
                Ok((range.end - range.start) as usize / 4)
            }
        }
    }
}
