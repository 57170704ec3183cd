//! `twindex snapshot`: makes a copy of an index that shares the files of the original.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::Index;

use crate::options::Output;
use crate::report::{self, counted};

/// Options of `snapshot`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex snapshot pages.twx pages-monday.twx\n\n\
    The copy is an index of its own, of the commit that was the last when it began; a writer may go on meanwhile. On the \
    same file system segments are not copied but get a second name, and take no space until one of the two drops them.")]
pub(crate) struct SnapshotArgs {
    /// Directory of the index
    index: PathBuf,
    /// Directory of the copy, which must not exist
    dest: PathBuf,
    /// Copy this generation instead of the newest, for example because the newest is damaged
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct SnapshotReport {
    documents: u64,
    generation: u64,
}

impl SnapshotArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let options = Index::options();
        let index = match self.generation {
            Some(generation) => options.at_generation(generation).open(&self.index)?,
            None => options.open(&self.index)?,
        };
        let generation = index.copy_to(&self.dest)?;
        let documents = Index::open(&self.dest)?.snapshot().documents();
        let report = SnapshotReport { documents, generation };
        report::print(&self.output, &report, || {
            let documents = counted(report.documents, "document");
            vec![format!("{}: {documents} of generation {generation}", self.dest.display())]
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
