//! `twindex dedup`: the main job. Documents in; pairs, clusters, the documents to keep and the index out.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. Texts that were
//!    seen before, byte for byte, join the group of the first; the hash is confirmed by comparing the texts.
//! 2. *index*: all documents go into an index, `OUT/index`.
//! 3. *candidates*: groups that share one of the rarest shingles of each, so that none is missed, or a band of minima;
//!    or elements of their sketches, by `AltaVista`'s stages ([`twindex::join::elements`]): shingle merge, pair formation
//!    and pair merge.
//! 4. *verify*: the resemblance of each candidate pair, counted shingle by shingle, or estimated.
//! 5. *cluster*: connected components of the verified pairs, and one document of each to keep.
//! 6. *write*.
//!
//! All output is made in a temporary folder beside OUT, which gets its name at the end.

mod against;
mod clusters;
mod corpus;
mod lines;
mod near;
mod out;
mod score;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::bands::{Banding, MINIMA, MINIMA_TO_ESTIMATE, RECALL};
use twindex::choices::Preset;
use twindex::join::{Agreement, SampledBy};
use twindex::params::{BOTTOM_MAX, SimhashWeights};
use twindex::sketch::IdfTable;
use twindex::sys::RealVfs;
use twindex::{Index, Params, Sketch, Sketcher, Snapshot};

use self::against::{Against, Question};
use self::clusters::{Clusters, Keep, Measure, Rules};
use self::corpus::Corpus;
use self::near::{Join, Limits, Near, Signatures, Verify};
use self::out::Out;
use self::score::Score;
use super::{idf, report as page};
use crate::cmd::report::Look;
use crate::contents;
use crate::feature_args::FeatureArgs;
use crate::input::{Counts, Documents};
use crate::interrupt::HalfDone;
use crate::options::{InputArgs, Output, Usage, Work};
use crate::param_args::{parse_minima, parse_preset, parse_signature_bits, parse_threshold};
use crate::progress::Progress;
use crate::report::{self, Stages, Stopwatch, count, counted};
use crate::sketching::{Wanted, for_each_looked_up};
use crate::text_args::TextArgs;

/// Options of `dedup`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --threshold 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    twindex dedup today.jsonl --against yesterday/index -o today\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/report.html   what was found, as a page that stands alone\n\
    OUT/pairs.tsv     a, b, resemblance, intersection, union: every pair found, a < b bytewise, sorted\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input and in its form: kept.csv, .tsv, .parquet, .wet,\n\
                      .warc of such inputs, one for each header or set of columns\n\
    OUT/against.tsv   key, other, resemblance, standard_error: with --against, the documents that were dropped for it\n    \
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
    /// What makes documents near: MinHash candidates confirmed exactly, shingles that sketches have in common, simhash
    /// distance, or equal texts only
    #[arg(long, value_enum, default_value = "minhash")]
    method: Method,
    /// Hamming radius for --method simhash, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Drop the documents that are near one of this index, by the signatures or fingerprints in it, before the others
    /// are compared; it must have been made with the same options
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// The sketch of --method shingles: the hashes of a document that M divides, one in M; the paper took 25
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "bottom")]
    modulus: Option<u32>,
    /// The sketch of --method shingles: the T least hashes of a document, 1 to 4096 [default: 128]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=i64::from(BOTTOM_MAX)))]
    bottom: Option<u16>,
    /// Bands by the name of a scheme, as in `twindex build`, instead of those that find 99.5 % of the pairs at the
    /// threshold
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    preset: Option<Preset>,
    /// Minima that bands for the threshold are made of, 120 to 1024 [default: 120; 512 with --verify signature, as more
    /// of them make estimates better]
    #[arg(long, value_name = "N", value_parser = parse_minima(), conflicts_with = "preset")]
    minima: Option<u16>,
    /// How candidates are found; bands miss some pairs near the threshold [default: prefix, or bands where the
    /// verification is not exact]
    #[arg(long, value_enum, value_name = "HOW")]
    join: Option<Join>,
    #[command(flatten)]
    features: FeatureArgs,
    /// How candidates are verified [default: exact, or signature with --method shingles]
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<Verify>,
    /// Bits kept of each minimum in the index: 1, 2, 4, 8, 16 or 32, or 0 for none [default: 8]
    #[arg(long, value_name = "BITS", value_parser = parse_signature_bits)]
    signature_bits: Option<u8>,
    #[command(flatten)]
    text: TextArgs,
    /// Weight the shingles of --method simhash by this table, from `twindex idf`; text is cut as for the table
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Which document of a cluster to keep: the first of the input, the one with the longest text (of equal ones
    /// the first), or the one with the smallest key
    #[arg(long, value_enum, default_value = "first")]
    keep: Keep,
    /// Components of near documents with more than this are cut into clusters whose members are all near one of them;
    /// chains cannot then join what has nothing in common [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    max_cluster: Option<u32>,
    /// Buckets, texts that share a shingle, and groups of identical documents of more than this are not paired all with
    /// all, but as stars, with their first member and the one before; fewer where that would not bound the work, and
    /// the summary says so
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
    max_bucket: u32,
    #[command(flatten)]
    resources: Work,
    #[command(flatten)]
    output: Output,
}

