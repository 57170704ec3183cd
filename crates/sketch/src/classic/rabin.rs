//! Rabin's fingerprints: strings are polynomials over GF(2), and a fingerprint is a remainder of a division.
//!
//! The bits of a string are the coefficients of its polynomial, beginning with the highest bit of the first byte. The
//! fingerprint is the remainder modulo an irreducible polynomial P of degree 64 (Rabin, *Fingerprinting by random
//! polynomials*, 1981; Broder, *Some applications of Rabin's fingerprinting method*, 1993):
//!
//! ```text
//! f(A) = A(x) mod P(x)          A of n bytes:  A(x) = a[0] x^(8n-1) + a[1] x^(8n-2) + ... + a[8n-1]
//! ```
//!
//! The highest bit of a fingerprint, as a number and as eight bytes, is the coefficient of x^63.
//!
//! **Extension.** Let a.b be the concatenation of two strings. Then f(a.b) = f(f(a).b), where the fingerprint f(a) is used
//! as a string of eight bytes ([`Rabin::extend`]). Also f(a.b) = f(a) x^(8 |b|) + f(b) ([`Rabin::concat`]), so that a window
//! slides in constant time ([`Rabin::windows`]). Plus and minus are xor.
//!
//! **Leading zeros.** Leading zero coefficients do not change a polynomial. So NULs at the beginning of a string do not
//! change its fingerprint, f("") = 0, and a string of fewer than eight bytes is its own fingerprint. This is harmless if all
//! strings have the same length, as windows do. For strings of different lengths, put a byte 1 in front, as Broder does:
//! `rabin.extend(Rabin::ONE, string)` is f("\x01" . string). This fingerprint can be extended and concatenated like any
//! other, and depends on the number of leading zeros of the string. Shingles are hashed this way.
//!
//! **Collisions.** Take two different strings of at most n bits that were chosen without knowledge of P, and that begin with
//! a 1 or have the same length. The difference of their polynomials has a degree of at most n, so at most n/64 irreducible
//! polynomials of degree 64 divide it. There are (2^64 - 2^32)/64 such polynomials. If P is chosen uniformly, the two
//! fingerprints collide with a probability of at most n / (2^64 - 2^32). Any two of N strings collide with a probability of
//! at most about N^2 n / 2^65, which is 10^-5 for a million shingles of 50 bytes. No bound of this kind is proven for
//! hash functions like [`ShingleHash::Fast`](crate::params::ShingleHash::Fast). The bits of a fingerprint are not
//! uniformly distributed: mix them before they are used as random bits.
//!
//! **The polynomial of a seed.** Let `mix` and `COUNT` be those of [`shingle`](crate::shingle), and let
//! `key = mix(seed ^ 0x452821e638d01377)`; the constant is the fifth 64-bit word of the fractional part of pi. P is x^64
//! plus the first of the numbers
//!
//! ```text
//! mix(key + 1 * COUNT) | 1,   mix(key + 2 * COUNT) | 1,   ...
//! ```
//!
//! for which P is irreducible, about one in 32. All irreducible polynomials of degree 64 have the term 1, so setting the
//! lowest bit excludes none of them.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use twindex_kernel::clmul::Clmul;
use twindex_kernel::clmul::{Body, Modulus, Multiply, Portable, fastest};

use crate::hash::{COUNT, mix};

/// The fifth 64-bit word of the fractional part of pi. It makes polynomials independent of other values that are computed
/// from the seed.
const POLYNOMIALS: u64 = 0x4528_21e6_38d0_1377;

/// Minimum length in bytes of strings that are folded with carry-less multiplications. Shorter strings use tables.
#[cfg(target_arch = "x86_64")]
const FOLDED_MIN: usize = 128;

