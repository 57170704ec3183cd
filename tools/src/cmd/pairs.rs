//! `twindex pairs`: all near pairs inside an index, or across two.

mod resembling;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::join::{pairs_across, pairs_within};
use twindex::{Index, KeyBuf, Snapshot};

use super::query::{key_number, write_key};
use crate::input::InputOptions;
use crate::options::{Output, Usage, Work, parse_resemblance};
use crate::pair_file::{Fields, PAIRS, PairWriter};
use crate::report::{self, Stopwatch, mix};
use crate::shard::ShardArgs;
use crate::stage::{StageArgs, Written};

/// Options of `pairs`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex pairs pages.twx --within 3\n  \
    twindex pairs hashes.twx --count\n  \
    twindex pairs today.twx --with yesterday.twx\n  \
    twindex pairs pages.twx --resembling 0.8 --verify exact --texts pages.jsonl\n  \
    twindex pairs pages.twx --shard 2/4 --into pairs\n\n\
    Prints a line for each pair of documents whose fingerprints differ in at most K bits: a, b, distance; a before \
    b in key order, or, with --with, a of INDEX and b of OTHER; lines sorted. With --resembling: a, b, resemblance, \
    and its standard error or, counted, intersection and union. Files (--out, --into) are for `forest` and \
    `clusters`, and name the parameters that those must agree in.")]
pub(crate) struct Pairs {
    /// Directory of the index
    index: PathBuf,
    /// Hamming radius, 0 to 10 [default: the index's]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=10))]
    within: Option<u32>,
    /// Pairs with a resemblance of J or more, among the documents that share a band, instead of fingerprints
    #[arg(long, value_name = "J", value_parser = parse_resemblance, conflicts_with = "within")]
    resembling: Option<f64>,
    /// Pairs of a document of INDEX and one of this index, which must have been made with the same options
    #[arg(long, value_name = "OTHER")]
    with: Option<PathBuf>,
    /// How --resembling is verified: by the signatures in the index, or counted on the texts
    #[arg(long, value_enum, value_name = "HOW", default_value = "signature")]
    verify: Verify,
    /// The texts of INDEX for --verify exact, as they were given to `build`
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// The texts of OTHER [default: those of --texts]
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "with")]
    with_texts: Vec<PathBuf>,
    /// Field of a JSONL object that holds the text [default: text]
    #[arg(long, value_name = "NAME", requires = "texts")]
    text_field: Option<String>,
    /// Field of a JSONL object that holds the document's key [default: id]
    #[arg(long, value_name = "NAME", requires = "texts")]
    id_field: Option<String>,
    /// Print the number of pairs only
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    pub(super) work: Work,
    #[command(flatten)]
    pub(super) output: Output,
    /// Another verb asked for a file, and tells of it itself.
    #[arg(skip)]
    pub(super) is_a_step: bool,
}

/// How a resemblance is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verify {
    /// Shingle by shingle, on the texts
    Exact,
    /// By the signatures in the index: an estimate
    Signature,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    /// Where they are, with --out or --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    pairs: u64,
    /// Pairs that share a band, with --resembling.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<u64>,
    /// Buckets of which not all pairs were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped_buckets: Option<u64>,
    cpu_seconds: f64,
    checksum: String,
    seconds: f64,
    peak_rss_bytes: u64,
}

