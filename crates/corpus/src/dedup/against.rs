//! Histories: documents that earlier runs kept. New documents near one of them are removed before new ones are compared.
//!
//! An index of the history is queried for each new document: by the sets of shingle hashes that it stores; by signatures,
//! if resemblance is estimated; or by fingerprints. The cost depends on the new documents, not on the size of the history.
//! Inside values of a field, a document is compared with the documents of the index that have the same value. If
//! resemblance is counted and an index cannot answer, the texts of the history are read, and its documents come before all
//! others. Both ways remove the same documents, and name the same kept document for each: of the near documents of the
//! history, the one with the smallest key.

use std::path::{Path, PathBuf};

use anyhow::Context;
use twindex::{Hit, Index, Key, Params, Resemblance, Sketch, Snapshot};

use super::dropped::{Dropped, MeasuredNearness};
use super::layout::{INDEX, kept_files};
use super::rules::{Clustering, NearMeasure};
use super::run_file::RunFile;
use super::score::ScoreKind;
use super::{Dedup, Method};
use crate::error::InvalidOptions;
use crate::input::InputFormat;
use crate::sketching::DocumentScratch;

/// Results of earlier runs: texts to read again, and indexes to query.
#[derive(Default)]
pub(super) struct EarlierResults {
    /// The histories whose texts are read again.
    pub(super) history: Option<History>,
    /// The indexes that are queried.
    pub(super) indexes: Vec<ComparedIndex>,
}

impl Dedup {
    /// Opens the histories.
    pub(super) fn past(&self, params: &Params) -> anyhow::Result<EarlierResults> {
        let open = |question| -> anyhow::Result<Vec<ComparedIndex>> {
            self.against.iter().map(|path| ComparedIndex::open(path, question, params)).collect()
        };
        let indexes = match self.method {
            _ if self.against.is_empty() => return Ok(EarlierResults::default()),
            Method::Simhash => open(NearCondition::Within(self.within.unwrap_or(3).into()))?,
            _ if !self.counts() => open(NearCondition::Resembling(self.threshold()))?,
            _ => return self.counted_past(params),
        };
        Ok(EarlierResults { history: None, indexes })
    }

    /// Opens the histories if resemblance is counted.
    fn counted_past(&self, params: &Params) -> anyhow::Result<EarlierResults> {
        let read = |why: Option<anyhow::Error>| {
            let history = History::open(&self.against, &self.texts, self.input.format);
            let history = match (history, why) {
                (Err(error), Some(why)) => Err(error.context(format!("{why:#}"))),
                (history, _) => history,
            };
            Ok(EarlierResults { history: Some(history?), indexes: Vec::new() })
        };
        // Sets in an index answer only queries for resemblance; components, and the limit of work, need all documents.
        let is_by_sets = self.method == Method::Minhash
            && self.near == NearMeasure::Resemblance
            && self.clusters == Clustering::Leaders
            && self.max_work.is_none()
            && self.texts.is_empty()
            // A document near one of an index is removed when it is read, and is not stored.
            && !self.annotations.all;
        if !is_by_sets {
            return read(None);
        }
        let inside = self.inside.as_deref();
        let open = |path: &PathBuf| {
            let against = ComparedIndex::open(path, NearCondition::Counted(self.threshold()), params)?;
            against.inside(path, inside)
        };
        match self.against.iter().map(open).collect() {
            Ok(indexes) => Ok(EarlierResults { history: None, indexes }),
            Err(why) => read(Some(why)),
        }
    }
}

/// A history whose texts are read.
pub(super) struct History {
    /// Files of documents.
    pub(super) texts: Vec<PathBuf>,
    /// If not empty, only documents that are in one of these indexes are read.
    indexes: Vec<(PathBuf, Snapshot)>,
    /// The format of the files; for results, the names of the files determine it.
    pub(super) format: InputFormat,
}

impl History {
    /// Opens the documents that were kept in these folders of results; or the documents of `texts` that are in these
    /// indexes. `format` is the format of `texts`.
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
                     `dedup` made, or the texts with --texts, or estimate with --verify signature",
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

    /// Returns whether a document of the texts is part of the history. `found` counts the documents of each index.
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

    /// Refuses texts that do not contain each document of each index once, by the counts of [`has`](Self::has).
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

/// An index that is queried.
pub(super) struct ComparedIndex {
    snapshot: Snapshot,
    question: NearCondition,
    /// Whether only documents with the same value are near.
    is_inside: bool,
}

/// The condition under which a document is near.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NearCondition {
    /// Resemblance of at least this value, counted by the sets in the index.
    Counted(f64),
    /// Resemblance of at least this value, estimated.
    Resembling(f64),
    Within(u32),
}

