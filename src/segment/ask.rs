//! A search by Hamming radius: its options, and what it finds.

use crate::format::table::Probe;

/// What is asked of a segment's tables.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The radius, 0 to [`WITHIN_MAX`](crate::design::WITHIN_MAX).
    pub within: u32,
    /// How tables are probed, instead of what is fastest for their codec.
    pub probe: Option<Probe>,
    /// How many rows of buckets a query may visit; it leaves out the buckets that would be more, and
    /// [`Scratch::left_out`](super::Scratch::left_out) counts them. Without a limit answers are complete.
    pub visits: Option<u64>,
}

impl Ask {
    /// The documents within this radius.
    #[must_use]
    pub fn within(within: u32) -> Self {
        Self { within, probe: None, visits: None }
    }
}

/// A fingerprint within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its place in table 1.
    pub rank: u32,
    /// Itself.
    pub fingerprint: u64,
    /// The bits in which it differs from the query.
    pub distance: u32,
}
