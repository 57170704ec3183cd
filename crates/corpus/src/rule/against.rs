//! Compares new documents with histories, which are the documents that earlier runs kept. A new document near a
//! document of a history is removed before the new documents are compared with one another.
//!
//! If the history has an index, each new document is looked up in it: by its set of shingle hashes, or by its fingerprint.
//! So the cost depends on the number of new documents, not on the size of the history. If only documents with the same
//! value of a field are compared, a new document is also compared only with documents of the index that have its value.
//!
//! Otherwise the texts of the history are read again, and precede all other documents. Both methods remove the same
//! documents and report the same kept document for each: the near document of the history with the smallest key.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use twindex::sys::MemoryBudget;
use twindex::{Code, Error, Hit, Index, Key, KeyBuf, Params, Query, Resemblance, Sketch, Snapshot};

use crate::error::InvalidOptions;
use crate::input::batch::Record;
use crate::input::documents::Documents;
use crate::input::kept::files::is_name_of_kept;
use crate::input::options::{InputFormat, InputOptions};
use crate::input::parser::Parser;
use crate::results::compared;
use crate::results::layout::{INDEX, TABLES_OF_REMOVED, for_each_row, kept_files};
use crate::results::run_file::RunFile;
use crate::results::wordless::{self, WordlessKeys};
use crate::results::written::Check;
use crate::rule::repeated::EarlierKeys;
use crate::rule::score::{Score, ScoreKind};
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::results::IndexOf;
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::sketching::documents::{DocumentScratch, Sketched};
use crate::stored::corpus::{Corpus, Dropped};
use crate::stored::groups::salted;
use crate::work::numbers::bytes;
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
    /// If texts are read, the reason why no index is queried.
    why: String,
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

