//! The rolling hash of Rabin and Karp: strings are integers, and a hash is a remainder modulo a prime.
//!
//! A string of k symbols is a number with k digits in base d. Its hash is the remainder modulo a prime q (Karp and Rabin,
//! *Efficient randomized pattern-matching algorithms*, 1987):
//!
//! ```text
//! x[i]   = s[i] d^(k-1) + s[i+1] d^(k-2) + ... + s[i+k-1]   mod q
//! x[i+1] = (x[i] - s[i] d^(k-1)) d + s[i+k]                 mod q
//! ```
//!
//! Symbols are numbers: bytes, characters or hashes of words. They may be greater than d.
//!
//! **Leading zeros** do not change the hash, as they do not change an integer: the hash of the empty string is 0, and
//! symbols 0 at the beginning have no effect. For strings of different lengths, put a 1 in front: `hash.extend(1, string)`.
//! Shingles are hashed this way.
//!
//! **Collisions.** Take two different strings of at most n symbols below q that were chosen without knowledge of d, and that
//! begin with a 1 or have the same length. Their difference is a polynomial in d of degree at most n, which has at most n
//! roots modulo a prime. If d is chosen uniformly, the two hashes collide with a probability of at most n / (q - 2). For a
//! million shingles of 50 bytes and q = 2^61 - 1, any two collide with a probability of at most 10^-5. A publicly known
//! base, such as 256, gives no such bound. As with Rabin's [fingerprints](super::rabin), mix the bits of a hash before they
//! are used as random bits.
//!
//! **The base of a seed**, with q = 2^61 - 1 ([`RabinKarp::seeded`]). With `mix` and `COUNT` as in
//! [`shingle`](crate::shingle), let `key = mix(seed ^ 0xbe5466cf34e90c6c)`; the constant is the sixth 64-bit word of the
//! fractional part of pi. The base is the first of
//!
//! ```text
//! mix(key + 1 * COUNT) mod 2^61,   mix(key + 2 * COUNT) mod 2^61,   ...
//! ```
//!
//! that is greater than 1 and less than q. This is the first number of the sequence, except for a few seeds in 2^61.

use crate::error::{Error, Result};

use crate::hash::{COUNT, mix};

/// The sixth 64-bit word of the fractional part of pi. It makes bases independent of other values that are computed from
/// the seed.
const BASES: u64 = 0xbe54_66cf_34e9_0c6c;

/// The rolling hash with one base and one modulus.
///
/// ```
/// use twindex_sketch::RabinKarp;
///
/// let hash = RabinKarp::new(32, 1_000_003)?;
/// assert_eq!(hash.hash(b"lore"), (108 * 32 * 32 * 32 + 111 * 32 * 32 + 114 * 32 + 101) % 1_000_003);
/// let windows: Vec<u64> = hash.windows(b"lorem ipsum", 4).collect();
/// assert_eq!(windows[1], hash.hash(b"orem"));
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RabinKarp {
    base: u64,
    modulus: u64,
}

impl RabinKarp {
    /// The prime 2^61 - 1. Remainders modulo this prime are computed without a division.
    pub const MERSENNE_61: u64 = (1 << 61) - 1;

    /// Creates the hash with base d = `base` and modulus q = `modulus`, which may be any 64-bit prime.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless q is prime and 1 < d < q.
    pub fn new(base: u64, modulus: u64) -> Result<Self> {
        if !is_prime(modulus) {
            return Err(Error::Invalid(format!("rolling hash: the modulus {modulus} is not prime")));
        }
        if base < 2 || base >= modulus {
            return Err(Error::Invalid(format!(
                "rolling hash: the base is {base}; expected more than 1 and less than the modulus {modulus}"
            )));
        }
        Ok(Self { base, modulus })
    }

