//! Buckets and shingles that exceed the cap on pairing.

use serde::{Deserialize, Serialize};

use super::rules::Clustering;

/// Counts of the buckets and shingles whose members were not all compared with one another because they exceed the cap.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Capped {
    /// Number of capped band buckets.
    pub buckets: u64,
    /// Number of capped shingles in the prefixes of texts.
    pub shingles: u64,
    /// Number of members of the largest bucket, or number of texts that contain the most frequent shingle.
    pub largest: u64,
    /// The largest number of members whose pairs are all compared: `--max-bucket`, or less.
    pub cap: u64,
}

impl Capped {
    /// Returns an error if a cap left out pairs and clusters are components, which may then be incomplete, unless the
    /// user allowed it (`may_cap`). Pair lists report the omission, and the other clustering rules do not depend on all
    /// pairs.
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
