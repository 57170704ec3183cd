//! `twindex query`: finds the documents near each input.

mod batch;
mod contained;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;
use twindex::format::table::Probe;
use twindex::params::{KeyKind, Near, Threshold};
use twindex::segment::SearchOptions;
use twindex::sketch::{Containment, jaccard};
use twindex::{Code, Fingerprint, Hit, Index, KeyBuf, Params, Resemblance, Sketch, Snapshot};
use twindex_corpus::contents;
use twindex_corpus::input::Documents;
use twindex_corpus::settings::Rule;
use twindex_corpus::sharing;
use twindex_corpus::sketching::{DocumentScratch, SketchOptions, for_each_looked_up, for_each_sketched};
use twindex_corpus::texts::Texts;
use twindex_corpus::tsv;
use twindex_join::Agreement;
use xxhash_rust::xxh3::xxh3_64;

use crate::boilerplate_args::BoilerplateArgs;
use crate::differs::NearOfQuery;
use crate::feature_args::FeatureArgs;
use crate::options::{AccessArgs, FingerprintArgs, InputArgs, Output, RepeatedArgs, ResourceArgs, Usage};
use crate::param_args::check_within;
use crate::progress::{Progress, Watching};
use crate::raw_column::RawColumn;
use crate::recall;
use crate::refusals::{self, Refusal};
use crate::report::{self, Stopwatch, mix};
use crate::settings_args::Options;
use crate::shard::ShardArgs;
use crate::stage::{ResultKind, StageArgs, StageFile, WrittenFile};
use crate::verifying::{VerifiedBy, counted};

/// The kind of result written by `--out` and `--into`.
const HITS: ResultKind =
    ResultKind { noun: "a table of hits", suffix: "hits", magic: b"query\tkey\tdistance\t" };

/// The message if the results cannot be written.
const CANNOT_WRITE: &str = "cannot write the results";
/// Minimum number of queries per core in a batch. In a larger batch, more queries read the same buckets.
const BATCH: usize = 4096;
/// Maximum number of queries per core in a batch.
const BATCH_MAX: usize = 1 << 18;

/// Number of fingerprints per core in a batch for an index of fingerprints of any width.
const BATCH_OF_CODES: usize = 1024;

/// Options of `query`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex query pages.twx new.jsonl\n  \
    twindex query pages.twx new.jsonl --near within:3\n  \
    twindex query pages.twx new.jsonl --near 0.9 --limit 1\n  \
    twindex query pages.twx new.jsonl --near containment:0.9\n  \
    twindex query hashes.twx --fingerprints queries.u64 --count\n  \
    twindex query images.twx new.jsonl --fingerprint-field phash --near within:4\n  \
    twindex query --against-fingerprints hashes.u64 --fingerprints queries.u64 --near within:3\n  \
    twindex query shard-2.twx new.jsonl --into hits\n\n\
    Prints a line for each hit: query, key, distance, resemblance (- where unknown), nearest first. Resemblance is \
    counted where the index keeps sets, and then nothing near is missed, or by --texts, and two fields more have the counts, \
    intersection and union; otherwise it is an estimate from stored signatures, which has to be asked for. From an index built with --bottom or --modulus, two fields more: how much of the \
    query is contained in the hit, and of the hit in the query; with --near containment:J these are counted, and the greater one \
    decides and orders the hits. Without --near, what is near by \
    the index's own threshold and radius, which `stats` shows.")]
