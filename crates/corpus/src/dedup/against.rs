//! What was kept before: a history, of which documents that are near go before they are compared with each other.
//!
//! Where it is counted, the texts of the history are read, and its documents come before all others. Where it is
//! estimated, and by fingerprints, an index is asked.

use std::path::{Path, PathBuf};

use anyhow::Context;
use twindex::{Index, Key, Params, Sketch, Snapshot};

use super::dropped::{Dropped, HowNear};
use super::layout::{INDEX, kept_files};
use super::run_file::RunFile;
use crate::error::InvalidOptions;
use crate::input::InputFormat;

/// A history whose texts are read.
pub(super) struct History {
    /// Files of documents.
    pub(super) texts: Vec<PathBuf>,
    /// Only documents that are in one of these, where there are any.
    indexes: Vec<(PathBuf, Snapshot)>,
    /// How the files are read: those of results by their names.
    pub(super) format: InputFormat,
}

impl History {
    /// The documents that were kept in these folders of results; or those of `texts` that are in these indexes.
    /// `format` is that of `texts`.
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
                    "--against {}: its run read pages in HTML, of which kept.jsonl has the markup, not the text; name the \
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

    /// Whether a document of the texts is one of the history. `found` counts the documents of each index.
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

    /// Refuses texts that do not have each document of each index once, by what [`has`](Self::has) has counted.
    pub(super) fn check(&self, found: &[u64]) -> anyhow::Result<()> {
        let found = found.iter().copied().chain(std::iter::repeat(0));
        for ((path, snapshot), found) in self.indexes.iter().zip(found) {
            let expected = snapshot.documents();
            if found != expected {
                return Err(InvalidOptions::new(format!(
                    "--texts: has {found} of the {expected} documents of {}, each of which must be there once",
                    path.display()
                ))
                .into());
            }
        }
        Ok(())
    }
}

/// An index that is asked.
pub(super) struct Against {
    snapshot: Snapshot,
    question: Question,
}

/// When a document is near.
#[derive(Clone, Copy)]
pub(super) enum Question {
    Resembling(f64),
    Within(u32),
}

impl Against {
    /// The index at `path`, or of the results that stand there.
    ///
    /// # Errors
    ///
    /// The index cannot be opened, or does not keep what is asked for, made as `params` make it; names the parameter.
    pub(super) fn open(path: &Path, question: Question, params: &Params) -> anyhow::Result<Self> {
        let inside = path.join(INDEX);
        let of_results = kept_files(path).is_ok_and(|kept| kept.is_some());
        let index = if of_results { &inside } else { path };
        let snapshot = Index::open(index)?.snapshot();
        let same = match question {
            Question::Resembling(_) => snapshot.params().check_same_bands(params),
            Question::Within(_) => snapshot.params().check_same_fingerprints(params),
        };
        same.with_context(|| {
            format!("--against {}: give the options with which it was made", path.display())
        })?;
        let keeps_minima = snapshot.params().minhash.is_none_or(|minhash| minhash.signature_bits > 0);
        if matches!(question, Question::Resembling(_)) && !keeps_minima {
            // Who shares a band may be near or not, and nothing could tell.
            return Err(InvalidOptions::new(format!(
                "--against {}: keeps no signatures (--signature-bits 0), and so nothing that tells how near documents \
                 are; build it with them",
                path.display()
            ))
            .into());
        }
        Ok(Self { snapshot, question })
    }

    /// The nearest document of the index, if one is near.
    pub(super) fn nearest(&self, sketch: &Sketch) -> twindex::Result<Option<Dropped>> {
        let answers = match self.question {
            Question::Resembling(threshold) => {
                self.snapshot.resembling(sketch, threshold)?.estimated().limit(1).run()?
            }
            Question::Within(within) => {
                let Some(fingerprint) = sketch.fingerprint() else { return Ok(None) };
                self.snapshot.within(fingerprint, within).limit(1).run()?
            }
        };
        let near = |hit: twindex::Hit| {
            let near = match (self.question, hit.distance, hit.resemblance) {
                (Question::Within(_), Some(distance), _) => Some(HowNear::Distance(distance)),
                (_, _, Some(resemblance)) => Some(HowNear::Resemblance(resemblance)),
                _ => None, // what is not known to be near stays
            };
            near.map(|near| Dropped { near, other: hit.key })
        };
        Ok(answers.hits.into_iter().next().and_then(near))
    }

    /// The names of the columns that tell how near a dropped document is.
    pub(super) fn columns(&self) -> &'static str {
        match self.question {
            Question::Resembling(_) => "resemblance\tstandard_error",
            Question::Within(_) => "distance",
        }
    }
}
