//! Computes the resemblance of two documents exactly from their sets of shingles, or estimates it from minima.
//!
//! Resemblance (the Jaccard coefficient) and containment are defined by Broder, *On the resemblance and containment of
//! documents*, 1997, section 2. Estimates from b stored bits of each minimum follow Li and König, *b-bit minwise
//! hashing*, 2010, which assumes sets that are small compared with the universe of hashes. Then different minima have
//! equal bits with a probability of 2^-b.

use std::fmt;

/// Returns the sizes of the intersection and of the union of two sets, given as ascending slices without duplicates.
///
/// The result is exact. Takes time linear in the sum of the lengths.
///
/// ```
/// use twindex_sketch::jaccard;
///
/// assert_eq!(jaccard(&[1, 2, 3], &[2, 3, 5, 7]), (2, 5));
/// assert_eq!(jaccard(&[], &[]), (0, 0));
/// ```
#[must_use]
pub fn jaccard(a: &[u64], b: &[u64]) -> (usize, usize) {
    let both = intersection_from(a, b, 0).unwrap_or(0);
    (both, a.len() + b.len() - both)
}

/// Number of merges that are interleaved.
const LANES: usize = 4;
/// Number of steps of each merge between two checks of whether `min` can still be reached.
const STRIDE: usize = 8;

