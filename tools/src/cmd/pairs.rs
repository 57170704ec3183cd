//! `twindex pairs`: finds all near pairs in an index, or across two indexes.

mod brought;
mod raw;
mod resembling;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use twindex::params::{KeyKind, Threshold};
use twindex::store::snapshot::Place;
use twindex::{Index, KeyBuf, Params, Resemblance, Snapshot};
use twindex_corpus::input::InputOptions;
use twindex_corpus::tsv;
use twindex_join::{JoinResources, NearFingerprints, near_fingerprints_within, pairs_within};

use super::query::{key_number, write_key};
use crate::feature_args::FeatureArgs;
use crate::in_order::in_order;
use crate::options::{FingerprintArgs, Output, ResourceArgs, Usage, VerifyChoice, parse_resemblance};
use crate::pair_file::{PAIRS, PairFields, PairWriter};
use crate::report::{self, Stopwatch, mix};
use crate::shard::ShardArgs;
use crate::stage::{StageArgs, StageFile, WrittenFile};

/// Options of `pairs`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex pairs pages.twx --within 3\n  \
    twindex pairs hashes.twx --count\n  \
    twindex pairs today.twx --with yesterday.twx\n  \
    twindex pairs --fingerprints hashes.u64 --within 3 --threads 2\n  \
    twindex pairs --fingerprints images.csv --fingerprint-field phash --within 4\n  \
    twindex pairs pages.twx --resembling 0.8\n  \
    twindex pairs without-sets.twx --resembling 0.8 --texts pages.jsonl\n  \
    twindex pairs pages.twx --shard 2/4 --into pairs\n\n\
    Prints a line for each pair of documents whose fingerprints differ in at most K bits: a, b, distance; a before \
    b in key order, or, with --with, a of INDEX and b of OTHER; lines sorted. With --resembling: a, b, resemblance, \
    and its standard error or, counted, intersection and union. Files (--out, --into) are for `forest` and \
    `clusters`, and name the parameters that those must agree in.")]
