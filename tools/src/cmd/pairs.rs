//! `twindex pairs`: all near pairs inside an index.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use twindex::join::pairs_within;
use twindex::{Index, KeyBuf};

use super::query::{key_number, write_key};
use crate::options::Output;
use crate::report::{self, Stopwatch, mix};

/// Options of `pairs`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex pairs pages.twx --within 3\n  \
    twindex pairs hashes.twx --count\n\n\
    Prints a line for each pair of documents whose fingerprints differ in at most K bits: a, b, distance; a before \
    b in key order, lines sorted.")]
pub(crate) struct Pairs {
    /// Directory of the index
    index: PathBuf,
    /// Hamming radius, 0 to 10 [default: the index's]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=10))]
    within: Option<u32>,
    /// Print the number of pairs only
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    pairs: u64,
    cpu_seconds: f64,
    checksum: String,
    seconds: f64,
    peak_rss_bytes: u64,
}

impl Pairs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
        let Some(simhash) = snapshot.params().simhash else {
            bail!(
                "{}: this index keeps no simhash fingerprints; `dedup` finds its pairs",
                self.index.display()
            );
        };
        let within = self.within.unwrap_or(simhash.within.into());
        let watch = Stopwatch::start();
        let (mut count, mut checksum) = (0_u64, 0_u64);
        let mut pairs: Vec<(KeyBuf, KeyBuf, u32)> = Vec::new();
        let prints = !self.count && !self.output.json;
        pairs_within(&snapshot, within, |a, b, distance| {
            let (a, b) = (a.key()?, b.key()?);
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            count += 1;
            checksum = checksum.wrapping_add(mix(key_number(&a), key_number(&b)));
            if prints {
                pairs.push((a, b, distance));
            }
            Ok(())
        })?;
        if self.output.json {
            report::print_json(&Report {
                pairs: count,
                cpu_seconds: watch.cpu_seconds(),
                checksum: format!("{checksum:016x}"),
                seconds: watch.seconds(),
                peak_rss_bytes: report::peak_rss_bytes(),
            })?;
        } else if self.count {
            report::print_lines(&[count.to_string()])?;
        } else {
            pairs.sort_unstable();
            print(&pairs).context("cannot write to standard output")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(pairs: &[(KeyBuf, KeyBuf, u32)]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (a, b, distance) in pairs {
        write_key(&mut out, a)?;
        out.write_all(b"\t")?;
        write_key(&mut out, b)?;
        writeln!(out, "\t{distance}")?;
    }
    out.flush()
}
