//! Carry-less multiplication: products and remainders of polynomials over GF(2), used for Rabin's fingerprints.
//!
//! Bit i of a number is the coefficient of x^i, so addition is xor. [`Portable`] is the reference implementation. [`Clmul`]
//! uses the instruction PCLMULQDQ and gives the same results. [`fastest`] chooses one of the two at run time.
//!
//! PCLMULQDQ belongs to none of the [levels](super::Level): not even x86-64-v3 includes it. On a processor without it,
//! an algorithm with tables is faster than a loop over [`Portable`] multiplications. So a caller checks for the
//! instruction ([`available`], [`Clmul::detect`]) and then chooses its algorithm. The scalar level also disables
//! PCLMULQDQ, so that one environment variable disables all special instructions.
//!
//! Remainders are computed by Barrett's method (1986), which is exact over GF(2). Let P = x^64 + p, T = H x^64 + L with H
//! and L of degrees below 64, and M = floor(x^128 / P) = x^64 + m. There are no carries, so floor(A + B) = floor(A) +
//! floor(B), and L / P has no polynomial part: floor(T / P) = floor(H x^64 / P). M and x^128 / P differ by a term of
//! negative degree, and so does their product with H / x^64. Therefore floor(T / P) = floor(H M / x^64) = H + floor(H m /
//! x^64), without error. The remainder T - floor(T / P) P has a degree below 64, to which the term x^64 of P contributes
//! nothing: the remainder is L + (floor(T / P) p mod x^64). This takes two multiplications, no loop and no table.
//!
//! Long strings are folded 64 bytes at a time, as Gopal, Ozturk and others do for cyclic redundancy checks (*Fast CRC
//! computation for generic polynomials using PCLMULQDQ*, 2009). A 128-bit lane H x^64 + L is multiplied by x^512 by
//! computing H (x^576 mod P) + L (x^512 mod P), which again has a degree below 128.

#[cfg(target_arch = "x86_64")]
use super::Level;

/// Multiplies polynomials over GF(2) of degrees below 64.
pub trait Multiply: Copy {
    /// Multiplies `a` by `b`.
    fn multiply(self, a: u64, b: u64) -> u128;
}

/// Multiplies without special instructions, four bits of `b` at a time.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Multiply for Portable {
    #[inline(always)]
    fn multiply(self, a: u64, b: u64) -> u128 {
        let mut multiples = [0_u128; 16];
        for i in 1..16 {
            let half = multiples[i / 2] << 1;
            multiples[i] = if i % 2 == 0 { half } else { half ^ u128::from(a) };
        }
        (0..16).rev().fold(0, |product, nibble| product << 4 ^ multiples[(b >> (4 * nibble) & 15) as usize])
    }
}

/// Returns true if the processor has carry-less multiplication and the chosen level ([`Level::chosen`]) is not scalar.
#[must_use]
pub fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return Level::chosen() > Level::Scalar
        && std::is_x86_feature_detected!("pclmulqdq")
        && std::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Multiplies with PCLMULQDQ. Values of this type exist only if [`available`] returned true.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Clmul(());

