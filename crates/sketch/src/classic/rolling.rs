//! Computes shingle hashes from hashes of prefixes, with Rabin's fingerprints or the hash of Rabin and Karp.
//!
//! A shingle is the string of bytes from the start of its first unit to the end of its last, including the bytes
//! between units, such as one space between two words. Its hash is `mix(f(1.string))`, where f is the
//! [fingerprint](super::rabin) or the [rolling hash](super::rabin_karp) with the seed of the parameters. The leading 1
//! makes leading zeros significant. `mix` is the bijection of [`shingle`](crate::shingle) and adds no collisions. It is
//! needed because minima and simhash votes require uniformly distributed bits, which fingerprints do not have.
//!
//! No byte is read more than twice. Let F(i) be the hash of the first i bytes of all units. Then the hash of the bytes from
//! a to b is F(b) - F(a) x^(8 (b - a)), and with a leading 1 it is F(b) - (F(a) - 1) x^(8 (b - a)). This takes one
//! multiplication for each shingle, regardless of its length.

use std::ops::Range;
use std::sync::Arc;

use crate::params::Widths;
use twindex_kernel::clmul::{Body, Multiply, available, fastest};

use super::rabin::Rabin;
use super::rabin_karp::{RabinKarp, residue_61};
use crate::cut::Units;
use crate::hash::mix;

/// Appends the hashes of the shingles of `units`, computed with Rabin's fingerprints, the narrowest shingles first.
/// `prefixes` is scratch memory.
pub(crate) fn by_rabin(
    rabin: &Rabin,
    units: &Units,
    widths: Widths,
    prefixes: &mut Vec<[u64; 2]>,
    shingles: &mut Vec<u64>,
) {
    by_rabin_with(available(), rabin, units, widths, prefixes, shingles);
}

/// Like [`by_rabin`], with carry-less multiplications if `products` is true, otherwise with tables only.
fn by_rabin_with(
    products: bool,
    rabin: &Rabin,
    units: &Units,
    widths: Widths,
    prefixes: &mut Vec<[u64; 2]>,
    shingles: &mut Vec<u64>,
) {
    struct Shingles<'a>(&'a Rabin, &'a Units, Widths, &'a [[u64; 2]], &'a mut Vec<u64>);

    impl Body for Shingles<'_> {
        type Output = ();

        #[inline(always)]
        fn run(self, multiply: impl Multiply) {
            let Self(rabin, units, widths, prefixes, shingles) = self;
            shingles_of(units, widths, prefixes, shingles, |before, whole, length| {
                whole ^ rabin.shifted(multiply, before ^ Rabin::ONE, length)
            });
        }
    }

    prefixes_of(units, prefixes, |prefix, bytes| rabin.extend(prefix, bytes));
    if products {
        fastest(Shingles(rabin, units, widths, prefixes, shingles));
    } else {
        shingles_of(units, widths, prefixes, shingles, |before, whole, length| {
            whole ^ rabin.shifted_by_tables(before ^ Rabin::ONE, length)
        });
    }
}

/// The hash of Rabin and Karp for bytes, modulo 2^61 - 1, with precomputed powers of its base.
#[derive(Clone, Debug)]
pub(crate) struct RabinKarpBytes {
    hash: RabinKarp,
    powers: Arc<[u64; 256]>,
}

impl RabinKarpBytes {
    pub(crate) fn new(seed: u64) -> Self {
        let hash = RabinKarp::seeded(seed);
        let mut powers = [1; 256];
        for n in 1..powers.len() {
            powers[n] = hash.times(powers[n - 1], hash.base());
        }
        Self { hash, powers: Arc::new(powers) }
    }

    /// Like [`RabinKarp::extend`]. Processes eight bytes at a time, so that most products do not depend on each other.
    #[inline(always)]
    fn extend(&self, mut hash: u64, bytes: &[u8]) -> u64 {
        for piece in bytes.chunks(8) {
            let n = piece.len();
            // The sum of nine products: the first is below 2^122, the others are below 2^69.
            let mut sum = self.hash.product(hash, self.powers[n]);
            for (i, &byte) in piece.iter().enumerate() {
                sum += self.hash.product(self.powers[n - 1 - i], byte.into());
            }
            hash = residue_61(sum);
        }
        hash
    }

    #[inline(always)]
    fn power(&self, n: u64) -> u64 {
        let low = self.powers[(n & 255) as usize];
        if n < 256 { low } else { self.hash.times(low, self.hash.power(n & !255)) }
    }
}

/// Appends the hashes of the shingles of `units`, computed with the hash of Rabin and Karp, the narrowest shingles first.
/// `prefixes` is scratch memory.
pub(crate) fn by_rabin_karp(
    hash: &RabinKarpBytes,
    units: &Units,
    widths: Widths,
    prefixes: &mut Vec<[u64; 2]>,
    shingles: &mut Vec<u64>,
) {
    const Q: u64 = RabinKarp::MERSENNE_61;
    prefixes_of(units, prefixes, |prefix, bytes| hash.extend(prefix, bytes));
    shingles_of(units, widths, prefixes, shingles, |before, whole, length| {
        // `Q + 1 - before` is 1 - F(a) modulo q as a positive number of at most q + 1. So the sum is below 2^123.
        residue_61(hash.hash.product(Q + 1 - before, hash.power(length)) + u128::from(whole))
    });
}