/// Returns true if a polynomial over GF(2) is irreducible: its degree is at least 1, and only 1 and the polynomial itself
/// divide it. Bit i is the coefficient of x^i.
///
/// Ben-Or's test (*Probabilistic algorithms in finite fields*, 1981): x^(2^i) - x is the product of all irreducible
/// polynomials whose degree divides i. So a polynomial of degree d is irreducible if and only if it has no common factor
/// with x^(2^i) - x for any i from 1 to d/2. The result is exact. Most polynomials have a small factor and take about d^2
/// steps; others take at most d^3.
///
/// ```
/// use twindex_sketch::rabin::is_irreducible;
///
/// assert!(is_irreducible(1 << 64 | 0b11011)); // x^64 + x^4 + x^3 + x + 1
/// assert!(!is_irreducible(0b101)); // x^2 + 1 = (x + 1)^2
/// ```
#[must_use]
pub fn is_irreducible(polynomial: u128) -> bool {
    if polynomial < 2 {
        return false;
    }
    let degree = polynomial.ilog2();
    let mut power = 2; // x^(2^i)
    for _ in 0..degree / 2 {
        power = square(power, polynomial);
        if common(polynomial, power ^ 2) != 1 {
            return false;
        }
    }
    true
}

/// Returns the square of `a` modulo `polynomial`, whose degree must be at least 2 and greater than the degree of `a`.
fn square(a: u128, polynomial: u128) -> u128 {
    let degree = polynomial.ilog2();
    let shifted = |a: u128| if a >> (degree - 1) & 1 == 1 { a << 1 ^ polynomial } else { a << 1 };
    (0..degree).rev().fold(0, |sum, i| shifted(shifted(sum)) ^ (a >> i & 1))
}

/// Returns the greatest common divisor of two polynomials.
fn common(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        let degree = b.ilog2();
        while a != 0 && a.ilog2() >= degree {
            a ^= b << (a.ilog2() - degree);
        }
        (a, b) = (b, a);
    }
    a
}

/// The fingerprint function of one irreducible polynomial of degree 64. Cloning it is cheap, and threads can share it.
///
/// ```
/// use twindex_sketch::Rabin;
///
/// let rabin = Rabin::new(42);
/// let (a, b) = (b"a rose is ", b"a rose");
/// let whole = rabin.fingerprint(b"a rose is a rose");
/// assert_eq!(rabin.extend(rabin.fingerprint(a), b), whole);
/// assert_eq!(rabin.concat(rabin.fingerprint(a), rabin.fingerprint(b), 6), whole);
/// let windows: Vec<u64> = rabin.windows(b"a rose is a rose", 6).collect();
/// assert_eq!(windows[0], windows[10]);
/// ```
#[derive(Clone)]
pub struct Rabin {
    tables: Arc<Tables>,
}

struct Tables {
    modulus: Modulus,
    /// `up[i][v]` is the product, modulo P, of x^64 and the polynomial whose byte i, counted from the lowest, is v and
    /// whose other bytes are 0.
    up: [[u64; 256]; 8],
    /// The powers x^(8n) for n from 0 to 255.
    powers: [u64; 256],
}

impl Rabin {
    /// The fingerprint of the byte 1. If a string [extends](Self::extend) it, the result depends on the string's
    /// leading zeros.
    pub const ONE: u64 = 1;

