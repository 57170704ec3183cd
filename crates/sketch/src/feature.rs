//! Computes features from a signature: one 64-bit hash of each group of minima.
//!
//! Follows Broder, *Identifying and filtering near-duplicate documents*, 2000: a signature of t minima is divided into
//! k groups of s minima, and each group is reduced to one fingerprint, a *feature* (super-shingle). Two documents of
//! resemblance p have the same feature in a given group with probability p^s. In Indyk and Motwani's locality-sensitive
//! hashing, a group is a *band* of s *rows*. An index looks up bands by their features.
//!
//! Departure from the paper: the feature of a group is xxh3-64 of its minima as little-endian bytes, where Broder uses
//! Rabin's fingerprint. The seed is `0x082efa98ec4e6c89` plus the number of the group, counted from 0, so that equal
//! minima in different groups give different features.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed for group 0: the fourth 64-bit word of the fractional part of pi.
const GROUPS: u64 = 0x082e_fa98_ec4e_6c89;

/// Replaces `features` with one feature for each group of `rows` minima of `signature`. An incomplete last group gives no
/// feature, and `rows == 0` gives no features. `scratch` is scratch memory and grows to the size of the signature in bytes.
///
/// ```
/// let mut features = Vec::new();
/// twindex_sketch::features(&[1, 2, 3, 1, 2, 3], 3, &mut Vec::new(), &mut features);
/// assert_eq!(features.len(), 2);
/// assert_ne!(features[0], features[1]);
/// ```
pub fn features(signature: &[u32], rows: usize, scratch: &mut Vec<u8>, features: &mut Vec<u64>) {
    features.clear();
    let Some(bytes_in_group) = rows.checked_mul(4).filter(|&bytes| bytes > 0) else { return };
    scratch.clear();
    scratch.extend(signature.iter().flat_map(|minimum| minimum.to_le_bytes()));
    let groups = scratch.chunks_exact(bytes_in_group).zip(GROUPS..);
    features.extend(groups.map(|(group, seed)| xxh3_64_with_seed(group, seed)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(signature: &[u32], rows: usize) -> Vec<u64> {
        let mut found = vec![1];
        features(signature, rows, &mut vec![9; 5], &mut found);
        found
    }

    #[test]
    fn feature_depends_only_on_its_group() {
        let signature: Vec<u32> = (0..84).collect();
        let whole = of(&signature, 14);
        assert_eq!(whole.len(), 6);
        for at in 0..84 {
            let mut other = signature.clone();
            other[at] ^= 1 << 31;
            let changed: Vec<bool> = of(&other, 14).iter().zip(&whole).map(|(a, b)| a != b).collect();
            let expected: Vec<bool> = (0..6).map(|group| group == at / 14).collect();
            assert_eq!(changed, expected, "minimum {at}");
        }
    }

    #[test]
    fn equal_groups_at_different_positions_have_different_features() {
        let found = of(&[7; 12], 3);
        assert!((1..4).all(|group| found[group] != found[0]));
    }

    #[test]
    fn signature_without_minima_or_rows_has_no_features() {
        assert_eq!(of(&[], 3), []);
        assert_eq!(of(&[1, 2], 3), []);
        assert_eq!(of(&[1, 2], 0), []);
    }
}
