//! The weights of shingles if resemblance is computed exactly.

use std::sync::Arc;

use twindex::params::{MinhashWeights, WeightUnit};
use twindex::sketch::IdfTable;
use twindex::sketch::occurrences::set_apart;
use twindex::sketch::whole;

use crate::InvalidOptions;
use crate::settings::Weights;

/// Returns the weights as an index parameter. [`Weights::Idf`] needs a table.
pub(super) fn of_index(weights: Weights, table: Option<&IdfTable>) -> MinhashWeights {
    match (weights, table) {
        (Weights::Distinct, _) => MinhashWeights::Distinct,
        (Weights::Idf, Some(table)) => MinhashWeights::Idf { table: table.digest() },
        (Weights::Frequencies | Weights::Idf, _) => MinhashWeights::Frequencies,
    }
}

/// Why weights of a table are refused if there is none.
pub(super) const IDF_WITHOUT_TABLE: &str =
    "--weights idf needs a table: --idf FILE, which `twindex idf` makes";
/// Why a unit is refused if all weights are integers.
pub(super) const UNIT_OF_WHOLE_WEIGHTS: &str = "--weight-unit goes with --weights idf, and with --weights tf and --features-field: other weights are whole";

/// The weights of shingles with the data to compute them.
#[derive(Clone, Debug, Default)]
pub(super) enum ShingleWeights {
    /// [`Weights::Distinct`].
    #[default]
    Distinct,
    /// [`Weights::Frequencies`].
    Frequencies,
    /// [`Weights::Idf`] with this table, rounded to multiples of the unit ([`whole`]).
    Idf {
        /// The number of documents that contain each shingle.
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
    pub(super) fn new(
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

    /// Replaces the shingles in `set`, which has one entry for each occurrence, with the weighted elements of the
    /// document, distinct and in ascending order.
    ///
    /// # Errors
    ///
    /// The document has more units of weight than allowed.
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
