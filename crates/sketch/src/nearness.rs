//! When a document is near another one, counted exactly on their shingles.
//!
//! Everything that decides by counts uses this module: batches, streams and single queries. Nothing is rounded: a fraction is
//! compared with the decimal that was written, as [`Resemblance::at_least`] says.

use super::estimate::{Resemblance, intersection_from};

/// The condition under which a document is near another one. The threshold is above 0, and 1 at most.
///
/// ```
/// use twindex_sketch::Nearness;
///
/// // 8 shingles of one document of 9 are in another one, of 19.
/// assert!(!Nearness::Resemblance(0.8).is_met(8, 9, 19)); // 8/20
/// assert!(Nearness::Containment(0.8).is_met(8, 9, 19)); // 8/9
/// assert!(!Nearness::Containment(0.8).is_met(8, 19, 9), "only in a larger one, or one of the same size");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nearness {
    /// Their resemblance, the shingles of both by those of either, is at least this.
    Resemblance(f64),
    /// At least this share of the document's shingles is in the other one, which has as many or more.
    Containment(f64),
}

impl Nearness {
    /// The threshold.
    #[must_use]
    pub fn threshold(self) -> f64 {
        match self {
            Self::Resemblance(threshold) | Self::Containment(threshold) => threshold,
        }
    }

    /// Whether a document of `size` shingles that shares `shared` with another one, of `other`, is near it. Documents
    /// without shingles are near none.
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

    /// The fewest shingles that a document of `size` shares with one of `other` shingles that it is near; none if it is
    /// near no document of that size.
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

    /// The length of the prefix by which a document of `size` shingles finds all that it is near: in any order of all
    /// shingles, it shares one of this prefix with each of them.
    #[must_use]
    pub fn prefix(self, size: usize) -> usize {
        (size + 1).saturating_sub(least_part(size, self.threshold()))
    }

    /// How many shingles of a document of `size`, in the same order, are enough to be found by all that are near it.
    #[must_use]
    pub fn indexed(self, size: usize) -> usize {
        match self {
            Self::Resemblance(_) => self.prefix(size),
            Self::Containment(_) => size,
        }
    }

    /// How many shingles a document shares with another one, if it is near it. Both ascend, without repetitions.
    #[must_use]
    pub fn shared(self, document: &[u64], other: &[u64]) -> Option<usize> {
        let min = self.least_shared(document.len(), other.len())?;
        let shared = intersection_from(document, other, min)?;
        self.is_met(shared, document.len(), other.len()).then_some(shared)
    }
}

/// Whether sets of these sizes can resemble each other by `threshold`: at best the smaller is part of the larger.
#[must_use]
pub fn could_resemble(small: u64, large: u64, threshold: f64) -> bool {
    Resemblance::Exact { intersection: small as usize, union: large as usize }.at_least(threshold)
}

/// The least intersection of two sets with `sum` elements in all whose resemblance is at least `threshold`; more than
/// half of `sum` if there is none.
#[must_use]
pub fn least_intersection(sum: usize, threshold: f64) -> usize {
    let reaches = |both: usize| {
        Resemblance::Exact { intersection: both, union: sum.saturating_sub(both) }.at_least(threshold)
    };
    // Near enough by a formula, and then by the definition itself, which rounds as it rounds.
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

/// Elements in which two sets with `sum` elements in all differ at most, if their resemblance is at least `threshold`:
/// what they do not share is in one of the two. None if there are no such sets.
#[must_use]
pub fn most_differences(sum: usize, threshold: f64) -> Option<usize> {
    sum.checked_sub(2 * least_intersection(sum, threshold))
}

/// The least size of a set that can resemble one of `size` elements; more than `size` for none.
#[must_use]
pub fn least_part(size: usize, threshold: f64) -> usize {
    let resembles = |part: usize| could_resemble(part as u64, size as u64, threshold);
    // As in `least_intersection`: a guess, and then the definition.
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
    fn the_least_intersection_is_the_first_that_reaches_the_threshold() {
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
    fn near_sets_share_enough_elements_and_one_of_the_prefix() {
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
                        // Sets without a common element in their prefixes share fewer elements than needed.
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
