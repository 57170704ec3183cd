//! Tests joins of codes of each width against comparing all pairs, at many radii and distributions of bits. Results must
//! not depend on threads or memory.

use twindex_join::{Codes, JoinResources, NearPair, near_codes_within};
use twindex_kernel::splitmix::SplitMix;

const WIDTHS: [usize; 6] = [1, 2, 3, 4, 6, 8];

fn flip(random: &mut SplitMix, code: &mut [u64], bits: u64) {
    for _ in 0..bits {
        let bit = random.below(64 * code.len() as u64) as usize;
        code[bit / 64] ^= 1 << (bit % 64);
    }
}

/// Returns named sets of codes: some that buckets handle well, and some that they handle badly.
fn sets(width: usize, count: usize) -> Vec<(&'static str, Vec<u64>)> {
    let mut random = SplitMix(width as u64);
    let uniform: Vec<u64> = (0..width * count).map(|_| random.next()).collect();
    let mut clustered = Vec::new();
    for at in 0..count {
        let copied = random.below(2 * at as u64 + 1) as usize * width;
        let mut code =
            clustered.get(copied..copied + width).unwrap_or(&uniform[at * width..][..width]).to_vec();
        let flips = random.below(40);
        flip(&mut random, &mut code, flips);
        clustered.extend(code);
    }
    // Each bit is mostly equal to the one before, and some are nearly constant.
    let mut correlated = uniform.clone();
    for word in &mut correlated {
        *word ^= *word << 1 & random.next() & random.next();
        *word &= !0xffff_0000 | random.next() & random.next() & random.next();
        *word &= *word >> 3 | 0xffff;
    }
    let mut equal = uniform.clone();
    for code in equal.chunks_exact_mut(width).step_by(2) {
        code.fill(7);
    }
    vec![("uniform", uniform), ("clustered", clustered), ("correlated", correlated), ("equal", equal)]
}

/// For each distance, the number of pairs and a checksum of their numbers.
type Sums = Vec<(u64, u64)>;

fn put(sums: &mut Sums, NearPair { a, b, distance }: NearPair) {
    let (count, sum) = &mut sums[distance as usize];
    *count += 1;
    *sum = sum.wrapping_add(SplitMix(u64::from(a) << 32 | u64::from(b)).next());
}

fn sums(width: usize) -> Sums {
    vec![(0, 0); 64 * width + 1]
}

/// Compares all pairs.
fn defined(width: usize, left: &[u64], right: Option<&[u64]>) -> Sums {
    let mut found = sums(width);
    for (a, x) in left.chunks_exact(width).enumerate() {
        let from = right.map_or(a + 1, |_| 0);
        for (b, y) in right.unwrap_or(left).chunks_exact(width).enumerate().skip(from) {
            let distance = x.iter().zip(y).map(|(x, y)| (x ^ y).count_ones()).sum();
            put(&mut found, NearPair { a: a as u32, b: b as u32, distance });
        }
    }
    found
}

fn joined(
    width: usize,
    left: &[u64],
    right: Option<&[u64]>,
    within: u32,
    (threads, memory): (usize, usize),
) -> Sums {
    let dir = std::env::temp_dir();
    let resources = JoinResources { dir: &dir, memory, threads };
    let right = right.map(|right| Codes::new(right, width).unwrap());
    let take = |all: &mut Sums, pairs: &[NearPair]| {
        for &pair in pairs {
            put(all, pair);
        }
        Ok(())
    };
    let left = Codes::new(left, width).unwrap();
    let states = near_codes_within(left, right, within, resources, || sums(width), take).unwrap();
    let mut found = sums(width);
    for of_thread in states {
        for (found, (count, sum)) in found.iter_mut().zip(of_thread) {
            *found = (found.0 + count, found.1.wrapping_add(sum));
        }
    }
    found
}

fn check(width: usize, (name, set): &(&str, Vec<u64>), radii: impl Iterator<Item = u32>) {
    let (left, right) = set.split_at(set.len() / width / 3 * width);
    let (inside, across) = (defined(width, set, None), defined(width, left, Some(right)));
    for within in radii {
        for how in [(1, 1 << 30), (3, 0)] {
            for (left, right, all) in [(&set[..], None, &inside), (left, Some(right), &across)] {
                let mut expected = all.clone();
                expected.iter_mut().skip(within as usize + 1).for_each(|sum| *sum = (0, 0));
                let found = joined(width, left, right, within, how);
                assert!(found == expected, "{name}, {width} words, within {within}, {how:?}");
            }
        }
    }
}

#[test]
fn all_pairs_are_found_once_at_every_radius() {
    for width in WIDTHS {
        let bits = 64 * width as u32;
        for set in &sets(width, 300) {
            check(width, set, (0..32).chain((32..=bits).step_by(13)).chain([bits, bits + 1]));
        }
    }
}

/// These codes are joined by parts.
#[test]
fn all_pairs_of_many_codes_are_found_once() {
    for width in WIDTHS {
        for set in &sets(width, 4500) {
            check(width, set, [0, 1, 3, 7 * width as u32].into_iter());
        }
    }
}

#[test]
fn codes_that_cannot_be_compared_are_refused() {
    let (four, two) = ([0_u64; 4], [0_u64; 2]);
    for (words, width) in [(&four[..], 3), (&four, 0), (&four, 9)] {
        assert!(Codes::new(words, width).is_err());
    }
    let dir = std::env::temp_dir();
    let (left, right) = (Codes::new(&four, 4).unwrap(), Codes::new(&two, 2).unwrap());
    let resources = JoinResources::in_dir(&dir);
    let error = near_codes_within(left, Some(right), 3, resources, || (), |(), _| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "fingerprints of 256 bits cannot be compared with 128 bits");
}
