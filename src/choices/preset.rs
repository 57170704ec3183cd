//! Choices that others have made, by name.

use super::FeatureScheme;

/// A scheme of features from the literature or the field.
///
/// `docs/choosing.md` has a table of P(fungible) of each, at resemblances from 0.5 to 0.95; here it is beside the
/// constants, at 0.9.
///
/// An index looks up features one by one, so what it finds is P(fungible) of the same features with r = 1
/// ([`Banding::recall`](crate::bands::Banding::recall)), a superset; [`fungible`](fn@twindex_sketch::fungible) then
/// applies r.
///
/// ```
/// use twindex::choices::{FeatureScheme, Preset};
/// assert_eq!(Preset::named("broder-84"), Some(Preset::BRODER_84));
/// assert_eq!(Preset::BRODER_84.scheme, FeatureScheme::new(6, 14, 2));
/// assert_eq!(Preset::named("broder"), None);
/// let params = twindex::Params::builder().preset(Preset::BRODER_84).build()?;
/// assert_eq!(params.minhash.unwrap().minima(), 84);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preset {
    /// What it is called, here and in `twindex build --preset`.
    pub name: &'static str,
    /// The features.
    pub scheme: FeatureScheme,
    /// Who chose it, and for what.
    pub source: &'static str,
}

impl Preset {
    /// 84 minima, of which 2 of 6 features must agree: made for resemblance 0.9, 48 bytes a document, used in
    /// `AltaVista`. P(fungible) is 0.415.
    pub const BRODER_84: Self = Self {
        name: "broder-84",
        scheme: FeatureScheme::new(6, 14, 2),
        source: "Broder, Identifying and filtering near-duplicate documents, 2000: AltaVista",
    };
    /// 200 minima, of which 1 of 8 features must agree: the same for who wants single look-ups. P(fungible)
    /// is 0.449.
    pub const BRODER_200: Self = Self {
        name: "broder-200",
        scheme: FeatureScheme::new(8, 25, 1),
        source: "Broder, Algorithms for duplicate documents, 2005: the variant of 200 samples",
    };
    /// 8 features of one byte, of which 3 must agree: 8 bytes a document, and in an index, which finds who shares
    /// one, some 15 ([`ParamsBuilder::feature_bits`](crate::params::ParamsBuilder::feature_bits)). **For less than
    /// about 50,000 documents**, such as those of one host.
    ///
    /// Unrelated documents agree in 3 of 8 bytes with probability 3.3e-6, once in 304,000 pairs: each of n documents
    /// has n / 304,000 accidental partners. Of 50,000 documents that is one in six, 4,112 pairs; of 10,000 one in 30,
    /// 164 pairs. Beyond, accidents outnumber what is looked for, and from 304,000 documents on, with a partner for
    /// each, chains of accidents join most of the collection into one cluster. With 7 of 8 bytes it takes 134
    /// million documents for the first accident to be expected, but 14 in 1,000 pairs of resemblance 0.9 and groups
    /// of 8 are found ("filter is not so sharp"); groups must be of one or two minima then.
    ///
    /// Broder names bytes and threshold only. Groups of 12 are our choice: with them the scheme accepts 0.411 of
    /// pairs at 0.9, as nearly as can be what [`BRODER_84`](Self::BRODER_84) does.
    pub const SMALL_8: Self = Self {
        name: "small-8",
        scheme: FeatureScheme { groups: 8, group_size: 12, threshold: 3, feature_bits: 8 },
        source: "Broder, Algorithms for duplicate documents, 2005: 8 bytes are enough; groups of 12 are ours",
    };
    /// What `twindex` keeps unless told otherwise, for thresholds from 0.8, where P(fungible) is 0.998; at 0.9 it is
    /// 1.000.
    pub const LSH_20X6: Self = Self {
        name: "lsh-20x6",
        scheme: FeatureScheme::new(20, 6, 1),
        source: "twindex: the most selective bands of 120 minima with a recall of 0.995 at 0.8",
    };
    /// 128 minima, steeper at 0.75. P(fungible) is 1.000, at 0.8 it is 0.947.
    pub const LSH_16X8: Self = Self {
        name: "lsh-16x8",
        scheme: FeatureScheme::new(16, 8, 1),
        source: "datasketch, MinHashLSH: the example of params=(16, 8) with 128 permutations",
    };
    /// The bands that datasketch computes by default, for a threshold of 0.9, weighing the areas of false positives
    /// and of false negatives alike. P(fungible) is 0.311.
    pub const DATASKETCH: Self = Self {
        name: "datasketch",
        scheme: FeatureScheme::new(5, 25, 1),
        source: "datasketch, MinHashLSH: threshold=0.9, num_perm=128",
    };
    /// The bands that text-dedup computes by default, for a threshold of 0.7, as datasketch does. P(fungible) is 1.000,
    /// at 0.7 it is 0.511.
    pub const TEXT_DEDUP: Self = Self {
        name: "text-dedup",
        scheme: FeatureScheme::new(25, 10, 1),
        source: "text-dedup, text_dedup.minhash: threshold 0.7, num_perm 256",
    };
    /// The default of datatrove, which made `FineWeb`. P(fungible) is 1.000, at 0.8 it is 0.924.
    pub const DATATROVE: Self = Self {
        name: "datatrove",
        scheme: FeatureScheme::new(14, 8, 1),
        source: "datatrove, MinhashConfig: num_buckets=14, hashes_per_bucket=8",
    };
    /// The default of `NeMo` Curator. P(fungible) is 0.997, at 0.8 it is 0.677.
    pub const NEMO_CURATOR: Self = Self {
        name: "nemo-curator",
        scheme: FeatureScheme::new(20, 13, 1),
        source: "NeMo Curator, FuzzyDuplicatesConfig: num_buckets=20, hashes_per_bucket=13",
    };

