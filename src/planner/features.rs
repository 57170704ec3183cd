//! Computes the probability that two documents are *fungible*: that at least r of their k features are equal.

use super::Binomial;
use crate::params::FeatureScheme;

impl FeatureScheme {
    /// Returns the probability that one feature is equal in two documents of resemblance J, from 0 to 1:
    /// `q = J^s + (1 - J^s) 2^-bits`, where s is the group size.
    #[must_use]
    pub fn agreement(&self, resemblance: f64) -> f64 {
        let (agree, _) = self.agree_or_differ(resemblance);
        agree
    }

    fn agree_or_differ(self, resemblance: f64) -> (f64, f64) {
        let by_chance = (-f64::from(self.feature_bits)).exp2();
        let equal = resemblance.clamp(0.0, 1.0).powi(self.group_size.into());
        // Compute 1 - J^s without cancellation for J close to 1.
        let unequal = if self.group_size == 0 {
            0.0
        } else {
            -(resemblance.clamp(0.0, 1.0).ln() * f64::from(self.group_size)).exp_m1()
        };
        (equal + unequal * by_chance, unequal * (1.0 - by_chance))
    }

    /// Returns the distribution of the number of equal features in two documents with this resemblance.
    #[must_use]
    pub fn agreeing(&self, resemblance: f64) -> Binomial {
        let (agree, differ) = self.agree_or_differ(resemblance);
        Binomial::with_complement(self.groups.into(), agree, differ)
    }

    /// Returns P(fungible), the probability that at least r features are equal in two documents with this resemblance:
    /// `sum over i >= r of C(k, i) q^i (1 - q)^(k - i)`, with `q` as in [`agreement`](Self::agreement).
    ///
    /// The probability increases with the resemblance and the number of groups, and decreases with the group size and
    /// the threshold.
    ///
    /// ```
    /// use twindex::planner::Banding;
    /// use twindex::params::FeatureScheme;
    /// let bands = FeatureScheme::new(20, 6, 1);
    /// assert!((bands.fungible(0.8) - Banding { bands: 20, rows: 6 }.recall(0.8)).abs() < 1e-12);
    /// ```
    #[must_use]
    pub fn fungible(&self, resemblance: f64) -> f64 {
        self.agreeing(resemblance).at_least(self.threshold.into())
    }

    /// Returns the decimal logarithm of [`fungible`](Self::fungible): Broder's "Prob of acceptance - LOG scale".
    #[must_use]
    pub fn log10_accepted(&self, resemblance: f64) -> f64 {
        self.agreeing(resemblance).log10_at_least(self.threshold.into())
    }

    /// Returns the decimal logarithm of `1 - P(fungible)`: Broder's "Prob of rejection - LOG scale".
    #[must_use]
    pub fn log10_rejected(&self, resemblance: f64) -> f64 {
        match self.threshold.checked_sub(1) {
            None => f64::NEG_INFINITY,
            Some(fewer) => self.agreeing(resemblance).log10_at_most(fewer.into()),
        }
    }

    /// Returns the distribution of the number of equal minima in two documents with this resemblance, among all t
    /// minima (the *full sketch*). If at least T minima must be equal, a pair is accepted with the probability that this
    /// number is T or more. Features approximate this polynomial with a fraction of the bytes.
    ///
    /// ```
    /// use twindex::params::Preset;
    /// let scheme = Preset::BRODER_84.scheme;
    /// let whole = |j| scheme.full_sketch(j).log10_at_least(scheme.full_sketch_threshold(0.9).into());
    /// // Both accept 4 of 10 pairs at 0.9. At 0.7 the features accept 1 pair in 1,500, the full sketch 1 in 400,000.
    /// assert!((scheme.log10_accepted(0.9) - whole(0.9)).abs() < 0.05);
    /// assert!(whole(0.7) < scheme.log10_accepted(0.7) - 2.0);
    /// ```
    #[must_use]
    pub fn full_sketch(&self, resemblance: f64) -> Binomial {
        Binomial::new(self.minima().into(), resemblance)
    }

