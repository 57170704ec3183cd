//! What `dedup` tells of its work: the fields of `--json`, and the summary for people.

use serde::Serialize;
use twindex_join::SampledBy;

use super::corpus::Corpus;
use super::near::{Near, Verify};
use super::{Dedup, Method};
use crate::input::Counts;
use crate::report::{self, Stages, count, counted};

/// A shingle that too many texts have.
#[derive(Serialize)]
pub(super) struct CommonShingle {
    /// Its sampled hash, in hexadecimal.
    pub(super) hash: String,
    pub(super) texts: u64,
    /// The key of the first document that has it.
    pub(super) first: String,
}

/// Fields of `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) input: Counts,
    pub(super) identical: u64,
    /// Documents that are near one of the index of --against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dropped: Option<u64>,
    /// Documents without words, or features.
    pub(super) empty: u64,
    pub(super) candidates: u64,
    pub(super) pairs: u64,
    pub(super) clusters: u64,
    pub(super) largest_cluster: u64,
    pub(super) removed: u64,
    pub(super) kept: u64,
    /// The names of the files of the documents that are kept.
    pub(super) kept_files: Vec<String>,
    pub(super) chained: u64,
    /// Clusters by documents: how many have at most so many, and more than half of that.
    pub(super) cluster_sizes: Vec<(u64, u64)>,
    /// The least resemblance met inside a cluster.
    pub(super) lowest_resemblance: Option<f64>,
    /// The keys of that pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lowest_pair: Option<(String, String)>,
    pub(super) cut_components: u64,
    /// Buckets of bands with more members than the cap, paired as stars.
    pub(super) capped_buckets: u64,
    /// Shingles in the prefixes, or sketches, of more texts than the cap, paired as stars.
    pub(super) capped_shingles: u64,
    /// Of these the most common, where they are counted one by one: with `--method shingles`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) common_shingles: Vec<CommonShingle>,
    /// Documents with words, and without an element in their sketch: with `--method shingles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) without_elements: Option<u64>,
    /// The cap: `--max-bucket`, or less to bound the work.
    pub(super) bucket_cap: u64,
    pub(super) largest_bucket: u64,
    /// Groups of identical documents of more than `--max-bucket`.
    pub(super) starred_groups: u64,
    pub(super) cpu_seconds: f64,
    pub(super) seconds: f64,
    pub(super) peak_rss_bytes: u64,
    /// CPU seconds by name. `read` is `sketch` and `exact`; with `--method shingles`, `candidates` is `shingle_merge`,
    /// `pair_formation` and `pair_merge`.
    pub(super) stages: Stages,
}

impl Dedup {
    pub(super) fn summary(&self, report: &Report) -> Vec<String> {
        let input = &report.input;
        let share = report.removed as f64 * 100.0 / input.documents.max(1) as f64;
        let mut lines = vec![
            format!(
                "{}, {} of text, in {:.1} s",
                counted(input.documents, "document"),
                report::bytes(input.text_bytes),
                report.seconds
            ),
            format!(
                "  identical  {:>11}  copies of another document, byte for byte",
                count(report.identical)
            ),
        ];
        if let (Some(dropped), Some(against)) = (report.dropped, &self.against) {
            lines.push(format!(
                "  dropped    {:>11}  documents near one of {}, before the others were compared",
                count(dropped),
                against.display()
            ));
        }
        lines.push(match self.method {
            Method::Minhash if self.verify() == Verify::None => format!(
                "  near       {:>11}  pairs that share one of {} bands, not verified, copies included",
                count(report.pairs),
                self.banding().bands
            ),
            Method::Minhash | Method::Shingles => format!(
                "  near       {:>11}  pairs with a resemblance of {} or more, {}, copies included",
                count(report.pairs),
                self.threshold(),
                if self.verify() == Verify::Exact { "counted exactly" } else { "by an estimate" }
            ),
            Method::Simhash => format!(
                "  near       {:>11}  pairs whose fingerprints differ in {} bits or fewer",
                count(report.pairs),
                self.within.unwrap_or(3)
            ),
            Method::Exact => format!("  pairs      {:>11}  of identical documents", count(report.pairs)),
        });
        lines.push(format!(
            "  clusters   {:>11}  of two documents or more; the largest has {}",
            count(report.clusters),
            count(report.largest_cluster)
        ));
        lines.push(format!(
            "  removed    {:>11}  documents, {share:.1} %; {} kept",
            count(report.removed),
            count(report.kept)
        ));
        let sizes = report.cluster_sizes.iter().skip(1).filter(|&&(_, clusters)| clusters > 0);
        let sizes: Vec<String> = sizes
            .map(|&(most, clusters)| match most {
                2 => format!("{} of 2", count(clusters)),
                _ => format!("{} of {}-{}", count(clusters), count(most / 2 + 1), count(most)),
            })
            .collect();
        if !sizes.is_empty() {
            lines.push(format!("  sizes                   {} documents", sizes.join(", ")));
        }
        let remarks = self.remarks(report);
        lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
        let index = if self.method == Method::Exact { "" } else { ", index, report.html" };
        let against = if self.against.is_some() { ", against.tsv" } else { "" };
        let kept = report.kept_files.join(", ");
        lines.push(format!("{}: pairs.tsv, clusters.tsv, {kept}{against}{index}", self.out.display()));
        lines
    }

