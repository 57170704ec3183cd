//! Computes the weighted resemblance of documents, and minima of weighted sets that estimate it.
//!
//! The weighted resemblance of two documents is `sum of min(a, b) / sum of max(a, b)`, where a and b are the weights of an
//! element in the two documents: term frequencies, inverse document frequencies, or any others. [`WeightedMinHasher`]
//! computes signatures. The fraction of equal minima in two signatures is an unbiased estimate of the weighted resemblance.
//! The method is that of Christiani, *`DartMinHash`: Fast sketching for weighted sets* (2020); all constants are defined
//! here.
//!
//! An element has random points, the *darts*, in the plane of weight and rank: on average one for each unit of area,
//! and the same darts in all documents. A document has each dart of an element whose weight is below the weight of the
//! element in the document. The hash of a dart assigns it to one of t positions of the signature, and the dart of least
//! rank is the minimum of its position. Of all darts in the union of two documents, the one of least rank is at a
//! uniformly random point of the union's area. So it is in both documents with a probability equal to their weighted
//! resemblance. Positions are independent, so the variance of the estimate is `J (1 - J) / t`.
//!
//! ```text
//! weight   in units of 2^-16, 2^12 to 2^40 - 1: at least 1/16 and less than 2^24
//! level v  weights from (2^v - 1) up to, not including, 2^(v+1) - 1, in whole units; v from 0
//! cell     (v, r): the weights of level v, ranks from r / 2^v up to (r + 1) / 2^v: an area of 1
//! mix(x)   x = (x ^ x >> 30) * BF58476D1CE4E5B9;  x = (x ^ x >> 27) * 94D049BB133111EB;  x ^ x >> 31      mod 2^64
//! h        mix(element ^ mix(v << 56 | r + 1))
//! darts    the number of darts in the cell: how many of the 20 numbers of POISSON are <= h
//! dart d   a = mix(h + (2 d + 1) G), b = mix(h + (2 d + 2) G), c = mix(a ^ rot(b, 32)), d from 0, G = 9E3779B97F4A7C15
//!   weight ((2^v - 1) << 16) + the upper v + 16 bits of a; the document has the dart if it is below the element's weight
//!   rank   r / 2^v + (the upper 40 bits of b) / 2^(40 + v)
//!   place  the position in the signature: the upper 64 bits of c * t
//!   value  the lower 32 bits of c; of two darts of equal rank, the one with the lesser value is used
//! ```

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::params::MINIMA_MAX;

/// The weight 1, in units of 2^-16.
pub const WEIGHT_ONE: u64 = 1 << 16;
/// The least weight, 1/16. With lower weights, the minima of a document of one element would take too many cells.
pub const WEIGHT_MIN: u64 = 1 << 12;
/// The greatest weight, 2^24 - 2^-16.
pub const WEIGHT_MAX: u64 = (1 << 40) - 1;

/// The probabilities, times 2^64, that a cell has at most n darts, for n from 0. It has the Poisson distribution with
/// mean 1.
const POISSON: [u64; 20] = [
    0x5E2D_58D8_B3BC_DF1A,
    0xBC5A_B1B1_6779_BE35,
    0xEB71_5E1D_C158_2DC2,
    0xFB23_9797_34A2_52F1,
    0xFF10_25F5_9174_DC3D,
    0xFFD9_0F3B_A405_5E19,
    0xFFFA_8B71_FC72_C913,
    0xFFFF_540C_0914_B3C9,
    0xFFFF_ED1F_4AA8_F120,
    0xFFFF_FE21_6E64_1462,
    0xFFFF_FFD4_D85D_3183,
    0xFFFF_FFFC_6DA2_62B4,
    0xFFFF_FFFF_BA12_D178,
    0xFFFF_FFFF_FB07_C64C,
    0xFFFF_FFFF_FFAB_8EA5,
    0xFFFF_FFFF_FFFA_BE22,
    0xFFFF_FFFF_FFFF_B11A,
    0xFFFF_FFFF_FFFF_FBA1,
    0xFFFF_FFFF_FFFF_FFC5,
    0xFFFF_FFFF_FFFF_FFFD,
];
/// The increment of splitmix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Converts a weight to units of 2^-16, rounded to the nearest.
///
/// # Errors
/// [`Error::Invalid`] unless `value`, after rounding, is at least 1/16 and less than 2^24.
pub fn weight(value: f64) -> Result<u64> {
    let units = (value * WEIGHT_ONE as f64).round();
    // NaN is not in the range.
    #[allow(clippy::cast_sign_loss, reason = "it is in the range")]
    if (WEIGHT_MIN as f64..=WEIGHT_MAX as f64).contains(&units) {
        return Ok(units as u64);
    }
    Err(Error::Invalid(format!(
        "a weight of {value}: expected at least 1/16 and less than 2^24; multiply all weights by one number"
    )))
}

