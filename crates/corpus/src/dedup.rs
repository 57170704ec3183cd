//! Deduplicates a collection: reads documents; writes pairs, clusters, the kept documents and a page about the run.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. A document whose
//!    text is equal, byte for byte, to the text of an earlier document joins its group; equal hashes are confirmed by
//!    comparing the texts.
//! 2. *decide*: a document is removed if and only if an earlier document that is kept is near it. Each document is
//!    compared only with kept ones ([`twindex_join::keep`]); distances of fingerprints are looked up in an index of all
//!    documents.
//! 3. *write*: writes the results and, on request, an index of the kept documents, `OUT/index`.
//!
//! All output is written to a temporary folder next to OUT. At the end, this folder is renamed to OUT. With
//! [`Results::resume`](crate::Results::resume), the temporary folder is inside a journal folder, from which the next
//! run continues if this run is killed.
//!
//! The settings of the job are in `settings/job.rs`.
//! [`DedupTexts`](crate::DedupTexts) applies the same rule to texts in memory and writes no results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use twindex::sketch::IdfTable;
use twindex::{Index, Params, Sketcher};

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::journal::folder::{Journal, check_none, folder_of};
use crate::journal::manifest::JobDescription;
use crate::passages::boilerplate::count::digest;
use crate::results::folder::OutputFolder;
use crate::results::index::Indexed;
use crate::results::layout;
use crate::results::report::Report;
use crate::results::run_file::RunFile;
use crate::results::write::write_results;
use crate::results::written::Written;
use crate::rule::against::EarlierResults;
use crate::rule::decide::decide;
use crate::rule::left_out::Spans;
use crate::rule::near::JoinLimits;
use crate::settings::job::Dedup;
use crate::sketching::documents::elements_max;
use crate::sketching::idf;
use crate::stored::read::{self, JobFolder};
use crate::work::lost;
use crate::work::observer::Observer;
use crate::work::own_folder::{self, OwnFolder};
use crate::work::watch::{Stages, Stopwatch};

impl Dedup {
    /// Runs the job in the current rayon thread pool and writes the results to `out`. A run that fails leaves an
    /// earlier `out` unchanged and no results, except the journal of
    /// [`Results::resume`](crate::settings::results::Results::resume).
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions), I/O errors and errors of `twindex`. If an input cannot be
    /// read, the message has file, line and reason. With
    /// [`Results::resume`](crate::settings::results::Results::resume), a journal that is damaged or belongs to a run
    /// with other options or inputs is also an error; the message names the difference.
    pub fn run(&self) -> anyhow::Result<Report> {
        self.run_watched(&())
    }

    /// Runs the job as [`run`](Self::run) does, and reports progress and notes to `observer`.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub fn run_watched(&self, observer: &dyn Observer) -> anyhow::Result<Report> {
        self.check()?;
        let out = OutputFolder::resolve(&self.results.out)?;
        out.check_inputs(self)?;
        if !self.results.resume {
            out.check(self.results.force)?;
        }
        own_folder::sweep(out.parent(), observer);
        let features = self.reading.features_field.is_some();
        let table =
            self.scope.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()?;
        let table = table.map(Arc::new);
        let mut params = self.params(table.as_deref())?;
        let mut documents = read::open(self, &params)?;
        out.check_files(&documents)?;
        if let Some(bits) = bits_of_fingerprints(self, &mut documents)
            && let Some(of_codes) = self.params_of_codes(bits)?
        {
            params = of_codes;
        }
        let mut spans = Spans::open(self, &documents, &params, &out, observer)?;
        if let Some(spans) = &spans {
            params.shingling.boilerplate = Some(digest(&spans.list));
        }
        if let Some(table) = &table {
            // If the run has a boilerplate list, this check also accepts an IDF table that was built without a list.
            table
                .check_shingling(&params.shingling)
                .map_err(|error| InvalidOptions::new(error.to_string()))?;
        }
        let past = EarlierResults::open(self, &params, observer)?;
        self.note_equality(&params, observer);
        self.note_weights(observer);
        if self.results.resume {
            let read = (documents, &past, (table.as_ref(), spans.as_mut()));
            return run_resumed(self, &out, &params, read, observer);
        }
        check_none(out.path(), self.results.force)?;
        let made = out.make_parents()?;
        let folder = OwnFolder::make(out.parent())?;
        let half_done = observer.half_done(folder.path());

        let place = JobFolder { folder: folder.path(), journal: None, observer };
        let leaving = (table.as_ref(), spans.as_mut());
        let report = work(self, &params, documents, &past, leaving, &place)?;
        drop(half_done);
        lost::check()?;
        out.put_in_place(folder.path(), self.results.force)?;
        let _ = folder.keep(); // the folder was renamed, so drop must not remove it
        made.sync()?;
        Ok(report)
    }
}