impl Pairs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply()?;
        self.check()?;
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
        let other =
            self.with.as_ref().map(|path| Index::open(path).map(|index| (path, index))).transpose()?;
        let other = other.as_ref().map(|(path, index)| (path.as_path(), index, index.snapshot()));
        let watch = Stopwatch::start();
        let (mut count, mut checksum) = (0_u64, 0_u64);
        let mut lines: Vec<(KeyBuf, KeyBuf, Vec<u8>)> = Vec::new();
        let (mut candidates, mut capped_buckets) = (None, None);
        let prints = self.stage.is_file() || !self.count && !self.output.json;
        let mut take = |a: KeyBuf, b: KeyBuf, line: &dyn Fn() -> Vec<u8>| {
            if !self.shard.has(&a) {
                return;
            }
            count += 1;
            checksum = checksum.wrapping_add(mix(key_number(&a), key_number(&b)));
            if prints {
                lines.push((a, b, line()));
            }
        };
        if let Some(threshold) = self.resembling {
            let Some(minhash) = snapshot.params().minhash else {
                bail!(
                    "{}: this index keeps no MinHash, so --resembling cannot be answered",
                    self.index.display()
                );
            };
            if self.verify == Verify::Signature && minhash.signature_bits == 0 {
                bail!(
                    "{}: this index keeps no signatures; --verify exact --texts INPUT counts on the texts",
                    self.index.display()
                );
            }
            let right = other.as_ref().map(|(path, index, snapshot)| (*path, *index, snapshot));
            let found = resembling::find(&self, threshold, (&index, &snapshot), right)?;
            (candidates, capped_buckets) = (Some(found.candidates), Some(found.capped_buckets));
            for (a, b, resemblance) in found.pairs {
                take(a, b, &|| {
                    let mut line = Vec::new();
                    // Writing to memory does not fail.
                    let _ = resembling::write_resemblance(&mut line, resemblance);
                    line
                });
            }
        } else {
            let Some(simhash) = snapshot.params().simhash else {
                bail!(
                    "{}: this index keeps no simhash fingerprints; --resembling J finds pairs by its bands",
                    self.index.display()
                );
            };
            let within = self.within.unwrap_or(simhash.within.into());
            let distance = |distance: u32| move || format!("\t{distance}").into_bytes();
            match &other {
                None => pairs_within(&snapshot, within, |a, b, bits| {
                    let (a, b) = (a.key()?, b.key()?);
                    let (a, b) = if a <= b { (a, b) } else { (b, a) };
                    take(a, b, &distance(bits));
                    Ok(())
                })?,
                Some((path, _, other)) => pairs_across(&snapshot, other, within, |a, b, bits| {
                    take(a.key()?, b.key()?, &distance(bits));
                    Ok(())
                })
                .with_context(|| format!("--with {}", path.display()))?,
            }
        }
        lines.sort_unstable();
        let written = if self.stage.is_file() { Some(self.write(&snapshot, &lines)?) } else { None };
        if self.is_a_step {
        } else if self.output.json {
            report::print_json(&Report {
                file: written.as_ref().and_then(|written| written.path.clone()),
                pairs: count,
                candidates,
                capped_buckets,
                cpu_seconds: watch.cpu_seconds(),
                checksum: format!("{checksum:016x}"),
                seconds: watch.seconds(),
                peak_rss_bytes: report::peak_rss_bytes(),
            })?;
        } else if self.count {
            report::print_lines(&[count.to_string()])?;
        } else if let Some(written) = written {
            written.tell(&report::counted(count, "pair"), &self.output)?;
        } else {
            print(&lines).context("cannot write to standard output")?;
        }
        if let Some(capped) = capped_buckets.filter(|&capped| capped > 0 && !self.output.quiet) {
            report::note(&format!(
                "{} of many documents paired as stars, with the first and the one before; there may be more pairs",
                report::counted(capped, "bucket")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a file for `forest` and `clusters`.
    fn write(&self, snapshot: &Snapshot, lines: &[(KeyBuf, KeyBuf, Vec<u8>)]) -> anyhow::Result<Written> {
        let params = snapshot.params();
        let (pairs, columns) = match (self.resembling, self.verify) {
            (None, _) => {
                let within = self.within.or_else(|| params.simhash.map(|simhash| simhash.within.into()));
                (format!("within {}", within.unwrap_or_default()), "a\tb\tdistance")
            }
            (Some(threshold), Verify::Exact) => {
                (format!("resembling {threshold}, counted"), "a\tb\tresemblance\tintersection\tunion")
            }
            (Some(threshold), Verify::Signature) => {
                (format!("resembling {threshold}, estimated"), "a\tb\tresemblance\terror")
            }
        };
        let fields = Fields::of(params, &pairs);
        let mut out = PairWriter::begin(self.stage.create(PAIRS)?, PAIRS, &fields, columns)?;
        for (a, b, rest) in lines {
            out.line(|out| {
                write_key(out, a)?;
                out.write_all(b"\t")?;
                write_key(out, b)?;
                out.write_all(rest)
            })?;
        }
        out.finish()
    }

    /// Refuses options that go with nothing.
    fn check(&self) -> anyhow::Result<()> {
        self.stage.check(PAIRS)?;
        let exact = self.verify == Verify::Exact;
        if exact && self.resembling.is_none() {
            return Err(Usage::new("--verify exact goes with --resembling J").into());
        }
        if exact && self.texts.is_empty() {
            return Err(Usage::new(
                "--verify exact counts on the texts, which are not in the index: name them with --texts INPUT",
            )
            .into());
        }
        if !exact && !self.texts.is_empty() {
            return Err(Usage::new("--texts goes with --verify exact").into());
        }
        Ok(())
    }

    /// How texts are read.
    fn text_options(&self) -> InputOptions {
        let usual = InputOptions::default();
        InputOptions {
            text_field: self.text_field.clone().unwrap_or_else(|| usual.text_field.clone()),
            id_field: self.id_field.clone().unwrap_or_else(|| usual.id_field.clone()),
            ..usual
        }
    }
}

fn print(lines: &[(KeyBuf, KeyBuf, Vec<u8>)]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (a, b, line) in lines {
        write_key(&mut out, a)?;
        out.write_all(b"\t")?;
        write_key(&mut out, b)?;
        out.write_all(line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