/// Returns the size of the intersection of two sets, given as in [`jaccard`], if it is at least `min`. Returns `None` as
/// soon as the intersection is known to be smaller.
///
/// In a single merge, each step waits for the loads of the previous step. So both sets are split at the same values into
/// four runs, and four merges are interleaved. Hashes are uniformly distributed, so the runs have about the same length.
/// Other distributions take more time but give the same result.
///
/// ```
/// use twindex_sketch::intersection_from;
/// assert_eq!(intersection_from(&[1, 2, 3], &[2, 3, 5, 7], 2), Some(2));
/// assert_eq!(intersection_from(&[1, 2, 3], &[2, 3, 5, 7], 3), None);
/// ```
#[must_use]
pub fn intersection_from(a: &[u64], b: &[u64], min: usize) -> Option<usize> {
    // The maximum number of elements that are in only one of the sets if the intersection has `min` elements:
    // |a| + |b| = 2 * min + spare.
    let spare = (a.len() + b.len()).checked_sub(min.checked_mul(2)?)?;
    let mut at = [[0; 2]; LANES];
    let mut end = [[a.len(), b.len()]; LANES];
    let mut both = 0;
    if a.len().min(b.len()) >= 4 * LANES {
        for lane in 1..LANES {
            let from = (lane as u64) << (u64::BITS - LANES.trailing_zeros());
            at[lane] = [a.partition_point(|&x| x < from), b.partition_point(|&x| x < from)];
            end[lane - 1] = at[lane];
        }
        while (0..LANES)
            .all(|lane| at[lane][0] + STRIDE <= end[lane][0] && at[lane][1] + STRIDE <= end[lane][1])
        {
            let x: [&[u64; STRIDE]; LANES] = std::array::from_fn(|lane| window(a, at[lane][0]));
            let y: [&[u64; STRIDE]; LANES] = std::array::from_fn(|lane| window(b, at[lane][1]));
            let (mut i, mut j) = ([0; LANES], [0; LANES]);
            for _ in 0..STRIDE {
                for lane in 0..LANES {
                    // In step n, counted from 0, an index is at most n, so the mask changes nothing. It lets the
                    // compiler omit the bounds check.
                    let (x, y) = (x[lane][i[lane] & (STRIDE - 1)], y[lane][j[lane] & (STRIDE - 1)]);
                    both += usize::from(x == y);
                    i[lane] += usize::from(x <= y);
                    j[lane] += usize::from(y <= x);
                }
            }
            let mut walked = 0;
            for lane in 0..LANES {
                at[lane][0] += i[lane];
                at[lane][1] += j[lane];
                let from = if lane == 0 { [0; 2] } else { end[lane - 1] };
                walked += at[lane][0] - from[0] + at[lane][1] - from[1];
            }
            if walked > 2 * both + spare {
                return None;
            }
        }
    } else {
        // Small sets are merged in the first lane only; the other lanes are empty.
        at[1..].copy_from_slice(&end[1..]);
    }
    for lane in 0..LANES {
        let ([mut i, mut j], [i_end, j_end]) = (at[lane], end[lane]);
        while i < i_end && j < j_end {
            // Without branches, because the result of the comparison is unpredictable.
            let (x, y) = (a[i], b[j]);
            both += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
    }
    (both >= min).then_some(both)
}

/// Returns the `STRIDE` elements from `at` on, or zeros if the set has fewer.
#[inline(always)]
fn window(set: &[u64], at: usize) -> &[u64; STRIDE] {
    set[at..].first_chunk().unwrap_or(&[0; STRIDE])
}

/// Returns the containment of `a` in `b` as two numbers: the size of the intersection and the size of `a`. Both slices must
/// be ascending and without duplicates.
///
/// ```
/// assert_eq!(twindex_sketch::containment(&[2, 3], &[1, 2, 3, 4]), (2, 2));
/// ```
#[must_use]
pub fn containment(a: &[u64], b: &[u64]) -> (usize, usize) {
    (jaccard(a, b).0, a.len())
}

/// Returns the expected standard deviation of an estimate from `minima` minima if `bits` bits of each minimum are
/// compared and the true resemblance, 0 to 1, is `resemblance`.
///
/// For whole minima, the deviation is `sqrt(J (1 - J) / t)`. With b < 32 bits, different minima have equal bits with
/// the probability c = 2^-b. With `p = J + (1 - J) c`, the deviation is `sqrt(p (1 - p) / t) / (1 - c)`. Without minima
/// or bits, the deviation is 1. [`Resemblance::from_matches`] uses the same formula with p estimated from the matches.
///
/// ```
/// use twindex_sketch::standard_error;
/// assert!((standard_error(0.8, 100, 32) - 0.04).abs() < 1e-12);
/// assert!((standard_error(0.8, 100, 8) - 0.0401).abs() < 1e-4);
/// assert!((standard_error(0.8, 100, 1) - 0.06).abs() < 1e-12);
/// ```
#[must_use]
pub fn standard_error(resemblance: f64, minima: usize, bits: u8) -> f64 {
    if minima == 0 || bits == 0 {
        return 1.0;
    }
    let by_chance = by_chance(bits);
    let matching = resemblance + (1.0 - resemblance) * by_chance;
    error_of_rate(matching, minima as f64, by_chance)
}

/// Returns the probability that different minima agree in `bits` bits; 0 for all 32 bits.
fn by_chance(bits: u8) -> f64 {
    if bits < 32 { (-f64::from(bits)).exp2() } else { 0.0 }
}

/// Returns the standard deviation of an estimate from t minima if the fraction `matching` of them matches.
fn error_of_rate(matching: f64, t: f64, by_chance: f64) -> f64 {
    (matching * (1.0 - matching) / t).sqrt() / (1.0 - by_chance)
}

/// The resemblance of two documents, exact or estimated.
///
/// ```
/// use twindex_sketch::Resemblance;
///
/// let exact = Resemblance::Exact { intersection: 8, union: 10 };
/// assert!(exact.at_least(0.8));
/// assert_eq!(exact.to_string(), "8/10");
///
/// let estimate = Resemblance::from_matches(97, 120, 8);
/// assert!(estimate.value() > 0.8 && !estimate.is_exact());
/// assert_eq!(estimate.to_string(), "0.808±0.036");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resemblance {
    /// Exact: counted from all shingles.
    Exact {
        /// Number of shingles that are in both documents.
        intersection: usize,
        /// Number of shingles that are in at least one of the documents. It is 0 for two empty documents, which do not
        /// resemble each other.
        union: usize,
    },
    /// Estimated from minima.
    Estimate {
        /// The estimated resemblance, 0 to 1.
        value: f64,
        /// The standard deviation of the estimate, positive.
        standard_error: f64,
    },
}

impl Resemblance {
    /// Returns the exact resemblance of two sets of shingles, given as ascending slices without duplicates.
    #[must_use]
    pub fn of_sets(a: &[u64], b: &[u64]) -> Self {
        let (intersection, union) = jaccard(a, b);
        Self::Exact { intersection, union }
    }

