//! What a shingle weighs where resemblance is counted.

use twindex::params::MinhashWeights;

/// What a shingle weighs in a document, where resemblance is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Each distinct shingle the same.
    #[default]
    Distinct,
    /// Each as often as it occurs: term frequency.
    Frequencies,
}

impl Weights {
    /// What the parameters of an index say.
    pub(super) fn of_index(self) -> MinhashWeights {
        match self {
            Self::Distinct => MinhashWeights::Distinct,
            Self::Frequencies => MinhashWeights::Frequencies,
        }
    }
}
