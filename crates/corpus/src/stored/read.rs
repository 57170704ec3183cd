//! Opens the inputs of a run, and reads all documents into the corpus.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use twindex::sys::Column;
use twindex::{Params, Sketch, Sketcher};
use twindex_join::ReferenceSets;

use crate::input::documents::Documents;
use crate::input::fields::keep::Keep;
use crate::input::options::InputKinds;
use crate::journal::folder::Journal;
use crate::journal::resume::{JournaledChunks, words_taker};
use crate::results::layout::kept_files;
use crate::rule::against::{ComparedIndex, EarlierResults, History};
use crate::rule::left_out::LeftOutReport;
use crate::rule::repeated::{EarlierKeys, OTHERS, RepeatedKeys, SeenKeys};
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::results::Also;
use crate::sketching::chunks::THREADS_MANY;
use crate::sketching::documents::{
    DocumentScratch, SketchOptions, Sketched as SketchedDocument, elements_max, for_each_remembered,
};
use crate::stored::codes::GroupCodes;
use crate::stored::corpus::{Corpus, Dropped};
use crate::stored::groups::{Anchors, NewSet, SetHeader, shingles_inside};
use crate::stored::sketches::{Sketched, Sketches};
use crate::work::observer::Observer;
use crate::work::watch::{Stages, Stopwatch};

/// Opens the input documents without reading them. With `--near equal`, sets the normalization and folding after which
/// texts are compared.
pub(crate) fn open(job: &Dedup, params: &Params) -> anyhow::Result<Documents> {
    let mut documents = open_inputs(job)?;
    if job.near() == Near::Equal {
        documents.compare_normalised(&params.shingling)?;
    }
    Ok(documents)
}

/// Opens the input documents, and checks the options against the formats of the inputs and of the history.
fn open_inputs(job: &Dedup) -> anyhow::Result<Documents> {
    let options = job.input_options()?;
    let documents = Documents::open_part(&job.reading.inputs, &options)?;
    let kinds = documents.kinds();
    kinds.check_revisits(job.results.adds(Also::Revisits))?;
    kinds.check_compression(job.results.compress.is_some(), false)?;
    let history = if job.scope.texts.is_empty() {
        // Skips a folder without results; the error is reported when the history is opened.
        let kept = job.scope.against.iter().filter_map(|folder| kept_files(folder).ok().flatten()).flatten();
        InputKinds::of_names(kept)
    } else {
        Documents::kinds_of(&job.scope.texts, &options)?
    };
    kinds.and(history).check(&options)?;
    Ok(documents)
}

/// The indexes in which new documents are looked up, and the keys of all histories; `None` without a history.
type Histories<'h> = (&'h [ComparedIndex], Option<Arc<EarlierKeys>>);

/// The folder, the journal and the observer of a job.
pub(crate) struct JobFolder<'p> {
    /// The folder for results and scratch files.
    pub(crate) folder: &'p Path,
    /// The journal; `None` without [`Results::resume`](crate::settings::results::Results::resume).
    pub(crate) journal: Option<&'p Journal<'p>>,
    pub(crate) observer: &'p dyn Observer,
}

/// The documents of a run, before the decision which of them are kept.
pub(crate) struct ReadDocuments {
    pub(crate) corpus: Corpus,
    /// The sketches; `None` if no index is built.
    pub(crate) sketches: Option<Sketched>,
    /// Statistics of ignored boilerplate; `None` if no boilerplate is ignored.
    pub(crate) left_out: Option<LeftOutReport>,
    /// Number of documents without words.
    pub(crate) empty: u64,
}

/// Reads the texts of the history and all documents. Groups equal texts, and stores the set and the sketch of each
/// text. `left_out` are the initial statistics of ignored boilerplate.
pub(crate) fn read(
    job: &Dedup,
    params: &Params,
    documents: &mut Documents,
    past: &EarlierResults,
    (sketcher, left_out): (&Sketcher, Option<LeftOutReport>),
    place: &JobFolder<'_>,
    stages: &mut Stages,
) -> anyhow::Result<ReadDocuments> {
    if left_out.is_none() && may_read_together(job, documents, past, place) {
        let most = job.resources.memory / MEMORY_FOR_INPUT;
        let together = most.min(rayon::current_num_threads());
        if together > 1 {
            let read = read_inputs(job, params, documents, past, (sketcher, None, together), place, stages);
            if read.is_ok() {
                return read;
            }
            // Which error comes first, and what it says, depends on the order of the documents.
            *documents = open(job, params)?;
        }
    }
    read_inputs(job, params, documents, past, (sketcher, left_out, 1), place, stages)
}

