//! The options and the result of a search by Hamming radius.

use crate::format::table::Probe;

/// Options of a search in the tables of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// The search radius in bits, from 0 to [`WITHIN_MAX`](crate::design::WITHIN_MAX).
    pub within: u32,
    /// The strategy for finding the bucket of a prefix; `None` selects the fastest strategy of the codec.
    pub probe: Option<Probe>,
    /// Maximum number of table rows that a query may check in a segment; `None` means no limit. A bucket of more than
    /// 4,096 rows counts as 4,096 rows. A bucket that would exceed the limit is skipped, and
    /// [`SearchScratch::left_out`](super::SearchScratch::left_out) counts it. The limit has no effect if a scan of all
    /// fingerprints is less work than probing the tables.
    pub visits: Option<u64>,
}

impl SearchOptions {
    /// Returns the default options for the radius `within`.
    #[must_use]
    pub fn within(within: u32) -> Self {
        Self { within, probe: None, visits: None }
    }
}

/// A fingerprint within the radius of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintMatch {
    /// The rank of the fingerprint, which is its row in table 1.
    pub rank: u32,
    /// The value of the fingerprint.
    pub fingerprint: u64,
    /// The number of bits in which the fingerprint differs from the query.
    pub distance: u32,
}
