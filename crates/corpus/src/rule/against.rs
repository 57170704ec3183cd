//! Compares new documents with histories, which are the documents that earlier runs kept. A new document near a
//! document of a history is removed before the new documents are compared with one another.
//!
//! Each new document is looked up in an index of the history: by its set of shingle hashes if exact resemblance is
//! computed, or by its fingerprint. So the cost depends on the number of new documents, not on the size of the history.
//! With `--inside`, a new document is compared only with documents of the index that have its value.
//!
//! If exact resemblance is computed and an index cannot answer the queries, the texts of the history are read again and
//! precede all other documents. Both methods remove the same documents. For each of them, they report the same document
//! of the history: the near one with the smallest key.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use twindex::sys::MemoryBudget;
use twindex::{Hit, Index, Key, Params, Resemblance, Sketch, Snapshot};

use crate::error::InvalidOptions;
use crate::input::kept::files::is_name_of_kept;
use crate::input::options::{InputFormat, InputOptions};
use crate::results::compared;
use crate::results::layout::{INDEX, TABLES_OF_REMOVED, for_each_row, kept_files};
use crate::results::run_file::RunFile;
use crate::results::written::Check;
use crate::rule::repeated::EarlierKeys;
use crate::rule::score::ScoreKind;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::sketching::documents::DocumentScratch;
use crate::stored::corpus::{Dropped, MeasuredNearness};
use crate::work::observer::Observer;
use crate::work::tsv;

/// The histories of a run: texts that are read again, and indexes that are queried.
#[derive(Default)]
pub(crate) struct EarlierResults {
    /// The history whose texts are read again; `None` if only indexes are queried.
    pub(crate) history: Option<History>,
    /// The indexes that are queried.
    pub(crate) indexes: Vec<ComparedIndex>,
    /// The paths of the files and indexes, for the report.
    pub(crate) used: Vec<HistoryUsed>,
    /// The results folders among the histories, as the user specified them.
    folders: Vec<PathBuf>,
}

/// A history that a run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryUsed {
    /// The index, or the file or folder of texts.
    pub path: PathBuf,
    /// How the run used the history.
    pub kind: HistoryKind,
}

/// How a run used a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryKind {
    /// The index was queried.
    Index,
    /// The texts were read.
    Texts,
}

impl EarlierResults {
    /// Opens the histories that the options name. Notifies `observer` of histories that cannot be checked for changes.
    pub(crate) fn open(
        job: &Dedup,
        params: &Params,
        observer: &dyn Observer,
    ) -> anyhow::Result<EarlierResults> {
        let mut folders = Vec::new();
        for path in &job.scope.against {
            check_history(job, path, observer)?;
            folders.extend((results_of(path).as_deref() == Some(path)).then(|| path.clone()));
        }
        let open = |question| -> anyhow::Result<EarlierResults> {
            if let Some(file) = job.scope.against.iter().find(|path| path.is_file()) {
                return Err(InvalidOptions::new(format!(
                    "--against {}: is a file of documents, and this run compares with an index: name the index",
                    file.display()
                ))
                .into());
            }
            let open = |path: &PathBuf| ComparedIndex::open(path, question, params);
            Ok(EarlierResults::by_indexes(job.scope.against.iter().map(open).collect::<anyhow::Result<_>>()?))
        };
        let opened = match job.near() {
            _ if job.scope.against.is_empty() => EarlierResults::default(),
            Near::Within(within) => open(NearCondition::Within(within.into()))?,
            _ => EarlierResults::counted(job, params)?,
        };
        Ok(EarlierResults { folders, ..opened })
    }

    /// Creates the histories of a run that only queries indexes.
    fn by_indexes(indexes: Vec<ComparedIndex>) -> EarlierResults {
        let used =
            indexes.iter().map(|index| HistoryUsed { path: index.path.clone(), kind: HistoryKind::Index });
        EarlierResults { used: used.collect(), indexes, ..EarlierResults::default() }
    }

