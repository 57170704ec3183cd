//! The weights of shingles where resemblance is counted.

use std::sync::Arc;

use twindex::params::{MinhashWeights, WeightUnit};
use twindex::sketch::IdfTable;
use twindex::sketch::occurrences::set_apart;
use twindex::sketch::whole;

use crate::InvalidOptions;

/// The weights of shingles in a document, where resemblance is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All distinct shingles have the same weight.
    #[default]
    Distinct,
    /// Term frequency: the number of occurrences of a shingle. A feature of the caller has the weight in its vector.
    Frequencies,
    /// Term frequency, or the weight of a feature, times the inverse document frequency in a table.
    Idf,
}

impl Weights {
    /// Returns the weights as a parameter of an index. [`Idf`](Self::Idf) needs a table.
    pub(super) fn of_index(self, table: Option<&IdfTable>) -> MinhashWeights {
        match (self, table) {
            (Self::Distinct, _) => MinhashWeights::Distinct,
            (Self::Idf, Some(table)) => MinhashWeights::Idf { table: table.digest() },
            (Self::Frequencies | Self::Idf, _) => MinhashWeights::Frequencies,
        }
    }
}

/// The weights of shingles, with the data to compute them, for texts in memory.
#[derive(Clone, Debug, Default)]
pub(super) enum ShingleWeights {
    /// [`Weights::Distinct`].
    #[default]
    Distinct,
    /// [`Weights::Frequencies`].
    Frequencies,
    /// [`Weights::Idf`], by this table, rounded to whole units ([`whole`]).
    Idf {
        /// The number of documents with each shingle.
        table: Arc<IdfTable>,
        /// The unit to which weights are rounded.
        unit: WeightUnit,
    },
}

impl ShingleWeights {
    /// Creates these weights for texts; the unit is 1 by default.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`] for weights without the table they need, for a table that is not used, and for a unit of weights
    /// that are integers anyway.
    pub(super) fn new(
        weights: Weights,
        table: Option<Arc<IdfTable>>,
        unit: Option<WeightUnit>,
    ) -> Result<Self, InvalidOptions> {
        match (weights, table) {
            (Weights::Idf, Some(table)) => Ok(Self::Idf { table, unit: unit.unwrap_or(WeightUnit::ONE) }),
            (Weights::Idf, None) => {
                Err(InvalidOptions::new("weights: inverse document frequencies need an idf table"))
            }
            (_, Some(_)) => {
                Err(InvalidOptions::new("idf: a table goes with weights by inverse document frequency"))
            }
            _ if unit.is_some() => Err(InvalidOptions::new(
                "weight_unit: goes with weights by inverse document frequency: others are whole",
            )),
            (Weights::Distinct, None) => Ok(Self::Distinct),
            (Weights::Frequencies, None) => Ok(Self::Frequencies),
        }
    }

    /// Replaces the shingles in `set`, one for each occurrence, by the weighted elements of the document, ascending and
    /// distinct.
    ///
    /// # Errors
    ///
    /// The document has more units than allowed.
    pub(super) fn apply(&self, set: &mut Vec<u64>) -> twindex::Result<()> {
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
