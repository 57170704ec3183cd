//! `twindex dedup`: the main job. Documents in; pairs, clusters, the documents to keep and the index out.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. Texts that were
//!    seen before, byte for byte, join the group of the first; the hash is confirmed by comparing the texts.
//! 2. *index*: all documents go into an index, `OUT/index`.
//! 3. *candidates*: groups that share a band of minima.
//! 4. *verify*: the resemblance of each candidate pair, counted shingle by shingle.
//! 5. *cluster*: connected components of the verified pairs, and one document of each to keep.
//! 6. *write*.
//!
//! All output is made in a temporary folder beside OUT, which gets its name at the end.

mod clusters;
mod corpus;
mod out;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::bands::{Banding, RECALL};
use twindex::choices::Preset;
use twindex::join::{Candidates, candidates};
use twindex::params::SimhashWeights;
use twindex::sketch::IdfTable;
use twindex::sys::RealVfs;
use twindex::{Index, Params, Sketcher};

use self::clusters::{Clusters, Keep, near_groups, verified};
use self::corpus::Corpus;
use self::out::Out;
use super::idf;
use crate::contents;
use crate::input::{Counts, Documents};
use crate::options::{InputArgs, Output, Usage, Work, parse_resemblance};
use crate::param_args::parse_preset;
use crate::progress::Progress;
use crate::report::{self, Stopwatch, count, counted};
use crate::sketching::{Wanted, for_each_sketched};
use crate::text_args::TextArgs;

/// Options of `dedup`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --threshold 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/pairs.tsv     a, b, resemblance, intersection, union: every pair found, a < b bytewise, sorted\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input\n\
    OUT/index         the index, for `query`, `stats`, `verify` (not with --method exact)\n\n\
    A run that is killed leaves its folder, `.twindex-dedup-XXXX` beside OUT, which may be deleted.")]
pub(crate) struct Dedup {
    #[command(flatten)]
    input: InputArgs,
    /// Folder to make for the results
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Replace OUT if an earlier run made it
    #[arg(long)]
    force: bool,
    /// Resemblance from which on documents are near-duplicates, 0.05 to 1 [default: 0.8]
    #[arg(long, value_name = "J", value_parser = parse_threshold)]
    threshold: Option<f64>,
    /// What makes documents near: MinHash candidates confirmed exactly, simhash distance, or equal texts only
    #[arg(long, value_enum, default_value = "minhash")]
    method: Method,
    /// Hamming radius for --method simhash, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Bands by the name of a scheme, as in `twindex build`, instead of those that find 99.5 % of the pairs at the
    /// threshold
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    preset: Option<Preset>,
    #[command(flatten)]
    text: TextArgs,
    /// Weight the shingles of --method simhash by this table, from `twindex idf`; text is cut as for the table
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Which document of a cluster to keep: the first of the input, the one with the longest text (of equal ones
    /// the first), or the one with the smallest key
    #[arg(long, value_enum, default_value = "first")]
    keep: Keep,
    /// Buckets and groups of identical documents larger than this are not paired all with all, but with their
    /// first member and their neighbours
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
    max_bucket: u32,
    #[command(flatten)]
    resources: Work,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Minhash,
    Simhash,
    Exact,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    input: Counts,
    identical: u64,
    /// Documents without words, or features.
    empty: u64,
    candidates: u64,
    pairs: u64,
    clusters: u64,
    largest_cluster: u64,
    removed: u64,
    kept: u64,
    chained: u64,
    capped_buckets: u64,
    starred_groups: u64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
    /// CPU seconds by name.
    stages: BTreeMap<&'static str, f64>,
}

/// Below it no bands of the minima there are find the share of pairs that the documentation promises.
const THRESHOLD_MIN: f64 = 0.05;

fn parse_threshold(text: &str) -> Result<f64, String> {
    match parse_resemblance(text)? {
        value if value >= THRESHOLD_MIN => Ok(value),
        _ => Err(format!(
            "expected a resemblance of {THRESHOLD_MIN} to 1; below, bands cannot find the {} % of near pairs \
             that they promise",
            RECALL * 100.0
        )),
    }
}

impl Dedup {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.resources.apply()?;
        if self.input.inputs.is_empty() {
            return Err(Usage::new(
                "nothing to deduplicate: name INPUT files or folders, or - for standard input",
            )
            .into());
        }
        if self.within.is_some() && self.method != Method::Simhash {
            return Err(Usage::new("--within goes with --method simhash").into());
        }
        if self.idf.is_some() && self.method != Method::Simhash {
            return Err(Usage::new("--idf goes with --method simhash").into());
        }
        if self.threshold.is_some() && self.method != Method::Minhash {
            return Err(Usage::new("--threshold goes with --method minhash").into());
        }
        if self.preset.is_some() && self.method != Method::Minhash {
            return Err(Usage::new("--preset goes with --method minhash").into());
        }
        self.text.check_features(self.input.reads_features())?;
        let out = Out::resolve(&self.out)?;
        out.check_inputs(&self.input.inputs)?;
        out.check(self.force)?;
        let features = self.input.reads_features();
        let table = self.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()?;
        let table = table.map(Arc::new);
        let params = self.params(table.as_deref())?;
        let documents = Documents::open(&self.input.inputs, &self.input.options())?;
        self.note_recall();
        let made = out.make_parents()?;
        let folder = out::temporary_folder(out.parent())?;