    /// All of them.
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

    /// How many bytes of [`SMALL_8`](Self::SMALL_8) must agree in a collection of so many documents: 3 below 50,000, and
    /// 7 from there on, as Broder has it.
    #[must_use]
    pub const fn common_bytes(documents: u64) -> u16 {
        if documents < 50_000 { 3 } else { 7 }
    }

    /// The preset with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use crate::bands::Banding;

    #[test]
    fn every_preset_has_a_name_of_its_own_and_makes_parameters() {
        for preset in Preset::ALL {
            assert_eq!(Preset::named(preset.name), Some(preset));
            assert!(preset.scheme.threshold >= 1 && preset.scheme.threshold <= preset.scheme.groups);
            let minhash = Params::builder().preset(preset).build().unwrap().minhash.unwrap();
            assert_eq!((minhash.bands, minhash.rows), (preset.scheme.groups, preset.scheme.group_size));
        }
        assert_eq!(Preset::ALL.map(|preset| preset.scheme.minima())[..3], [84, 200, 96]);
    }

    #[test]
    fn every_preset_accepts_what_its_documentation_says() {
        for (preset, resemblance, stated) in [
            (Preset::BRODER_84, 0.9, 0.415),
            (Preset::BRODER_200, 0.9, 0.449),
            (Preset::SMALL_8, 0.9, 0.411),
            (Preset::LSH_20X6, 0.8, 0.998),
            (Preset::LSH_20X6, 0.9, 1.0),
            (Preset::LSH_16X8, 0.9, 1.0),
            (Preset::LSH_16X8, 0.8, 0.947),
            (Preset::DATASKETCH, 0.9, 0.311),
            (Preset::TEXT_DEDUP, 0.9, 1.0),
            (Preset::TEXT_DEDUP, 0.7, 0.511),
            (Preset::DATATROVE, 0.9, 1.0),
            (Preset::DATATROVE, 0.8, 0.924),
            (Preset::NEMO_CURATOR, 0.9, 0.997),
            (Preset::NEMO_CURATOR, 0.8, 0.677),
        ] {
            let found = preset.scheme.fungible(resemblance);
            assert!((found - stated).abs() <= 5.0e-4, "{} at {resemblance}: {found}", preset.name);
        }
    }

    #[test]
    fn the_default_bands_are_those_for_the_default_threshold() {
        assert_eq!(FeatureScheme::from(Banding::for_threshold(0.8)), Preset::LSH_20X6.scheme);
    }

    #[test]
    fn groups_of_twelve_bring_the_small_features_nearest_to_the_large() {
        let wanted = Preset::BRODER_84.scheme.fungible(0.9);
        let off = |group_size| {
            (FeatureScheme { group_size, ..Preset::SMALL_8.scheme }.fungible(0.9) - wanted).abs()
        };
        for group_size in (1..40).filter(|&group_size| group_size != 12) {
            assert!(off(12) < off(group_size), "{group_size}: {} and {}", off(12), off(group_size));
        }
    }

    #[test]
    fn fifty_thousand_documents_are_about_what_three_bytes_of_eight_bear() {
        let three = Preset::SMALL_8.scheme;
        let seven = FeatureScheme { threshold: 7, ..three };
        assert_eq!([49_999, 50_000].map(Preset::common_bytes), [three.threshold, seven.threshold]);
        // Accidental partners of one document.
        let partners = |scheme: FeatureScheme, documents: u64| {
            scheme.accidental_pairs(documents) * 2.0 / documents as f64
        };
        assert!((partners(three, 50_000) - 1.0 / 6.0).abs() < 0.005);
        assert!((partners(three, 10_000) - 1.0 / 30.0).abs() < 0.001);
        assert!((partners(three, 304_000) - 1.0).abs() < 0.001);
        assert!((seven.accidental_pairs(134_447_694) - 1.0).abs() < 1e-6);
        assert!((FeatureScheme { group_size: 8, ..seven }.fungible(0.9) - 0.014).abs() < 5e-4);
    }

    /// The rule of datasketch: the least sum of the areas under the S-curve left and above it right of the threshold.
    #[test]
    fn bands_of_the_field_are_what_its_rule_gives() {
        for (threshold, minima, expected) in
            [(0.9, 128, Preset::DATASKETCH.scheme), (0.7, 256, Preset::TEXT_DEDUP.scheme)]
        {
            let area = |banding: Banding| -> f64 {
                // Simpson's rule on each side; 200 steps are far finer than the differences.
                let side = |from: f64, to: f64, f: &dyn Fn(f64) -> f64| {
                    let h = (to - from) / 200.0;
                    let weight = |i: i32| match i {
                        0 | 200 => 1.0,
                        _ if i % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    (0..=200).map(|i| weight(i) * f(from + f64::from(i) * h)).sum::<f64>() * h / 3.0
                };
                side(0.0, threshold, &|j| banding.recall(j))
                    + side(threshold, 1.0, &|j| 1.0 - banding.recall(j))
            };
            let best = (1..=minima)
                .flat_map(|bands| (1..=minima / bands).map(move |rows| Banding { bands, rows }))
                .min_by(|&a, &b| area(a).total_cmp(&area(b)));
            assert_eq!(best.map(FeatureScheme::from), Some(expected));
        }
    }
}