/// The error message for a weight out of range, in units of 2^-16.
pub(crate) fn weight_out_of_range(weight: i128) -> String {
    format!("a weight of {weight} / 65536: expected 4096 to {WEIGHT_MAX}; multiply all weights by one number")
}

/// Writes to `out` the distinct shingles of a document, ascending, each with its number of occurrences as the weight. Sorts
/// `shingles`.
pub fn term_frequencies(shingles: &mut [u64], out: &mut Vec<(u64, u64)>) {
    shingles.sort_unstable();
    out.clear();
    out.extend(shingles.chunk_by(|a, b| a == b).map(|same| {
        let weight = (same.len() as u64).saturating_mul(WEIGHT_ONE).min(WEIGHT_MAX);
        (same[0], weight)
    }));
}

/// Returns the sum of the lesser weights and the sum of the greater weights of two documents, whose elements must be
/// ascending and distinct. The weighted resemblance is the first sum divided by the second. The sums are exact. Takes linear
/// time.
///
/// ```
/// use twindex_sketch::darts::weighted_jaccard;
///
/// let a = [(1, 2), (2, 1), (5, 4)];
/// let b = [(1, 3), (4, 1), (5, 1)];
/// assert_eq!(weighted_jaccard(&a, &b), (2 + 1, 3 + 1 + 1 + 4));
/// ```
#[must_use]
pub fn weighted_jaccard(a: &[(u64, u64)], b: &[(u64, u64)]) -> (u128, u128) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let (mut min, mut max) = (0_u128, 0_u128);
    loop {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return (min, max),
            (Some(x), Some(y)) => x.0.cmp(&y.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let one = if order.is_le() { a.next() } else { None };
        let other = if order.is_ge() { b.next() } else { None };
        let [one, other] = [one, other].map(|found| found.map_or(0, |found| u128::from(found.1)));
        min += one.min(other);
        max += one.max(other);
    }
}

/// Computes signatures of weighted sets, with a fixed number of minima. [`matches`](crate::matches) and
/// [`Resemblance::of_signatures`](crate::Resemblance::of_signatures) compare them like the signatures of sets.
///
/// ```
/// use twindex_sketch::Resemblance;
/// use twindex_sketch::darts::{WEIGHT_ONE, WeightedMinHasher};
///
/// let hasher = WeightedMinHasher::new(256)?;
/// let (a, b) = ([(11, 3 * WEIGHT_ONE), (12, WEIGHT_ONE)], [(11, 2 * WEIGHT_ONE), (12, 2 * WEIGHT_ONE)]);
/// let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
/// hasher.signature(&a, &mut of_a)?;
/// hasher.signature(&b, &mut of_b)?;
/// let estimate = Resemblance::of_signatures(&of_a, &of_b).value();
/// assert!((estimate - 3.0 / 5.0).abs() < 0.1);
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedMinHasher {
    minima: usize,
}

impl WeightedMinHasher {
    /// Creates a hasher for signatures of `minima` minima, 1 to [`MINIMA_MAX`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other number.
    pub fn new(minima: usize) -> Result<Self> {
        if (1..=MINIMA_MAX as usize).contains(&minima) {
            return Ok(Self { minima });
        }
        Err(Error::Invalid(format!("{minima} minima: expected 1 to {MINIMA_MAX}")))
    }

    /// Writes to `out` the minima of a document, given as elements and their weights in units of 2^-16. Elements are
    /// distinct, well-mixed hashes, in any order. `out` is empty if there are no elements.
    ///
    /// Time: O(sum of max(1, log2 weight)) over the elements, plus O(t log t); more if the total weight is less than the
    /// number of elements.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a weight out of range.
    pub fn signature(&self, elements: &[(u64, u64)], out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        for &(_, weight) in elements {
            if !(WEIGHT_MIN..=WEIGHT_MAX).contains(&weight) {
                return Err(Error::Invalid(weight_out_of_range(weight.into())));
            }
        }
        self.minima_of(|| elements.iter().copied(), out);
        Ok(())
    }

