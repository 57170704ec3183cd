//! `twindex groups --as forest`: reduces pairs to a spanning forest. Workers run it on their own pairs, and a last run
//! combines their forests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use twindex_join::{SpanningForest, Stars};

use super::GroupsArgs;
use crate::options::Usage;
use crate::pair_file::{FOREST, FOREST_COLUMNS, PairFiles, PairWriter};
use crate::report::{self, Costs, Stopwatch, counted};

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct ForestReport {
    /// The path of the forest. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    files: u64,
    /// Number of lines read.
    pairs: u64,
    /// Number of distinct documents in these lines.
    documents: u64,
    /// Number of components with at least two documents.
    clusters: u64,
    /// Number of lines written.
    edges: u64,
    /// Whether the keys did not fit in memory and were written to scratch files.
    spilled: bool,
    #[serde(flatten)]
    costs: Costs,
}

impl GroupsArgs {
    pub(super) fn forest(&self) -> anyhow::Result<ExitCode> {
        if let Some(index) = self.index() {
            let why = format!("{}: is an index; --as forest goes with files of pairs", index.display());
            return Err(Usage::new(why).into());
        }
        self.work.apply_threads()?;
        self.stage.check(FOREST, &self.inputs)?;
        let watch = Stopwatch::start();
        let mut files = PairFiles::open(&self.inputs)?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let (stars, pairs) = spanning(&mut files, scratch.path(), self.work.memory)?;
        let keys = files.keys();
        let file = self.stage.create_table(FOREST, FOREST_COLUMNS, (true, false), &self.output)?;
        let mut out = PairWriter::begin(file, FOREST, files.fields(), FOREST_COLUMNS)?;
        stars.for_each(|root, key| {
            out.line(|out| {
                keys.write(out, root)?;
                out.write_all(b"\t")?;
                keys.write(out, key)
            })
        })?;
        let written = out.finish()?;
        if self.output.json {
            report::print_json(&ForestReport {
                file: written.path,
                files: files.count(),
                pairs,
                documents: stars.keys().into(),
                clusters: stars.components(),
                edges: stars.edges(),
                spilled: stars.is_on_disk(),
                costs: Costs::since(watch),
            })?;
        } else {
            let clusters = counted(stars.components(), "cluster");
            written
                .print_summary(&format!("{}, {clusters}", counted(stars.edges(), "edge")), &self.output)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a spanning forest of all pairs in the files, and the number of pairs read.
pub(super) fn spanning(files: &mut PairFiles, scratch: &Path, memory: usize) -> anyhow::Result<(Stars, u64)> {
    let mut forest = SpanningForest::new(scratch, memory);
    let pairs = files.for_each(|pair| Ok(forest.join(pair.a, pair.b)?))?;
    Ok((forest.finish()?, pairs))
}
