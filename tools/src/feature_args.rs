//! Options for the number of features in which documents must agree: Broder's r of k.

use clap::Args;
use twindex::params::{BANDS_MAX, FEATURE_BITS_MAX};
use twindex_corpus::sharing::Sharing;

/// Options about the features, or bands, that documents have in common.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FeatureArgs {
    /// Only documents that agree in at least R features (bands): Broder's rule is 2 of the 6 of --preset broder-84
    /// [default: 1; with features of one byte, 8 in number, 3 below 50,000 documents and 7 from there on]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..=i64::from(BANDS_MAX)))]
    pub(crate) sharing: Option<u16>,
    /// Compare only the first BITS of each feature, 1 to as many as the index keeps: 8 are features of one byte, and
    /// all that --preset small-8 keeps [default: all that are kept]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=i64::from(FEATURE_BITS_MAX)))]
    pub(crate) feature_bits: Option<u32>,
}

impl FeatureArgs {
    /// Returns the options as given.
    pub(crate) fn options(self) -> Sharing {
        Sharing { features: self.sharing, bits: self.feature_bits }
    }
}