    /// Returns the threshold T for which the probability that the full sketch accepts pairs of this resemblance is
    /// nearest to [`fungible`](Self::fungible); the smallest T if several are equally near. Evaluates O(log t) tails of
    /// [`Binomial`]. Returns 0 if the resemblance is NaN.
    #[must_use]
    pub fn full_sketch_threshold(&self, resemblance: f64) -> u32 {
        let (features, whole) = (self.fungible(resemblance), self.full_sketch(resemblance));
        if features.is_nan() || resemblance.is_nan() {
            return 0;
        }
        // Tails decrease with T. So the nearest tail is the first that does not exceed the probability of the features,
        // or the one before it.
        let first_not_above = |probability: f64| {
            let (mut low, mut high) = (0, self.minima());
            while low < high {
                let middle = low + (high - low) / 2;
                if whole.at_least(middle.into()) <= probability {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low
        };
        let off = |threshold: u32| (whole.at_least(threshold.into()) - features).abs();
        let below = first_not_above(features);
        let Some(before) = below.checked_sub(1) else { return below };
        // Several T may have the same tail, because tails are rounded to 1. Return the smallest of them.
        let above = first_not_above(whole.at_least(before.into()));
        if off(above) <= off(below) { above } else { below }
    }

    /// Returns the probability that two documents with nothing in common are accepted.
    #[must_use]
    pub fn by_chance(&self) -> f64 {
        self.fungible(0.0)
    }

    /// Returns the expected number of accepted pairs among `documents` documents with nothing in common: the number of
    /// pairs times [`by_chance`](Self::by_chance).
    ///
    /// ```
    /// use twindex::params::Preset;
    /// let bytes = Preset::SMALL_8.scheme;
    /// // 4,112 pairs among 50,000 documents: one document in six has an accidental match.
    /// assert!((bytes.accidental_pairs(50_000) - 4_111.5).abs() < 0.1);
    /// // With 7 of 8 bytes, less than one pair among 85 million documents, but also very few of the near-duplicates.
    /// let seven = twindex::params::FeatureScheme { threshold: 7, ..bytes };
    /// assert!(seven.accidental_pairs(85_000_000) < 0.5);
    /// ```
    #[must_use]
    pub fn accidental_pairs(&self, documents: u64) -> f64 {
        pairs(documents) * self.by_chance()
    }
}

pub(super) fn pairs(documents: u64) -> f64 {
    documents as f64 * documents.saturating_sub(1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Preset;

    #[test]
    fn agreement_of_64_bit_feature_is_a_power_of_resemblance() {
        let one = FeatureScheme::new(1, 14, 1);
        assert!((one.fungible(0.9) - 0.9_f64.powi(14)).abs() < 1e-15);
        assert!((one.agreement(0.5) - 0.5_f64.powi(14)).abs() < 1e-15);
    }

    #[test]
    fn chance_agreement_is_added_only_if_minima_differ() {
        let bytes = FeatureScheme { feature_bits: 8, ..FeatureScheme::new(1, 1, 1) };
        assert!((bytes.fungible(0.0) - 1.0 / 256.0).abs() < 1e-15);
        assert!((bytes.fungible(1.0) - 1.0).abs() < 1e-15);
        assert!((bytes.fungible(0.5) - (0.5 + 0.5 / 256.0)).abs() < 1e-15);
        let none = FeatureScheme { feature_bits: 0, ..bytes };
        assert!((none.fungible(0.3) - 1.0).abs() < 1e-15, "no bits always agree");
    }

    #[test]
    fn accepted_and_rejected_logarithms_sum_to_probability_one() {
        for preset in Preset::ALL {
            for j in [0.0, 0.3, 0.8, 0.9, 0.999_999, 1.0] {
                let sum = 10_f64.powf(preset.scheme.log10_accepted(j))
                    + 10_f64.powf(preset.scheme.log10_rejected(j));
                assert!((sum - 1.0).abs() < 1e-12, "{} at {j}: {sum}", preset.name);
            }
        }
        // 1 - 0.999999999^14 is 1.4e-8. A pair is rejected if at least five of its six features differ.
        let rejected = Preset::BRODER_84.scheme.log10_rejected(1.0 - 1e-9);
        let by_hand = 5.0 * 1.4e-8_f64.log10() + 6_f64.log10();
        assert!((rejected - by_hand).abs() < 1e-6, "{rejected}, {by_hand}");
    }

    #[test]
    fn threshold_zero_accepts_every_pair_and_threshold_above_the_feature_count_accepts_none() {
        let scheme = FeatureScheme::new(6, 14, 0);
        assert!(
            (scheme.fungible(0.1) - 1.0).abs() < 1e-15 && scheme.log10_rejected(0.1) == f64::NEG_INFINITY
        );
        assert!(FeatureScheme::new(6, 14, 7).fungible(1.0) == 0.0);
        assert!((FeatureScheme::new(3, 0, 3).fungible(0.1) - 1.0).abs() < 1e-15, "empty groups agree");
        assert!(FeatureScheme::new(0, 5, 1).fungible(1.0) == 0.0);
    }

    #[test]
    fn full_sketch_threshold_approximates_features_better_than_adjacent_thresholds() {
        let scheme = Preset::BRODER_84.scheme;
        let found = scheme.full_sketch_threshold(0.9);
        let off = |t: u32| (scheme.full_sketch(0.9).at_least(t.into()) - scheme.fungible(0.9)).abs();
        assert!(off(found) < off(found - 1) && off(found) < off(found + 1), "{found}");
    }

    #[test]
    fn full_sketch_threshold_equals_an_exhaustive_search() {
        for (groups, group_size, threshold) in
            [(6, 14, 2), (8, 25, 1), (20, 6, 1), (8, 1, 7), (6, 14, 0), (6, 14, 7), (0, 5, 1), (1, 300, 1)]
        {
            let scheme = FeatureScheme::new(groups, group_size, threshold);
            for j in [0.0, 0.1, 0.5, 0.8, 0.9, 0.99, 1.0] {
                let (features, whole) = (scheme.fungible(j), scheme.full_sketch(j));
                let off = |t: u32| (whole.at_least(t.into()) - features).abs();
                let nearest = (0..=scheme.minima()).map(off).fold(f64::INFINITY, f64::min);
                let found = scheme.full_sketch_threshold(j);
                assert!(off(found) <= nearest + 1e-15, "{scheme:?} at {j}: {found}");
            }
        }
        // The signature has about 4.3 billion minima, and 93 features are expected to be equal.
        let scheme = FeatureScheme::new(u16::MAX, u16::MAX, 93);
        let found = f64::from(scheme.full_sketch_threshold(0.9999));
        assert!((found / f64::from(scheme.minima()) - 0.9999).abs() < 1e-4, "{found}");
        assert_eq!(scheme.full_sketch_threshold(f64::NAN), 0);
    }
}
