//! `twindex delete`: removes documents from an index.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::Index;

use crate::key_args::KeyArgs;
use crate::options::Output;
use crate::report::{self, counted};

/// Options of `delete`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex delete pages.twx https://example.org/a https://example.org/b\n  \
    twindex get pages.twx | grep ^https://example.org/ | twindex delete pages.twx - --escaped\n\n\
    For `-` alone, keys are read from standard input, one a line. All of them go in one commit. A key that is not there is counted, and no error. Their bytes go when their segment is \
    merged: `twindex merge`."
)]
pub(crate) struct DeleteArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    output: Output,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct DeleteReport {
    documents: u64,
    deleted: u64,
    absent: u64,
}

impl DeleteArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let index = Index::open(&self.index)?;
        let mut writer = index.writer()?;
        let (mut deleted, mut absent) = (0, 0);
        self.keys.for_each_or_lines(&self.index, &index.params(), |key| {
            if writer.contains(&key)? {
                writer.delete(&key)?;
                deleted += 1;
            } else {
                absent += 1;
            }
            Ok(())
        })?;
        writer.commit()?;
        drop(writer);
        let report = DeleteReport { documents: index.snapshot().documents(), deleted, absent };
        report::print(&self.output, &report, || {
            let absent = match absent {
                0 => String::new(),
                absent => format!(", {} not there", counted(absent, "key")),
            };
            vec![format!(
                "{}: {} deleted{absent}, {} left",
                self.index.display(),
                counted(report.deleted, "document"),
                counted(report.documents, "document")
            )]
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
