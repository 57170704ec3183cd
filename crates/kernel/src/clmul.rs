//! Multiplication without carries: polynomials over GF(2) and their residues, for Rabin's fingerprints.
//!
//! Bit i of a number is the coefficient of x^i, so that adding is xor. [`Portable`] is the definition;
//! [`Clmul`] is the instruction PCLMULQDQ, and gives the same. [`fastest`] chooses between them at run time.
//!
//! It is separate from the [levels](super::Level): no level includes PCLMULQDQ, not even x86-64-v3. Without it, callers
//! do not want the same loop in plain instructions, which is slower than their tables, but another algorithm. So they
//! check for it first ([`available`], [`Clmul::detect`]), which a kernel that receives its witness cannot. The scalar
//! level turns it off, so that one variable still selects plain instructions everywhere.
//!
//! Residues are taken by Barrett's method (1986), which is exact over GF(2). Let P = x^64 + p, T = H x^64 + L
//! with H and L of degrees below 64, and M = floor(x^128 / P) = x^64 + m. There are no carries, so floor(A +
//! B) = floor(A) + floor(B), and L / P has no whole part: floor(T / P) = floor(H x^64 / P). The fraction that
//! M lacks has a negative degree, and so has its product with H / x^64: floor(T / P) = floor(H M / x^64) = H
//! plus floor(H m / x^64), without error. The residue T - floor(T / P) P has a degree below 64, where x^64 of P
//! does not reach: it is L + (floor(T / P) p mod x^64). Two multiplications, no loop and no table.
//!
//! Long strings are folded 64 bytes at a time, as Gopal, Ozturk and others do for cyclic redundancy checks
//! (*Fast CRC computation for generic polynomials using PCLMULQDQ*, 2009): a lane of 128 bits, H x^64 + L,
//! moves up by 512 bits as H (x^576 mod P) + L (x^512 mod P), which has again less than 128.

#[cfg(target_arch = "x86_64")]
use super::Level;

/// Products of polynomials over GF(2) of degrees below 64.
pub trait Multiply: Copy {
    /// `a` times `b`.
    fn multiply(self, a: u64, b: u64) -> u128;
}

/// In plain instructions, four bits of `b` at a time.
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

/// True if the processor has carry-less multiplication, and the level is not the plain one ([`Level::chosen`]).
#[must_use]
pub fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return Level::chosen() > Level::Scalar
        && std::is_x86_feature_detected!("pclmulqdq")
        && std::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The instruction; there is a value of this type only where [`available`] was true.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Clmul(());

#[cfg(target_arch = "x86_64")]
impl Clmul {
    /// `None` where the processor does not have it.
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
        // SAFETY: the only precondition of `x86::multiply` is that the processor has pclmulqdq and sse4.1.
        // The field of `Clmul` is private to this module and only `detect` fills it, after `available` has
        // found both.
        unsafe {
            x86::multiply(a, b)
        }
    }
}

/// Code that runs with either multiplication. Everything hot in `run` must be `#[inline(always)]`, or it is not
/// compiled for the instruction.
pub trait Body {
    /// The result.
    type Output;
    /// Runs it. The result must not depend on `multiply`.
    fn run(self, multiply: impl Multiply) -> Self::Output;
}

/// Runs `body` with the instruction if the processor has it, otherwise with [`Portable`].
#[inline]
pub fn fastest<B: Body>(body: B) -> B::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(clmul) = Clmul::detect() {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were just detected")]
        // SAFETY: the only precondition of `x86::run` is that the processor has pclmulqdq and sse4.1;
        // `detect` has found both on the line above.
        return unsafe { x86::run(body, clmul) };
    }
    body.run(Portable)
}

/// A polynomial of degree 64 as a modulus; any, irreducible or not.
#[derive(Clone, Debug)]
pub struct Modulus {
    /// Its coefficients below x^64.
    low: u64,
    /// floor(x^128 / P) without its x^64.
    inverse: u64,
    /// x^512 and x^576, x^128 and x^192: the factors that move the low and the high half of a lane up.
    #[cfg(target_arch = "x86_64")]
    up: [[u64; 2]; 2],
}

impl Modulus {
    /// x^64 plus the polynomial of degree below 64 whose coefficients are `low`.
    #[must_use]
    pub fn new(low: u64) -> Self {
        // The quotient of x^128 begins with x^64, which leaves low * x^64: 64 steps of long division.
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

    /// The coefficients below x^64.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// The residue of any polynomial of degree below 128.
    #[inline(always)]
    pub fn residue(&self, multiply: impl Multiply, polynomial: u128) -> u64 {
        let high = (polynomial >> 64) as u64;
        let quotient = high ^ (multiply.multiply(high, self.inverse) >> 64) as u64;
        polynomial as u64 ^ multiply.multiply(quotient, self.low) as u64
    }

    /// The residue of a product.
    #[inline(always)]
    pub fn times(&self, multiply: impl Multiply, a: u64, b: u64) -> u64 {
        self.residue(multiply, multiply.multiply(a, b))
    }

    /// The residue of `state` times x^(512 n) plus n blocks, each a polynomial whose highest coefficient is
    /// the highest bit of its first byte.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn fold(&self, clmul: Clmul, state: u64, blocks: &[[u8; 64]]) -> u64 {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were detected")]
        // SAFETY: the only precondition of `x86::fold` is that the processor has pclmulqdq and sse4.1. The
        // field of `Clmul` is private to this module and only `detect` fills it, after `available` has found
        // both.
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

    /// The four lanes of a block, the first byte highest.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn lanes(block: &[u8; 64]) -> [__m128i; 4] {
        let reversed = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        let (quarters, _) = block.as_chunks::<16>();
        [0, 1, 2, 3].map(|i| {
            let quarter: &[u8; 16] = &quarters[i];
            #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: `_mm_loadu_si128` reads 16 bytes from the pointer and asks for no alignment. The
            // pointer is that of a live `[u8; 16]`, whose 16 bytes are initialised; any bits are a valid
            // `__m128i`.
            let bytes = unsafe { _mm_loadu_si128(quarter.as_ptr().cast()) };
            _mm_shuffle_epi8(bytes, reversed)
        })
    }

    /// A lane times the power of x whose residues, for its low and high half, are `by`.
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
        // The state before the first block is 64 bits above the high half of its first lane: x^64 is `low`.
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

    /// The definition of a product, bit by bit.
    fn product(a: u64, b: u64) -> u128 {
        (0..64).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ u128::from(a) << i)
    }

    /// The definition of a residue: long division.
    fn residue(low: u64, polynomial: u128) -> u64 {
        let divisor = 1 << 64 | u128::from(low);
        (0..64)
            .rev()
            .fold(polynomial, |rest, i| if rest >> (64 + i) & 1 == 1 { rest ^ divisor << i } else { rest })
            as u64
    }

    /// The definition of `fold`, byte by byte.
    #[cfg(target_arch = "x86_64")]
    fn folded(low: u64, state: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(state, |state, &byte| residue(low, u128::from(state) << 8 | u128::from(byte)))
    }

    /// Numbers that are hard for shifts, carries and empty halves, and random ones.
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

    /// Compares either multiplication with the definitions.
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
        fn products_and_residues_are_those_of_the_schoolbook(a in number(), b in number(), low in number()) {
            check(Portable, a, b, low);
            fastest(Check(a, b, low));
        }

        #[cfg(target_arch = "x86_64")]
        #[test]
        fn folded_blocks_are_those_of_long_division(
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
