//! The family *linear*: `a x + b` modulo a prime.
//!
//! The linear transformations of Broder, Charikar, Frieze and Mitzenmacher (*Min-wise independent
//! permutations*, 1998, section 4), the `(a x + b) % c` of lectures and of most programs. For a shingle hash x
//! and the Mersenne prime p = 2^61 - 1,
//!
//! ```text
//! h(x, j)      = (a[j] * (x mod p) + b[j]) mod p          exact, the product has 122 bits
//! a[j]         = 1 + mix(LINEAR + 2 j) mod (p - 1)        1 to p - 1: a permutation of 0 to p - 1
//! b[j]         = mix(LINEAR + 2 j + 1) mod p
//! signature[j] = the low 32 bits of min { h(x, j) : x in the set }
//! ```
//!
//! with `LINEAR = 0x452821e638d01377` and `mix` of [`shingle`](crate::shingle); sums of 64 bits wrap.
//!
//! **Which bits are kept.** The least of n values is about p / n, so its upper log2(n) bits are zeros. The low
//! 32 are as good as random for sets of up to 2^29 elements, and any b of them differ for different minima with
//! probability 1 - 2^-b. All 61 bits decide what is least, so there are no ties.
//!
//! **How good it is.** No linear family is exactly min-wise independent: of a set like 0, 1, .. n - 1, the
//! element 0 is the least too often, by a factor that grows with log n. Over sets of mixed hashes, which these
//! are, no departure from independent minima can be seen (`tests/it/sketch_accuracy.rs`).
//!
//! Time: 4 multiplications of 32 bits for each shingle and minimum. Memory: 24 bytes a minimum.

use std::sync::Arc;

use crate::hash::mix;

/// The seed of the coefficients: the fifth 64 bits of the fraction of pi.
const LINEAR: u64 = 0x4528_21e6_38d0_1377;

/// The modulus, 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

/// The bits of the low half of x.
const LOW_BITS: u32 = 31;

/// Components that are computed together: 32 bytes each, which a first-level cache holds.
const BLOCK: usize = 256;

/// The coefficients of t transformations, ready to be multiplied by the low 31 bits of x and by the others, and
/// in halves of 32 and 29 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Linear {
    /// a.
    a: [Arc<[u32]>; 2],
    /// 2^31 a mod p.
    raised: [Arc<[u32]>; 2],
    /// b + 1, see [`lower`].
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

    /// Replaces `signature` by the minima of at least one hash.
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

    /// Lowers one more than the minima, of the components from `start` on, to those of hashes; the components
    /// are the inner loop.
    ///
    /// Below, x = x1 2^31 + x0 and c = 2^31 a mod p, so that a x = a x0 + c x1 modulo p; and a = a1 2^32 + a0
    /// and c likewise. Because 2^61 = 1 modulo p,
    ///
    /// ```text
    /// a x0 + c x1 = high 2^32 + low,                           high = a1 x0 + c1 x1,  low = a0 x0 + c0 x1
    ///             = (high >> 29) + (high mod 2^29) 2^32 + low  modulo p
    /// ```
    ///
    /// Here x is a hash folded once, which leaves at most p + 7. So x0 is below 2^31 and x1 below 2^30, or x1 is
    /// 2^30 and x0 below 8; high is below 2^61, low below 3 * 2^62 - 2^33, and the sum s with b + 1 below 2^64.
    ///
    /// For s = q 2^61 + r, the number wanted is q + r, less p if that is p or more; q + 1 replaces q exactly
    /// then. As s is one too large, so is the result: 1 to p, which masking by p leaves alone. Values are below
    /// 2^61, so they can be compared as signed ones, which AVX2 does and unsigned ones it does not.
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

/// a and b of component j.
fn coefficients(j: u64) -> (u64, u64) {
    let drawn = |i: u64| mix(LINEAR.wrapping_add(i));
    (1 + drawn(2 * j) % (PRIME - 1), drawn(2 * j + 1) % PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The module's definition.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let p = u128::from(PRIME);
        let of = |x: u64, (a, b): (u64, u64)| (u128::from(a) * (u128::from(x) % p) + u128::from(b)) % p;
        let min = |j| hashes.iter().map(|&x| of(x, coefficients(j))).min().map(|min| min as u32);
        (0..minima as u64).filter_map(min).collect()
    }

    /// Hashes near all the places where something is carried or folded, and random ones.
    fn edges() -> Vec<u64> {
        let near = |x: u64| (0..9).flat_map(move |d| [x.wrapping_add(d), x.wrapping_sub(d)]);
        let multiples = (0..8).map(|k: u64| k.wrapping_mul(PRIME));
        multiples.chain([1 << 29, 1 << 32, 1 << 61]).flat_map(near).chain((0..500).map(mix)).collect()
    }

    #[test]
    fn signature_is_the_minimum_of_a_linear_transformation_for_each_component() {
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
    fn every_hash_alone_is_transformed_as_defined() {
        // A minimum hides what is too large; one hash alone hides nothing.
        let linear = Linear::new(40);
        let mut signature = Vec::new();
        for hash in edges() {
            linear.signature(&[hash], &mut signature);
            assert_eq!(signature, naive(40, &[hash]), "{hash:#x}");
        }
    }

    #[test]
    fn results_that_wrap_exactly_are_reduced() {
        // b and x chosen so that a x + b is 0, 1, p - 1 and their neighbours, which random ones never reach.
        let linear = Linear::new(84);
        for j in 0..84_u64 {
            let (a, b) = coefficients(j);
            let p = u128::from(PRIME);
            // Fermat: a^(p - 2) is the inverse of a.
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
