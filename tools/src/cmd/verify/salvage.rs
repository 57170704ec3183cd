//! `twindex verify --salvage`: copies the undamaged documents of a damaged index into a new one.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use twindex::KeyBuf;
use twindex::store::salvage::salvage;
use twindex::sys::{RealVfs, Vfs};
use twindex_corpus::tsv;

use crate::options::Output;
use crate::report::{self, count, counted};

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct SalvageReport {
    whole: bool,
    /// Number of documents in the new index.
    documents: u64,
    lost: u64,
    generation: Option<u64>,
    /// The last commit up to which all deletions are known; null if all are known.
    known_until: Option<u64>,
    /// Number of documents that a later commit may have deleted or replaced.
    doubtful: u64,
    doubtful_keys: Vec<String>,
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

/// Copies the readable documents of `index` to a new index `out`. Returns exit code 0 if nothing was lost.
pub(super) fn run(index: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    let salvaged = salvage(&vfs, index, out)?;
    let text = |key: &KeyBuf| match key.as_bytes() {
        Some(bytes) => String::from_utf8_lossy(&tsv::escape(bytes)).into_owned(),
        None => key.to_string(),
    };
    let strings = |problems: &[twindex::Error]| problems.iter().map(ToString::to_string).collect();
    let report = SalvageReport {
        whole: salvaged.is_whole(),
        documents: salvaged.documents,
        lost: salvaged.lost(),
        generation: salvaged.generation,
        known_until: salvaged.known_until,
        doubtful: salvaged.doubtful,
        doubtful_keys: salvaged.doubtful_keys.iter().map(text).collect(),
        files: salvaged
            .files
            .iter()
            .map(|file| FileReport {
                path: file.path.display().to_string(),
                saved: file.saved,
                lost: file.lost,
                lost_keys: file.lost_keys.iter().map(text).collect(),
                problems: strings(&file.problems),
            })
            .collect(),
        problems: strings(&salvaged.problems),
    };
    let whole = report.whole;
    if output.json {
        report::print_json(&report)?;
    } else {
        report::print_lines(&lines(&report, out, output))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(report: &SalvageReport, out: &Path, output: &Output) -> Vec<String> {
    let mut lines = report.problems.clone();
    for file in &report.files {
        lines.push(format!("{}: {} saved, {} lost", file.path, count(file.saved), count(file.lost)));
        lines.extend(file.problems.iter().map(|problem| format!("  {problem}")));
        lines.extend(file.lost_keys.iter().map(|key| format!("  lost: {key}")));
    }
    if let Some(commit) = report.known_until {
        let documents = counted(report.doubtful, "document");
        lines.push(format!(
            "deletions after commit {commit} are not known: {documents} may be back, or older versions"
        ));
        lines.extend(report.doubtful_keys.iter().map(|key| format!("  may be deleted: {key}")));
    }
    if !output.quiet {
        let documents = counted(report.documents, "document");
        lines.push(format!("{}: {documents}, {} lost", out.display(), count(report.lost)));
    }
    lines
}