    /// Creates a hasher for a number of minima that the check of the parameters has already accepted.
    pub(crate) fn of_minima(minima: usize) -> Self {
        Self { minima }
    }

    pub(crate) fn minima(&self) -> usize {
        self.minima
    }

    /// Like [`signature`](Self::signature), for elements whose weights are known to be in range. Repetitions of an
    /// element with the same weight do not change the result.
    pub(crate) fn minima_of<I: Iterator<Item = (u64, u64)>>(
        &self,
        elements: impl Fn() -> I,
        out: &mut Vec<u32>,
    ) {
        out.clear();
        let total: u128 = elements().map(|(_, weight)| u128::from(weight)).sum();
        let t = self.minima;
        if total == 0 || t == 0 {
            return;
        }
        let mut min = vec![(u128::MAX, u32::MAX); t];
        // `step` is a rank in units of 2^-64, below which somewhat more than t ln t darts are expected. Ranks stay
        // below 2^40, because weights have a minimum.
        let darts = t as u128 * (7 * u128::from(t.ilog2()) + 20) / 10;
        let step = ((darts << 80) / total).max(1);
        let mut from = 0_u128;
        loop {
            let to = from + step;
            for (element, weight) in elements() {
                throw(element, weight, (from, to), &mut min);
            }
            // The darts of all ranks below `to` were computed, so minima whose ranks are below `to` are final.
            if min.iter().all(|&(rank, _)| rank < to) {
                break;
            }
            from = to;
        }
        out.extend(min.iter().map(|&(_, value)| value));
    }
}

