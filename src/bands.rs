//! How likely two documents share a band, and which bands to keep for a wanted threshold.
//!
//! With `b` bands of `r` minima, documents of resemblance `J` agree in a band with probability `J^r`, and in at
//! least one with `1 - (1 - J^r)^b`: the S-curve (Broder's features with threshold 1, *Algorithms for duplicate
//! documents*, "Prob of acceptance"; Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*, 3.4.2).

/// Minima spent on bands unless somebody says otherwise.
pub const MINIMA: u16 = 120;
/// Recall wanted at the threshold itself; above it, recall is higher.
pub const RECALL: f64 = 0.995;

/// Bands and the minima in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banding {
    /// How many.
    pub bands: u16,
    /// How long each.
    pub rows: u16,
}

impl Banding {
    /// The probability that two documents of resemblance `resemblance`, from 0 to 1, share a band.
    ///
    /// ```
    /// let banding = twindex::bands::Banding { bands: 20, rows: 6 };
    /// assert!((banding.recall(0.8) - 0.9977).abs() < 1e-4);
    /// assert!(banding.recall(0.3) < 0.02);
    /// ```
    #[must_use]
    pub fn recall(&self, resemblance: f64) -> f64 {
        1.0 - (1.0 - resemblance.powi(self.rows.into())).powi(self.bands.into())
    }

    /// The most selective banding of at most [`MINIMA`] minima whose recall at `threshold` is at least
    /// [`RECALL`]: the longest bands that still find enough, and as many of them as the minima allow. Below a
    /// threshold of about 0.04 there is none; then bands of one minimum.
    ///
    /// ```
    /// use twindex::bands::Banding;
    /// assert_eq!(Banding::for_threshold(0.8), Banding { bands: 20, rows: 6 });
    /// ```
    #[must_use]
    pub fn for_threshold(threshold: f64) -> Self {
        (1..=MINIMA)
            .rev()
            .map(|rows| Self { bands: MINIMA / rows, rows })
            .find(|banding| banding.recall(threshold) >= RECALL)
            .unwrap_or(Self { bands: MINIMA, rows: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_thresholds_get_shorter_bands_and_keep_their_recall() {
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
}
