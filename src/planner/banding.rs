//! Computes the probability that two documents share a band, and chooses bands for a threshold.
//!
//! With `b` bands of `r` minima, two documents of resemblance `J` agree in a given band with probability `J^r`, and in
//! at least one band with probability `1 - (1 - J^r)^b`. As a function of `J`, this is the S-curve (Broder's features
//! with threshold 1, *Algorithms for duplicate documents*, "Prob of acceptance"; Leskovec, Rajaraman and Ullman,
//! *Mining of Massive Datasets*, 3.4.2). It is steepest near `(1 / b)^(1 / r)`. If documents must share several bands,
//! the curve is steeper and further to the right ([`Banding::recall_sharing`]). [`FeatureScheme`] is the general case,
//! and [`choose`](super::choose) also bounds the rate of false positives.

use crate::params::FeatureScheme;

/// Default number of minima from which the bands of an index are computed.
pub const MINIMA: u16 = 120;
/// Recommended number of minima if only the estimated resemblance decides which pairs are accepted. The standard
/// deviation of the estimate at a resemblance of 0.8 is then 0.018, compared with 0.037 for [`MINIMA`] minima.
pub const MINIMA_TO_ESTIMATE: u16 = 512;
/// The minimum recall of chosen bands for pairs whose resemblance equals the threshold. More similar pairs are found
/// with a higher recall.
pub const RECALL: f64 = 0.995;

/// The number of bands, and the number of minima in each band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banding {
    /// The number of bands.
    pub bands: u16,
    /// The number of minima in each band.
    pub rows: u16,
}

impl Banding {
    /// Returns the probability that two documents of resemblance `resemblance`, from 0 to 1, share a band.
    ///
    /// ```
    /// let banding = twindex::planner::Banding { bands: 20, rows: 6 };
    /// assert!((banding.recall(0.8) - 0.9977).abs() < 1e-4);
    /// assert!(banding.recall(0.3) < 0.02);
    /// ```
    #[must_use]
    pub fn recall(&self, resemblance: f64) -> f64 {
        1.0 - (1.0 - resemblance.powi(self.rows.into())).powi(self.bands.into())
    }

    /// Returns the probability that two documents of resemblance `resemblance`, from 0 to 1, share at least `bands`
    /// bands: the S-curve with a threshold, [`FeatureScheme::fungible`].
    ///
    /// ```
    /// let banding = twindex::planner::Banding { bands: 20, rows: 6 };
    /// assert!((banding.recall_sharing(0.8, 1) - banding.recall(0.8)).abs() < 1e-12);
    /// // With two shared bands, less than 5 % of the pairs found at 0.4 remain, and more than 98 % of all pairs at 0.8.
    /// assert!(banding.recall_sharing(0.4, 2) < 0.05 * banding.recall(0.4));
    /// assert!(banding.recall_sharing(0.8, 2) > 0.98);
    /// ```
    #[must_use]
    pub fn recall_sharing(&self, resemblance: f64, bands: u16) -> f64 {
        FeatureScheme { threshold: bands, ..FeatureScheme::from(*self) }.fungible(resemblance)
    }

    /// Returns the banding that [`of_minima`](Self::of_minima) chooses for a threshold with [`MINIMA`] minima.
    ///
    /// ```
    /// use twindex::planner::Banding;
    /// assert_eq!(Banding::for_threshold(0.8), Banding { bands: 20, rows: 6 });
    /// ```
    #[must_use]
    pub fn for_threshold(threshold: f64) -> Self {
        Self::of_minima(MINIMA, threshold)
    }

    /// Returns the most selective banding of at most `minima` minima whose recall at `threshold` is at least
    /// [`RECALL`]: the longest bands that reach this recall, and as many bands as the minima allow. Low thresholds are
    /// out of reach: below about 0.04 with [`MINIMA`] minima, and below 0.01 with 512. In that case, returns bands of
    /// one minimum.
    ///
    /// ```
    /// use twindex::planner::banding::{Banding, MINIMA_TO_ESTIMATE};
    /// assert_eq!(Banding::of_minima(MINIMA_TO_ESTIMATE, 0.8), Banding { bands: 51, rows: 10 });
    /// ```
    #[must_use]
    pub fn of_minima(minima: u16, threshold: f64) -> Self {
        (1..=minima)
            .rev()
            .map(|rows| Self { bands: minima / rows, rows })
            .find(|banding| banding.recall(threshold) >= RECALL)
            .unwrap_or(Self { bands: minima, rows: 1 })
    }
}

impl From<Banding> for FeatureScheme {
    /// Returns the scheme that accepts a pair with one equal feature (band), because an index looks up each band
    /// separately.
    fn from(banding: Banding) -> Self {
        Self::new(banding.bands, banding.rows, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_thresholds_get_shorter_bands_with_required_recall() {
        let mut rows = 0;
        for percent in 4..=99 {
            let threshold = f64::from(percent) / 100.0;
            let banding = Banding::for_threshold(threshold);
            if percent >= 5 {
                assert!(banding.recall(threshold) >= RECALL, "{percent}: {banding:?}");
            }
            assert!(banding.rows >= rows && banding.bands * banding.rows <= MINIMA, "{percent}: {banding:?}");
            rows = banding.rows;
        }
        assert_eq!(Banding::for_threshold(0.5), Banding { bands: 40, rows: 3 });
    }
    /// Computes the probability by enumerating all sets of bands that may agree.
    fn counted(banding: Banding, resemblance: f64, at_least: u32) -> f64 {
        let q = resemblance.powi(banding.rows.into());
        (0..1_u32 << banding.bands)
            .filter(|agree| agree.count_ones() >= at_least)
            .map(|agree| {
                let count = agree.count_ones().cast_signed();
                q.powi(count) * (1.0 - q).powi(i32::from(banding.bands) - count)
            })
            .sum()
    }

    #[test]
    fn recall_sharing_equals_an_enumeration() {
        for (bands, rows) in [(1, 3), (6, 14), (8, 25), (12, 2)] {
            let banding = Banding { bands, rows };
            for resemblance in [0.0, 0.3, 0.8, 0.95, 1.0] {
                for at_least in 0..=bands + 1 {
                    let expected = counted(banding, resemblance, at_least.into());
                    let found = banding.recall_sharing(resemblance, at_least);
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "{banding:?} {resemblance} {at_least}: {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn requiring_more_shared_bands_steepens_and_shifts_the_curve() {
        let banding = Banding { bands: 20, rows: 6 };
        // Returns the resemblance at which half of the pairs are found, and the slope of the curve there.
        let middle = |r| {
            let at = (1..1000)
                .map(|j| f64::from(j) / 1000.0)
                .find(|&j| banding.recall_sharing(j, r) >= 0.5)
                .unwrap();
            (at, banding.recall_sharing(at + 0.005, r) - banding.recall_sharing(at - 0.005, r))
        };
        let curves: Vec<(f64, f64)> = (1..=5).map(middle).collect();
        assert!(curves.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{curves:?}");
    }
}