        let report = self.work(params, documents, table.as_ref(), folder.path())?;
        out.put_in_place(folder, self.force)?;
        made.sync()?;
        if self.output.json {
            report::print_json(&report)?;
        } else if !self.output.quiet {
            report::print_lines(&self.summary(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(0.8)
    }

    /// The bands that find candidates.
    fn banding(&self) -> Banding {
        self.preset.map_or_else(
            || Banding::for_threshold(self.threshold()),
            |preset| Banding { bands: preset.scheme.groups, rows: preset.scheme.group_size },
        )
    }

    /// Says what is missed where the bands of a preset find less than those that dedup would choose.
    fn note_recall(&self) {
        let (banding, threshold) = (self.banding(), self.threshold());
        let recall = banding.recall(threshold);
        if let Some(preset) = self.preset.filter(|_| recall < RECALL && !self.output.quiet) {
            report::note(&format!(
                "--preset {}: its {} bands of {} minima find {:.1} % of the pairs at the threshold of {threshold}; \
                 without it, {:.1} %",
                preset.name,
                banding.bands,
                banding.rows,
                recall * 100.0,
                Banding::for_threshold(threshold).recall(threshold) * 100.0
            ));
        }
    }

    /// The parameters of `OUT/index`.
    fn params(&self, table: Option<&IdfTable>) -> anyhow::Result<Params> {
        let shingling = contents::shingling(&self.text, self.input.reads_features(), table)?;
        let builder = Params::builder().shingling(shingling);
        Ok(match self.method {
            Method::Minhash | Method::Exact => {
                let banding = self.banding();
                builder.minhash(banding.bands, banding.rows).build()?
            }
            Method::Simhash => {
                let weights = table.map_or(SimhashWeights::Occurrences, IdfTable::weights);
                builder.simhash_weighted(self.within.unwrap_or(3), weights).build()?
            }
        })
    }

    fn work(
        &self,
        params: Params,
        mut documents: Documents,
        table: Option<&Arc<IdfTable>>,
        folder: &Path,
    ) -> anyhow::Result<Report> {
        let whole = Stopwatch::start();
        let max_bucket = self.max_bucket as usize;
        let mut stages = BTreeMap::new();
        let mut stage = |name, watch: Stopwatch| {
            stages.insert(name, watch.cpu_seconds());
        };

        let watch = Stopwatch::start();
        let sketcher = match table {
            None => Sketcher::new(&params)?,
            Some(table) => Sketcher::with_idf(&params, Arc::clone(table))?,
        };
        let index = match self.method {
            Method::Exact => None,
            Method::Minhash | Method::Simhash => {
                let path = folder.join("index");
                Some(Index::create_from(Arc::new(RealVfs), &path, params, table.map(|table| &**table))?)
            }
        };
        let mut writer = index.as_ref().map(Index::writer).transpose()?;
        if let Some(writer) = &mut writer {
            writer.set_memory(self.resources.memory / 2);
            writer.set_logged(false); // one commit, and what it makes is looked at as a segment
        }
        let mut corpus = Corpus::new(
            folder,
            self.resources.memory / 4,
            documents.parser().clone(),
            self.method == Method::Minhash,
        )?;
        let progress = Progress::bytes(documents.total_bytes(), "reading", self.output.quiet);
        let mut empty = 0;
        let wanted = Wanted { shingles: self.method != Method::Simhash, whole: true };
        for_each_sketched(&mut documents, &sketcher, wanted, &progress, |one| {
            empty += u64::from(one.sketch.is_empty());
            if let Some(writer) = &mut writer {
                let put = writer.put(one.key.as_slice(), &one.sketch);
                put.with_context(|| format!("{}: cannot index the document", one.place))?;
            }
            corpus.add(one)
        })?;
        progress.finish();
        stage("read", watch);

        let watch = Stopwatch::start();
        if let Some(mut writer) = writer {
            writer.commit()?;
        }
        stage("index", watch);

        let (mut found, mut pairs) = (Candidates::default(), Vec::new());
        if let Some(index) = &index {
            let snapshot = index.snapshot();
            if self.method == Method::Minhash {
                let watch = Stopwatch::start();
                found =
                    candidates(&snapshot, max_bucket, |place| Ok(corpus.group_at(place.key()?.as_key())))?;
                stage("candidates", watch);
                let watch = Stopwatch::start();
                pairs = verified(&corpus, &found.pairs, self.threshold())?;
                stage("verify", watch);
            } else {
                let watch = Stopwatch::start();
                pairs = near_groups(&corpus, &snapshot, self.within.unwrap_or(3).into())?;
                stage("verify", watch);
            }
        }

        let watch = Stopwatch::start();
        let clusters = Clusters::of(&corpus, &pairs, self.method, self.keep, self.threshold())?;
        stage("cluster", watch);

        let watch = Stopwatch::start();
        let by_key = corpus.documents_by_key();
        let pair_count =
            out::write_pairs(&corpus, &by_key, &pairs, max_bucket, self.method, &folder.join("pairs.tsv"))?;
        out::write_clusters(&corpus, &by_key, &clusters, &folder.join("clusters.tsv"))?;
        out::write_kept(&corpus, &clusters, &folder.join("kept.jsonl"))?;
        stage("write", watch);

        let input = documents.counts().clone();
        Ok(Report {
            empty,
            identical: input.documents - corpus.groups.len() as u64,
            candidates: found.pairs.len() as u64,
            pairs: pair_count,
            clusters: clusters.sizes.iter().filter(|&&size| size > 1).count() as u64,
            largest_cluster: u64::from(clusters.sizes.iter().copied().max().unwrap_or(0)),
            removed: input.documents - clusters.sizes.len() as u64,
            kept: clusters.sizes.len() as u64,
            chained: clusters.chained,
            capped_buckets: found.capped_buckets,
            starred_groups: corpus.groups.iter().filter(|group| group.is_starred(max_bucket)).count() as u64,
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
            stages,
        })
    }

    fn summary(&self, report: &Report) -> Vec<String> {
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
        lines.push(match self.method {
            Method::Minhash => format!(
                "  near       {:>11}  pairs with a resemblance of {} or more, counted exactly, copies included",
                count(report.pairs),
                self.threshold()
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
        let mut remarks = Vec::new();
        if report.chained > 0 {
            remarks.push(format!(
                "{} joined a cluster through others and {} less near to the kept one than asked for (see the score in \
                 clusters.tsv)",
                counted(report.chained, "document"),
                if report.chained == 1 { "is" } else { "are" }
            ));
        }
        if report.capped_buckets > 0 || report.starred_groups > 0 {
            remarks.push(format!(
                "{} and {} over --max-bucket {}: paired with their first member and neighbours only",
                counted(report.capped_buckets, "bucket"),
                counted(report.starred_groups, "group"),
                self.max_bucket
            ));
        }
        if self.method != Method::Exact {
            remarks.extend(report::empty_remark(report.empty));
        }
        remarks.extend(input.remarks());
        lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
        let index = if self.method == Method::Exact { "" } else { ", index" };
        lines.push(format!("{}: pairs.tsv, clusters.tsv, kept.jsonl{index}", self.out.display()));
        lines
    }
}
