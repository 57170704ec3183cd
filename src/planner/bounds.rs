//! Computes the number of minima that an estimate of resemblance needs, by Chernoff bounds and exactly.
//!
//! Let X be the number of equal minima among t minima; the mean of X is mu = J t. The estimate X / t *misses* J by a
//! relative error of more than `delta` if it is below `(1 - delta) J` or above `(1 + delta) J`. Textbooks bound the
//! probabilities of these misses by:
//!
//! ```text
//! P[X < (1 - delta) mu] <= exp(-mu delta^2 / 2)
//! P[X > (1 + delta) mu] <= (e^delta / (1 + delta)^(1 + delta))^mu
//! ```
//!
//! The lecture from which these bounds are taken (*Duplicate detection*, 1.3) omits the exponent mu in the second
//! bound, and has an error in the first: at delta = 0.1 its exponent is `-k J / 0.02`, but `delta^2 / 2 = 0.005` gives
//! `-k J / 200`. According to the lecture, 100 minima at J = 0.8 fail with probability e^-4000. The correct bound is
//! 0.67, and the true probability is 0.020, so 100 minima do not suffice for the 1 % of the lecture's example. (In the
//! lecture's exact sum, the binomial coefficient should be k choose j, with the summation index j.)
//!
//! Number of minima for a probability of failure of at most 1 %, at J = 0.8 and delta = 0.1:
//!
//! | | minima |
//! |---|---|
//! | by the simplified bound above, [`samples_by_chernoff`] | 1,152 |
//! | by the unsimplified bound, [`samples_by_relative_entropy`] | 251 |
//! | exactly, [`samples_exact`] | 154 |

use super::Binomial;

/// The largest number of minima that [`samples_exact`] tries.
pub const SAMPLES_MAX: u64 = 100_000;

/// The direction in which an estimate misses the resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// The estimate is below `(1 - delta) J`.
    Under,
    /// The estimate is above `(1 + delta) J`.
    Over,
    /// The estimate is below `(1 - delta) J` or above `(1 + delta) J`.
    Either,
}

impl Miss {
    const fn under(self) -> bool {
        matches!(self, Self::Under | Self::Either)
    }

    const fn over(self) -> bool {
        matches!(self, Self::Over | Self::Either)
    }
}

/// Returns the exact probability that the estimate from `samples` minima misses `resemblance` by a relative error of
/// more than `delta`.
///
/// An estimate exactly at the limit `(1 - delta) J` or `(1 + delta) J` is not a miss. A limit for X within 1e-12 t of
/// an integer is rounded to the integer, because doubles only approximate decimal J and delta. The probability does not
/// decrease monotonically with t, because X is an integer: at J = 0.8 and delta = 0.1 the probability is 0.0097 for 136
/// minima, and 0.0141 for 139.
///
/// Returns NaN if J is not in the range 0 to 1, or if delta is negative.
#[must_use]
pub fn miss_probability(samples: u64, resemblance: f64, delta: f64, miss: Miss) -> f64 {
    if !(0.0..=1.0).contains(&resemblance) || delta.is_nan() || delta < 0.0 {
        return f64::NAN;
    }
    let equal = Binomial::new(samples, resemblance);
    let (t, mean) = (samples as f64, samples as f64 * resemblance);
    let mut sum = 0.0;
    if miss.under()
        && let Some(max) = whole_above((1.0 - delta) * mean, t).checked_sub(1)
    {
        sum += equal.at_most(max);
    }
    // More minima are equal than the limit allows if and only if fewer are different than t minus the limit.
    if miss.over()
        && let Some(max) = whole_above(t - (1.0 + delta) * mean, t).checked_sub(1)
    {
        sum += equal.at_least(samples.saturating_sub(max));
    }
    sum
}

/// Returns the smallest integer that is not below `x`, or 0 for a negative `x`. Tolerates rounding errors of numbers up
/// to `t`.
#[allow(clippy::cast_sign_loss, reason = "negative numbers become 0 here")]
fn whole_above(x: f64, t: f64) -> u64 {
    let nearest = x.round();
    if (x - nearest).abs() <= 1e-12 * t.max(1.0) { nearest as u64 } else { x.ceil() as u64 }
}

/// Returns the Chernoff bound of [`miss_probability`]. It is never below the probability, and may be above 1.
///
/// ```
/// use twindex::planner::{Miss, chernoff_bound};
/// // The example of the lecture: 100 minima, J = 0.8, 10 % below. The bound is exp(-0.4), not exp(-4000).
/// assert!((chernoff_bound(100, 0.8, 0.1, Miss::Under) - 0.670).abs() < 1e-3);
/// ```
#[must_use]
pub fn chernoff_bound(samples: u64, resemblance: f64, delta: f64, miss: Miss) -> f64 {
    bound(samples, miss, chernoff_exponents(resemblance, delta))
}

