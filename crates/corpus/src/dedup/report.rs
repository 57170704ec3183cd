//! The results of a run as numbers.

use serde::Serialize;

use super::corpus::Corpus;
use super::hosts::Hosts;
use super::left_out::LeftOutReport;
use super::near::NearGroups;
use super::revisits::Revisits;
use crate::input::Counts;
use crate::watch::Stages;

/// A shingle that occurs in too many texts.
#[derive(Clone, Debug, Serialize)]
pub struct CommonShingle {
    /// Sampled hash of the shingle, in hexadecimal.
    pub hash: String,
    /// Number of texts with the shingle.
    pub texts: u64,
    /// Key of the first document with the shingle.
    pub first: String,
}

/// The results of a run; `--json` prints them as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Counts of the inputs.
    #[serde(flatten)]
    pub input: Counts,
    /// Number of documents whose text equals that of an earlier one, byte for byte.
    pub identical: u64,
    /// Number of documents near a document of a history. `None` without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Number of documents of a history that a later, kept document contains. Only with `--near containment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contained: Option<u64>,
    /// Numbers about the text that many documents share, with `--without-boilerplate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<LeftOutReport>,
    /// Number of documents without words, or without features.
    pub empty: u64,
    /// Number of pairs of texts that were compared.
    pub candidates: u64,
    /// Number of candidates whose shingles were counted, if sketches ruled out others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Number of lines in pairs.tsv: removed documents or, if all pairs were requested, pairs of near documents.
    pub pairs: u64,
    /// Number of clusters of two or more documents.
    pub clusters: u64,
    /// Number of documents in the largest cluster.
    pub largest_cluster: u64,
    /// Number of distinct values of the `--inside` field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside_values: Option<u64>,
    /// Counts of duplicates by host, if keys or a field are URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Counts of the revisit records, with `--write-revisits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisits_written: Option<Revisits>,
    /// Number of removed documents.
    pub removed: u64,
    /// Number of kept documents.
    pub kept: u64,
    /// File names of the kept documents.
    pub kept_files: Vec<String>,
    /// File names of all documents, each with its decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotated_files: Vec<String>,
    /// Number of documents whose nearness to their kept document is below the threshold.
    pub chained: u64,
    /// Distribution of cluster sizes: pairs of a size limit, a power of two, and the number of clusters with at most that
    /// many documents and more than half as many.
    pub cluster_sizes: Vec<(u64, u64)>,
    /// The lowest resemblance found inside a cluster.
    pub lowest_resemblance: Option<f64>,
    /// The keys of the pair with the lowest resemblance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest_pair: Option<(String, String)>,
    /// Number of components that were split because of their size.
    pub cut_components: u64,
    /// Number of band buckets with more members than the cap, paired as stars.
    pub capped_buckets: u64,
    /// Number of shingles in the prefixes, or sketches, of more texts than the cap, paired as stars.
    pub capped_shingles: u64,
    /// The most common capped shingles, with `--method shingles`, which counts shingles one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub common_shingles: Vec<CommonShingle>,
    /// Number of documents that have words but no element in their sketch, with `--method shingles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_elements: Option<u64>,
    /// The cap: `--max-bucket`, or a smaller number that bounds the work.
    pub bucket_cap: u64,
    /// Number of members of the largest bucket, or of texts with the most common shingle.
    pub largest_bucket: u64,
    /// Number of groups of more than `--max-bucket` identical documents.
    pub starred_groups: u64,
    /// CPU seconds of the process.
    pub cpu_seconds: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Peak resident memory of the process in bytes; 0 where the system does not report it.
    pub peak_rss_bytes: u64,
    /// CPU seconds by stage. `read` is the sum of `sketch` and `exact`; with `--method shingles`, `candidates` is the sum
    /// of `shingle_merge`, `pair_formation` and `pair_merge`.
    pub stages: Stages,
}

/// Returns the most common of the shingles that were capped.
pub(super) fn common_shingles(near: &NearGroups, corpus: &Corpus) -> Vec<CommonShingle> {
    let shingles = near.most_common.iter().map(|&(texts, hash, first)| {
        let first = corpus.keys.shown(corpus.grouped.groups[first as usize].first);
        CommonShingle { hash: format!("{hash:012x}"), texts, first }
    });
    shingles.collect()
}
