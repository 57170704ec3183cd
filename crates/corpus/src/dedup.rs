//! Deduplicates a collection: reads documents; writes pairs, clusters, the kept documents and their index.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. A document whose
//!    text is equal, byte for byte, to the text of an earlier document joins its group; equal hashes are confirmed by
//!    comparing the texts.
//! 2. *decide*: a document is removed if and only if an earlier document that is kept is near it. Each document is
//!    compared only with kept ones ([`twindex_join::keep`]); distances of fingerprints are looked up in an index of all
//!    documents.
//! 3. *write*: writes the results, and an index of the kept documents, `OUT/index`, unless it is not wanted.
//!
//! All output is written to a temporary folder next to OUT, which is renamed to OUT at the end. With
//! [`Results::resume`], that folder is inside a `journal`, from which the run can be continued after it was killed.
//! [`DedupTexts`] applies the same rule to texts in memory and writes no results.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use twindex::sketch::IdfTable;
use twindex::{Params, Sketch, Sketcher};
use twindex_join::ReferenceSets;

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::input::options::InputOptions;
use crate::journal::folder::{Journal, check_none, folder_of};
use crate::journal::manifest::JobDescription;
use crate::journal::resume::{JournaledChunks, words_taker};
use crate::passages::boilerplate::count::digest;
use crate::results::folder::{self, OutputFolder};
use crate::results::index::Indexed;
use crate::results::report::Report;
use crate::results::run_file::RunFile;
use crate::results::write::SearchOutcome;
use crate::results::written::Written;
use crate::rule::against::{ComparedIndex, EarlierResults, History};
use crate::rule::left_out::{LeftOutReport, Spans};
use crate::rule::near::JoinLimits;
use crate::rule::repeated::{EarlierKeys, OTHERS, RepeatedKeys};
use crate::settings::job::Dedup;
use crate::settings::results::Also;
use crate::sketching::documents::{DocumentScratch, SketchOptions, elements_max, for_each_remembered};
use crate::sketching::idf;
use crate::stored::corpus::Corpus;
use crate::stored::groups::{Anchors, NewSet, SetHeader};
use crate::stored::inside::shingles_inside;
use crate::stored::sketches::Sketches;
use crate::work::observer::Observer;
use crate::work::watch::{self, Stages, Stopwatch};

impl Dedup {
    /// Runs the job in the current rayon thread pool and writes the results to `out`. If it fails, it leaves no results
    /// except the journal of [`Results::resume`], and an earlier `out` is unchanged.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions); inputs that cannot be read, with file, line and reason; I/O errors
    /// and errors of `twindex`. With [`Results::resume`], also a journal that is damaged, or that belongs to a run
    /// with other options or inputs; the message names the difference.
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
        let features = self.reading.features_field.is_some();
        let table =
            self.scope.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()?;
        let table = table.map(Arc::new);
        let mut params = self.params(table.as_deref())?;
        let documents = self.open(&params)?;
        out.check_files(&documents)?;
        let mut spans = self.spans(&documents, &params, &out, observer)?;
        if let Some(spans) = &spans {
            params.shingling.boilerplate = Some(digest(&spans.list));
        }
        if let Some(table) = &table {
            // A table that was built without ignoring boilerplate is also valid with a list.
            table
                .check_shingling(&params.shingling)
                .map_err(|error| InvalidOptions::new(error.to_string()))?;
        }
        let past = self.past(&params, observer)?;
        self.note_equality(&params, observer);
        self.note_weights(observer);
        if self.results.resume {
            let read = (documents, &past, (table.as_ref(), spans.as_mut()));
            return self.run_resumed(&out, &params, read, observer);
        }
        check_none(out.path(), self.results.force)?;
        let made = out.make_parents()?;
        let folder = folder::temporary_folder(out.parent())?;
        let half_done = observer.half_done(folder.path());

