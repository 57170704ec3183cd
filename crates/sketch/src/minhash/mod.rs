//! Computes a signature of t minima from the shingles of a document. The fraction of equal minima in two signatures
//! estimates the resemblance of the documents.
//!
//! The method is that of Broder, *On the resemblance and containment of documents*, 1997, and Broder, Charikar, Frieze
//! and Mitzenmacher, *Min-wise independent permutations*, 1998. Under a random order, the least elements of two sets
//! are the same with a probability equal to the resemblance of the sets. Each of the t minima uses its own order.
//!
//! A [`Family`] selects the orders. Its definition fixes every bit of the minima. A signature has 1 to 4,096 minima.
//! `tests/it/sketch_accuracy.rs` compares the families with theory, for sets of 5 to 1,000 shingles: they have no bias, and
//! their variance is at most that of independent minima, J (1 - J) / t.
//!
//! | family | variance over J (1 - J) / t | cost of a shingle |
//! |---|---|---|
//! | [`OnePermutationFilled`](Family::OnePermutationFilled) | 0.58 to 0.99 | 1 step; t steps in short documents |
//! | [`Linear`](Family::Linear) | 1 | t steps of 4 multiplications |
//! | [`MultiplyShift`](Family::MultiplyShift) | 1 | t steps of 3 multiplications |
//! | [`Matrix`](Family::Matrix) | 1 | t steps of 16 look-ups |
//! | [`Darts`](Family::Darts) | 1 | 1 to 2 steps, and t ln t a document; [`darts`](crate::darts) |
//!
//! The first family is the default, because it is the fastest; it is in `one_permutation.rs`. Use another family if the
//! results must be covered by the analysis in the literature, or if features must match with exactly the probability
//! J^s. With one permutation, features match slightly less often: for s = 14 and J = 0.8, with 0.9 to 0.98 times that
//! probability. Three of the other families are in `classic/`.

mod one_permutation;
mod signature;

use crate::classic::linear::Linear;
use crate::classic::matrix::Matrix;
use crate::classic::multiply_shift::MultiplyShift;
use crate::darts::{WEIGHT_ONE, WeightedMinHasher};
use crate::params::Family;
use twindex_kernel::Level;

use one_permutation::OnePermutation;
pub use signature::matches_by;
pub use signature::{matches, pack};

/// Computes signatures of a fixed number of minima.
///
/// ```
/// use twindex_sketch::MinHasher;
///
/// let hasher = MinHasher::new(84);
/// let mut signature = Vec::new();
/// hasher.signature(&[0x0123_4567_89ab_cdef], &mut signature);
/// assert_eq!(signature.len(), 84);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinHasher {
    level: Level,
    orders: Orders,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Orders {
    OnePermutation(OnePermutation),
    Linear(Linear),
    MultiplyShift(MultiplyShift),
    Matrix(Matrix),
    Darts(WeightedMinHasher),
}

impl MinHasher {
    /// Creates a hasher for signatures of `minima` minima with the family [`Family::OnePermutationFilled`]. Signatures of 1
    /// to [`MINIMA_MAX`](crate::params::MINIMA_MAX) minima can be stored.
    #[must_use]
    pub fn new(minima: usize) -> Self {
        Self::of(Family::OnePermutationFilled, minima)
    }

    /// Creates a hasher for signatures of `minima` minima with the given family. Time and memory are proportional to
    /// `minima`: 4 bytes of memory for each minimum with the default family, 24 with `linear`, 16 with `multiply-shift`, and
    /// 1 KiB with `matrix`.
    ///
    /// ```
    /// use twindex_sketch::params::Family;
    /// use twindex_sketch::{MinHasher, Resemblance};
    ///
    /// let hasher = MinHasher::of(Family::Linear, 200);
    /// let mixed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// let (a, b): (Vec<u64>, Vec<u64>) = ((0..90).map(mixed).collect(), (10..100).map(mixed).collect());
    /// let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    /// hasher.signature(&a, &mut of_a);
    /// hasher.signature(&b, &mut of_b);
    /// let resemblance = Resemblance::of_signatures(&of_a, &of_b);
    /// assert!((resemblance.value() - 0.8).abs() < 4.0 * resemblance.standard_error());
    /// ```
    #[must_use]
    pub fn of(family: Family, minima: usize) -> Self {
        let orders = match family {
            Family::OnePermutationFilled => Orders::OnePermutation(OnePermutation::new(minima)),
            Family::Linear => Orders::Linear(Linear::new(minima)),
            Family::MultiplyShift => Orders::MultiplyShift(MultiplyShift::new(minima)),
            Family::Matrix => Orders::Matrix(Matrix::new(minima)),
            Family::Darts => Orders::Darts(WeightedMinHasher::of_minima(minima)),
        };
        Self { level: Level::chosen(), orders }
    }

    /// Returns the same hasher restricted to the instructions of `level`, for tests and measurements. The minima stay
    /// the same.
    #[must_use]
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Returns the number of minima in a signature.
    #[must_use]
    pub fn minima(&self) -> usize {
        match &self.orders {
            Orders::OnePermutation(orders) => orders.minima(),
            Orders::Linear(orders) => orders.minima(),
            Orders::MultiplyShift(orders) => orders.minima(),
            Orders::Matrix(orders) => orders.minima(),
            Orders::Darts(orders) => orders.minima(),
        }
    }

    /// Replaces `signature` with the minima of a set of well-mixed 64-bit hashes, such as shingle hashes. Without hashes,
    /// the signature is empty. The order and repetitions of hashes do not matter. Allocates nothing if `signature` has
    /// enough capacity.
    pub fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        if hashes.is_empty() {
            signature.clear();
            return;
        }
        let level = match &self.orders {
            // For 512-bit vectors, the compiler generates gather instructions. They are seven times slower than the
            // loads that it generates for 256-bit vectors.
            Orders::Matrix(_) => self.level.min(Level::Avx2),
            _ => self.level,
        };
        level.run(
            #[inline(always)]
            || match &self.orders {
                Orders::OnePermutation(orders) => orders.signature(hashes, signature),
                Orders::Linear(orders) => orders.signature(hashes, signature),
                Orders::MultiplyShift(orders) => orders.signature(hashes, signature),
                Orders::Matrix(orders) => orders.signature(hashes, signature),
                Orders::Darts(orders) => {
                    orders.minima_of(|| hashes.iter().map(|&hash| (hash, WEIGHT_ONE)), signature);
                }
            },
        );
    }

    /// Returns the hasher of weighted sets if the family is [`darts`](crate::darts), otherwise `None`.
    #[must_use]
    pub fn weighted(&self) -> Option<&WeightedMinHasher> {
        match &self.orders {
            Orders::Darts(orders) => Some(orders),
            _ => None,
        }
    }
}
