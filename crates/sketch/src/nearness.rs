//! Decides exactly, from numbers of shingles, whether one document is near another.
//!
//! Batches, streams and single queries all use this module. [`Resemblance::at_least`] explains why comparisons with a
//! decimal threshold are exact.

use super::estimate::{Resemblance, intersection_from};

/// The condition under which a document A is near a document B. The threshold is greater than 0 and at most 1.
///
/// ```
/// use twindex_sketch::Nearness;
///
/// // The documents have 9 and 19 shingles and share 8.
/// assert!(!Nearness::Resemblance(0.8).is_met(8, 9, 19)); // 8/20
/// assert!(Nearness::Containment(0.8).is_met(8, 9, 19)); // 8/9
/// assert!(!Nearness::Containment(0.8).is_met(8, 19, 9), "the other document must not be smaller");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nearness {
    /// The resemblance, that is, the number of shared shingles divided by the number of shingles in the union, is at
    /// least the threshold.
    Resemblance(f64),
    /// B contains at least this fraction of the shingles of A, and has at least as many shingles as A.
    Containment(f64),
}

impl Nearness {
    /// Returns the threshold.
    #[must_use]
    pub fn threshold(self) -> f64 {
        match self {
            Self::Resemblance(threshold) | Self::Containment(threshold) => threshold,
        }
    }

    /// Returns true if a document of `size` shingles is near a document of `other` shingles with which it has `shared`
    /// shingles in common. A document without shingles is near no document.
    #[must_use]
    #[inline]
    pub fn is_met(self, shared: usize, size: usize, other: usize) -> bool {
        match self {
            Self::Resemblance(threshold) => {
                let union = (size + other).saturating_sub(shared);
                Resemblance::Exact { intersection: shared, union }.at_least(threshold)
            }
            Self::Containment(threshold) => {
                other >= size && Resemblance::Exact { intersection: shared, union: size }.at_least(threshold)
            }
        }
    }

    /// Returns the least number of shingles that a document of `size` shingles must share with a document of `other`
    /// shingles to be near it. Returns `None` if documents of these sizes cannot be near.
    #[must_use]
    #[inline]
    pub fn least_shared(self, size: usize, other: usize) -> Option<usize> {
        let min = match self {
            Self::Resemblance(threshold) => least_intersection(size + other, threshold),
            Self::Containment(_) if other < size => return None,
            Self::Containment(threshold) => least_part(size, threshold),
        };
        (min <= size.min(other)).then_some(min)
    }

    /// Returns how many of its first shingles a document A of `size` shingles must look up (prefix filtering). If A is
    /// near a document B, then B contains at least one of these shingles. The shingles of all documents must be in the
    /// same order.
    #[must_use]
    pub fn prefix(self, size: usize) -> usize {
        (size + 1).saturating_sub(least_part(size, self.threshold()))
    }

    /// Returns how many of its first shingles a document B of `size` shingles must index. Every document that is near B
    /// [looks up](Self::prefix) at least one of the indexed shingles.
    #[must_use]
    pub fn indexed(self, size: usize) -> usize {
        match self {
            Self::Resemblance(_) => self.prefix(size),
            Self::Containment(_) => size,
        }
    }

    /// Returns the number of shingles that `document` shares with `other` if `document` is near `other`, otherwise `None`.
    /// Both slices must be ascending and without duplicates.
    #[must_use]
    pub fn shared(self, document: &[u64], other: &[u64]) -> Option<usize> {
        let min = self.least_shared(document.len(), other.len())?;
        let shared = intersection_from(document, other, min)?;
        self.is_met(shared, document.len(), other.len()).then_some(shared)
    }
}

/// Returns true if two sets of these sizes can have a resemblance of `threshold`: at best, the larger set contains the
/// smaller.
#[must_use]
pub fn could_resemble(small: u64, large: u64, threshold: f64) -> bool {
    Resemblance::Exact { intersection: small as usize, union: large as usize }.at_least(threshold)
}