    /// Returns the estimate if `matches` of `minima` values are equal and `bits` bits of each minimum were compared.
    ///
    /// With `b = bits` and the matching fraction `m/t`, the value is `(m/t - 2^-b) / (1 - 2^-b)`, clamped to 0 and 1. With
    /// all 32 bits, there is no correction for chance: 96 of 120 whole minima give exactly 0.8. The standard error uses the
    /// probability of a match `(m + 1) / (t + 2)`, so that it is not zero if all or none of a few minima match. Without
    /// minima or bits, the value is 0 and the standard error 1.
    #[must_use]
    #[inline]
    pub fn from_matches(matches: usize, minima: usize, bits: u8) -> Self {
        if minima == 0 || bits == 0 {
            return Self::Estimate { value: 0.0, standard_error: 1.0 };
        }
        let (m, t) = (matches.min(minima) as f64, minima as f64);
        let by_chance = by_chance(bits);
        Self::Estimate {
            value: ((m / t - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0),
            standard_error: error_of_rate((m + 1.0) / (t + 2.0), t, by_chance),
        }
    }

    /// Returns the estimate from two signatures of the same [`MinHasher`](super::MinHasher), comparing all bits of each
    /// minimum.
    #[must_use]
    pub fn of_signatures(a: &[u32], b: &[u32]) -> Self {
        let matches = a.iter().zip(b).filter(|(a, b)| a == b).count();
        Self::from_matches(matches, a.len().max(b.len()), 32)
    }

    /// Returns the resemblance as a number, 0 to 1.
    #[must_use]
    pub fn value(&self) -> f64 {
        match *self {
            Self::Exact { union: 0, .. } => 0.0,
            Self::Exact { intersection, union } => intersection as f64 / union as f64,
            Self::Estimate { value, .. } => value,
        }
    }

    /// Returns the standard deviation of [`value`](Self::value), which is 0 if the resemblance is exact.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        match *self {
            Self::Exact { .. } => 0.0,
            Self::Estimate { standard_error, .. } => standard_error,
        }
    }

    /// Returns true if the resemblance was counted from all shingles.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exact { .. })
    }

    /// Returns true if the value reaches `threshold`, which is usually a short decimal number. Two empty documents reach no
    /// threshold.
    ///
    /// An exact fraction reaches the threshold if it is at least the *decimal number* that was written: 8 of 10 reach
    /// 0.8, and 7 of 10 reach 0.7. No tolerance is needed: the division and the parsing of the decimal both round to
    /// the nearest double, so equal numbers give the same double, and rounding never reverses the order of unequal
    /// numbers. A fraction just below the threshold is accepted only if both round to the same double. For this, the
    /// union must have more than 2^52 divided by 10^d shingles if the threshold has d decimals: 10^11 shingles for four
    /// decimals.
    #[must_use]
    pub fn at_least(&self, threshold: f64) -> bool {
        match *self {
            Self::Exact { union: 0, .. } => false,
            _ => self.value() >= threshold,
        }
    }
}

impl fmt::Display for Resemblance {
    /// Formats an exact resemblance as a fraction, and an estimate as its value and standard error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exact { intersection, union } => write!(f, "{intersection}/{union}"),
            Self::Estimate { value, standard_error } => write!(f, "{value:.3}±{standard_error:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(intersection: usize, union: usize) -> Resemblance {
        Resemblance::Exact { intersection, union }
    }

    #[test]
    fn jaccard_counts_common_elements() {
        let a: Vec<u64> = (0..100).collect();
        let b: Vec<u64> = (50..200).step_by(2).collect();
        assert_eq!(jaccard(&a, &b), (25, 150));
        assert_eq!(jaccard(&b, &a), (25, 150));
        assert_eq!(jaccard(&a, &a), (100, 100));
        assert_eq!(jaccard(&a, &[]), (0, 100));
        assert_eq!(containment(&a, &b), (25, 100));
        assert_eq!(containment(&b, &a), (25, 75));
        assert_eq!(jaccard(&[0, u64::MAX], &[u64::MAX]), (1, 2));
    }

