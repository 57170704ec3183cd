//! `twindex passages`: finds passages that documents share with earlier ones. [`twindex_corpus::Passages`] does the
//! work; this file has the options and prints the summary.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use twindex_corpus::input::Documents;
use twindex_corpus::settings::{Results, Scope};
use twindex_corpus::tsv::{write_field, write_number};
use twindex_corpus::{
    PassageAnswer, PassageQuery, PassageReport, Passages as Job, PassagesIndex, SharedPage, Unit,
};

use crate::key_args::KeyArgs;
use crate::options::KeepArgs;
use crate::options::TextArgs;
use crate::options::{InputArgs, Output, ResourceArgs};
use crate::progress::Watching;
use crate::report::{self, count, counted};
use crate::settings_args::{Options, pick};
use crate::terminal;

/// Options of `passages`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:\n  \
    twindex passages pages.jsonl -o passages\n  \
    twindex passages pages.jsonl -o cut --cut --min-words 30\n  \
    twindex passages pages.jsonl -o cut --cut --within --unit line\n  \
    twindex passages pages.parquet -o marked --mark --keep max:quality --html spans.html\n  \
    twindex passages day2.jsonl -o day2 --cut --against days.psg --index days.psg\n  \
    twindex passages train.jsonl -o clean --cut --against eval.psg --only-against --min-words 13\n  \
    twindex passages query days.psg texts.jsonl\n\n\
    A position of a document is repeated if the run of --min-words words from it on occurs in an earlier document, or,\n\
    with --within, earlier in the same; its source is the first occurrence. A span is a run of repeated positions along\n\
    which the words after the source are the same.\n\n\
    OUT/spans.tsv     key, start, end, first_key, first_start, words: a line for each span, in the order of the input;\n\
                      start and end are bytes of the text in UTF-8, end is the byte after the last\n\
    OUT/classes.tsv   class, words, key, start: all places of each passage, its first occurrence first; classes that\n\
                      repeat most words come first\n\
    OUT/kept.jsonl    with --cut: the documents without the bytes of their spans, in the order and form of the input\n    \
    OUT/marked.jsonl  with --mark: the documents with the places of their spans, in the order and form of the input\n    \
    OUT/passages.json the options")]
pub(crate) struct PassagesArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    find: Find,
}

#[derive(Subcommand)]
enum Verb {
    /// Find the documents in an index of passages that share passages with the given texts; print one line per shared
    /// passage
    #[command(after_help = "Examples:\n  \
        twindex passages query days.psg texts.jsonl\n  \
        twindex passages query days.psg essay.txt --json\n  \
        twindex passages query days.psg essays --html shared.html --documents pages.jsonl\n\n\
        Columns: key, document, start, end, document_start, document_end, words; places are bytes of both texts.\n\
        With --json a line for each text: its words, those that were found, and the documents with their words.")]
    Query(Box<Query>),
    /// Merge all parts of an index of passages into one. Runs that add documents only merge parts of similar size
    #[command(after_help = "Example:\n  twindex passages compact days.psg\n\n\
        Documents that were deleted are dropped. The index answers as before; who reads it meanwhile reads on. A crash \
        leaves it as it was before or after.")]
    Compact {
        /// The index of passages
        index: PathBuf,
        #[command(flatten)]
        work: ResourceArgs,
        #[command(flatten)]
        output: Output,
    },
    /// Delete documents from an index of passages
    #[command(after_help = "Example:\n  twindex passages delete days.psg https://example.org/a\n\n\
        All documents with one of these keys are no sources and no answers any more. A key that is not there is counted, and \
        no error. Their bytes go with `passages compact`.")]
    Delete {
        /// The index of passages
        index: PathBuf,
        #[command(flatten)]
        keys: KeyArgs,
        #[command(flatten)]
        output: Output,
    },
    /// Check every byte of an index of passages for damage
    #[command(after_help = "Example:\n  twindex passages verify days.psg")]
    Verify {
        /// The index of passages
        index: PathBuf,
    },
}

