//! The family *linear*: `a x + b` modulo a prime.
//!
//! These are the linear transformations of Broder, Charikar, Frieze and Mitzenmacher (*Min-wise independent permutations*,
//! 1998, section 4), which lectures and most programs write as `(a x + b) % c`. For a shingle hash x and the Mersenne prime
//! p = 2^61 - 1,
//!
//! ```text
//! h(x, j)      = (a[j] * (x mod p) + b[j]) mod p          exact, the product has 122 bits
//! a[j]         = 1 + mix(LINEAR + 2 j) mod (p - 1)        1 to p - 1: a permutation of 0 to p - 1
//! b[j]         = mix(LINEAR + 2 j + 1) mod p
//! signature[j] = the low 32 bits of min { h(x, j) : x in the set }
//! ```
//!
//! `LINEAR` is `0x452821e638d01377`, and `mix` is the function of [`shingle`](crate::shingle). Sums of 64 bits wrap.
//!
//! **Which bits are kept.** The least of n values is about p / n, so its upper log2(n) bits are zeros. For sets of up to
//! 2^29 elements the low 32 bits are nearly random: the low b bits of two different minima differ with probability 1 - 2^-b.
//! All 61 bits are compared to find the least value, so there are no ties.
//!
//! **Accuracy.** No linear family is exactly min-wise independent: in a set of consecutive numbers 0, 1, .. n - 1, the
//! element 0 has the least value too often, by a factor that grows with log n. For sets of mixed hashes, as here, the
//! minima show no measurable difference from independent ones (`tests/it/sketch_accuracy.rs`).
//!
//! Time: 4 multiplications of 32 bits for each shingle and minimum. Memory: 24 bytes per minimum.

use std::sync::Arc;

use crate::hash::mix;

/// The seed of the coefficients: the fifth 64-bit word of the fractional part of pi.
const LINEAR: u64 = 0x4528_21e6_38d0_1377;

const PRIME: u64 = (1 << 61) - 1;

/// Number of low bits of a hash x that are multiplied by `a`; the upper bits are multiplied by `raised`.
const LOW_BITS: u32 = 31;

/// Number of components computed together. At 32 bytes each, they fit in the first-level cache.
const BLOCK: usize = 256;

/// The coefficients of t transformations. `a` is multiplied by the low 31 bits of x, and `raised` by the upper bits. Both
/// are split into a low half of 32 bits and a high half of 29 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Linear {
    /// The low and the high halves of the coefficients a.
    a: [Arc<[u32]>; 2],
    /// The low and the high halves of the coefficients 2^31 a mod p.
    raised: [Arc<[u32]>; 2],
    /// The coefficients b, each increased by 1; [`lower`](Self::lower) explains why.
    next_b: Arc<[u64]>,
}

impl Linear {
    pub(crate) fn new(minima: usize) -> Self {
        let halves = |factor: fn(u64) -> u64| {
            let factors = || (0..minima as u64).map(|j| factor(coefficients(j).0));
            [factors().map(|a| a as u32).collect(), factors().map(|a| (a >> 32) as u32).collect()]
        };
        Self {
            a: halves(|a| a),
            raised: halves(|a| ((u128::from(a) << LOW_BITS) % u128::from(PRIME)) as u64),
            next_b: (0..minima as u64).map(|j| coefficients(j).1 + 1).collect(),
        }
    }

    pub(crate) fn minima(&self) -> usize {
        self.next_b.len()
    }