    /// Creates the hash of a seed, modulo 2^61 - 1, with the base that the [module](self) defines.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut state = mix(seed ^ BASES);
        // The loop terminates: `mix` is a bijection, so all but a few numbers of the sequence are valid bases.
        loop {
            state = state.wrapping_add(COUNT);
            let base = mix(state) & Self::MERSENNE_61;
            if base > 1 && base < Self::MERSENNE_61 {
                return Self { base, modulus: Self::MERSENNE_61 };
            }
        }
    }

    /// Returns the base d.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the modulus q.
    #[must_use]
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// Returns the hash of a string of symbols. Takes linear time and allocates nothing.
    ///
    /// Leading zeros do not change the result; see the [module](self).
    #[must_use]
    pub fn hash<S: Copy + Into<u64>>(&self, symbols: &[S]) -> u64 {
        self.extend(0, symbols)
    }

    /// Returns the hash of a.b, given the hash of a, which may be any number below q, and the symbols of b. Linear in the
    /// length of b.
    #[must_use]
    pub fn extend<S: Copy + Into<u64>>(&self, hash: u64, symbols: &[S]) -> u64 {
        symbols.iter().fold(hash, |hash, &symbol| self.next(hash, symbol.into()))
    }

    /// Returns the hash of a.b, given the hashes of a and b and the length of b. Takes logarithmic time.
    #[must_use]
    pub fn concat(&self, a: u64, b: u64, length_of_b: u64) -> u64 {
        self.residue(self.product(a, self.power(length_of_b)) + u128::from(b))
    }

    /// Returns d^n modulo q, by which the hash of a string is multiplied when n symbols are appended. Takes logarithmic
    /// time.
    #[must_use]
    pub fn power(&self, n: u64) -> u64 {
        let (mut power, mut base, mut n) = (1, self.base, n);
        while n > 0 {
            if n & 1 == 1 {
                power = self.times(power, base);
            }
            base = self.times(base, base);
            n >>= 1;
        }
        power
    }

    /// Returns a roller for windows of `length` symbols.
    #[must_use]
    pub fn roller(&self, length: usize) -> Roller {
        // The oldest symbol has the factor d^(length - 1) in the hash, and rolling multiplies the hash by d once more.
        let gone = self.power(length as u64);
        Roller { hash: *self, leaving: if gone == 0 { 0 } else { self.modulus - gone } }
    }

    /// Returns the hashes of all substrings of `length` symbols, in order. There are none if `length` is 0 or greater than
    /// the length of the string.
    ///
    /// Takes two multiplications for each symbol, regardless of `length`.
    #[must_use]
    pub fn windows<'a, S: Copy + Into<u64>>(&self, symbols: &'a [S], length: usize) -> Windows<'a, S> {
        let ahead = if length == 0 { None } else { symbols.get(..length).map(|first| self.hash(first)) };
        let entering = symbols.get(length..).unwrap_or(&[]);
        Windows { roller: self.roller(length), ahead, leaving: symbols, entering }
    }

    #[inline(always)]
    fn next(&self, hash: u64, symbol: u64) -> u64 {
        self.residue(self.product(hash, self.base) + u128::from(symbol))
    }

    /// Returns the product of two 64-bit numbers. It is at most (2^64 - 1)^2, so two more 64-bit numbers can be added
    /// without overflow.
    #[expect(clippy::unused_self, reason = "read beside `times` and `residue`")]
    #[inline(always)]
    pub(super) fn product(&self, a: u64, b: u64) -> u128 {
        u128::from(a) * u128::from(b)
    }

    #[inline(always)]
    pub(super) fn times(&self, a: u64, b: u64) -> u64 {
        self.residue(self.product(a, b))
    }

    #[inline(always)]
    pub(super) fn residue(&self, number: u128) -> u64 {
        if self.modulus == Self::MERSENNE_61 && number >> 124 == 0 {
            residue_61(number)
        } else {
            (number % u128::from(self.modulus)) as u64
        }
    }
}

/// Returns the remainder of a number below 2^124 modulo q = 2^61 - 1. Adds its groups of 61 bits, as 2^61 is 1 modulo
/// q.
#[inline(always)]
pub(super) fn residue_61(number: u128) -> u64 {
    const Q: u64 = RabinKarp::MERSENNE_61;
    let sum = (number as u64 & Q) + (number >> 61) as u64; // below 2^61 + 2^63
    let sum = (sum & Q) + (sum >> 61); // at most q + 5
    if sum >= Q { sum - Q } else { sum }
}

/// Computes the hash of each window of a string from the hash of the previous window. Created by [`RabinKarp::roller`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roller {
    hash: RabinKarp,
    /// -d^length modulo q. Adding its product with the oldest symbol removes that symbol.
    leaving: u64,
}

