//! The least features that keep a recall and a bound on false positives.

use std::fmt;

use super::banding::MINIMA;
use super::features::pairs;
use crate::params::{BANDS_MAX, FeatureScheme, MINIMA_MAX};

/// What features must achieve, and what they may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The resemblance from which on pairs are to be found, above 0 to 1.
    pub resemblance: f64,
    /// The share of pairs of exactly that resemblance that must be found, above 0 and below 1; of higher resemblance
    /// more are.
    pub recall: f64,
    /// The pairs that must not be found.
    pub strangers: Strangers,
    /// At most this number of minima, 1 to [`MINIMA_MAX`].
    pub minima: u32,
    /// r may be from 1 to this, which is at least 1. 1 for look-ups in an index, whose features are found one by one.
    pub thresholds: u16,
    /// Bits kept of a feature, up to 64.
    pub feature_bits: u8,
}

impl Wanted {
    /// Asks for a recall at a resemblance, of features of 64 bits that are looked up one by one, with at most
    /// [`MINIMA`] minima and any number of false positives.
    #[must_use]
    pub fn recall(recall: f64, resemblance: f64) -> Self {
        Self {
            resemblance,
            recall,
            strangers: Strangers { resemblance: 0.0, at_most: 1.0 },
            minima: MINIMA.into(),
            thresholds: 1,
            feature_bits: 64,
        }
    }
}

/// A bound on false positives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strangers {
    /// Pairs of this resemblance, 0 to 1,
    pub resemblance: f64,
    /// are found with at most this probability, 0 to 1.
    pub at_most: f64,
}

impl Strangers {
    /// At most this number of pairs is expected to be found, if all pairs of `documents` have this resemblance: 0 for
    /// documents with nothing in common.
    #[must_use]
    pub fn pairs(resemblance: f64, documents: u64, at_most: f64) -> Self {
        Self { resemblance, at_most: (at_most / pairs(documents).max(1.0)).min(1.0) }
    }
}

/// Why there are no such features.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unmet {
    /// The wish itself is out of range.
    Range {
        /// The field of [`Wanted`].
        field: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// Not even the shortest groups find that many.
    Recall {
        /// What was asked.
        wanted: f64,
        /// What `best` achieves.
        reached: f64,
        /// The features with the highest recall.
        best: FeatureScheme,
    },
    /// Whatever keeps the recall finds more strangers.
    Strangers {
        /// What was asked.
        wanted: f64,
        /// What `best` achieves.
        reached: f64,
        /// The features with the fewest false positives of those that keep the recall.
        best: FeatureScheme,
    },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, wanted, reached, best) = match *self {
            Self::Range { field, allowed } => return write!(f, "{field} must be {allowed}"),
            Self::Recall { wanted, reached, best } => ("a recall", wanted, reached, best),
            Self::Strangers { wanted, reached, best } => ("a rate of false positives", wanted, reached, best),
        };
        let FeatureScheme { groups, group_size, threshold, .. } = best;
        write!(
            f,
            "{what} of {wanted} cannot be had; the best is {reached:.4e}, with {groups} features of {group_size} \
             minima of which {threshold} must agree"
        )
    }
}

impl std::error::Error for Unmet {}

impl From<Unmet> for crate::error::Error {
    fn from(unmet: Unmet) -> Self {
        Self::Invalid(unmet.to_string())
    }
}

