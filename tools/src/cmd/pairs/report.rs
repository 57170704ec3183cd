//! Reports statistics of a search by samples.

use serde::Serialize;
use twindex_join::SampledBy;

use crate::report::{Stages, count, counted};

/// Maximum number of shingles that are named in a remark.
const NAMED: usize = 3;

/// Statistics of the search by samples: fields of `--json`.
#[derive(Serialize)]
pub(super) struct SampleReport {
    /// Number of documents without a sampled hash, which are in no pair.
    pub(super) without_elements: u64,
    /// Number of shingles that more than `bucket_cap` documents have. Not all pairs of these documents were compared.
    pub(super) capped_shingles: u64,
    /// The cap: `--max-bucket`, or less if there would be too many pairs.
    pub(super) bucket_cap: u64,
    /// Number of documents that have the most common shingle.
    pub(super) largest_bucket: u64,
    /// The most common capped shingles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) common_shingles: Vec<CommonShingle>,
    /// CPU seconds of each stage. `pair_merge` includes writing the pairs. `verify` is the time of the exact counts of
    /// --verify exact.
    pub(super) stages: Stages,
    #[serde(skip)]
    pub(super) by: SampledBy,
}

/// A shingle that more than [`bucket_cap`](SampleReport::bucket_cap) documents have.
#[derive(Serialize)]
pub(super) struct CommonShingle {
    /// The sampled hash of the shingle, in hexadecimal.
    pub(super) hash: String,
    /// Number of documents that have the shingle.
    pub(super) documents: u64,
    /// Key of the first document that has the shingle.
    pub(super) first: String,
}

impl SampleReport {
    /// Returns warnings for the user.
    pub(super) fn remarks(&self, max_bucket: u32) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.capped_shingles > 0 {
            let lowered = if self.bucket_cap < u64::from(max_bucket) {
                format!(", lowered to {} to bound the work", count(self.bucket_cap))
            } else {
                String::new()
            };
            remarks.push(format!(
                "{} of more documents than --max-bucket {}{lowered} (the largest: {}): these were paired as stars, with \
                 the first and the one before; there may be more pairs",
                counted(self.capped_shingles, "shingle"),
                count(max_bucket.into()),
                count(self.largest_bucket),
            ));
        }
        let named: Vec<String> = self
            .common_shingles
            .iter()
            .take(NAMED)
            .map(|CommonShingle { hash, documents, first }| {
                format!(
                    "{hash} in {} documents, the first of them {}",
                    count(*documents),
                    first.escape_debug()
                )
            })
            .collect();
        if !named.is_empty() {
            remarks.push(format!("the most common shingles, by their hashes: {}", named.join("; ")));
        }
        if self.without_elements > 0 {
            let (what, advice) = match self.by {
                SampledBy::Modulus(modulus) => (
                    format!("a shingle hash that {modulus} divides"),
                    "; an index made with --bottom samples short documents, too",
                ),
                SampledBy::Bottom(_) => ("words or features".to_owned(), ""),
            };
            remarks.push(format!(
                "{} without {what}: in no pair, not even with copies of the same text{advice}",
                counted(self.without_elements, "document")
            ));
        }
        remarks
    }
}