    /// Creates the fingerprint function of a seed, with the polynomial that the [module](self) defines. Takes about 0.1 ms.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let key = mix(seed ^ POLYNOMIALS);
        // The loop terminates: one polynomial in 32 is irreducible, and `mix` is a bijection, so the sequence contains all
        // of them.
        let mut state = key;
        loop {
            state = state.wrapping_add(COUNT);
            let low = mix(state) | 1;
            if is_irreducible(1 << 64 | u128::from(low)) {
                return Self::modulo(low);
            }
        }
    }

    /// Creates the fingerprint function modulo `polynomial`; bit i is the coefficient of x^i.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a polynomial whose degree is not 64 or that is not irreducible.
    pub fn with_polynomial(polynomial: u128) -> Result<Self> {
        if polynomial >> 64 != 1 || !is_irreducible(polynomial) {
            return Err(Error::Invalid(format!(
                "Rabin's fingerprint: {polynomial:#x} is not an irreducible polynomial of degree 64"
            )));
        }
        Ok(Self::modulo(polynomial as u64))
    }

    fn modulo(low: u64) -> Self {
        let mut up = [[0; 256]; 8];
        let mut first = low; // x^64
        for table in &mut up {
            *table = multiples(first, low);
            first = times_x(table[128], low);
        }
        let mut powers = [1; 256];
        for n in 1..256 {
            let last: u64 = powers[n - 1];
            powers[n] = last << 8 ^ up[0][(last >> 56) as usize];
        }
        Self { tables: Arc::new(Tables { modulus: Modulus::new(low), up, powers }) }
    }

    /// Returns the polynomial: bit i is the coefficient of x^i, and bit 64 is the highest set bit.
    #[must_use]
    pub fn polynomial(&self) -> u128 {
        1 << 64 | u128::from(self.tables.modulus.low())
    }

    /// Returns the fingerprint of a string: f(A) in the [module](self). Takes linear time and allocates nothing.
    ///
    /// NULs at the beginning of the string do not change the result; see **Leading zeros** in the module.
    #[must_use]
    pub fn fingerprint(&self, string: &[u8]) -> u64 {
        self.extend(0, string)
    }

    /// Returns the fingerprint of a.b, given the fingerprint of a and the string b. Linear in the length of b.
    #[must_use]
    #[inline]
    pub fn extend(&self, fingerprint: u64, string: &[u8]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if string.len() >= FOLDED_MIN
            && let Some(clmul) = Clmul::detect()
        {
            let (blocks, rest) = string.as_chunks::<64>();
            return self.extend_by_tables(self.tables.modulus.fold(clmul, fingerprint, blocks), rest);
        }
        self.extend_by_tables(fingerprint, string)
    }

    /// Returns the same result as [`extend`](Self::extend), without special instructions. Processes eight bytes at a
    /// time. Public, so that the speed of both can be compared.
    #[must_use]
    #[inline]
    pub fn extend_by_tables(&self, mut fingerprint: u64, string: &[u8]) -> u64 {
        let (words, rest) = string.as_chunks::<8>();
        for word in words {
            fingerprint = self.up(fingerprint) ^ u64::from_be_bytes(*word);
        }
        if rest.is_empty() {
            return fingerprint;
        }
        let bits = 8 * rest.len();
        self.up(fingerprint >> (64 - bits)) ^ fingerprint << bits ^ number(rest)
    }

    /// Returns the product of a polynomial and x^64, modulo P.
    #[inline(always)]
    fn up(&self, polynomial: u64) -> u64 {
        let bytes = polynomial.to_le_bytes();
        (0..8).fold(0, |sum, i| sum ^ self.tables.up[i][usize::from(bytes[i])])
    }

    /// Returns the fingerprint of a.b, given the fingerprints of a and b and the length of b in bytes. Takes constant time
    /// for up to 255 bytes, and logarithmic time for more.
    ///
    /// As plus and minus are the same, this can also remove a prefix: f(b) is `concat(f(a), f(a.b), |b|)`.
    #[must_use]
    pub fn concat(&self, a: u64, b: u64, length_of_b: u64) -> u64 {
        struct Concat<'a>(&'a Rabin, u64, u64);

        impl Body for Concat<'_> {
            type Output = u64;

            #[inline(always)]
            fn run(self, multiply: impl Multiply) -> u64 {
                self.0.shifted(multiply, self.1, self.2)
            }
        }

        b ^ fastest(Concat(self, a, length_of_b))
    }

    /// Returns x^(8n) mod P, by which the fingerprint of a string is multiplied when n bytes are appended.
    #[must_use]
    pub fn power(&self, n: u64) -> u64 {
        self.concat(Self::ONE, 0, n)
    }

    /// Returns the product of a fingerprint and x^(8n), modulo P.
    #[inline(always)]
    pub(super) fn shifted(&self, multiply: impl Multiply, fingerprint: u64, n: u64) -> u64 {
        let Tables { modulus, powers, .. } = &*self.tables;
        let low = powers[(n & 255) as usize];
        let power = if n < 256 { low } else { modulus.times(multiply, low, self.far(multiply, n >> 8)) };
        modulus.times(multiply, fingerprint, power)
    }

    /// Like [`shifted`](Self::shifted), without special instructions. For small n, appending zero bytes with the tables is
    /// faster than multiplying.
    #[inline(always)]
    pub(super) fn shifted_by_tables(&self, fingerprint: u64, n: u64) -> u64 {
        if n > 96 {
            return self.shifted(Portable, fingerprint, n);
        }
        let whole = (0..n / 8).fold(fingerprint, |sum, _| self.up(sum));
        let bits = n % 8 * 8;
        if bits == 0 { whole } else { self.up(whole >> (64 - bits)) ^ whole << bits }
    }

    /// Returns x^(2048 n) mod P, computed by repeated squaring.
    #[inline(always)]
    fn far(&self, multiply: impl Multiply, mut n: u64) -> u64 {
        let Tables { modulus, powers, .. } = &*self.tables;
        let (mut power, mut base) = (1, modulus.times(multiply, powers[255], powers[1]));
        while n > 0 {
            if n & 1 == 1 {
                power = modulus.times(multiply, power, base);
            }
            base = modulus.times(multiply, base, base);
            n >>= 1;
        }
        power
    }

    /// Returns a roller for windows of `length` bytes.
    #[must_use]
    pub fn roller(&self, length: usize) -> Roller {
        let leaving = multiples(self.power(length as u64), self.tables.modulus.low());
        Roller { rabin: self.clone(), leaving: Box::new(leaving) }
    }

    /// Returns the fingerprints of all substrings of `length` bytes, in order. There are none if `length` is 0 or greater
    /// than the length of the string.
    ///
    /// Takes two table look-ups for each byte, regardless of `length`.
    #[must_use]
    pub fn windows<'a>(&self, string: &'a [u8], length: usize) -> Windows<'a> {
        let ahead =
            if length == 0 { None } else { string.get(..length).map(|first| self.fingerprint(first)) };
        Windows {
            roller: self.roller(length),
            ahead,
            leaving: string,
            entering: string.get(length..).unwrap_or(&[]),
        }
    }
}