/// The features that satisfy what is [`Wanted`] with the fewest minima; of those the fewest groups, of those the lowest
/// threshold.
///
/// Looked at are, for each threshold r from 1, all group sizes from 1 while the recall can be kept, each with the
/// least number of groups that keeps it: more groups cost minima and find more strangers. Less is never more: a lower
/// recall, a higher rate, more minima or thresholds allowed never give features of more minima, and a larger
/// allowance of minima alone does not change the answer.
///
/// At most `thresholds x minima` schemes are checked, each in time of the logarithm of its groups times r.
///
/// # Errors
/// [`Unmet`] says which wish cannot be had, and the best there is instead.
///
/// ```
/// use twindex::params::FeatureScheme;
/// use twindex::planner::{Strangers, Unmet, Wanted, choose};
///
/// let wanted = Wanted::recall(0.99, 0.8);
/// assert_eq!(choose(&wanted), Ok(FeatureScheme::new(3, 1, 1)));
/// let few = Wanted { strangers: Strangers { resemblance: 0.3, at_most: 0.05 }, ..wanted };
/// assert_eq!(choose(&few), Ok(FeatureScheme::new(12, 5, 1)));
/// let none = Wanted { strangers: Strangers { resemblance: 0.6, at_most: 1e-6 }, ..wanted };
/// assert!(matches!(choose(&none), Err(Unmet::Strangers { .. })));
/// ```
pub fn choose(wanted: &Wanted) -> Result<FeatureScheme, Unmet> {
    check(wanted)?;
    let Wanted { strangers, feature_bits, .. } = *wanted;
    let most = |group_size: u32| (wanted.minima / group_size).min(BANDS_MAX.into()) as u16;
    let recall = |scheme: FeatureScheme| scheme.fungible(wanted.resemblance);

    let best = FeatureScheme { groups: most(1), group_size: 1, threshold: 1, feature_bits };
    if recall(best) < wanted.recall {
        return Err(Unmet::Recall { wanted: wanted.recall, reached: recall(best), best });
    }
    let cost = |scheme: FeatureScheme| (scheme.minima(), scheme.groups, scheme.threshold);
    let (mut found, mut sharpest): (Option<FeatureScheme>, Option<(f64, FeatureScheme)>) = (None, None);
    for threshold in 1..=wanted.thresholds.min(BANDS_MAX) {
        for group_size in 1..=wanted.minima {
            let of =
                |groups| FeatureScheme { groups, group_size: group_size as u16, threshold, feature_bits };
            // Longer groups are fewer, and find less: it ends with the first that find too little.
            if recall(of(most(group_size))) < wanted.recall {
                break;
            }
            let (mut too_few, mut groups) = (0, most(group_size));
            while too_few + 1 < groups {
                let middle = too_few.midpoint(groups);
                if recall(of(middle)) < wanted.recall {
                    too_few = middle;
                } else {
                    groups = middle;
                }
            }
            let scheme = of(groups);
            let rate = scheme.fungible(strangers.resemblance);
            if rate <= strangers.at_most && found.is_none_or(|other| cost(scheme) < cost(other)) {
                found = Some(scheme);
            }
            let sharper = |&(least, other): &(f64, FeatureScheme)| {
                rate.total_cmp(&least).then(cost(scheme).cmp(&cost(other))).is_lt()
            };
            if sharpest.as_ref().is_none_or(sharper) {
                sharpest = Some((rate, scheme));
            }
        }
    }
    match (found, sharpest) {
        (Some(scheme), _) => Ok(scheme),
        (None, Some((reached, best))) => Err(Unmet::Strangers { wanted: strangers.at_most, reached, best }),
        (None, None) => Err(Unmet::Recall { wanted: wanted.recall, reached: recall(best), best }),
    }
}

