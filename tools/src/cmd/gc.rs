//! `twindex gc`: removes files that an index does not need.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::Index;

use crate::options::Output;
use crate::report;

/// Options of `gc`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex gc pages.twx\n\n\
    What the newest generation does not name goes: the files of the one before, and what a crash left. Files of others \
    stay, and so does what a process has open until it closes it. After this there is no generation to go back to.")]
pub(crate) struct GcArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct GcReport {
    bytes_removed: u64,
}

impl GcArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let index = Index::open(&self.index)?;
        let report = GcReport { bytes_removed: index.gc()? };
        report::print(&self.output, &report, || {
            let removed = report::bytes(report.bytes_removed);
            vec![format!("{}: {removed} removed", self.index.display())]
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