impl fmt::Debug for Rabin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rabin").field("polynomial", &format_args!("{:#x}", self.polynomial())).finish()
    }
}

/// Computes the fingerprint of each window of a string from the fingerprint of the previous window. Created by
/// [`Rabin::roller`].
#[derive(Clone, Debug)]
pub struct Roller {
    rabin: Rabin,
    /// The product, modulo P, of each byte and x^(8 length), indexed by the byte.
    leaving: Box<[u64; 256]>,
}

impl Roller {
    /// Returns the fingerprint of the next window: removes the oldest byte, `leaves`, and appends the byte `enters`.
    ///
    /// ```
    /// let rabin = twindex_sketch::Rabin::new(0);
    /// let roller = rabin.roller(4);
    /// assert_eq!(roller.roll(rabin.fingerprint(b"lore"), b'l', b'm'), rabin.fingerprint(b"orem"));
    /// ```
    #[must_use]
    #[inline]
    pub fn roll(&self, fingerprint: u64, leaves: u8, enters: u8) -> u64 {
        let carry = self.rabin.tables.up[0][(fingerprint >> 56) as usize];
        (fingerprint << 8 | u64::from(enters)) ^ carry ^ self.leaving[usize::from(leaves)]
    }
}

/// An iterator over the fingerprints of the windows of a string. Created by [`Rabin::windows`].
#[derive(Clone, Debug)]
pub struct Windows<'a> {
    roller: Roller,
    ahead: Option<u64>,
    leaving: &'a [u8],
    entering: &'a [u8],
}