impl Roller {
    /// Returns the hash of the next window: removes the oldest symbol, `leaves`, and appends the symbol `enters`.
    ///
    /// Computes (x - s d^(k-1)) d + e as x d - s d^k + e.
    #[must_use]
    #[inline]
    pub fn roll(&self, hash: u64, leaves: u64, enters: u64) -> u64 {
        let kept = self.hash.next(hash, enters);
        self.hash.residue(self.hash.product(leaves, self.leaving) + u128::from(kept))
    }
}

/// An iterator over the hashes of the windows of a string. Created by [`RabinKarp::windows`].
#[derive(Clone, Debug)]
pub struct Windows<'a, S> {
    roller: Roller,
    ahead: Option<u64>,
    leaving: &'a [S],
    entering: &'a [S],
}

impl<S: Copy + Into<u64>> Iterator for Windows<'_, S> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let hash = self.ahead.take()?;
        if let (Some((&leaves, leaving)), Some((&enters, entering))) =
            (self.leaving.split_first(), self.entering.split_first())
        {
            self.ahead = Some(self.roller.roll(hash, leaves.into(), enters.into()));
            (self.leaving, self.entering) = (leaving, entering);
        }
        Some(hash)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.ahead.is_some() { self.entering.len() + 1 } else { 0 };
        (left, Some(left))
    }
}

impl<S: Copy + Into<u64>> ExactSizeIterator for Windows<'_, S> {}

