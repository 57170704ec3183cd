//! `twindex stats --html`: writes a page that describes an index.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use twindex::{Index, Key, Resources, Snapshot};
use twindex_corpus::page::{self, GroupSizes};
use twindex_corpus::settings::{Near, Rule, THRESHOLD};
use twindex_corpus::urls;
use twindex_join::JoinResources;

use crate::cmd::groups::clusters_of;
use crate::differs::NearOfPage;
use crate::interrupt::RemovedOnSignal;
use crate::options::{Output, ResourceArgs, Usage, VerifyChoice};
use crate::report;
use crate::settings_args::Options;

/// Options of the page.
#[derive(Args, Clone, Debug)]
pub(super) struct PageArgs {
    /// Write a page of HTML to this file, or to standard output (-), instead of the statistics
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace the file if it is a page of twindex
    #[arg(long, requires = "html")]
    force: bool,
    #[command(flatten)]
    rule: Options<Rule, NearOfPage>,
    /// On the page, compare only neighbours in buckets with more than N distinct members
    #[arg(long, value_name = "N", default_value = "10000", requires = "html")]
    max_bucket: usize,
}

impl PageArgs {
    /// Writes the page about `path` to `html`.
    pub(super) fn write(
        &self,
        html: &Path,
        path: &Path,
        groups: bool,
        work: &ResourceArgs,
        output: &Output,
    ) -> anyhow::Result<()> {
        work.apply_threads()?;
        let is_file = html.as_os_str() != "-";
        if is_file {
            let there = html.symlink_metadata().is_ok();
            ensure!(
                self.force || !there,
                "{}: already exists; choose another file, or --force to replace it",
                html.display()
            );
            page::check(html, [path])?;
        } else if output.json || self.force {
            return Err(Usage::new(
                "--html - writes the page to standard output: leave out --json and --force",
            )
            .into());
        }
        let index = Index::open(path)?;
        let scratch = tempfile::tempdir().context("cannot make a folder for scratch files")?;
        let half_done = RemovedOnSignal::new(scratch.path());
        let threads = rayon::current_num_threads();
        let join_resources = JoinResources { dir: scratch.path(), memory: work.memory, threads };
        let threshold = self.rule.resemblance().unwrap_or(THRESHOLD);
        let look = page::VerifyOptions { threshold, max_bucket: self.max_bucket };
        let snapshot = index.snapshot();
        let mut figures = page::look(&snapshot, path, look, join_resources)?;
        if groups {
            let resources = Resources { dir: scratch.path(), memory: work.memory, threads, cancel: None };
            figures = figures.with_groups(GroupSizes::of(&snapshot, &resources)?);
        }
        // Also counts duplicates by host if keys are URLs.
        let has_signatures = index.params().minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        if has_signatures && has_url(&snapshot)? {
            let table = scratch.path().join("clusters.tsv");
            let near = Some(Near::Resemblance(threshold));
            clusters_of(path, &table, near, Some(VerifyChoice::Signature), work, output)?;
            figures = figures.with_hosts(urls::count_hosts(&table, scratch.path(), work.memory)?);
        }
        drop(half_done);
        if is_file {
            page::write(html, &figures)?;
        } else {
            let page = page::html(&figures);
            io::stdout().lock().write_all(page.as_bytes()).context("cannot write to standard output")?;
        }
        if output.json {
            report::print_json(&figures)?;
        } else if is_file && !output.quiet {
            report::print_lines(&[format!("{}: the page about {}", html.display(), path.display())])?;
        }
        Ok(())
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
