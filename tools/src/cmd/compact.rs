//! `twindex compact`: merges the segments of an index into one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::{Index, WriterOptions};
use twindex_corpus::page::Space;

use crate::options::{Output, ResourceArgs};
use crate::report::{self, Costs, Stopwatch, counted};

/// Options of `compact`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex compact pages.twx\n  \
    twindex compact pages.twx --memory 256M\n\n\
    Documents that were replaced or deleted no longer take space, and a query asks one segment. It is the segment that \
    an index gets to which the documents are added at once, to the last byte. The index answers meanwhile, and if it \
    is stopped halfway, it is as it was; the disk must have space for a second copy.")]
pub(crate) struct CompactArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct CompactReport {
    documents: u64,
    /// Number of segments before the merge.
    merged: usize,
    bytes_before: u64,
    bytes_on_disk: u64,
    #[serde(flatten)]
    costs: Costs,
}

impl CompactArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        let index = Index::open(&self.index)?;
        let mut writer = index.writer_with(WriterOptions::default().memory(self.work.memory / 2))?;
        let before = index.snapshot();
        let bytes_before = Space::of(&before, index.path()).on_disk;
        writer.compact()?;
        drop(writer);
        let after = index.snapshot();
        let report = CompactReport {
            documents: after.documents(),
            merged: before.segments().len(),
            bytes_before,
            bytes_on_disk: Space::of(&after, index.path()).on_disk,
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            vec![format!(
                "{}: {}, {} merged, {} on disk, {} before, {:.1} s",
                self.index.display(),
                counted(report.documents, "document"),
                counted(report.merged as u64, "segment"),
                report::bytes(report.bytes_on_disk),
                report::bytes(report.bytes_before),
                report.costs.seconds
            )]
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