/// Updates the minima with the darts of an element, in the cells whose ranks begin in `from..to`.
fn throw(element: u64, weight: u64, (from, to): (u128, u128), min: &mut [(u128, u32)]) {
    let t = min.len() as u128;
    for level in 0..24_u32 {
        let base = ((1_u64 << level) - 1) << 16;
        if base >= weight {
            return;
        }
        // Returns the first cell that begins at or after the given rank.
        let cell = |rank: u128| ((rank << level) + u128::from(u64::MAX)) >> 64;
        for at in cell(from) as u64..cell(to) as u64 {
            let hash = mix(element ^ mix(u64::from(level) << 56 | (at + 1)));
            let mut dart = 0;
            while dart < POISSON.len() && POISSON[dart] <= hash {
                let a = mix(hash.wrapping_add((2 * dart as u64 + 1).wrapping_mul(GOLDEN)));
                let b = mix(hash.wrapping_add((2 * dart as u64 + 2).wrapping_mul(GOLDEN)));
                dart += 1;
                if base + (a >> (48 - level)) >= weight {
                    continue;
                }
                let rank = (u128::from(at) << 64 | u128::from(b >> 24) << 24) >> level;
                let c = mix(a ^ b.rotate_left(32));
                let place = ((u128::from(c) * t) >> 64) as usize;
                if (rank, c as u32) < min[place] {
                    min[place] = (rank, c as u32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two documents of n elements with different weights.
    fn pair(trial: u64) -> [Vec<(u64, u64)>; 2] {
        let element = |number: u64| mix(trial.wrapping_mul(1 << 20) + number + 1);
        let weights = |document: u64| {
            (0..12_u64).filter_map(move |number| {
                let weight = [0, 4096, 40_000, 65_536, 131_072, 300_000, 1_000_000]
                    [((number * 3 + document * (number % 3 / 2)) % 7) as usize];
                (weight > 0).then(|| (element(number), weight))
            })
        };
        [0, 1].map(|document| {
            let mut all: Vec<_> = weights(document).collect();
            all.sort_unstable();
            all
        })
    }

    #[test]
    fn fraction_of_equal_minima_is_unbiased_with_expected_variance() {
        const TRIALS: u64 = 20_000;
        const MINIMA: usize = 16;
        let hasher = WeightedMinHasher::new(MINIMA).unwrap();
        let [a, b] = pair(0);
        let (min, max) = weighted_jaccard(&a, &b);
        let exact = min as f64 / max as f64;
        assert!((0.1..0.9).contains(&exact), "{exact}");
        let (mut sum, mut squares, mut signatures) = (0.0, 0.0, [Vec::new(), Vec::new()]);
        for trial in 0..TRIALS {
            let documents = pair(trial);
            for (document, signature) in documents.iter().zip(&mut signatures) {
                hasher.signature(document, signature).unwrap();
            }
            let equal = signatures[0].iter().zip(&signatures[1]).filter(|(a, b)| a == b).count();
            let share = equal as f64 / MINIMA as f64;
            sum += share;
            squares += (share - exact) * (share - exact);
        }
        let (mean, variance) = (sum / TRIALS as f64, squares / TRIALS as f64);
        let expected = exact * (1.0 - exact) / MINIMA as f64;
        let error = (expected / TRIALS as f64).sqrt();
        println!(
            "J {exact:.6}, mean {mean:.6}, {:.2} standard errors; variance by J(1-J)/t {:.4}",
            (mean - exact) / error,
            variance / expected
        );
        assert!((mean - exact).abs() < 3.0 * error, "{mean} instead of {exact}, standard error {error}");
        assert!((variance / expected - 1.0).abs() < 0.05, "{variance} instead of {expected}");
    }

    /// Compares the two sums with sums over all elements, computed one element at a time.
    #[test]
    fn weighted_resemblance_equals_brute_force() {
        for trial in 0..200 {
            let [a, b] = pair(trial);
            let b: Vec<_> = b.into_iter().filter(|&(element, _)| (element ^ trial) % 5 > 0).collect();
            let of = |document: &[(u64, u64)], element: u64| {
                document.iter().find(|one| one.0 == element).map_or(0, |one| u128::from(one.1))
            };
            let mut elements: Vec<u64> = a.iter().chain(&b).map(|one| one.0).collect();
            elements.sort_unstable();
            elements.dedup();
            let min = elements.iter().map(|&element| of(&a, element).min(of(&b, element))).sum();
            let max = elements.iter().map(|&element| of(&a, element).max(of(&b, element))).sum();
            assert_eq!(weighted_jaccard(&a, &b), (min, max));
            assert_eq!(weighted_jaccard(&b, &a), (min, max));
        }
        assert_eq!(weighted_jaccard(&[], &[]), (0, 0));
    }

    #[test]
    fn minima_match_the_second_implementation() {
        let golden = include_str!("../../../tests/golden/weighted-minima.tsv");
        let mut rows = 0;
        for row in golden.lines().skip(1) {
            let fields: Vec<&str> = row.split('\t').collect();
            let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
            let elements: Vec<(u64, u64)> = fields[1]
                .split(' ')
                .map(|one| one.split_once(':').unwrap())
                .map(|(element, weight)| (number(element), weight.parse().unwrap()))
                .collect();
            let wanted: Vec<u32> = fields[2].split(' ').map(|value| number(value) as u32).collect();
            let mut signature = Vec::new();
            WeightedMinHasher::new(fields[0].parse().unwrap())
                .unwrap()
                .signature(&elements, &mut signature)
                .unwrap();
            assert_eq!(signature, wanted, "{row}");
            rows += 1;
        }
        assert!(rows >= 20);
    }

    #[test]
    fn weights_out_of_range_are_refused_and_frequencies_are_counted() {
        assert_eq!((weight(1.0), weight(0.0625)), (Ok(WEIGHT_ONE), Ok(WEIGHT_MIN)));
        for bad in [0.0, -1.0, 0.06, f64::NAN, f64::INFINITY, 16_777_216.0] {
            assert!(weight(bad).unwrap_err().to_string().contains("1/16 and less than 2^24"), "{bad}");
        }
        let hasher = WeightedMinHasher::new(8).unwrap();
        let mut signature = vec![1];
        for bad in [0, WEIGHT_MIN - 1, WEIGHT_MAX + 1] {
            assert!(hasher.signature(&[(1, bad)], &mut signature).is_err() && signature.is_empty(), "{bad}");
        }
        assert!(hasher.signature(&[], &mut signature).is_ok() && signature.is_empty());
        assert!(WeightedMinHasher::new(0).is_err() && WeightedMinHasher::new(5000).is_err());
        let (mut shingles, mut found) = (vec![7, 3, 7, 7, 9], Vec::new());
        term_frequencies(&mut shingles, &mut found);
        assert_eq!(found, [(3, WEIGHT_ONE), (7, 3 * WEIGHT_ONE), (9, WEIGHT_ONE)]);
    }
}
