//! `twindex report`: what an index holds, for a person, as one page of HTML.

mod chart;
mod figures;
mod page;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use twindex::{Index, Snapshot};
use twindex_join::Effort;

use crate::interrupt::HalfDone;
use crate::options::{Output, Work, parse_resemblance};
use crate::report;
pub(crate) use figures::{Clustered, Figures, KEYS_SHOWN};

/// Options of `report`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex report pages.twx -o report.html\n\n\
    The page stands alone: no script, no file beside it. It shows how near the pairs are that share a block of their \
    fingerprints or a band, band by band, how likely pairs are to share one beside what is predicted, clusters and \
    their sizes, how full buckets are, and where the bytes go. Resemblance is estimated from signatures.")]
pub(crate) struct Report {
    /// Directory of the index
    index: PathBuf,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    look: Look,
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    output: Output,
}

/// How the documents are looked at.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Resemblance, estimated, from which on documents make a cluster [default: 0.8]
    #[arg(long, value_name = "J", default_value = "0.8", hide_default_value = true, value_parser = parse_resemblance)]
    pub(crate) threshold: f64,
    /// Compare only neighbours in buckets of more than this many different members
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) max_bucket: usize,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply()?;
        if let Some(out) = &self.out {
            let there = out.symlink_metadata().is_ok();
            ensure!(
                self.force || !there,
                "{}: already exists; choose another file, or --force to replace it",
                out.display()
            );
        }
        let index = Index::open(&self.index)?;
        let scratch = tempfile::tempdir().context("cannot make a folder for scratch files")?;
        let half_done = HalfDone::new(scratch.path());
        let threads = rayon::current_num_threads();
        let effort = Effort { dir: scratch.path(), memory: self.work.memory, threads };
        let figures = look(&index.snapshot(), &self.index, self.look, effort, Clusters::BySignatures)?;
        drop(half_done);
        match &self.out {
            Some(out) => write(out, &figures)?,
            None if self.output.json => {}
            None => {
                let page = page::html(&figures);
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

/// Where the clusters on a page are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clusters {
    /// They are made of what is near by signatures.
    BySignatures,
    /// They are [added](Figures::with_clusters).
    Added,
}

/// Everything that the page shows of an index, with the clusters that signatures make or without clusters.
/// What is over the memory of `effort` goes to scratch files.
///
/// # Errors
///
/// The index is damaged, or scratch files cannot be written.
pub(crate) fn look(
    snapshot: &Snapshot,
    index: &Path,
    look: Look,
    effort: Effort<'_>,
    clusters: Clusters,
) -> anyhow::Result<Figures> {
    Figures::of(snapshot, index, look, effort, clusters == Clusters::BySignatures)
}

/// Writes the page as a whole: under a temporary name first.
pub(crate) fn write(path: &Path, figures: &Figures) -> anyhow::Result<()> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = || -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".twindex-report-").tempfile_in(folder)?;
        file.write_all(page::html(figures).as_bytes())?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
        }
        crate::lost::check()?;
        let _: File = file.persist(path)?;
        Ok(())
    };
    whole().with_context(|| format!("{shown}: cannot write"))
}
