//! The options and the result of a search by Hamming radius.

use crate::format::table::Probe;

/// Options of a search in the tables of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// The search radius in bits, from 0 to [`WITHIN_MAX`](crate::design::WITHIN_MAX).
    pub within: u32,
    /// The strategy for finding the bucket of a prefix. `None` selects the fastest one of the codec.
    pub probe: Option<Probe>,
    /// Maximum number of rows that a query may check. Buckets that would exceed it are skipped, and counted by
    /// [`SearchScratch::left_out`](super::SearchScratch::left_out). Without a limit (`None`), the results are complete.
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
    /// The fingerprint.
    pub fingerprint: u64,
    /// The number of bits in which the fingerprint differs from the query.
    pub distance: u32,
}
