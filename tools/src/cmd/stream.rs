//! `twindex stream`: looks up each document and adds it, in input order.

mod deciding;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use twindex::params::{KeyKind, Near};
use twindex::sketch::Sketch;
use twindex::sys::RealVfs;
use twindex::{Decision, Error, GROUP_QUESTIONS, Index, Lookahead, Membership, Params, Writer};
use twindex_corpus::compared;
use twindex_corpus::contents;
use twindex_corpus::input::{Counts, DecidingFields, Documents, InputOptions, inside_of};
use twindex_corpus::settings::Scope;
use twindex_corpus::sketching::{
    DocumentScratch, DocumentSink, SketchOptions, Sketched, for_each_looked_up, for_each_looked_up_streaming,
    refused,
};
use twindex_corpus::stream::AdmitOptions;
use twindex_corpus::text::ExistingParams;
use twindex_corpus::tsv;

use self::deciding::{Outcome, StreamCriteria, StreamDecider, StreamDecision};
use crate::attached_args::AttachedArgs;
use crate::boilerplate_args::BoilerplateArgs;
use crate::differs::{InStream, InsideAlone};
use crate::json_lines::{JsonColumns, JsonLines};
use crate::options::{FingerprintArgs, InputArgs, Output, RepeatedArgs, ResourceArgs, Usage};
use crate::param_args::{DocumentKind, ParamArgs};
use crate::progress::Progress;
use crate::recall;
use crate::report::{self, Costs, Stopwatch, count};
use crate::settings_args::Options;
use crate::terminal;
use crate::verifying::{VerifiedBy, counted};

/// The columns of a line, which are also the fields of the objects printed with `--json`.
const COLUMNS: &str = "key\tdecision\tnear_key\tdistance\tresemblance";
/// The columns of a line if containment is measured.
const COLUMNS_CONTAINED: &str = "key\tdecision\tnear_key\tdistance\tcontainment";
/// Maximum number of documents between two commits.
const BATCH_MAX: usize = 10_000;
/// Maximum size in bytes of the lines between two commits.
const LINES_MAX: usize = 4 << 20;

/// Options of `stream`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex stream pages.twx pages.jsonl\n  \
    crawler | twindex stream pages.twx - --commit-ms 200 --drop-duplicates\n\n\
    Prints a line for each document, in the order of the input: key, `new`, `duplicate`, `known` (a document of this \
    key was there, and is replaced) or `expired` (too old by its stamp, and not added), and the nearest other document, \
    if one is near, their distance, and their resemblance (- where unknown). Distances are exact. Resemblance is counted where the index keeps sets, as a new one \
    does, and then no duplicate is missed; otherwise it is an estimate from signatures, which has to be asked for. \
    Duplicates are added with a mark, unless they are dropped, and only what has no mark is compared with. A mark counts as long as a document without a mark is near. An index that is there says what is near; --near says otherwise for \
    this run. With --near containment:J a document is a duplicate if enough of it is contained in one that is at least as large, and \
    the last column has how much; a larger document that comes later is new, and each earlier one that it contains gets a line \
    with `contained`, the larger one, and how much of it does. A line is printed only when what it says is durable. What comes by a pipe is \
    taken as it comes, and committed at the latest when --commit-ms is over and nothing more has come. The index is made if \
    it is not there.")]
