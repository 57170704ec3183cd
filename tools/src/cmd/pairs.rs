//! `twindex pairs`: finds all near pairs in an index, or across two indexes.

mod brought;
mod raw;
mod resembling;
mod samples;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Parser};
use serde::Serialize;
use twindex::params::{KeyKind, ParamDifference, Threshold};
use twindex::store::snapshot::Place;
use twindex::{Index, KeyBuf, Params, Resemblance, Snapshot};
use twindex_corpus::input::{Documents, InputOptions};
use twindex_corpus::settings::{Reading, Rule};
use twindex_corpus::tsv;
use twindex_join::{JoinResources, NearFingerprints, near_fingerprints_within, pairs_within};

use super::query::{key_number, write_key};
use crate::differs::{NearAlone, ReadingTexts};
use crate::feature_args::FeatureArgs;
use crate::in_order::in_order;
use crate::options::{FingerprintArgs, Output, ResourceArgs, Usage, VerifyChoice};
use crate::pair_file::{PAIRS, PairFields, PairWriter};
use crate::report::{self, Stopwatch, mix};
use crate::settings_args::Options;
use crate::shard::ShardArgs;
use crate::stage::{StageArgs, StageFile, WrittenFile};

/// Default of `--max-bucket`.
const MAX_BUCKET: u32 = 10_000;

/// Options of `pairs`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex pairs pages.twx --near within:3\n  \
    twindex pairs hashes.twx --count\n  \
    twindex pairs today.twx --with yesterday.twx\n  \
    twindex pairs --fingerprints hashes.u64 --near within:3 --threads 2\n  \
    twindex pairs --fingerprints images.csv --fingerprint-field phash --near within:4\n  \
    twindex pairs pages.twx --near 0.8\n  \
    twindex pairs without-sets.twx --near 0.8 --texts pages.jsonl\n  \
    twindex pairs sampled.twx --samples --near 0.5 -o sampled.pairs\n  \
    twindex pairs pages.twx --shard 2/4 --into pairs\n\n\
    Prints a line for each pair of documents whose fingerprints differ in at most K bits: a, b, distance; a before \
    b in key order, or, with --with, a of INDEX and b of OTHER; lines sorted. With --near J: a, b, resemblance, \
    and its standard error or, counted, intersection and union. Files (--out, --into) are for \
    `groups`, and name the parameters that those must agree in.")]
pub(crate) struct PairsArgs {
    /// Directory of the index
    #[arg(required_unless_present = "fingerprints")]
    index: Option<PathBuf>,
    /// File of raw fingerprints to use instead of an index: little-endian 64-bit numbers, whose keys are their
    /// positions. They need about 50 bytes of memory each, in addition to --memory; an index does not. With
    /// --fingerprint-field, a JSONL, CSV, TSV or Parquet file of fingerprints with keys, which are added to a scratch
    /// index
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    fingerprints: Option<PathBuf>,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    /// File with the keys of --fingerprints: one little-endian 64-bit number for each fingerprint, all different
    #[arg(long, value_name = "FILE", requires = "fingerprints", conflicts_with = "fingerprint_field")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    near: Options<Rule, NearAlone>,
    /// Find pairs by the samples that the index stores (`build --bottom T` or `--modulus M`; those of --bottom if it
    /// stores both): all pairs with a common sampled hash whose estimated resemblance is J or more. With --verify exact,
    /// pairs whose estimate is within three standard errors of J are counted. A document without a sampled hash is in
    /// no pair
    #[arg(long, conflicts_with = "fingerprints")]
    samples: bool,
    #[command(flatten)]
    features: FeatureArgs,
    /// Limits the pairs by resemblance of documents that share a band or a shingle. If more than N documents share it,
    /// each is paired only with the first one and the previous one. If that would not limit the work, N is reduced. The
    /// number of such bands and shingles is reported [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..),
        conflicts_with = "fingerprints")]
    max_bucket: Option<u32>,
    /// Find pairs of a document of INDEX and a document of this index, whose fingerprints, sets or signatures must have been
    /// made with the same options.
    /// With --fingerprints, pairs of a row of its file and a row of this file of fingerprints; keys are positions
    #[arg(long, value_name = "OTHER")]
    with: Option<PathBuf>,
    /// How --near J is verified: by exact counts, with the sets in the index (the default, except with --samples) or
    /// on --texts; or by the signatures in the index, an estimate
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifyChoice>,
    /// The texts of an INDEX without sets, as they were given to `build`
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// The texts of OTHER [default: those of --texts]
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "with")]
    with_texts: Vec<PathBuf>,
    #[command(flatten)]
    reading: Options<Reading, ReadingTexts>,
    /// Print only the number of pairs
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    pub(super) work: ResourceArgs,
    #[command(flatten)]
    pub(super) output: Output,
    /// The resemblance of the pairs: that of --near, or that of the index.
    #[arg(skip)]
    resembling: Option<f64>,
    /// Whether another verb runs this one as a step; that verb reports the file itself.
    #[arg(skip)]
    is_a_step: bool,
}

