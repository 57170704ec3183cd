//! The family *matrix*: a random matrix over GF(2), and a random vector.
//!
//! One of the families in Broder and Feige (*Min-wise versus linear independence*, 2000). The random linear transformations
//! of Broder, Burrows and Manasse are of this kind. A shingle hash x is a vector of 64 bits: x\[c\] is bit c, and bit 0 is
//! the lowest. Component j has a matrix of 32 rows and 64 columns, stored as 64 columns of 32 bits, and a vector of 32 bits:
//!
//! ```text
//! h(x, j)      = v[j] ^ (xor of column[j][c] over all c with x[c] = 1)
//! w[j][i]      = mix(MATRIX + 33 j + i)                                     i from 0 to 32
//! column[j][c] = the low (c even) or high (c odd) 32 bits of w[j][c / 2]    c from 0 to 63
//! v[j]         = the low 32 bits of w[j][32]
//! signature[j] = min { h(x, j) : x in the set }
//! ```
//!
//! `MATRIX` is `0xc0ac29b7c97c50dd`, and `mix` is the function of [`shingle`](crate::shingle). Sums of 64 bits wrap.
//!
//! **Which bits are kept.** A signature has all 32 bits of each minimum. The least of n values has about log2(n)
//! leading zeros; its low b bits are nearly random for sets of up to 2^(32 - b) elements. Two different elements tie
//! for the minimum with a probability of about n / 2^32. A random matrix transforms any two elements independently.
//! Three elements are not independent if one is the sum of the others.
//!
//! **Evaluation.** Each group of 4 bits of x has a table with the 16 possible sums of the columns of these bits. A
//! shingle takes 16 look-ups and additions for each minimum. 32 components share a block of tables of 32 KiB, which
//! fits in the first-level cache, and all shingles are looked up in one block before the next block is used. Tables for
//! groups of 8 bits would need half the look-ups, but would be in the second-level cache and take 8 times the memory:
//! 32 MiB for 4,096 minima instead of 4 MiB.

use std::fmt;
use std::sync::Arc;

use crate::hash::mix;

/// The seed of the matrices: the seventh 64-bit word of the fractional part of pi.
const MATRIX: u64 = 0xc0ac_29b7_c97c_50dd;

/// Number of components that are computed together.
const LANES: usize = 32;

/// Number of bits of a hash that index one table.
const BITS: usize = 4;

/// Number of tables in a block: one for each group of [`BITS`] bits of a hash.
const PLACES: usize = 64 / BITS;

/// One value for each component of a block. Aligned so that no load crosses a cache line, which would reduce the speed
/// by a third.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Row([u32; LANES]);

/// For each value of a group of [`BITS`] hash bits, the xor of the matrix columns whose bits are 1.
type Table = [Row; 1 << BITS];

/// The tables of a block of components, beginning with the table for the lowest [`BITS`] bits. The vector is already
/// added to the entries of the first table.
type Tables = [Table; PLACES];

/// The tables of all components.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Matrix {
    minima: usize,
    /// [`PLACES`] tables for each block of [`LANES`] components.
    blocks: Arc<[Table]>,
}

impl fmt::Debug for Matrix {
    /// Formats the number of minima. Omits the tables, which take megabytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix").field("minima", &self.minima).finish_non_exhaustive()
    }
}

impl Matrix {
    pub(crate) fn new(minima: usize) -> Self {
        let mut blocks = vec![[Row([0; LANES]); 1 << BITS]; minima.div_ceil(LANES) * PLACES];
        for (number, tables) in blocks.as_chunks_mut().0.iter_mut().enumerate() {
            fill(tables, number * LANES);
        }
        Self { minima, blocks: blocks.into() }
    }

    pub(crate) fn minima(&self) -> usize {
        self.minima
    }

    /// Replaces `signature` with the minima of `hashes`, which must not be empty.
    #[inline(always)]
    pub(crate) fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        signature.clear();
        signature.resize(self.minima, 0);
        for (tables, kept) in self.blocks.as_chunks().0.iter().zip(signature.chunks_mut(LANES)) {
            kept.copy_from_slice(&column_minima(tables, hashes)[..kept.len()]);
        }
    }
}

/// Computes the minima of the components of one block.
#[inline(always)]
fn column_minima(tables: &Tables, hashes: &[u64]) -> [u32; LANES] {
    let mut minima = [u32::MAX; LANES];
    for &hash in hashes {
        let mut sums = [0; LANES];
        for (place, table) in tables.iter().enumerate() {
            let Row(row) = &table[(hash >> (BITS * place)) as usize % (1 << BITS)];
            for lane in 0..LANES {
                sums[lane] ^= row[lane];
            }
        }
        for lane in 0..LANES {
            minima[lane] = minima[lane].min(sums[lane]);
        }
    }
    minima
}

/// Fills the tables of the [`LANES`] components from `start` on.
fn fill(tables: &mut Tables, start: usize) {
    for lane in 0..LANES {
        let (columns, vector) = matrix((start + lane) as u64);
        for (place, table) in tables.iter_mut().enumerate() {
            table[0].0[lane] = if place == 0 { vector } else { 0 };
            for value in 1..1_usize << BITS {
                // The entry for `value` without its highest bit was already computed.
                let bit = value.ilog2() as usize;
                table[value].0[lane] = table[value ^ 1 << bit].0[lane] ^ columns[BITS * place + bit];
            }
        }
    }
}

/// Returns the columns and the vector of component j.
fn matrix(j: u64) -> ([u32; 64], u32) {
    let word = |i: u64| mix(MATRIX.wrapping_add(33 * j + i));
    (std::array::from_fn(|c| (word(c as u64 / 2) >> (32 * (c % 2))) as u32), word(32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the minima by the definition at the top of the module.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let of = |x: u64, (columns, vector): &([u32; 64], u32)| {
            (0..64).filter(|c| x >> c & 1 == 1).fold(*vector, |sum, c| sum ^ columns[c])
        };
        let min = |j| {
            let matrix = matrix(j);
            hashes.iter().map(|&x| of(x, &matrix)).min()
        };
        (0..minima as u64).filter_map(min).collect()
    }

    #[test]
    fn each_component_is_the_minimum_of_an_affine_map() {
        let hashes: Vec<u64> =
            (0..64).map(|c| 1 << c).chain([0, u64::MAX]).chain((0..100).map(mix)).collect();
        let mut signature = vec![7; 3];
        for t in [1, 2, 31, 32, 33, 84, 200, 4096] {
            let family = Matrix::new(t);
            assert_eq!(family.minima(), t);
            for hashes in [&hashes[..], &hashes[70..90], &hashes[64..65], &hashes[65..66]] {
                family.signature(hashes, &mut signature);
                assert_eq!(signature, naive(t, hashes), "{t} minima of {} hashes", hashes.len());
            }
        }
        for hash in hashes {
            Matrix::new(33).signature(&[hash], &mut signature);
            assert_eq!(signature, naive(33, &[hash]), "{hash:#x}");
        }
    }

    #[test]
    fn debug_output_omits_the_tables() {
        assert_eq!(format!("{:?}", Matrix::new(4096)), "Matrix { minima: 4096, .. }");
    }
}