pub(crate) struct StreamArgs {
    /// Directory of the index; created if it does not exist
    index: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    #[command(flatten)]
    repeated: RepeatedArgs,
    /// Maximum time between commits in milliseconds; 0 commits after each document
    #[arg(long, value_name = "MS", default_value = "1000")]
    commit_ms: u64,
    /// Do not add duplicates to the index
    #[arg(long)]
    drop_duplicates: bool,
    /// Add to each line the leader and the current size of the document's group (see `groups`); - for a duplicate that
    /// was dropped, and for a group that would take more than 10,000 lookups
    #[arg(long, conflicts_with = "inside")]
    groups: bool,
    /// How resemblance is verified: by exact counts, with the sets in the index (the default); by the signatures in the
    /// index, an estimate; or not at all, so that every document that shares a band is a duplicate
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifiedBy>,
    #[command(flatten)]
    scope: Options<Scope, InsideAlone>,
    #[command(flatten)]
    attached: AttachedArgs,
    #[command(flatten)]
    boilerplate: BoilerplateArgs,
    #[command(flatten)]
    params: ParamArgs<InStream>,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct StreamReport {
    /// Counts of the inputs. Only `documents` is the number of documents in the index.
    #[serde(flatten)]
    counts: Counts,
    admitted: u64,
    /// The near relation; null if containment is measured instead.
    near: Option<super::stats::NearRelation>,
    /// A document is a duplicate if another document contains at least this share of it; null if containment is not
    /// measured.
    containment: Option<f64>,
    /// How resemblance was verified; null if resemblance was not used.
    verify: Option<VerifiedBy>,
    new: u64,
    duplicates: u64,
    known: u64,
    expired: u64,
    /// Number of pairs in which a later document contains an earlier one; null if containment is not measured.
    contained: Option<u64>,
    empty: u64,
    commits: u64,
    /// Longest wall-clock time that one document took, including its lookup and a commit if one was due.
    longest_pause_seconds: f64,
    #[serde(flatten)]
    costs: Costs,
}

/// Compares documents with the index, adds them, and buffers their lines until they are committed.
struct AdmittedLines<'w, W: Write> {
    writer: &'w mut Writer,
    deciding: StreamDecider<'w>,
    /// Whether lines have columns for the document's group.
    groups: bool,
    every: Duration,
    /// Whether documents are read from standard input.
    stdin: bool,
    since: Instant,
    waiting: Vec<u8>,
    batch: usize,
    out: Option<W>,
    new: u64,
    duplicates: u64,
    known: u64,
    expired: u64,
    contained: u64,
    empty: u64,
    commits: u64,
    longest: Duration,
}

impl<W: Write> AdmittedLines<'_, W> {
    fn commit(&mut self) -> anyhow::Result<()> {
        // `AfterCommit` means that the batch is durable although the writer failed, so its lines are printed.
        let mut stopped = None;
        if self.batch > 0 {
            match self.writer.commit() {
                Ok(_) => {}
                Err(error @ Error::AfterCommit { .. }) => stopped = Some(error),
                Err(error) => return Err(error.into()),
            }
            self.commits += 1;
        }
        if let Some(out) = &mut self.out {
            out.write_all(&self.waiting)
                .and_then(|()| out.flush())
                .context("cannot write to standard output")?;
        }
        self.waiting.clear();
        self.batch = 0;
        self.since = Instant::now();
        stopped.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Prints the line of a document, and one line for each document that it contains.
    fn print(&mut self, key: &[u8], outcome: &Outcome, group: Option<&Membership>) -> io::Result<()> {
        if self.out.is_none() {
            return Ok(());
        }
        let line = &mut self.waiting;
        tsv::write_field(line, key)?;
        line.extend_from_slice(match outcome.fate {
            StreamDecision::New => b"\tnew",
            StreamDecision::Duplicate => b"\tduplicate",
            StreamDecision::Known => b"\tknown",
            StreamDecision::Expired => b"\texpired",
        });
        match &outcome.near {
            None => line.extend_from_slice(b"\t-\t-\t-"),
            Some(near) => {
                line.push(b'\t');
                tsv::write_field(line, near.key.as_bytes().unwrap_or_default())?;
                match near.distance {
                    Some(distance) => write!(line, "\t{distance}")?,
                    None => line.extend_from_slice(b"\t-"),
                }
                match near.share {
                    Some(share) => write!(line, "\t{share:.3}")?,
                    None => line.extend_from_slice(b"\t-"),
                }
            }
        }
        match group {
            _ if !self.groups => {}
            Some(group) => {
                line.push(b'\t');
                tsv::write_key(line, &group.leader)?;
                write!(line, "\t{}", group.size)?;
            }
            None => line.extend_from_slice(b"\t-\t-"),
        }
        line.push(b'\n');
        for (earlier, share) in &outcome.contained {
            tsv::write_key(line, earlier)?;
            line.extend_from_slice(b"\tcontained\t");
            tsv::write_field(line, key)?;
            writeln!(line, "\t-\t{share:.3}")?;
        }
        Ok(())
    }
}

/// Returns whether standard input becomes readable, or ends, within this time.
#[cfg(unix)]
fn has_more(within: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let within = Timespec::try_from(within).ok();
    !matches!(poll(&mut fds, within.as_ref()), Ok(0))
}