/// Returns the least intersection with which two sets of `sum` elements in total have a resemblance of at least `threshold`.
/// Returns more than half of `sum` if no intersection is large enough.
#[must_use]
pub fn least_intersection(sum: usize, threshold: f64) -> usize {
    let reaches = |both: usize| {
        Resemblance::Exact { intersection: both, union: sum.saturating_sub(both) }.at_least(threshold)
    };
    // The result of this formula is rounded. The loops below correct it with exact comparisons.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are positive, and any start will do")]
    let mut min = ((threshold / (1.0 + threshold) * sum as f64) as usize).min(sum / 2);
    while min > 0 && reaches(min - 1) {
        min -= 1;
    }
    while min <= sum / 2 && !reaches(min) {
        min += 1;
    }
    min
}

/// Returns the maximum number of elements that are in only one of two sets with `sum` elements in total, if the
/// resemblance of the sets is at least `threshold`. Returns `None` if no two sets with this sum reach the threshold.
#[must_use]
pub fn most_differences(sum: usize, threshold: f64) -> Option<usize> {
    sum.checked_sub(2 * least_intersection(sum, threshold))
}

/// Returns the least size of a set that can have a resemblance of `threshold` or more to a larger set of `size`
/// elements. Returns more than `size` if no size is sufficient.
#[must_use]
pub fn least_part(size: usize, threshold: f64) -> usize {
    let resembles = |part: usize| could_resemble(part as u64, size as u64, threshold);
    // As in `least_intersection`, the loops correct a rounded start value.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are positive, and any start will do")]
    let mut min = ((threshold * size as f64) as usize).min(size);
    while min > 0 && resembles(min - 1) {
        min -= 1;
    }
    while min <= size && !resembles(min) {
        min += 1;
    }
    min
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_intersection_is_the_smallest_that_reaches_the_threshold() {
        for hundredths in 1..=100_usize {
            let threshold = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            for sum in 0..400_usize {
                let counted = (0..=sum / 2)
                    .find(|&both| sum > both && 100 * both >= hundredths * (sum - both))
                    .unwrap_or(sum / 2 + 1);
                assert_eq!(least_intersection(sum, threshold), counted, "{hundredths} {sum}");
            }
        }
    }

    #[test]
    fn near_sets_share_an_element_of_their_prefixes() {
        for hundredths in [5, 33, 50, 78, 80, 90, 95, 100_usize] {
            let threshold: f64 = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            for size in 0..40_usize {
                for other in 0..40_usize {
                    let by_fractions = |shared: usize| {
                        let union = size + other - shared;
                        let resembles = union > 0 && 100 * shared >= hundredths * union;
                        let stands = size > 0 && other >= size && 100 * shared >= hundredths * size;
                        [
                            (Nearness::Resemblance(threshold), resembles),
                            (Nearness::Containment(threshold), stands),
                        ]
                    };
                    for which in 0..2 {
                        let near = by_fractions(0)[which].0;
                        let first = (0..=size.min(other)).find(|&shared| by_fractions(shared)[which].1);
                        assert_eq!(near.least_shared(size, other), first, "{near:?} {size} {other}");
                        for shared in 0..=size.min(other) {
                            assert_eq!(near.is_met(shared, size, other), by_fractions(shared)[which].1);
                        }
                        // Two sets without a common element in their prefixes share fewer elements than are needed.
                        if let Some(min) = first {
                            assert!(size - near.prefix(size) < min, "{near:?} {size} {other}");
                            assert!(other - near.indexed(other) < min, "{near:?} {size} {other}");
                        }
                    }
                }
            }
        }
        assert_eq!(Nearness::Containment(0.5).shared(&[1, 2], &[2, 3, 4]), Some(1));
        assert_eq!(Nearness::Resemblance(0.5).shared(&[1, 2], &[2, 3, 4]), None);
        assert_eq!(Nearness::Containment(0.5).shared(&[], &[2, 3, 4]), None);
    }
}
