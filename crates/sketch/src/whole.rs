//! Rounds weights to whole units, so that weighted resemblance can be counted exactly for fractional weights.
//!
//! A set contains whole elements only. So each weight is rounded to a whole number of [units](WeightUnit), and a
//! shingle of n units becomes n elements, like a shingle that occurs n times ([`occurrences`](crate::occurrences)). The
//! resemblance of such sets is the sum of the lesser rounded weights divided by the sum of the greater ones. Code that
//! counts or samples sets needs no changes. The cost is one element for each unit.
//!
//! ```text
//! elements of a shingle = floor(weight / unit + 1/2)     weight = frequency, or the caller's; times the inverse document
//!                                                        frequency if weights use it; rounded once, after the product
//! ```
//!
//! **Error.** A rounded weight differs from the weight by at most half a unit. Rounding keeps the order of weights, so the
//! lesser of two rounded weights is the rounded lesser weight. Let n be the number of different shingles of two documents,
//! and M' the sum of their greater rounded weights. Then the sum of the lesser weights and the sum of the greater weights
//! each change by at most n unit / 2, and the resemblance changes from R to R' with
//!
//! ```text
//! |R' - R|  <=  (1 + R) / 2 * unit * n / M'  <=  unit / mean        mean = M' / n, the mean of the greater rounded weights
//! ```
//!
//! Inverse document frequencies are 1 to 33 ([`idf`](crate::idf)). With a mean of 12 and a unit of 1/4, the error is at most
//! 0.021. Weights that are whole numbers of units are not changed by rounding.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::occurrences::element;

/// Maximum number of elements of one document: the sum of its rounded weights in units.
pub const ELEMENTS_MAX: u64 = 1 << 24;

/// A unit of weights: a multiple of 2^-16 from 1/256 to 2.
///
/// ```
/// use twindex_sketch::whole::WeightUnit;
///
/// let unit: WeightUnit = "0.25".parse()?;
/// assert_eq!((unit.units(), unit.to_string().as_str()), (1 << 14, "0.25"));
/// // 2.6 is 10.4 units and 2.625 is 10.5 units; halves are rounded up.
/// assert_eq!((unit.count(170_394, 256), unit.count(172_032, 256)), (10, 11));
/// assert!("0.3".parse::<WeightUnit>().is_err());
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightUnit(u32);

impl WeightUnit {
    /// The unit 1.
    pub const ONE: Self = Self(1 << 16);
    /// The least unit, 1/256: the precision of tables of inverse document frequencies.
    pub const MIN: Self = Self(1 << 8);
    /// The greatest unit, 2. Half of it is 1, the least inverse document frequency, which is thus still rounded up to
    /// one element.
    pub const MAX: Self = Self(1 << 17);

    /// Returns the unit `units` times 2^-16, for `units` from 2^8 to 2^17.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other number.
    pub fn new(units: u32) -> Result<Self> {
        if (Self::MIN.0..=Self::MAX.0).contains(&units) {
            return Ok(Self(units));
        }
        Err(Error::Invalid(format!("a unit of weights of {units} / 65536: expected 256 to 131072")))
    }

    /// Returns the unit with this value, from 1/256 to 2.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number out of this range, or one that is not a multiple of 2^-16.
    pub fn of(value: f64) -> Result<Self> {
        let units = value * f64::from(Self::ONE.0);
        // NaN is not in the range.
        if (f64::from(Self::MIN.0)..=f64::from(Self::MAX.0)).contains(&units) && units.fract() == 0.0 {
            #[allow(clippy::cast_sign_loss, reason = "it is in the range")]
            return Ok(Self(units as u32));
        }
        Err(Error::Invalid(format!(
            "a unit of weights of {value}: expected 1/256 to 2, and a multiple of 1/65536, such as 0.25"
        )))
    }

    /// Returns the unit as a multiple of 2^-16.
    #[must_use]
    pub fn units(self) -> u32 {
        self.0
    }

    /// Returns the unit as a number.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }

    /// Returns a weight as a number of these units, rounded to the nearest whole number; halves are rounded up.
    /// `weight` is in units of 2^-16 and below 2^112. `times` is a factor in units of 2^-8: an inverse document
    /// frequency, or 256 if there is none.
    #[must_use]
    pub fn count(self, weight: u128, times: u16) -> u128 {
        let unit = u128::from(self.0) << 8;
        (weight * u128::from(times) + unit / 2) / unit
    }
}

impl fmt::Display for WeightUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A multiple of 2^-16 in this range is exact as a double.
        write!(f, "{}", self.value())
    }
}

impl FromStr for WeightUnit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let value = text.trim().parse();
        Self::of(
            value.map_err(|_| {
                Error::Invalid(format!("a unit of weights: expected a number, found {text:?}"))
            })?,
        )
    }
}