    /// Opens the histories for a run that computes exact resemblance or containment, or groups equal texts.
    fn counted(job: &Dedup, params: &Params) -> anyhow::Result<EarlierResults> {
        let read = |why: Option<anyhow::Error>| {
            let history = History::open(&job.scope.against, &job.scope.texts, &job.input_options()?);
            let history = match (history, why) {
                (Err(error), Some(why)) => Err(error.context(format!("{why:#}"))),
                (history, _) => history,
            }?;
            let files = history.texts.iter().flat_map(|texts| &texts.files);
            let used =
                files.map(|path| HistoryUsed { path: path.clone(), kind: HistoryKind::Texts }).collect();
            Ok(EarlierResults { history: Some(history), used, ..EarlierResults::default() })
        };
        // Indexes answer only queries for resemblance. `--max-work` limits comparisons with all kept documents, so it
        // needs the texts of the history.
        let is_by_sets = matches!(job.near(), Near::Resemblance(_))
            && job.rule.max_work.is_none()
            && job.scope.texts.is_empty()
            && !job.scope.against.iter().any(|path| path.is_file());
        if !is_by_sets {
            return read(None);
        }
        let inside = job.scope.inside.as_deref();
        let open = |path: &PathBuf| {
            let against = ComparedIndex::open(path, NearCondition::Counted(job.threshold()), params)?;
            against.inside(path, inside)
        };
        match job.scope.against.iter().map(open).collect() {
            Ok(indexes) => Ok(Self::by_indexes(indexes)),
            Err(why) => read(Some(why)),
        }
    }

    /// Returns the keys of the indexes, and the keys of the documents that the runs of results folders removed. If
    /// texts of a history are read, the caller adds their keys while reading. The memory of listed keys counts against
    /// `budget`.
    pub(crate) fn keys(&self, budget: &MemoryBudget) -> anyhow::Result<EarlierKeys> {
        let mut keys = self.keys_of_kept();
        for folder in &self.folders {
            let history = keys.add_history(folder.display().to_string());
            for_each_removed_key(folder, &mut |key| keys.add(key, history, budget))
                .with_context(|| format!("--against {}", folder.display()))?;
        }
        Ok(keys)
    }

    fn keys_of_kept(&self) -> EarlierKeys {
        let shown = |path: &Path| path.display().to_string();
        let Some(history) = &self.history else {
            let indexes = self.indexes.iter().map(|index| (shown(&index.path), index.snapshot.clone()));
            return EarlierKeys::new(indexes.collect(), Vec::new());
        };
        let beside = history.texts.iter().filter_map(|texts| Some((&texts.given, texts.index.as_ref()?)));
        let named = history.indexes.iter().map(|(path, snapshot)| (path, snapshot));
        let indexes = named.chain(beside).map(|(path, snapshot)| (shown(path), snapshot.clone()));
        let names = history.texts.iter().map(|texts| shown(&texts.given));
        EarlierKeys::new(indexes.collect(), names.collect())
    }
}

/// Returns an error if the history at `path` was changed since its run wrote it, or if its run used another `--inside`
/// field.
fn check_history(job: &Dedup, path: &Path, observer: &dyn Observer) -> anyhow::Result<()> {
    let shown = path.display();
    let results = results_of(path);
    let run = results.as_deref().map(RunFile::read).transpose()?.flatten();
    if results.as_deref() == Some(path) {
        match run.as_ref().and_then(|run| run.written.as_ref()) {
            Some(written) => written.check(path, Check::Modified)?,
            None => observer.note(&format!(
                "--against {shown}: its run did not record what it wrote, so whether its index and its kept documents \
                 belong together is not known"
            )),
        }
    }
    let own = job.scope.inside.as_deref();
    let recorded = if run.is_none() && path.is_dir() { compared::recorded(path)? } else { None };
    let made = run.as_ref().map(RunFile::inside).or(recorded.as_deref().map(Some));
    let why = if let Some(made) = made {
        compared::difference(made, own)
    } else {
        // Neither run.json nor the file `inside` exists, so the parameters of the index are checked.
        let stores_values = path.is_dir().then(|| Index::open(path).ok()).flatten();
        match (stores_values.map(|index| index.params().values), own) {
            (Some(true), None) => Some(
                "stores the value of a field of each document, and this run compares all documents; give the \
                 --inside with which it was made"
                    .to_owned(),
            ),
            (Some(false), Some(own)) => Some(format!(
                "does not store the values of {own}, inside which this run compares; leave out --inside"
            )),
            _ => None,
        }
    };
    let Some(why) = why else { return Ok(()) };
    Err(InvalidOptions::new(format!("--against {shown}: {why}")).into())
}