    #[test]
    fn intersection_is_exact_or_none_if_below_the_minimum() {
        use std::collections::BTreeSet;
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 33).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        for size in [0, 1, 15, 16, 17, 63, 64, 65, 200, 1000, 3000] {
            for shared in [0, 1, 5, 9, 10] {
                for crowded in [0, 3, 40] {
                    // With the largest shift, all elements are so small that one lane merges all of them.
                    let common: Vec<u64> = (0..size * shared / 10).map(|_| random() >> crowded).collect();
                    let mut with = |own: usize| -> Vec<u64> {
                        let own = (0..own).map(|_| random() >> crowded);
                        common.iter().copied().chain(own).collect::<BTreeSet<_>>().into_iter().collect()
                    };
                    let (a, b) = (with(size - common.len()), with(size / 2));
                    let of_b: BTreeSet<u64> = b.iter().copied().collect();
                    let both = a.iter().filter(|x| of_b.contains(x)).count();
                    for min in [0, 1, both / 2, both, both + 1, both + 2, a.len() + b.len(), usize::MAX] {
                        let wanted = (both >= min).then_some(both);
                        assert_eq!(intersection_from(&a, &b, min), wanted, "{size} {shared} {min}");
                        assert_eq!(intersection_from(&b, &a, min), wanted, "{size} {shared} {min}");
                    }
                }
            }
        }
    }

    #[test]
    fn fraction_reaches_an_equal_decimal_threshold_but_no_higher_one() {
        // Tests every threshold of two decimals with every union up to 2,000 for which threshold times union is an integer.
        for hundredths in 1..=100_usize {
            let threshold: f64 = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            for union in (1..=2000).filter(|union| hundredths * union % 100 == 0) {
                let intersection = hundredths * union / 100;
                assert!(exact(intersection, union).at_least(threshold), "{intersection}/{union}");
                assert!(!exact(intersection - 1, union).at_least(threshold));
                assert!(!exact(intersection, union + 1).at_least(threshold));
            }
        }
        let large = usize::try_from(1_000_000_000_000_u64).unwrap_or(400_000_000); // lower on 32-bit targets
        assert!(exact(large * 8 / 10, large).at_least(0.8));
        assert!(!exact(large * 8 / 10 - 1, large).at_least(0.8));
    }

    #[test]
    fn empty_documents_resemble_nothing() {
        assert_eq!(Resemblance::of_sets(&[], &[]), exact(0, 0));
        assert!(!exact(0, 0).at_least(0.0));
        assert!(exact(0, 0).value().abs() < f64::EPSILON);
    }

    #[test]
    fn estimate_is_corrected_for_bits_equal_by_chance() {
        let value = |m, t, bits| Resemblance::from_matches(m, t, bits).value();
        assert!((value(60, 120, 1) - 0.0).abs() < 1e-12);
        assert!((value(90, 120, 1) - 0.5).abs() < 1e-12);
        assert!((value(120, 120, 8) - 1.0).abs() < 1e-12);
        assert!((value(0, 120, 8) - 0.0).abs() < 1e-12);
        assert!(Resemblance::from_matches(96, 120, 32).at_least(0.8));
    }

    #[test]
    fn standard_error_is_positive_and_grows_with_fewer_bits() {
        let error = |m, t, bits| Resemblance::from_matches(m, t, bits).standard_error();
        assert!((error(100, 200, 32) - 0.5 / 200_f64.sqrt()).abs() < 1e-12);
        assert!(error(100, 120, 1) > error(100, 120, 8));
        assert!(error(25, 30, 8) > error(100, 120, 8));
        assert!(error(120, 120, 8) > 0.0 && error(0, 120, 8) > 0.0);
    }

    #[test]
    fn predicted_error_equals_reported_error_at_expected_matches() {
        for (bits, of) in [(1, 2), (2, 4), (4, 16), (8, 256), (32, usize::MAX)] {
            for tenths in [3, 5, 9] {
                let (minima, equal) = (1_000_000, 100_000 * tenths);
                let matches = equal + (minima - equal) / of;
                let reported = Resemblance::from_matches(matches, minima, bits).standard_error();
                let foreseen = standard_error(tenths as f64 / 10.0, minima, bits);
                assert!((reported / foreseen - 1.0).abs() < 1e-4, "{bits} {tenths}: {reported}, {foreseen}");
            }
        }
        assert!(
            (standard_error(0.5, 0, 8) - 1.0).abs() < 1e-12
                && (standard_error(0.5, 9, 0) - 1.0).abs() < 1e-12
        );
    }

    #[test]
    fn estimate_without_minima_or_bits_is_unknown() {
        for (minima, bits) in [(0, 8), (120, 0)] {
            let unknown = Resemblance::from_matches(0, minima, bits);
            assert!(!unknown.at_least(0.1) && unknown.standard_error() >= 1.0);
        }
    }
}
