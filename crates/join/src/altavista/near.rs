//! Compares a sketch with earlier kept sketches that share elements with it.

use super::{Common, SampledBy};
use crate::cover::Measure;
use crate::sets::ShingleSets;
use twindex::error::Result;
use twindex::params::MODULAR_MAX;
use twindex_sketch::intersection_from;

impl SampledBy {
    /// Returns whether a sketch of `size` elements is complete. A modular sketch of the maximum size may be truncated.
    pub(super) fn is_whole(self, size: u64) -> bool {
        matches!(self, Self::Bottom(_)) || size < MODULAR_MAX as u64
    }

    /// Returns an upper bound for the result of comparing two sketches that share `both` of the `either` elements in their
    /// union.
    pub(super) fn at_most(self, both: u32, either: u32) -> Common {
        match self {
            Self::Modulus(modulus) => Common { both, either, share: 1.0 / f64::from(modulus) },
            // A comparison covers only the first t elements of the union, or the whole union if it is smaller.
            Self::Bottom(t) => Common { both, either: either.min(t.into()), share: 0.0 },
        }
    }

    /// Returns the minimum count of shared elements at which `is_wanted` may accept a pair with a sketch of `size` elements;
    /// `size` + 1 if it accepts no such pair. A pair may share up to `uncounted` elements more than its count.
    pub(super) fn least_shared(self, size: u32, uncounted: u32, is_wanted: &impl Fn(&Common) -> bool) -> u32 {
        // The best possible partner has no elements other than the shared ones.
        let may_be = |count: u32| is_wanted(&self.at_most(count.saturating_add(uncounted).min(size), size));
        super::first_of(1..size.saturating_add(1), may_be)
    }
}

/// Compares sketches: two sketches are near if `is_wanted` accepts their common elements and `score` returns a score.
///
/// `is_wanted` must be monotonic: if it accepts a result, it must accept any result with a larger `both` or a smaller
/// `either`. `score` is called only for accepted pairs, with the later sketch first.
#[derive(Debug)]
pub struct SketchMeasure<'s, W, S> {
    sketches: &'s ShingleSets,
    by: SampledBy,
    are_whole: bool,
    is_wanted: W,
    score: S,
}

impl<'s, W, S> SketchMeasure<'s, W, S>
where
    W: Fn(&Common) -> bool + Sync,
    S: Fn(u32, u32, &Common) -> Result<Option<u64>> + Sync,
{
    /// Creates a measure of `sketches`, whose elements were sampled as `by` specifies.
    pub fn new(sketches: &'s ShingleSets, by: SampledBy, is_wanted: W, score: S) -> Self {
        let are_whole = (0..sketches.len() as u32).all(|sketch| by.is_whole(sketches.size(sketch)));
        Self { sketches, by, are_whole, is_wanted, score }
    }
}

impl<W, S> Measure for SketchMeasure<'_, W, S>
where
    W: Fn(&Common) -> bool + Sync,
    S: Fn(u32, u32, &Common) -> Result<Option<u64>> + Sync,
{
    type Scratch = [Vec<u64>; 2];

    fn least_shared(&self, size: usize) -> usize {
        if self.are_whole { self.by.least_shared(size as u32, 0, &self.is_wanted) as usize } else { 1 }
    }

    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> Result<Option<u64>> {
        let [of_later, of_kept] = scratch;
        of_later.clear();
        of_kept.clear();
        let (later_set, kept_set) = (self.sketches.set(later, of_later)?, self.sketches.set(kept, of_kept)?);
        let common = Common::of(&self.by.sample(later_set), &self.by.sample(kept_set));
        let Some(common) = common.filter(&self.is_wanted) else { return Ok(None) };
        // Sketches without common elements in the compared part may still share elements outside of it.
        if common.both == 0 && intersection_from(later_set, kept_set, 1).is_none() {
            return Ok(None);
        }
        (self.score)(later, kept, &common)
    }
}
