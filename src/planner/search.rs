//! Searches for the features with the fewest minima that satisfy a required recall and a bound on false positives.

use std::fmt;

use super::banding::MINIMA;
use super::features::pairs;
use crate::params::{BANDS_MAX, FeatureScheme, MINIMA_MAX};

/// The requirements for features: recall, false positives, and limits on the cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The minimum resemblance of pairs that must be found, above 0 and at most 1.
    pub resemblance: f64,
    /// The minimum probability that a pair of exactly this resemblance is found, above 0 and below 1. More similar
    /// pairs are found with a higher probability.
    pub recall: f64,
    /// The bound on false positives.
    pub false_positives: FalsePositiveBound,
    /// The maximum number of minima, 1 to [`MINIMA_MAX`].
    pub minima: u32,
    /// The largest threshold r to try, at least 1. Use 1 for an index: it looks up each feature separately.
    pub thresholds: u16,
    /// Number of bits stored of each feature, 0 to 64.
    pub feature_bits: u8,
}

impl Goal {
    /// Creates a goal that requires this recall for pairs of this resemblance, with features of 64 bits, threshold 1,
    /// at most [`MINIMA`] minima, and no bound on false positives.
    #[must_use]
    pub fn recall(recall: f64, resemblance: f64) -> Self {
        Self {
            resemblance,
            recall,
            false_positives: FalsePositiveBound { resemblance: 0.0, at_most: 1.0 },
            minima: MINIMA.into(),
            thresholds: 1,
            feature_bits: 64,
        }
    }
}

/// A bound on false positives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FalsePositiveBound {
    /// The resemblance of the pairs that count as false positives, 0 to 1.
    pub resemblance: f64,
    /// The maximum probability that a pair of this resemblance is found, 0 to 1.
    pub at_most: f64,
}

impl FalsePositiveBound {
    /// Creates a bound on the expected number of false positives among `documents` documents: if all pairs have this
    /// resemblance, at most `at_most` of them are found. Use a resemblance of 0 for documents with nothing in common.
    #[must_use]
    pub fn pairs(resemblance: f64, documents: u64, at_most: f64) -> Self {
        Self { resemblance, at_most: (at_most / pairs(documents).max(1.0)).min(1.0) }
    }
}

/// The reason why no features satisfy a [`Goal`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Infeasible {
    /// A requirement is out of range.
    Range {
        /// The name of the field of [`Goal`].
        field: &'static str,
        /// The allowed range.
        allowed: &'static str,
    },
    /// Even the features with the highest recall do not reach the required recall.
    Recall {
        /// The required recall.
        required: f64,
        /// The recall of `best`.
        reached: f64,
        /// The features with the highest recall.
        best: FeatureScheme,
    },
    /// All features with the required recall have too many false positives.
    FalsePositives {
        /// The maximum rate of false positives that was specified.
        required: f64,
        /// The rate of false positives of `best`.
        reached: f64,
        /// Of the features with the required recall, the ones with the fewest false positives.
        best: FeatureScheme,
    },
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, required, reached, best) = match *self {
            Self::Range { field, allowed } => return write!(f, "{field} must be {allowed}"),
            Self::Recall { required, reached, best } => ("a recall", required, reached, best),
            Self::FalsePositives { required, reached, best } => {
                ("a rate of false positives", required, reached, best)
            }
        };
        let FeatureScheme { groups, group_size, threshold, .. } = best;
        write!(
            f,
            "{what} of {required} is not possible; the best is {reached:.4e}, with {groups} features of {group_size} \
             minima, and {threshold} of them must agree"
        )
    }
}

impl std::error::Error for Infeasible {}

impl From<Infeasible> for crate::error::Error {
    fn from(infeasible: Infeasible) -> Self {
        Self::Invalid(infeasible.to_string())
    }
}

