//! Computes bounds of the result of comparing two sketches.

use super::{Common, SampledBy};
use twindex::params::MODULAR_MAX;

impl SampledBy {
    /// Returns whether a sketch of `size` elements is complete. A modular sketch of the maximum size may be truncated.
    pub(super) fn is_whole(self, size: u64) -> bool {
        matches!(self, Self::Bottom(_)) || size < MODULAR_MAX as u64
    }

    /// Returns an upper bound of the result of comparing two sketches that share `both` of the `either` elements of
    /// their union.
    pub(super) fn at_most(self, both: u32, either: u32) -> Common {
        match self {
            Self::Modulus(modulus) => Common { both, either, share: 1.0 / f64::from(modulus) },
            // A comparison covers only the first t elements of the union, or the whole union if it is smaller.
            Self::Bottom(t) => Common { both, either: either.min(t.into()), share: 0.0 },
        }
    }

    /// Returns the minimum count of shared elements at which `is_wanted` may accept a pair with a sketch of `size`
    /// elements; `size` + 1 if `is_wanted` accepts no such pair. A pair may share up to `uncounted` elements more than
    /// its count.
    pub(super) fn least_shared(self, size: u32, uncounted: u32, is_wanted: &impl Fn(&Common) -> bool) -> u32 {
        // In the best case, the other sketch has no elements other than the shared ones.
        let may_be = |count: u32| is_wanted(&self.at_most(count.saturating_add(uncounted).min(size), size));
        super::first_of(1..size.saturating_add(1), may_be)
    }
}