/// Returns false, because this system cannot detect waiting input. So documents are committed before each read.
#[cfg(not(unix))]
fn has_more(_within: Duration) -> bool {
    false
}

impl<W: Write> DocumentSink<Lookahead> for AdmittedLines<'_, W> {
    fn take(&mut self, one: &Sketched, ahead: Lookahead) -> anyhow::Result<()> {
        let start = Instant::now();
        let (outcome, group) = if let Some(outcome) = self.deciding.admit(self.writer, one)? {
            (outcome, None)
        } else {
            let (key, document) = (one.key.as_slice(), self.deciding.document(one));
            let admitted = if self.groups {
                self.writer.admit_grouped(key, document, GROUP_QUESTIONS)
            } else {
                self.writer.admit_ahead(key, document, &ahead).map(|admitted| (admitted, None))
            };
            let (admitted, group) =
                admitted.map_err(|error| refused(&one.place, "cannot admit the document", error))?;
            (Outcome::from(admitted), group)
        };
        match outcome.fate {
            StreamDecision::Duplicate => self.duplicates += 1,
            StreamDecision::Known => self.known += 1,
            StreamDecision::Expired => self.expired += 1,
            StreamDecision::New => self.new += 1,
        }
        self.contained += outcome.contained.len() as u64;
        self.empty += u64::from(one.sketch.is_empty() && one.code.is_none());
        self.print(&one.key, &outcome, group.and_then(Decision::decided).as_ref())?;
        self.batch += 1;
        if self.since.elapsed() >= self.every || self.batch >= BATCH_MAX || self.waiting.len() >= LINES_MAX {
            self.commit()?;
        }
        self.longest = self.longest.max(start.elapsed());
        Ok(())
    }

    fn wait(&mut self) -> anyhow::Result<()> {
        let left = self.every.saturating_sub(self.since.elapsed());
        // Only standard input is polled. Before a wait for another pipe, documents are committed.
        if self.batch > 0 && !(self.stdin && has_more(left)) {
            self.commit()?;
        }
        Ok(())
    }
}

/// Returns the writer of lines to standard output, as text or as JSON.
fn lines_out(
    is_json: bool,
    columns: &'static str,
    has_numbers_as_keys: bool,
) -> anyhow::Result<Box<dyn Write>> {
    if is_json {
        let out = BufWriter::new(terminal::stdout());
        return Ok(Box::new(JsonLines::new(out, JsonColumns::of(columns, has_numbers_as_keys), None)));
    }
    Ok(Box::new(BufWriter::new(terminal::stdout_of_table(columns)?)))
}