impl Iterator for Windows<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let fingerprint = self.ahead.take()?;
        if let (Some((&leaves, leaving)), Some((&enters, entering))) =
            (self.leaving.split_first(), self.entering.split_first())
        {
            self.ahead = Some(self.roller.roll(fingerprint, leaves, enters));
            (self.leaving, self.entering) = (leaving, entering);
        }
        Some(fingerprint)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.ahead.is_some() { self.entering.len() + 1 } else { 0 };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Windows<'_> {}

/// Returns the product of a polynomial of degree below 64 and x, modulo x^64 + `low`.
fn times_x(polynomial: u64, low: u64) -> u64 {
    polynomial << 1 ^ (polynomial >> 63).wrapping_neg() & low
}

/// Returns the products of `first` and every polynomial of degree below 8, modulo x^64 + `low`.
fn multiples(first: u64, low: u64) -> [u64; 256] {
    let mut table = [0; 256];
    let mut power = first;
    for i in 0..256_usize {
        if i.is_power_of_two() {
            table[i] = power;
            power = times_x(power, low);
        } else if i > 0 {
            table[i] = table[i & (i - 1)] ^ table[1 << i.trailing_zeros()];
        }
    }
    table
}

/// Reads a string of 1 to 8 bytes as a big-endian number. Uses overlapping loads: bytes that are loaded twice set the same
/// bits.
#[inline(always)]
fn number(string: &[u8]) -> u64 {
    let n = string.len();
    if let (Some(first), Some(last)) = (string.first_chunk::<4>(), string.last_chunk::<4>()) {
        return u64::from(u32::from_be_bytes(*first)) << (8 * (n - 4)) | u64::from(u32::from_be_bytes(*last));
    }
    let byte = |at: usize| u64::from(string[at]) << (8 * (n - 1 - at));
    if n == 0 { 0 } else { byte(0) | byte(n / 2) | byte(n - 1) }
}

#[cfg(test)]
mod tests {
    //! The expected results are computed by long division, bit by bit. All faster implementations are compared with them.

    use proptest::prelude::*;

    use super::*;

    /// Computes the fingerprint by long division.
    fn divided(polynomial: u128, string: &[u8]) -> u64 {
        let bits = string.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
        bits.fold(0_u128, |rest, bit| {
            let rest = rest << 1 | u128::from(bit);
            if rest >> 64 == 1 { rest ^ polynomial } else { rest }
        }) as u64
    }