/// Returns the exponents of the bounds for [`Miss::Under`] and [`Miss::Over`], divided by the number of minima.
fn chernoff_exponents(resemblance: f64, delta: f64) -> (f64, f64) {
    // `ln_1p` is precise for small delta, where both terms are near delta and the result is about delta^2 / 2.
    let over = (1.0 + delta) * delta.ln_1p() - delta;
    (resemblance * delta * delta / 2.0, resemblance * over)
}

fn bound(samples: u64, miss: Miss, (under, over): (f64, f64)) -> f64 {
    let t = samples as f64;
    let one = |wanted: bool, exponent: f64| if wanted { (-t * exponent).exp() } else { 0.0 };
    one(miss.under(), under) + one(miss.over(), over)
}

/// Returns the smallest number of minima for which [`chernoff_bound`] is at most `failure`. `None` if J, delta or
/// failure is not above 0; if J, failure or (except for [`Miss::Over`]) delta is above 1; or if more than
/// 2^52 minima would be needed.
///
/// ```
/// use twindex::planner::{Miss, samples_by_chernoff};
/// assert_eq!(samples_by_chernoff(0.8, 0.1, 0.01, Miss::Under), Some(1152));
/// assert_eq!(samples_by_chernoff(0.8, 0.1, 0.01, Miss::Over), Some(1190));
/// ```
#[must_use]
pub fn samples_by_chernoff(resemblance: f64, delta: f64, failure: f64, miss: Miss) -> Option<u64> {
    check(resemblance, delta, failure, miss)?;
    smallest_exponent(miss, failure, chernoff_exponents(resemblance, delta))
}

/// Same as [`samples_by_chernoff`] with the unsimplified bounds (Chernoff and Hoeffding):
/// `P[X <= a t] <= exp(-t D(a, J))` for `a < J`, and the same bound for `P[X >= a t]` if `a > J`.
/// `D(a, J) = a ln(a / J) + (1 - a) ln((1 - a) / (1 - J))` is the relative entropy.
///
/// ```
/// use twindex::planner::{Miss, samples_by_relative_entropy};
/// assert_eq!(samples_by_relative_entropy(0.8, 0.1, 0.01, Miss::Under), Some(251));
/// ```
#[must_use]
pub fn samples_by_relative_entropy(resemblance: f64, delta: f64, failure: f64, miss: Miss) -> Option<u64> {
    check(resemblance, delta, failure, miss)?;
    let exponent = |a: f64| relative_entropy(a, resemblance);
    smallest_exponent(
        miss,
        failure,
        (exponent((1.0 - delta) * resemblance), exponent((1.0 + delta) * resemblance)),
    )
}

/// Returns the relative entropy `D(a, p)` for p in (0, 1]; infinity if `a` is not in the range 0 to 1.
fn relative_entropy(a: f64, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&a) {
        return f64::INFINITY;
    }
    let term = |a: f64, p: f64| if a == 0.0 { 0.0 } else { a * (a / p).ln() };
    term(a, p) + term(1.0 - a, 1.0 - p)
}

/// Returns the smallest number of minima from which on the probability of a miss is at most `failure` for every larger
/// number, too.
///
/// The probability is not monotonic in the number of minima ([`miss_probability`]). For J = 0.8, delta = 0.1 and 1 %
/// the result is 154: 136 and 140 minima suffice, but 139 and 153 do not. [`samples_by_relative_entropy`] returns a
/// number `n` whose bound also holds for all larger numbers, so this searches downwards from `n`. Returns `None` if `n`
/// is `None` or above [`SAMPLES_MAX`]. Takes O(n^1.5) time.
///
/// ```
/// use twindex::planner::{Miss, samples_exact};
/// assert_eq!(samples_exact(0.8, 0.1, 0.01, Miss::Under), Some(154));
/// assert_eq!(samples_exact(0.8, 0.1, 0.01, Miss::Either), Some(168));
/// ```
#[must_use]
pub fn samples_exact(resemblance: f64, delta: f64, failure: f64, miss: Miss) -> Option<u64> {
    let enough = samples_by_relative_entropy(resemblance, delta, failure, miss)?;
    if enough > SAMPLES_MAX {
        return None;
    }
    let last_failing =
        (1..enough).rev().find(|&samples| miss_probability(samples, resemblance, delta, miss) > failure);
    Some(last_failing.unwrap_or(0) + 1)
}