/// Memory that reading one more input at the same time may take, in bytes.
const MEMORY_FOR_INPUT: usize = 32 << 20;

/// Returns whether results do not depend on the order in which documents arrive: documents are only compared with each
/// other, and numbered in input order at the end.
fn may_read_together(
    job: &Dedup,
    documents: &Documents,
    past: &EarlierResults,
    place: &JobFolder<'_>,
) -> bool {
    let is_alone = past.history.is_none() && past.indexes.is_empty();
    let is_stored = place.journal.is_some() || job.writes_index() || job.searches_index();
    let is_by_order = matches!(job.scope.repeated_keys, RepeatedKeys::First | RepeatedKeys::Last)
        || job.rule.keep.rules().contains(&Keep::KeyHash);
    is_alone && !is_stored && !is_by_order && documents.are_files()
}

/// Reads `together` inputs at the same time.
fn read_inputs(
    job: &Dedup,
    params: &Params,
    documents: &mut Documents,
    past: &EarlierResults,
    (sketcher, left_out, together): (&Sketcher, Option<LeftOutReport>, usize),
    JobFolder { folder, journal, observer }: &JobFolder<'_>,
    stages: &mut Stages,
) -> anyhow::Result<ReadDocuments> {
    let watch = Stopwatch::start();
    let mut left_out = left_out;
    // Sketches are stored only if an index is built, as a result or for the search by distance.
    let is_indexed = params.codes.is_none() && (job.writes_index() || job.searches_index());
    let mut sketches = is_indexed.then(|| Sketches::new(folder, params)).transpose()?;
    let mut corpus = empty_corpus(job, params, (folder, *journal), documents)?;
    if together > 1 {
        corpus = corpus.compared_at_the_end();
    }
    // A journal needs each set at once.
    if job.holds_sets() && journal.is_none() && rayon::current_num_threads() >= THREADS_MANY {
        corpus.grouped.start_set_thread()?;
    }
    let mut earlier = past.keys(&corpus.grouped.budget)?;
    if let Some(history) = &past.history {
        let with = (sketcher, *journal, &mut earlier);
        let read = read_history(
            (job, params),
            history,
            documents,
            with,
            (&mut corpus, sketches.as_mut()),
            *observer,
        );
        read.map_err(|error| job.with_memory_advice(error))?;
        documents.parser().headers().begin();
    }
    let earlier = (!earlier.is_empty()).then(|| Arc::new(earlier));
    let with = (sketcher, (&past.indexes[..], earlier), *journal);
    let noted = (sketches.as_mut(), left_out.as_mut());
    let read = read_documents((job, params), (documents, together), with, noted, &mut corpus, *observer);
    let (empty, exact, keys) = read.map_err(|error| job.with_memory_advice(error))?;
    let sketches = sketches.map(Sketches::finish).transpose()?;
    corpus.end()?;
    corpus.number_repeated(keys, documents)?;
    let (read, exact) = (watch.cpu_seconds(), exact.as_secs_f64());
    stages.insert("sketch", (read - exact).max(0.0));
    stages.insert("exact", exact.min(read));
    stages.add("read", watch);
    Ok(ReadDocuments { corpus, sketches, left_out, empty })
}