/// Elements of a sketch of `--method shingles`, unless said.
const BOTTOM: u16 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Minhash,
    /// Sketches are joined: pairs of documents for each shingle that several sketches have, counted
    Shingles,
    Simhash,
    Exact,
}

/// A shingle that too many texts have.
#[derive(Serialize)]
struct CommonShingle {
    /// Its sampled hash, in hexadecimal.
    hash: String,
    texts: u64,
    /// The key of the first document that has it.
    first: String,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    input: Counts,
    identical: u64,
    /// Documents that are near one of the index of --against.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    /// Documents without words, or features.
    empty: u64,
    candidates: u64,
    pairs: u64,
    clusters: u64,
    largest_cluster: u64,
    removed: u64,
    kept: u64,
    /// The names of the files of the documents that are kept.
    kept_files: Vec<String>,
    chained: u64,
    /// Clusters by documents: how many have at most so many, and more than half of that.
    cluster_sizes: Vec<(u64, u64)>,
    /// The least resemblance met inside a cluster.
    lowest_resemblance: Option<f64>,
    /// The keys of that pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_pair: Option<(String, String)>,
    cut_components: u64,
    /// Buckets of bands with more members than the cap, paired as stars.
    capped_buckets: u64,
    /// Shingles in the prefixes, or sketches, of more texts than the cap, paired as stars.
    capped_shingles: u64,
    /// Of these the most common, where they are counted one by one: with `--method shingles`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    common_shingles: Vec<CommonShingle>,
    /// Documents with words, and without an element in their sketch: with `--method shingles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_elements: Option<u64>,
    /// The cap: `--max-bucket`, or less to bound the work.
    bucket_cap: u64,
    largest_bucket: u64,
    /// Groups of identical documents of more than `--max-bucket`.
    starred_groups: u64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
    /// CPU seconds by name. `read` is `sketch` and `exact`; with `--method shingles`, `candidates` is `shingle_merge`,
    /// `pair_formation` and `pair_merge`.
    stages: Stages,
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
        if self.threshold.is_some() && !self.resembles() {
            return Err(Usage::new("--threshold goes with --method minhash or shingles").into());
        }
        if self.preset.is_some() && !self.resembles() {
            return Err(Usage::new("--preset goes with --method minhash or shingles").into());
        }
        if self.minima.is_some() && !self.resembles() {
            return Err(Usage::new("--minima goes with --method minhash or shingles").into());
        }
        let sketches = [("--modulus", self.modulus.is_some()), ("--bottom", self.bottom.is_some())];
        if let Some((option, _)) =
            sketches.into_iter().find(|&(_, given)| given && self.method != Method::Shingles)
        {
            return Err(Usage::new(format!("{option} goes with --method shingles")).into());
        }
        self.check_join()?;
        if self.against.is_some() && self.method == Method::Exact {
            return Err(Usage::new("--against goes with --method minhash, shingles or simhash").into());
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
        let half_done = HalfDone::new(folder.path());

        let report = self.work(params, documents, table.as_ref(), folder.path())?;
        drop(half_done);
        crate::lost::check()?;
        out.put_in_place(folder, self.force)?;
        made.sync()?;
        if self.output.json {
            report::print_json(&report)?;
        } else if !self.output.quiet {
            report::print_lines(&self.summary(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses ways of joining that go with nothing.
    fn check_join(&self) -> anyhow::Result<()> {
        if self.join.is_some() && self.method != Method::Minhash {
            return Err(Usage::new("--join goes with --method minhash").into());
        }
        if self.features.are_given() && (self.method != Method::Minhash || self.join() != Join::Bands) {
            return Err(Usage::new("--sharing and --feature-bits go with --join bands").into());
        }
        if !self.resembles() {
            let given =
                [("--verify", self.verify.is_some()), ("--signature-bits", self.signature_bits.is_some())];
            if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(Usage::new(format!("{option} goes with --method minhash or shingles")).into());
            }
        }
        if self.method == Method::Shingles && self.verify() == Verify::None {
            return Err(Usage::new(
                "--verify none goes with --method minhash: what sketches have in common is counted in any case",
            )
            .into());
        }
        if self.join == Some(Join::Prefix) && self.verify() != Verify::Exact {
            return Err(Usage::new(
                "--join prefix goes with --verify exact: it reads the shingles, and with these resemblance is exact",
            )
            .into());
        }
        if self.against.is_some() && self.signature_bits == Some(0) {
            // Who shares a band may be near or not, and nothing could tell.
            return Err(Usage::new("--against needs --signature-bits of 1 or more").into());
        }
        if self.method == Method::Minhash
            && self.verify() == Verify::Signature
            && self.signature_bits == Some(0)
        {
            return Err(Usage::new("--verify signature needs --signature-bits of 1 or more").into());
        }
        Ok(())
    }

    /// Whether documents are near by resemblance.
    fn resembles(&self) -> bool {
        matches!(self.method, Method::Minhash | Method::Shingles)
    }

    /// What is in the sketches that are joined.
    fn sampled_by(&self) -> Option<SampledBy> {
        let by = self.modulus.map_or(SampledBy::Bottom(self.bottom.unwrap_or(BOTTOM)), SampledBy::Modulus);
        (self.method == Method::Shingles).then_some(by)
    }

    fn verify(&self) -> Verify {
        let by_method = if self.method == Method::Shingles { Verify::Signature } else { Verify::Exact };
        self.verify.unwrap_or(by_method)
    }

    fn join(&self) -> Join {
        self.join.unwrap_or(if self.verify() == Verify::Exact { Join::Prefix } else { Join::Bands })
    }

    fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(0.8)
    }

    /// Minima of the bands for a threshold.
    fn minima(&self) -> u16 {
        let estimates = self.method == Method::Minhash && self.verify() == Verify::Signature;
        self.minima.unwrap_or(if estimates { MINIMA_TO_ESTIMATE } else { MINIMA })
    }

    /// The bands that find candidates.
    fn banding(&self) -> Banding {
        self.preset.map_or_else(
            || Banding::of_minima(self.minima(), self.threshold()),
            |preset| Banding { bands: preset.scheme.groups, rows: preset.scheme.group_size },
        )
    }

    /// Says what is missed where the bands of a preset find less than those that dedup would choose.
    fn note_recall(&self) {
        let (banding, threshold) = (self.banding(), self.threshold());
        let recall = banding.recall(threshold);
        let by_bands = self.method == Method::Minhash && self.join() == Join::Bands;
        let misses = by_bands && recall < RECALL && !self.output.quiet;
        if let Some(preset) = self.preset.filter(|_| misses) {
            report::note(&format!(
                "--preset {}: its {} bands of {} minima find {:.1} % of the pairs at the threshold of {threshold}; \
                 without it, {:.1} %",
                preset.name,
                banding.bands,
                banding.rows,
                recall * 100.0,
                Banding::of_minima(self.minima(), threshold).recall(threshold) * 100.0
            ));
        }
    }

    /// The parameters of `OUT/index`.
    fn params(&self, table: Option<&IdfTable>) -> anyhow::Result<Params> {
        let shingling = contents::shingling(&self.text, self.input.reads_features(), table)?;
        let builder = Params::builder().shingling(shingling);
        Ok(match self.method {
            Method::Minhash | Method::Shingles | Method::Exact => {
                let banding = self.banding();
                let builder = builder.minhash(banding.bands, banding.rows);
                let builder = match self.sampled_by() {
                    None => builder,
                    Some(SampledBy::Bottom(t)) => builder.bottom(t),
                    Some(SampledBy::Modulus(modulus)) => builder.modulus(modulus),
                };
                self.signature_bits
                    .into_iter()
                    .fold(builder, twindex::params::ParamsBuilder::signature_bits)
                    .build()?
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
        let mut stages = Stages::default();

        let watch = Stopwatch::start();
        let against = self.against(&params)?;
        let sketcher = match table {
            None => Sketcher::new(&params)?,
            Some(table) => Sketcher::with_idf(&params, Arc::clone(table))?,
        };
        let index = self.index(folder, params, table)?;
        let mut writer = index.as_ref().map(Index::writer).transpose()?;
        if let Some(writer) = &mut writer {
            writer.set_memory(self.resources.memory / 2);
            writer.set_logged(false); // one commit, and what it makes is looked at as a segment
        }
        let mut corpus = self.corpus(folder, &documents)?;
        let progress = Progress::bytes(documents.total_bytes(), "reading", self.output.quiet);
        let (mut empty, mut finding_copies) = (0, Duration::ZERO);
        let counted = self.method == Method::Exact || self.verify() == Verify::Exact;
        let shingles = self.method != Method::Simhash && counted;
        let wanted = Wanted { shingles, whole: true, ..Wanted::default() };
        let look = |sketch: &Sketch| match &against {
            None => Ok(None),
            Some(against) => Ok(against.nearest(sketch)?),
        };
        for_each_looked_up(&mut documents, &sketcher, &wanted, &progress, look, |one, near, shingles| {
            empty += u64::from(one.sketch.is_empty());
            if let Some(near) = near {
                return corpus.drop_near(&one, near);
            }
            if let Some(writer) = &mut writer {
                let put = writer.put(one.key.as_slice(), &one.sketch);
                put.with_context(|| format!("{}: cannot index the document", one.place))?;
            }
            // A clock of the processor is a call of the system, and would be the slower part.
            let start = Instant::now();
            let added = corpus.add(&one, shingles);
            finding_copies += start.elapsed();
            added
        })?;
        progress.finish();
        let (read, exact) = (watch.cpu_seconds(), finding_copies.as_secs_f64());
        stages.insert("sketch", (read - exact).max(0.0));
        stages.insert("exact", exact.min(read));
        stages.add("read", watch);

        let watch = Stopwatch::start();
        if let Some(mut writer) = writer {
            writer.commit()?;
        }
        stages.add("index", watch);

        let limits = Limits { folder, memory: self.resources.memory / 2, max_bucket };
        let snapshot = index.as_ref().map(Index::snapshot);
        let mut near = self.near(&corpus, snapshot.as_ref(), &limits, &mut stages)?;
        if self.method != Method::Exact {
            stages.insert("candidates", near.seconds.0);
            stages.insert("verify", near.seconds.1);
        }

        let watch = Stopwatch::start();
        let clusters = self.clusters(&corpus, &mut near, snapshot.as_ref())?;
        stages.add("cluster", watch);

        let limits = Limits { memory: limits.memory / 2, ..limits };
        let ((pair_count, kept_files), more) =
            self.write_all(&corpus, &near, &clusters, against.as_ref(), snapshot.as_ref(), &limits)?;
        stages.extend(more);

        let input = documents.counts().clone();
        Ok(Report {
            empty,
            identical: corpus.keys.len() as u64 - corpus.groups.len() as u64,
            dropped: against.is_some().then_some(corpus.dropped.len() as u64),
            candidates: near.candidates,
            pairs: pair_count,
            clusters: clusters.sizes.iter().filter(|&&size| size > 1).count() as u64,
            largest_cluster: u64::from(clusters.sizes.iter().copied().max().unwrap_or(0)),
            removed: input.documents - clusters.sizes.len() as u64,
            kept: clusters.sizes.len() as u64,
            kept_files,
            chained: clusters.chained,
            cluster_sizes: clusters.distribution(),
            lowest_resemblance: clusters.lowest.map(|(_, _, resemblance)| resemblance),
            lowest_pair: clusters.lowest_keys(&corpus),
            cut_components: clusters.cut,
            capped_buckets: near.capped.buckets,
            capped_shingles: near.capped.shingles,
            common_shingles: common_shingles(&near, &corpus),
            without_elements: corpus.sketches.is_some().then(|| corpus.without_elements()),
            bucket_cap: near.capped.cap,
            largest_bucket: near.capped.largest,
            starred_groups: corpus.groups.iter().filter(|group| group.is_starred(max_bucket)).count() as u64,
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
            stages,
        })
    }

    /// The index that is made; none where texts are only compared for being equal.
    fn index(
        &self,
        folder: &Path,
        params: Params,
        table: Option<&Arc<IdfTable>>,
    ) -> anyhow::Result<Option<Index>> {
        if self.method == Method::Exact {
            return Ok(None);
        }
        let path = folder.join("index");
        Ok(Some(Index::create_from(Arc::new(RealVfs), &path, params, table.map(|table| &**table))?))
    }

    /// What will be remembered of the documents.
    fn corpus(&self, folder: &Path, documents: &Documents) -> anyhow::Result<Corpus> {
        let holds_sets = self.resembles() && self.verify() == Verify::Exact;
        let (parser, memory) = (documents.parser().clone(), self.resources.memory / 4);
        Corpus::new(folder, memory, parser, holds_sets, self.sampled_by())
    }

    /// Writes the files and the page, at the same time: neither needs the other, and each is the work of one thread.
    fn write_all(
        &self,
        corpus: &Corpus,
        near: &Near,
        clusters: &Clusters,
        against: Option<&Against>,
        snapshot: Option<&Snapshot>,
        limits: &Limits<'_>,
    ) -> anyhow::Result<((u64, Vec<String>), Stages)> {
        let (written, reported) = rayon::join(
            || {
                let watch = Stopwatch::of_thread();
                let written = write(corpus, near, clusters, against, limits);
                written.map(|written| (written, Stages::of("write", watch)))
            },
            || {
                let watch = Stopwatch::of_thread();
                if let Some(snapshot) = snapshot {
                    // What was found counts more than a page about it.
                    if let Err(error) = self.write_report(snapshot, corpus, clusters, limits) {
                        report::note(&format!("no report.html: {error:#}"));
                    }
                }
                Stages::of("report", watch)
            },
        );
        let (written, mut stages) = written?;
        stages.extend(reported);
        Ok((written, stages))
    }

    /// Writes the page about the index, with the clusters that were found.
    fn write_report(
        &self,
        snapshot: &Snapshot,
        corpus: &Corpus,
        clusters: &Clusters,
        limits: &Limits<'_>,
    ) -> anyhow::Result<()> {
        let near = match (self.method, self.verify()) {
            (Method::Simhash, _) => format!("fingerprints within {} bits", self.within.unwrap_or(3)),
            (_, Verify::Exact) => format!("a resemblance of {} or more, counted", self.threshold()),
            (_, Verify::Signature) => format!("an estimated resemblance of {} or more", self.threshold()),
            (_, Verify::None) => "a band in common".to_owned(),
        };
        let look = Look { threshold: self.threshold(), max_bucket: limits.max_bucket };
        let found = clusters.for_a_page(corpus, near)?;
        // The index is where it is made, not yet where it will be.
        let figures = page::look(
            snapshot,
            &limits.folder.join("index"),
            look,
            (limits.folder, limits.memory),
            Some(found),
        )?;
        page::write(&limits.folder.join(out::REPORT), &figures.named(&self.out))
    }

    /// What documents are compared with first.
    fn against(&self, params: &Params) -> anyhow::Result<Option<Against>> {
        let Some(path) = &self.against else { return Ok(None) };
        let question = match self.method {
            Method::Simhash => Question::Within(self.within.unwrap_or(3).into()),
            Method::Minhash | Method::Shingles | Method::Exact => Question::Resembling(self.threshold()),
        };
        Ok(Some(Against::open(path, question, params)?))
    }

    /// The pairs of texts that are near.
    fn near(
        &self,
        corpus: &Corpus,
        snapshot: Option<&Snapshot>,
        limits: &Limits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<Near> {
        Ok(match (snapshot, self.method) {
            (Some(snapshot), Method::Simhash) => {
                Near::by_fingerprints(corpus, snapshot, self.within.unwrap_or(3).into(), limits)?
            }
            (Some(_), Method::Shingles) => {
                Near::by_sketches(corpus, self.verify(), self.threshold(), limits, stages)?
            }
            (Some(_), Method::Minhash) if self.join() == Join::Prefix => {
                Near::by_prefixes(corpus, self.threshold(), limits)?
            }
            (Some(snapshot), Method::Minhash) => {
                let agreement = match snapshot.params().minhash {
                    Some(minhash) => self.features.agreement(minhash, corpus.keys.len() as u64)?,
                    None => Agreement::default(),
                };
                Near::by_bands(corpus, snapshot, agreement, (self.verify(), self.threshold()), limits)?
            }
            (None, _) | (_, Method::Exact) => Near::none(corpus, limits)?,
        })
    }

    /// The clusters, and of each group how near it is to the one that is kept.
    fn clusters(
        &self,
        corpus: &Corpus,
        near: &mut Near,
        snapshot: Option<&Snapshot>,
    ) -> anyhow::Result<Clusters> {
        let rules = Rules {
            keep: self.keep,
            threshold: self.threshold(),
            max_cluster: self.max_cluster.unwrap_or(u32::MAX),
        };
        let signatures = match (snapshot, self.method, self.verify()) {
            (Some(snapshot), Method::Minhash, Verify::Signature) => Some(Signatures::of(corpus, snapshot)?),
            _ => None,
        };
        let within = u32::from(self.within.unwrap_or(3));
        let distance = |a: u32, b: u32| {
            let of = |group: u32| corpus.groups[group as usize].fingerprint;
            let distance = of(a).zip(of(b)).map(|(a, b)| (a.0 ^ b.0).count_ones());
            distance.filter(|&distance| distance <= within).map(Score::Distance)
        };
        let measure: &Measure<'_> = &|a, b| {
            Ok(match (self.method, self.verify(), &signatures) {
                (Method::Simhash, ..) => distance(a, b),
                (Method::Shingles, Verify::Signature, _) => corpus.sampled(a, b)?,
                (_, _, Some(signatures)) => Some(signatures.estimate(a, b)?),
                (_, Verify::Exact, _) => Some(Score::counted(corpus.sets.resemblance(a, b)?)),
                _ => None,
            })
        };
        Clusters::of(corpus, near, &rules, measure)
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
fn common_shingles(near: &Near, corpus: &Corpus) -> Vec<CommonShingle> {
    let shingles = near.most_common.iter().map(|&(texts, hash, first)| {
        let first = corpus.groups[first as usize].members[0];
        let first = String::from_utf8_lossy(&corpus.keys[first as usize]).into_owned();
        CommonShingle { hash: format!("{hash:012x}"), texts, first }
    });
    shingles.collect()
}

/// Writes all results but the index; returns the number of pairs, and the names of the files of documents.
fn write(
    corpus: &Corpus,
    near: &Near,
    clusters: &Clusters,
    against: Option<&Against>,
    limits: &Limits<'_>,
) -> anyhow::Result<(u64, Vec<String>)> {
    let by_key = corpus.documents_by_key();
    let pair_count = out::write_pairs(corpus, &by_key, near, limits, &limits.folder.join("pairs.tsv"))?;
    out::write_clusters(corpus, &by_key, clusters, &limits.folder.join("clusters.tsv"))?;
    if let Some(against) = against {
        out::write_dropped(corpus, against, &limits.folder.join("against.tsv"))?;
    }
    Ok((pair_count, out::write_kept(corpus, clusters, limits.folder, limits.memory)?))
}