/// Appends the elements of a shingle of `count` units. The caller must add each shingle of a document only once.
///
/// # Errors
/// [`Error::Invalid`] if `out` would have more than `elements_max` elements.
pub fn append(shingle: u64, count: u128, elements_max: u64, out: &mut Vec<u64>) -> Result<()> {
    let all = out.len() as u128 + count;
    if all > u128::from(elements_max) {
        return Err(Error::Invalid(format!(
            "a document whose weights are more than {elements_max} units: take a larger unit, multiply all weights by a \
             number below 1, or give more memory"
        )));
    }
    out.extend((0..count as u64).map(|nth| element(shingle, nth)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::jaccard;

    fn set(document: &BTreeMap<u64, u32>, idf: impl Fn(u64) -> u16, unit: WeightUnit) -> Vec<u64> {
        let mut elements = Vec::new();
        for (&shingle, &weight) in document {
            append(shingle, unit.count(weight.into(), idf(shingle)), ELEMENTS_MAX, &mut elements).unwrap();
        }
        elements.sort_unstable();
        elements
    }

    proptest! {
        /// Compares with weights that are rounded one by one and then added.
        #[test]
        fn elements_and_rounded_weights_have_equal_resemblance(
            a in proptest::collection::btree_map(0_u64..12, 1_u32..400_000, 0..10),
            b in proptest::collection::btree_map(0_u64..12, 1_u32..400_000, 0..10),
            idfs in proptest::collection::vec(256_u16..=8448, 12),
            unit in (256_u32..=131_072).prop_map(|units| WeightUnit::new(units & !255).unwrap()),
            by_table in any::<bool>(),
        ) {
            // With a small unit, large weights would give many elements and make the test slow.
            let unit = if by_table { unit.max(WeightUnit(1 << 14)) } else { unit };
            let idf = |shingle: u64| if by_table { idfs[shingle as usize] } else { 256 };
            let (set_a, set_b) = (set(&a, idf, unit), set(&b, idf, unit));
            prop_assert!(set_a.is_sorted_by(|x, y| x < y), "each element once");
            let weight = |document: &BTreeMap<u64, u32>, shingle: u64| {
                f64::from(document.get(&shingle).copied().unwrap_or(0)) / 65_536.0 * f64::from(idf(shingle)) / 256.0
            };
            let rounded = |weight: f64| (weight / unit.value() + 0.5).floor();
            let (mut min, mut max, mut exact_least, mut exact_most, mut shingles) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for shingle in (0..12).filter(|shingle| a.contains_key(shingle) || b.contains_key(shingle)) {
                let (x, y) = (weight(&a, shingle), weight(&b, shingle));
                min += rounded(x).min(rounded(y));
                max += rounded(x).max(rounded(y));
                exact_least += x.min(y);
                exact_most += x.max(y);
                shingles += 1.0;
            }
            let (both, union) = jaccard(&set_a, &set_b);
            prop_assert_eq!((both as f64, union as f64), (min, max));
            if max > 0.0 {
                let (found, exact) = (min / max, exact_least / exact_most);
                let bound = f64::midpoint(1.0, exact) * shingles / max;
                prop_assert!((found - exact).abs() <= bound + 1e-12, "{} {} {}", found, exact, bound);
                prop_assert!(bound <= shingles / max + 1e-12);
            }
        }
    }

    #[test]
    fn valid_units_round_trip_and_others_are_refused() {
        for (text, units) in
            [("1", 65_536), ("0.25", 16_384), ("2", 131_072), ("0.00390625", 256), ("1.5", 98_304)]
        {
            let unit: WeightUnit = text.parse().unwrap();
            assert_eq!((unit.units(), unit.to_string()), (units, text.to_owned()));
            assert_eq!(WeightUnit::new(units).unwrap(), unit);
        }
        for text in ["0", "-1", "0.001", "2.1", "0.3", "nan", "inf", "", "one"] {
            assert!(text.parse::<WeightUnit>().is_err(), "{text}");
        }
        assert!(WeightUnit::new(255).is_err() && WeightUnit::new(131_073).is_err());
    }

    #[test]
    fn document_with_too_many_units_is_refused_before_allocation() {
        let mut out = vec![1, 2];
        assert_eq!(append(7, 3, ELEMENTS_MAX, &mut out), Ok(()));
        assert_eq!(out.len(), 5);
        assert!(append(7, 3, 7, &mut out).is_err());
        for count in [u128::from(ELEMENTS_MAX) - 4, u128::MAX / 2] {
            let error = append(7, count, ELEMENTS_MAX, &mut out).unwrap_err().to_string();
            assert!(error.contains("16777216 units"), "{error}");
            assert_eq!(out.len(), 5);
        }
    }
}