/// Reads the documents of the history into the corpus, stores their sketches, and adds their keys to `earlier`.
fn read_history(
    (job, params): (&Dedup, &Params),
    history: &History,
    documents: &Documents,
    (sketcher, journal, earlier): (&Sketcher, Option<&Journal<'_>>, &mut EarlierKeys),
    (corpus, mut sketches): (&mut Corpus, Option<&mut Sketches>),
    observer: &dyn Observer,
) -> anyhow::Result<()> {
    // Keys of the documents of `texts` are made as when these documents were indexed. Keys in results folders are used
    // unchanged.
    let repeated_keys =
        if job.scope.texts.is_empty() { RepeatedKeys::Any } else { job.scope.repeated_keys.or_any() };
    let budget = Some(corpus.grouped.budget.clone());
    let wanted = SketchOptions { repeated_keys, budget, ..wanted(job, params) };
    let leaders = job.holds_sets().then(|| corpus.grouped.references());
    let look = |sketch: &Sketch, rest: DocumentScratch<'_>| {
        Ok((None, leaders.as_ref().map(|leaders| encode(leaders, sketch, rest))))
    };
    let mut found = Vec::new();
    let corpus = &RefCell::new(corpus);
    let open = |journal| JournaledChunks::open(journal, "history", corpus, job.holds_sets());
    let taking = |journal| words_taker(journal, elements_max(job.resources.memory));
    let (kept, taker) = (journal.map(open).transpose()?, journal.map(taking).transpose()?);
    let is_short = sketches.is_none();
    for (part, texts) in history.texts.iter().enumerate() {
        let lists_keys = texts.lists_keys(history);
        let mut documents = documents.open_second(&texts.files, &texts.options(job)?)?;
        corpus.borrow_mut().begin_history(documents.parser().clone());
        let progress = observer.begin("reading the history", documents.total_bytes());
        let cache = kept.as_ref().zip(taker.as_deref()).map(|(kept, taker)| kept.cache(taker, is_short));
        for_each_remembered(
            &mut documents,
            sketcher,
            &wanted,
            &*progress,
            cache.as_ref(),
            (look, |_: &[SketchedDocument], _: &mut [_]| Ok(())),
            |one, (_, header), words| {
                if !history.has(&one.key, &mut found)? {
                    return Ok(false);
                }
                if lists_keys {
                    earlier.add(&one.key, part, &corpus.borrow().grouped.budget)?;
                }
                if let Some(sketches) = &mut sketches {
                    push_sketch(sketches, one)?;
                }
                corpus.borrow_mut().add_history(one, NewSet::of(header, words))
            },
        )?;
    }
    kept.map_or(Ok(()), JournaledChunks::finish)?;
    history.check(&found)
}

/// Reads all new documents into the corpus, and stores their sketches. Returns the number of documents without words,
/// the time spent on grouping equal texts, and the keys.
fn read_documents(
    (job, params): (&Dedup, &Params),
    (documents, together): (&mut Documents, usize),
    (sketcher, (against, earlier), journal): (&Sketcher, Histories<'_>, Option<&Journal<'_>>),
    (mut sketches, mut left_out): (Option<&mut Sketches>, Option<&mut LeftOutReport>),
    corpus: &mut Corpus,
    observer: &dyn Observer,
) -> anyhow::Result<(u64, Duration, SeenKeys)> {
    let progress = observer.begin("reading", documents.total_bytes());
    let (mut empty, mut finding_copies) = (0, Duration::ZERO);
    // A copy is sketched only if its own sketch is stored, counted or looked up.
    let passes_over_copies =
        sketches.is_none() && left_out.is_none() && journal.is_none() && against.is_empty();
    let wanted = SketchOptions {
        repeated_keys: match job.scope.repeated_keys {
            RepeatedKeys::Error => RepeatedKeys::Any, // the corpus reports both positions
            other => other,
        },
        budget: Some(corpus.grouped.budget.clone()),
        earlier: earlier.clone(),
        // For annotated files, the lines of removed documents are stored apart, and would be stored twice if packed.
        lines: (!job.results.adds(Also::Annotated)).then(|| corpus.lines.shared()),
        known: corpus.grouped.known().map(|known| (known, passes_over_copies)),
        together,
        ..wanted(job, params)
    };
    let leaders = job.holds_sets().then(|| corpus.grouped.references());
    let look = |sketch: &Sketch, mut rest: DocumentScratch<'_>| {
        if rest.is_copy {
            return Ok((None, None));
        }
        let near = ComparedIndex::near_any(against, sketch, &mut rest)?;
        // A duplicate of a document in an index is not compared again, so its set is not encoded.
        let header = leaders.as_ref().filter(|_| near.is_none());
        let header = header.map(|leaders| encode(leaders, sketch, rest));
        Ok((near, header))
    };
    // Not part of `look`, so not in the journal: a resumed run looks fingerprints up again.
    let look_together = |documents: &[SketchedDocument],
                         found: &mut [(Option<Dropped>, Option<SetHeader>)]| {
        let near = |number: usize, near: Dropped| near.replace_greater(&mut found[number].0);
        Ok(ComparedIndex::near_codes(against, documents, near)?)
    };
    let corpus = &RefCell::new(corpus);
    let open = |journal| JournaledChunks::open(journal, "reading", corpus, job.holds_sets());
    let taking = |journal| words_taker(journal, elements_max(job.resources.memory));
    let (kept, taker) = (journal.map(open).transpose()?, journal.map(taking).transpose()?);
    let is_short = sketches.is_none();
    let cache = kept.as_ref().zip(taker.as_deref()).map(|(kept, taker)| kept.cache(taker, is_short));
    let keys = for_each_remembered(
        documents,
        sketcher,
        &wanted,
        &*progress,
        cache.as_ref(),
        (look, look_together),
        |one, (near, header), words| {
            let mut corpus = corpus.borrow_mut();
            if job.scope.repeated_keys == RepeatedKeys::Error
                && let Some(history) =
                    earlier.as_ref().map(|earlier| earlier.find(&one.key)).transpose()?.flatten()
            {
                let key = String::from_utf8_lossy(&one.key);
                bail!("{}: the key `{}` is already in {history}; {OTHERS}", one.place, key.escape_debug());
            }
            empty += u64::from(one.sketch.is_empty() && !one.is_opaque && one.copy_of.is_none());
            if let Some(left_out) = &mut left_out {
                left_out.add(one);
            }
            // A document without words is only looked up by its text.
            let inside = &one.attached.deciding().inside;
            let near = match near {
                None if one.sketch.is_empty() => {
                    ComparedIndex::wordless_any(against, one.whole.hash, inside)?
                }
                near => near,
            };
            if let Some(near) = near {
                return corpus.drop_near(one, &near).map(|()| false);
            }
            // Measures wall-clock time: reading the CPU clock is a system call and would take longer than the
            // measured work.
            let start = Instant::now();
            let set = match one.copy_of {
                Some(_) if passes_over_copies => NewSet::Copy,
                _ => NewSet::of(header, words),
            };
            let is_new = corpus.add(one, set)?;
            finding_copies += start.elapsed();
            if let Some(sketches) = &mut sketches {
                push_sketch(sketches, one)?;
            }
            Ok(is_new)
        },
    )?;
    kept.map_or(Ok(()), JournaledChunks::finish)?;
    Ok((empty + documents.counts().contentless, finding_copies, keys))
}

