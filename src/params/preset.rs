//! Feature schemes (k features of s minima each; r features must agree), and named schemes from the literature.
//!
//! The [`planner`](crate::planner) computes the probability that the required number of features agree.

/// A feature scheme: how features are computed from minima, and how many features two documents must share to be
/// near-duplicates.
///
/// Broder's parameters are k = [`groups`](Self::groups), s = [`group_size`](Self::group_size) and r =
/// [`threshold`](Self::threshold). The bands of locality-sensitive hashing are the case r = 1.
///
/// **At least r, or more than r?** Broder's slides say that documents are fungible if they have *more than* r common
/// features, but the sum on the next slide starts at i = r, which means *at least* r. Here r is the smallest sufficient
/// number, as in the sum. At resemblance 0.9 his two presets, 6 x 14 with r = 2 and 8 x 25 with r = 1, then accept
/// 0.415 and 0.449 of all pairs. These two values are so close that he must have meant *at least* r; with *more than* r
/// they would be 0.137 and 0.108. For *more than* r, use [`more_than_threshold`](Self::more_than_threshold).
///
/// ```
/// use twindex::params::Preset;
/// let (six, eight) = (Preset::BRODER_84.scheme, Preset::BRODER_200.scheme);
/// assert!((six.fungible(0.9) - 0.415).abs() < 5e-4);
/// assert!((eight.fungible(0.9) - 0.449).abs() < 5e-4);
/// assert!((six.more_than_threshold().fungible(0.9) - 0.137).abs() < 5e-4);
/// assert!((eight.more_than_threshold().fungible(0.9) - 0.108).abs() < 5e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeatureScheme {
    /// k: the number of features of a document.
    pub groups: u16,
    /// s: the number of minima in each feature.
    pub group_size: u16,
    /// r: the minimum number of features that must agree. 0 accepts every pair.
    pub threshold: u16,
    /// The number of bits stored of each feature, 0 to 64. Two features that are computed from different minima still
    /// agree with probability `2^-bits`.
    pub feature_bits: u8,
}

impl FeatureScheme {
    /// Creates a scheme with features of 64 bits.
    #[must_use]
    pub const fn new(groups: u16, group_size: u16, threshold: u16) -> Self {
        Self { groups, group_size, threshold, feature_bits: 64 }
    }

    /// Returns t, the number of minima of a signature: `groups x group_size`.
    #[must_use]
    pub const fn minima(&self) -> u32 {
        self.groups as u32 * self.group_size as u32
    }

    /// Returns the scheme with threshold r + 1, for sources in which *more than r* features must agree.
    #[must_use]
    pub const fn more_than_threshold(&self) -> Self {
        Self { threshold: self.threshold.saturating_add(1), ..*self }
    }
}

/// A feature scheme from the literature or from another program.
///
/// P(fungible) is the probability that a pair has the required number of common features. `docs/choosing.md` lists it
/// for each preset at resemblances from 0.5 to 0.95. The constants here state P(fungible) at 0.9.
///
/// An index looks up each feature separately, so its candidates are all pairs that share at least one feature
/// ([`Banding::recall`](crate::planner::Banding::recall)). Of these, [`fungible`](fn@twindex_sketch::fungible) accepts
/// the pairs with r common features.
///
/// ```
/// use twindex::params::{FeatureScheme, Preset};
/// assert_eq!(Preset::named("broder-84"), Some(Preset::BRODER_84));
/// assert_eq!(Preset::BRODER_84.scheme, FeatureScheme::new(6, 14, 2));
/// assert_eq!(Preset::named("broder"), None);
/// let params = twindex::Params::builder().preset(Preset::BRODER_84).build()?;
/// assert_eq!(params.minhash.unwrap().minima(), 84);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preset {
    /// The name of the preset, also used by `twindex build --preset`.
    pub name: &'static str,
    /// The feature scheme.
    pub scheme: FeatureScheme,
    /// The author and the purpose of the preset.
    pub source: &'static str,
}