pub(crate) struct PairsArgs {
    /// Directory of the index
    #[arg(required_unless_present = "fingerprints")]
    index: Option<PathBuf>,
    /// File of raw fingerprints to use instead of an index: little-endian 64-bit numbers, whose keys are their
    /// positions. They need about 50 bytes of memory each, in addition to --memory; an index does not. With
    /// --fingerprint-field, a JSONL, CSV, TSV or Parquet file of fingerprints with keys, which are added to a scratch
    /// index
    #[arg(long, value_name = "FILE", conflicts_with_all = ["index", "resembling"], requires = "within")]
    fingerprints: Option<PathBuf>,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    /// File with the keys of --fingerprints: one little-endian 64-bit number for each fingerprint, all different
    #[arg(long, value_name = "FILE", requires = "fingerprints", conflicts_with = "fingerprint_field")]
    ids: Option<PathBuf>,
    /// Hamming radius, 0 to 10 [default: the index's, unless its documents are near by resemblance alone]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=10))]
    within: Option<u32>,
    /// Find pairs with a resemblance of J or more, instead of comparing fingerprints: all such pairs if the index keeps
    /// sets, otherwise those among documents that share a band [default: the index's threshold, if its documents are not
    /// near by distance]
    #[arg(long, value_name = "J", value_parser = parse_resemblance, conflicts_with = "within")]
    resembling: Option<f64>,
    #[command(flatten)]
    features: FeatureArgs,
    /// Find pairs of a document of INDEX and a document of this index, which must have been made with the same options.
    /// With --fingerprints, pairs of a row of its file and a row of this file of fingerprints; keys are positions
    #[arg(long, value_name = "OTHER")]
    with: Option<PathBuf>,
    /// How --resembling is verified: by exact counts, with the sets in the index (the default) or on --texts; or by the
    /// signatures in the index, an estimate
    #[arg(long, value_enum, value_name = "HOW")]
    pub(super) verify: Option<VerifyChoice>,
    /// The texts of an INDEX without sets, as they were given to `build`
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// The texts of OTHER [default: those of --texts]
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "with")]
    with_texts: Vec<PathBuf>,
    /// Field of a JSONL object that holds the text [default: text]
    #[arg(long, value_name = "NAME", requires = "texts")]
    text_field: Option<String>,
    /// Field of a JSONL object, or with --fingerprint-field column of a table, that holds the document's key [default:
    /// id]
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
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
    /// Whether another verb runs this one as a step; that verb reports the file itself.
    #[arg(skip)]
    pub(super) is_a_step: bool,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct PairsReport {
    /// The path of the file of pairs. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    pairs: u64,
    /// Number of candidate pairs that were compared. Absent without --resembling.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<u64>,
    /// Number of buckets with too many members to compare all pairs. Absent without --resembling.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped_buckets: Option<u64>,
    cpu_seconds: f64,
    checksum: String,
    seconds: f64,
    peak_rss_bytes: u64,
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

/// The destination of lines: a plain table on standard output, or a file for `forest` and `clusters`.
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
        self.work.apply()?;
        self.check()?;
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
        if self.within.is_none() && near.within.is_none() {
            self.resembling = self.resembling.or(near.threshold.map(Threshold::value));
        }
        if let Some(threshold) = self.resembling {
            let right = other.as_ref().map(|(path, index, snapshot)| (*path, *index, snapshot));
            return self.resembling(threshold, (&index, &snapshot), right, watch);
        }
        let Some(simhash) = snapshot.params().simhash else {
            bail!(
                "{}: this index keeps no simhash fingerprints; --resembling J finds pairs by its bands",
                self.index()?.display()
            );
        };
        let within = self.within.unwrap_or(simhash.near.unwrap_or(simhash.within).into());
        let right = other.as_ref().map(|(.., snapshot)| snapshot);
        let found = self.near(&snapshot, right, within);
        let (totals, written) = match &other {
            Some((path, ..)) => found.with_context(|| format!("--with {}", path.display()))?,
            None => found?,
        };
        self.report(totals, None, written, watch)
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

    fn prints(&self) -> bool {
        self.stage.is_file() || !self.count
    }

    /// Creates the output for pairs of documents in an index with these parameters.
    fn lines(&self, params: &Params, verify: VerifyChoice) -> anyhow::Result<PairLines> {
        let (pairs, columns) = match (self.resembling, verify) {
            (None, _) => {
                let within = self.within.or_else(|| params.near().within.map(u32::from));
                (format!("within {}", within.unwrap_or_default()), "a\tb\tdistance")
            }
            (Some(threshold), VerifyChoice::Exact) => {
                (format!("resembling {threshold}, counted"), "a\tb\tresemblance\tintersection\tunion")
            }
            (Some(threshold), VerifyChoice::Signature) => {
                (format!("resembling {threshold}, estimated"), "a\tb\tresemblance\terror")
            }
        };
        if !self.stage.is_file() {
            let has_numbers_as_keys = params.key == KeyKind::U64;
            let out = self.stage.create_table(PAIRS, columns, (false, has_numbers_as_keys), &self.output)?;
            return Ok(PairLines::Plain(out));
        }
        let out = self.stage.create(PAIRS)?;
        Ok(PairLines::File(Box::new(PairWriter::begin(
            out,
            PAIRS,
            &PairFields::of(params, &pairs),
            columns,
        )?)))
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
            bail!(
                "{}: this index keeps no MinHash, so --resembling cannot be answered",
                self.index()?.display()
            );
        };
        let keeps_sets =
            std::iter::once(snapshot).chain(right.map(|(.., right)| right)).all(|of| of.params().sets);
        let verify = match self.verify {
            _ if !self.texts.is_empty() => VerifyChoice::Exact,
            Some(VerifyChoice::Signature) if minhash.signature_bits == 0 => bail!(
                "{}: this index keeps no signatures; --texts INPUT counts on the texts",
                self.index()?.display()
            ),
            Some(VerifyChoice::Signature) => VerifyChoice::Signature,
            _ if keeps_sets => VerifyChoice::Exact,
            _ => bail!(
                "{}: no sets are kept, by which a resemblance of {threshold} is counted; name the texts with --texts INPUT, \
                 or take estimates with --verify signature",
                self.index()?.display()
            ),
        };
        let of_right = right.and_then(|(_, _, snapshot)| snapshot.params().minhash);
        let mut kept = minhash;
        // Compares only feature bits that both indexes store.
        kept.feature_bits = of_right.map_or(u8::MAX, |right| right.feature_bits).min(minhash.feature_bits);
        let agreement = self.features.options().agreement(kept, snapshot.documents())?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let sides = resembling::LiveIndexes::new(self, (index, snapshot), right)?;
        let found = resembling::find(self, &sides, (threshold, verify), agreement, scratch.path())?;
        let mut totals = PairTotals::default();
        let mut out = if self.prints() { Some(self.lines(snapshot.params(), verify)?) } else { None };
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
        in_order(make, write, |push| found.for_each(|a, b, resemblance| push((a, b, resemblance))))?;
        snapshot.check_maps()?;
        right.map_or(Ok(()), |(.., right)| right.check_maps())?;
        let written = out.map(PairLines::finish).transpose()?;
        self.report(totals, Some((found.candidates, found.capped_buckets)), written, watch)
    }

    /// Prints the summary.
    fn report(
        &self,
        totals: PairTotals,
        bands: Option<(u64, u64)>,
        written: Option<WrittenFile>,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let (candidates, capped_buckets) = bands.unzip();
        if self.is_a_step {
        } else if self.output.json {
            report::print_json(&PairsReport {
                file: written.and_then(|written| written.path),
                pairs: totals.count,
                candidates,
                capped_buckets,
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
        Ok(ExitCode::SUCCESS)
    }

    fn index(&self) -> anyhow::Result<&Path> {
        self.index.as_deref().ok_or_else(|| Usage::new("name an INDEX, or --fingerprints FILE").into())
    }

    /// Returns an error if options have no effect or contradict each other.
    fn check(&self) -> anyhow::Result<()> {
        let files = self.index.iter().chain(&self.fingerprints).chain(&self.ids).chain(&self.with);
        self.stage.check(PAIRS, files.chain(&self.texts).chain(&self.with_texts))?;
        if self.features.options().are_given() && self.resembling.is_none() {
            return Err(Usage::new("--sharing and --feature-bits go with --resembling J").into());
        }
        if self.verify.is_some() && self.within.is_some() {
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
        if self.id_field.is_some() && self.texts.is_empty() && !self.fingerprint.are_read() {
            return Err(Usage::new("--id-field goes with --texts INPUT or --fingerprint-field NAME").into());
        }
        if !self.texts.is_empty() && self.resembling.is_none() {
            return Err(Usage::new("--texts goes with --resembling J").into());
        }
        if !self.texts.is_empty() && self.verify == Some(VerifyChoice::Signature) {
            return Err(Usage::new("--texts goes with --verify exact").into());
        }
        Ok(())
    }

    /// Returns the options for reading texts.
    fn text_options(&self) -> InputOptions {
        let usual = InputOptions::default();
        InputOptions {
            text_field: self.text_field.clone().unwrap_or_else(|| usual.text_field.clone()),
            id_field: self.id_field.clone().unwrap_or_else(|| usual.id_field.clone()),
            ..usual
        }
    }
}
