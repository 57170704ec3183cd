//! `twindex upgrade`: converts an index or a segment file of any format version to a new index of the current version.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use twindex::sys::{RealVfs, Vfs};
use twindex::{FormatVersion, format_version, upgrade};

use crate::options::{Output, ResourceArgs};
use crate::report::{self, Costs, Stopwatch, counted};

/// Options of `upgrade`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex upgrade --check pages.twx\n  twindex upgrade pages.twx -o pages-new.twx\n\n\
    Reads every version of the file format, and writes the documents of INPUT to a new index OUT. Does not change INPUT, \
    and can be killed at any time: OUT becomes an index only when it is complete and on disk. A killed run can leave a \
    directory .twindex-tmp-* beside OUT or, if OUT was an empty directory, files in OUT. Remove them, and run the command \
    again.\n\n\
    Exit code of --check: 0 if INPUT has the current version, 1 if it must be upgraded or an error occurred."
)]
pub(crate) struct UpgradeArgs {
    /// Directory of the index, or a single segment file
    input: PathBuf,
    /// Directory of the new index; must be empty or not exist
    #[arg(long, short, value_name = "OUT", required_unless_present = "check", conflicts_with = "check")]
    out: Option<PathBuf>,
    /// Print the version of INPUT and whether an upgrade is needed; write nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// The output of `--check --json`.
#[derive(Serialize)]
struct CheckReport {
    version: u16,
    current: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct UpgradeReport {
    version: u16,
    current: bool,
    /// The kinds of data that the old version could not store, in words; `None` if the input had the current version.
    absent: Option<&'static str>,
    documents: u64,
    segments: u64,
    #[serde(flatten)]
    costs: Costs,
}

impl UpgradeArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.input.join("PASSAGES").exists() {
            anyhow::bail!(
                "{}: an index of passages, whose format has had one version only",
                self.input.display()
            );
        }
        match &self.out {
            None => self.check(),
            Some(out) => self.upgrade(out),
        }
    }

    fn check(&self) -> anyhow::Result<ExitCode> {
        let version = format_version(&RealVfs, &self.input)?;
        if self.output.json {
            report::print_json(&CheckReport { version: version.number, current: version.is_current })?;
        } else {
            let advice = if version.is_current {
                "current, no upgrade is needed".to_owned()
            } else {
                format!("twindex upgrade {} -o OUT", self.input.display())
            };
            report::print_lines(&[format!("{}: {}: {advice}", self.input.display(), named(version))])?;
        }
        Ok(if version.is_current { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn upgrade(&self, out: &Path) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
        let upgraded = upgrade(&vfs, &self.input, out, self.work.memory)?;
        let report = UpgradeReport {
            version: upgraded.from.number,
            current: upgraded.from.is_current,
            absent: upgraded.from.absent,
            documents: upgraded.documents,
            segments: upgraded.segments,
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            let mut lines = vec![format!(
                "{}: {} of {} ({}), {:.1} s",
                out.display(),
                counted(report.documents, "document"),
                self.input.display(),
                named(upgraded.from),
                report.costs.seconds
            )];
            match report.absent {
                Some(absent) => {
                    lines.push(format!("version {} had no {absent}: there are none", report.version));
                }
                None => lines.push(format!(
                    "{} was of the current version already: {} is a fresh copy",
                    self.input.display(),
                    out.display()
                )),
            }
            lines
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the name of a version for messages. The current version, 3 in the headers, is called format 1.0.
fn named(version: FormatVersion) -> String {
    if version.is_current { "format 1.0".to_owned() } else { format!("format version {}", version.number) }
}