impl StreamArgs {
    /// Returns the options for reading documents.
    fn options(&self) -> anyhow::Result<InputOptions> {
        self.params.check_features(self.input.reads_features())?;
        self.params.check_fingerprints(self.fingerprint.are_read())?;
        let options = self.input.options_with(&self.fingerprint)?;
        let mut attached = self.attached.fields();
        if self.scope.inside.is_some() && attached.value.is_some() {
            let why = "--inside and --value-field both say what the index keeps as the value of a document; leave one out";
            return Err(Usage::new(why).into());
        }
        let (inside, inside_url) = inside_of(self.scope.inside.as_deref());
        attached.deciding = DecidingFields { inside, inside_url, ..attached.deciding };
        Ok(InputOptions { streaming: true, attached, ..options })
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let watch = Stopwatch::start();
        if self.input.inputs.is_empty() {
            return Err(Usage::new("nothing to admit: name INPUT files, or - for standard input").into());
        }
        let mut documents = Documents::open(&self.input.inputs, &self.options()?)?;
        // Reading a pipe may block, so its documents are admitted before more input is read.
        let piped = documents.total_bytes().is_none();
        let (index, (near, verify)) = self.open(&mut documents)?;
        let sketcher = self.boilerplate.sketcher(&index)?;
        let deciding = StreamDecider::of(&index, &self.index, self.asked(near, verify)?, &self.attached)?;
        let containment = deciding.containment();
        // Two memtables of up to three times their size, and the segment that is made of one of them, are in memory.
        let memory = if containment.is_some() { self.work.memory / 16 } else { self.work.memory / 8 };
        let options =
            self.attached.writer_options().memory(memory).drop_duplicates(self.drop_duplicates).near(near);
        let options = options.unverified(verify == Some(VerifiedBy::None));
        let options = options.estimated(verify == Some(VerifiedBy::Signature));
        let mut writer = index.writer_with(options).with_context(|| self.index.display().to_string())?;
        // A progress bar on the terminal would be mixed with the lines.
        let lines = !self.output.json && io::stdout().is_terminal();
        let progress = Progress::bytes(documents.total_bytes(), "admitting", self.output.quiet || lines);
        let columns = if containment.is_some() { COLUMNS_CONTAINED } else { COLUMNS };
        let mut admitting = AdmittedLines {
            writer: &mut writer,
            deciding,
            groups: self.groups,
            every: Duration::from_millis(self.commit_ms),
            stdin: self.input.inputs.iter().any(|input| input.as_os_str() == "-"),
            since: Instant::now(),
            waiting: Vec::new(),
            batch: 0,
            out: Some(lines_out(self.output.json, columns, index.params().key == KeyKind::U64)?),
            new: 0,
            duplicates: 0,
            known: 0,
            expired: 0,
            contained: 0,
            empty: 0,
            commits: 0,
            longest: Duration::ZERO,
        };
        let wide = index.params().codes.is_some();
        let wanted = SketchOptions { wide, ..self.repeated.wanted(self.work.memory / 4) };
        let is_looked_up = !self.groups && !wide && admitting.deciding.is_by_writer();
        // If a lookup fails, `admit` repeats it and reports the error.
        let look = |sketch: &Sketch| {
            let found = is_looked_up.then(|| Lookahead::new(&index.snapshot(), sketch, options));
            found.and_then(Result::ok).unwrap_or_default()
        };
        let streamed = if piped {
            for_each_looked_up_streaming(&mut documents, &sketcher, &wanted, &progress, look, &mut admitting)
        } else {
            let each = |one: &Sketched, ahead, _: &[u64]| admitting.take(one, ahead);
            let look = |sketch: &Sketch, _: DocumentScratch<'_>| Ok(look(sketch));
            for_each_looked_up(&mut documents, &sketcher, &wanted, &progress, look, each)
        };
        // Commits the documents that were added before a bad record, and prints their lines.
        let last = admitting.commit();
        let AdmittedLines {
            new, duplicates, known, expired, contained, empty, commits, longest, out, ..
        } = admitting;
        drop(out);
        drop(progress);
        streamed?; // the error of `streamed` is the cause, so it is returned before the error of `last`
        last?;
        writer.wait_for_merge()?;
        drop(writer);
        let counts = documents.counts().clone();
        let remarks = counts.remarks().into_iter().chain(report::empty_remark(empty, &counts));
        let report = StreamReport {
            admitted: counts.documents,
            near: containment.is_none().then(|| near.into()),
            containment,
            verify,
            counts: Counts { documents: index.snapshot().documents(), ..counts },
            new,
            duplicates,
            known,
            expired,
            contained: containment.is_some().then_some(contained),
            empty,
            commits,
            longest_pause_seconds: longest.as_secs_f64(),
            costs: Costs::since(watch),
        };
        if self.output.json {
            report::print_json(&report)?;
        } else if !self.output.quiet {
            self.note(&report, &by(near, verify));
            if !self.drop_duplicates && !index.params().marks {
                report::note(
                    "this index keeps no marks: duplicates that were added decide what comes later, too",
                );
            }
            for remark in remarks {
                report::note(&remark);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a summary. `by` describes the near relation if containment is not measured.
    fn note(&self, report: &StreamReport, by: &str) {
        report::note(&format!(
            "{}: {} new, {} duplicate, {} known; {} in the index, {}, {:.1} s",
            self.index.display(),
            count(report.new),
            count(report.duplicates),
            count(report.known),
            count(report.counts.documents),
            report::counted(report.commits, "commit"),
            report.costs.seconds
        ));
        match (report.containment, report.contained) {
            (Some(share), Some(contained)) => report::note(&format!(
                "duplicates by {share} or more of a document in one at least as large, counted; {} contained in later ones",
                report::counted(contained, "earlier document")
            )),
            _ => report::note(by),
        }
        if report.expired > 0 {
            let expired = report::counted(report.expired, "document");
            report::note(&format!("{expired} too old by the stamp when they came, and not added"));
        }
    }

    /// Returns the criteria for deciding whether a document is a duplicate.
    fn asked(&self, near: Near, verify: Option<VerifiedBy>) -> anyhow::Result<StreamCriteria> {
        let options = AdmitOptions {
            containment: self.params.containment()?,
            inside: self.scope.inside.is_some(),
            drop_duplicates: self.drop_duplicates,
            memory: self.work.memory / 2,
        };
        let counts_sets = verify.is_none_or(|verify| verify == VerifiedBy::Exact) && near.within.is_none();
        Ok(StreamCriteria { options, counts_sets, groups: self.groups })
    }

    /// Returns the near relation of this run, and the method that verifies resemblance. Returns an error if the index does
    /// not support it.
    fn near(&self, params: &Params) -> anyhow::Result<(Near, Option<VerifiedBy>)> {
        let path = self.index.display();
        let named = self.params.near()?;
        let mut near = named.unwrap_or_else(|| params.near());
        if named.is_none() && self.scope.inside.is_some() {
            near.within = None; // --inside does not support a distance, so the distance of the index is ignored
        }
        if self.params.containment()?.is_some() {
            // Containment does not need the index's MinHash data.
            return Ok((near, Some(self.verify.unwrap_or(VerifiedBy::Exact))));
        }
        if near.threshold.is_some() && params.minhash.is_none() {
            anyhow::bail!(
                "{path}: this index keeps no MinHash, so --near J cannot be answered; leave it out"
            );
        }
        let verify = counted(&self.index, params, near, self.verify)?;
        if let (Some(VerifiedBy::Signature), Some(threshold)) = (verify, near.threshold)
            && !self.output.quiet
        {
            recall::note(&self.index, params, threshold.value(), &format!("that resemble by {threshold}"));
        }
        Ok((near, verify))
    }

    /// Opens an existing index after checking that the documents match its parameters, or creates a new one. Also
    /// returns the near relation and the method that verifies resemblance.
    fn open(&self, documents: &mut Documents) -> anyhow::Result<(Index, (Near, Option<VerifiedBy>))> {
        let features = self.input.reads_features();
        match Index::open(&self.index) {
            Ok(index) => {
                let params = index.params();
                self.params.check_kept(&ExistingParams::index(&self.index, &params))?;
                self.attached.check(&self.index, &params, true)?;
                if let Some(table) = self.params.table(features)? {
                    table.check(&params.sketch()).with_context(|| {
                        format!("{}: --idf is not the table of this index", self.index.display())
                    })?;
                }
                if self.fingerprint.are_read() {
                    contents::check_fingerprints(&self.index, &params)?;
                } else {
                    contents::check(&self.index, &params.shingling, features)?;
                }
                compared::check(&self.index, self.scope.inside.as_deref())?;
                let near = self.near(&params)?;
                Ok((index, near))
            }
            Err(Error::NotAnIndex { .. }) if !self.index.exists() => {
                let table = self.params.table(features)?;
                let brought = if self.fingerprint.are_read() {
                    self.params.kind_of_fingerprints(documents.fingerprint_bits())?
                } else {
                    DocumentKind::documents(features)
                };
                let mut params = self.params.params(brought, table.as_ref())?;
                self.attached.apply(&mut params)?;
                // Marks record which documents are duplicates: later documents are compared only with documents that
                // are not marked, as long as one of these is near.
                params.marks = true;
                params.values |= self.scope.inside.is_some();
                let list = self.boilerplate.apply(&mut params)?;
                let near = self.near(&params)?;
                let index = Index::create_from(Arc::new(RealVfs), &self.index, params, table.as_ref())?;
                BoilerplateArgs::keep(list.as_deref(), &self.index)?;
                if let Some(field) = &self.scope.inside {
                    compared::record(&self.index, field)?;
                }
                Ok((index, near))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Describes the near relation for the summary.
fn by(near: Near, verify: Option<VerifiedBy>) -> String {
    let relation = match (verify, near.within) {
        (Some(VerifiedBy::None), Some(within)) => {
            format!("a band in common, whatever the resemblance, or {}", Near::within(within))
        }
        (Some(VerifiedBy::None), None) => "a band in common, whatever the resemblance".to_owned(),
        (Some(VerifiedBy::Signature), _) => format!("{near}; a resemblance is an estimate"),
        (Some(VerifiedBy::Exact), _) => format!("{near}; a resemblance is counted"),
        (None, _) => near.to_string(),
    };
    format!("duplicates by {relation}")
}