#[allow(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub(crate) struct QueryArgs {
    /// Directory of the index
    #[arg(required_unless_present = "against_fingerprints")]
    index: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    #[command(flatten)]
    repeated: RepeatedArgs,
    #[command(flatten)]
    boilerplate: BoilerplateArgs,
    /// File of raw fingerprints to search instead of an index: little-endian 64-bit numbers, whose keys are their
    /// positions; read in pieces of 64 MB
    #[arg(long, value_name = "FILE", conflicts_with_all = ["index", "inputs"], requires = "fingerprints")]
    against_fingerprints: Option<PathBuf>,
    /// Strategy for raw fingerprints: probe the tables of the index; join, which reads the whole index; compare all
    /// queries with all fingerprints; or use the strategy that a cost model estimates to be fastest. Answers do not
    /// depend on it
    #[arg(long, value_enum, value_name = "WAY", default_value = "auto", requires = "fingerprints")]
    by: StrategyArg,
    /// File of raw fingerprints as queries instead of documents: little-endian 64-bit numbers, whose keys are their
    /// positions
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inputs", "fingerprint_field"])]
    fingerprints: Option<PathBuf>,
    #[command(flatten)]
    near: Options<Rule, NearOfQuery>,
    #[command(flatten)]
    features: FeatureArgs,
    /// How resemblance is verified: by exact counts, with the sets in the index (the default) or on --texts with
    /// --near J; by the signatures in the index, an estimate; or not at all
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifiedBy>,
    /// The texts of an index without sets, as they were given to `build`
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// With --texts, print the exact share of the query that the hit contains, and the share of the hit that the query
    /// contains
    #[arg(long)]
    containment: bool,
    /// With --near containment:J, print a small cover of each query: the document that contains most of it, then the
    /// one that contains most of the rest, until none has a share J of the query that no earlier one has. Two fields more:
    /// the number of shingles that no earlier document has, and their share of the query
    #[arg(long)]
    gather: bool,
    /// Print only the number of hits
    #[arg(long)]
    count: bool,
    /// Print at most N hits for each query, the nearest ones
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print only the first hit found for each query, which need not be the nearest
    #[arg(long, conflicts_with_all = ["limit", "shard"])]
    first: bool,
    /// Visit at most N rows of the fingerprint tables for each query in each segment; the number of skipped buckets is
    /// reported
    #[arg(long, value_name = "N")]
    visits: Option<u64>,
    /// How the fingerprint tables are probed, if their codec supports it; answers do not depend on it [default: the
    /// fastest way]
    #[arg(long, value_enum, value_name = "WAY")]
    probe: Option<ProbeArg>,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// Strategies for answering many queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StrategyArg {
    Auto,
    Probes,
    Merge,
    Scan,
}

/// Methods of probing the fingerprint tables.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProbeArg {
    Directory,
    Interpolation,
    Binary,
}

impl ProbeArg {
    fn probe(self) -> Probe {
        match self {
            Self::Directory => Probe::Directory,
            Self::Interpolation => Probe::Interpolation,
            Self::Binary => Probe::Binary,
        }
    }
}

/// Rules that reject options in queries on which they have no effect.
const REFUSALS: &[Refusal<QueryArgs>] = &[
    Refusal {
        when: |query| query.fingerprints.is_some(),
        given: |query| {
            let repeated = query.repeated.first_given();
            let form = query.fingerprint.first_given();
            query.input.first_given().or(repeated).or(form).or_else(|| query.boilerplate.option())
        },
        why: "says how documents are read, and --fingerprints has none; leave it out",
    },
    Refusal {
        when: |query| query.near.containment().is_some(),
        given: |query| {
            let named = query.fingerprint.first_given();
            named.or_else(|| {
                refusals::first(&[
                    ("--sharing or --feature-bits", query.features.options().are_given()),
                    ("--texts", !query.texts.is_empty()),
                    ("--containment", query.containment),
                    ("--verify", query.verify.is_some_and(|verify| verify != VerifiedBy::Exact)),
                    ("--first", query.first),
                    ("--visits", query.visits.is_some()),
                    ("--probe", query.probe.is_some()),
                ])
            })
        },
        why: "does not go with --near containment:J, which is counted on the sets of all documents; leave it out",
    },
];

/// The statistics that `--json` prints.
#[derive(Default, Serialize)]
struct QueryReport {
    /// The path of the hits. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    queries: u64,
    hits: u64,
    /// Number of queries with hits beyond `--limit`.
    limited: u64,
    /// Number of buckets that were skipped because of `--visits`. They may contain hits.
    unvisited: u64,
    /// CPU seconds for answering and printing. They include reading and sketching documents, but not reading raw
    /// fingerprints.
    cpu_seconds: f64,
    ns_per_query: f64,
    checksum: String,
    /// Wall-clock seconds for the same work as `cpu_seconds`.
    seconds: f64,
    /// The strategy used for raw fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Expected fraction of the documents with exactly the requested resemblance that the bands find.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    /// Mean share of a query that its hits contain. Absent if the index has no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_query_in_hit: Option<f64>,
    /// Mean share of a hit that its query contains. Absent if the index has no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_hit_in_query: Option<f64>,
}