/// Passes the key of each document that the run of a results folder removed to `each`. `pairs.tsv` lists documents near
/// a document of the same run, `against.tsv` lists documents near a document of a history.
pub(crate) fn for_each_removed_key(
    folder: &Path,
    each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for (name, head) in TABLES_OF_REMOVED.into_iter().zip(["document\tkept", "key\tother"]) {
        let path = folder.join(name);
        if !path.is_file() {
            continue; // only a run with histories writes against.tsv
        }
        for_each_row(&path, Some(head), &mut |line, fields| {
            let key = tsv::unescape(fields[0]).with_context(|| format!("{}:{line}", path.display()))?;
            each(&key)?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(())
}

/// Returns the results folder to which a history belongs: `path` itself, or the folder of an index or of kept documents.
pub(crate) fn results_of(path: &Path) -> Option<PathBuf> {
    let is_results = |folder: &Path| kept_files(folder).is_ok_and(|kept| kept.is_some());
    if is_results(path) {
        return Some(path.to_owned());
    }
    let resolved = path.canonicalize().ok()?;
    let name = resolved.file_name()?.to_str()?;
    let parent = resolved.parent()?;
    (if resolved.is_dir() { name == INDEX } else { is_name_of_kept(name) } && is_results(parent))
        .then(|| parent.to_owned())
}

/// A history whose texts are read again.
pub(crate) struct History {
    /// The texts to read.
    pub(crate) texts: Vec<HistoryTexts>,
    /// If this list is not empty, the history consists only of the documents that one of these indexes contains.
    indexes: Vec<(PathBuf, Snapshot)>,
}

/// Texts of a history that are read with the same options.
pub(crate) struct HistoryTexts {
    /// The path that the user specified.
    given: PathBuf,
    /// The files and folders to read.
    pub(crate) files: Vec<PathBuf>,
    /// The format of the files; for kept documents, it is derived from the file names.
    pub(crate) format: InputFormat,
    /// The reading options of the run that wrote the history; `None` if they are unknown.
    run: Option<InputOptions>,
    /// The index in the results folder, in which keys are looked up; `None` if there is none, or if the texts are not
    /// read from a results folder.
    index: Option<Snapshot>,
}

impl HistoryTexts {
    /// Returns whether keys are taken from the texts, because no index has them.
    pub(crate) fn lists_keys(&self, history: &History) -> bool {
        self.index.is_none() && history.indexes.is_empty()
    }

    /// Sets the fields, the encoding and the table dialect with which the run of the history read the documents.
    pub(crate) fn set_fields(&self, options: &mut InputOptions) {
        let Some(run) = &self.run else { return };
        if run.features == options.features && run.fingerprint == options.fingerprint {
            options.text_field.clone_from(&run.text_field);
        }
        options.id_field.clone_from(&run.id_field);
        (options.ids, options.encoding, options.dialect) = (run.ids, run.encoding, run.dialect);
    }

    /// Opens the kept documents of a results folder, or a file of documents.
    fn open(given: &Path) -> anyhow::Result<Self> {
        let shown = given.display();
        let kept = if given.is_file() {
            Some(vec![given.to_owned()])
        } else {
            kept_files(given).with_context(|| format!("--against {shown}"))?
        };
        let Some(files) = kept else {
            return Err(InvalidOptions::new(format!(
                "--against {shown}: no folder of results, so there are no texts to count on: name the folder that \
                 `dedup` made, or the texts with --texts"
            ))
            .into());
        };
        let Some(folder) = results_of(given) else {
            return Ok(Self {
                given: given.to_owned(),
                files,
                format: InputFormat::Auto,
                run: None,
                index: None,
            });
        };
        let run = RunFile::read(&folder)?;
        if run.as_ref().is_some_and(|run| run.pages) {
            return Err(InvalidOptions::new(format!(
                "--against {shown}: its run read pages in HTML, and kept.jsonl has their markup, not their text; name the \
                 pages: --against {} --texts PAGES",
                folder.join(INDEX).display()
            ))
            .into());
        }
        if folder == given
            && let Some(written) = run.as_ref().and_then(|run| run.written.as_ref())
        {
            written.check(&folder, Check::All)?;
        }
        let run = run.map(|run| run.job().input_options()).transpose()?;
        let index = folder.join(INDEX);
        let has_index = folder == given && index.is_dir();
        let index = has_index.then(|| Index::open(&index)).transpose()?.map(|index| index.snapshot());
        Ok(Self { given: given.to_owned(), files, format: InputFormat::Auto, run, index })
    }
}

impl History {
    /// Opens the kept documents of the histories `against`. If `texts` is not empty, `against` are indexes, and the
    /// history consists of the documents in `texts` that these indexes contain. `input` has the format of `texts`.
    pub(crate) fn open(against: &[PathBuf], texts: &[PathBuf], input: &InputOptions) -> anyhow::Result<Self> {
        if texts.is_empty() {
            let texts = against.iter().map(|path| HistoryTexts::open(path)).collect::<anyhow::Result<_>>()?;
            return Ok(Self { texts, indexes: Vec::new() });
        }
        let open = |path: &PathBuf| Ok((path.clone(), Index::open(path)?.snapshot()));
        let indexes = against.iter().map(open).collect::<anyhow::Result<_>>()?;
        let texts = HistoryTexts {
            given: texts[0].clone(),
            files: texts.to_vec(),
            format: input.format,
            run: None,
            index: None,
        };
        Ok(Self { texts: vec![texts], indexes })
    }

    /// Returns whether the document with this key is part of the history. `found` has a count for each index;
    /// increments the counts of the indexes that contain the document.
    pub(crate) fn has(&self, key: &[u8], found: &mut Vec<u64>) -> anyhow::Result<bool> {
        found.resize(self.indexes.len(), 0);
        let mut is_in_any = self.indexes.is_empty();
        for ((path, snapshot), found) in self.indexes.iter().zip(found) {
            let record = snapshot.get(Key::Bytes(key));
            if record.with_context(|| format!("--against {}", path.display()))?.is_some() {
                is_in_any = true;
                *found += 1;
            }
        }
        Ok(is_in_any)
    }

    /// Returns an error unless the texts contain every document of every index exactly once. `found` are the counts of
    /// [`has`](Self::has).
    pub(crate) fn check(&self, found: &[u64]) -> anyhow::Result<()> {
        let found = found.iter().copied().chain(std::iter::repeat(0));
        for ((path, snapshot), found) in self.indexes.iter().zip(found) {
            let expected = snapshot.documents();
            if found != expected {
                return Err(InvalidOptions::new(format!(
                    "--texts: has {found} of the {expected} documents of {}; each must be there once",
                    path.display()
                ))
                .into());
            }
        }
        Ok(())
    }
}

/// An index of a history that is queried.
pub(crate) struct ComparedIndex {
    path: PathBuf,
    snapshot: Snapshot,
    question: NearCondition,
    /// Whether to compare only documents with the same value of the `--inside` field.
    is_inside: bool,
}

/// The condition under which a document of the index is near a new document.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NearCondition {
    /// Exact resemblance of at least this value, computed from the sets in the index.
    Counted(f64),
    Within(u32),
}

impl ComparedIndex {
    /// Opens the index at `path`, or the index of the results at `path`.
    ///
    /// # Errors
    ///
    /// The index cannot be opened, or was built with other parameters than `params`; the message names the parameter.
    pub(crate) fn open(path: &Path, question: NearCondition, params: &Params) -> anyhow::Result<Self> {
        let inside = path.join(INDEX);
        let of_results = kept_files(path).is_ok_and(|kept| kept.is_some());
        let index = if of_results { &inside } else { path };
        if of_results && !inside.is_dir() {
            return Err(InvalidOptions::new(format!(
                "--against {}: has no index (its run was with --index none or --near equal), only texts, by which distances \
                 cannot be compared",
                path.display()
            ))
            .into());
        }
        let snapshot = Index::open(index)?.snapshot();
        let same = match question {
            NearCondition::Counted(threshold) => {
                return Ok(Self {
                    path: index.to_owned(),
                    ..Self::counting(path, snapshot, threshold, params)?
                });
            }
            NearCondition::Within(_) => snapshot.params().check_same_fingerprints(params),
        };
        same.with_context(|| {
            format!("--against {}: give the options with which it was made", path.display())
        })?;
        Ok(Self { path: index.to_owned(), snapshot, question, is_inside: false })
    }

    /// Wraps an index that answers queries for exact resemblance. Returns an error unless it stores sets of shingle
    /// hashes that were made with `params`.
    fn counting(path: &Path, snapshot: Snapshot, threshold: f64, params: &Params) -> anyhow::Result<Self> {
        let path = path.display();
        let kept = snapshot.params();
        let Some(min) = kept.near().threshold.filter(|_| kept.sets) else {
            return Err(InvalidOptions::new(format!(
                "--against {path}: its index keeps no sets to count resemblance by"
            ))
            .into());
        };
        kept.check_same_shingles(params)
            .with_context(|| format!("--against {path}: its index keeps sets of other shingles"))?;
        if threshold < min.value() {
            return Err(InvalidOptions::new(format!(
                "--against {path}: its index finds what resembles by {min} or more, and {threshold} is asked for"
            ))
            .into());
        }
        Ok(Self {
            path: PathBuf::new(),
            snapshot,
            question: NearCondition::Counted(threshold),
            is_inside: false,
        })
    }

    /// Restricts queries to documents with the same value of `field`, if given. The run that wrote the results at
    /// `path` must have compared only documents with the same value of this field.
    fn inside(self, path: &Path, field: Option<&str>) -> anyhow::Result<Self> {
        let Some(field) = field else { return Ok(self) };
        let run = results_of(path).map(|folder| RunFile::read(&folder)).transpose()?.flatten();
        let recorded = compared::recorded(&self.path)?;
        let made = run.as_ref().and_then(RunFile::inside).or(recorded.as_deref());
        if made != Some(field) || !self.snapshot.params().values {
            let path = path.display();
            return Err(InvalidOptions::new(format!(
                "--against {path}: its index does not keep the values of {field} (it is kept by a run with --inside {field})"
            ))
            .into());
        }
        Ok(Self { is_inside: true, ..self })
    }

    /// Returns the documents of the index whose sets resemble `set`; with `is_inside`, only documents with the value
    /// `inside`.
    fn counted(&self, set: &[u64], threshold: f64, inside: &[u8]) -> twindex::Result<Vec<Hit>> {
        let query = self.snapshot.resembling_set(set, threshold).unmarked();
        if !self.is_inside {
            return Ok(query.run()?.hits);
        }
        let hits = query.run_with_records()?.into_iter();
        Ok(hits.filter(|(_, record)| record.value == inside).map(|(hit, _)| hit).collect())
    }

    /// Returns a near document of the index: the nearest one or, if exact resemblance is computed, the one with the
    /// smallest key. `None` if no document is near.
    pub(crate) fn near(
        &self,
        sketch: &Sketch,
        rest: &mut DocumentScratch<'_>,
    ) -> twindex::Result<Option<Dropped>> {
        let query = match self.question {
            NearCondition::Counted(threshold) => {
                let inside = rest.inside;
                // The set of a document without shingles has one element, the hash of its bytes.
                let is_wordless = rest.shingles.is_empty();
                let set = if is_wordless { sketch.set() } else { rest.distinct() };
                if set.is_empty() {
                    return Ok(None);
                }
                let near = self.counted(set, threshold, inside)?;
                let first = near.into_iter().min_by(|a, b| a.key.cmp(&b.key));
                return Ok(first.and_then(|hit| {
                    let (intersection, union) = match hit.resemblance? {
                        _ if is_wordless => (0, 0),
                        Resemblance::Exact { intersection, union } => (intersection as u32, union as u32),
                        Resemblance::Estimate { .. } => return None, // sets give exact values
                    };
                    Some(Dropped { near: MeasuredNearness::Counted { intersection, union }, other: hit.key })
                }));
            }
            NearCondition::Within(within) => {
                let Some(fingerprint) = sketch.fingerprint() else { return Ok(None) };
                self.snapshot.within(fingerprint, within)
            }
        };
        let near = |hit: Hit| {
            let distance = hit.distance?;
            Some(Dropped { near: MeasuredNearness::Distance(distance), other: hit.key })
        };
        Ok(query.unmarked().limit(1).run()?.hits.into_iter().next().and_then(near))
    }

    /// Returns the names of the table columns that hold the nearness of a removed document.
    pub(crate) fn columns(&self) -> &'static str {
        match self.question {
            NearCondition::Counted(_) => ScoreKind::Resemblance.columns(),
            NearCondition::Within(_) => ScoreKind::Distance.columns(),
        }
    }

    /// Returns the document because of which a new document is removed; `None` if none is near. If exact resemblance is
    /// computed, it is the near document of all histories with the smallest key. Otherwise it is the nearest document
    /// of the first history that has a near document.
    pub(crate) fn near_any(
        histories: &[Self],
        sketch: &Sketch,
        rest: &mut DocumentScratch<'_>,
    ) -> twindex::Result<Option<Dropped>> {
        let mut first: Option<Dropped> = None;
        for history in histories {
            let Some(near) = history.near(sketch, rest)? else { continue };
            if !matches!(history.question, NearCondition::Counted(_)) {
                return Ok(Some(near));
            }
            if first.as_ref().is_none_or(|first| near.other < first.other) {
                first = Some(near);
            }
        }
        Ok(first)
    }
}