#[cfg(target_arch = "x86_64")]
impl Clmul {
    /// Returns a value if the instruction is available, otherwise `None`.
    #[inline]
    #[must_use]
    pub fn detect() -> Option<Self> {
        available().then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Multiply for Clmul {
    #[inline(always)]
    fn multiply(self, a: u64, b: u64) -> u128 {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were detected")]
        // SAFETY: the only precondition of `x86::multiply` is that the processor has pclmulqdq and sse4.1. The field of
        // `Clmul` is private to this module, and only `detect` creates a value, after `available` found both features.
        unsafe {
            x86::multiply(a, b)
        }
    }
}

/// Code that is generic over the multiplication. Hot functions that `run` calls must be `#[inline(always)]`; otherwise
/// they are compiled without PCLMULQDQ.
pub trait Body {
    /// The result of `run`.
    type Output;
    /// Runs the code. The result must not depend on `multiply`.
    fn run(self, multiply: impl Multiply) -> Self::Output;
}

/// Runs `body` with carry-less multiplication (pclmulqdq) if available, otherwise with [`Portable`].
#[inline]
pub fn fastest<B: Body>(body: B) -> B::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(clmul) = Clmul::detect() {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were just detected")]
        // SAFETY: the only precondition of `x86::run` is that the processor has pclmulqdq and sse4.1; `detect` found both on
        // the line above.
        return unsafe { x86::run(body, clmul) };
    }
    body.run(Portable)
}

/// A modulus: any polynomial of degree 64, irreducible or not.
#[derive(Clone, Debug)]
pub struct Modulus {
    /// The coefficients of the polynomial below x^64.
    low: u64,
    /// floor(x^128 / P) without its leading term x^64.
    inverse: u64,
    /// Powers of x modulo P, by which the low and the high half of a lane are multiplied: x^512 and x^576 to move a
    /// lane on by four lanes, and x^128 and x^192 to move it on by one lane.
    #[cfg(target_arch = "x86_64")]
    up: [[u64; 2]; 2],
}

impl Modulus {
    /// Creates the modulus x^64 + `low`, where `low` contains the coefficients below x^64.
    #[must_use]
    pub fn new(low: u64) -> Self {
        // Long division of x^128 by P. The first term of the quotient is x^64, which leaves the remainder low * x^64.
        // The 64 steps of the loop follow.
        let (mut inverse, mut rest) = (0, low);
        for _ in 0..64 {
            let carry = rest >> 63;
            inverse = inverse << 1 | carry;
            rest = rest << 1 ^ carry.wrapping_neg() & low;
        }
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "no lanes to move"))]
        let mut modulus = Self {
            low,
            inverse,
            #[cfg(target_arch = "x86_64")]
            up: [[0; 2]; 2],
        };
        #[cfg(target_arch = "x86_64")]
        {
            let times = |a, b| modulus.times(Portable, a, b);
            let by_128 = times(low, low);
            let by_512 = times(times(by_128, by_128), times(by_128, by_128));
            modulus.up = [[by_512, times(by_512, low)], [by_128, times(by_128, low)]];
        }
        modulus
    }

    /// Returns the coefficients below x^64.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// Returns the remainder of a polynomial of degree below 128.
    #[inline(always)]
    pub fn residue(&self, multiply: impl Multiply, polynomial: u128) -> u64 {
        let high = (polynomial >> 64) as u64;
        let quotient = high ^ (multiply.multiply(high, self.inverse) >> 64) as u64;
        polynomial as u64 ^ multiply.multiply(quotient, self.low) as u64
    }

    /// Returns the product of `a` and `b` modulo this polynomial.
    #[inline(always)]
    pub fn times(&self, multiply: impl Multiply, a: u64, b: u64) -> u64 {
        self.residue(multiply, multiply.multiply(a, b))
    }

    /// Appends `n` blocks to a polynomial: returns `state` times x^(512 n) plus the polynomial of the blocks, modulo
    /// this polynomial. The highest bit of the first byte of a block is its highest coefficient.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn fold(&self, clmul: Clmul, state: u64, blocks: &[[u8; 64]]) -> u64 {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were detected")]
        // SAFETY: the only precondition of `x86::fold` is that the processor has pclmulqdq and sse4.1. The field of `Clmul`
        // is private to this module, and only `detect` creates a value, after `available` found both features.
        unsafe {
            x86::fold(self, clmul, state, blocks)
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_extract_epi64,
        _mm_loadu_si128, _mm_set_epi64x, _mm_setr_epi8, _mm_shuffle_epi8, _mm_xor_si128,
    };

    use super::{Body, Clmul, Modulus};

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn multiply(a: u64, b: u64) -> u128 {
        let (a, b) = (_mm_cvtsi64_si128(a.cast_signed()), _mm_cvtsi64_si128(b.cast_signed()));
        number(_mm_clmulepi64_si128::<0>(a, b))
    }

    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn run<B: Body>(body: B, clmul: Clmul) -> B::Output {
        body.run(clmul)
    }

    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn number(lane: __m128i) -> u128 {
        let low = _mm_cvtsi128_si64(lane).cast_unsigned();
        let high = _mm_extract_epi64::<1>(lane).cast_unsigned();
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn lane(low: u64, high: u64) -> __m128i {
        _mm_set_epi64x(high.cast_signed(), low.cast_signed())
    }

    /// Returns the four lanes of a block; the first byte of a lane becomes its highest byte.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn lanes(block: &[u8; 64]) -> [__m128i; 4] {
        let reversed = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        let (quarters, _) = block.as_chunks::<16>();
        [0, 1, 2, 3].map(|i| {
            let quarter: &[u8; 16] = &quarters[i];
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: `_mm_loadu_si128` reads 16 bytes from the pointer and requires no alignment. The pointer points to a
            // live `[u8; 16]`, whose 16 bytes are initialised; every bit pattern is a valid `__m128i`.
            let bytes = unsafe { _mm_loadu_si128(quarter.as_ptr().cast()) };
            _mm_shuffle_epi8(bytes, reversed)
        })
    }

    /// Multiplies a lane by a power of x. `by` contains the factors for the low and the high half of the lane.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn up(lane: __m128i, by: __m128i) -> __m128i {
        _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(lane, by), _mm_clmulepi64_si128::<0x11>(lane, by))
    }

    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn fold(modulus: &Modulus, clmul: Clmul, state: u64, blocks: &[[u8; 64]]) -> u64 {
        let Some((first, rest)) = blocks.split_first() else { return state };
        let [by_512, by_128] = modulus.up.map(|[low, high]| lane(low, high));
        let mut sums = lanes(first);
        // `state` precedes the first block, so in the first lane it is 64 bits above the high half. Multiply it by x^64
        // = `low`.
        sums[0] = _mm_xor_si128(sums[0], lane(0, modulus.times(clmul, state, modulus.low)));
        for block in rest {
            let next = lanes(block);
            for i in 0..4 {
                sums[i] = _mm_xor_si128(up(sums[i], by_512), next[i]);
            }
        }
        let [mut sum, after @ ..] = sums;
        for next in after {
            sum = _mm_xor_si128(up(sum, by_128), next);
        }
        modulus.residue(clmul, number(sum))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the expected products, bit by bit.
    fn product(a: u64, b: u64) -> u128 {
        (0..64).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ u128::from(a) << i)
    }

    /// Computes the expected remainders, by long division.
    fn residue(low: u64, polynomial: u128) -> u64 {
        let divisor = 1 << 64 | u128::from(low);
        (0..64)
            .rev()
            .fold(polynomial, |rest, i| if rest >> (64 + i) & 1 == 1 { rest ^ divisor << i } else { rest })
            as u64
    }

    /// Computes the expected results of `fold`, byte by byte.
    #[cfg(target_arch = "x86_64")]
    fn folded(low: u64, state: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(state, |state, &byte| residue(low, u128::from(state) << 8 | u128::from(byte)))
    }

    /// Generates numbers that test shifts, carries and empty halves, and random numbers.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            any::<u64>().prop_map(|x| x & x >> 1 & x >> 7),
            (0_u32..64).prop_map(|i| 1 << i),
            (0_u32..64).prop_map(|i| u64::MAX << i),
            (0_u32..64).prop_map(|i| u64::MAX >> i),
            Just(0),
        ]
    }

    /// Compares a multiplication, and the remainders that it computes, with the expected results.
    fn check(multiply: impl Multiply, a: u64, b: u64, low: u64) {
        assert_eq!(multiply.multiply(a, b), product(a, b), "{a:x} {b:x}");
        let modulus = Modulus::new(low);
        let any = u128::from(a) << 64 | u128::from(b);
        assert_eq!(modulus.residue(multiply, any), residue(low, any), "{any:x} mod x^64 + {low:x}");
        assert_eq!(
            modulus.times(multiply, a, b),
            residue(low, product(a, b)),
            "{a:x} {b:x} mod x^64 + {low:x}"
        );
    }

    struct Check(u64, u64, u64);

    impl Body for Check {
        type Output = ();

        fn run(self, multiply: impl Multiply) {
            check(multiply, self.0, self.1, self.2);
        }
    }

    proptest! {
        #[test]
        fn products_and_residues_equal_schoolbook_arithmetic(a in number(), b in number(), low in number()) {
            check(Portable, a, b, low);
            fastest(Check(a, b, low));
        }

        #[cfg(target_arch = "x86_64")]
        #[test]
        fn folded_blocks_equal_long_division(
            state in number(),
            low in number(),
            words in proptest::collection::vec(number(), 0..48),
        ) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let (blocks, _) = bytes.as_chunks::<64>();
            if let Some(clmul) = Clmul::detect() {
                let expected = folded(low, state, blocks.as_flattened());
                prop_assert_eq!(Modulus::new(low).fold(clmul, state, blocks), expected);
            }
        }
    }
}