/// Totals over the answers.
#[derive(Default)]
struct QueryTotals {
    queries: u64,
    hits: u64,
    limited: u64,
    unvisited: u64,
    checksum: u64,
    by: Option<twindex_join::BatchStrategy>,
    query_in_hit: Mean,
    hit_in_query: Mean,
}

/// Computes the mean of the known values.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, known: Option<Containment>) {
        if let Some(known) = known {
            self.sum += known.value();
            self.count += 1;
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

impl QueryTotals {
    fn add(self, other: &Self) -> Self {
        Self {
            queries: self.queries + other.queries,
            hits: self.hits + other.hits,
            limited: self.limited + other.limited,
            unvisited: self.unvisited + other.unvisited,
            checksum: self.checksum.wrapping_add(other.checksum),
            // Only totals of raw fingerprints are added up. They have no containment values.
            ..self
        }
    }
}

/// Returns a number for a key, for use in checksums.
pub(crate) fn key_number(key: &KeyBuf) -> u64 {
    match key {
        KeyBuf::U64(key) => *key,
        KeyBuf::Bytes(key) => xxh3_64(key),
    }
}

/// Restricts a query to documents that agree with it in the required number of features.
fn agreeing(query: twindex::Query, agreement: Agreement) -> twindex::Query {
    query.sharing(agreement.features.into()).feature_bits(agreement.bits)
}

impl QueryArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        if self.input.inputs.is_empty() && self.fingerprints.is_none() {
            return Err(Usage::new("nothing to ask: name INPUT files, or --fingerprints FILE").into());
        }
        self.check_near()?;
        self.check_verify()?;
        let files = self.index.iter().chain(&self.against_fingerprints).chain(&self.fingerprints);
        self.stage.check(HITS, files.chain(&self.texts).chain(&self.input.inputs))?;
        self.check_by()?;
        if let Some(path) = &self.against_fingerprints {
            return self.against(path);
        }
        let index = Index::options().access(self.access.access()).open(self.index())?;
        let snapshot = index.snapshot();
        if let Some(share) = self.near.containment() {
            return self.answer_containment(share, &index, &snapshot);
        }
        let has_codes = snapshot.params().codes.is_some();
        check_within(self.near.within().filter(|_| !has_codes && !self.fingerprint.are_read()))?;
        let has_fingerprints = snapshot.params().simhash.is_some() || has_codes;
        if self.within().is_some() && !has_fingerprints {
            bail!(
                "{}: this index keeps no simhash fingerprints, so --near within:K cannot be answered: ask by --near J, or \
                 build one with them (as `build` does, unless --method says otherwise)",
                self.index().display()
            );
        }
        if self.near.resemblance().is_some() && snapshot.params().minhash.is_none() {
            bail!(
                "{}: this index keeps no MinHash, so --near J cannot be answered: ask by --near within:K, or build \
                 one with it (as `build` does, unless --method says otherwise)",
                self.index().display()
            );
        }
        let (threshold, verify) = self.check_known(snapshot.params())?;
        let in_one = Agreement::in_one(snapshot.params());
        let agreement = match snapshot.params().minhash.filter(|_| self.near.resemblance().is_some()) {
            Some(minhash) => self.features.options().agreement(minhash, snapshot.documents())?,
            None => in_one,
        };
        let by_bands = verify != Some(VerifiedBy::Exact) || !self.texts.is_empty();
        let expected_recall = self.near.resemblance().filter(|_| by_bands).and_then(|resembling| {
            let minhash = snapshot.params().minhash?;
            Some(sharing::recall(minhash, agreement, resembling))
        });
        let is_estimated = verify == Some(VerifiedBy::Signature) || !self.texts.is_empty();
        if let Some(threshold) =
            threshold.filter(|_| is_estimated && agreement == in_one && !self.output.quiet)
        {
            let asked = match self.near.resemblance() {
                Some(resembling) => format!("at --near {resembling}"),
                None => format!("that resemble by {threshold}"),
            };
            recall::note(self.index(), snapshot.params(), threshold, &asked);
        }
        let has_numbers_as_keys = self.fingerprints.is_some() || snapshot.params().key == KeyKind::U64;
        let mut out = self.hits(verify, keeps_samples(&snapshot), has_numbers_as_keys)?;
        let (totals, cpu_seconds, seconds) = if let Some(path) = &self.fingerprints {
            let Some(simhash) = snapshot.params().simhash else {
                bail!("{}: this index keeps no simhash fingerprints", self.index().display());
            };
            let queries = RawColumn::open(path)?;
            self.raw(
                &snapshot,
                queries,
                self.within().unwrap_or(simhash.near.unwrap_or(simhash.within.into()).into()),
                &mut out,
            )?
        } else {
            let watch = Stopwatch::start();
            let totals = self.documents(&index, &snapshot, (agreement, verify), &mut out)?;
            (totals, watch.cpu_seconds(), watch.seconds())
        };
        snapshot.check_maps()?;
        let written = out.finish()?;
        self.report(&totals, (cpu_seconds, seconds), expected_recall, written)
    }

    /// Returns the directory of the index; an empty path if the option was not given.
    fn index(&self) -> &Path {
        self.index.as_deref().unwrap_or_else(|| Path::new(""))
    }

    /// Prints the summary.
    fn report(
        &self,
        totals: &QueryTotals,
        (cpu_seconds, seconds): (f64, f64),
        expected_recall: Option<f64>,
        written: WrittenFile,
    ) -> anyhow::Result<ExitCode> {
        if self.output.json {
            report::print_json(&QueryReport {
                file: written.path,
                queries: totals.queries,
                hits: totals.hits,
                limited: totals.limited,
                unvisited: totals.unvisited,
                cpu_seconds,
                ns_per_query: cpu_seconds * 1e9 / (totals.queries.max(1)) as f64,
                checksum: format!("{:016x}", totals.checksum),
                seconds,
                by: totals.by.map(|way| way.to_string()),
                expected_recall,
                mean_query_in_hit: totals.query_in_hit.value(),
                mean_hit_in_query: totals.hit_in_query.value(),
            })?;
        } else if self.count {
            report::print_lines(&[totals.hits.to_string()])?;
        } else {
            written.print_summary(&report::counted(totals.hits, "hit"), &self.output)?;
        }
        if totals.unvisited > 0 && !self.output.quiet {
            let buckets = report::count(totals.unvisited);
            report::note(&format!("{buckets} buckets were left out by --visits; there may be hits in them"));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the distance of `--near within:K`.
    fn within(&self) -> Option<u32> {
        self.near.within().map(u32::from)
    }

    /// Returns an error if the chosen near relation does not use a given option.
    fn check_near(&self) -> anyhow::Result<()> {
        let raw = self.fingerprints.is_some();
        check_within(self.near.within().filter(|_| raw || self.against_fingerprints.is_some()))?;
        if raw && self.near.near.is_some() && self.within().is_none() {
            let why = "--fingerprints brings fingerprints without texts, which are near by distance: give --near within:K";
            return Err(Usage::new(why).into());
        }
        if self.against_fingerprints.is_some() && self.within().is_none() {
            return Err(Usage::new("--against-fingerprints needs a distance: give --near within:K").into());
        }
        Ok(refusals::check(REFUSALS, self)?)
    }

    /// Returns an error for verification options that have no effect.
    fn check_verify(&self) -> anyhow::Result<()> {
        let (exact, by_texts) = (self.verify == Some(VerifiedBy::Exact), !self.texts.is_empty());
        let why = match () {
            () if self.features.options().are_given() && self.near.resemblance().is_none() => {
                "--sharing and --feature-bits go with --near J"
            }
            () if by_texts && self.near.resemblance().is_none() => "--texts goes with --near J",
            () if self.verify.is_some() && (self.within().is_some() || self.fingerprints.is_some()) => {
                "--verify is about resemblance, and distances are exact; leave it out"
            }
            () if by_texts && self.first => "--first goes without --texts; --limit 1 gives the nearest",
            () if by_texts && self.verify.is_some() && !exact => "--texts goes with --verify exact",
            () if !by_texts && self.containment => "--containment goes with --texts",
            () if self.gather && self.near.containment().is_none() => {
                "--gather goes with --near containment:J"
            }
            () => return Ok(()),
        };
        Err(Usage::new(why).into())
    }

    /// Returns the smallest resemblance of hits (`None` if hits are not found by verified resemblance), and the method that
    /// verifies resemblance. Returns an error if the index does not store the required data.
    fn check_known(&self, params: &Params) -> anyhow::Result<(Option<f64>, Option<VerifiedBy>)> {
        let near = match (self.within(), self.fingerprints.is_some(), self.near.resemblance()) {
            (None, false, None) => params.near(),
            (.., Some(resembling)) => Near::resembling(resembling)?,
            (.., None) => return Ok((None, None)),
        };
        if !self.texts.is_empty() {
            return Ok((self.near.resemblance(), Some(VerifiedBy::Exact)));
        }
        let verify = counted(self.index(), params, near, self.verify)?;
        if verify == Some(VerifiedBy::None) {
            if !self.output.quiet {
                report::note("--verify none: hits share a band with the query, whatever their resemblance");
            }
            return Ok((None, verify));
        }
        Ok((near.threshold.map(Threshold::value), verify))
    }

    /// Returns an error if the chosen strategy cannot answer the queries.
    fn check_by(&self) -> anyhow::Result<()> {
        if matches!(self.by, StrategyArg::Auto | StrategyArg::Probes) && self.against_fingerprints.is_none() {
            return Ok(());
        }
        let only =
            [("--first", self.first), ("--visits", self.visits.is_some()), ("--probe", self.probe.is_some())];
        if let Some((option, _)) = only.iter().find(|(_, given)| *given) {
            return Err(Usage::new(format!(
                "{option} is about the tables of an index: it goes with --by probes"
            ))
            .into());
        }
        if self.by == StrategyArg::Probes {
            return Err(
                Usage::new("--by probes: raw fingerprints have no tables; --by merge or --by scan").into()
            );
        }
        Ok(())
    }

    fn prints(&self) -> bool {
        self.stage.is_file() || !self.count
    }

    /// Creates the output for hits.
    fn hits(
        &self,
        verify: Option<VerifiedBy>,
        sampled: bool,
        has_numbers_as_keys: bool,
    ) -> anyhow::Result<StageFile> {
        let names = self.names(verify, sampled);
        let mut out = self.stage.create_table(HITS, &names, (false, has_numbers_as_keys), &self.output)?;
        if self.stage.is_file() {
            writeln!(out, "{names}").context(CANNOT_WRITE)?;
        }
        Ok(out)
    }

    /// Returns the column names, separated by tabs.
    fn names(&self, verify: Option<VerifiedBy>, sampled: bool) -> String {
        let exact = !self.texts.is_empty();
        let counted = if verify == Some(VerifiedBy::Exact) { "\tintersection\tunion" } else { "" };
        let sampled = if exact { self.containment } else { sampled };
        let sampled = if sampled { "\tquery_in_hit\thit_in_query" } else { "" };
        let gathered = if self.gather { "\tunique\tunique_in_query" } else { "" };
        format!("query\tkey\tdistance\tresemblance{counted}{sampled}{gathered}")
    }

    /// Answers each raw fingerprint by a query of its own. Returns CPU seconds and wall-clock seconds.
    fn raw(
        &self,
        snapshot: &Snapshot,
        mut queries: RawColumn,
        within: u32,
        out: &mut StageFile,
    ) -> anyhow::Result<(QueryTotals, f64, f64)> {
        if let Some(way) = self.way(snapshot, queries.rows, within)? {
            return self.raw_together(snapshot, queries, within, way, out);
        }
        let mut totals =
            QueryTotals { by: Some(twindex_join::BatchStrategy::Probes), ..QueryTotals::default() };
        let (mut cpu_seconds, mut seconds) = (0.0, 0.0);
        // If hits are printed, only a few batches per core are in memory at a time. If they are only counted, large
        // batches can be answered together.
        let threads = rayon::current_num_threads();
        let alone = self.prints() || self.limit.is_some();
        let most = threads * if alone { 4 * BATCH } else { BATCH_MAX };
        loop {
            let start = totals.queries;
            let wave = queries.wave(most)?;
            if wave.is_empty() {
                break;
            }
            let watch = Stopwatch::start();
            let size = if alone { BATCH } else { wave.len().div_ceil(threads).max(BATCH) };
            let done: Vec<(QueryTotals, Vec<u8>)> = wave
                .par_chunks(size)
                .enumerate()
                .map(|(batch, queries)| {
                    self.raw_batch(snapshot, start + (batch * size) as u64, queries, within)
                })
                .collect::<anyhow::Result<_>>()?;
            for (part, lines) in done {
                totals = totals.add(&part);
                out.write_all(&lines).context(CANNOT_WRITE)?;
            }
            cpu_seconds += watch.cpu_seconds();
            seconds += watch.seconds();
        }
        Ok((totals, cpu_seconds, seconds))
    }

    fn raw_batch(
        &self,
        snapshot: &Snapshot,
        first: u64,
        queries: &[u64],
        within: u32,
    ) -> anyhow::Result<(QueryTotals, Vec<u8>)> {
        let mut totals = QueryTotals { queries: queries.len() as u64, ..QueryTotals::default() };
        let sampled = keeps_samples(snapshot);
        let mut lines = Vec::new();
        let fingerprints: Vec<Fingerprint> = queries.iter().copied().map(Fingerprint).collect();
        if self.prints() || self.limit.is_some() {
            for (number, &fingerprint) in (first..).zip(&fingerprints) {
                let mut answers = self.answers(self.bounded(snapshot.within(fingerprint, within)))?;
                answers.hits.retain(|hit| self.shard.has(&hit.key));
                totals.limited += u64::from(answers.has_more);
                totals.unvisited += answers.unvisited;
                for hit in &answers.hits {
                    totals.hits += 1;
                    totals.checksum = totals.checksum.wrapping_add(mix(number, key_number(&hit.key)));
                    if self.prints() {
                        write_hit(&mut lines, number.to_string().as_bytes(), hit, sampled)?;
                    }
                }
            }
            return Ok((totals, lines));
        }
        let ask = SearchOptions { within, probe: self.probe.map(ProbeArg::probe), visits: self.visits };
        let mut answered = vec![false; fingerprints.len()];
        totals.unvisited = snapshot.for_each_answer(&fingerprints, ask, |query, place, _| {
            // `--first` ends a query only within a segment. Skips the hits of later segments.
            if self.first && std::mem::replace(&mut answered[query], true) {
                return Ok(ControlFlow::Break(()));
            }
            let key = place.key()?;
            if !self.shard.has(&key) {
                return Ok(ControlFlow::Continue(()));
            }
            totals.hits += 1;
            let number = first + query as u64;
            totals.checksum = totals.checksum.wrapping_add(mix(number, key_number(&key)));
            Ok(if self.first { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok((totals, lines))
    }

    fn documents(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        (agreement, verify): (Agreement, Option<VerifiedBy>),
        out: &mut StageFile,
    ) -> anyhow::Result<QueryTotals> {
        if self.fingerprint.are_read() {
            contents::check_fingerprints(self.index(), snapshot.params())?;
        } else {
            contents::check(self.index(), &snapshot.params().shingling, self.input.reads_features())?;
        }
        let codes = snapshot.params().codes;
        if let Some(codes) = codes.filter(|codes| codes.votes.is_some() || self.fingerprint.are_read()) {
            return self.codes(index, snapshot, self.within().unwrap_or(codes.near.into()), out);
        }
        let sketcher = self.boilerplate.sketcher(index)?;
        let options = self.input.options_with(&self.fingerprint)?;
        Documents::check_options(&[&self.input.inputs[..], &self.texts].concat(), &options)?;
        let mut documents = Documents::open_part(&self.input.inputs, &options)?;
        let progress =
            Progress::bytes(documents.total_bytes(), "querying", self.output.quiet || self.prints());
        let mut totals = QueryTotals::default();
        let mut number = 0;
        let exact = !self.texts.is_empty();
        let sampled = if exact { self.containment } else { keeps_samples(snapshot) };
        let scratch = exact.then(tempfile::tempdir).transpose().context("cannot create a scratch folder")?;
        let texts = scratch.as_ref().map(|scratch| {
            let mut texts = Texts::new(scratch.path(), self.work.memory / 2);
            let about = (self.index(), index, snapshot);
            texts.read(
                &self.texts,
                &self.input.options()?,
                about,
                &Watching { quiet: self.output.quiet },
                |_| true,
            )?;
            anyhow::Ok(texts)
        });
        let texts = texts.transpose()?;
        let wanted = self.repeated.wanted(self.work.memory / 4);
        let answers = |sketch: &Sketch, mut rest: DocumentScratch<'_>| {
            let mut answers = if let Some(texts) = &texts {
                self.counted(snapshot, sketch, agreement, rest.distinct(), texts)?
            } else {
                let query = self.ask(snapshot, sketch, (agreement, verify));
                query.map(|query| self.answers(query)).transpose()?.unwrap_or_default()
            };
            answers.hits.retain(|hit| self.shard.has(&hit.key));
            Ok(answers)
        };
        for_each_looked_up(&mut documents, &sketcher, &wanted, &progress, answers, |one, answers, _| {
            totals.queries += 1;
            totals.limited += u64::from(answers.has_more);
            totals.unvisited += answers.unvisited;
            for hit in &answers.hits {
                totals.hits += 1;
                totals.checksum = totals.checksum.wrapping_add(mix(number, key_number(&hit.key)));
                totals.query_in_hit.add(hit.query_in_hit);
                totals.hit_in_query.add(hit.hit_in_query);
                if self.prints() {
                    write_hit(out, &one.key, hit, sampled)?;
                }
            }
            number += 1;
            Ok(())
        })?;
        if !self.output.quiet {
            // Notes go to standard error at the end, so that they do not interrupt the answers on standard output.
            documents.counts().remarks().iter().for_each(|remark| report::note(remark));
        }
        Ok(totals)
    }

    /// Answers fingerprints, or texts by their simhashes, from an index of fingerprints of any width, which is read once for
    /// many of them.
    fn codes(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        within: u32,
        out: &mut StageFile,
    ) -> anyhow::Result<QueryTotals> {
        let options = self.input.options_with(&self.fingerprint)?;
        let mut documents = Documents::open_part(&self.input.inputs, &options)?;
        let progress =
            Progress::bytes(documents.total_bytes(), "querying", self.output.quiet || self.prints());
        let wanted = SketchOptions { wide: true, ..self.repeated.wanted(self.work.memory / 4) };
        let limit = if self.first { 1 } else { self.limit.unwrap_or(usize::MAX) };
        let mut totals = QueryTotals::default();
        let mut answer = |waiting: &mut Vec<(Vec<u8>, Option<Code>)>| {
            let some = waiting.len().div_ceil(rayon::current_num_threads()).max(1);
            let answers = waiting.par_chunks(some).map(|waiting| {
                let codes: Vec<Code> = waiting.iter().filter_map(|&(_, code)| code).collect();
                let mut found = snapshot.codes_within(&codes, within, limit)?.into_iter();
                // A document without words is near no other.
                let of = |(_, code): &(_, Option<Code>)| code.and_then(|_| found.next()).unwrap_or_default();
                Ok::<Vec<twindex::Answers>, twindex::Error>(waiting.iter().map(of).collect())
            });
            let answers = answers.collect::<twindex::Result<Vec<_>>>()?;
            for ((key, _), mut answers) in waiting.drain(..).zip(answers.into_iter().flatten()) {
                answers.hits.retain(|hit| self.shard.has(&hit.key));
                totals.limited += u64::from(answers.has_more);
                for hit in &answers.hits {
                    totals.hits += 1;
                    totals.checksum = totals.checksum.wrapping_add(mix(totals.queries, key_number(&hit.key)));
                    if self.prints() {
                        write_hit(out, &key, hit, false)?;
                    }
                }
                totals.queries += 1;
            }
            anyhow::Ok(())
        };
        let mut waiting = Vec::new();
        let sketcher = self.boilerplate.sketcher(index)?;
        let are_given = self.fingerprint.are_read();
        for_each_sketched(&mut documents, &sketcher, &wanted, &progress, |one| {
            if one.code.is_some() || !are_given {
                waiting.push((one.key.clone(), one.code));
            }
            if waiting.len() >= BATCH_OF_CODES * rayon::current_num_threads() {
                answer(&mut waiting)?;
            }
            Ok(())
        })?;
        answer(&mut waiting)?;
        if !self.output.quiet {
            documents.counts().remarks().iter().for_each(|remark| report::note(remark));
        }
        Ok(totals)
    }

    /// Returns the query for a document; `None` for a document without shingles, which has no near documents except its
    /// copies.
    fn ask(
        &self,
        snapshot: &Snapshot,
        sketch: &Sketch,
        (agreement, verify): (Agreement, Option<VerifiedBy>),
    ) -> Option<twindex::Query> {
        let query = match (self.within(), self.near.resemblance()) {
            _ if sketch.is_empty() && sketch.set().is_empty() => None,
            (Some(within), _) => sketch.code().map(|code| snapshot.within(code, within)),
            (None, Some(threshold)) => Some(agreeing(snapshot.resembling(sketch, threshold), agreement)),
            (None, None) => Some(snapshot.near(sketch)),
        };
        query.map(|query| {
            let query = self.bounded(query);
            match verify {
                Some(VerifiedBy::None) => query.unverified(),
                Some(VerifiedBy::Signature) => query.estimated(),
                Some(VerifiedBy::Exact) | None => query,
            }
        })
    }

    /// Finds the documents that share a band with a sketch and whose exact resemblance, computed from the texts, reaches the
    /// threshold.
    fn counted(
        &self,
        snapshot: &Snapshot,
        sketch: &Sketch,
        agreement: Agreement,
        shingles: &[u64],
        texts: &Texts,
    ) -> anyhow::Result<twindex::Answers> {
        let mut answers = twindex::Answers::default();
        let Some(threshold) = self.near.resemblance().filter(|_| !sketch.is_empty()) else {
            return Ok(answers);
        };
        let mut read = Vec::new();
        // Finds candidates of any estimated resemblance, because the exact resemblance is computed below.
        for mut hit in agreeing(snapshot.resembling(sketch, 0.0).estimated(), agreement).run()?.hits {
            read.clear();
            let other = texts.sets.set(texts.number(&hit.key)?, &mut read)?;
            let (intersection, union) = jaccard(shingles, other);
            let resemblance = Resemblance::Exact { intersection, union };
            if resemblance.at_least(threshold) {
                hit.resemblance = Some(resemblance);
                let of = |whole: usize| Containment::counted(intersection, whole);
                (hit.query_in_hit, hit.hit_in_query) = (Some(of(shingles.len())), Some(of(other.len())));
                answers.hits.push(hit);
            }
        }
        answers.hits.sort_unstable();
        let limit = self.limit.unwrap_or(usize::MAX);
        answers.has_more = answers.hits.len() > limit;
        answers.hits.truncate(limit);
        Ok(answers)
    }

    /// Applies the limits of the options to a query.
    fn bounded(&self, mut query: twindex::Query) -> twindex::Query {
        query = query.limit(self.limit.unwrap_or(usize::MAX));
        if let Some(visits) = self.visits {
            query = query.visit_limit(visits);
        }
        match self.probe {
            Some(way) => query.probe(way.probe()),
            None => query,
        }
    }

    fn answers(&self, query: twindex::Query) -> twindex::Result<twindex::Answers> {
        if !self.first {
            return query.run();
        }
        let mut answers = twindex::Answers::default();
        answers.hits.extend(query.any()?);
        Ok(answers)
    }
}

/// Returns whether the index keeps samples, from which the containment of hits is estimated.
fn keeps_samples(snapshot: &Snapshot) -> bool {
    snapshot.params().bottom > 0 || snapshot.params().modulus > 0
}

fn write_hit(out: &mut impl Write, query: &[u8], hit: &Hit, sampled: bool) -> anyhow::Result<()> {
    let mut line = || -> io::Result<()> {
        tsv::write_field(out, query)?;
        out.write_all(b"\t")?;
        write_key(out, &hit.key)?;
        match hit.distance {
            Some(distance) => write!(out, "\t{distance}")?,
            None => out.write_all(b"\t-")?,
        }
        match &hit.resemblance {
            Some(resemblance) => write!(out, "\t{:.4}", resemblance.value())?,
            None => out.write_all(b"\t-")?,
        }
        if let Some(Resemblance::Exact { intersection, union }) = &hit.resemblance {
            write!(out, "\t{intersection}\t{union}")?;
        }
        for contained in [hit.query_in_hit, hit.hit_in_query].into_iter().filter(|_| sampled) {
            match contained {
                Some(contained) => write!(out, "\t{:.4}", contained.value())?,
                None => out.write_all(b"\t-")?,
            }
        }
        out.write_all(b"\n")
    };
    line().context(CANNOT_WRITE)
}

/// Writes a key as a field of a TSV line.
pub(crate) fn write_key(out: &mut impl Write, key: &KeyBuf) -> io::Result<()> {
    match key {
        KeyBuf::U64(key) => tsv::write_number(out, *key),
        KeyBuf::Bytes(key) => tsv::write_field(out, key),
    }
}
