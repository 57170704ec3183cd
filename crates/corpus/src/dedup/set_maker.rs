//! Computes the sets by which documents in memory are compared, from texts or features.

use std::sync::Arc;

use twindex::Error;
use twindex::params::{Shingling, Tokens, WeightUnit};
use twindex::sketch::{Buffers, IdfTable, LeavesOut, LeftOut, Scratch, Shingler, Sketch};
use twindex::{Params, Sketcher};
use twindex_passages::Boilerplate;

use super::weights::{ShingleWeights, of_index};
use crate::error::InvalidOptions;
use crate::input::Features;
use crate::settings::Weights;

/// Computes the sets of documents. A document is a text or, if the shingling is [`Tokens::Features`], the
/// [canonical](Features::canonical) bytes of [`Features`].
///
/// ```
/// use twindex::params::Shingling;
/// use twindex_corpus::{SetMaker, SetWork, Weights};
///
/// let size = |weights| {
///     let sets = SetMaker::new(&Shingling::words(1, 0), weights, None, None)?;
///     anyhow::Ok(sets.set(b"a rose is a rose", &mut SetWork::default())?.len())
/// };
/// assert_eq!((size(Weights::Distinct)?, size(Weights::Frequencies)?), (3, 5));
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct SetMaker {
    cut: Cut,
    list: Option<Arc<Boilerplate>>,
}

#[derive(Clone, Debug)]
enum Cut {
    Texts(Shingler, ShingleWeights),
    Features(Box<Sketcher>),
}

/// Working memory of a [`SetMaker`], and counts of the document that it processed last.
#[derive(Debug, Default)]
pub struct SetWork {
    buffers: Buffers,
    rest: String,
    scratch: Scratch,
    sketch: Sketch,
    hashes: Vec<u64>,
    vector: Vec<(u64, i64)>,
    tokens: u64,
    left_out: LeftOut,
}

impl SetWork {
    /// Returns the number of tokens, or of used features, of the document processed last.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the number of words of that document that were ignored because of [`SetMaker::without`], and whether all
    /// were.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }
}

impl SetMaker {
    /// Creates a set maker for this shingling and these weights. `table` is the table of [`Weights::Idf`].
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`] if the weights need a table and there is none, if the table is not used or has another
    /// shingling, or if a unit is given for integer weights; a shingling that this build does not support.
    pub fn new(
        shingling: &Shingling,
        weights: Weights,
        table: Option<Arc<IdfTable>>,
        unit: Option<WeightUnit>,
    ) -> anyhow::Result<Self> {
        let is_features = shingling.tokens == Tokens::Features;
        if is_features && weights == Weights::Distinct && unit.is_some() {
            return Err(InvalidOptions::new("--weight-unit goes with weights, and these are distinct").into());
        }
        // The weights in feature vectors may be fractions even without IDF.
        let of_weighing = unit.filter(|_| !is_features || weights == Weights::Idf);
        let weighing = ShingleWeights::new(weights, table.clone(), of_weighing)?;
        if let Some(table) = &table {
            table.check_shingling(shingling).map_err(|error| InvalidOptions::new(error.to_string()))?;
        }
        if let Some(list) = shingling.boilerplate {
            return Err(InvalidOptions::new(format!(
                "idf: the table was made without the spans of the list {list:032x}, which documents in memory do not have; \
                 give a table that counted all words"
            ))
            .into());
        }
        if !is_features {
            return Ok(Self { cut: Cut::Texts(Shingler::new(shingling)?, weighing), list: None });
        }
        // The elements of a document must equal the elements of its sketch in an index, so they are computed in the same way.
        let mut params = Params::builder().shingling(shingling.clone()).minhash(1, 1).sets();
        if weights != Weights::Distinct {
            params = params.minhash_weights(of_index(weights, table.as_deref()));
            params = params.weight_unit(unit.unwrap_or(WeightUnit::ONE));
        }
        let params = params.build()?;
        let sketcher = match table {
            None => Sketcher::new(&params)?,
            Some(table) => Sketcher::with_idf(&params, table)?,
        };
        Ok(Self { cut: Cut::Features(Box::new(sketcher.with_sets_of_wordless_only())), list: None })
    }

    /// Ignores the spans of this list in texts.
    #[must_use]
    pub fn without(mut self, list: Option<Arc<Boilerplate>>) -> Self {
        self.list = list;
        self
    }

    /// Returns whether a shingle may become several elements, so that a set may take more memory than its text.
    pub(super) fn has_units(&self) -> bool {
        match &self.cut {
            Cut::Texts(_, weighing) => matches!(weighing, ShingleWeights::Idf { .. }),
            Cut::Features(_) => true,
        }
    }

    /// Returns the set by which a document is compared, in ascending order. Empty for a text that is not UTF-8; such a
    /// text is near only to equal texts.
    ///
    /// # Errors
    ///
    /// The document has more units of weight than allowed ([`ELEMENTS_MAX`](twindex::sketch::whole::ELEMENTS_MAX)), a
    /// weight is out of its range, the bytes are not features, or the text is too long for the boilerplate list.
    pub fn set(&self, document: &[u8], work: &mut SetWork) -> twindex::Result<Vec<u64>> {
        let mut set = Vec::new();
        match &self.cut {
            Cut::Texts(shingler, weighing) => {
                let text = std::str::from_utf8(document).unwrap_or_default();
                let SetWork { buffers, rest, left_out, .. } = work;
                *left_out = match &self.list {
                    None => LeftOut::default(),
                    Some(list) => list.leave_out(text, rest)?,
                };
                // Text inside spans of the list is ignored.
                let counted = if left_out.words > 0 { &**rest } else { text };
                if matches!(weighing, ShingleWeights::Distinct) {
                    shingler.distinct(counted, buffers, &mut set);
                } else {
                    shingler.occurrences(counted, buffers, &mut set);
                    weighing.apply(&mut set)?;
                }
                work.tokens = work.buffers.tokens() as u64;
            }
            Cut::Features(sketcher) => {
                let Some(features) = Features::from_canonical(document) else {
                    return Err(Error::Invalid(
                        "features: expected the canonical bytes of features, found others".into(),
                    ));
                };
                let SetWork { scratch, sketch, hashes, vector, .. } = work;
                features.sketch_into(sketcher, (hashes, vector), scratch, sketch)?;
                set.extend_from_slice(work.scratch.elements());
                set.sort_unstable();
                set.dedup();
                work.tokens = work.scratch.tokens() as u64;
            }
        }
        Ok(set)
    }
}