/// Returns the features with the fewest minima that satisfy `goal`. Ties are broken by the fewest groups, then by the
/// lowest threshold.
///
/// Tries each threshold r from 1 on, and for each threshold all group sizes from 1 on that can reach the recall. For
/// each group size, uses the smallest number of groups that reaches the recall: more groups would need more minima and
/// find more false positives. The result is monotonic: for a lower recall, a higher rate of false positives, or larger
/// limits on minima or thresholds, it never has more minima. A larger limit on minima alone does not change a result,
/// but may make an infeasible goal feasible.
///
/// Tries at most `thresholds x minima` schemes. Each takes time proportional to r times the logarithm of its number of
/// groups.
///
/// # Errors
/// [`Infeasible`] names the requirement that is out of range. If a requirement cannot be satisfied, it names the
/// requirement and the features that come closest to it.
///
/// ```
/// use twindex::params::FeatureScheme;
/// use twindex::planner::{FalsePositiveBound, Infeasible, Goal, choose};
///
/// let goal = Goal::recall(0.99, 0.8);
/// assert_eq!(choose(&goal), Ok(FeatureScheme::new(3, 1, 1)));
/// let few = Goal { false_positives: FalsePositiveBound { resemblance: 0.3, at_most: 0.05 }, ..goal };
/// assert_eq!(choose(&few), Ok(FeatureScheme::new(12, 5, 1)));
/// let none = Goal { false_positives: FalsePositiveBound { resemblance: 0.6, at_most: 1e-6 }, ..goal };
/// assert!(matches!(choose(&none), Err(Infeasible::FalsePositives { .. })));
/// ```
pub fn choose(goal: &Goal) -> Result<FeatureScheme, Infeasible> {
    check(goal)?;
    let Goal { false_positives, feature_bits, .. } = *goal;
    let max = |group_size: u32| (goal.minima / group_size).min(BANDS_MAX.into()) as u16;
    let recall = |scheme: FeatureScheme| scheme.fungible(goal.resemblance);

    let best = FeatureScheme { groups: max(1), group_size: 1, threshold: 1, feature_bits };
    if recall(best) < goal.recall {
        return Err(Infeasible::Recall { required: goal.recall, reached: recall(best), best });
    }
    let cost = |scheme: FeatureScheme| (scheme.minima(), scheme.groups, scheme.threshold);
    let (mut found, mut sharpest): (Option<FeatureScheme>, Option<(f64, FeatureScheme)>) = (None, None);
    for threshold in 1..=goal.thresholds.min(BANDS_MAX) {
        for group_size in 1..=goal.minima {
            let of =
                |groups| FeatureScheme { groups, group_size: group_size as u16, threshold, feature_bits };
            // Recall decreases with the group size, so no later group size can reach the required recall either.
            if recall(of(max(group_size))) < goal.recall {
                break;
            }
            let (mut too_few, mut groups) = (0, max(group_size));
            while too_few + 1 < groups {
                let middle = too_few.midpoint(groups);
                if recall(of(middle)) < goal.recall {
                    too_few = middle;
                } else {
                    groups = middle;
                }
            }
            let scheme = of(groups);
            let rate = scheme.fungible(false_positives.resemblance);
            if rate <= false_positives.at_most && found.is_none_or(|other| cost(scheme) < cost(other)) {
                found = Some(scheme);
            }
            let sharper = |&(min, other): &(f64, FeatureScheme)| {
                rate.total_cmp(&min).then(cost(scheme).cmp(&cost(other))).is_lt()
            };
            if sharpest.as_ref().is_none_or(sharper) {
                sharpest = Some((rate, scheme));
            }
        }
    }
    match (found, sharpest) {
        (Some(scheme), _) => Ok(scheme),
        (None, Some((reached, best))) => {
            Err(Infeasible::FalsePositives { required: false_positives.at_most, reached, best })
        }
        (None, None) => Err(Infeasible::Recall { required: goal.recall, reached: recall(best), best }),
    }
}

