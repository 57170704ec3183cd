//! Computes the sets that represent texts or features in exact comparisons, and the weights of their shingles.

use std::sync::Arc;

use twindex::params::{MinhashWeights, Shingling, Tokens, WeightUnit};
use twindex::sketch::occurrences::set_apart;
use twindex::sketch::{Buffers, IdfTable, LeavesOut, LeftOut, Scratch, Shingler, Sketch, whole};
use twindex::{Error, Params, Sketcher};

use crate::error::InvalidOptions;
use crate::input::fields::features::Features;
use crate::passages::boilerplate::list::Boilerplate;
use crate::settings::rule::Weights;

/// Returns the weights as an index parameter. For [`Weights::Idf`], `table` must be given.
pub(crate) fn of_index(weights: Weights, table: Option<&IdfTable>) -> MinhashWeights {
    match (weights, table) {
        (Weights::Distinct, _) => MinhashWeights::Distinct,
        (Weights::Idf, Some(table)) => MinhashWeights::Idf { table: table.digest() },
        (Weights::Frequencies | Weights::Idf, _) => MinhashWeights::Frequencies,
    }
}

/// The error message for IDF weights without a table.
pub(crate) const IDF_WITHOUT_TABLE: &str =
    "--weights idf needs a table: --idf FILE, which `twindex idf` makes";
/// The error message for a weight unit that is given although all weights are integers.
pub(crate) const UNIT_OF_WHOLE_WEIGHTS: &str = "--weight-unit goes with --weights idf, and with --weights tf and --features-field: other weights are whole";

/// The kind of weights that shingles have, and the data from which these weights are computed.
#[derive(Clone, Debug, Default)]
pub(crate) enum ShingleWeights {
    /// [`Weights::Distinct`].
    #[default]
    Distinct,
    /// [`Weights::Frequencies`].
    Frequencies,
    /// [`Weights::Idf`] with this table, rounded to multiples of the unit ([`whole`]).
    Idf {
        /// The document frequency of each shingle.
        table: Arc<IdfTable>,
        /// The unit to which weights are rounded.
        unit: WeightUnit,
    },
}

impl ShingleWeights {
    /// Creates the weights for texts. The default unit is 1.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`] if the weights need a table and there is none, if the table is not used, or if a unit is
    /// given for integer weights.
    pub(crate) fn new(
        weights: Weights,
        table: Option<Arc<IdfTable>>,
        unit: Option<WeightUnit>,
    ) -> Result<Self, InvalidOptions> {
        match (weights, table) {
            (Weights::Idf, Some(table)) => Ok(Self::Idf { table, unit: unit.unwrap_or(WeightUnit::ONE) }),
            (Weights::Idf, None) => Err(InvalidOptions::new(IDF_WITHOUT_TABLE)),
            (_, Some(_)) => Err(InvalidOptions::new("--idf goes with --weights idf")),
            _ if unit.is_some() => Err(InvalidOptions::new(UNIT_OF_WHOLE_WEIGHTS)),
            (Weights::Distinct, None) => Ok(Self::Distinct),
            (Weights::Frequencies, None) => Ok(Self::Frequencies),
        }
    }

    /// Replaces the shingles in `set` with weighted elements. On entry, `set` has an entry for each occurrence of a
    /// shingle. On return, it has the distinct elements of the document in ascending order.
    ///
    /// # Errors
    ///
    /// The sum of the document's weights, in units, exceeds the maximum.
    pub(crate) fn apply(&self, set: &mut Vec<u64>) -> twindex::Result<()> {
        match self {
            Self::Distinct => {}
            Self::Frequencies => set_apart(set),
            Self::Idf { table, unit } => {
                set.sort_unstable();
                let mut elements = Vec::with_capacity(set.len());
                for same in set.chunk_by(|a, b| a == b) {
                    let count = unit.count((same.len() as u128) << 16, table.weight(same[0]));
                    whole::append(same[0], count, whole::ELEMENTS_MAX, &mut elements)?;
                }
                *set = elements;
            }
        }
        set.sort_unstable();
        set.dedup();
        Ok(())
    }
}

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

    /// Returns the number of words that the list of [`SetMaker::without`] removed from the document processed last, and
    /// whether it removed all words.
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
    /// shingling, or if a unit is given for integer weights. An error if this build does not support the shingling.
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
        // Feature vectors may have a unit even without IDF, because their weights may be fractions.
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
        // A sketcher computes the elements, because they must equal the elements of the document's sketch in an index.
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

    /// Ignores the parts of texts that this boilerplate list contains.
    #[must_use]
    pub fn without(mut self, list: Option<Arc<Boilerplate>>) -> Self {
        self.list = list;
        self
    }

    /// Returns whether a shingle may become several elements, so that a set may take more memory than its text.
    pub(crate) fn has_units(&self) -> bool {
        match &self.cut {
            Cut::Texts(_, weighing) => matches!(weighing, ShingleWeights::Idf { .. }),
            Cut::Features(_) => true,
        }
    }

    /// Returns the set that represents a document in comparisons, in ascending order. A text that is not UTF-8 has an
    /// empty set, so it is near only to equal texts.
    ///
    /// # Errors
    ///
    /// The total weight of the document exceeds [`ELEMENTS_MAX`](twindex::sketch::whole::ELEMENTS_MAX) units, a weight
    /// is out of its range, the bytes are not features, or the text is too long for the boilerplate list.
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
                // Text that the list contains is ignored.
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