impl ComparedIndex {
    /// Opens the index at `path`, or the index of the results at `path`.
    ///
    /// # Errors
    ///
    /// The index cannot be opened, or does not store the required data as `params` specify it; names the parameter.
    pub(super) fn open(path: &Path, question: NearCondition, params: &Params) -> anyhow::Result<Self> {
        let inside = path.join(INDEX);
        let of_results = kept_files(path).is_ok_and(|kept| kept.is_some());
        let index = if of_results { &inside } else { path };
        let snapshot = Index::open(index)?.snapshot();
        let same = match question {
            NearCondition::Counted(threshold) => return Self::counting(path, snapshot, threshold, params),
            NearCondition::Resembling(_) => snapshot.params().check_same_bands(params),
            NearCondition::Within(_) => snapshot.params().check_same_fingerprints(params),
        };
        same.with_context(|| {
            format!("--against {}: give the options with which it was made", path.display())
        })?;
        let keeps_minima = snapshot.params().minhash.is_none_or(|minhash| minhash.signature_bits > 0);
        if matches!(question, NearCondition::Resembling(_)) && !keeps_minima {
            // Documents that share a band may or may not be near, and the index stores nothing else to verify them.
            return Err(InvalidOptions::new(format!(
                "--against {}: keeps no signatures (--signature-bits 0), so that nothing shows how near documents \
                 are; build it with them",
                path.display()
            ))
            .into());
        }
        Ok(Self { snapshot, question, is_inside: false })
    }

    /// Returns the index, if it can be queried by sets of shingle hashes made with `params`.
    fn counting(path: &Path, snapshot: Snapshot, threshold: f64, params: &Params) -> anyhow::Result<Self> {
        let path = path.display();
        let kept = snapshot.params();
        let Some(min) = kept.near().threshold.filter(|_| kept.sets) else {
            return Err(InvalidOptions::new(format!(
                "--against {path}: its index keeps no sets (--sets none) to count resemblance by"
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

    /// Restricts the query to documents with the same value of this field, if there is one: the results at `path` must have
    /// been made with the same restriction.
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

    /// Returns the documents whose sets are near the set of a new document, with the same value if `is_inside`.
    fn counted(&self, set: &[u64], threshold: f64, inside: &[u8]) -> twindex::Result<Vec<Hit>> {
        let query = self.snapshot.resembling_set(set, threshold).unmarked();
        if !self.is_inside {
            return Ok(query.run()?.hits);
        }
        let hits = query.run_with_records()?.into_iter();
        Ok(hits.filter(|(_, record)| record.value == inside).map(|(hit, _)| hit).collect())
    }

    /// Returns the nearest document of the index, if one is near; if resemblance is counted, the near document with the
    /// smallest key.
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
                        Resemblance::Estimate { .. } => return None, // an index with sets counts
                    };
                    Some(Dropped { near: MeasuredNearness::Counted { intersection, union }, other: hit.key })
                }));
            }
            NearCondition::Resembling(threshold) => self.snapshot.resembling(sketch, threshold).estimated(),
            NearCondition::Within(within) => {
                let Some(fingerprint) = sketch.fingerprint() else { return Ok(None) };
                self.snapshot.within(fingerprint, within)
            }
        };
        let near = |hit: Hit| {
            let near = match (self.question, hit.distance, hit.resemblance) {
                (NearCondition::Within(_), Some(distance), _) => Some(MeasuredNearness::Distance(distance)),
                (_, _, Some(resemblance)) => Some(MeasuredNearness::Resemblance(resemblance)),
                _ => None, // what is not known to be near stays
            };
            near.map(|near| Dropped { near, other: hit.key })
        };
        Ok(query.unmarked().limit(1).run()?.hits.into_iter().next().and_then(near))
    }

    /// Returns the names of the columns for the nearness of a dropped document.
    pub(super) fn columns(&self) -> &'static str {
        match self.question {
            NearCondition::Counted(_) => ScoreKind::Resemblance.columns(),
            NearCondition::Resembling(_) => "resemblance\tstandard_error",
            NearCondition::Within(_) => ScoreKind::Distance.columns(),
        }
    }

    /// Returns the document of the histories for which a document is removed, if any is near: the one of the first history
    /// with a near document or, if resemblance is counted, the one with the smallest key.
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