    fn product(a: u128, b: u128) -> u128 {
        (0..64).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ a << i)
    }

    fn strings() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            proptest::collection::vec(any::<u8>(), 100..700),
            proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xff), Just(0x80), Just(1)], 0..300),
            (0..300_usize).prop_map(|n| vec![0; n]),
            (0..300_usize).prop_map(|n| vec![0xff; n]),
        ]
    }

    #[test]
    fn is_irreducible_matches_a_sieve_up_to_degree_11() {
        // Marks all products of two polynomials of degree at least 1, up to degree 11. All others are irreducible.
        let mut reducible = vec![false; 1 << 12];
        for a in 2..1_u128 << 11 {
            for b in 2..=a {
                if a.ilog2() + b.ilog2() < 12 {
                    reducible[product(a, b) as usize] = true;
                }
            }
        }
        assert!(!is_irreducible(0) && !is_irreducible(1));
        for (polynomial, reducible) in (0_u128..).zip(reducible).skip(2) {
            assert_eq!(is_irreducible(polynomial), !reducible, "{polynomial:b}");
        }
    }

    #[test]
    fn number_of_irreducible_polynomials_matches_the_formula_of_gauss() {
        // Gauss's formula for the number of irreducible polynomials of degree d: (1/d) times the sum, over the divisors e of
        // d, of moebius(d/e) 2^e. For 16: (2^16 - 2^8) / 16.
        let count = |degree: u32| (1_u128 << degree..2 << degree).filter(|&p| is_irreducible(p)).count();
        assert_eq!((count(1), count(2), count(3), count(8), count(16)), (2, 1, 2, 30, 4080));
    }

    #[test]
    fn known_polynomials_of_degree_64_are_classified_correctly() {
        let terms = |exponents: &[u32]| exponents.iter().fold(0_u128, |sum, &i| sum ^ 1 << i);
        // Two irreducible polynomials: a pentanomial from published tables, which is the generator of the CRC-64 of ISO
        // 3309; and the primitive polynomial of a known linear-feedback shift register.
        for known in [&[64, 4, 3, 1, 0][..], &[64, 63, 61, 60, 0]] {
            assert!(is_irreducible(terms(known)), "{known:?}");
        }
        // Reducible polynomials: x^64 + 1 = (x + 1)^64; x^64 + x = x (x^63 + 1); a polynomial with an even number of
        // terms; a square.
        for known in [&[64, 0][..], &[64, 1], &[64, 4, 3, 0], &[64, 8, 6, 2, 0]] {
            assert!(!is_irreducible(terms(known)), "{known:?}");
        }
        // By Swan's theorem no trinomial x^64 + x^k + 1 is irreducible, because 8 divides 64.
        assert!((1..64).all(|k| !is_irreducible(terms(&[64, k, 0]))));
        // Products of two irreducible polynomials whose degrees add up to 64. Two factors of degree 32 are the hardest to
        // detect.
        let of_degree =
            |d: u32| (1_u128 << d..2 << d).filter(|&p| is_irreducible(p)).take(3).collect::<Vec<_>>();
        for d in [1, 2, 7, 21, 31, 32] {
            for &a in &of_degree(d) {
                for &b in &of_degree(64 - d) {
                    let product = (0..=d).filter(|i| a >> i & 1 == 1).fold(0, |sum, i| sum ^ b << i);
                    assert_eq!(product.ilog2(), 64);
                    assert!(!is_irreducible(product), "{a:b} times {b:b}");
                }
            }
        }
    }

    #[test]
    fn polynomials_of_degree_127_are_classified_correctly() {
        assert!(is_irreducible(1 << 127 | 0b11)); // x^127 + x + 1, from Zierler's list of irreducible trinomials
        assert!(!is_irreducible(u128::MAX)); // (x^128 + 1) / (x + 1) = (x + 1)^127
    }

    #[test]
    fn every_seed_gives_an_irreducible_polynomial() {
        let polynomials: Vec<u128> = (0..20).map(|seed| Rabin::new(seed).polynomial()).collect();
        for (i, &polynomial) in polynomials.iter().enumerate() {
            assert!(polynomial >> 64 == 1 && is_irreducible(polynomial));
            assert!(!polynomials[..i].contains(&polynomial));
            assert_eq!(Rabin::with_polynomial(polynomial).unwrap().polynomial(), polynomial);
        }
    }

    #[test]
    fn reducible_polynomials_and_other_degrees_are_refused() {
        for polynomial in [0, 1, 0b111, 1 << 64, 1 << 64 | 1, 1 << 127 | 0b11, u128::MAX] {
            let error = Rabin::with_polynomial(polynomial).unwrap_err();
            assert!(error.to_string().contains(&format!("{polynomial:#x}")), "{error}");
        }
    }

    #[test]
    fn bits_of_a_string_are_the_coefficients_of_its_polynomial() {
        // The bits 10011 are x^4 + x + 1. A polynomial of degree below 64 is its own remainder.
        assert_eq!(Rabin::new(0).fingerprint(&[0b10011]), 0b10011);
        assert_eq!(Rabin::new(0).fingerprint(b"fingers!"), u64::from_be_bytes(*b"fingers!"));
        // x^64 is congruent to the lower terms of the polynomial.
        let rabin = Rabin::new(0);
        let low = rabin.polynomial() as u64;
        assert_eq!(rabin.fingerprint(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), low);
        assert_eq!(rabin.fingerprint(&[2, 0, 0, 0, 0, 0, 0, 0, 0]), times_x(low, low));
    }

    #[test]
    fn leading_zeros_change_the_hash_only_after_a_one() {
        let rabin = Rabin::new(7);
        for n in 0..300 {
            let string = [&vec![0; n][..], b"a"].concat();
            assert_eq!(rabin.fingerprint(&string), rabin.fingerprint(b"a"));
        }
        let mut led: Vec<u64> = (0..300).map(|n| rabin.extend(Rabin::ONE, &vec![0; n])).collect();
        led.sort_unstable();
        led.dedup();
        assert_eq!(led.len(), 300);
        assert_eq!(rabin.extend(Rabin::ONE, b"\0a"), rabin.fingerprint(b"\x01\0a"));
    }

    #[test]
    fn windows_longer_than_the_input_yield_nothing() {
        let rabin = Rabin::new(0);
        for (string, length) in [(&b""[..], 0), (b"", 1), (b"abc", 0), (b"abc", 4), (b"abc", usize::MAX)] {
            assert_eq!(rabin.windows(string, length).len(), 0);
            assert_eq!(rabin.windows(string, length).next(), None);
        }
        assert_eq!(rabin.windows(b"abc", 3).len(), 1);
    }

    proptest! {
        #[test]
        fn fingerprints_are_remainders_of_polynomial_division(seed in 0_u64..4, string in strings(), start: u64) {
            let rabin = Rabin::new(seed);
            prop_assert_eq!(rabin.fingerprint(&string), divided(rabin.polynomial(), &string));
            let whole = [&start.to_be_bytes()[..], &string].concat();
            let expected = divided(rabin.polynomial(), &whole);
            prop_assert_eq!(rabin.extend(start, &string), expected);
            prop_assert_eq!(rabin.extend_by_tables(start, &string), expected);
        }

        #[test]
        fn extend_and_concat_give_the_fingerprint_of_concatenated_strings(
            seed in 0_u64..4, a in strings(), b in strings(),
        ) {
            let rabin = Rabin::new(seed);
            let f = |parts: &[&[u8]]| rabin.fingerprint(&parts.concat());
            let of_a = f(&[&a]);
            prop_assert_eq!(f(&[&a, &b]), f(&[&of_a.to_be_bytes(), &b]));
            prop_assert_eq!(f(&[&a, &b]), rabin.extend(of_a, &b));
            let length = b.len() as u64;
            prop_assert_eq!(f(&[&a, &b]), rabin.concat(of_a, f(&[&b]), length));
            prop_assert_eq!(f(&[&b]), rabin.concat(of_a, f(&[&a, &b]), length));
            // The fingerprint of a string with a byte 1 in front can be extended in the same way.
            let led = rabin.extend(Rabin::ONE, &a);
            prop_assert_eq!(rabin.extend(led, &b), f(&[&[1], &a, &b]));
        }

        #[test]
        fn rolled_windows_equal_directly_hashed_windows(seed in 0_u64..4, string in strings(), length in 1_usize..300) {
            let rabin = Rabin::new(seed);
            let expected: Vec<u64> = string.windows(length).map(|window| rabin.fingerprint(window)).collect();
            prop_assert_eq!(rabin.windows(&string, length).len(), expected.len());
            prop_assert_eq!(rabin.windows(&string, length).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn powers_are_fingerprints_of_a_one_followed_by_zeros(
            seed in 0_u64..4,
            n in prop_oneof![0_usize..600, Just(65_536), 0_usize..70_000],
            fingerprint: u64,
        ) {
            let rabin = Rabin::new(seed);
            prop_assert_eq!(rabin.power(n as u64), rabin.extend(1, &vec![0; n]));
            let expected = rabin.extend(fingerprint, &vec![0; n]);
            prop_assert_eq!(rabin.shifted(Portable, fingerprint, n as u64), expected);
            prop_assert_eq!(rabin.shifted_by_tables(fingerprint, n as u64), expected);
            prop_assert_eq!(rabin.concat(fingerprint, 0, n as u64), expected);
        }

        #[test]
        fn multiplying_powers_adds_their_exponents(a: u32, b: u32) {
            let rabin = Rabin::new(1);
            let product = rabin.concat(rabin.power(a.into()), 0, b.into());
            prop_assert_eq!(product, rabin.power(u64::from(a) + u64::from(b)));
        }
    }
}
