//! What a run found, in figures.

use serde::Serialize;

use super::corpus::Corpus;
use super::hosts::Hosts;
use super::left_out::LeftOutReport;
use super::near::NearGroups;
use super::revisits::Revisits;
use crate::input::Counts;
use crate::watch::Stages;

/// A shingle that too many texts have.
#[derive(Clone, Debug, Serialize)]
pub struct CommonShingle {
    /// Its sampled hash, in hexadecimal.
    pub hash: String,
    /// How many have it.
    pub texts: u64,
    /// The key of the first document that has it.
    pub first: String,
}

/// The results of a run; `--json` prints them as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Counts of the inputs.
    #[serde(flatten)]
    pub input: Counts,
    /// Documents whose text is in an earlier one, byte for byte.
    pub identical: u64,
    /// Documents that are near one of the other index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Documents of a history that are contained in a later one that stays: with `--near containment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contained: Option<u64>,
    /// Figures of the text that many documents share, with `--without-boilerplate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<LeftOutReport>,
    /// Documents without words, or features.
    pub empty: u64,
    /// Pairs of texts that were compared.
    pub candidates: u64,
    /// The candidates whose shingles were counted, if sketches ruled out others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Lines of pairs.tsv: documents that go, or, where all were asked for, pairs of documents that are near.
    pub pairs: u64,
    /// Clusters of two documents or more.
    pub clusters: u64,
    /// Documents of the largest.
    pub largest_cluster: u64,
    /// Values of the `--inside` field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside_values: Option<u64>,
    /// Counts of duplicates by host, if keys or a field are URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Revisit records, with `--write-revisits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisits_written: Option<Revisits>,
    /// Documents that do not stay.
    pub removed: u64,
    /// Documents that stay.
    pub kept: u64,
    /// The names of the files of the documents that are kept.
    pub kept_files: Vec<String>,
    /// The names of the files of all documents with what was decided about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotated_files: Vec<String>,
    /// Documents less near to the kept one than the threshold.
    pub chained: u64,
    /// Clusters by size: an upper bound of documents, a power of two, and the number of clusters up to it and above its half.
    pub cluster_sizes: Vec<(u64, u64)>,
    /// The least resemblance found inside a cluster.
    pub lowest_resemblance: Option<f64>,
    /// The keys of that pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest_pair: Option<(String, String)>,
    /// Components that were cut for their size.
    pub cut_components: u64,
    /// Buckets of bands with more members than the cap, paired as stars.
    pub capped_buckets: u64,
    /// Shingles in the prefixes, or sketches, of more texts than the cap, paired as stars.
    pub capped_shingles: u64,
    /// The most common of them, if they are counted one by one: with `--method shingles`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub common_shingles: Vec<CommonShingle>,
    /// Documents with words, and without an element in their sketch: with `--method shingles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_elements: Option<u64>,
    /// The cap: `--max-bucket`, or less to bound the work.
    pub bucket_cap: u64,
    /// Members of the largest bucket, or texts with the most common shingle.
    pub largest_bucket: u64,
    /// Groups of identical documents of more than `--max-bucket`.
    pub starred_groups: u64,
    /// CPU seconds of the process.
    pub cpu_seconds: f64,
    /// Seconds by the clock.
    pub seconds: f64,
    /// The most memory the process had resident; 0 where the system does not say.
    pub peak_rss_bytes: u64,
    /// CPU seconds by name. `read` is `sketch` and `exact`; with `--method shingles`, `candidates` is `shingle_merge`,
    /// `pair_formation` and `pair_merge`.
    pub stages: Stages,
}

/// The most common of the shingles that were capped.
pub(super) fn common_shingles(near: &NearGroups, corpus: &Corpus) -> Vec<CommonShingle> {
    let shingles = near.most_common.iter().map(|&(texts, hash, first)| {
        let first = corpus.keys.shown(corpus.grouped.groups[first as usize].first);
        CommonShingle { hash: format!("{hash:012x}"), texts, first }
    });
    shingles.collect()
}