/// Parser for the command line of this verb, which other verbs run as a step.
#[derive(Parser)]
struct PairsLine {
    #[command(flatten)]
    pairs: PairsArgs,
}

/// Writes the pairs of an index, found with these options, to the file `out`.
pub(super) fn pairs_of(
    index: &Path,
    out: &Path,
    options: impl IntoIterator<Item = String>,
    work: &ResourceArgs,
    output: &Output,
) -> anyhow::Result<()> {
    let mut line = vec!["pairs".into(), index.as_os_str().to_owned()];
    line.extend(["--out".into(), out.as_os_str().to_owned()]);
    line.extend(options.into_iter().map(Into::into));
    let mut pairs = PairsLine::try_parse_from(line)?.pairs;
    (pairs.work, pairs.output, pairs.is_a_step) = (work.clone(), output.clone(), true);
    pairs.run().map(drop)
}

/// Fields of `--json`.
#[derive(Serialize)]
struct PairsReport {
    /// The path of the file of pairs. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    pairs: u64,
    #[serde(flatten)]
    search: SearchReport,
    cpu_seconds: f64,
    checksum: String,
    seconds: f64,
    peak_rss_bytes: u64,
}

/// Statistics of the search for pairs by resemblance.
#[derive(Default, Serialize)]
struct SearchReport {
    /// Number of candidate pairs that were compared. Absent without --near J.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<u64>,
    /// Number of buckets with too many members to compare all pairs. Absent without --near J, and with --samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped_buckets: Option<u64>,
    /// Absent without --samples.
    #[serde(flatten)]
    samples: Option<samples::SampleReport>,
}

/// Totals over all pairs.
#[derive(Clone, Copy, Default)]
struct PairTotals {
    count: u64,
    checksum: u64,
}

impl PairTotals {
    fn add(&mut self, a: &KeyBuf, b: &KeyBuf) {
        self.count += 1;
        self.checksum = self.checksum.wrapping_add(mix(key_number(a), key_number(b)));
    }
}

impl std::ops::Add for PairTotals {
    type Output = Self;

    fn add(self, part: Self) -> Self {
        Self { count: self.count + part.count, checksum: self.checksum.wrapping_add(part.checksum) }
    }
}

impl std::iter::Sum for PairTotals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}

/// Appends a line with the keys of two documents. `score` begins with a tab.
fn add_line(
    text: &mut Vec<u8>,
    a: &KeyBuf,
    b: &KeyBuf,
    score: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    write_key(text, a)?;
    text.push(b'\t');
    write_key(text, b)?;
    score(text)?;
    text.push(b'\n');
    Ok(())
}

/// Appends a line with the keys and the distance of two near documents.
fn add_near(text: &mut Vec<u8>, a: &KeyBuf, b: &KeyBuf, distance: u32) -> io::Result<()> {
    add_line(text, a, b, |text| {
        text.push(b'\t');
        tsv::write_number(text, distance)
    })
}

