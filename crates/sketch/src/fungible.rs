//! Compares the features of two documents: how many agree, and whether they reach a threshold.
//!
//! Broder calls documents *fungible* if they share r features or more; the planner of the crate `twindex` computes the
//! probability for each resemblance. For small collections, one byte of each feature is enough: 8 bytes a document, but
//! two bytes agree by chance in 1 of 256 cases.

/// The number of positions at which the features of `a` and `b` agree: 64-bit features, or bytes of [`small_features`].
///
/// ```
/// assert_eq!(twindex_sketch::agreeing(&[1_u64, 2, 3], &[1, 3, 3]), 2);
/// ```
#[must_use]
pub fn agreeing<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// Whether at least `threshold` features agree. Documents without features are fungible with no document, unless the
/// threshold is 0.
///
/// ```
/// use twindex_sketch::params::{Shingling, SketchParams};
/// use twindex_sketch::{Sketcher, fungible};
///
/// // Broder's scheme for AltaVista: 6 features of 14 minima each; 2 must agree.
/// let sketcher = Sketcher::new(SketchParams::new(Shingling::words(1, 0)).with_minhash(6, 14))?;
/// let sketch = |text| sketcher.sketch(text);
/// let (a, b, c) = (sketch("one two three")?, sketch("ONE, two; three")?, sketch("four five six")?);
/// let threshold = 2;
/// assert!(fungible(a.features(), b.features(), threshold));
/// assert!(!fungible(a.features(), c.features(), threshold));
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[must_use]
pub fn fungible<T: PartialEq>(a: &[T], b: &[T], threshold: usize) -> bool {
    agreeing(a, b) >= threshold
}

/// Replaces `small` with the most significant byte of each feature.
///
/// ```
/// let mut small = Vec::new();
/// twindex_sketch::small_features(&[0x0123_4567_89ab_cdef, u64::MAX], &mut small);
/// assert_eq!(small, [0x01, 0xff]);
/// ```
pub fn small_features(features: &[u64], small: &mut Vec<u8>) {
    small.clear();
    small.extend(features.iter().map(|feature| (feature >> 56) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_agree_at_their_place_only() {
        assert_eq!(agreeing(&[1_u8, 2, 3], &[3, 2, 1]), 1);
        assert_eq!(agreeing(&[1_u64, 2], &[1, 2, 3]), 2);
        assert!(fungible(&[1_u8, 2], &[1, 3], 1) && !fungible(&[1_u8, 2], &[1, 3], 2));
    }

    #[test]
    fn document_without_features_is_fungible_with_none() {
        let empty: [u64; 0] = [];
        assert!(!fungible(&empty, &empty, 1) && !fungible(&empty, &[0], 1) && fungible(&empty, &empty, 0));
        let mut small = vec![7];
        small_features(&empty, &mut small);
        assert!(small.is_empty());
    }
}
