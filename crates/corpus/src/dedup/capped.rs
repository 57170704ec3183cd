//! Buckets and shingles that exceed the cap on pairing.

use serde::{Deserialize, Serialize};

use super::rules::Clustering;

/// Counts of the buckets and shingles whose members were not all compared with one another because they exceed the cap.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Capped {
    /// Number of band buckets with more than `cap` members.
    pub buckets: u64,
    /// Number of shingles that are in the prefixes of more than `cap` texts.
    pub shingles: u64,
    /// Number of members of the largest bucket, or number of texts that contain the most frequent shingle.
    pub largest: u64,
    /// The largest number of members whose pairs are all compared: `--max-bucket`, or less.
    pub cap: u64,
}

impl Capped {
    /// Returns an error if pairs were left out because of the cap and clusters are connected components, which may be
    /// incomplete without these pairs. Returns no error if the user allowed this (`may_cap`), or with the other
    /// clustering rules, which do not need all pairs.
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
