//! Buckets and shingles with more members than the cap for pairing.

use serde::{Deserialize, Serialize};

use super::rules::Clustering;

/// Buckets and shingles whose members were not all paired with one another.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Capped {
    /// Number of capped band buckets.
    pub buckets: u64,
    /// Number of capped shingles in the prefixes of texts.
    pub shingles: u64,
    /// Number of members of the largest bucket, or of texts with the most frequent shingle.
    pub largest: u64,
    /// The number of members above which a bucket is capped: `--max-bucket`, or less.
    pub cap: u64,
}

impl Capped {
    /// Refuses components that may be incomplete because not all pairs were compared, unless the user allowed it
    /// (`may_cap`). Lists of pairs report the omission, and other rules decide without pairs.
    pub(super) fn check(self, clustering: Clustering, may_cap: bool) -> twindex::Result<()> {
        let (number, of) = match self {
            Self { buckets: 0, shingles, .. } => (shingles, "shingles"),
            Self { buckets, .. } => (buckets, "buckets"),
        };
        if number == 0 || may_cap || clustering != Clustering::Components {
            return Ok(());
        }
        Err(twindex::Error::Invalid(format!(
            "--clusters components: {number} {of} are in more than {} texts (the largest in {}), too many to compare all with \
             all: use --clusters leaders, for which nothing is left out, or --max-bucket {} to compare such texts with the \
             first and the one before only",
            self.cap, self.largest, self.cap
        )))
    }
}
