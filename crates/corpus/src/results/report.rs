//! The counts that a run reports.

use serde::Serialize;
use twindex::Params;

use crate::input::counts::Counts;
use crate::results::about_run::ignored;
use crate::results::documents::Revisits;
use crate::results::survey::RemovedKinds;
use crate::results::write::WrittenResults;
use crate::rule::against::{EarlierResults, HistoryCost, HistoryUsed};
use crate::rule::decide::Decision;
use crate::rule::left_out::LeftOutReport;
use crate::settings::job::Dedup;
use crate::stored::read::ReadDocuments;
use crate::urls::hosts::Hosts;
use crate::work::watch::{self, Stages, Stopwatch};

/// The counts and times of a run; `--json` prints them as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Counts of the inputs.
    #[serde(flatten)]
    pub input: Counts,
    /// Number of documents whose text equals, byte for byte, the text of an earlier document.
    pub identical: u64,
    /// Number of documents that were removed because they are near a document of a history; `None` without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Number of documents of a history that a later, kept document contains; `None` unless the run used `--near
    /// containment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contained: Option<u64>,
    /// Statistics of the ignored text; `None` without `--without-boilerplate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<LeftOutReport>,
    /// Number of documents without words, features or a fingerprint.
    pub empty: u64,
    /// Number of candidate pairs of texts that were compared.
    pub candidates: u64,
    /// Number of candidate pairs whose common shingles were counted; `None` if sets were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Number of lines in pairs.tsv: removed documents, except those near a document of a history.
    pub pairs: u64,
    /// Number of clusters of two or more documents.
    pub clusters: u64,
    /// Number of documents in the largest cluster.
    pub largest_cluster: u64,
    /// Number of distinct values of the `--inside` field; `None` without such a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside_values: Option<u64>,
    /// Statistics of duplicates by host; `None` if documents have no URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Counts of the revisit records; `None` without `--also revisits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisits_written: Option<Revisits>,
    /// Number of removed documents.
    pub removed: u64,
    /// Sum of the lengths of the texts of removed documents, in bytes.
    pub removed_text_bytes: u64,
    /// Number of removed documents by the difference to the kept document.
    pub removed_kinds: RemovedKinds,
    /// The differences that documents with the same tokens may have, in words.
    #[serde(skip)]
    pub ignored: &'static str,
    /// Number of kept documents.
    pub kept: u64,
    /// Names of the files of kept documents.
    pub kept_files: Vec<String>,
    /// Names of the files of annotated documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotated_files: Vec<String>,
    /// The histories that the run compared with: indexes that were queried, or files whose texts were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histories: Vec<HistoryUsed>,
    /// The cost of the histories; `None` without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_cost: Option<HistoryCost>,
    /// Distribution of cluster sizes: pairs of a size s (1, 2, 4, 8, ...) and the number of clusters with more than s / 2
    /// and at most s documents.
    pub cluster_sizes: Vec<(u64, u64)>,
    /// The lowest resemblance found inside a cluster; `None` if none was measured.
    pub lowest_resemblance: Option<f64>,
    /// The keys of the pair whose resemblance is `lowest_resemblance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest_pair: Option<(String, String)>,
    /// CPU time of the process in seconds.
    pub cpu_seconds: f64,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Peak resident memory of the process in bytes; 0 if the system does not report it.
    pub peak_rss_bytes: u64,
    /// CPU seconds of each stage. `read` is the sum of `sketch` and `exact`.
    pub stages: Stages,
}

impl Report {
    /// Collects the counts and times of a finished run.
    pub(crate) fn of(
        job: &Dedup,
        (params, input): (&Params, &Counts),
        ReadDocuments { corpus, left_out, empty, .. }: &ReadDocuments,
        Decision { near, clusters, .. }: &Decision,
        written: WrittenResults,
        past: &EarlierResults,
        (whole, stages): (Stopwatch, Stages),
    ) -> Self {
        Self {
            boilerplate: *left_out,
            empty: *empty,
            identical: clusters.identical(corpus),
            dropped: (!job.scope.against.is_empty())
                .then(|| corpus.dropped.len() as u64 + clusters.dropped(&corpus.grouped)),
            contained: written.contained,
            candidates: near.candidates,
            counted: near.counted,
            pairs: written.pairs,
            hosts: written.hosts,
            revisits_written: written.revisits,
            clusters: clusters.of_several(),
            largest_cluster: u64::from(clusters.largest),
            inside_values: job.scope.inside.is_some().then(|| corpus.grouped.values.len() as u64),
            removed: input.documents - clusters.count,
            removed_text_bytes: written.removed.1,
            removed_kinds: written.removed.0,
            ignored: ignored(&params.shingling),
            kept: clusters.count,
            kept_files: written.kept_files,
            annotated_files: written.annotated_files,
            histories: past.used.clone(),
            history_cost: past.cost(job, corpus),
            cluster_sizes: clusters.distribution(),
            lowest_resemblance: clusters.lowest.map(|(_, _, resemblance)| resemblance),
            lowest_pair: clusters.lowest_keys(corpus),
            input: input.clone(),
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: watch::peak_rss_bytes(),
            stages,
        }
    }
}
