//! Represents documents as sets of occurrences, so that weighted resemblance can be counted exactly.
//!
//! A shingle that occurs n times becomes n different elements: its hash, and n - 1 hashes computed from it and the
//! number of the occurrence. If a shingle occurs m times in one document and n times in another, min(m, n) of its
//! elements are in the intersection and max(m, n) in the union. So the resemblance of the two sets is the sum of the
//! lesser frequencies divided by the sum of the greater ones. Code that counts or samples sets needs no changes to take
//! frequencies into account.
//!
//! ```text
//! element(x, 0) = x                                   the first occurrence of a shingle hash x
//! element(x, n) = xxh3-64 of x as 8 bytes, the low ones first, with the seed n
//! ```

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Makes repeated shingle hashes distinct, so that a multiset can be compared as a set. The n-th occurrence of a hash
/// becomes the same element in every document. `hashes` has one hash for each occurrence, in any order; the elements are
/// in no particular order.
///
/// ```
/// use twindex_sketch::occurrences::set_apart;
///
/// let (mut a, mut b) = (vec![7, 3, 7, 7], vec![7, 7, 9]);
/// set_apart(&mut a);
/// set_apart(&mut b);
/// let both = a.iter().filter(|&element| b.contains(element)).count();
/// assert_eq!((both, a.len() + b.len() - both), (2, 3 + 1 + 1)); // 7 twice in both; 7 thrice, 3 and 9 in either
/// ```
pub fn set_apart(hashes: &mut [u64]) {
    hashes.sort_unstable();
    let (mut last, mut nth) = (None, 0_u64);
    for hash in hashes {
        nth = if last == Some(*hash) { nth + 1 } else { 0 };
        last = Some(*hash);
        *hash = element(*hash, nth);
    }
}

/// Returns the element of the `nth` occurrence of a shingle, counted from 0.
pub(crate) fn element(hash: u64, nth: u64) -> u64 {
    if nth == 0 { hash } else { xxh3_64_with_seed(&hash.to_le_bytes(), nth) }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn resemblance_of_occurrences_equals_weighted_resemblance() {
        let mut drawn = 7_u64;
        let mut draw = |end: u64| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 33) % end
        };
        for _ in 0..200 {
            let mut document =
                || (0..draw(60)).map(|_| draw(12).wrapping_mul(0x9E37_79B9)).collect::<Vec<u64>>();
            let (a, b) = (document(), document());
            let frequencies = |document: &[u64]| {
                let mut found: BTreeMap<u64, u64> = BTreeMap::new();
                for &shingle in document {
                    *found.entry(shingle).or_default() += 1;
                }
                found
            };
            let (of_a, of_b) = (frequencies(&a), frequencies(&b));
            let all: BTreeSet<u64> = of_a.keys().chain(of_b.keys()).copied().collect();
            let of = |found: &BTreeMap<u64, u64>, shingle: &u64| found.get(shingle).copied().unwrap_or(0);
            let min: u64 = all.iter().map(|shingle| of(&of_a, shingle).min(of(&of_b, shingle))).sum();
            let max: u64 = all.iter().map(|shingle| of(&of_a, shingle).max(of(&of_b, shingle))).sum();
            let set = |document: &[u64]| -> BTreeSet<u64> {
                let mut elements = document.to_vec();
                set_apart(&mut elements);
                elements.into_iter().collect()
            };
            let (set_a, set_b) = (set(&a), set(&b));
            assert_eq!(set_a.intersection(&set_b).count() as u64, min);
            assert_eq!(set_a.union(&set_b).count() as u64, max);
        }
    }
}
