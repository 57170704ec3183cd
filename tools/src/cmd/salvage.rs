//! `twindex salvage`: copies the undamaged documents of a damaged index into a new one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use twindex::store::salvage::salvage;
use twindex::sys::{RealVfs, Vfs};
use twindex_corpus::tsv;

use crate::options::Output;
use crate::report::{self, count, counted};

/// Options of `salvage`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex salvage pages.twx saved.twx\n\n\
    Reads what can be read of INDEX, changes nothing there, and makes a new index OUT of every document whose record is \
    whole. Says file by file what was saved and what was lost, with the keys as far as they can be read. Exit code 0: \
    nothing was wrong; 1: something was, and OUT has the rest.")]
pub(crate) struct SalvageArgs {
    /// Directory of the damaged index
    index: PathBuf,
    /// Directory of the new index; must be empty or not exist
    out: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct SalvageReport {
    whole: bool,
    /// Number of documents in the new index.
    documents: u64,
    lost: u64,
    generation: Option<u64>,
    files: Vec<FileReport>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct FileReport {
    path: String,
    saved: u64,
    lost: u64,
    lost_keys: Vec<String>,
    problems: Vec<String>,
}

impl SalvageArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
        let salvaged = salvage(&vfs, &self.index, &self.out)?;
        let strings = |problems: &[twindex::Error]| problems.iter().map(ToString::to_string).collect();
        let report = SalvageReport {
            whole: salvaged.is_whole(),
            documents: salvaged.documents,
            lost: salvaged.lost(),
            generation: salvaged.generation,
            files: salvaged
                .files
                .iter()
                .map(|file| FileReport {
                    path: file.path.display().to_string(),
                    saved: file.saved,
                    lost: file.lost,
                    lost_keys: file
                        .lost_keys
                        .iter()
                        .map(|key| match key.as_bytes() {
                            Some(bytes) => String::from_utf8_lossy(&tsv::escape(bytes)).into_owned(),
                            None => key.to_string(),
                        })
                        .collect(),
                    problems: strings(&file.problems),
                })
                .collect(),
            problems: strings(&salvaged.problems),
        };
        let whole = report.whole;
        if self.output.json {
            report::print_json(&report)?;
        } else {
            report::print_lines(&self.lines(&report))?;
        }
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn lines(&self, report: &SalvageReport) -> Vec<String> {
        let mut lines = report.problems.clone();
        for file in &report.files {
            lines.push(format!("{}: {} saved, {} lost", file.path, count(file.saved), count(file.lost)));
            lines.extend(file.problems.iter().map(|problem| format!("  {problem}")));
            lines.extend(file.lost_keys.iter().map(|key| format!("  lost: {key}")));
        }
        if report.generation.is_none() {
            lines.push("no manifest could be read: documents that were deleted may be back".into());
        }
        if !self.output.quiet {
            let documents = counted(report.documents, "document");
            lines.push(format!("{}: {documents}, {} lost", self.out.display(), count(report.lost)));
        }
        lines
    }
}
