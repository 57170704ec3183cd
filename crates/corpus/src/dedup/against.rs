//! Documents that are near one of another index: they are dropped before the rest is compared with one another.

use std::path::Path;

use anyhow::Context;
use twindex::{Index, KeyBuf, Params, Resemblance, Sketch, Snapshot};

use crate::error::InvalidOptions;

/// What documents are compared with.
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

/// A document that is dropped, and why.
pub(super) struct Dropped {
    pub(super) other: KeyBuf,
    near: Near,
}

enum Near {
    Resemblance(Resemblance),
    Distance(u32),
    /// They share a band, and the index has no signatures.
    Unknown,
}

impl Against {
    /// # Errors
    ///
    /// The index cannot be opened, or does not keep what is asked for, made as `params` make it; names the parameter.
    pub(super) fn open(path: &Path, question: Question, params: &Params) -> anyhow::Result<Self> {
        let snapshot = Index::open(path)?.snapshot();
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
            Question::Resembling(threshold) => self.snapshot.resembling(sketch, threshold)?.limit(1).run()?,
            Question::Within(within) => {
                let Some(fingerprint) = sketch.fingerprint() else { return Ok(None) };
                self.snapshot.within(fingerprint, within).limit(1).run()?
            }
        };
        Ok(answers.hits.into_iter().next().map(|hit| Dropped {
            near: match (self.question, hit.distance, hit.resemblance) {
                (Question::Within(_), Some(distance), _) => Near::Distance(distance),
                (_, _, Some(resemblance)) => Near::Resemblance(resemblance),
                _ => Near::Unknown,
            },
            other: hit.key,
        }))
    }

    /// The names of the columns that tell how near a dropped document is.
    pub(super) fn columns(&self) -> &'static str {
        match self.question {
            Question::Resembling(_) => "resemblance\tstandard_error",
            Question::Within(_) => "distance",
        }
    }
}

impl Dropped {
    /// How near it is, in these columns.
    pub(super) fn columns(&self) -> String {
        match self.near {
            Near::Resemblance(resemblance) => {
                format!("{:.6}\t{:.6}", resemblance.value(), resemblance.standard_error())
            }
            Near::Distance(distance) => distance.to_string(),
            Near::Unknown => "-\t-".to_owned(),
        }
    }
}
