//! Makes the same decision as [`cover_sets`](super::cover_sets) for items of any kind. Shared elements find candidates, and
//! a measure decides whether two items are near.
//!
//! For example, the elements are features, and the measure compares the shingles of texts. Only kept items are indexed and
//! compared with, and no posting list is capped. A family of any size therefore takes time linear in its kept members.

use std::ops::Range;

use super::found::{self, CoverRule};
use super::{Covering, Priority};
use crate::hamming::JoinResources;
use crate::sets::ShingleSets;
use twindex::error::Result;
use twindex::sys::Column;

/// Decides whether two items that share elements are near.
pub trait Measure: Sync {
    /// Working memory of a thread.
    type Scratch: Default + Send;

    /// Returns the minimum number of elements, at least 1, that an item with `size` elements shares with every item that it
    /// is near; more than `size` if it is near no item.
    fn least_shared(&self, size: usize) -> usize;

    /// Returns a score of the similarity of an item and an earlier kept item, or `None` if they are not near.
    ///
    /// # Errors
    /// Any error; it ends the work of [`cover_measured`].
    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> Result<Option<u64>>;
}

/// The result of [`cover_measured`]: the kept items, and for each removed item a kept item that it is near.
#[derive(Debug)]
pub struct MeasuredCover {
    /// For each removed item, the first kept item before it that it is near; for each kept item, its own number.
    pub by: Column<u32>,
    /// For each removed item, its score with the item in `by`; 0 for kept items.
    pub scores: Column<u64>,
    /// Number of comparisons of an item with a kept item.
    pub comparisons: u64,
    /// Number of passes over the items; more than one if the index did not fit in memory.
    pub passes: u32,
}

/// Decides which items are kept, in the order of `priority`, as [`cover_sets`](super::cover_sets) does for sets. `elements`
/// has one set for each item.
///
/// Memory: about `resources.memory` bytes in addition to `elements`, and 12 to 20 bytes per item, in memory or in scratch
/// files.
///
/// ```
/// use twindex_join::{JoinResources, Measure, ShingleSets, cover_measured};
///
/// /// Two numbers are near if they differ by at most 2. Numbers of the same or of adjacent decades share an element.
/// struct Difference(Vec<u32>);
///
/// impl Measure for Difference {
///     type Scratch = ();
///
///     fn least_shared(&self, _: usize) -> usize {
///         1
///     }
///
///     fn score(&self, (): &mut (), later: u32, kept: u32) -> twindex::Result<Option<u64>> {
///         let difference = self.0[later as usize].abs_diff(self.0[kept as usize]);
///         Ok((difference <= 2).then_some(difference.into()))
///     }
/// }
///
/// # let dir = tempfile::tempdir().unwrap();
/// let numbers = Difference(vec![15, 17, 19, 40]);
/// let mut decades = ShingleSets::new(dir.path(), 1 << 20);
/// for number in &numbers.0 {
///     let decade = u64::from(number / 10);
///     decades.push(&[decade, decade + 1])?;
/// }
/// let found = cover_measured(&decades, &numbers, Default::default(), JoinResources::in_dir(dir.path()))?;
/// // 17 is near 15, so it is removed. 19 is near only 17, so it is kept.
/// assert_eq!((&found.by[..], &found.scores[..]), (&[0, 0, 2, 3][..], &[0, 2, 0, 0][..]));
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// Time: linear in the number of elements and of comparisons. The number of comparisons is quadratic if many items share
/// elements without being near.
///
/// # Errors
/// [`Error::Io`](twindex::Error::Io) from a scratch file; [`Error::Limit`](twindex::Error::Limit) for more comparisons than
/// allowed; the errors of [`SharedProgress::check`](crate::SharedProgress::check) and of the measure.
pub fn cover_measured<M: Measure>(
    elements: &ShingleSets,
    measure: &M,
    priority: Priority<'_>,
    resources: JoinResources<'_>,
) -> Result<MeasuredCover> {
    let mut covering = Covering::new(elements, priority, |_| 0)?;
    found::cover(&mut covering, &MeasureRule(measure), resources)?;
    let Covering { by, scores, comparisons, passes, .. } = covering;
    Ok(MeasuredCover { by, scores, comparisons, passes })
}

/// The rule that a measure decides.
struct MeasureRule<'m, M>(&'m M);

impl<M: Measure> CoverRule for MeasureRule<'_, M> {
    type Score = u64;
    type Worker = M::Scratch;
    const IS_SKETCHED: bool = false;

    fn worker(&self) -> M::Scratch {
        M::Scratch::default()
    }

    fn prefix(&self, size: usize) -> usize {
        (size + 1).saturating_sub(self.0.least_shared(size).max(1))
    }

    fn indexes_all(&self) -> bool {
        false
    }

    fn max_difference(&self, _: usize, _: usize) -> Option<u64> {
        Some(u64::MAX)
    }

    fn announce(&self, _: &mut M::Scratch, _: Range<u32>) {}

    fn score(&self, scratch: &mut M::Scratch, later: u32, kept: u32) -> Result<Option<u64>> {
        self.0.score(scratch, later, kept)
    }
}
