//! Defines the options of `pairs`, its report, and the lines that it writes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use twindex::params::{KeyKind, ParamDifference};
use twindex::{KeyBuf, Params};
use twindex_corpus::input::{Documents, InputOptions};
use twindex_corpus::page::{FoundPage, LargestGroups, PairSample, PairScore};
use twindex_corpus::settings::{Near, Reading, Rule};
use twindex_corpus::tsv;
use twindex_join::JoinResources;

use super::report::SampleReport;
use crate::cmd::query::{key_number, write_key};
use crate::differs::{NearAlone, ReadingTexts};
use crate::feature_args::FeatureArgs;
use crate::options::{FingerprintArgs, Output, ResourceArgs, Usage, VerifyChoice};
use crate::page_args::{PageArgs, command};
use crate::pair_file::{PAIRS, PairFields, PairWriter};
use crate::progress::Watching;
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
    twindex pairs --fingerprints images.csv --fingerprint-field pdq --near within:31\n  \
    twindex pairs pages.twx --near 0.8\n  \
    twindex pairs without-sets.twx --near 0.8 --texts pages.jsonl\n  \
    twindex pairs sampled.twx --samples --near 0.5 -o sampled.pairs\n  \
    twindex pairs pages.twx --shard 2/4 --into pairs\n  \
    twindex pairs pages.twx --html pairs.html --texts pages.jsonl > pairs.tsv\n\n\
    Prints a line for each pair of documents whose fingerprints differ in at most K bits: a, b, distance; a before \
    b in key order, or, with --with, a of INDEX and b of OTHER; lines sorted. With --near J: a, b, resemblance, \
    and its standard error or, counted, intersection and union. Files (--out, --into) are for \
    `groups`, and name the parameters that those must agree in.")]
pub(crate) struct PairsArgs {
    /// Directory of the index
    #[arg(required_unless_present = "fingerprints")]
    pub(super) index: Option<PathBuf>,
    /// File of raw fingerprints to use instead of an index: little-endian 64-bit numbers, whose keys are their
    /// positions. They need about 50 bytes of memory each, in addition to --memory; an index does not. With
    /// --fingerprint-field, a JSONL, CSV, TSV, Parquet or Arrow file of fingerprints with keys, which are added to a
    /// scratch index; those of more than 64 bits, or for a K above 10, are compared without one
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    pub(super) fingerprints: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fingerprint: FingerprintArgs,
    /// File with the keys of --fingerprints: one little-endian 64-bit number for each fingerprint, all different
    #[arg(long, value_name = "FILE", requires = "fingerprints", conflicts_with = "fingerprint_field")]
    pub(super) ids: Option<PathBuf>,
    #[command(flatten)]
    pub(super) near: Options<Rule, NearAlone>,
    /// Find pairs by the samples that the index stores (`build --bottom T` or `--modulus M`; those of --bottom if it
    /// stores both): all pairs with a common sampled hash whose estimated resemblance is J or more. With --verify exact,
    /// pairs whose estimate is within three standard errors of J are counted. A document without a sampled hash is in
    /// no pair
    #[arg(long, conflicts_with = "fingerprints")]
    pub(super) samples: bool,
    #[command(flatten)]
    pub(super) features: FeatureArgs,
    /// Limits the pairs by resemblance of documents that share a band or a shingle. If more than N documents share it,
    /// each is paired only with the first one and the previous one. If that would not limit the work, N is reduced. The
    /// number of such bands and shingles is reported [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..),
        conflicts_with = "fingerprints")]
    pub(super) max_bucket: Option<u32>,
    /// Find pairs of a document of INDEX and a document of this index, whose fingerprints, sets or signatures must have been
    /// made with the same options.
    /// With --fingerprints, pairs of a row of its file and a row of this file of fingerprints; keys are positions
    #[arg(long, value_name = "OTHER")]
    pub(super) with: Option<PathBuf>,
    /// How --near J is verified: by exact counts, with the sets in the index (the default, except with --samples) or
    /// on --texts; or by the signatures in the index, an estimate
    #[arg(long, value_enum, value_name = "HOW")]
    pub(super) verify: Option<VerifyChoice>,
    /// The texts of an INDEX without sets, as they were given to `build`; with --html, the texts that the page shows
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub(super) texts: Vec<PathBuf>,
    /// The texts of OTHER [default: those of --texts]
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "with")]
    pub(super) with_texts: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) reading: Options<Reading, ReadingTexts>,
    #[command(flatten)]
    pub(super) page: PageArgs,
    /// Print only the number of pairs
    #[arg(long, conflicts_with = "html")]
    pub(super) count: bool,
    #[command(flatten)]
    pub(super) shard: ShardArgs,
    #[command(flatten)]
    pub(super) stage: StageArgs,
    #[command(flatten)]
    pub(super) work: ResourceArgs,
    #[command(flatten)]
    pub(super) output: Output,
    /// The texts that the page shows, and those of OTHER.
    #[arg(skip)]
    pub(super) shown: [Vec<PathBuf>; 2],
    /// The smallest resemblance of a pair, from --near or from the index.
    #[arg(skip)]
    pub(super) resembling: Option<f64>,
    /// Whether another verb runs this one as a step; that verb reports the file itself.
    #[arg(skip)]
    pub(super) is_a_step: bool,
}