#[derive(Args)]
struct Query {
    /// The index of passages
    index: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Maximum number of documents in an answer; those with the most shared words are listed first
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Limit the time of a query: if a fingerprint occurs at more than N positions, only the first N are followed.
    /// Answers may then lack documents, which a note reports [default: all positions are followed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_places: Option<u32>,
    /// Also write an HTML page to FILE with the answers that share the most words, each text next to the stored document
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The documents from which the index was made, read in the same way as INPUT. The page shows their texts, which the
    /// index does not keep; without this option it shows only the shared passages. May be repeated
    #[arg(long, value_name = "INPUT", requires = "html")]
    documents: Vec<PathBuf>,
    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    output: Output,
}

pick!(Written: "out", "force", "annotation_prefix", "compress");
pick!(Repeated: "repeated_keys");

#[derive(Args)]
#[allow(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
struct Find {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    results: Options<Results, Written>,
    #[command(flatten)]
    scope: Options<Scope, Repeated>,
    /// Minimum length of a passage in words, 1 to 65535 [default: 50; 1 with a --unit other than words]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    min_words: Option<u32>,
    /// What is compared: runs of words, or complete lines, paragraphs (separated by empty lines) or sentences
    #[arg(long, value_enum, value_name = "UNIT", default_value = "words")]
    unit: UnitArg,
    /// What must be equal in two passages: their tokens, or all bytes from the first token to the last
    #[arg(long, value_enum, value_name = "WHAT", default_value = "tokens")]
    exact: ExactArg,
    /// Also find passages that occur earlier in the same document
    #[arg(long)]
    within: bool,
    #[command(flatten)]
    keep: KeepArgs,
    /// Write the documents without their repeated passages
    #[arg(long)]
    cut: bool,
    /// Write the documents with the positions of their repeated passages in a field or column `repeated_spans`:
    /// `[[start,end],...]`, in bytes of the text; overlapping passages are merged
    #[arg(long)]
    mark: bool,
    /// Also write an HTML page to FILE with the longest passages, each next to its first occurrence
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// An index of passages whose documents come before all others, so that their passages are kept
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// List, cut and mark only passages of the index of --against, and not those that the documents share among themselves
    #[arg(long)]
    only_against: bool,
    /// Exit with status 1 if more than N spans are listed
    #[arg(long, value_name = "N")]
    max_spans: Option<u64>,
    /// Add the documents, as they were read, to this index of passages; it is created if it does not exist. Each run
    /// adds one part; if there are more than 8 parts of similar size, they are merged
    #[arg(long, value_name = "INDEX")]
    index: Option<PathBuf>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnitArg {
    Words,
    Line,
    Paragraph,
    Sentence,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExactArg {
    Tokens,
    Bytes,
}

impl PassagesArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            None => self.find.run(),
            Some(Verb::Query(query)) => query.run(),
            Some(Verb::Compact { index, work, output }) => compact(&index, &work, &output),
            Some(Verb::Delete { index, keys, output }) => delete(&index, &keys, &output),
            Some(Verb::Verify { index }) => {
                let index_there = PassagesIndex::open(&index)?;
                index_there.verify()?;
                report::print_lines(&[format!(
                    "{}: sound: {} in {}, {}",
                    index.display(),
                    counted((index_there.documents() - index_there.deleted()).into(), "document"),
                    counted(index_there.parts() as u64, "part"),
                    report::bytes(index_there.bytes())
                )])?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Merges all parts of an index of passages.
fn compact(index: &Path, work: &ResourceArgs, output: &Output) -> anyhow::Result<ExitCode> {
    work.apply_threads()?;
    let compacted = PassagesIndex::compact(index, work.memory / 2)?;
    let there = PassagesIndex::open(index)?;
    let (parts, dropped) = compacted.map_or((there.parts(), 0), |done| (done.parts, done.dropped));
    let result = serde_json::json!({
        "documents": there.documents(),
        "parts_before": parts,
        "parts": there.parts(),
        "dropped": dropped,
        "bytes": there.bytes(),
    });
    report::print(output, &result, || {
        let done = match compacted {
            None => "one part, nothing to merge".to_owned(),
            Some(done) => format!(
                "{} merged, {} dropped",
                counted(done.parts as u64, "part"),
                counted(done.dropped, "deleted document")
            ),
        };
        vec![format!(
            "{}: {done}; {}, {}",
            index.display(),
            counted(there.documents().into(), "document"),
            report::bytes(there.bytes())
        )]
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Deletes documents from an index of passages.
fn delete(index: &Path, keys: &KeyArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let deleted = PassagesIndex::delete(index, &keys.byte_keys(index)?.into_iter().collect())?;
    let there = PassagesIndex::open(index)?;
    let left = there.documents() - there.deleted();
    let result = serde_json::json!({
        "documents": left,
        "deleted": deleted.documents,
        "absent": deleted.absent,
    });
    report::print(output, &result, || {
        let absent = match deleted.absent {
            0 => String::new(),
            absent => format!(", {} not there", counted(absent, "key")),
        };
        vec![format!(
            "{}: {} deleted{absent}, {} left",
            index.display(),
            counted(deleted.documents, "document"),
            counted(left.into(), "document")
        )]
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Query {
    fn run(self) -> anyhow::Result<ExitCode> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0).into())
            .use_current_thread()
            .build_global()
            .context("cannot start threads")?;
        let query = PassageQuery {
            index: self.index,
            inputs: self.input.inputs.clone(),
            input: self.input.options()?,
            limit: self.limit,
            max_places: self.max_places.map(|places| places as usize),
        };
        let inputs = [&query.inputs[..], &self.documents].concat();
        Documents::check_options(&inputs, &query.input)?;
        if let Some(html) = &self.html {
            let reads = [&query.inputs[..], &self.documents, std::slice::from_ref(&query.index)].concat();
            SharedPage::check(html, &reads)?;
        }
        let mut out = BufWriter::new(terminal::stdout());
        let is_json = self.output.json;
        if !is_json {
            out.write_all(b"key\tdocument\tstart\tend\tdocument_start\tdocument_end\twords\n")?;
        }
        let mut capped = 0_u64;
        let mut page = self.html.as_ref().map(|_| SharedPage::default());
        query.run(&Watching { quiet: self.output.quiet }, |answer| {
            capped += u64::from(answer.capped > 0);
            if let Some(page) = &mut page {
                page.add(&answer);
            }
            if is_json { write_json(&mut out, &answer) } else { write_rows(&mut out, &answer) }
        })?;
        out.flush().context("cannot write to standard output")?;
        if let (Some(page), Some(html)) = (&mut page, &self.html) {
            if !self.documents.is_empty() {
                page.read_documents(&self.documents, &query.input, &Watching { quiet: self.output.quiet })?;
            }
            page.write(html)?;
        }
        if capped > 0 && !self.output.quiet {
            report::note(&format!(
                "{} with a fingerprint of more than {} places; only the first were followed: documents may be \
                 missing (--max-places)",
                counted(capped, "text"),
                count(self.max_places.unwrap_or(u32::MAX).into())
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes one line for each passage of an answer.
fn write_rows(out: &mut impl Write, answer: &PassageAnswer) -> anyhow::Result<()> {
    for document in &answer.documents {
        for one in &document.matches {
            write_field(out, &answer.key)?;
            out.write_all(b"\t")?;
            write_field(out, &document.key)?;
            for number in [one.start, one.end, one.document_start, one.document_end, one.words] {
                out.write_all(b"\t")?;
                write_number(out, number)?;
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Writes one JSON line for each text.
fn write_json(out: &mut impl Write, answer: &PassageAnswer) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(answer)?;
    value["key"] = String::from_utf8_lossy(&answer.key).into();
    if let Some(documents) = value["documents"].as_array_mut() {
        for (value, document) in documents.iter_mut().zip(&answer.documents) {
            value["key"] = String::from_utf8_lossy(&document.key).into();
            let places = document.matches.iter();
            value["passages"] = places
                .map(|one| [one.start, one.end, one.document_start, one.document_end, one.words])
                .collect::<Vec<_>>()
                .into_iter()
                .map(|numbers| serde_json::Value::from(numbers.to_vec()))
                .collect();
        }
    }
    serde_json::to_writer(&mut *out, &value)?;
    Ok(out.write_all(b"\n")?)
}

impl Find {
    fn run(self) -> anyhow::Result<ExitCode> {
        self.resources.apply_threads()?;
        let job = self.job()?;
        let report = job.run_watched(&Watching { quiet: self.output.quiet })?;
        report::print(&self.output, &report, || summary(&job, &report))?;
        let is_over = self.max_spans.is_some_and(|max| report.spans > max);
        Ok(if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Returns the job with these options.
    fn job(&self) -> anyhow::Result<Job> {
        Ok(Job {
            inputs: self.input.inputs.clone(),
            input: self.input.options()?,
            repeated_keys: self.scope.repeated_keys,
            out: self.results.out.clone(),
            force: self.results.force,
            min_words: self.min_words.map(|words| words as usize),
            unit: match self.unit {
                UnitArg::Words => Unit::Words,
                UnitArg::Line => Unit::Line,
                UnitArg::Paragraph => Unit::Paragraph,
                UnitArg::Sentence => Unit::Sentence,
            },
            exact: match self.exact {
                ExactArg::Tokens => twindex_corpus::Exact::Tokens,
                ExactArg::Bytes => twindex_corpus::Exact::Bytes,
            },
            within: self.within,
            keep: self.keep.keep.clone(),
            cut: self.cut,
            mark: self.mark,
            annotation_prefix: self.results.annotation_prefix.clone().unwrap_or_default(),
            compression: self.results.compress,
            html: self.html.clone(),
            against: self.against.clone(),
            only_against: self.only_against,
            index: self.index.clone(),
            text: self.text.settings.clone(),
            memory: self.resources.memory,
        })
    }
}

/// Formats the summary as lines of text.
fn summary(job: &Job, report: &PassageReport) -> Vec<String> {
    let input = &report.input;
    let share = report.repeated_bytes as f64 * 100.0 / input.text_bytes.max(1) as f64;
    let duplicated = report.duplicated as f64 * 100.0 / report.units.max(1) as f64;
    let unit = match job.unit {
        Unit::Words => "word",
        Unit::Line => "line",
        Unit::Paragraph => "paragraph",
        Unit::Sentence => "sentence",
    };
    let units = counted(report.units, unit);
    let mut lines = vec![
        format!(
            "{}, {} of text, in {:.1} s",
            counted(input.documents, "document"),
            report::bytes(input.text_bytes),
            report.seconds
        ),
        format!(
            "  spans      {:>11}  in {}",
            count(report.spans),
            counted(report.repeated_documents, "document")
        ),
        format!("  classes    {:>11}  of equal passages", count(report.classes)),
        format!("  repeated   {:>11}  of text, {share:.1} %", report::bytes(report.repeated_bytes)),
        format!(
            "  duplicated {:>11}  of {units}, {duplicated:.1} %, with first occurrences",
            count(report.duplicated)
        ),
        format!(
            "  whole      {:>11}  documents that have no token outside of them",
            count(report.repeated_whole)
        ),
    ];
    if let (Some(against), Some(known)) = (&job.against, report.spans_of_history) {
        let others = report.spans_left.unwrap_or(report.spans - known);
        let done = if report.spans_left.is_some() { "left" } else { "listed, too" };
        lines.insert(
            2,
            format!(
                "  of these   {:>11}  have their source in {}; {} in these inputs, {done}",
                count(known),
                against.display(),
                counted(others, "other")
            ),
        );
    }
    if let (Some(index), Some(parts)) = (&job.index, report.index_parts) {
        let merged = match report.merged_parts {
            None => String::new(),
            Some(merged) => format!(", {} merged into one", counted(merged, "part")),
        };
        lines.push(format!("  index      {:>11}  parts of {}{merged}", count(parts), index.display()));
    }
    lines.extend(input.remarks().iter().map(|remark| format!("  note: {remark}")));
    let mut files = ["spans.tsv", "classes.tsv", "passages.json"].map(str::to_owned).to_vec();
    files.extend(report.kept_files.iter().chain(&report.marked_files).cloned());
    lines.push(format!("{}: {}", job.out.display(), files.join(", ")));
    lines
}