/// The destination of lines: a plain table on standard output, or a file for `groups`.
enum PairLines {
    Plain(StageFile),
    File(Box<PairWriter>),
}

impl PairLines {
    /// Writes `text`, which has `count` lines.
    fn put(&mut self, count: u64, text: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(text).context("cannot write to standard output"),
            Self::File(out) => out.lines(count, text),
        }
    }

    fn finish(self) -> anyhow::Result<WrittenFile> {
        match self {
            Self::Plain(out) => out.finish(),
            Self::File(out) => out.finish(),
        }
    }
}

impl PairsArgs {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        self.check()?;
        self.resembling = self.near.resemblance();
        if let Some(path) = &self.fingerprints {
            return if self.fingerprint.are_read() { self.brought(path) } else { self.raw(path) };
        }
        let index = Index::open(self.index()?)?;
        let snapshot = index.snapshot();
        let other =
            self.with.as_ref().map(|path| Index::open(path).map(|index| (path, index))).transpose()?;
        let other = other.as_ref().map(|(path, index)| (path.as_path(), index, index.snapshot()));
        let watch = Stopwatch::start();
        let near = snapshot.params().near();
        if self.samples || (self.within().is_none() && near.within.is_none()) {
            self.resembling = self.resembling.or(near.threshold.map(Threshold::value));
        }
        if self.samples && self.resembling.is_none() {
            bail!(
                "{}: documents of this index are near by distance; give a resemblance for --samples with --near J",
                self.index()?.display()
            );
        }
        if let Some(threshold) = self.resembling {
            let right = other.as_ref().map(|(path, index, snapshot)| (*path, *index, snapshot));
            return if self.samples {
                self.samples(threshold, (&index, &snapshot), right, watch)
            } else {
                self.resembling(threshold, (&index, &snapshot), right, watch)
            };
        }
        if self.max_bucket.is_some() {
            return Err(Usage::new(
                "--max-bucket goes with --near J or --samples: all pairs within a distance are found",
            )
            .into());
        }
        let Some(simhash) = snapshot.params().simhash else {
            bail!(
                "{}: this index keeps no simhash fingerprints; --near J finds pairs by its bands",
                self.index()?.display()
            );
        };
        let within = self.within().unwrap_or(simhash.near.unwrap_or(simhash.within).into());
        if let Some((path, _, other)) = &other {
            let (mine, theirs) = (snapshot.params(), other.params());
            self.explain(mine.check_same_fingerprints(theirs), mine, (path, theirs))?;
        }
        let right = other.as_ref().map(|(.., snapshot)| snapshot);
        let found = self.near(&snapshot, right, within);
        let (totals, written) = match &other {
            Some((path, ..)) => found.with_context(|| format!("--with {}", path.display()))?,
            None => found?,
        };
        self.report(totals, SearchReport::default(), written, watch)
    }

    /// Returns the scratch folder, the memory budget and the number of threads for the join.
    fn resources<'a>(&self, scratch: &'a tempfile::TempDir) -> JoinResources<'a> {
        JoinResources { dir: scratch.path(), memory: self.work.memory, threads: rayon::current_num_threads() }
    }

    /// Finds pairs of near fingerprints in one index or across two. Prints them, unless only their number is requested.
    fn near(
        &self,
        left: &Snapshot,
        right: Option<&Snapshot>,
        within: u32,
    ) -> anyhow::Result<(PairTotals, Option<WrittenFile>)> {
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let resources = self.resources(&scratch);
        if self.prints() {
            let mut totals = PairTotals::default();
            let mut out = self.lines(left.params(), VerifyChoice::Exact)?;
            let make =
                |&(a, b, distance): &(Place<'_>, Place<'_>, u32), part: &mut PairTotals, text: &mut _| {
                    let (a, b) = (a.key()?, b.key()?);
                    if !self.shard.has(&a) {
                        return Ok(());
                    }
                    part.add(&a, &b);
                    Ok(add_near(text, &a, &b, distance)?)
                };
            let write = |part: PairTotals, text: &[u8]| {
                totals = totals + part;
                out.put(part.count, text)
            };
            in_order(make, write, |push| {
                pairs_within(left, right, within, resources, |a, b, distance| push((a, b, distance)))
            })?;
            // Keys were read from mapped files after the join: reports any error of these reads.
            left.check_maps()?;
            right.map_or(Ok(()), Snapshot::check_maps)?;
            return Ok((totals, Some(out.finish()?)));
        }
        let across = right.is_some();
        let take = |totals: &mut PairTotals, meeting: &NearFingerprints<'_>| {
            if !self.output.json && self.shard.shard.is_none() {
                totals.count += meeting.pairs();
                return Ok(());
            }
            meeting.for_each(|a, b| {
                let (a, b) = (a.key()?, b.key()?);
                let (a, b) = if across || a <= b { (a, b) } else { (b, a) };
                if self.shard.has(&a) {
                    totals.add(&a, &b);
                }
                Ok(())
            })
        };
        let states = near_fingerprints_within(left, right, within, resources, PairTotals::default, take)?;
        Ok((states.into_iter().sum(), None))
    }

    /// Returns the distance of `--near within:K`.
    fn within(&self) -> Option<u32> {
        self.near.within().map(u32::from)
    }

    fn prints(&self) -> bool {
        self.stage.is_file() || !self.count
    }

    /// Creates the output for pairs of documents in an index with these parameters.
    fn lines(&self, params: &Params, verify: VerifyChoice) -> anyhow::Result<PairLines> {
        let (pairs, columns) = match (self.resembling, verify) {
            (None, _) => {
                let within = self.within().or_else(|| params.near().within.map(u32::from));
                (format!("within {}", within.unwrap_or_default()), "a\tb\tdistance")
            }
            (Some(threshold), VerifyChoice::Exact) => {
                (format!("resembling {threshold}, counted"), "a\tb\tresemblance\tintersection\tunion")
            }
            (Some(threshold), VerifyChoice::Signature) => {
                (format!("resembling {threshold}, estimated"), "a\tb\tresemblance\terror")
            }
        };
        self.lines_of(params, &pairs, columns)
    }

    /// Creates the output for pairs. `pairs` describes the pairs in the header of a file.
    fn lines_of(&self, params: &Params, pairs: &str, columns: &str) -> anyhow::Result<PairLines> {
        if !self.stage.is_file() {
            let has_numbers_as_keys = params.key == KeyKind::U64;
            let out = self.stage.create_table(PAIRS, columns, (false, has_numbers_as_keys), &self.output)?;
            return Ok(PairLines::Plain(out));
        }
        let out = self.stage.create(PAIRS)?;
        Ok(PairLines::File(Box::new(PairWriter::begin(out, PAIRS, &PairFields::of(params, pairs), columns)?)))
    }

    /// Returns an error if two indexes differ in a parameter on which this way of computing resemblance depends.
    fn check_comparable(
        &self,
        verify: VerifyChoice,
        mine: &Params,
        (path, theirs): (&Path, &Params),
    ) -> anyhow::Result<()> {
        let by_sets = self.texts.is_empty() && !self.features.options().are_given();
        let same = match verify {
            VerifyChoice::Exact if by_sets => mine.check_same_shingles(theirs),
            VerifyChoice::Exact => mine.check_same_bands(theirs),
            VerifyChoice::Signature => mine.check_same_signatures(theirs),
        };
        self.explain(same, mine, (path, theirs))
    }

    /// Replaces an error about a parameter that differs by one that names both indexes.
    fn explain(
        &self,
        same: twindex::Result<()>,
        mine: &Params,
        (path, theirs): (&Path, &Params),
    ) -> anyhow::Result<()> {
        let Err(error) = same else { return Ok(()) };
        let Some(differs) = ParamDifference::of_error(&error, mine, theirs) else { return Err(error.into()) };
        let (index, other) = (self.index()?.display().to_string(), path.display().to_string());
        let why = differs.in_words([&index, &other]);
        bail!("{other}: cannot be compared with {index}: {why}; make both with the same options")
    }

    /// Finds pairs by resemblance.
    fn resembling(
        &self,
        threshold: f64,
        (index, snapshot): (&Index, &Snapshot),
        right: Option<(&Path, &Index, &Snapshot)>,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let Some(minhash) = snapshot.params().minhash else {
            bail!("{}: this index keeps no MinHash, so --near J cannot be answered", self.index()?.display());
        };
        let mut sides =
            std::iter::once((self.index()?, snapshot)).chain(right.map(|(path, _, of)| (path, of)));
        let without_sets = sides.find(|(_, of)| !of.params().sets).map(|(path, _)| path);
        let verify = match self.verify {
            _ if !self.texts.is_empty() => VerifyChoice::Exact,
            Some(VerifyChoice::Signature) if minhash.signature_bits == 0 => bail!(
                "{}: this index keeps no signatures; --texts INPUT counts on the texts",
                self.index()?.display()
            ),
            Some(VerifyChoice::Signature) => VerifyChoice::Signature,
            _ => match without_sets {
                None => VerifyChoice::Exact,
                Some(path) => bail!(
                    "{}: no sets are kept, by which a resemblance of {threshold} is counted; name the texts with --texts \
                     INPUT, or take estimates with --verify signature",
                    path.display()
                ),
            },
        };
        if let Some((path, _, other)) = right {
            self.check_comparable(verify, snapshot.params(), (path, other.params()))?;
        }
        let of_right = right.and_then(|(_, _, snapshot)| snapshot.params().minhash);
        let mut kept = minhash;
        // Compares only feature bits that both indexes store.
        kept.feature_bits = of_right.map_or(u8::MAX, |right| right.feature_bits).min(minhash.feature_bits);
        let agreement = self.features.options().agreement(kept, snapshot.documents())?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let sides = resembling::LiveIndexes::new(self, (index, snapshot), right)?;
        let found = resembling::find(self, &sides, (threshold, verify), agreement, scratch.path())?;
        let out = if self.prints() { Some(self.lines(snapshot.params(), verify)?) } else { None };
        let (totals, written) = self.write_resembling(&sides, out, |push| {
            found.for_each(|a, b, resemblance| push((a, b, resemblance)))
        })?;
        let search = SearchReport {
            candidates: Some(found.candidates),
            capped_buckets: Some(found.capped_buckets),
            samples: None,
        };
        self.report(totals, search, written, watch)
    }

    /// Writes the pairs that `find` passes on, which must be in ascending order, to `out`, or only counts them.
    fn write_resembling(
        &self,
        sides: &resembling::LiveIndexes<'_>,
        mut out: Option<PairLines>,
        find: impl FnOnce(&mut dyn FnMut((u32, u32, Resemblance)) -> anyhow::Result<()>) -> anyhow::Result<()>,
    ) -> anyhow::Result<(PairTotals, Option<WrittenFile>)> {
        let mut totals = PairTotals::default();
        let prints = out.is_some();
        let make = |&(a, b, resemblance): &(u32, u32, Resemblance), part: &mut PairTotals, text: &mut _| {
            let (a, b) = (sides.key(a)?, sides.key(b)?);
            if !self.shard.has(&a) {
                return Ok(());
            }
            part.add(&a, &b);
            if prints {
                add_line(text, &a, &b, |text| resembling::write_resemblance(text, resemblance))?;
            }
            Ok(())
        };
        let write = |part: PairTotals, text: &[u8]| {
            totals = totals + part;
            out.as_mut().map_or(Ok(()), |out| out.put(part.count, text))
        };
        in_order(make, write, find)?;
        sides.check_maps()?;
        let written = out.map(PairLines::finish).transpose()?;
        Ok((totals, written))
    }

    /// Prints the summary.
    fn report(
        &self,
        totals: PairTotals,
        search: SearchReport,
        written: Option<WrittenFile>,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let capped_buckets = search.capped_buckets;
        let remarks = search.samples.as_ref().map(|samples| samples.remarks(self.max_bucket()));
        if self.is_a_step {
        } else if self.output.json {
            report::print_json(&PairsReport {
                file: written.and_then(|written| written.path),
                pairs: totals.count,
                search,
                cpu_seconds: watch.cpu_seconds(),
                checksum: format!("{:016x}", totals.checksum),
                seconds: watch.seconds(),
                peak_rss_bytes: report::peak_rss_bytes(),
            })?;
        } else if self.count {
            report::print_lines(&[totals.count.to_string()])?;
        } else if let Some(written) = written {
            written.print_summary(&report::counted(totals.count, "pair"), &self.output)?;
        }
        if let Some(capped) = capped_buckets.filter(|&capped| capped > 0 && !self.output.quiet) {
            report::note(&format!(
                "{} of many documents paired as stars, with the first and the one before; there may be more pairs",
                report::counted(capped, "bucket")
            ));
        }
        if !self.output.quiet {
            remarks.into_iter().flatten().for_each(|remark| report::note(&remark));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the limit on documents with a common band or shingle, up to which all of their pairs are compared.
    fn max_bucket(&self) -> u32 {
        self.max_bucket.unwrap_or(MAX_BUCKET)
    }

    fn index(&self) -> anyhow::Result<&Path> {
        self.index.as_deref().ok_or_else(|| Usage::new("name an INDEX, or --fingerprints FILE").into())
    }

    /// Returns an error if options have no effect or contradict each other.
    fn check(&self) -> anyhow::Result<()> {
        let files = self.index.iter().chain(&self.fingerprints).chain(&self.ids).chain(&self.with);
        self.stage.check(PAIRS, files.chain(&self.texts).chain(&self.with_texts))?;
        if self.fingerprints.is_some() && self.within().is_none() {
            return Err(Usage::new("--fingerprints needs a distance: give --near within:K").into());
        }
        if self.ids.is_some() && self.fingerprints.is_none() {
            return Err(Usage::new("--ids goes with --fingerprints, whose keys it has").into());
        }
        if (self.samples || self.max_bucket.is_some()) && self.within().is_some() {
            let option = if self.samples { "--samples" } else { "--max-bucket" };
            let why = format!("{option} is about pairs by resemblance, --near J; leave it out");
            return Err(Usage::new(why).into());
        }
        if self.samples {
            if self.features.options().are_given() {
                return Err(
                    Usage::new("--sharing and --feature-bits are about bands; leave out --samples").into()
                );
            }
            if self.verify == Some(VerifyChoice::Signature) {
                return Err(Usage::new(
                    "--samples estimates from the samples, not from signatures: leave out --verify, or count with \
                     --verify exact",
                )
                .into());
            }
        }
        if self.features.options().are_given() && self.near.resemblance().is_none() {
            return Err(Usage::new("--sharing and --feature-bits go with --near J").into());
        }
        if self.verify.is_some() && self.within().is_some() {
            return Err(
                Usage::new("--verify is about resemblance, and distances are exact; leave it out").into()
            );
        }
        if self.fingerprint.are_read() && self.fingerprints.is_none() {
            return Err(Usage::new(
                "--fingerprint-field goes with --fingerprints FILE: an index has its own",
            )
            .into());
        }
        let reads = !self.texts.is_empty() || self.fingerprint.are_read();
        if let Some(option) = self.reading.first_given().filter(|_| !reads) {
            let why = format!("{option} goes with --texts INPUT or --fingerprint-field NAME");
            return Err(Usage::new(why).into());
        }
        if !self.texts.is_empty() && self.near.resemblance().is_none() && !self.samples {
            return Err(Usage::new("--texts goes with --near J").into());
        }
        if !self.texts.is_empty() && self.verify == Some(VerifyChoice::Signature) {
            return Err(Usage::new("--texts goes with --verify exact").into());
        }
        Documents::check_options(&[&self.texts[..], &self.with_texts].concat(), &self.text_options()?)
    }

    /// Returns the options for reading texts.
    fn text_options(&self) -> Result<InputOptions, Usage> {
        self.reading.options_with(&self.fingerprint)
    }
}
