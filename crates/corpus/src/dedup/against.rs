//! Compares new documents with histories: documents that earlier runs kept. New documents near a document of a history
//! are removed before new documents are compared with one another.
//!
//! Each new document is looked up in an index of the history: by its set of shingle hashes, if the index stores sets;
//! by its signature, if resemblance is estimated; or by its fingerprint. So the cost depends on the number of new
//! documents, not on the size of the history. If only documents with the same value of a field are compared, a
//! new document is also compared only with documents of the index that have its value.
//!
//! If exact resemblance is computed and an index cannot answer such queries, the texts of the history are read again,
//! and precede all other documents. Both methods remove the same documents and report the same kept document for each:
//! the near document of the history with the smallest key.

use std::path::{Path, PathBuf};

use anyhow::Context;
use twindex::{Hit, Index, Key, Params, Resemblance, Sketch, Snapshot};

use super::Dedup;
use super::dropped::{Dropped, MeasuredNearness};
use super::layout::{INDEX, kept_files};
use super::run_file::RunFile;
use super::score::ScoreKind;
use crate::error::InvalidOptions;
use crate::input::InputFormat;
use crate::settings::Near;
use crate::sketching::DocumentScratch;

/// The histories of a run: texts that are read again, and indexes that are queried.
#[derive(Default)]
pub(super) struct EarlierResults {
    /// The history whose texts are read again; `None` if only indexes are queried.
    pub(super) history: Option<History>,
    /// The indexes that are queried.
    pub(super) indexes: Vec<ComparedIndex>,
}

impl Dedup {
    /// Opens the histories that the options name.
    pub(super) fn past(&self, params: &Params) -> anyhow::Result<EarlierResults> {
        let open = |question| -> anyhow::Result<Vec<ComparedIndex>> {
            self.scope.against.iter().map(|path| ComparedIndex::open(path, question, params)).collect()
        };
        let indexes = match self.near() {
            _ if self.scope.against.is_empty() => return Ok(EarlierResults::default()),
            Near::Within(within) => open(NearCondition::Within(within.into()))?,
            _ => return self.counted_past(params),
        };
        Ok(EarlierResults { history: None, indexes })
    }

    /// Opens the histories for a run that computes exact resemblance.
    fn counted_past(&self, params: &Params) -> anyhow::Result<EarlierResults> {
        let read = |why: Option<anyhow::Error>| {
            let history = History::open(&self.scope.against, &self.scope.texts, self.reading.format);
            let history = match (history, why) {
                (Err(error), Some(why)) => Err(error.context(format!("{why:#}"))),
                (history, _) => history,
            };
            Ok(EarlierResults { history: Some(history?), indexes: Vec::new() })
        };
        // Sets in an index can only answer queries for resemblance. A limit of work needs all documents.
        let is_by_sets = matches!(self.near(), Near::Resemblance(_))
            && self.rule.max_work.is_none()
            && self.scope.texts.is_empty()
            // A document near one of an index is removed as soon as it is read, and is not stored, so it could not be
            // annotated.
            && !self.results.annotate;
        if !is_by_sets {
            return read(None);
        }
        let inside = self.scope.inside.as_deref();
        let open = |path: &PathBuf| {
            let against = ComparedIndex::open(path, NearCondition::Counted(self.threshold()), params)?;
            against.inside(path, inside)
        };
        match self.scope.against.iter().map(open).collect() {
            Ok(indexes) => Ok(EarlierResults { history: None, indexes }),
            Err(why) => read(Some(why)),
        }
    }
}

/// A history whose texts are read again.
pub(super) struct History {
    /// The files to read.
    pub(super) texts: Vec<PathBuf>,
    /// If not empty, only documents that one of these indexes contains are part of the history.
    indexes: Vec<(PathBuf, Snapshot)>,
    /// The format of the files. Ignored for results folders, whose file names give the format.
    pub(super) format: InputFormat,
}

