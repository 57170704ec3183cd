//! A search by Hamming radius: its options, and what it finds.

use crate::format::table::Probe;

/// The options of a search in a segment's tables.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// The radius, 0 to [`WITHIN_MAX`](crate::design::WITHIN_MAX).
    pub within: u32,
    /// How tables are probed, instead of the fastest strategy of their codec.
    pub probe: Option<Probe>,
    /// How many rows of buckets a query may visit. Buckets beyond that are skipped, and
    /// [`SearchScratch::left_out`](super::SearchScratch::left_out) counts them. Without a limit answers are complete.
    pub visits: Option<u64>,
}

impl SearchOptions {
    /// The documents within this radius.
    #[must_use]
    pub fn within(within: u32) -> Self {
        Self { within, probe: None, visits: None }
    }
}

/// A fingerprint within the radius of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintMatch {
    /// Its rank: its row in table 1.
    pub rank: u32,
    /// The fingerprint.
    pub fingerprint: u64,
    /// The bits in which it differs from the query.
    pub distance: u32,
}