/// Continues a stopped run or, if there is none, starts a run with a journal.
fn run_resumed(
    job: &Dedup,
    out: &OutputFolder<'_>,
    params: &Params,
    (documents, past, lists): (Documents, &EarlierResults, WeightsAndSpans<'_>),
    observer: &dyn Observer,
) -> anyhow::Result<Report> {
    let asked = JobDescription::of(job, params, &documents)?;
    if !folder_of(out.path()).exists() {
        out.check(job.results.force)?;
    }
    let made = out.make_parents()?;
    let journal = Journal::open(out.path(), &asked, job.resources.memory, observer)?;
    drop(asked);
    // The stopped run may already have renamed its results to OUT. This run replaces them with the same results.
    let force = job.results.force || journal.is_published(out.path())?;
    out.check(force)?;
    let folder = journal.results()?;

    let place = JobFolder { folder: &folder, journal: Some(&journal), observer };
    let report = work(job, params, documents, past, lists, &place)?;
    lost::check()?;
    journal.publish(&folder)?;
    out.put_in_place(&folder, force)?;
    made.sync()?;
    journal.end()?;
    Ok(report)
}

/// Reads the documents, decides which are kept, and writes the results to the folder of `place`.
fn work(
    job: &Dedup,
    params: &Params,
    mut documents: Documents,
    past: &EarlierResults,
    (table, mut spans): WeightsAndSpans<'_>,
    place: &JobFolder<'_>,
) -> anyhow::Result<Report> {
    // If this run built the boilerplate list, the total time includes the time for the list.
    let whole = spans.as_ref().and_then(|spans| spans.started()).unwrap_or_else(Stopwatch::start);
    let mut stages = Stages::default();

    let sketcher = sketcher(job, params, (table, spans.as_deref_mut()), place.folder, &mut stages)?;
    let left_out = spans.map(|spans| spans.report());
    let read = read::read(job, params, &mut documents, past, (&sketcher, left_out), place, &mut stages)?;

    let &JobFolder { folder, journal, .. } = place;
    let limits = JoinLimits { folder, journal, memory: job.resources.memory / 2, watched: None };
    let sketches = read.sketches.as_ref();
    let is_indexed = sketches.is_some() || (params.codes.is_some() && job.writes_index());
    let indexed = is_indexed.then_some(Indexed { params, table, sketches });
    let mut decision = decide(job, indexed.as_ref(), &read.corpus, &limits, &mut stages)?;

    let found = (&mut decision, past);
    let about = (params, documents.counts());
    let written = write_results(job, about, indexed.as_ref(), &read.corpus, found, &limits, &mut stages)?;
    let mut run = RunFile::of(job, params, read.corpus.has_pages())?;
    run.written = Some(Written::of(folder, decision.clusters.count, &written.digests)?);
    run.write(folder)?;
    let report = Report::of(job, about, &read, &decision, written, past, (whole, stages));
    if journal.is_none() {
        rayon::spawn(move || drop(read)); // freeing millions of small pieces of memory takes long
    }
    Ok(report)
}

/// Returns the number of bits of the fingerprints: of the first one of the inputs or, if the first records have none, of
/// those of an index that is searched; `None` if documents are not fingerprints, or if neither has any.
fn bits_of_fingerprints(job: &Dedup, documents: &mut Documents) -> Option<usize> {
    if !job.brings_fingerprints() || job.brings_codes_alone() {
        return None;
    }
    let of_index = |path: &PathBuf| {
        let index = Index::open(path.join(layout::INDEX)).or_else(|_| Index::open(path)).ok()?;
        index.params().codes.map(|codes| usize::from(codes.bits))
    };
    documents.fingerprint_bits().or_else(|| job.scope.against.iter().find_map(of_index))
}

/// Creates the sketcher of a run, and copies the boilerplate list of the run to the results.
fn sketcher(
    job: &Dedup,
    params: &Params,
    (table, spans): WeightsAndSpans<'_>,
    folder: &Path,
    stages: &mut Stages,
) -> anyhow::Result<Sketcher> {
    // Documents without words are compared by their sets, even if the run's index stores no sets.
    // Given codes are sketched as fingerprints of 64 bits, so that only a record without fingerprint has an empty sketch.
    let mut params = if params.given_codes().is_some() { job.params(None)? } else { params.clone() };
    params.sets |= job.holds_sets();
    let sketcher = match (table, spans) {
        (None, None) => Sketcher::new(&params)?,
        (Some(table), None) => Sketcher::with_idf(&params, Arc::clone(table))?,
        (table, Some(spans)) => {
            spans.note(stages);
            spans.put(folder)?;
            spans.sketcher(&params, table)?
        }
    };
    // The corpus computes the sets of documents with words, so the sketcher computes sets of documents without words
    // only.
    Ok(sketcher.with_sets_of_wordless_only().with_elements_max(elements_max(job.resources.memory)))
}

/// The IDF table that gives the weights of shingles, and the list of boilerplate spans that comparisons ignore.
type WeightsAndSpans<'l> = (Option<&'l Arc<IdfTable>>, Option<&'l mut Spans>);
