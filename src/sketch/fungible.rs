//! Features of two documents compared: how many agree, and whether that is enough.
//!
//! Broder calls documents *fungible* that share r features or more; how likely that is at which resemblance says
//! [`choices::FeatureScheme`](crate::choices::FeatureScheme). For small collections one byte of each feature is
//! enough ([`Preset::SMALL_8`](crate::choices::Preset::SMALL_8)): 8 bytes a document, at the price of bytes that agree
//! by chance in 1 of 256 cases.

/// How many features agree at the same place: 64-bit features, or bytes of [`small_features`].
///
/// ```
/// assert_eq!(twindex::sketch::agreeing(&[1_u64, 2, 3], &[1, 3, 3]), 2);
/// ```
#[must_use]
pub fn agreeing<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// Whether at least `threshold` features agree. Documents without features are not fungible with any, but for a
/// threshold of 0.
///
/// ```
/// use twindex::Params;
/// use twindex::choices::Preset;
/// use twindex::sketch::{Sketcher, fungible};
///
/// let preset = Preset::BRODER_84;
/// let sketcher = Sketcher::new(&Params::builder().words(1).preset(preset).build()?)?;
/// let sketch = |text| sketcher.sketch(text);
/// let (a, b, c) = (sketch("one two three")?, sketch("ONE, two; three")?, sketch("four five six")?);
/// let threshold = preset.scheme.threshold.into();
/// assert!(fungible(a.features(), b.features(), threshold));
/// assert!(!fungible(a.features(), c.features(), threshold));
/// # Ok::<(), twindex::Error>(())
/// ```
#[must_use]
pub fn fungible<T: PartialEq>(a: &[T], b: &[T], threshold: usize) -> bool {
    agreeing(a, b) >= threshold
}

/// Replaces `small` by one byte of each feature, the most significant.
///
/// ```
/// let mut small = Vec::new();
/// twindex::sketch::small_features(&[0x0123_4567_89ab_cdef, u64::MAX], &mut small);
/// assert_eq!(small, [0x01, 0xff]);
/// ```
pub fn small_features(features: &[u64], small: &mut Vec<u8>) {
    small.clear();
    small.extend(features.iter().map(|feature| (feature >> 56) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::{FeatureScheme, Preset};
    use crate::sketch::features;
    use twindex_kernel::splitmix::SplitMix;

    fn happens(random: &mut SplitMix, probability: f64) -> bool {
        ((random.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// The share of fungible pairs among signatures whose minima are equal with this probability each.
    fn accepted(scheme: FeatureScheme, resemblance: f64, trials: u32, seed: u64) -> f64 {
        let mut random = SplitMix(seed);
        let (mut bytes, mut whole, mut count) = (Vec::new(), [Vec::new(), Vec::new()], 0);
        let mut small = [Vec::new(), Vec::new()];
        for _ in 0..trials {
            let a: Vec<u32> = (0..scheme.minima()).map(|_| random.next() as u32 >> 1).collect();
            let b: Vec<u32> = a
                .iter()
                .map(|minimum| if happens(&mut random, resemblance) { *minimum } else { minimum ^ 1 << 31 })
                .collect();
            for (signature, whole) in [a, b].iter().zip(&mut whole) {
                features(signature, scheme.group_size.into(), &mut bytes, whole);
            }
            let [a, b] = &whole;
            let threshold = scheme.threshold.into();
            count += u32::from(if scheme.feature_bits == 8 {
                let [small_a, small_b] = &mut small;
                small_features(a, small_a);
                small_features(b, small_b);
                fungible(small_a, small_b, threshold)
            } else {
                fungible(a, b, threshold)
            });
        }
        f64::from(count) / f64::from(trials)
    }

    #[test]
    fn as_many_pairs_are_fungible_as_the_formula_says() {
        let trials = 20_000;
        let bytes = |threshold| FeatureScheme { threshold, ..Preset::SMALL_8.scheme };
        for (scheme, resemblance) in [
            (Preset::BRODER_84.scheme, 0.8),
            (Preset::BRODER_84.scheme, 0.9),
            (Preset::BRODER_200.scheme, 0.9),
            (Preset::LSH_20X6.scheme, 0.5),
            (bytes(3), 0.9),
            (bytes(3), 0.8),
            (bytes(7), 0.99),
            // Chance alone: 3.1 % with one byte, 0.04 % with two.
            (bytes(1), 0.0),
            (bytes(2), 0.0),
            (bytes(1), 0.5),
        ] {
            let expected = scheme.fungible(resemblance);
            let found = accepted(scheme, resemblance, trials, 3);
            let error = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
            assert!(
                (found - expected).abs() < 4.0 * error,
                "{scheme:?} {resemblance}: {found}, {expected}±{error}"
            );
        }
    }

    #[test]
    fn features_agree_at_their_place_only() {
        assert_eq!(agreeing(&[1_u8, 2, 3], &[3, 2, 1]), 1);
        assert_eq!(agreeing(&[1_u64, 2], &[1, 2, 3]), 2);
        assert!(fungible(&[1_u8, 2], &[1, 3], 1) && !fungible(&[1_u8, 2], &[1, 3], 2));
    }

    #[test]
    fn what_has_no_features_is_fungible_with_nothing() {
        let empty: [u64; 0] = [];
        assert!(!fungible(&empty, &empty, 1) && !fungible(&empty, &[0], 1) && fungible(&empty, &empty, 0));
        let mut small = vec![7];
        small_features(&empty, &mut small);
        assert!(small.is_empty());
    }
}