    /// Replaces `signature` with the minima of `hashes`, which must not be empty.
    #[inline(always)]
    pub(crate) fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        signature.clear();
        signature.resize(self.minima(), 0);
        for (number, kept) in signature.chunks_mut(BLOCK).enumerate() {
            let mut minima = [i64::MAX; BLOCK];
            let minima = &mut minima[..kept.len()];
            self.lower(minima, hashes, number * BLOCK);
            for (kept, next) in kept.iter_mut().zip(minima) {
                *kept = next.wrapping_sub(1).cast_unsigned() as u32;
            }
        }
    }

    /// Updates `minima`, the components from `start` on, with the values of `hashes`. Each stored value is one more than the
    /// minimum. The inner loop runs over the components.
    ///
    /// Below, x = x1 2^31 + x0 and c = 2^31 a mod p, so that a x = a x0 + c x1 modulo p. The halves of the coefficients
    /// are a = a1 2^32 + a0 and c = c1 2^32 + c0. Because 2^61 = 1 modulo p,
    ///
    /// ```text
    /// a x0 + c x1 = high 2^32 + low,                           high = a1 x0 + c1 x1,  low = a0 x0 + c0 x1
    ///             = (high >> 29) + (high mod 2^29) 2^32 + low  modulo p
    /// ```
    ///
    /// Here x is a hash that was folded once, so it is at most p + 7. Either x0 is below 2^31 and x1 below 2^30, or x1 is
    /// 2^30 and x0 is below 8. Therefore high is below 2^61, low is below 3 * 2^62 - 2^33, and their sum s, including b + 1,
    /// is below 2^64.
    ///
    /// Let s = q 2^61 + r. Then s is congruent to q + r, and p must be subtracted if q + r is greater than p. In exactly
    /// this case the computed quotient is q + 1 instead of q. Because s includes b + 1 and not b, the result is one too
    /// large: it is 1 to p, which the mask p does not change. Results are below 2^61, so they can be compared as signed
    /// numbers. AVX2 has signed but no unsigned comparisons.
    #[inline(always)]
    fn lower(&self, minima: &mut [i64], hashes: &[u64], start: usize) {
        let components = start..start + minima.len();
        let [a0, a1] = [&self.a[0][components.clone()], &self.a[1][components.clone()]];
        let [c0, c1] = [&self.raised[0][components.clone()], &self.raised[1][components.clone()]];
        let next_b = &self.next_b[components];
        for &hash in hashes {
            let x = (hash & PRIME) + (hash >> 61);
            let (x0, x1) = (x & ((1 << LOW_BITS) - 1), x >> LOW_BITS);
            let factors = a0.iter().zip(a1).zip(c0.iter().zip(c1)).zip(next_b);
            for (minimum, (((&a0, &a1), (&c0, &c1)), &next_b)) in minima.iter_mut().zip(factors) {
                let product = |factor: u32, x: u64| u64::from(factor).wrapping_mul(x);
                let high = product(a1, x0).wrapping_add(product(c1, x1));
                let low = product(a0, x0).wrapping_add(product(c0, x1));
                let sum =
                    (high >> 29).wrapping_add((high << 32) & PRIME).wrapping_add(low).wrapping_add(next_b);
                let quotient = sum.wrapping_add(sum >> 61) >> 61;
                *minimum = (*minimum).min((sum.wrapping_add(quotient) & PRIME).cast_signed());
            }
        }
    }
}

/// Returns the coefficients a and b of component j.
fn coefficients(j: u64) -> (u64, u64) {
    let drawn = |i: u64| mix(LINEAR.wrapping_add(i));
    (1 + drawn(2 * j) % (PRIME - 1), drawn(2 * j + 1) % PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the minima by the definition at the top of the module.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let p = u128::from(PRIME);
        let of = |x: u64, (a, b): (u64, u64)| (u128::from(a) * (u128::from(x) % p) + u128::from(b)) % p;
        let min = |j| hashes.iter().map(|&x| of(x, coefficients(j))).min().map(|min| min as u32);
        (0..minima as u64).filter_map(min).collect()
    }

    /// Returns hashes near all values at which a carry or a fold occurs, and random hashes.
    fn edges() -> Vec<u64> {
        let near = |x: u64| (0..9).flat_map(move |d| [x.wrapping_add(d), x.wrapping_sub(d)]);
        let multiples = (0..8).map(|k: u64| k.wrapping_mul(PRIME));
        multiples.chain([1 << 29, 1 << 32, 1 << 61]).flat_map(near).chain((0..500).map(mix)).collect()
    }

    #[test]
    fn each_component_is_the_minimum_of_a_linear_transformation() {
        let mut signature = vec![7; 3];
        for t in [1, 2, 7, 84, 200, 255, 256, 257, 4096] {
            let linear = Linear::new(t);
            assert_eq!(linear.minima(), t);
            for hashes in [&edges()[..], &edges()[..1], &edges()[400..420]] {
                linear.signature(hashes, &mut signature);
                assert_eq!(signature, naive(t, hashes), "{t} minima of {} hashes", hashes.len());
            }
        }
    }

    #[test]
    fn single_hashes_are_transformed_as_defined() {
        // In a minimum of many hashes, a value that is too large would not be noticed, so each hash is tested alone.
        let linear = Linear::new(40);
        let mut signature = Vec::new();
        for hash in edges() {
            linear.signature(&[hash], &mut signature);
            assert_eq!(signature, naive(40, &[hash]), "{hash:#x}");
        }
    }

    #[test]
    fn results_next_to_the_modulus_are_reduced() {
        // Chooses b and x so that a x + b is 0, 1, p - 1 or a neighbour of these, which random tests would miss.
        let linear = Linear::new(84);
        for j in 0..84_u64 {
            let (a, b) = coefficients(j);
            let p = u128::from(PRIME);
            // By Fermat's little theorem, a^(p - 2) is the inverse of a.
            let (mut inverse, mut square) = (1, u128::from(a));
            for bit in 0..61 {
                if (PRIME - 2) >> bit & 1 == 1 {
                    inverse = inverse * square % p;
                }
                square = square * square % p;
            }
            for wanted in [0, 1, 2, p - 3, p - 2, p - 1] {
                let x = ((wanted + p - u128::from(b)) % p * inverse % p) as u64;
                let mut next = [i64::MAX];
                linear.lower(&mut next, &[x], j as usize);
                assert_eq!(next, [wanted as i64 + 1], "component {j}");
            }
        }
    }
}