/// Computes for each unit two hashes: of all bytes before its start, and of all bytes before its end.
#[inline(always)]
fn prefixes_of(units: &Units, prefixes: &mut Vec<[u64; 2]>, extend: impl Fn(u64, &[u8]) -> u64) {
    prefixes.clear();
    let bytes = units.bytes();
    let (mut whole, mut at) = (0, 0);
    for unit in units.ranges() {
        let Range { start, end } = unit;
        // Extends the hash at the end of the previous unit, not the hash at the start of this one. So a word and the
        // space before it take one step if they have at most eight bytes in total.
        let before = if at == start { whole } else { extend(whole, &bytes[at..start]) };
        whole = extend(whole, &bytes[at..end]);
        at = end;
        prefixes.push([before, whole]);
    }
}

/// Appends the hashes of the shingles. The closure computes a shingle's hash from the hash of all bytes before its start,
/// the hash of all bytes before its end, and its length in bytes.
#[inline(always)]
fn shingles_of(
    units: &Units,
    widths: Widths,
    prefixes: &[[u64; 2]],
    shingles: &mut Vec<u64>,
    hash: impl Fn(u64, u64, u64) -> u64,
) {
    let ranges = units.ranges();
    for width in widths.of_document(ranges.len()) {
        let firsts = ranges.clone().zip(prefixes);
        let lasts = ranges.clone().zip(prefixes).skip(width - 1);
        shingles.extend(firsts.zip(lasts).map(|((first, [before, _]), (last, [_, whole]))| {
            mix(hash(*before, *whole, (last.end - first.start) as u64))
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cut::Cutter;
    use crate::params::Shingling;

    /// Computes the hashes from their definition, which reads all bytes of every shingle.
    fn defined(units: &Units, widths: Widths, led: impl Fn(&[u8]) -> u64) -> Vec<u64> {
        let mut shingles = Vec::new();
        for width in widths.of_document(units.len()) {
            for first in 0..=units.len() - width {
                shingles.push(mix(led(units.shingle(first, width))));
            }
        }
        shingles
    }

    /// Compares all implementations of the shingle hashes with the definition.
    fn check(units: &Units, widths: Widths, seed: u64) {
        let (rabin, hash, plain) = (Rabin::new(seed), RabinKarpBytes::new(seed), RabinKarp::seeded(seed));
        let mut prefixes = vec![[7; 2]; 3];
        let expected = defined(units, widths, |shingle| rabin.fingerprint(&[b"\x01", shingle].concat()));
        for products in [false, true] {
            // Existing elements of the vector must be kept.
            let mut found = vec![1, 2, 3];
            by_rabin_with(products, &rabin, units, widths, &mut prefixes, &mut found);
            assert_eq!(found[..3], [1, 2, 3]);
            assert_eq!(found[3..], expected, "rabin, products {products}, width {widths}, seed {seed}");
        }
        let expected = defined(units, widths, |shingle| plain.hash(&[b"\x01", shingle].concat()));
        let mut found = Vec::new();
        by_rabin_karp(&hash, units, widths, &mut prefixes, &mut found);
        assert_eq!(found, expected, "rabin-karp, width {widths}, seed {seed}");
    }

    fn all_widths() -> Vec<Widths> {
        let mut all: Vec<Widths> = (1..=16).map(|width| Widths::one(width).unwrap()).collect();
        all.extend([&[1, 2][..], &[2, 5, 16], &[3, 4]].map(|widths| Widths::union(widths).unwrap()));
        all
    }

    #[test]
    fn shingle_hashes_of_words_equal_the_definition() {
        let cutter = Cutter::new(&Shingling::words(1, 0)).unwrap();
        let letters: String = ('a'..='z').cycle().take(2100).collect();
        let lengths =
            |all: &[usize]| all.iter().map(|&n| &letters[n % 26..][..n]).collect::<Vec<_>>().join(" ");
        let growing: Vec<usize> = (1..70).collect();
        let mut units = Units::default();
        for text in [
            "",
            " --- ",
            "word",
            "a rose is a rose is a rose",
            "\u{dc}n\u{ef}c\u{f6}d\u{e9} \u{142}\u{f3}d\u{17a} \u{6771}\u{4eac} and some more words",
            &lengths(&growing),
            // Tests units of several hundred bytes, and shingles of about 255, 256 and more than 65,535 bytes.
            &lengths(&[300, 1, 700, 2, 127, 127, 128, 1, 1, 255, 256, 257, 900, 3, 800, 254, 1]),
            &lengths(&[1999; 40]),
        ] {
            cutter.cut(text, &mut units);
            for (seed, widths) in (0..).zip(all_widths()) {
                check(&units, widths, seed % 3);
            }
        }
    }

    proptest! {
        #[test]
        fn shingle_hashes_of_any_units_equal_the_definition(
            units in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![any::<u8>(), Just(0_u8)], 0..12), 0..80,
            ),
            separator in proptest::option::of(any::<u8>()),
            width in 0_usize..19,
            seed in 0_u64..3,
        ) {
            // Tests units of 0 to 11 bytes, including NULs, with one byte or no byte between them.
            let units = Units::of(units.iter().map(Vec::as_slice), separator);
            check(&units, all_widths()[width], seed);
        }
    }

    #[test]
    fn leading_zeros_change_the_hash_of_a_shingle() {
        let units = |n: usize| Units::of([&[0; 300][..n]], None);
        let (rabin, hash, one) = (Rabin::new(0), RabinKarpBytes::new(0), Widths::one(1).unwrap());
        let mut found = Vec::new();
        for n in 0..300 {
            by_rabin(&rabin, &units(n), one, &mut Vec::new(), &mut found);
            by_rabin_karp(&hash, &units(n), one, &mut Vec::new(), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 600 - 1, "the string of the byte 1 alone is 1 under both");
    }
}