/// Stores the sketch of a document.
fn push_sketch(sketches: &mut Sketches, one: &SketchedDocument) -> anyhow::Result<()> {
    let pushed = sketches.push(&one.key, &one.sketch);
    pushed.with_context(|| format!("{}: cannot index the document", one.place))
}

/// Returns the data to compute for each document.
fn wanted(job: &Dedup, params: &Params) -> SketchOptions {
    // The size of a stored set is the number of distinct shingles. If equal texts are compared, the shingles are counted.
    let shingles = job.near() == Near::Equal;
    let bits = params.codes.map(|codes| usize::from(codes.bits));
    SketchOptions {
        shingles,
        whole: true,
        memory: Some(job.resources.memory),
        wide: bits.is_some() || job.brings_codes_alone(),
        bits,
        ..SketchOptions::default()
    }
}

fn empty_corpus(
    job: &Dedup,
    params: &Params,
    (folder, journal): (&Path, Option<&Journal<'_>>),
    documents: &Documents,
) -> anyhow::Result<Corpus> {
    let (parser, memory) = (documents.parser().clone(), job.resources.memory / 4);
    let sets = journal.map(Journal::sets);
    let mut corpus = Corpus::new((folder, sets.as_deref()), memory, (parser, &job.rule.keep))?;
    if documents.are_keyed_by_line()
        || !matches!(job.scope.repeated_keys, RepeatedKeys::Error | RepeatedKeys::Any)
    {
        corpus = corpus.without_lookup_by_key();
    }
    if job.writes_index() && !job.holds_sets() {
        let budget = &corpus.grouped.budget;
        corpus.wordless = Some((Column::new(budget), Column::new(budget)));
    }
    if params.codes.is_some() || job.brings_codes_alone() {
        corpus.codes = Some(GroupCodes::new(&corpus.grouped.budget));
    }
    if !job.scope.against.is_empty() {
        corpus = corpus.with_sample_of_dropped(folder)?;
    }
    if job.results.adds(Also::Annotated) { corpus.with_lines_of_dropped(folder) } else { Ok(corpus) }
}

/// Encodes the set of a new document as a delta against a reference set. The elements are shingle hashes combined with
/// the value of the `inside` field.
fn encode(leaders: &ReferenceSets, sketch: &Sketch, rest: DocumentScratch<'_>) -> SetHeader {
    let DocumentScratch { shingles, delta_scratch, words, inside, .. } = rest;
    SetHeader::New(leaders.encode(
        &shingles_inside(shingles, inside),
        Anchors::of(sketch, inside).as_slice(),
        delta_scratch,
        words,
    ))
}