/// The cost of comparing with the histories, and of the other way to do it with the same result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryCost {
    /// Number of documents that were read, or that the indexes contain.
    pub documents: u64,
    /// If indexes were queried, the length in bytes of the files that would be read otherwise. If texts were read because
    /// the histories have no index, the estimated size of an index. `None` if there is no other way.
    pub other_bytes: Option<u64>,
    /// If texts were read, the reason why no index was queried; otherwise empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl EarlierResults {
    /// Returns the cost of the histories; `None` if there are none. `corpus` has the texts that were read.
    pub(crate) fn cost(&self, job: &Dedup, corpus: &Corpus) -> Option<HistoryCost> {
        if job.scope.against.is_empty() {
            return None;
        }
        if self.history.is_none() {
            let documents = self.indexes.iter().map(|index| index.snapshot.documents()).sum();
            return Some(HistoryCost {
                documents,
                other_bytes: self.has_texts(job).then(|| self.kept_bytes()),
                why: String::new(),
            });
        }
        let documents = u64::from(corpus.history);
        let has_index = |path: &PathBuf| results_of(path).is_some_and(|folder| folder.join(INDEX).is_dir());
        let has_index = !job.scope.texts.is_empty() || job.scope.against.iter().any(has_index);
        let estimate = || {
            let history = &corpus.grouped.groups[..corpus.history_groups as usize];
            let shingles: u64 = history.iter().map(|group| u64::from(group.shingles)).sum();
            match condition_of(job)? {
                NearCondition::Counted(_) => {
                    Some(documents * COUNTED_BYTES + shingles * size_of::<u64>() as u64)
                }
                NearCondition::Within(within) => Some(documents * WITHIN_BYTES * u64::from(within.max(2))),
            }
        };
        let other_bytes = if has_index { None } else { estimate() };
        Some(HistoryCost { documents, other_bytes, why: self.why.clone() })
    }

    /// Returns whether each history is a results folder, which has the texts of its documents.
    fn has_texts(&self, job: &Dedup) -> bool {
        self.folders.len() == job.scope.against.len()
    }

    /// Returns the length in bytes of the files of kept documents in the results folders.
    fn kept_bytes(&self) -> u64 {
        let files = self.folders.iter().filter_map(|folder| kept_files(folder).ok().flatten());
        files.flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }

    /// Returns the texts of kept documents of the results folders, for people, in the order of `keys`; `None` for a key
    /// that is in none of the folders, or in several. `read` is the length in bytes of the texts that this run read.
    ///
    /// # Errors
    ///
    /// The texts cannot be read. Or they are longer than those of this run, so that the cost of the run would no longer
    /// depend on its own documents only.
    pub(crate) fn kept_texts(
        &self,
        job: &Dedup,
        keys: &[Vec<u8>],
        read: u64,
    ) -> anyhow::Result<Vec<Option<String>>> {
        ensure!(self.has_texts(job), "--against names an index, which has no texts");
        let length = self.kept_bytes();
        ensure!(
            length <= read.max(KEPT_READ),
            "the earlier runs kept {} of documents, more than this run read",
            bytes(length)
        );
        let mut found: Vec<(usize, Option<String>)> = vec![(0, None); keys.len()];
        for folder in &self.folders {
            let texts = HistoryTexts::open(folder)?;
            let mut documents = Documents::open_part(&texts.files, &texts.options(job)?)?;
            let reading = Job {
                state: || (),
                begin: Vec::new,
                work: |(): &mut (), made: &mut Vec<(usize, String)>, _: &Parser, record: Record<'_>| {
                    let place = keys.iter().position(|key| key == record.key);
                    made.extend(place.map(|place| (place, record.content.shown())));
                    Ok(())
                },
            };
            for_each_chunk(&mut documents, &(), &reading, |made| {
                for (place, text) in made {
                    found[place] = (found[place].0 + 1, Some(text));
                }
                Ok(())
            })?;
        }
        Ok(found.into_iter().map(|(times, text)| text.filter(|_| times == 1)).collect())
    }

    /// Opens the histories that the options name. Passes to `observer` which of them cannot be checked.
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
        let names_texts = !job.scope.texts.is_empty() || job.scope.against.iter().any(|path| path.is_file());
        let indexes = match condition_of(job) {
            _ if names_texts => Err("--against or --texts names them".to_owned()),
            None if job.rule.max_work.is_some() => Err("--max-work needs all texts".to_owned()),
            None => Err(format!("no index answers --near {}", job.near())),
            Some(condition) => {
                let inside = job.scope.inside.as_deref();
                let open = |path: &PathBuf| ComparedIndex::open(path, condition, params, inside);
                job.scope
                    .against
                    .iter()
                    .map(open)
                    .collect::<anyhow::Result<_>>()
                    .map_err(|why| format!("{why:#}"))
            }
        };
        let opened = match indexes {
            _ if job.scope.against.is_empty() => EarlierResults::default(),
            Ok(indexes) => EarlierResults::by_indexes(indexes),
            Err(why) => EarlierResults::by_texts(job, why)?,
        };
        Ok(EarlierResults { folders, ..opened })
    }

    /// Creates the histories of a run that only queries indexes.
    fn by_indexes(indexes: Vec<ComparedIndex>) -> EarlierResults {
        let used =
            indexes.iter().map(|index| HistoryUsed { path: index.path.clone(), kind: HistoryKind::Index });
        EarlierResults { used: used.collect(), indexes, ..EarlierResults::default() }
    }

    /// Opens the texts of the histories. `why` is the reason why no index can be queried.
    fn by_texts(job: &Dedup, why: String) -> anyhow::Result<EarlierResults> {
        let history = History::open(&job.scope.against, &job.scope.texts, &job.input_options()?);
        let history = history.map_err(|error| error.context(why.clone()))?;
        let files = history.texts.iter().flat_map(|texts| &texts.files);
        let used = files.map(|path| HistoryUsed { path: path.clone(), kind: HistoryKind::Texts }).collect();
        Ok(EarlierResults { history: Some(history), used, why, ..EarlierResults::default() })
    }

    /// Returns the keys of the indexes, and the keys of the documents that the runs of results folders removed. If
    /// texts of a history are read, the caller adds their keys while reading. The memory of listed keys counts against
    /// `budget`.
    pub(crate) fn keys(&self, budget: &MemoryBudget) -> anyhow::Result<EarlierKeys> {
        let mut keys = self.keys_of_kept();
        for index in self.indexes.iter().filter(|index| index.snapshot.params().given_codes().is_some()) {
            let history = keys.add_history(index.path.display().to_string());
            index.wordless.values().try_for_each(|key| keys.add(key, history, budget))?;
        }
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
    if results.is_none()
        && !path.is_file()
        && let Err(Error::NotAnIndex { why, .. }) = Index::open(path)
    {
        bail!(
            "--against {shown}: neither results of `dedup` nor an index: {why}; name the folder of one of these, or a \
             file of documents"
        );
    }
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

    /// Returns the options for reading the texts. Fields, the form of texts, the encoding and the table dialect are those
    /// with which the run of the history read the documents.
    pub(crate) fn options(&self, job: &Dedup) -> anyhow::Result<InputOptions> {
        let mut options = InputOptions { format: self.format, ..job.input_options()? };
        if let Some(run) = &self.run {
            if run.features == options.features && run.fingerprint == options.fingerprint {
                options.text_field.clone_from(&run.text_field);
            }
            options.id_field.clone_from(&run.id_field);
            (options.ids, options.encoding) = (run.ids, run.encoding);
            (options.dialect, options.text_form) = (run.dialect, run.text_form);
        }
        options.attached.deciding.is_history = true;
        // Kept documents of an earlier run may have fields with the names of added fields.
        options.reserved.clear();
        Ok(options)
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
            let index = folder.join(INDEX);
            let advice =
                if index.is_dir() { "" } else { "run it again with --index kept, which suffices, or then " };
            return Err(InvalidOptions::new(format!(
                "--against {shown}: its run read pages in HTML, and kept.jsonl has their markup, not their text; {advice}\
                 name the pages: --against {} --texts PAGES",
                index.display()
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
        // An index of codes does not have the keys of documents without a fingerprint.
        let index = index.filter(|index| index.params().given_codes().is_none());
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

/// Length in bytes of the files of kept documents that every run may read again for a few texts.
const KEPT_READ: u64 = 1 << 20;

/// Returns the condition by which an index finds near documents; `None` if the texts are needed.
fn condition_of(job: &Dedup) -> Option<NearCondition> {
    match job.near() {
        // A limit of work needs all documents.
        _ if job.rule.max_work.is_some() => None,
        Near::Resemblance(threshold) => Some(NearCondition::Counted(threshold)),
        Near::Within(within) => Some(NearCondition::Within(within.into())),
        Near::Containment(_) | Near::Equal => None,
    }
}

/// Bytes of a document in an index of sets, without its shingles, for an estimate: as measured for a threshold of 0.8.
const COUNTED_BYTES: u64 = 250;
/// Bytes of a document in an index of fingerprints for each bit of the radius, for an estimate: 28 were measured for 3
/// bits, and 93 for 10.
const WITHIN_BYTES: u64 = 10;
/// Number of near documents that are listed for a fingerprint when many are looked up together. If there are more, the
/// fingerprint is looked up alone, to find the document with the smallest key.
const HITS_OF_CODE: usize = 64;

/// An index of a history that is queried.
pub(crate) struct ComparedIndex {
    path: PathBuf,
    snapshot: Snapshot,
    condition: NearCondition,
    /// Whether to compare only documents with the same value of the `--inside` field.
    is_inside: bool,
    /// The documents without words, if fingerprints are compared.
    wordless: WordlessKeys,
}

/// The condition under which a document of the index is near a new document.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NearCondition {
    /// Exact resemblance of at least this value, computed from the sets in the index.
    Counted(f64),
    Within(u32),
}

impl ComparedIndex {
    /// Opens the index at `path`, or the index of the results at `path`. If a field `inside` is given, queries find only
    /// documents with the same value of the field.
    ///
    /// # Errors
    ///
    /// The index cannot be opened, or cannot answer the queries; the message names the parameter.
    fn open(
        path: &Path,
        condition: NearCondition,
        params: &Params,
        inside: Option<&str>,
    ) -> anyhow::Result<Self> {
        let of_results = path.join(INDEX);
        let is_results = kept_files(path).is_ok_and(|kept| kept.is_some());
        let index = if is_results { &of_results } else { path };
        let shown = path.display();
        if is_results && !index.is_dir() {
            let why = format!("--against {shown}: has no index (its run was without --index kept)");
            return Err(InvalidOptions::new(why).into());
        }
        let snapshot = Index::open(index)?.snapshot();
        let made = snapshot.params();
        let run = results_of(path).map(|folder| RunFile::read(&folder)).transpose()?.flatten();
        let of_run = run.as_ref().map(RunFile::job);
        if of_run.is_some_and(|job| {
            matches!(job.near(), Near::Containment(_)) && job.results.index == IndexOf::All
        }) {
            return Err(InvalidOptions::new(format!(
                "--against {shown}: its index has the documents that its run removed by containment, and finds documents \
                 by resemblance; make it with --index kept, or name the folder of results, whose texts are then read"
            ))
            .into());
        }
        let wordless = match condition {
            NearCondition::Counted(threshold) => {
                check_counts(path, made, threshold, params)?;
                WordlessKeys::new()
            }
            NearCondition::Within(_) => {
                made.check_same_fingerprints(params).with_context(|| {
                    format!("--against {shown}: its index keeps no fingerprints like those of this run")
                })?;
                wordless::read(index)?
            }
        };
        if let Some(field) = inside {
            let recorded = compared::recorded(index)?;
            if run.as_ref().and_then(RunFile::inside).or(recorded.as_deref()) != Some(field) || !made.values {
                return Err(InvalidOptions::new(format!(
                    "--against {shown}: its index does not keep the values of {field} (it is kept by a run with --inside {field})"
                ))
                .into());
            }
        }
        Ok(Self { path: index.to_owned(), snapshot, condition, is_inside: inside.is_some(), wordless })
    }

    /// Returns the near document of the index with the smallest key, if a document is near.
    fn near(&self, sketch: &Sketch, rest: &mut DocumentScratch<'_>) -> twindex::Result<Option<Dropped>> {
        let inside = rest.inside;
        // A document without shingles has a one-element set, the hash of its bytes.
        let is_wordless = rest.shingles.is_empty();
        let query = match self.condition {
            NearCondition::Counted(threshold) => {
                let set = if is_wordless { sketch.set() } else { rest.distinct() };
                if set.is_empty() {
                    return Ok(None);
                }
                self.snapshot.resembling_set(set, threshold)
            }
            NearCondition::Within(within) => match sketch.fingerprint() {
                Some(fingerprint) => self.snapshot.within(fingerprint, within),
                None => return Ok(None),
            },
        };
        Ok(first_by_key(self.unmarked(query, inside)?, is_wordless))
    }

    /// Returns the unmarked documents that the query finds, inside this value if the run compares inside a field.
    fn unmarked(&self, query: Query, inside: &[u8]) -> twindex::Result<Vec<Hit>> {
        Ok(query.inside(self.is_inside.then_some(inside)).unmarked().run()?.hits)
    }

    /// Returns the radius if the index stores [codes](Params::codes).
    fn radius_of_codes(&self) -> Option<u32> {
        match self.condition {
            NearCondition::Within(within) if self.snapshot.params().codes.is_some() => Some(within),
            _ => None,
        }
    }

    /// Looks up the fingerprints of documents together in the histories that store codes. Passes the number of each
    /// document that is near one of a history, and of this history the near document with the smallest key.
    pub(crate) fn near_codes(
        histories: &[Self],
        documents: &[Sketched],
        mut near: impl FnMut(usize, Dropped),
    ) -> twindex::Result<()> {
        for history in histories {
            let Some(within) = history.radius_of_codes() else { continue };
            let params = history.snapshot.params();
            // A document with a fingerprint of another width is refused later.
            let bits = params.codes.map(|codes| codes.bits.into());
            let of = |(number, one): (usize, &Sketched)| Some((number, one.code?));
            let (numbers, codes): (Vec<usize>, Vec<Code>) = documents
                .iter()
                .enumerate()
                .filter_map(of)
                .filter(|(_, code)| Some(code.bits()) == bits)
                .unzip();
            let answers = history.snapshot.codes_within(&codes, within, HITS_OF_CODE)?;
            for ((number, code), answers) in numbers.into_iter().zip(codes).zip(answers) {
                if answers.hits.is_empty() {
                    continue;
                }
                let hits = if answers.has_more || params.marks || history.is_inside {
                    let inside = &documents[number].attached.deciding().inside;
                    history.unmarked(history.snapshot.within(code, within), inside)?
                } else {
                    answers.hits
                };
                if let Some(first) = first_by_key(hits, false) {
                    near(number, first);
                }
            }
        }
        Ok(())
    }

    /// Returns the kind of the scores of removed documents.
    pub(crate) fn kind(&self) -> ScoreKind {
        match self.condition {
            NearCondition::Counted(_) => ScoreKind::Resemblance,
            NearCondition::Within(_) => ScoreKind::Distance,
        }
    }

    /// Returns the near document with the smallest key in the histories that do not store codes, if a document is near.
    pub(crate) fn near_any(
        histories: &[Self],
        sketch: &Sketch,
        rest: &mut DocumentScratch<'_>,
    ) -> twindex::Result<Option<Dropped>> {
        let mut first: Option<Dropped> = None;
        for history in histories.iter().filter(|history| history.radius_of_codes().is_none()) {
            if let Some(near) = history.near(sketch, rest)? {
                near.replace_greater(&mut first);
            }
        }
        Ok(first)
    }

    /// Returns the document of the histories with the same text and the smallest key, for a text without words. `hash` is
    /// the hash of the text.
    pub(crate) fn wordless_any(
        histories: &[Self],
        hash: u128,
        inside: &[u8],
    ) -> twindex::Result<Option<Dropped>> {
        let mut first: Option<KeyBuf> = None;
        for history in histories {
            let Some(key) = history.wordless.get(&salted(hash, inside)) else { continue };
            let record = history.snapshot.get(Key::Bytes(key))?;
            let key = KeyBuf::Bytes(key.clone());
            // The document may have been deleted or replaced since.
            let is_there = match record {
                // An index of given codes has only documents with one.
                None => history.snapshot.params().given_codes().is_some(),
                Some(record) => record.code.is_none() && record.fingerprint.is_none(),
            };
            if is_there && first.as_ref().is_none_or(|first| key < *first) {
                first = Some(key);
            }
        }
        Ok(first.map(|other| Dropped { near: Score::Distance(0), other }))
    }
}

/// Returns the hit with the smallest key. If the document `is_wordless`, its resemblance counts no shingles.
fn first_by_key(hits: Vec<Hit>, is_wordless: bool) -> Option<Dropped> {
    let hit = hits.into_iter().min_by(|a, b| a.key.cmp(&b.key))?;
    let near = match (hit.resemblance, hit.distance) {
        (Some(Resemblance::Exact { .. }), _) if is_wordless => {
            Score::Resemblance { intersection: 0, union: 0 }
        }
        (Some(Resemblance::Exact { intersection, union }), _) => {
            Score::Resemblance { intersection: intersection as u32, union: union as u32 }
        }
        (_, Some(distance)) => Score::Distance(distance),
        _ => return None, // sets give exact values
    };
    Some(Dropped { near, other: hit.key })
}

/// Returns an error unless the index at `path`, which was made with the parameters `made`, stores sets of the shingles of
/// `params`, and finds resemblances of `threshold`.
fn check_counts(path: &Path, made: &Params, threshold: f64, params: &Params) -> anyhow::Result<()> {
    let path = path.display();
    let Some(min) = made.near().threshold.filter(|_| made.sets) else {
        return Err(InvalidOptions::new(format!(
            "--against {path}: its index keeps no sets to count resemblance by"
        ))
        .into());
    };
    made.check_same_shingles(params)
        .with_context(|| format!("--against {path}: its index keeps sets of other shingles"))?;
    if threshold < min.value() {
        return Err(InvalidOptions::new(format!(
            "--against {path}: its index finds what resembles by {min} or more, and {threshold} is asked for"
        ))
        .into());
    }
    Ok(())
}