impl Preset {
    /// 84 minima; 2 of 6 features must agree. Designed for resemblance 0.9 with 48 bytes for each document, and used in
    /// `AltaVista`. P(fungible) is 0.415.
    pub const BRODER_84: Self = Self {
        name: "broder-84",
        scheme: FeatureScheme::new(6, 14, 2),
        source: "Broder, Identifying and filtering near-duplicate documents, 2000: AltaVista",
    };
    /// 200 minima; 1 of 8 features must agree. Also designed for resemblance 0.9, for lookups by a single feature.
    /// P(fungible) is 0.449.
    pub const BRODER_200: Self = Self {
        name: "broder-200",
        scheme: FeatureScheme::new(8, 25, 1),
        source: "Broder, Algorithms for duplicate documents, 2005: the variant of 200 samples",
    };
    /// 8 features of one byte; 3 must agree. The features of a document take 8 bytes, or about 15 bytes in an index.
    /// The index finds the documents that share at least one feature
    /// ([`ParamsBuilder::feature_bits`](crate::params::ParamsBuilder::feature_bits)). **For less than about 50,000
    /// documents**, such as the pages of one host.
    ///
    /// Unrelated documents agree in 3 of 8 bytes with probability 3.3e-6, once in 304,000 pairs. So each of n documents
    /// has n / 304,000 accidental partners. With 50,000 documents one document in six has an accidental partner (4,112
    /// pairs); with 10,000 documents one in 30 (164 pairs). Above 50,000 documents, accidental pairs can outnumber true
    /// pairs. From 304,000 documents on, each document has one accidental partner on average, and chains of accidental
    /// pairs join most of the collection into one cluster. If 7 of 8 bytes must agree, the first accidental pair is
    /// expected only at 134 million documents. But groups of 8 minima then find just 14 in 1,000 pairs of resemblance
    /// 0.9 (Broder: "filter is not so sharp"). To find most of these pairs, groups must have one or two minima.
    ///
    /// Broder specifies only the size of a feature, one byte, and the threshold. Groups of 12 minima are our choice:
    /// the scheme then accepts 0.411 of the pairs at resemblance 0.9, closest to [`BRODER_84`](Self::BRODER_84).
    pub const SMALL_8: Self = Self {
        name: "small-8",
        scheme: FeatureScheme { groups: 8, group_size: 12, threshold: 3, feature_bits: 8 },
        source: "Broder, Algorithms for duplicate documents, 2005: 8 bytes are enough; groups of 12 are ours",
    };
    /// The default of `twindex`, for thresholds of 0.8 and above. P(fungible) is 1.000; at resemblance 0.8 it is 0.998.
    pub const LSH_20X6: Self = Self {
        name: "lsh-20x6",
        scheme: FeatureScheme::new(20, 6, 1),
        source: "twindex: the most selective bands of 120 minima with a recall of 0.995 at 0.8",
    };
    /// 128 minima. Near resemblance 0.75, P(fungible) rises more steeply than with [`LSH_20X6`](Self::LSH_20X6).
    /// P(fungible) is 1.000; at 0.8 it is 0.947.
    pub const LSH_16X8: Self = Self {
        name: "lsh-16x8",
        scheme: FeatureScheme::new(16, 8, 1),
        source: "datasketch, MinHashLSH: the example of params=(16, 8) with 128 permutations",
    };
    /// The bands that datasketch computes by default for a threshold of 0.9, giving false positives and false negatives
    /// equal weights. P(fungible) is 0.311.
    pub const DATASKETCH: Self = Self {
        name: "datasketch",
        scheme: FeatureScheme::new(5, 25, 1),
        source: "datasketch, MinHashLSH: threshold=0.9, num_perm=128",
    };
    /// The bands that text-dedup computes by default for a threshold of 0.7, by the same rule as
    /// [`DATASKETCH`](Self::DATASKETCH). P(fungible) is 1.000; at 0.7 it is 0.511.
    pub const TEXT_DEDUP: Self = Self {
        name: "text-dedup",
        scheme: FeatureScheme::new(25, 10, 1),
        source: "text-dedup, text_dedup.minhash: threshold 0.7, num_perm 256",
    };
    /// The default of datatrove, with which `FineWeb` was made. P(fungible) is 1.000; at 0.8 it is 0.924.
    pub const DATATROVE: Self = Self {
        name: "datatrove",
        scheme: FeatureScheme::new(14, 8, 1),
        source: "datatrove, MinhashConfig: num_buckets=14, hashes_per_bucket=8",
    };
    /// The default of `NeMo` Curator. P(fungible) is 0.997; at 0.8 it is 0.677.
    pub const NEMO_CURATOR: Self = Self {
        name: "nemo-curator",
        scheme: FeatureScheme::new(20, 13, 1),
        source: "NeMo Curator, FuzzyDuplicatesConfig: num_buckets=20, hashes_per_bucket=13",
    };

    /// All presets.
    pub const ALL: [Self; 9] = [
        Self::BRODER_84,
        Self::BRODER_200,
        Self::SMALL_8,
        Self::LSH_20X6,
        Self::LSH_16X8,
        Self::DATASKETCH,
        Self::TEXT_DEDUP,
        Self::DATATROVE,
        Self::NEMO_CURATOR,
    ];

    /// Returns the number of features (bytes) of [`SMALL_8`](Self::SMALL_8) that must agree in a collection of
    /// `documents` documents: 3 below 50,000 documents, otherwise 7, as in Broder's slides.
    #[must_use]
    pub const fn common_bytes(documents: u64) -> u16 {
        if documents < 50_000 { 3 } else { 7 }
    }

    /// Returns the preset with this name, `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    #[test]
    fn every_preset_has_a_unique_name_and_valid_parameters() {
        for preset in Preset::ALL {
            assert_eq!(Preset::named(preset.name), Some(preset));
            assert!(preset.scheme.threshold >= 1 && preset.scheme.threshold <= preset.scheme.groups);
            let minhash = Params::builder().preset(preset).build().unwrap().minhash.unwrap();
            assert_eq!((minhash.bands, minhash.rows), (preset.scheme.groups, preset.scheme.group_size));
        }
        assert_eq!(Preset::ALL.map(|preset| preset.scheme.minima())[..3], [84, 200, 96]);
    }
}