/// Returns true if a number is prime. Uses the Miller-Rabin test with the first twelve primes as bases, which no composite
/// 64-bit number passes (Sorenson and Webster, *Strong pseudoprimes to twelve prime bases*, 2017).
///
/// ```
/// use twindex_sketch::rabin_karp::is_prime;
///
/// assert!(is_prime((1 << 61) - 1) && !is_prime((1 << 59) - 1));
/// ```
#[must_use]
pub fn is_prime(number: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if BASES.contains(&number) {
        return true;
    }
    if number < 2 || BASES.iter().any(|base| number.is_multiple_of(*base)) {
        return false;
    }
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(number)) as u64;
    let twos = (number - 1).trailing_zeros();
    BASES.iter().all(|&base| {
        let (mut power, mut square, mut exponent) = (1, base, (number - 1) >> twos);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = times(power, square);
            }
            square = times(square, square);
            exponent >>= 1;
        }
        if power == 1 {
            return true;
        }
        for _ in 1..twos {
            if power == number - 1 {
                return true;
            }
            power = times(power, power);
        }
        power == number - 1
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Primes of different sizes, including the greatest 64-bit prime.
    const PRIMES: [u64; 8] = [
        3,
        257,
        1_000_003,
        4_294_967_291,
        RabinKarp::MERSENNE_61,
        (1 << 61) + 15,
        (1 << 63) - 25,
        18_446_744_073_709_551_557,
    ];

    /// Computes the hash from its definition, as a sum of products of symbols and powers, in 128-bit numbers.
    fn defined(base: u64, modulus: u64, symbols: &[u64]) -> u64 {
        let q = u128::from(modulus);
        let (mut sum, mut power) = (0, 1);
        for &symbol in symbols.iter().rev() {
            sum = (sum + u128::from(symbol) % q * power) % q;
            power = power * u128::from(base) % q;
        }
        sum as u64
    }

    fn any_hash() -> impl Strategy<Value = RabinKarp> {
        (proptest::sample::select(&PRIMES[..]), prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)]).prop_map(
            |(modulus, any)| {
                let base = if any == u64::MAX { modulus - 1 } else { 2 + any % (modulus - 2) };
                RabinKarp::new(base, modulus).unwrap()
            },
        )
    }

    fn symbols() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(prop_oneof![0_u64..256, any::<u64>(), Just(u64::MAX), Just(0)], 0..60)
    }

    #[test]
    fn small_primes_are_recognized() {
        let mut composite = vec![false; 20_000];
        composite[..2].fill(true);
        for n in 2..composite.len() {
            assert_eq!(is_prime(n as u64), !composite[n], "{n}");
            for multiple in (n * n..composite.len()).step_by(n) {
                composite[multiple] = true;
            }
        }
    }

    #[test]
    fn large_primes_are_distinguished_from_pseudoprimes() {
        for prime in PRIMES {
            assert!(is_prime(prime), "{prime}");
        }
        // Composite numbers that are hard to recognise: Carmichael numbers; the least strong pseudoprimes to the first
        // 1, 2, 3, 4, 5, 6, 7 and 9 primes (Jaeschke 1993; Jiang and Deng 2014); squares and products of large primes.
        for composite in [
            561,
            41_041,
            825_265,
            2047,
            1_373_653,
            25_326_001,
            3_215_031_751,
            2_152_302_898_747,
            3_474_749_660_383,
            341_550_071_728_321,
            3_825_123_056_546_413_051,
            4_294_967_291 * 4_294_967_291,
            4_294_967_291 * 4_294_967_279,
            (1 << 59) - 1,
            u64::MAX,
        ] {
            assert!(!is_prime(composite), "{composite}");
        }
    }

    #[test]
    fn invalid_bases_and_composite_moduli_are_refused() {
        for modulus in [0, 1, 4, 561, u64::MAX] {
            let error = RabinKarp::new(2, modulus).unwrap_err().to_string();
            assert!(error.contains(&format!("the modulus {modulus} is not prime")), "{error}");
        }
        for (base, modulus) in [(0, 7), (1, 7), (7, 7), (8, 7), (u64::MAX, 7), (1, 2), (2, 2)] {
            let error = RabinKarp::new(base, modulus).unwrap_err().to_string();
            assert!(error.contains(&format!("the base is {base};")), "{error}");
        }
        assert!(RabinKarp::new(2, 3).is_ok());
    }

    #[test]
    fn every_seed_gives_a_valid_base() {
        let bases: Vec<u64> = (0..100).map(|seed| RabinKarp::seeded(seed).base()).collect();
        for (i, &base) in bases.iter().enumerate() {
            assert_eq!(RabinKarp::new(base, RabinKarp::MERSENNE_61).unwrap(), RabinKarp::seeded(i as u64));
            assert!(!bases[..i].contains(&base));
        }
    }

    #[test]
    fn leading_zeros_change_the_hash_only_after_a_one() {
        let hash = RabinKarp::seeded(0);
        assert_eq!(hash.hash(b"\0\0a"), hash.hash(b"a"));
        assert_ne!(hash.extend(1, b"\0\0a"), hash.extend(1, b"a"));
        assert_eq!(hash.extend(1, b"\0\0a"), hash.hash(b"\x01\0\0a"));
    }

    #[test]
    fn windows_longer_than_the_input_yield_nothing() {
        let hash = RabinKarp::seeded(0);
        for (string, length) in [(&b""[..], 0), (b"", 1), (b"abc", 0), (b"abc", 4), (b"abc", usize::MAX)] {
            assert_eq!(hash.windows(string, length).len(), 0);
            assert_eq!(hash.windows(string, length).next(), None);
        }
        assert_eq!(hash.windows(b"abc", 3).collect::<Vec<_>>(), [hash.hash(b"abc")]);
    }

    proptest! {
        #[test]
        fn hashes_are_remainders_of_integers(hash in any_hash(), a in symbols(), b in symbols()) {
            let defined = |symbols: &[u64]| defined(hash.base(), hash.modulus(), symbols);
            let whole = [&a[..], &b].concat();
            prop_assert_eq!(hash.hash(&whole), defined(&whole));
            prop_assert_eq!(hash.extend(hash.hash(&a), &b), defined(&whole));
            prop_assert_eq!(hash.concat(hash.hash(&a), hash.hash(&b), b.len() as u64), defined(&whole));
        }

        #[test]
        fn rolled_windows_equal_directly_hashed_windows(hash in any_hash(), symbols in symbols(), length in 1_usize..30) {
            let expected: Vec<u64> = symbols.windows(length).map(|window| hash.hash(window)).collect();
            prop_assert_eq!(hash.windows(&symbols, length).len(), expected.len());
            prop_assert_eq!(hash.windows(&symbols, length).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn remainders_modulo_the_mersenne_prime_equal_division(number in any::<u128>(), down in 4_u32..128) {
            let number = number >> down;
            prop_assert_eq!(u128::from(residue_61(number)), number % u128::from(RabinKarp::MERSENNE_61));
            let multiple = number / u128::from(RabinKarp::MERSENNE_61) * u128::from(RabinKarp::MERSENNE_61);
            prop_assert_eq!(residue_61(multiple), 0);
        }
    }
}
