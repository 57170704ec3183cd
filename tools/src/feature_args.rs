//! Defines the options for the number of features in which documents must agree: Broder's r of k.

use clap::Args;
use twindex::params::{BANDS_MAX, FEATURE_BITS_MAX};
use twindex_corpus::sharing::Sharing;

/// Options for the features, or bands, that near documents must share.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FeatureArgs {
    /// Find only documents that agree in at least R features (bands): Broder's rule is 2 of the 6 of --preset broder-84
    /// [default: 1; with 8 features of one byte each, 3 below 50,000 documents and 7 from there on]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..=i64::from(BANDS_MAX)))]
    pub(crate) sharing: Option<u16>,
    /// Compare only the first BITS bits of each feature, 1 to the number that the index keeps; with 8, features of one
    /// byte, which is all that --preset small-8 keeps [default: all bits that are kept]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=i64::from(FEATURE_BITS_MAX)))]
    pub(crate) feature_bits: Option<u32>,
}

impl FeatureArgs {
    pub(crate) fn options(self) -> Sharing {
        Sharing { features: self.sharing, bits: self.feature_bits }
    }
}