    /// What a person should know beside the figures.
    fn remarks(&self, report: &Report) -> Vec<String> {
        let mut remarks = Vec::new();
        if let (Some(lowest), Some((a, b))) = (report.lowest_resemblance, &report.lowest_pair)
            && lowest < self.threshold()
        {
            remarks.push(format!(
                "the least near documents met inside a cluster resemble each other by {lowest:.3}: {} and {}",
                a.escape_debug(),
                b.escape_debug()
            ));
        }
        if report.cut_components > 0 {
            remarks.push(format!(
                "{} of more than {} documents cut into clusters (--max-cluster)",
                counted(report.cut_components, "component"),
                self.max_cluster.unwrap_or(u32::MAX)
            ));
        }
        if report.chained > 0 {
            remarks.push(format!(
                "{} joined a cluster through others and {} less near to the kept one than asked for (see the score in \
                 clusters.tsv)",
                counted(report.chained, "document"),
                if report.chained == 1 { "is" } else { "are" }
            ));
        }
        let capped =
            [(report.capped_buckets, "bucket", "texts"), (report.capped_shingles, "shingle", "texts")];
        for (number, what, members) in capped.into_iter().filter(|&(number, ..)| number > 0) {
            let lowered = if report.bucket_cap < u64::from(self.max_bucket) {
                format!(", lowered to {} to bound the work", count(report.bucket_cap))
            } else {
                String::new()
            };
            remarks.push(format!(
                "{} of more {members} than --max-bucket {}{lowered} (the largest: {}): these were paired as stars, with \
                 the first and the one before, so that pairs.tsv has not all pairs",
                counted(number, what),
                count(self.max_bucket.into()),
                count(report.largest_bucket),
            ));
        }
        let named: Vec<String> = report
            .common_shingles
            .iter()
            .take(3)
            .map(|one| {
                let texts = count(one.texts);
                format!("{} in {texts} texts, the first of them {}", one.hash, one.first.escape_debug())
            })
            .collect();
        if !named.is_empty() {
            remarks.push(format!("the most common shingles, by their hashes: {}", named.join("; ")));
        }
        if let (Some(without @ 1..), Some(by)) = (report.without_elements, self.sampled_by()) {
            let what = match by {
                SampledBy::Modulus(modulus) => format!("a shingle hash that {modulus} divides"),
                SampledBy::Bottom(_) => "a shingle hash".to_owned(),
            };
            remarks.push(format!(
                "{} without {what}: near nothing but their copies (--bottom samples short documents, too)",
                counted(without, "document")
            ));
        }
        if report.starred_groups > 0 {
            remarks.push(format!(
                "{} of identical documents over --max-bucket {}: paired with their first member only",
                counted(report.starred_groups, "group"),
                count(self.max_bucket.into())
            ));
        }
        if self.method != Method::Exact {
            remarks.extend(report::empty_remark(report.empty));
        }
        remarks.extend(report.input.remarks());
        remarks
    }
}

/// The most common of the shingles that were capped.
pub(super) fn common_shingles(near: &Near, corpus: &Corpus) -> Vec<CommonShingle> {
    let shingles = near.most_common.iter().map(|&(texts, hash, first)| {
        let first = corpus.groups[first as usize].members[0];
        let first = String::from_utf8_lossy(&corpus.keys[first as usize]).into_owned();
        CommonShingle { hash: format!("{hash:012x}"), texts, first }
    });
    shingles.collect()
}
