//! `twindex verify`: checks an index, or one segment, for damage.

mod salvage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::Error;
use twindex::segment::Segment;
use twindex::store::verify;
use twindex::sys::RealVfs;

use crate::options::{AccessArgs, Output};
use crate::progress::Progress;
use crate::report::{self, Stopwatch, counted};

/// Options of `verify`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex verify pages.twx\n  twindex verify pages.twx --salvage saved.twx\n\n\
    Reads everything, changes nothing. Exit code 0: sound; 1: problems, each printed with file, section and offset. On a \
    disk that may fail use --access read, which takes memory for all of the index.\n\n\
    --salvage prints for each file what was saved and what was lost, with the keys as far as they can be read. Exit code \
    0: nothing was wrong; 1: something was, and NEW has the rest.",
    mut_arg("access", |access| access.conflicts_with("salvage"))
)]
pub(crate) struct VerifyArgs {
    /// Directory of an index, or one segment file
    index: PathBuf,
    /// Make a new index in this directory, of every document of INDEX whose record is whole
    ///
    /// NEW must be empty or not exist.
    #[arg(long, value_name = "NEW")]
    salvage: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    output: Output,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct VerifyReport {
    sound: bool,
    problems: Vec<String>,
    notes: Vec<String>,
    bytes: u64,
    seconds: f64,
}

impl VerifyArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(new) = &self.salvage {
            return salvage::run(&self.index, new, &self.output);
        }
        let watch = Stopwatch::start();
        let mut found = self.look(&self.index);
        // There is nothing to verify, and the other files of the folder are not this command's matter.
        if let [Error::NotAnIndex { .. }] = found.problems[..] {
            return Err(found.problems.remove(0).into());
        }
        let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        let sound = problems.is_empty();
        let printed = if self.output.json {
            report::print_json(&VerifyReport {
                sound,
                problems,
                notes: found.notes,
                bytes: found.bytes,
                seconds: watch.seconds(),
            })
        } else {
            let mut lines = Vec::new();
            for problem in &problems {
                lines.push(problem.clone());
            }
            for note in &found.notes {
                lines.push(format!("note: {note}"));
            }
            if !self.output.quiet {
                let verdict =
                    if sound { "sound".to_string() } else { counted(problems.len() as u64, "problem") };
                lines.push(format!(
                    "{}: {verdict}, {} read in {:.1} s",
                    self.index.display(),
                    report::bytes(found.bytes),
                    watch.seconds()
                ));
            }
            report::print_lines(&lines)
        };
        // If the index is damaged, the exit code says so even if printing the problems failed.
        if sound { printed.map(|()| ExitCode::SUCCESS) } else { Ok(ExitCode::FAILURE) }
    }

    fn look(&self, path: &Path) -> verify::Findings {
        if !path.is_file() {
            let progress = Progress::bytes(None, "verifying", self.output.quiet);
            return verify::verify_with(&RealVfs, path, self.access.access(), |bytes| progress.set(bytes));
        }
        let mut findings = verify::Findings::default();
        match Segment::open_with(&RealVfs, path, self.access.access()) {
            Ok(segment) => {
                let progress = Progress::bytes(Some(segment.length()), "verifying", self.output.quiet);
                findings.bytes = segment.length();
                findings.problems = segment.verify(|bytes| progress.set(bytes));
            }
            Err(error) => findings.problems.push(error),
        }
        findings
    }
}