        let place = JobFolder { folder: folder.path(), journal: None, observer };
        let leaving = (table.as_ref(), spans.as_mut());
        let report = self.work(&params, documents, &past, leaving, place)?;
        drop(half_done);
        crate::work::lost::check()?;
        out.put_in_place(folder.path(), self.results.force)?;
        let _ = folder.keep(); // it was renamed, so drop must not remove it
        made.sync()?;
        Ok(report)
    }

    /// Continues a stopped run or, if there is none, starts a run with a journal.
    fn run_resumed(
        &self,
        out: &OutputFolder<'_>,
        params: &Params,
        (documents, past, lists): (Documents, &EarlierResults, WeightsAndSpans<'_>),
        observer: &dyn Observer,
    ) -> anyhow::Result<Report> {
        let asked = JobDescription::of(self.deciding_options(params), &documents, &self.other_files())?;
        if !folder_of(out.path()).exists() {
            out.check(self.results.force)?;
        }
        let made = out.make_parents()?;
        let journal = Journal::open(out.path(), &asked, self.resources.memory, observer)?;
        drop(asked);
        // The stopped run may already have published its results. This run replaces them with the same results.
        let force = self.results.force || journal.is_published(out.path())?;
        out.check(force)?;
        let folder = journal.results()?;

        let place = JobFolder { folder: &folder, journal: Some(&journal), observer };
        let report = self.work(params, documents, past, lists, place)?;
        crate::work::lost::check()?;
        journal.publish(&folder)?;
        out.put_in_place(&folder, force)?;
        made.sync()?;
        journal.end()?;
        Ok(report)
    }

    fn work(
        &self,
        params: &Params,
        mut documents: Documents,
        past: &EarlierResults,
        (table, mut spans): WeightsAndSpans<'_>,
        JobFolder { folder, journal, observer }: JobFolder<'_>,
    ) -> anyhow::Result<Report> {
        // The list of boilerplate spans is built before, by two passes over the documents.
        let whole = spans.as_ref().and_then(|spans| spans.started()).unwrap_or_else(Stopwatch::start);
        let mut stages = Stages::default();

        let watch = Stopwatch::start();
        let EarlierResults { history, indexes: against, used, .. } = past;
        // Documents without words are compared by their sets, even if the index of this run stores none.
        let mut sketched = params.clone();
        sketched.sets |= self.holds_sets();
        let sketcher = match (table, &mut spans) {
            (None, None) => Sketcher::new(&sketched)?,
            (Some(table), None) => Sketcher::with_idf(&sketched, Arc::clone(table))?,
            (table, Some(spans)) => {
                spans.note(&mut stages);
                spans.put(folder)?;
                spans.sketcher(&sketched, table)?
            }
        };
        let mut left_out = spans.map(|spans| spans.report());
        // The corpus stores the sets of documents with words; the sketcher only needs the sets of documents without words.
        let sketcher = sketcher.with_sets_of_wordless_only();
        let sketcher = sketcher.with_elements_max(elements_max(self.resources.memory));
        // Sketches are stored only for an index, of the results or for the search.
        let is_indexed = self.writes_index() || self.searches_index();
        let mut sketches = is_indexed.then(|| Sketches::new(folder, params)).transpose()?;
        let mut corpus = self.corpus((folder, journal), &documents)?;
        let mut earlier = past.keys(&corpus.grouped.budget)?;
        if let Some(history) = history {
            let with = (&sketcher, journal, &mut earlier);
            let read = self.read_history(history, &documents, with, &mut corpus, observer);
            read.map_err(|error| self.with_memory_advice(error))?;
            documents.parser().headers().begin();
        }
        let earlier = (!earlier.is_empty()).then(|| Arc::new(earlier));
        let with = (&sketcher, (&against[..], earlier), journal);
        let noted = (sketches.as_mut(), left_out.as_mut());
        let read = self.read(&mut documents, with, noted, &mut corpus, observer);
        let (empty, exact) = read.map_err(|error| self.with_memory_advice(error))?;
        let sketched = sketches.map(Sketches::finish).transpose()?;
        corpus.end(!self.is_by_sets());
        let (read, exact) = (watch.cpu_seconds(), exact.as_secs_f64());
        stages.insert("sketch", (read - exact).max(0.0));
        stages.insert("exact", exact.min(read));
        stages.add("read", watch);

        let limits =
            JoinLimits { folder, journal, observer, memory: self.resources.memory / 2, watched: None };
        let indexed = sketched.as_ref().map(|sketches| Indexed { params, table, sketches });
        let SearchOutcome {
            near,
            clusters,
            contained,
            hosts,
            revisits,
            pairs,
            kept_files,
            annotated_files,
            digests,
        } = self.find(indexed.as_ref(), &corpus, against, &limits, &mut stages)?;
        let written = Written::of(folder, clusters.count, &digests)?;
        let mut run = RunFile::of(self, params, corpus.has_pages())?;
        run.written = Some(written);
        run.write(folder)?;

        let input = documents.counts().clone();
        let report = Report {
            boilerplate: left_out,
            empty,
            identical: clusters.identical(&corpus),
            dropped: (!self.scope.against.is_empty())
                .then(|| corpus.dropped.len() as u64 + clusters.dropped(&corpus.grouped)),
            contained,
            candidates: near.candidates,
            counted: near.counted,
            pairs,
            hosts,
            revisits_written: revisits,
            clusters: clusters.of_several(),
            largest_cluster: u64::from(clusters.largest),
            inside_values: self.scope.inside.is_some().then(|| corpus.grouped.values.len() as u64),
            removed: input.documents - clusters.count,
            kept: clusters.count,
            kept_files,
            annotated_files,
            histories: used.clone(),
            cluster_sizes: clusters.distribution(),
            lowest_resemblance: clusters.lowest.map(|(_, _, resemblance)| resemblance),
            lowest_pair: clusters.lowest_keys(&corpus),
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: watch::peak_rss_bytes(),
            stages,
        };
        Ok(report)
    }

    /// Reads the documents of the history into the corpus, and adds their keys to `earlier`.
    fn read_history(
        &self,
        history: &History,
        documents: &Documents,
        (sketcher, journal, earlier): (&Sketcher, Option<&Journal<'_>>, &mut EarlierKeys),
        corpus: &mut Corpus,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        // Named texts get the keys that they had when they were indexed; keys in results folders are used unchanged.
        let repeated_keys =
            if self.scope.texts.is_empty() { RepeatedKeys::Any } else { self.scope.repeated_keys.or_any() };
        let budget = Some(corpus.grouped.budget.clone());
        let wanted = SketchOptions { repeated_keys, budget, ..self.wanted(!self.holds_sets()) };
        let leaders = self.holds_sets().then(|| corpus.grouped.sets.references());
        let look = |sketch: &Sketch, rest: DocumentScratch<'_>| {
            Ok((None, leaders.as_ref().map(|leaders| encode(leaders, sketch, rest))))
        };
        let mut found = Vec::new();
        let corpus = &RefCell::new(corpus);
        let open = |journal| JournaledChunks::open(journal, "history", corpus, self.holds_sets());
        let taking = |journal| words_taker(journal, elements_max(self.resources.memory));
        let (mut kept, taker) = (journal.map(open).transpose()?, journal.map(taking).transpose()?);
        for (part, texts) in history.texts.iter().enumerate() {
            let lists_keys = texts.lists_keys(history);
            let mut options = InputOptions { format: texts.format, ..self.input_options()? };
            texts.set_fields(&mut options);
            options.attached.deciding.is_history = true;
            // Kept documents of an earlier run may have fields with the names of added fields.
            options.reserved.clear();
            let mut documents = documents.open_second(&texts.files, &options)?;
            corpus.borrow_mut().begin_history(documents.parser().clone());
            let progress = observer.begin("reading the history", documents.total_bytes());
            // Sketches of the history are not indexed.
            let cache = kept.as_mut().zip(taker.as_deref()).map(|(kept, taker)| kept.cache(taker, true));
            for_each_remembered(
                &mut documents,
                sketcher,
                &wanted,
                &*progress,
                cache,
                look,
                |one, (_, header), words| {
                    if !history.has(&one.key, &mut found)? {
                        return Ok(false);
                    }
                    if lists_keys {
                        earlier.add(&one.key, part, &corpus.borrow().grouped.budget)?;
                    }
                    corpus.borrow_mut().add_history(one, NewSet::of(header, words))
                },
            )?;
        }
        kept.map_or(Ok(()), JournaledChunks::finish)?;
        history.check(&found)
    }

    /// Reads all documents into the corpus, and stores their sketches. Returns the number of documents without words,
    /// and the time spent on finding equal texts.
    fn read(
        &self,
        documents: &mut Documents,
        (sketcher, (against, earlier), journal): (&Sketcher, Histories<'_>, Option<&Journal<'_>>),
        (mut sketches, mut left_out): (Option<&mut Sketches>, Option<&mut LeftOutReport>),
        corpus: &mut Corpus,
        observer: &dyn Observer,
    ) -> anyhow::Result<(u64, Duration)> {
        let progress = observer.begin("reading", documents.total_bytes());
        let (mut empty, mut finding_copies) = (0, Duration::ZERO);
        let shingles = self.near().within().is_none();
        // The size of a stored set is the number of distinct shingles. If sets are not stored, the shingles must be counted.
        let wanted = SketchOptions {
            repeated_keys: match self.scope.repeated_keys {
                RepeatedKeys::Error => RepeatedKeys::Any, // the corpus reports the position of the first one
                other => other,
            },
            budget: Some(corpus.grouped.budget.clone()),
            earlier: earlier.clone(),
            ..self.wanted(shingles && !self.holds_sets())
        };
        let leaders = self.holds_sets().then(|| corpus.grouped.sets.references());
        let look = |sketch: &Sketch, mut rest: DocumentScratch<'_>| {
            let near = ComparedIndex::near_any(against, sketch, &mut rest)?;
            // A document that is removed because of an index is not compared again.
            let header = leaders.as_ref().filter(|_| near.is_none());
            let header = header.map(|leaders| encode(leaders, sketch, rest));
            Ok((near, header))
        };
        let corpus = &RefCell::new(corpus);
        let open = |journal| JournaledChunks::open(journal, "reading", corpus, self.holds_sets());
        let taking = |journal| words_taker(journal, elements_max(self.resources.memory));
        let (mut kept, taker) = (journal.map(open).transpose()?, journal.map(taking).transpose()?);
        let is_short = sketches.is_none();
        let cache = kept.as_mut().zip(taker.as_deref()).map(|(kept, taker)| kept.cache(taker, is_short));
        for_each_remembered(
            documents,
            sketcher,
            &wanted,
            &*progress,
            cache,
            look,
            |one, (near, header), words| {
                let mut corpus = corpus.borrow_mut();
                if self.scope.repeated_keys == RepeatedKeys::Error
                    && let Some(history) =
                        earlier.as_ref().map(|earlier| earlier.find(&one.key)).transpose()?.flatten()
                {
                    let key = String::from_utf8_lossy(&one.key);
                    bail!(
                        "{}: the key `{}` is already in {history}; {OTHERS}",
                        one.place,
                        key.escape_debug()
                    );
                }
                empty += u64::from(one.sketch.is_empty() && !one.is_opaque);
                if let Some(left_out) = &mut left_out {
                    left_out.add(one);
                }
                if let Some(near) = near {
                    return corpus.drop_near(one, &near).map(|()| false);
                }
                // Measures wall-clock time: reading the CPU clock is a system call and would take longer than the
                // measured work.
                let start = Instant::now();
                let is_new = corpus.add(one, NewSet::of(header, words))?;
                finding_copies += start.elapsed();
                if let Some(sketches) = &mut sketches {
                    let pushed = sketches.push(&one.key, &one.sketch);
                    pushed.with_context(|| format!("{}: cannot index the document", one.place))?;
                }
                Ok(is_new)
            },
        )?;
        kept.map_or(Ok(()), JournaledChunks::finish)?;
        Ok((empty, finding_copies))
    }

    /// Returns the data to compute for each document; with `shingles`, also its distinct shingles.
    fn wanted(&self, shingles: bool) -> SketchOptions {
        SketchOptions {
            shingles,
            whole: true,
            memory: Some(self.resources.memory),
            ..SketchOptions::default()
        }
    }

    /// Returns whether near documents are found from sets alone, without an index.
    fn is_by_sets(&self) -> bool {
        self.near().within().is_none()
    }

    /// Creates the corpus for the data of the documents.
    fn corpus(
        &self,
        (folder, journal): (&Path, Option<&Journal<'_>>),
        documents: &Documents,
    ) -> anyhow::Result<Corpus> {
        let (parser, memory) = (documents.parser().clone(), self.resources.memory / 4);
        let sets = journal.map(Journal::sets);
        let corpus = Corpus::new((folder, sets.as_deref()), memory, parser)?;
        if self.results.adds(Also::Annotated) { corpus.with_lines_of_dropped(folder) } else { Ok(corpus) }
    }

    /// Returns whether the method compares sets of shingles.
    pub(crate) fn holds_sets(&self) -> bool {
        self.near().threshold().is_some()
    }

    /// Returns whether near documents are found by comparing texts, not fingerprints.
    pub(crate) fn counts(&self) -> bool {
        self.near().within().is_none()
    }
}

/// The IDF table for the weights of shingles, and the boilerplate list to ignore.
type WeightsAndSpans<'l> = (Option<&'l Arc<IdfTable>>, Option<&'l mut Spans>);

/// The indexes of histories that are queried, and the keys of all histories, if there are any.
type Histories<'h> = (&'h [ComparedIndex], Option<Arc<EarlierKeys>>);

/// The folder, the journal and the observer of a job.
struct JobFolder<'p> {
    /// The folder for results and scratch files.
    folder: &'p Path,
    /// The journal; `None` without [`Results::resume`].
    journal: Option<&'p Journal<'p>>,
    observer: &'p dyn Observer,
}

/// Encodes the set of a new document against the reference sets. The set consists of its shingle hashes, combined with
/// the value of its `inside` field.
fn encode(leaders: &ReferenceSets, sketch: &Sketch, rest: DocumentScratch<'_>) -> SetHeader {
    let DocumentScratch { shingles, delta_scratch, words, inside, .. } = rest;
    SetHeader::New(leaders.encode(
        &shingles_inside(shingles, inside),
        Anchors::of(sketch, inside).as_slice(),
        delta_scratch,
        words,
    ))
}
