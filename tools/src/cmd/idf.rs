//! `twindex idf`: counts, for each shingle, the documents of a collection that contain it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use serde::Serialize;
use twindex::IdfBuilder;
use twindex::idf::file_bytes;
use twindex::sketch::IdfTable;
use twindex::store::idf;
use twindex::sys::RealVfs;
use twindex::{Error, Params, Sketcher};
use twindex_corpus::input::{Counts, Documents};
use twindex_corpus::sketching::{SketchOptions, for_each_shingled};
use twindex_corpus::{boilerplate, contents, output_path};

use crate::options::TextArgs;
use crate::options::{InputArgs, Output, ResourceArgs, Usage};
use crate::progress::Progress;
use crate::report::{self, Costs, Stopwatch, count, counted};

/// Options of `idf`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex idf pages.jsonl -o pages.idf\n  \
    twindex build pages.twx pages.jsonl --method simhash --idf pages.idf\n  \
    twindex dedup pages.jsonl --weights idf --idf pages.idf -o deduped\n\n\
    The table says what a shingle weighs in the simhash: 1 + log2((N + 1) / (d + 1)) where d of N documents have it. \
    An index keeps a copy of its table. Another collection gives another table, and fingerprints made with different \
    tables are not compared. Documents without tokens are not counted.")]
pub(crate) struct IdfArgs {
    #[command(flatten)]
    input: InputArgs,
    /// File to create for the table
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE if it is an idf table
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    text: TextArgs,
    /// Ignore the text spans in this list, OUT/boilerplate of `dedup --without-boilerplate`. The table can then be used
    /// only with the same list; a table made without a list can be used with any
    #[arg(long, value_name = "FILE")]
    boilerplate: Option<PathBuf>,
    /// Omit shingles that occur in fewer than D documents
    #[arg(long, value_name = "D", default_value_t = 2)]
    min_df: u32,
    /// Keep at most N shingles, those that occur in the most documents
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1 << 27))]
    max_entries: u32,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct IdfReport {
    #[serde(flatten)]
    input: Counts,
    #[serde(flatten)]
    table: TableFigures,
    bytes: u64,
    #[serde(flatten)]
    costs: Costs,
}

/// Statistics of an IDF table.
#[derive(Serialize)]
pub(crate) struct TableFigures {
    digest: String,
    /// Number of documents with at least one token.
    counted_documents: u32,
    entries: usize,
    /// The document frequency assumed for a shingle that is not in the table.
    absent: u32,
}

impl TableFigures {
    pub(crate) fn of(table: &IdfTable) -> Self {
        Self {
            digest: format!("{:032x}", table.digest()),
            counted_documents: table.documents(),
            entries: table.len(),
            absent: table.absent(),
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} of {}, others as if in {}",
            counted(self.entries as u64, "shingle"),
            counted(self.counted_documents.into(), "document"),
            count(self.absent.into())
        )
    }
}

impl IdfArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        if self.input.inputs.is_empty() {
            return Err(
                Usage::new("nothing to count: name INPUT files or folders, or - for standard input").into()
            );
        }
        self.text.check_features(self.input.reads_features())?;
        let lists = self.boilerplate.iter().cloned().chain(self.text.file());
        output_path::check_file(&self.out, self.input.inputs.iter().cloned().chain(lists))?;
        self.check_out()?;
        let mut documents = Documents::open(&self.input.inputs, &self.input.options()?)?;
        let table = self.count(&mut documents)?;
        idf::write(&RealVfs, &self.out, &table, self.force)?;

        let report = IdfReport {
            input: documents.counts().clone(),
            table: TableFigures::of(&table),
            bytes: file_bytes(&table),
            costs: Costs::since(watch),
        };
        report::print(&self.output, &report, || {
            let mut lines = vec![format!(
                "{}: {}, {}, {:.1} s",
                self.out.display(),
                report.table.summary(),
                report::bytes(report.bytes),
                report.costs.seconds
            )];
            lines.extend(report.input.remarks().iter().map(|remark| format!("  note: {remark}")));
            lines
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Checks, before any work is done, that the output file does not exist or may be replaced.
    fn check_out(&self) -> anyhow::Result<()> {
        let shown = self.out.display();
        match self.out.symlink_metadata() {
            Err(_) => return Ok(()),
            Ok(_) if !self.force => {
                return Err(anyhow!(
                    "{shown}: already exists; choose another file, or --force to replace it"
                ));
            }
            Ok(metadata) => {
                ensure!(metadata.is_file(), "{shown}: not a regular file, so --force does not replace it");
            }
        }
        let made = match idf::read(&RealVfs, &self.out) {
            Ok(_) => true,
            // A damaged file counts as an IDF table if its magic number (offset 0) and its role (offset 10) are right.
            Err(Error::Corrupt { offset, .. }) => offset != 0 && offset != 10,
            Err(_) => false,
        };
        ensure!(made, "{shown}: not an idf table, so --force does not replace it; choose another file");
        Ok(())
    }

    fn count(&self, documents: &mut Documents) -> anyhow::Result<IdfTable> {
        let shingling = contents::shingling(&self.text, self.input.reads_features(), None)?;
        let mut params = Params::builder().shingling(shingling).simhash(0).build()?;
        let sketcher = match &self.boilerplate {
            None => Sketcher::new(&params)?,
            Some(_) if self.input.reads_features() => {
                return Err(Usage::new(
                    "--boilerplate leaves spans out of texts, and features are none: leave it out",
                )
                .into());
            }
            Some(path) => {
                let list = boilerplate::open(path)?;
                params.shingling.boilerplate = Some(boilerplate::digest(&list));
                boilerplate::sketcher_with(&params, None, list)?
            }
        };
        let scratch = match self.out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut builder = IdfBuilder::new(&params.shingling)
            .min_df(self.min_df)
            .entries_max(self.max_entries as usize)
            .memory(self.work.memory / 2)
            .scratch_dir(scratch);
        let progress = Progress::bytes(documents.total_bytes(), "counting", self.output.quiet);
        let wanted = SketchOptions { shingles: true, ..SketchOptions::default() };
        for_each_shingled(
            documents,
            &sketcher,
            &wanted,
            &progress,
            |_, shingles| Ok(builder.add(shingles)?),
        )?;
        progress.finish();
        builder.finish().with_context(|| format!("{}: cannot make the table", self.out.display()))
    }
}