/// The statistics that `--json` prints.
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
pub(super) struct SearchReport {
    /// Number of candidate pairs that were compared. Absent without --near J.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) candidates: Option<u64>,
    /// Number of buckets with too many members to compare all pairs. Absent without --near J, and with --samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capped_buckets: Option<u64>,
    /// Absent without --samples.
    #[serde(flatten)]
    pub(super) samples: Option<SampleReport>,
}

/// Totals over all pairs.
#[derive(Clone, Copy, Default)]
pub(super) struct PairTotals {
    pub(super) count: u64,
    pub(super) checksum: u64,
}

impl PairTotals {
    pub(super) fn add(&mut self, a: &KeyBuf, b: &KeyBuf) {
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

/// Totals over some of the pairs, and the pairs drawn from these for the page.
#[derive(Default)]
pub(super) struct PairPart {
    pub(super) totals: PairTotals,
    pub(super) drawn: PairSample,
}

impl PairPart {
    /// Adds a pair; draws from it only if `near`, the rule by which it was found, is given.
    pub(super) fn add(&mut self, near: Option<Near>, a: &KeyBuf, b: &KeyBuf, score: PairScore) {
        self.totals.add(a, b);
        if let Some(near) = near {
            self.drawn.add(near, [a, b], score);
        }
    }

    pub(super) fn merge(&mut self, part: Self) {
        self.totals = self.totals + part.totals;
        self.drawn.merge(part.drawn);
    }
}

/// The result of a search for pairs.
pub(super) struct PairsFound {
    pub(super) part: PairPart,
    pub(super) written: Option<WrittenFile>,
}

impl std::iter::Sum for PairTotals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}

/// Appends a line with the keys of two documents. `score` begins with a tab.
pub(super) fn add_line(
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
pub(super) fn add_near(text: &mut Vec<u8>, a: &KeyBuf, b: &KeyBuf, distance: u32) -> io::Result<()> {
    add_line(text, a, b, |text| {
        text.push(b'\t');
        tsv::write_number(text, distance)
    })
}

/// The destination of lines: a plain table on standard output, or a file for `groups`.
pub(super) enum PairLines {
    Plain(StageFile),
    File(Box<PairWriter>),
}

impl PairLines {
    /// Writes `text`, which has `count` lines.
    pub(super) fn put(&mut self, count: u64, text: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(text).context("cannot write to standard output"),
            Self::File(out) => out.lines(count, text),
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<WrittenFile> {
        match self {
            Self::Plain(out) => out.finish(),
            Self::File(out) => out.finish(),
        }
    }
}

impl PairsArgs {
    /// Returns the scratch folder, the memory budget and the number of threads for the join.
    pub(super) fn resources<'a>(&self, scratch: &'a tempfile::TempDir) -> JoinResources<'a> {
        JoinResources { dir: scratch.path(), memory: self.work.memory, threads: rayon::current_num_threads() }
    }

    /// Returns the distance of `--near within:K`.
    pub(super) fn within(&self) -> Option<u32> {
        self.near.within().map(u32::from)
    }

    pub(super) fn prints(&self) -> bool {
        self.stage.is_file() || !self.count
    }

    /// Creates the output for pairs of documents in an index with these parameters.
    pub(super) fn lines(&self, params: &Params, verify: VerifyChoice) -> anyhow::Result<PairLines> {
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
    pub(super) fn lines_of(&self, params: &Params, pairs: &str, columns: &str) -> anyhow::Result<PairLines> {
        if !self.stage.is_file() {
            let has_numbers_as_keys = params.key == KeyKind::U64;
            let out = self.stage.create_table(PAIRS, columns, (false, has_numbers_as_keys), &self.output)?;
            return Ok(PairLines::Plain(out));
        }
        let out = self.stage.create(PAIRS)?;
        Ok(PairLines::File(Box::new(PairWriter::begin(out, PAIRS, &PairFields::of(params, pairs), columns)?)))
    }

    /// Returns an error if two indexes differ in a parameter that affects how resemblance is computed.
    pub(super) fn check_comparable(
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

    /// Adds the names of both indexes to an error about a parameter that differs.
    pub(super) fn explain(
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

    /// Returns the rule by which pairs are drawn for the page; `None` without a page.
    pub(super) fn near_of_page(&self, within: Option<u32>) -> Option<Near> {
        self.page.html.as_ref()?;
        // The parser of `--near within:K` accepts only radii that fit, and so do the parameters of an index.
        let near = self.resembling.map(Near::Resemblance);
        near.or(within.map(|within| Near::Within(within.try_into().unwrap_or(u16::MAX))))
    }

    /// Writes the page.
    fn write_page(&self, html: &Path, within: Option<u32>, part: &PairPart) -> anyhow::Result<()> {
        let searched = self.index.clone().or_else(|| self.fingerprints.clone()).unwrap_or_default();
        let of = self.with.as_ref().map_or_else(String::new, |with| format!(" and {}", with.display()));
        let page = FoundPage {
            title: format!("{} in {}{of}", report::counted(part.totals.count, "pair"), searched.display()),
            command: command(),
            near: self.near_of_page(within),
            roles: ["a", "b"],
            pairs: part.drawn.clone(),
            groups: LargestGroups::default(),
            searched,
        };
        let texts = self.shown.each_ref().map(Vec::as_slice);
        page.write(html, texts, &self.text_options()?, &Watching { quiet: self.output.quiet })
    }

    /// Writes the page, and prints the summary. `within` is the radius of pairs by distance.
    pub(super) fn report(
        &self,
        found: PairsFound,
        within: Option<u32>,
        search: SearchReport,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let PairsFound { part, written } = found;
        if let Some(html) = &self.page.html {
            self.write_page(html, within, &part)?;
        }
        let totals = part.totals;
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

    /// Returns the maximum number of documents that may share a band or shingle if all their pairs are to be compared.
    pub(super) fn max_bucket(&self) -> u32 {
        self.max_bucket.unwrap_or(MAX_BUCKET)
    }

    pub(super) fn index(&self) -> anyhow::Result<&Path> {
        self.index.as_deref().ok_or_else(|| Usage::new("name an INDEX, or --fingerprints FILE").into())
    }

    /// Returns an error if options have no effect or contradict each other.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let files = self.index.iter().chain(&self.fingerprints).chain(&self.ids).chain(&self.with);
        let files = files.chain(&self.texts).chain(&self.with_texts);
        self.stage.check(PAIRS, files.clone())?;
        self.page.check(files.map(PathBuf::as_path).chain(self.stage.named()))?;
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
        let counts = !self.texts.is_empty() && self.page.html.is_none();
        if counts && self.near.resemblance().is_none() && !self.samples {
            return Err(Usage::new("--texts goes with --near J or --html").into());
        }
        if counts && self.verify == Some(VerifyChoice::Signature) {
            return Err(Usage::new("--texts goes with --verify exact").into());
        }
        Documents::check_options(&[&self.texts[..], &self.with_texts].concat(), &self.text_options()?)
    }

    pub(super) fn text_options(&self) -> Result<InputOptions, Usage> {
        self.reading.options_with(&self.fingerprint)
    }
}
