//! The options and the result of a search by Hamming radius.

use crate::format::table::Probe;

/// The options of a search in a segment's tables.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// The radius, 0 to [`WITHIN_MAX`](crate::design::WITHIN_MAX).
    pub within: u32,
    /// How tables are probed; `None` for the fastest strategy of their codec.
    pub probe: Option<Probe>,
    /// Maximum number of rows in buckets that a query may visit. Buckets beyond the limit are skipped and counted by
    /// [`SearchScratch::left_out`](super::SearchScratch::left_out). `None`: no limit, so the results are complete.
    pub visits: Option<u64>,
}

impl SearchOptions {
    /// Returns the default options for a radius.
    #[must_use]
    pub fn within(within: u32) -> Self {
        Self { within, probe: None, visits: None }
    }
}

/// A fingerprint within the radius of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintMatch {
    /// The rank of the fingerprint: its row in table 1.
    pub rank: u32,
    /// The fingerprint.
    pub fingerprint: u64,
    /// The number of bits in which the fingerprint differs from the query.
    pub distance: u32,
}