fn check(goal: &Goal) -> Result<(), Infeasible> {
    let share = 0.0..=1.0;
    let checks = [
        ("resemblance", share.contains(&goal.resemblance) && goal.resemblance > 0.0, "above 0, up to 1"),
        ("recall", goal.recall > 0.0 && goal.recall < 1.0, "above 0 and below 1"),
        ("false_positives.resemblance", share.contains(&goal.false_positives.resemblance), "0 to 1"),
        ("false_positives.at_most", share.contains(&goal.false_positives.at_most), "0 to 1"),
        ("minima", (1..=MINIMA_MAX).contains(&goal.minima), "1 to 4096"),
        ("thresholds", goal.thresholds >= 1, "1 or more"),
        ("feature_bits", goal.feature_bits <= 64, "0 to 64"),
    ];
    match checks.into_iter().find(|(_, fits, _)| !fits) {
        None => Ok(()),
        Some((field, _, allowed)) => Err(Infeasible::Range { field, allowed }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planner::Banding;
    use crate::planner::banding::RECALL;

    fn exhaustive(goal: &Goal) -> Option<FeatureScheme> {
        let mut found: Option<FeatureScheme> = None;
        for groups in 1..=goal.minima {
            for group_size in 1..=goal.minima / groups {
                for threshold in 1..=goal.thresholds {
                    let feature_bits = goal.feature_bits;
                    let (groups, group_size) = (groups as u16, group_size as u16);
                    let scheme = FeatureScheme { groups, group_size, threshold, feature_bits };
                    let fits = scheme.fungible(goal.resemblance) >= goal.recall
                        && scheme.fungible(goal.false_positives.resemblance) <= goal.false_positives.at_most;
                    let cost = |scheme: FeatureScheme| (scheme.minima(), scheme.groups, scheme.threshold);
                    if fits && found.is_none_or(|other| cost(scheme) < cost(other)) {
                        found = Some(scheme);
                    }
                }
            }
        }
        found
    }

    prop_compose! {
        fn goals()(
            resemblance in 0.3..1.0_f64,
            recall in 0.1..0.999_f64,
            of_it in 0.0..0.95_f64,
            exponent in -7.0..0.0_f64,
            minima in 1..90_u32,
            thresholds in 1..5_u16,
            feature_bits in prop::sample::select(vec![1_u8, 4, 8, 16, 64]),
        ) -> Goal {
            let false_positives = FalsePositiveBound { resemblance: of_it * resemblance, at_most: 10_f64.powf(exponent) };
            Goal { resemblance, recall, false_positives, minima, thresholds, feature_bits }
        }
    }

    /// Returns the number of minima of a result, for comparisons. For an infeasible goal, returns the maximum `u32`.
    fn price(answer: Result<FeatureScheme, Infeasible>) -> u32 {
        answer.map_or(u32::MAX, |scheme| scheme.minima())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn choose_equals_an_exhaustive_search(goal in goals()) {
            prop_assert_eq!(choose(&goal).ok(), exhaustive(&goal));
        }

        #[test]
        fn weaker_goals_need_no_more_minima(goal in goals(), by in 0.0..1.0_f64, more in 0..50_u32) {
            let answer = choose(&goal);
            let Goal { recall, false_positives, minima, .. } = goal;
            let at_most = false_positives.at_most + (1.0 - false_positives.at_most) * by;
            for less in [
                Goal { recall: recall * (1.0 - 0.9 * by), ..goal },
                Goal { false_positives: FalsePositiveBound { at_most, ..false_positives }, ..goal },
                Goal { false_positives: FalsePositiveBound { resemblance: false_positives.resemblance * by, ..false_positives }, ..goal },
                Goal { resemblance: goal.resemblance + (1.0 - goal.resemblance) * by, ..goal },
                Goal { minima: minima + more, ..goal },
                Goal { thresholds: goal.thresholds + 1, ..goal },
            ] {
                prop_assert!(price(choose(&less)) <= price(answer), "{:?}: {:?}; {:?}: {:?}", goal, answer, less, choose(&less));
            }
            if let Ok(scheme) = answer {
                prop_assert_eq!(choose(&Goal { minima: minima + 37, ..goal }), Ok(scheme));
                prop_assert_eq!(choose(&Goal { minima: scheme.minima(), ..goal }), Ok(scheme));
            }
        }

        #[test]
        fn reported_best_features_satisfy_a_relaxed_goal(goal in goals()) {
            match choose(&goal) {
                Ok(_) => {}
                Err(Infeasible::Recall { reached, best, .. }) => {
                    prop_assert!(reached < goal.recall && best.minima() <= goal.minima);
                    let modest = Goal { recall: reached, false_positives: FalsePositiveBound { at_most: 1.0, ..goal.false_positives }, ..goal };
                    prop_assert!(choose(&modest).is_ok());
                }
                Err(Infeasible::FalsePositives { reached, best, .. }) => {
                    prop_assert!(reached > goal.false_positives.at_most && best.minima() <= goal.minima);
                    let modest = Goal { false_positives: FalsePositiveBound { at_most: reached, ..goal.false_positives }, ..goal };
                    prop_assert_eq!(choose(&modest), Ok(best));
                    let keener = FalsePositiveBound { at_most: reached * (1.0 - 1e-12), ..goal.false_positives };
                    let keener = Goal { false_positives: keener, ..goal };
                    prop_assert!(choose(&keener).is_err());
                }
                Err(Infeasible::Range { field, .. }) => prop_assert!(false, "{}", field),
            }
        }
    }

    #[test]
    fn for_threshold_returns_the_most_selective_bands() {
        for percent in 5..=99_u8 {
            let threshold = f64::from(percent) / 100.0;
            let banding = Banding::for_threshold(threshold);
            // No longer group reaches the recall, so these features have the fewest false positives at `resemblance`.
            // This resemblance is so low that the group size decides, and so high that accidental equality of features
            // (probability 2^-64) is negligible.
            // probability 2^-64) is negligible.
            let resemblance = 10_f64.powf(-10.0 / f64::from(banding.rows));
            let impossible = FalsePositiveBound { resemblance, at_most: 0.0 };
            let goal = Goal { false_positives: impossible, ..Goal::recall(RECALL, threshold) };
            let Err(Infeasible::FalsePositives { best, .. }) = choose(&goal) else { panic!("{percent}") };
            assert_eq!(best.group_size, banding.rows, "{percent}: {best:?}, {banding:?}");
            assert!(best.groups <= banding.bands, "{percent}: {best:?}, {banding:?}");
            // A search with the same recall and rate of false positives needs at most as many minima as the banding.
            for strange in [0.1, 0.3, 0.5] {
                let at_most = banding.recall(strange * threshold) + 1e-15;
                let false_positives = FalsePositiveBound { resemblance: strange * threshold, at_most };
                let scheme = choose(&Goal { false_positives, ..Goal::recall(RECALL, threshold) }).unwrap();
                assert!(
                    scheme.minima() <= u32::from(banding.bands * banding.rows)
                        && scheme.minima() <= u32::from(MINIMA)
                );
            }
        }
    }

    #[test]
    fn choose_prefers_fewest_groups_among_equal_minima() {
        // 4 x 1 with r = 3 also satisfies this goal.
        let false_positives = FalsePositiveBound { resemblance: 0.3, at_most: 0.2 };
        let goal = Goal { false_positives, thresholds: 3, ..Goal::recall(0.5, 0.7) };
        assert_eq!(choose(&goal), Ok(FeatureScheme::new(2, 2, 1)));
    }

    #[test]
    fn larger_collections_require_more_equal_bytes() {
        let bytes = |documents, thresholds| {
            let false_positives = FalsePositiveBound::pairs(0.0, documents, 1.0);
            choose(&Goal {
                false_positives,
                minima: 256,
                thresholds,
                feature_bits: 8,
                ..Goal::recall(0.4, 0.9)
            })
        };
        // One equal byte is not significant among 1,000 documents.
        assert!(matches!(bytes(1000, 1), Err(Infeasible::FalsePositives { .. })));
        let needed: Vec<u16> =
            [10, 1000, 100_000, 10_000_000].map(|documents| bytes(documents, 8).unwrap().threshold).into();
        assert!(needed.is_sorted() && needed[3] >= 5, "{needed:?}");
    }

    #[test]
    fn goals_out_of_range_are_refused_with_field_name() {
        let good = Goal::recall(0.9, 0.8);
        let false_positives = |resemblance, at_most| Goal {
            false_positives: FalsePositiveBound { resemblance, at_most },
            ..good
        };
        for (goal, name) in [
            (Goal { resemblance: 0.0, ..good }, "resemblance"),
            (Goal { resemblance: f64::NAN, ..good }, "resemblance"),
            (Goal { recall: 1.0, ..good }, "recall"),
            (Goal { recall: f64::NAN, ..good }, "recall"),
            (false_positives(1.5, 0.1), "false_positives.resemblance"),
            (false_positives(0.5, f64::NAN), "false_positives.at_most"),
            (Goal { minima: 0, ..good }, "minima"),
            (Goal { minima: 4097, ..good }, "minima"),
            (Goal { thresholds: 0, ..good }, "thresholds"),
            (Goal { feature_bits: 65, ..good }, "feature_bits"),
        ] {
            let infeasible = choose(&goal).unwrap_err();
            assert!(matches!(infeasible, Infeasible::Range { field, .. } if field == name), "{infeasible}");
        }
        // The largest search also takes little time.
        let large = Goal { minima: MINIMA_MAX, thresholds: 8, ..false_positives(0.6, 1e-9) };
        let scheme = choose(&large).unwrap();
        assert!(scheme.fungible(0.8) >= 0.9 && scheme.fungible(0.6) <= 1e-9, "{scheme:?}");
    }

    #[test]
    fn infeasible_recall_reports_the_best_features() {
        let infeasible = choose(&Goal { minima: 3, ..Goal::recall(0.9999, 0.5) }).unwrap_err();
        let text = infeasible.to_string();
        assert!(text.contains("recall of 0.9999") && text.contains("3 features of 1 minima"), "{text}");
        assert!(matches!(crate::error::Error::from(infeasible), crate::error::Error::Invalid(_)));
    }
}
