//! Caches the documents of long buckets, sorted by priority.

use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of cached entries, per document of the segment. If a new bucket would exceed it, all cached buckets
/// are dropped. A dropped bucket is sorted again when it is needed.
const HELD_A_DOCUMENT: usize = 16;
/// Minimum of the limit on cached entries, for small segments.
const HELD_MIN: usize = 1 << 16;

/// Identifies a bucket of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// The documents whose fingerprint has this rank.
    Fingerprint(u32),
    /// The documents with this key in the prefix section. The key is a tag (the upper 32 bits of a shingle hash),
    /// inverted for documents that are marked as duplicates.
    Prefix(u32),
    /// The documents that have this key (second field) in this band (first field, from 0).
    Band(usize, u32),
}

/// The cached buckets: for each, the ordinals of its documents in the order of priority.
#[derive(Debug, Default)]
pub(super) struct HeldOrders {
    by_bucket: HashMap<Bucket, Arc<[u32]>>,
    entries: usize,
}

impl HeldOrders {
    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * self.entries + size_of::<(Bucket, Arc<[u32]>)>() * self.by_bucket.capacity()
    }

    pub(super) fn get(&self, bucket: Bucket) -> Option<Arc<[u32]>> {
        self.by_bucket.get(&bucket).cloned()
    }

    /// Caches a bucket whose ordinals are sorted by priority. `documents` is the number of documents in the segment.
    pub(super) fn add(&mut self, bucket: Bucket, order: &Arc<[u32]>, documents: u64) {
        let max = (documents as usize).saturating_mul(HELD_A_DOCUMENT).max(HELD_MIN);
        if self.entries + order.len() > max {
            *self = Self::default();
        }
        if self.by_bucket.insert(bucket, Arc::clone(order)).is_none() {
            self.entries += order.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_entries_are_bounded_by_the_number_of_documents() {
        let mut ordered = HeldOrders::default();
        let order: Arc<[u32]> = (0..30_000).collect();
        for rank in 0..100 {
            ordered.add(Bucket::Fingerprint(rank), &order, 5000);
            ordered.add(Bucket::Fingerprint(rank), &order, 5000);
            assert_eq!(ordered.get(Bucket::Fingerprint(rank)).as_deref(), Some(&*order));
            assert!(ordered.entries <= 16 * 5000 && ordered.entries == 30_000 * ordered.by_bucket.len());
        }
        assert_eq!(ordered.get(Bucket::Fingerprint(0)), None);
        assert_eq!(ordered.get(Bucket::Prefix(99)), None);
    }
}
