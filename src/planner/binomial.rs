//! The binomial distribution, with tails that neither cancel nor underflow.
//!
//! The probability of a single count is computed as in Loader, *Fast and accurate computation of binomial
//! probabilities*, 2000: from the deviance and the error of Stirling's formula, both without cancellation. A difference
//! of logarithms of factorials would lose as many digits as they have before the decimal point. A tail is summed from
//! its largest term outwards, so all terms are positive and none underflows. The larger of the two tails is computed as
//! one minus the smaller.

use std::f64::consts::{LN_10, TAU};

/// A sum ends at the first term below this fraction of the sum.
const NEGLIGIBLE: f64 = 1e-18;

/// The distribution of the number of events that occur among `trials` independent events of equal probability.
///
/// ```
/// use twindex::planner::Binomial;
///
/// let equal_minima = Binomial::new(84, 0.9);
/// assert!((equal_minima.at_least(76) - 0.5340).abs() < 1e-4);
/// // Small tails keep their digits, and their logarithms are accurate even if the tails underflow.
/// assert!((Binomial::new(4096, 0.5).log10_at_least(4096) + 4096.0 * 2_f64.log10()).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    trials: u64,
    /// The probability of one event.
    p: f64,
    /// The probability `1 - p` that an event does not occur. It may be more precise than `1.0 - p`.
    q: f64,
}

impl Binomial {
    /// Creates the distribution for `trials` events of probability `p`, which is clamped to 0..=1. If `p` is NaN, all
    /// results are NaN.
    #[must_use]
    pub fn new(trials: u64, p: f64) -> Self {
        let p = p.clamp(0.0, 1.0);
        Self { trials, p, q: 1.0 - p }
    }

    /// Same as [`new`](Self::new), for callers that know `q = 1 - p` more precisely than the subtraction yields.
    pub(super) fn with_complement(trials: u64, p: f64, q: f64) -> Self {
        Self { trials, p: p.clamp(0.0, 1.0), q: q.clamp(0.0, 1.0) }
    }

    /// Returns the probability of exactly `k` events.
    #[must_use]
    pub fn exactly(&self, k: u64) -> f64 {
        self.ln_exactly(k).exp()
    }

    /// Returns the probability of `k` events or more. Takes at most `trials` steps, usually a few times the standard
    /// deviation.
    #[must_use]
    pub fn at_least(&self, k: u64) -> f64 {
        self.ln_at_least(k).exp()
    }

    /// Returns the probability of `k` events or fewer, in the same time as [`at_least`](Self::at_least).
    #[must_use]
    pub fn at_most(&self, k: u64) -> f64 {
        self.ln_at_most(k).exp()
    }

    /// Returns the decimal logarithm of [`at_least`](Self::at_least), also for probabilities below 1e-308; minus
    /// infinity for a probability of 0.
    #[must_use]
    pub fn log10_at_least(&self, k: u64) -> f64 {
        self.ln_at_least(k) / LN_10
    }

    /// Returns the decimal logarithm of [`at_most`](Self::at_most).
    #[must_use]
    pub fn log10_at_most(&self, k: u64) -> f64 {
        self.ln_at_most(k) / LN_10
    }

    fn ln_at_most(&self, k: u64) -> f64 {
        match self.trials.checked_sub(k) {
            None => 0.0,
            // At most `k` events occur if and only if at least `trials - k` events do not occur.
            Some(others) => Self { trials: self.trials, p: self.q, q: self.p }.ln_at_least(others),
        }
    }

    fn ln_at_least(&self, k: u64) -> f64 {
        let Self { trials, p, q } = *self;
        if p.is_nan() {
            return p;
        }
        if k == 0 {
            return 0.0;
        }
        if k > trials {
            return f64::NEG_INFINITY;
        }
        if k as f64 > trials as f64 * p {
            // Above the mean, each term is smaller than the previous term, so the tail is summed upwards from `k`.
            let tail = sum_of_ratios((k..trials).map(|i| (trials - i) as f64 * p / ((i + 1) as f64 * q)));
            self.ln_exactly(k) + tail.ln()
        } else {
            let rest = sum_of_ratios((1..k).rev().map(|i| i as f64 * q / ((trials - i + 1) as f64 * p)));
            let fewer = self.ln_exactly(k - 1) + rest.ln();
            (-fewer.exp()).ln_1p()
        }
    }

