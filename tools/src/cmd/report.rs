//! `twindex report`: writes an HTML page that describes an index.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use twindex::{Index, Key, Resources, Snapshot};
use twindex_corpus::page::{self, ClusterSource, GroupSizes, html};
use twindex_corpus::settings::{Near, Rule, THRESHOLD};
use twindex_corpus::urls;
use twindex_join::JoinResources;

use super::urls::clusters_of;
use crate::differs::NearOfReport;
use crate::interrupt::RemovedOnSignal;
use crate::options::{Output, ResourceArgs, VerifyChoice};
use crate::report;
use crate::settings_args::Options;

/// Options of `report`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex report pages.twx -o report.html\n\n\
    The page is one file, without scripts. It shows how near the pairs are that share a block of their \
    fingerprints or a band, band by band, how likely pairs are to share one beside what is predicted, clusters and \
    their sizes, hosts where keys are URLs, how full buckets are, and where the bytes go. Resemblance is estimated from signatures.")]
pub(crate) struct ReportArgs {
    /// Directory of the index
    index: PathBuf,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it is a report
    #[arg(long, short)]
    force: bool,
    /// Also show the groups of near documents by size, which runs queries for each leader (see `groups`)
    #[arg(long)]
    groups: bool,
    #[command(flatten)]
    look: VerifyOptions,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// How the pairs of documents are verified.
#[derive(Args, Clone, Debug)]
struct VerifyOptions {
    #[command(flatten)]
    rule: Options<Rule, NearOfReport>,
    /// In buckets with more than N distinct members, compare only neighbours
    #[arg(long, value_name = "N", default_value = "10000")]
    max_bucket: usize,
}

impl ReportArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        if let Some(out) = &self.out {
            let there = out.symlink_metadata().is_ok();
            ensure!(
                self.force || !there,
                "{}: already exists; choose another file, or --force to replace it",
                out.display()
            );
            page::check(out, [&self.index])?;
        }
        let index = Index::open(&self.index)?;
        let scratch = tempfile::tempdir().context("cannot make a folder for scratch files")?;
        let half_done = RemovedOnSignal::new(scratch.path());
        let threads = rayon::current_num_threads();
        let join_resources = JoinResources { dir: scratch.path(), memory: self.work.memory, threads };
        let threshold = self.look.rule.resemblance().unwrap_or(THRESHOLD);
        let look = page::VerifyOptions { threshold, max_bucket: self.look.max_bucket };
        let snapshot = index.snapshot();
        let mut figures =
            page::look(&snapshot, &self.index, look, join_resources, ClusterSource::BySignatures)?;
        if self.groups {
            let resources = Resources { dir: scratch.path(), memory: self.work.memory, threads };
            figures = figures.with_groups(GroupSizes::of(&snapshot, &resources)?);
        }
        // If keys are URLs, also counts duplicates by host.
        let has_signatures = index.params().minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        if has_signatures && has_url(&snapshot)? {
            let table = scratch.path().join("clusters.tsv");
            let near = Some(Near::Resemblance(threshold));
            clusters_of(&self.index, &table, near, Some(VerifyChoice::Signature), &self.work, &self.output)?;
            figures = figures.with_hosts(urls::count_hosts(&table, scratch.path(), self.work.memory)?);
        }
        drop(half_done);
        match &self.out {
            Some(out) => page::write(out, &figures)?,
            None if self.output.json => {}
            None => {
                let page = html(&figures);
                io::stdout().lock().write_all(page.as_bytes()).context("cannot write to standard output")?;
            }
        }
        if self.output.json {
            report::print_json(&figures)?;
        } else if let Some(out) = self.out.as_ref().filter(|_| !self.output.quiet) {
            report::print_lines(&[format!("{}: the report on {}", out.display(), self.index.display())])?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether any of the first keys is a URL with a host.
fn has_url(snapshot: &Snapshot) -> anyhow::Result<bool> {
    const LOOKED_AT: usize = 1000;
    for key in snapshot.range::<&[u8]>(..)?.take(LOOKED_AT) {
        if let Key::Bytes(key) = key?.as_key()
            && std::str::from_utf8(key).is_ok_and(|key| urls::Parts::parse(key).is_some())
        {
            return Ok(true);
        }
    }
    Ok(false)
}
