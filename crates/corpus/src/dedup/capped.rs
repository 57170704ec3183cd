//! What has more members than are paired with one another.

use serde::{Deserialize, Serialize};

use super::rules::Clustering;

/// Buckets and shingles whose members were not all paired with one another.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Capped {
    /// Buckets of bands.
    pub buckets: u64,
    /// Shingles in the prefixes of texts.
    pub shingles: u64,
    /// Members of the largest bucket, or texts with the most frequent shingle.
    pub largest: u64,
    /// Members beyond which one is capped: `--max-bucket`, or less.
    pub cap: u64,
}

impl Capped {
    /// Refuses components that may be in pieces, as not all pairs were compared, unless that was asked for (`may_cap`). Lists
    /// of pairs say what they leave out, and what stays by other rules is found without pairs.
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
