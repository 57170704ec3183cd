//! Minima by the method of Broder, Burrows and Manasse (Broder, *Algorithms for duplicate documents*, 2005, 'One trick
//! based on left-to-right minima'). The value of a shingle under a permutation has a lead byte and a tail of 8 bytes. One
//! random linear transformation over GF(2) computes the lead bytes of 8 permutations together. A tail is computed only if
//! its lead byte is not above that of the current minimum.
//!
//! ```text
//! h(x, j)    = lead(x, j) 2^64 + tail(x, j)                          72 bits
//! lead(x, j) = byte j mod 8 of (sum over GF(2) of column[j / 8][c] over all c with bit c of x set)
//! tail(x, j) = mix(x ^ key[j])                                       a bijection, so h(., j) is an injection
//! ```
//!
//! All columns and keys are drawn from one generator. This is a reference for tests and benchmarks; no index uses it as
//! its hash family.

#![allow(dead_code, unreachable_pub, reason = "tests and benchmarks each use a part of it")]

use super::random::Random;

/// The lookup tables and keys of eight permutations.
struct EightPermutations {
    /// What each byte value at each byte position of a hash adds (xor) to the lead bytes of the 8 permutations.
    leads: Box<[[u64; 256]; 8]>,
    keys: [u64; 8],
}

/// A number of permutations, in groups of eight.
pub struct LeadBytes {
    permutations: usize,
    eights: Vec<EightPermutations>,
}

/// The current minimum under each permutation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minima {
    /// The lead bytes, 8 permutations per element.
    leads: Vec<u64>,
    tails: Vec<u64>,
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = LOW_BITS << 7;

impl LeadBytes {
    pub fn new(permutations: usize) -> Self {
        let mut random = Random(0x000b_20de_2000);
        let mut eight = || {
            let columns: [u64; 64] = std::array::from_fn(|_| random.next());
            let sum = |byte: usize, value: u64| {
                (0..8).filter(|bit| value >> bit & 1 == 1).fold(0, |sum, bit| sum ^ columns[8 * byte + bit])
            };
            EightPermutations {
                leads: Box::new(std::array::from_fn(|byte| {
                    std::array::from_fn(|value| sum(byte, value as u64))
                })),
                keys: std::array::from_fn(|_| random.next()),
            }
        };
        Self { permutations, eights: (0..permutations.div_ceil(8)).map(|_| eight()).collect() }
    }

    /// Sets `minima` to the minima of the empty set, which are above all values.
    pub fn start(&self, minima: &mut Minima) {
        minima.leads.clear();
        minima.leads.resize(self.eights.len(), u64::MAX);
        minima.tails.clear();
        minima.tails.resize(8 * self.eights.len(), u64::MAX);
    }

    /// Updates the minima with these elements. Calls `tail` for each tail that is computed, with its permutation and
    /// the position of its element.
    #[inline]
    pub fn extend(&self, minima: &mut Minima, elements: &[u64], mut tail: impl FnMut(usize, usize)) {
        let state = minima.leads.iter_mut().zip(minima.tails.chunks_exact_mut(8));
        for (number, (eight, (min, tails))) in self.eights.iter().zip(state).enumerate() {
            for (place, &x) in elements.iter().enumerate() {
                let leads = eight.leads(x);
                let mut candidates = not_above(leads, *min);
                while candidates != 0 {
                    let lane = candidates.trailing_zeros() as usize / 8;
                    candidates &= candidates - 1;
                    tail(8 * number + lane, place);
                    let new = mix(x ^ eight.keys[lane]);
                    let byte = 0xff << (8 * lane);
                    if leads & byte < *min & byte || new < tails[lane] {
                        *min = *min & !byte | leads & byte;
                        tails[lane] = new;
                    }
                }
            }
        }
    }

    /// Returns the minima of all permutations, in order.
    pub fn values(&self, minima: &Minima) -> Vec<u128> {
        let value = |j: usize| {
            u128::from(minima.leads[j / 8] >> (8 * (j % 8)) & 0xff) << 64 | u128::from(minima.tails[j])
        };
        (0..self.permutations).map(value).collect()
    }

    /// Computes h(x, j) by its definition.
    pub fn plain(&self, x: u64, j: usize) -> u128 {
        let eight = &self.eights[j / 8];
        // The tables are linear, so the entry of a single bit is a column.
        let column = |c: usize| eight.leads[c / 8][1 << (c % 8)];
        let sum = (0..64).filter(|c| x >> c & 1 == 1).fold(0, |sum, c| sum ^ column(c));
        u128::from(sum >> (8 * (j % 8)) & 0xff) << 64 | u128::from(mix(x ^ eight.keys[j % 8]))
    }
}

impl EightPermutations {
    #[inline]
    fn leads(&self, x: u64) -> u64 {
        x.to_le_bytes()
            .iter()
            .zip(self.leads.iter())
            .fold(0, |sum, (&byte, table)| sum ^ table[usize::from(byte)])
    }
}

/// Returns the high bit of each byte in which `a` is at most `b`, comparing unsigned bytes.
#[inline]
fn not_above(a: u64, b: u64) -> u64 {
    // Computes b - a on the low 7 bits of each byte. The bit set above them stops borrows between bytes. The top bits
    // then decide.
    let low = (b | HIGH_BITS).wrapping_sub(a & !HIGH_BITS);
    ((b & !a) | (!(a ^ b) & low)) & HIGH_BITS
}

/// The finalizer of splitmix64: a bijection.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
