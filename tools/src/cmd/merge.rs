//! `twindex merge`: joins indexes with the same parameters into one.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::Index;
use twindex::store::OnConflict;

use crate::options::{Output, ResourceArgs};
use crate::report::{self, Costs, Stopwatch, counted};

/// Options of `merge`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex merge all.twx shard-1.twx shard-2.twx shard-3.twx\n\n\
    The result is the index that one `build` of all their documents makes, of one segment, to the last byte. The shards \
    stay as they are.")]
pub(crate) struct MergeArgs {
    /// Directory of the new index, which must not exist
    out: PathBuf,
    /// Directories of the indexes to join
    #[arg(value_name = "SHARD", required = true)]
    shards: Vec<PathBuf>,
    /// What to do if two shards have different documents with the same key
    #[arg(long, value_enum, value_name = "WHAT", default_value = "refuse")]
    on_conflict: Conflict,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Conflict {
    /// Stop with an error
    Refuse,
    /// Use the document of the shard that is named first
    First,
    /// Use the document of the shard that is named last
    Last,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct MergeReport {
    documents: u64,
    /// Number of keys for which several shards had the same record.
    repeated: u64,
    conflicts: u64,
    #[serde(flatten)]
    costs: Costs,
}

impl MergeArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        let shards: Vec<Index> = self.shards.iter().map(Index::open).collect::<twindex::Result<_>>()?;
        let on_conflict = match self.on_conflict {
            Conflict::Refuse => OnConflict::Refuse,
            Conflict::First => OnConflict::First,
            Conflict::Last => OnConflict::Last,
        };
        let merged = Index::merge(&self.out, &shards, on_conflict, self.work.memory)
            .with_context(|| format!("{}: cannot merge the shards", self.out.display()))?;
        let report = MergeReport {
            documents: merged.documents,
            repeated: merged.repeated,
            conflicts: merged.conflicts,
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            let mut line = format!(
                "{}: {} of {}, {:.1} s",
                self.out.display(),
                counted(report.documents, "document"),
                counted(self.shards.len() as u64, "shard"),
                report.costs.seconds
            );
            if report.repeated + report.conflicts > 0 {
                let _ = write!(
                    line,
                    "; {} in several, {} of them with different documents",
                    counted(report.repeated + report.conflicts, "key"),
                    report::count(report.conflicts)
                );
            }
            vec![line]
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
