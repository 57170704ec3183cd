//! `twindex merge`: merges the segments of an index, joins indexes into a new one, or makes a copy of one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::store::OnConflict;
use twindex::{Index, WriterOptions};
use twindex_corpus::page::Space;

use crate::options::{Output, ResourceArgs, Usage};
use crate::report::{self, Costs, Stopwatch, counted};

/// Options of `merge`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  \
    twindex merge pages.twx\n  \
    twindex merge shard-1.twx shard-2.twx shard-3.twx -o all.twx\n  \
    twindex merge pages.twx --snapshot pages-monday.twx\n\n\
    Without --out and --snapshot, the segments of one index become one: documents that were replaced or deleted no longer \
    take space, and a query asks one segment. The index answers meanwhile, and if the run is stopped halfway, it is as it \
    was; the disk must have space for a second copy.\n\n\
    A merge makes the index that one `build` of all the documents makes, of one segment, to the last byte.\n\n\
    A snapshot is an index of its own, of the commit that was the last when it began; a writer may go on meanwhile. On the \
    same file system segments are not copied but get a second name, and take no space until one of the two drops them.",
    mut_arg("threads", |threads| threads.conflicts_with("snapshot")),
    mut_arg("memory", |memory| memory.conflicts_with("snapshot"))
)]
pub(crate) struct MergeArgs {
    /// Directory of the index; with --out, of each of the indexes to join, which have the same parameters
    #[arg(value_name = "INDEX", required = true)]
    indexes: Vec<PathBuf>,
    /// Write a new index in this directory, which must not exist; the others stay as they are
    #[arg(long, short, value_name = "NEW")]
    out: Option<PathBuf>,
    /// What to do if two indexes have different documents with the same key [default: refuse]
    #[arg(long, value_enum, value_name = "WHAT", requires = "out")]
    on_conflict: Option<Conflict>,
    /// Make a copy in this directory, which must not exist; it shares the files of the index, which are not merged
    #[arg(long, value_name = "COPY", conflicts_with = "out")]
    snapshot: Option<PathBuf>,
    /// Copy this generation instead of the newest, for example because the newest is damaged
    #[arg(long, value_name = "N", requires = "snapshot")]
    generation: Option<u64>,
    /// After the merge, remove all files that the newest generation does not name
    ///
    /// They are those of the generation before, to which there is then no way back, and files that a crash left. Files of
    /// others stay, and so does a file that a process has open until it closes it.
    #[arg(long, conflicts_with_all = ["out", "snapshot"])]
    gc: bool,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Conflict {
    /// Stop with an error
    Refuse,
    /// Use the document of the index that is named first
    First,
    /// Use the document of the index that is named last
    Last,
}

/// The statistics that `--json` prints after a merge of the segments of an index.
#[derive(Serialize)]
struct CompactReport {
    documents: u64,
    /// Number of segments before the merge.
    merged: usize,
    bytes_before: u64,
    bytes_on_disk: u64,
    /// Absent without `--gc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_removed: Option<u64>,
    #[serde(flatten)]
    costs: Costs,
}

/// The statistics that `--json` prints after indexes were joined.
#[derive(Serialize)]
struct JoinReport {
    documents: u64,
    /// Number of keys for which several indexes had the same record.
    repeated: u64,
    conflicts: u64,
    #[serde(flatten)]
    costs: Costs,
}

/// The statistics that `--json` prints after a snapshot.
#[derive(Serialize)]
struct SnapshotReport {
    documents: u64,
    generation: u64,
}

impl MergeArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match (&self.out, &self.snapshot, &self.indexes[..]) {
            (Some(_), _, [_]) if self.on_conflict.is_some() => {
                return Err(Usage::new("--on-conflict goes with several indexes").into());
            }
            (Some(out), _, _) => self.join(out),
            (None, Some(copy), [index]) => self.copy(index, copy),
            (None, None, [index]) => self.compact(index),
            _ => {
                return Err(
                    Usage::new("several indexes are joined into a new one, which -o NEW names").into()
                );
            }
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Merges the segments of an index into one.
    fn compact(&self, path: &Path) -> anyhow::Result<()> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        let index = Index::open(path)?;
        let options = WriterOptions::default().memory(self.work.memory / 2);
        let mut writer = index.writer_with(options.threads(rayon::current_num_threads()))?;
        let before = index.snapshot();
        let bytes_before = Space::of(&before, path).on_disk;
        writer.compact()?;
        drop(writer);
        let merged = before.segments().len();
        drop(before);
        let bytes_removed = self.gc.then(|| index.gc()).transpose()?;
        let after = index.snapshot();
        let report = CompactReport {
            documents: after.documents(),
            merged,
            bytes_before,
            bytes_on_disk: Space::of(&after, path).on_disk,
            bytes_removed,
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            let removed = bytes_removed.map_or_else(String::new, |bytes| {
                format!(", {} of other files removed", report::bytes(bytes))
            });
            vec![format!(
                "{}: {}, {} merged, {} on disk, {} before{removed}, {:.1} s",
                path.display(),
                counted(report.documents, "document"),
                counted(report.merged as u64, "segment"),
                report::bytes(report.bytes_on_disk),
                report::bytes(report.bytes_before),
                report.costs.seconds
            )]
        })
    }

    /// Joins the indexes into a new one.
    fn join(&self, out: &Path) -> anyhow::Result<()> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        let indexes: Vec<Index> = self.indexes.iter().map(Index::open).collect::<twindex::Result<_>>()?;
        let on_conflict = match self.on_conflict {
            None | Some(Conflict::Refuse) => OnConflict::Refuse,
            Some(Conflict::First) => OnConflict::First,
            Some(Conflict::Last) => OnConflict::Last,
        };
        let (memory, threads) = (self.work.memory, rayon::current_num_threads());
        let merged = Index::merge_on_threads(out, &indexes, on_conflict, memory, threads)
            .with_context(|| format!("{}: cannot merge the indexes", out.display()))?;
        let report = JoinReport {
            documents: merged.documents,
            repeated: merged.repeated,
            conflicts: merged.conflicts,
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            let mut line = format!(
                "{}: {} of {}, {:.1} s",
                out.display(),
                counted(report.documents, "document"),
                if indexes.len() == 1 {
                    "one index".to_owned()
                } else {
                    format!("{} indexes", indexes.len())
                },
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
        })
    }

    /// Makes a copy of an index that shares its files.
    fn copy(&self, path: &Path, copy: &Path) -> anyhow::Result<()> {
        let options = Index::options();
        let index = match self.generation {
            Some(generation) => options.at_generation(generation).open(path)?,
            None => options.open(path)?,
        };
        let generation = index.copy_to(copy)?;
        let documents = Index::open(copy)?.snapshot().documents();
        let report = SnapshotReport { documents, generation };
        report::print(&self.output, &report, || {
            let documents = counted(report.documents, "document");
            vec![format!("{}: {documents} of generation {generation}", copy.display())]
        })
    }
}
