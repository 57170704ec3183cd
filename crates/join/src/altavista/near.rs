//! Which sketches are near earlier ones that are kept: found by the elements that they share, and compared as samples.

use super::{Common, SampledBy};
use crate::cover::Measure;
use crate::sets::ShingleSets;
use twindex::error::Result;
use twindex::params::MODULAR_MAX;
use twindex_sketch::intersection_from;

impl SampledBy {
    /// Whether a sketch of `size` elements has all that it could have: of many multiples only the first are kept.
    pub(super) fn is_whole(self, size: u64) -> bool {
        matches!(self, Self::Bottom(_)) || size < MODULAR_MAX as u64
    }

    /// The most that two sketches can have in common that share `both` elements, of `either`.
    pub(super) fn at_most(self, both: u32, either: u32) -> Common {
        match self {
            Self::Modulus(modulus) => Common { both, either, share: 1.0 / f64::from(modulus) },
            // Counts in the first t of the union, or in all of it, if that is less.
            Self::Bottom(t) => Common { both, either: either.min(t.into()), share: 0.0 },
        }
    }

    /// The fewest elements of a sketch of `size` elements that another one has, too, if what they have in common is wanted;
    /// `size` + 1 if nothing is. `uncounted` more may be shared.
    pub(super) fn least_shared(self, size: u32, uncounted: u32, is_wanted: &impl Fn(&Common) -> bool) -> u32 {
        // With a partner that has nothing else.
        let may_be = |count: u32| is_wanted(&self.at_most(count.saturating_add(uncounted).min(size), size));
        super::first_of(1..size.saturating_add(1), may_be)
    }
}

/// Sketches that are near if what they have in common is wanted, and gets a score.
///
/// `is_wanted` has to hold with more elements of both as well, and with fewer of either. `score` is asked for pairs for which
/// it holds, the later one first.
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
    /// Measures these sketches, whose elements were chosen so.
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
        // Their common elements may be outside of the part that both samples cover.
        if common.both == 0 && intersection_from(later_set, kept_set, 1).is_none() {
            return Ok(None);
        }
        (self.score)(later, kept, &common)
    }
}
