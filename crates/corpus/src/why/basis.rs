//! Recomputes the score columns of the tables in a results folder from the texts.

use anyhow::{Context, bail};
use twindex::sketch::{LeftOut, jaccard};
use twindex::{Sketch, Sketcher};

use crate::input::fields::fingerprint::Code;
use crate::results::layout::DECIDED;
use crate::rule::score::{Score, ScoreKind};
use crate::sketching::documents::Sketching;
use crate::why::explanation::{Explanation, Reason, RunDescription, TableLine};
use crate::why::texts::DocumentContent;

/// The shingle set and the sketch of a document.
pub(crate) struct SetAndSketch {
    pub(crate) set: Vec<u64>,
    pub(crate) sketch: Sketch,
    /// The fingerprint, if the document is one.
    code: Option<Code>,
    /// Number of tokens in the text.
    pub(crate) tokens: u64,
    pub(crate) left_out: LeftOut,
}

/// The result of comparing two texts for equality.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Equal {
    No,
    ByteForByte,
    /// Equal after the requested normalization and folding.
    Normalised,
}

/// The kind of the score columns in a results table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhyColumns {
    Counted,
    Contained,
    Distance,
}

impl WhyColumns {
    pub(crate) fn of(columns: &[String]) -> anyhow::Result<Self> {
        let names = columns.iter().map(String::as_str).filter(|name| *name != DECIDED);
        let names: Vec<&str> = names.collect();
        Ok(match &names[..] {
            ["resemblance", "intersection", "union"] => Self::Counted,
            ["containment", "intersection", "shingles"] => Self::Contained,
            ["distance"] => Self::Distance,
            _ => bail!("the columns {} are none that `dedup` writes", names.join(", ")),
        })
    }

    /// Computes the score columns for two documents.
    pub(crate) fn columns(self, a: &SetAndSketch, b: &SetAndSketch) -> anyhow::Result<Vec<(String, String)>> {
        let (both, union) = jaccard(&a.set, &b.set);
        let counted = Score::Resemblance { intersection: both as u32, union: union as u32 };
        let (score, kind) = match self {
            Self::Counted => (counted, ScoreKind::Resemblance),
            // `a` is the removed document. The containment is the share of its shingles that `b` contains.
            Self::Contained => {
                let union = a.set.len() as u32;
                (Score::Resemblance { intersection: both as u32, union }, ScoreKind::Containment)
            }
            Self::Distance => {
                let codes = a.code.or(a.sketch.code()).zip(b.code.or(b.sketch.code()));
                let distance = codes.map_or(0, |(a, b)| a.distance(&b));
                (Score::Distance(distance), ScoreKind::Distance)
            }
        };
        let mut written = Vec::new();
        score.write(kind, &mut written)?;
        let written = String::from_utf8_lossy(&written).into_owned();
        let names = kind.columns().split('\t').map(str::to_owned);
        Ok(names.zip(written.split('\t').map(str::to_owned)).collect())
    }

    /// Returns the reason for the removal: equal texts, or the score in the table. Returns `None` if the score is
    /// unknown.
    pub(crate) fn reason(
        self,
        explanation: &Explanation,
        known: &RunDescription,
        equal: Equal,
    ) -> anyhow::Result<Option<Reason>> {
        if equal != Equal::No {
            return Ok(Some(Reason::Identical { normalised: equal == Equal::Normalised }));
        }
        let TableLine { file, line, columns } = &explanation.listed;
        // A single column `score` comes from clusters.tsv, which is read if pairs.tsv does not list the pair.
        let is_score = columns.len() == 1 && columns[0].0 == "score";
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
            Self::Distance => Reason::Distance { bits: number(0)?, within: known.within() },
        }))
    }
}

/// Returns whether the scores in a table equal the recomputed scores; `None` if the table has no score.
pub(crate) fn agrees(listed: &[(String, String)], counted: &[(String, String)]) -> Option<bool> {
    match listed {
        [(_, value)] if value == "-" => None,
        // clusters.tsv has only the first of the score columns.
        [(name, value)] if name == "score" => counted.first().map(|(_, counted)| counted == value),
        listed => Some(listed == counted),
    }
}

impl SetAndSketch {
    /// Shingles and sketches a document with the sketcher of the run.
    pub(crate) fn of(sketcher: &Sketcher, content: &DocumentContent) -> anyhow::Result<Self> {
        let mut sketching = Sketching::new(sketcher);
        let (mut sketch, mut set) = (Sketch::default(), Vec::new());
        sketching.sketch(content.lent(), &mut sketch)?;
        sketching.shingles(&mut set);
        let code = match content {
            DocumentContent::Fingerprint(code) => Some(*code),
            _ => None,
        };
        let (tokens, left_out) = (sketching.tokens(), sketching.left_out());
        Ok(Self { set, sketch, code, tokens, left_out })
    }
}
