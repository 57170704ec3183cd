//! Counts the equal features of two documents and compares the count with a threshold.
//!
//! Broder calls documents *fungible* if they share r features or more. The planner of the crate `twindex` computes the
//! probability of this for each resemblance. For small collections, it is enough to keep one byte of each feature: 8
//! bytes for a document with 8 features. Different features then look equal with a probability of 1 in 256.

/// Returns the number of positions at which `a` and `b` have equal features. Features are 64-bit, or bytes computed by
/// [`small_features`].
///
/// ```
/// assert_eq!(twindex_sketch::agreeing(&[1_u64, 2, 3], &[1, 3, 3]), 2);
/// ```
#[must_use]
pub fn agreeing<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// Returns true if at least `threshold` features agree. A document without features is fungible with no document, unless the
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
    fn features_agree_only_at_the_same_position() {
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
