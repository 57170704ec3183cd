//! In how many features documents must agree: Broder's r of k.

use clap::Args;
use twindex::params::{BANDS_MAX, FEATURE_BITS_MAX, MinhashParams};
use twindex::params::{FeatureScheme, Preset};
use twindex_join::Agreement;

use crate::options::Usage;

/// Bits of Broder's small features.
const BYTE: u32 = 8;

/// Options about the features, or bands, that documents have in common.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FeatureArgs {
    /// Only documents that agree in at least R features (bands): Broder's rule is 2 of the 6 of --preset broder-84
    /// [default: 1; with features of one byte, of which there are 8, 3 below 50,000 documents and 7 from there on]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..=i64::from(BANDS_MAX)))]
    pub(crate) sharing: Option<u16>,
    /// Compare only the first BITS of each feature, 1 to as many as the index keeps: 8 are features of one byte, and
    /// all that --preset small-8 keeps [default: all that are kept]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=i64::from(FEATURE_BITS_MAX)))]
    pub(crate) feature_bits: Option<u32>,
}

impl FeatureArgs {
    /// Whether any was given.
    pub(crate) fn are_given(self) -> bool {
        self.sharing.is_some() || self.feature_bits.is_some()
    }

    /// In what documents must agree, of an index of so many that keeps such features.
    pub(crate) fn agreement(self, kept: MinhashParams, documents: u64) -> anyhow::Result<Agreement> {
        let stored = u32::from(kept.feature_bits);
        let bits = self.feature_bits.unwrap_or(stored);
        if bits > stored {
            let why = format!(
                "--feature-bits {bits}: {stored} bits are kept of each feature here; ask for 1 to {stored}, or leave it \
                 out"
            );
            return Err(Usage::new(why).into());
        }
        let are_small = bits == BYTE && kept.bands == Preset::SMALL_8.scheme.groups;
        let usual = if are_small { Preset::common_bytes(documents) } else { 1 };
        let features = self.sharing.unwrap_or(usual);
        if features > kept.bands {
            let why = format!("--sharing {features}: a document has {} features (bands) here", kept.bands);
            return Err(Usage::new(why).into());
        }
        Ok(Agreement { features, bits })
    }
}

/// The share of the documents of this resemblance that agree so.
pub(crate) fn recall(kept: MinhashParams, agreement: Agreement, resemblance: f64) -> f64 {
    let scheme = FeatureScheme {
        groups: kept.bands,
        group_size: kept.rows,
        threshold: agreement.features,
        feature_bits: agreement.bits as u8,
    };
    scheme.fungible(resemblance)
}