impl History {
    /// Opens the kept documents of the results folders `against`. If there are `texts`, opens instead the documents of
    /// `texts` that the indexes `against` contain; `format` is their format.
    pub(super) fn open(against: &[PathBuf], texts: &[PathBuf], format: InputFormat) -> anyhow::Result<Self> {
        if !texts.is_empty() {
            let open = |path: &PathBuf| Ok((path.clone(), Index::open(path)?.snapshot()));
            let indexes = against.iter().map(open).collect::<anyhow::Result<_>>()?;
            return Ok(Self { texts: texts.to_vec(), indexes, format });
        }
        let mut files = Vec::new();
        for path in against {
            let kept = kept_files(path).with_context(|| format!("--against {}", path.display()))?;
            let Some(kept) = kept else {
                return Err(InvalidOptions::new(format!(
                    "--against {}: no folder of results, so there are no texts to count on: name the folder that \
                     `dedup` made, or the texts with --texts",
                    path.display()
                ))
                .into());
            };
            if RunFile::read(path)?.is_some_and(|run| run.pages) {
                return Err(InvalidOptions::new(format!(
                    "--against {}: its run read pages in HTML, and kept.jsonl has their markup, not their text; name the \
                     pages: --against {} --texts PAGES",
                    path.display(),
                    path.join(INDEX).display()
                ))
                .into());
            }
            files.extend(kept);
        }
        Ok(Self { texts: files, indexes: Vec::new(), format: InputFormat::Auto })
    }

    /// Returns whether the document with this key is part of the history. Increments in `found` the count of each index
    /// that contains it.
    pub(super) fn has(&self, key: &[u8], found: &mut Vec<u64>) -> anyhow::Result<bool> {
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

    /// Returns an error unless `texts` contain every document of every index exactly once, by the counts of
    /// [`has`](Self::has).
    pub(super) fn check(&self, found: &[u64]) -> anyhow::Result<()> {
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
pub(super) struct ComparedIndex {
    snapshot: Snapshot,
    question: NearCondition,
    /// Whether to compare only documents with the same value of the `--inside` field.
    is_inside: bool,
}

/// The condition under which a document of the index is near a new document.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NearCondition {
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
    pub(super) fn open(path: &Path, question: NearCondition, params: &Params) -> anyhow::Result<Self> {
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
            NearCondition::Counted(threshold) => return Self::counting(path, snapshot, threshold, params),
            NearCondition::Within(_) => snapshot.params().check_same_fingerprints(params),
        };
        same.with_context(|| {
            format!("--against {}: give the options with which it was made", path.display())
        })?;
        Ok(Self { snapshot, question, is_inside: false })
    }

    /// Returns the index, if it stores sets of shingle hashes that were made with `params`.
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
        Ok(Self { snapshot, question: NearCondition::Counted(threshold), is_inside: false })
    }

    /// Restricts queries to documents with the same value of `field`, if given. The results at `path` must have been
    /// made with the same restriction.
    fn inside(self, path: &Path, field: Option<&str>) -> anyhow::Result<Self> {
        let Some(field) = field else { return Ok(self) };
        let run = RunFile::read(path)?;
        let made = run.as_ref().and_then(RunFile::inside);
        if made != Some(field) || !self.snapshot.params().values {
            let path = path.display();
            return Err(InvalidOptions::new(format!(
                "--against {path}: its index does not keep the values of {field} (it is kept by a run with --inside {field})"
            ))
            .into());
        }
        Ok(Self { is_inside: true, ..self })
    }

    /// Returns the documents whose sets resemble the set of a new document; with `is_inside`, only documents with the same
    /// value.
    fn counted(&self, set: &[u64], threshold: f64, inside: &[u8]) -> twindex::Result<Vec<Hit>> {
        let query = self.snapshot.resembling_set(set, threshold).unmarked();
        if !self.is_inside {
            return Ok(query.run()?.hits);
        }
        let hits = query.run_with_records()?.into_iter();
        Ok(hits.filter(|(_, record)| record.value == inside).map(|(hit, _)| hit).collect())
    }

    /// Returns the nearest document of the index, if one is near. If exact resemblance is computed, returns the near
    /// document with the smallest key instead.
    pub(super) fn near(
        &self,
        sketch: &Sketch,
        rest: &mut DocumentScratch<'_>,
    ) -> twindex::Result<Option<Dropped>> {
        let query = match self.question {
            NearCondition::Counted(threshold) => {
                let inside = rest.inside;
                // A document without shingles has a one-element set, the hash of its bytes.
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
    pub(super) fn columns(&self) -> &'static str {
        match self.question {
            NearCondition::Counted(_) => ScoreKind::Resemblance.columns(),
            NearCondition::Within(_) => ScoreKind::Distance.columns(),
        }
    }

    /// Returns the document of the histories for which a new document is removed, if any is near: the nearest document
    /// of the first history with a near document or, if exact resemblance is computed, the near document with the
    /// smallest key.
    pub(super) fn near_any(
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
