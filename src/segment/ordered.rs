//! Buckets by priority: the first documents of a bucket.
//!
//! A bucket lists documents in the order of their ordinals. A query by priority needs the first few. So a long bucket
//! is sorted by priority at its first use, and its order is kept while the segment is open: 4 bytes an entry. Short
//! buckets are read each time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::held::Bucket;
use super::open::{Fingerprints, Segment};
use crate::error::Result;
use crate::format::postings::{self, Posting};

/// The number of documents from which on the order of a bucket is kept.
const LONG: usize = 32;
/// The priorities of all documents are kept once the number read reaches the number of documents divided by this.
const READS: u64 = 8;
/// Priorities that are read one by one before all are kept, however small the segment is.
const READS_MIN: u64 = 4096;

impl Segment {
    /// The ordinals of a long bucket by priority, including deleted ones. The ordinals of a short bucket are appended
    /// to `short` in no particular order, and `None` is returned.
    ///
    /// Takes O(n log n) for a bucket of n documents the first time, O(1) afterwards.
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
        // Ordinals ascend with keys, which break ties of priority.
        let mut keyed: Vec<([u64; 2], u32)> = ordinals.into_iter().map(by_priority).collect::<Result<_>>()?;
        keyed.sort_unstable();
        let sorted: Arc<[u32]> = keyed.into_iter().map(|(_, ordinal)| ordinal).collect();
        self.check_map()?;
        // Another thread may have stored the same order first.
        self.ordered.lock().add(bucket, &sorted, self.documents());
        Ok(Some(sorted))
    }

    /// Prepares for `reads` more calls of [`priority`](Self::priority): keeps the priorities of all documents, 16 bytes
    /// for each, once that costs less than the calls so far did.
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

    /// Entries of a bucket.
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

    /// The number of documents that have the fingerprint of a rank.
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
