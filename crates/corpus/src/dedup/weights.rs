//! What a shingle weighs where resemblance is counted.

use std::sync::Arc;

use twindex::params::{MinhashWeights, WeightUnit};
use twindex::sketch::IdfTable;
use twindex::sketch::occurrences::set_apart;
use twindex::sketch::whole;

use crate::InvalidOptions;

/// The weights of shingles in a document, where resemblance is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Each distinct shingle the same.
    #[default]
    Distinct,
    /// Each as often as it occurs: term frequency. A feature of the caller's as much as its vector says.
    Frequencies,
    /// Term frequency, or the weight of a feature, times inverse document frequency, by a table.
    Idf,
}

impl Weights {
    /// The weights in the parameters of an index. [`Idf`](Self::Idf) has a table.
    pub(super) fn of_index(self, table: Option<&IdfTable>) -> MinhashWeights {
        match (self, table) {
            (Self::Distinct, _) => MinhashWeights::Distinct,
            (Self::Idf, Some(table)) => MinhashWeights::Idf { table: table.digest() },
            (Self::Frequencies | Self::Idf, _) => MinhashWeights::Frequencies,
        }
    }
}

/// The weights of shingles, with the data to count them: for texts in memory.
#[derive(Clone, Debug, Default)]
pub(super) enum ShingleWeights {
    /// [`Weights::Distinct`].
    #[default]
    Distinct,
    /// [`Weights::Frequencies`].
    Frequencies,
    /// [`Weights::Idf`], by this table, rounded to whole units ([`whole`]).
    Idf {
        /// In how many documents each shingle is.
        table: Arc<IdfTable>,
        /// The unit to which weights are rounded.
        unit: WeightUnit,
    },
}

impl ShingleWeights {
    /// These weights, for texts; the unit is 1 unless it is given.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`] for weights that need a table and have none, for a table that nothing needs, and for a unit of
    /// weights that are whole anyway.
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

    /// The elements of a document whose shingles, one for each occurrence, are in `set`, ascending and each once.
    ///
    /// # Errors
    ///
    /// More units than a document may have.
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
