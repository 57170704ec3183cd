//! Weighted resemblance by sets: a shingle that occurs n times is n elements.
//!
//! Of two documents in which it occurs m and n times, the lesser of m and n elements are in both, and the greater of them
//! in either. So what two sets have in common, by what either has, is the sum of the lesser frequencies by the sum of
//! the greater ones, and everything that counts elements counts it exactly.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a shingle weighs in a document, where resemblance is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Each distinct shingle the same.
    #[default]
    Distinct,
    /// Each as often as it occurs: term frequency.
    Frequencies,
}

/// The elements of a document with these shingles, each as often as it occurs: all of them different.
pub(super) fn elements(shingles: &[u64], weights: Weights) -> Cow<'_, [u64]> {
    if weights == Weights::Distinct {
        return Cow::Borrowed(shingles);
    }
    let mut all = shingles.to_vec();
    all.sort_unstable();
    let (mut last, mut nth) = (None, 0_u64);
    for hash in &mut all {
        nth = if last == Some(*hash) { nth + 1 } else { 0 };
        last = Some(*hash);
        if nth > 0 {
            *hash = xxh3_64_with_seed(&hash.to_le_bytes(), nth);
        }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn elements_in_common_by_all_are_the_weighted_resemblance_of_frequencies() {
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
            let least: u64 = all.iter().map(|shingle| of(&of_a, shingle).min(of(&of_b, shingle))).sum();
            let most: u64 = all.iter().map(|shingle| of(&of_a, shingle).max(of(&of_b, shingle))).sum();
            let set = |document: &[u64]| -> BTreeSet<u64> {
                elements(document, Weights::Frequencies).iter().copied().collect()
            };
            let (set_a, set_b) = (set(&a), set(&b));
            assert_eq!(set_a.intersection(&set_b).count() as u64, least);
            assert_eq!(set_a.union(&set_b).count() as u64, most);
            assert_eq!(elements(&a, Weights::Distinct)[..], a);
        }
    }
}