fn check(wanted: &Wanted) -> Result<(), Unmet> {
    let share = 0.0..=1.0;
    let checks = [
        ("resemblance", share.contains(&wanted.resemblance) && wanted.resemblance > 0.0, "above 0, up to 1"),
        ("recall", wanted.recall > 0.0 && wanted.recall < 1.0, "above 0 and below 1"),
        ("strangers.resemblance", share.contains(&wanted.strangers.resemblance), "0 to 1"),
        ("strangers.at_most", share.contains(&wanted.strangers.at_most), "0 to 1"),
        ("minima", (1..=MINIMA_MAX).contains(&wanted.minima), "1 to 4096"),
        ("thresholds", wanted.thresholds >= 1, "1 or more"),
        ("feature_bits", wanted.feature_bits <= 64, "0 to 64"),
    ];
    match checks.into_iter().find(|(_, fits, _)| !fits) {
        None => Ok(()),
        Some((field, _, allowed)) => Err(Unmet::Range { field, allowed }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planner::Banding;
    use crate::planner::banding::RECALL;

    /// All schemes there are, one after the other.
    fn exhaustive(wanted: &Wanted) -> Option<FeatureScheme> {
        let mut found: Option<FeatureScheme> = None;
        for groups in 1..=wanted.minima {
            for group_size in 1..=wanted.minima / groups {
                for threshold in 1..=wanted.thresholds {
                    let feature_bits = wanted.feature_bits;
                    let (groups, group_size) = (groups as u16, group_size as u16);
                    let scheme = FeatureScheme { groups, group_size, threshold, feature_bits };
                    let fits = scheme.fungible(wanted.resemblance) >= wanted.recall
                        && scheme.fungible(wanted.strangers.resemblance) <= wanted.strangers.at_most;
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
        fn wishes()(
            resemblance in 0.3..1.0_f64,
            recall in 0.1..0.999_f64,
            of_it in 0.0..0.95_f64,
            exponent in -7.0..0.0_f64,
            minima in 1..90_u32,
            thresholds in 1..5_u16,
            feature_bits in prop::sample::select(vec![1_u8, 4, 8, 16, 64]),
        ) -> Wanted {
            let strangers = Strangers { resemblance: of_it * resemblance, at_most: 10_f64.powf(exponent) };
            Wanted { resemblance, recall, strangers, minima, thresholds, feature_bits }
        }
    }

    /// Any more minima than an answer has, for comparisons.
    fn price(answer: Result<FeatureScheme, Unmet>) -> u32 {
        answer.map_or(u32::MAX, |scheme| scheme.minima())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn the_answer_is_that_of_looking_at_all(wanted in wishes()) {
            prop_assert_eq!(choose(&wanted).ok(), exhaustive(&wanted));
        }

        #[test]
        fn who_asks_for_less_pays_no_more(wanted in wishes(), by in 0.0..1.0_f64, more in 0..50_u32) {
            let answer = choose(&wanted);
            let Wanted { recall, strangers, minima, .. } = wanted;
            let at_most = strangers.at_most + (1.0 - strangers.at_most) * by;
            for less in [
                Wanted { recall: recall * (1.0 - 0.9 * by), ..wanted },
                Wanted { strangers: Strangers { at_most, ..strangers }, ..wanted },
                Wanted { strangers: Strangers { resemblance: strangers.resemblance * by, ..strangers }, ..wanted },
                Wanted { resemblance: wanted.resemblance + (1.0 - wanted.resemblance) * by, ..wanted },
                Wanted { minima: minima + more, ..wanted },
                Wanted { thresholds: wanted.thresholds + 1, ..wanted },
            ] {
                prop_assert!(price(choose(&less)) <= price(answer), "{:?}: {:?}; {:?}: {:?}", wanted, answer, less, choose(&less));
            }
            if let Ok(scheme) = answer {
                prop_assert_eq!(choose(&Wanted { minima: minima + 37, ..wanted }), Ok(scheme));
                prop_assert_eq!(choose(&Wanted { minima: scheme.minima(), ..wanted }), Ok(scheme));
            }
        }

        #[test]
        fn the_best_there_is_can_be_had(wanted in wishes()) {
            match choose(&wanted) {
                Ok(_) => {}
                Err(Unmet::Recall { reached, best, .. }) => {
                    prop_assert!(reached < wanted.recall && best.minima() <= wanted.minima);
                    let modest = Wanted { recall: reached, strangers: Strangers { at_most: 1.0, ..wanted.strangers }, ..wanted };
                    prop_assert!(choose(&modest).is_ok());
                }
                Err(Unmet::Strangers { reached, best, .. }) => {
                    prop_assert!(reached > wanted.strangers.at_most && best.minima() <= wanted.minima);
                    let modest = Wanted { strangers: Strangers { at_most: reached, ..wanted.strangers }, ..wanted };
                    prop_assert_eq!(choose(&modest), Ok(best));
                    let keener = Strangers { at_most: reached * (1.0 - 1e-12), ..wanted.strangers };
                    let keener = Wanted { strangers: keener, ..wanted };
                    prop_assert!(choose(&keener).is_err());
                }
                Err(Unmet::Range { field, .. }) => prop_assert!(false, "{}", field),
            }
        }
    }

    #[test]
    fn bands_for_a_threshold_are_the_sharpest_of_their_minima() {
        for percent in 5..=99_u8 {
            let threshold = f64::from(percent) / 100.0;
            let banding = Banding::for_threshold(threshold);
            // No group is longer that keeps the recall: nothing finds fewer strangers of a resemblance so low that
            // length decides, and not so low that chance does, once in 2^64.
            let resemblance = 10_f64.powf(-10.0 / f64::from(banding.rows));
            let impossible = Strangers { resemblance, at_most: 0.0 };
            let wanted = Wanted { strangers: impossible, ..Wanted::recall(RECALL, threshold) };
            let Err(Unmet::Strangers { best, .. }) = choose(&wanted) else { panic!("{percent}") };
            assert_eq!(best.group_size, banding.rows, "{percent}: {best:?}, {banding:?}");
            assert!(best.groups <= banding.bands, "{percent}: {best:?}, {banding:?}");
            // And what is asked to be as good costs no more.
            for strange in [0.1, 0.3, 0.5] {
                let at_most = banding.recall(strange * threshold) + 1e-15;
                let strangers = Strangers { resemblance: strange * threshold, at_most };
                let scheme = choose(&Wanted { strangers, ..Wanted::recall(RECALL, threshold) }).unwrap();
                assert!(
                    scheme.minima() <= u32::from(banding.bands * banding.rows)
                        && scheme.minima() <= u32::from(MINIMA)
                );
            }
        }
    }

    #[test]
    fn of_equally_many_minima_the_fewest_groups_are_chosen() {
        // 4 x 1 with r = 3 satisfies this, too.
        let strangers = Strangers { resemblance: 0.3, at_most: 0.2 };
        let wanted = Wanted { strangers, thresholds: 3, ..Wanted::recall(0.5, 0.7) };
        assert_eq!(choose(&wanted), Ok(FeatureScheme::new(2, 2, 1)));
    }

    #[test]
    fn accidents_among_documents_decide_how_many_bytes_must_agree() {
        let bytes = |documents, thresholds| {
            let strangers = Strangers::pairs(0.0, documents, 1.0);
            choose(&Wanted {
                strangers,
                minima: 256,
                thresholds,
                feature_bits: 8,
                ..Wanted::recall(0.4, 0.9)
            })
        };
        // One byte that agrees says nothing of two documents among thousands.
        assert!(matches!(bytes(1000, 1), Err(Unmet::Strangers { .. })));
        let needed: Vec<u16> =
            [10, 1000, 100_000, 10_000_000].map(|documents| bytes(documents, 8).unwrap().threshold).into();
        assert!(needed.is_sorted() && needed[3] >= 5, "{needed:?}");
    }

    #[test]
    fn wishes_out_of_range_are_refused_by_name() {
        let good = Wanted::recall(0.9, 0.8);
        let strangers =
            |resemblance, at_most| Wanted { strangers: Strangers { resemblance, at_most }, ..good };
        for (wanted, name) in [
            (Wanted { resemblance: 0.0, ..good }, "resemblance"),
            (Wanted { resemblance: f64::NAN, ..good }, "resemblance"),
            (Wanted { recall: 1.0, ..good }, "recall"),
            (Wanted { recall: f64::NAN, ..good }, "recall"),
            (strangers(1.5, 0.1), "strangers.resemblance"),
            (strangers(0.5, f64::NAN), "strangers.at_most"),
            (Wanted { minima: 0, ..good }, "minima"),
            (Wanted { minima: 4097, ..good }, "minima"),
            (Wanted { thresholds: 0, ..good }, "thresholds"),
            (Wanted { feature_bits: 65, ..good }, "feature_bits"),
        ] {
            let unmet = choose(&wanted).unwrap_err();
            assert!(matches!(unmet, Unmet::Range { field, .. } if field == name), "{unmet}");
        }
        // The largest search ends at once, too.
        let large = Wanted { minima: MINIMA_MAX, thresholds: 8, ..strangers(0.6, 1e-9) };
        let scheme = choose(&large).unwrap();
        assert!(scheme.fungible(0.8) >= 0.9 && scheme.fungible(0.6) <= 1e-9, "{scheme:?}");
    }

    #[test]
    fn an_unmet_wish_says_what_is_possible() {
        let unmet = choose(&Wanted { minima: 3, ..Wanted::recall(0.9999, 0.5) }).unwrap_err();
        let text = unmet.to_string();
        assert!(text.contains("recall of 0.9999") && text.contains("3 features of 1 minima"), "{text}");
        assert!(matches!(crate::error::Error::from(unmet), crate::error::Error::Invalid(_)));
    }
}