fn check(resemblance: f64, delta: f64, failure: f64, miss: Miss) -> Option<()> {
    let share = |x: f64| x > 0.0 && x <= 1.0;
    let delta_fits = share(delta) || (delta > 1.0 && delta.is_finite() && miss == Miss::Over);
    (share(resemblance) && delta_fits && share(failure)).then_some(())
}

/// Returns the smallest number of minima, at least 1, for which the bound is at most `failure`.
fn smallest_exponent(miss: Miss, failure: f64, exponents: (f64, f64)) -> Option<u64> {
    let enough = |samples: u64| bound(samples, miss, exponents) <= failure;
    let mut high = 1;
    while !enough(high) {
        high = Some(high * 2).filter(|&high| high < 1 << 53)?;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low.midpoint(high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lecture_example_needs_more_than_100_minima() {
        assert!(miss_probability(100, 0.8, 0.1, Miss::Under) > 0.01);
        let at = |samples| miss_probability(samples, 0.8, 0.1, Miss::Under) <= 0.01;
        let good: Vec<u64> = (1..160).filter(|&samples| at(samples)).collect();
        assert_eq!(good[..11], [136, 140, 143, 144, 147, 148, 150, 151, 152, 154, 155]);
        assert!((154..2000).all(at));
    }

    #[test]
    fn estimate_exactly_at_the_limit_is_not_a_miss() {
        // In exact arithmetic, 0.8 * 0.55 * 25 is 11; in doubles it is slightly more.
        let found = miss_probability(25, 0.55, 0.2, Miss::Under);
        assert!((found - Binomial::new(25, 0.55).at_most(10)).abs() < 1e-15);
        // In exact arithmetic, 1.2 * 0.7 * 175 is 147; in doubles it is slightly less.
        let found = miss_probability(175, 0.7, 0.2, Miss::Over);
        assert!((found - Binomial::new(175, 0.7).at_least(148)).abs() < 1e-15);
        // 0.8 * 0.55 * 26 is 11.44, which is not an integer.
        let found = miss_probability(26, 0.55, 0.2, Miss::Under);
        assert!((found - Binomial::new(26, 0.55).at_most(11)).abs() < 1e-15);
    }

    #[test]
    fn chernoff_bounds_are_not_below_exact_probabilities() {
        for hundredths in (5..=95).step_by(10) {
            let j = f64::from(hundredths) / 100.0;
            for delta in [0.1, 0.25, 0.5, 1.0] {
                for miss in [Miss::Under, Miss::Over, Miss::Either] {
                    for samples in [1, 2, 10, 84, 120, 1000] {
                        let exact = miss_probability(samples, j, delta, miss);
                        let bound = chernoff_bound(samples, j, delta, miss);
                        assert!(exact <= bound * (1.0 + 1e-12), "{j} {delta} {miss:?} {samples}");
                    }
                    let [a, b, c] = [samples_exact, samples_by_relative_entropy, samples_by_chernoff]
                        .map(|count| count(j, delta, 0.05, miss).unwrap_or(u64::MAX));
                    assert!(a <= b && b <= c, "{j} {delta} {miss:?}: {a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn invalid_arguments_give_none_or_nan() {
        for (j, delta, failure) in [
            (0.0, 0.1, 0.01),
            (1.1, 0.1, 0.01),
            (0.8, 0.0, 0.01),
            (0.8, 1.5, 0.01),
            (0.8, 0.1, 0.0),
            (0.8, 0.1, 1.5),
            (f64::NAN, 0.1, 0.01),
            (0.8, f64::NAN, 0.01),
            (0.8, 0.1, f64::NAN),
            (1e-300, 1e-9, 0.01),
        ] {
            for count in [samples_exact, samples_by_relative_entropy, samples_by_chernoff] {
                assert_eq!(count(j, delta, failure, Miss::Under), None, "{j} {delta} {failure}");
            }
        }
        assert!(miss_probability(10, 2.0, 0.1, Miss::Under).is_nan());
        assert_eq!(samples_exact(0.8, 0.0005, 0.01, Miss::Under), None, "above SAMPLES_MAX");
        // An estimate is never above 1, and a resemblance of 1 is always estimated as 1.
        assert_eq!(samples_exact(0.95, 0.1, 0.01, Miss::Over), Some(1));
        assert_eq!(samples_exact(1.0, 0.1, 0.01, Miss::Either), Some(1));
    }
}
