//! The table columns that show how near two documents are, and their recomputation from the texts.

use anyhow::{Context, bail};
use twindex::sketch::{LeftOut, jaccard, matches, pack};
use twindex::{Sketch, Sketcher};
use twindex_join::{Common, SampledBy};

use super::super::score::{Estimate, Sampled, Score, ScoreKind};
use super::texts::DocumentContent;
use super::{Explanation, Reason, RunDescription, TableLine};
use crate::sketching::Sketching;

/// The shingle set and the sketch of a document.
pub(super) struct SetAndSketch {
    pub(super) set: Vec<u64>,
    pub(super) sketch: Sketch,
    pub(super) left_out: LeftOut,
}

/// The result of comparing two texts for equality.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Equal {
    No,
    ByteForByte,
    /// Equal after the requested normalization and folding.
    Normalised,
}

/// The kind of the score columns in a results table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhyColumns {
    Counted,
    Contained,
    Estimated,
    /// Estimated from signatures in an index that stores this number of bits per minimum.
    EstimatedBy(u8),
    Distance,
    Band,
}

impl WhyColumns {
    pub(super) fn of(columns: &[String]) -> anyhow::Result<Self> {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        Ok(match &names[..] {
            ["resemblance", "intersection", "union"] => Self::Counted,
            ["containment", "intersection", "shingles"] => Self::Contained,
            ["resemblance", "standard_error"] => Self::Estimated,
            ["distance"] => Self::Distance,
            ["resemblance"] => Self::Band,
            _ => bail!("the columns {} are none that `dedup` writes", names.join(", ")),
        })
    }

    /// Computes the score columns for two documents.
    pub(super) fn columns(
        self,
        known: &RunDescription,
        a: &SetAndSketch,
        b: &SetAndSketch,
        is_identical: bool,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let (both, union) = jaccard(&a.set, &b.set);
        let counted = Score::Resemblance { intersection: both as u32, union: union as u32 };
        let minhash = known.params.minhash;
        let (score, kind) = match self {
            Self::Counted => (counted, ScoreKind::Resemblance),
            // `a` is the removed document, whose shingles are counted.
            Self::Contained => {
                let union = a.set.len() as u32;
                (Score::Resemblance { intersection: both as u32, union }, ScoreKind::Containment)
            }
            Self::Estimated if is_identical => (counted, ScoreKind::Sampled),
            // Only `--method shingles` stores such sketches.
            Self::Estimated if (known.params.modulus, known.params.bottom) != (0, 0) => {
                let by = match known.params.modulus {
                    0 => SampledBy::Bottom(known.params.bottom),
                    modulus => SampledBy::Modulus(modulus),
                };
                let elements = |one: &SetAndSketch| match by {
                    SampledBy::Bottom(_) => one.sketch.bottom().to_vec(),
                    SampledBy::Modulus(_) => one.sketch.modular().to_vec(),
                };
                let (a, b) = (elements(a), elements(b));
                let common = Common::of(&by.sample(&a), &by.sample(&b));
                (
                    common.map_or(Score::Candidate, |common| Score::Sampled(Sampled::from(common))),
                    ScoreKind::Sampled,
                )
            }
            Self::Estimated | Self::EstimatedBy(_) => {
                let own = minhash.map_or(0, |minhash| minhash.signature_bits);
                let bits = if let Self::EstimatedBy(bits) = self { bits } else { own };
                let minima = minhash.map_or(0, |minhash| minhash.minima());
                let packed = |one: &SetAndSketch| {
                    let mut packed = Vec::new();
                    pack(one.sketch.signature(), bits, &mut packed);
                    packed
                };
                let matches = matches(&packed(a), &packed(b), minima, bits) as u32;
                let minima = minima as u32;
                let estimate = Score::Estimate(Estimate { matches, minima, bits });
                (estimate, ScoreKind::Estimate { minima, bits })
            }
            Self::Distance => {
                let prints = a.sketch.fingerprint().zip(b.sketch.fingerprint());
                let distance = prints.map_or(0, |(a, b)| (a.0 ^ b.0).count_ones());
                (Score::Distance(distance), ScoreKind::Distance)
            }
            Self::Band if is_identical => (counted, ScoreKind::Candidate),
            Self::Band => (Score::Candidate, ScoreKind::Candidate),
        };
        let mut written = Vec::new();
        score.write(kind, &mut written)?;
        let written = String::from_utf8_lossy(&written).into_owned();
        let names = kind.columns().split('\t').map(str::to_owned);
        Ok(names.zip(written.split('\t').map(str::to_owned)).collect())
    }

    /// Returns the reason for the removal, from the score in the table or because the texts are identical; `None` if
    /// unknown.
    pub(super) fn reason(
        self,
        explanation: &Explanation,
        known: &RunDescription,
        equal: Equal,
    ) -> anyhow::Result<Option<Reason>> {
        if equal != Equal::No {
            return Ok(Some(Reason::Identical { normalised: equal == Equal::Normalised }));
        }
        let TableLine { file, line, columns } = &explanation.listed;
        // The score is from clusters.tsv, so pairs.tsv does not list this pair.
        let is_score = columns.len() == 1 && columns[0].0 == "score";
        if is_score && known.by_components()? {
            return Ok(Some(Reason::Chain));
        }
        let columns = match &explanation.recomputed {
            Some(recomputed) if is_score => recomputed,
            None if is_score => return Ok(None),
            _ => columns,
        };
        let number = |at: usize| -> anyhow::Result<u64> {
            let (name, value) = &columns[at];
            value.parse().with_context(|| {
                format!(
                    "{}:{line}: expected a number as {name}, found `{}`",
                    file.display(),
                    value.escape_debug()
                )
            })
        };
        let threshold = known.threshold();
        Ok(Some(match self {
            Self::Counted => Reason::Counted { intersection: number(1)?, union: number(2)?, threshold },
            Self::Contained => {
                Reason::Contained { intersection: number(1)?, shingles: number(2)?, threshold }
            }
            Self::Estimated | Self::EstimatedBy(_) => Reason::Estimated {
                resemblance: columns[0].1.clone(),
                standard_error: columns[1].1.clone(),
                threshold,
            },
            Self::Distance => Reason::Distance { bits: number(0)?, within: known.within() },
            Self::Band => Reason::Band,
        }))
    }
}

/// Returns whether the scores in a table equal the computed ones; `None` if the table has no score.
pub(super) fn agrees(listed: &[(String, String)], counted: &[(String, String)]) -> Option<bool> {
    match listed {
        [(_, value)] if value == "-" => None,
        // clusters.tsv has only the first of the score columns.
        [(name, value)] if name == "score" => counted.first().map(|(_, counted)| counted == value),
        listed => Some(listed == counted),
    }
}

impl SetAndSketch {
    /// Shingles and sketches a document with the sketcher of the run.
    pub(super) fn of(sketcher: &Sketcher, content: &DocumentContent) -> anyhow::Result<Self> {
        let mut sketching = Sketching::new(sketcher);
        let (mut sketch, mut set) = (Sketch::default(), Vec::new());
        sketching.sketch(content.lent(), &mut sketch)?;
        sketching.shingles(&mut set);
        Ok(Self { set, sketch, left_out: sketching.left_out() })
    }
}
