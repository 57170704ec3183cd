//! The number of features in which two documents must agree to be candidates: r of k features, in Broder's terms.

use twindex::params::{FEATURE_BITS_MAX, FeatureScheme, MinhashParams, Preset};
use twindex_join::Agreement;

use crate::error::InvalidOptions;

/// Number of bits of a small feature in Broder's scheme.
const BYTE: u32 = 8;

/// The condition under which two documents are candidates: how many features must agree, and in how many bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// The smallest number of features, or bands, that must agree: 2 of 6 in Broder's rule, the preset `broder-84`.
    /// Default: 1. With 8 features of one byte each, it is 3 for fewer than 50,000 documents and 7 for more.
    pub features: Option<u16>,
    /// The number of bits of each feature that are compared, at most the number stored. Default: all stored bits.
    pub bits: Option<u32>,
}

impl Sharing {
    /// Returns whether any of the options is set.
    #[must_use]
    pub fn are_given(self) -> bool {
        self.features.is_some() || self.bits.is_some()
    }

    /// Returns in how many features, and in how many of their bits, documents must agree. The default may depend on
    /// the number of documents in the index, `documents`.
    pub fn agreement(self, kept: MinhashParams, documents: u64) -> anyhow::Result<Agreement> {
        let stored = u32::from(kept.feature_bits);
        let bits = self.bits.unwrap_or(stored);
        if bits > stored {
            let why = format!(
                "--feature-bits {bits}: {stored} bits are kept of each feature here; ask for 1 to {stored}, or leave it \
                 out"
            );
            return Err(InvalidOptions::new(why).into());
        }
        let are_small = bits == BYTE && kept.bands == Preset::SMALL_8.scheme.groups;
        let usual = if are_small { Preset::common_bytes(documents) } else { 1 };
        let features = self.features.unwrap_or(usual);
        if features > kept.bands {
            let why = format!("--sharing {features}: a document has {} features (bands) here", kept.bands);
            return Err(InvalidOptions::new(why).into());
        }
        Ok(Agreement { features, bits })
    }
}

/// Returns the expected recall: the share of pairs with this resemblance that agree in enough features.
#[must_use]
pub fn recall(kept: MinhashParams, agreement: Agreement, resemblance: f64) -> f64 {
    let scheme = FeatureScheme {
        groups: kept.bands,
        group_size: kept.rows,
        threshold: agreement.features,
        feature_bits: agreement.bits as u8,
    };
    scheme.fungible(resemblance)
}

/// Returns the number of bits that a new index stores for each feature.
#[must_use]
pub fn bits_kept(preset: Option<Preset>) -> u8 {
    preset.map_or(FEATURE_BITS_MAX, |preset| preset.scheme.feature_bits.min(FEATURE_BITS_MAX))
}