    fn ln_exactly(&self, k: u64) -> f64 {
        let Self { trials, p, q } = *self;
        if p.is_nan() {
            return p;
        }
        let Some(others) = trials.checked_sub(k) else { return f64::NEG_INFINITY };
        let (n, x, y) = (trials as f64, k as f64, others as f64);
        // Returns the logarithm of `this`. `other` is `1 - this`; if it is small, `ln_1p` is more precise than `ln`.
        let ln_of = |this: f64, other: f64| if other < 0.5 { (-other).ln_1p() } else { this.ln() };
        match (k, others) {
            (0, 0) => 0.0,
            (0, _) => n * ln_of(q, p),
            (_, 0) => n * ln_of(p, q),
            _ if p <= 0.0 || q <= 0.0 => f64::NEG_INFINITY,
            _ => {
                stirling_error(trials)
                    - stirling_error(k)
                    - stirling_error(others)
                    - deviance(x, n * p)
                    - deviance(y, n * q)
                    - 0.5 * (TAU * x * (y / n)).ln()
            }
        }
    }
}

/// Returns `1 + r1 + r1 r2 + ...` for the ratios `r1`, `r2` and so on. Stops when the terms are negligible.
fn sum_of_ratios(ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term < sum * NEGLIGIBLE {
            break;
        }
    }
    sum
}

/// Returns the error of Stirling's formula, `ln n! - ln(sqrt(2 pi n) (n / e)^n)`, for n of at least 1.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n <= 15 {
        let factorial: f64 = (1..=n).map(|i| i as f64).product();
        return factorial.ln() - 0.5 * (TAU * x).ln() - x * x.ln() + x;
    }
    // Stirling's series; for n of at least 16 the omitted terms are below 1e-15.
    let y = 1.0 / (x * x);
    (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x
}

/// Returns `x ln(x / mean) + mean - x` for positive numbers, accurate even if they are nearly equal.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - difference;
    }
    // ln(x / mean) = 2 artanh(v).
    let v = difference / (x + mean);
    let (mut sum, mut power) = (difference * v, 2.0 * x * v);
    for odd in (3..200).step_by(2) {
        power *= v * v;
        let next = sum + power / f64::from(odd);
        if next.to_bits() == sum.to_bits() {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-13 * expected.abs(), "{found:e}, expected {expected:e}");
    }

    #[test]
    fn binomial_of_four_coins_matches_hand_counts() {
        let coins = Binomial::new(4, 0.5);
        for (k, of_16) in [1.0, 4.0, 6.0, 4.0, 1.0].into_iter().enumerate() {
            near(coins.exactly(k as u64), of_16 / 16.0);
        }
        near(coins.at_least(3), 5.0 / 16.0);
        near(coins.at_least(1), 15.0 / 16.0);
        near(coins.at_most(1), 5.0 / 16.0);
        near(coins.at_most(3), 15.0 / 16.0);
    }

    #[test]
    fn binomial_is_exact_at_extreme_counts_and_probabilities() {
        for p in [0.0, 0.3, 1.0] {
            let any = Binomial::new(10, p);
            near(any.at_least(0), 1.0);
            near(any.at_most(10), 1.0);
            near(any.at_most(u64::MAX), 1.0);
            near(any.at_least(11), 0.0);
            near(any.exactly(11), 0.0);
        }
        let never = Binomial::new(10, 0.0);
        assert!(never.log10_at_least(1) == f64::NEG_INFINITY && never.log10_at_most(0) == 0.0);
        let always = Binomial::new(10, 1.0);
        assert!(always.log10_at_least(10) == 0.0 && always.log10_at_most(9) == f64::NEG_INFINITY);
        near(Binomial::new(0, 0.5).at_least(0), 1.0);
        near(Binomial::new(0, 0.5).at_least(1), 0.0);
        near(Binomial::new(3, 7.0).at_least(3), 1.0);
        assert!(Binomial::new(3, f64::NAN).at_least(2).is_nan());
        assert!(Binomial::new(3, f64::NAN).at_most(2).is_nan());
    }

    #[test]
    fn binomial_tails_sum_to_one() {
        for trials in [1, 7, 84, 200, 4096] {
            for p in [1e-9, 0.01, 0.3, 0.5, 0.8, 0.99, 1.0 - 1e-9] {
                let any = Binomial::new(trials, p);
                for k in [0, 1, trials / 3, trials / 2, trials * 4 / 5, trials - 1] {
                    let sum = any.at_most(k) + any.at_least(k + 1);
                    assert!((sum - 1.0).abs() < 1e-12, "{trials} {p} {k}: {sum}");
                    let step = any.at_least(k) - any.at_least(k + 1);
                    assert!((step - any.exactly(k)).abs() < 1e-12, "{trials} {p} {k}: {step}");
                }
            }
        }
    }
}
