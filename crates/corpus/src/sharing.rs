//! In how many features documents must agree: Broder's r of k.

use twindex::params::{FEATURE_BITS_MAX, MinhashParams};
use twindex::params::{FeatureScheme, Preset};
use twindex_join::Agreement;

use crate::error::InvalidOptions;

/// Bits of Broder's small features.
const BYTE: u32 = 8;

/// In what documents must agree to be compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// In how many features, or bands, at least: Broder's rule is 2 of the 6 of the preset `broder-84`. 1 by default; with
    /// 8 features of one byte each, 3 below 50,000 documents and 7 from there on.
    pub features: Option<u16>,
    /// How many bits of each feature are compared, up to those that are kept, which is the default.
    pub bits: Option<u32>,
}

impl Sharing {
    /// Whether any was given.
    #[must_use]
    pub fn are_given(self) -> bool {
        self.features.is_some() || self.bits.is_some()
    }

    /// The number of features in which documents must agree, for an index of this size and these features.
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

/// The share of the documents of this resemblance that agree so.
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

/// Bits that a new index keeps of each feature.
#[must_use]
pub fn bits_kept(preset: Option<Preset>) -> u8 {
    preset.map_or(FEATURE_BITS_MAX, |preset| preset.scheme.feature_bits.min(FEATURE_BITS_MAX))
}
