//! Decides which of several near sets are kept: compares each set, in the order of priority, with the sets kept before it.
//!
//! *A set is removed if and only if it is near a kept set before it.* Each removed set is therefore near a kept set, and no
//! two kept sets are near each other, also in large families and in chains of near sets. (This is leader clustering; in the
//! graph of near pairs, the kept sets are the lexicographically first maximal independent set.) The result depends only on
//! the sets and their order.
//!
//! Sets are processed in blocks, in order. First, all threads compare the sets of a block with the sets kept before the
//! block. Then the remaining sets of the block are decided one by one, by comparing them with the sets kept within the
//! block. The pairs to compare come from one of two modules:
//!
//! - `listed`: all pairs whose odd sketches differ in few enough bits ([`bitmaps`](crate::pairs::bitmaps)), if there are few
//!   sets and few such pairs;
//! - `found`: an index of the kept sets, by the rarest of the elements that they may share with other sets (`rarity`).
//!   These elements of all sets are stored first (`undecided`), and elements that only one set has stored are dropped. If
//!   the index exceeds the memory, all later sets are compared with the indexed sets, and the sets that remain undecided
//!   are processed in another pass with an empty index.
//!
//! A set is compared only with kept sets, in the order of priority, until one of them is near. Apart from these
//! comparisons, which are counted, the work is linear. No element is capped.

mod cells;
mod covering;
mod found;
mod index;
mod listed;
mod pairs;
mod places;
mod rarity;
mod undecided;

use crate::hamming::JoinResources;
use crate::pairs::bitmaps::{BitmapLimits, bitmap_candidates};
use crate::sets::shingle_sets::ShingleSets;
use crate::work::runs::Sorter;
use crate::work::watched::SharedProgress;
use twindex::error::Result;
use twindex::sys::{Column, MemoryBudget};
use twindex_kernel::Level;
use twindex_sketch::Nearness;

pub use covering::Priority;
use covering::{Covering, NearSets};
pub use pairs::CoverPairs;

/// The result of [`cover_sets`]: the kept sets, and for each removed set a kept set that it is near.
#[derive(Debug)]
pub struct CoverResult {
    /// For each removed set, the first kept set before it that it is near; for each kept set, its own number.
    pub by: Column<u32>,
    /// For each removed set, the number of elements that it shares with the set in `by`; for each kept set, its size.
    pub shared: Column<u32>,
    /// Number of comparisons of a set with a kept set.
    pub comparisons: u64,
    /// Number of comparisons in which common elements were counted. In the others, sketches ruled out that the sets are
    /// near.
    pub counted: u64,
    /// Number of passes over the sets; more than one if the index did not fit in memory.
    pub passes: u32,
}

/// Number of elements of all sets per candidate pair. If there are more pairs, module `found` is used, which stops at the
/// first near set.
const ELEMENTS_PER_PAIR: u64 = 2;
/// Number of candidate pairs that is always allowed.
const PAIRS_LEAST: u64 = 1 << 16;

/// Returns the maximum number of rows of sketches compared, per element of all sets. At this level, more rows take longer
/// than module `found`. The kept sets do not depend on it.
fn max_rows(level: Level) -> u64 {
    match level {
        Level::Scalar => 5,
        Level::Avx2 => 14,
        Level::Avx512 => 32,
    }
}

/// Decides which sets are kept, and finds a near kept set for each removed set. Empty sets are near no set, so they are
/// kept.
///
/// Memory: about `resources.memory` bytes in addition to `sets`, 8 to 16 bytes per set from the
/// [budget](ShingleSets::within) of `sets`, and space for the largest sets.
///
/// ```
/// use twindex_join::{JoinResources, ShingleSets, cover_sets};
/// use twindex_sketch::Nearness;
///
/// # let dir = tempfile::tempdir().unwrap();
/// let mut sets = ShingleSets::new(dir.path(), 1 << 20);
/// for set in [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 6, 7]] {
///     sets.push(&set)?;
/// }
/// // The second set is near the first, so it is removed. The third is near only the second, so it is kept.
/// let near = Nearness::Resemblance(0.6);
/// let covered = cover_sets(&sets, near, Default::default(), JoinResources::in_dir(dir.path()))?;
/// assert_eq!(covered.by[..], [0, 0, 2]);
/// // In the reverse order, the second set is removed because it is near the third, which is kept.
/// let order = twindex_join::Priority { order: Some(&[2, 1, 0]), ..Default::default() };
/// let covered = cover_sets(&sets, near, order, JoinResources::in_dir(dir.path()))?;
/// assert_eq!(covered.by[..], [0, 2, 2]);
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// Time: linear in the number of elements and of comparisons. The number of comparisons is quadratic if many sets share
/// their rarest elements without being near.
///
/// # Errors
/// [`Error::Io`](twindex::Error::Io) from a scratch file; [`Error::Limit`](twindex::Error::Limit) for more
/// comparisons than allowed; the error of [`SharedProgress::check`].
pub fn cover_sets(
    sets: &ShingleSets,
    near: Nearness,
    priority: Priority<'_>,
    resources: JoinResources<'_>,
) -> Result<CoverResult> {
    let pairs = (sets.elements() / ELEMENTS_PER_PAIR).max(PAIRS_LEAST);
    let limits = BitmapLimits { rows: max_rows(Level::chosen()), pairs, partners: usize::MAX };
    cover_within(sets, near, priority, resources, limits)
}

/// Makes the decision of [`cover_sets`] with module `listed`, or with module `found` if `limits` would be exceeded.
fn cover_within(
    sets: &ShingleSets,
    near: Nearness,
    priority: Priority<'_>,
    resources: JoinResources<'_>,
    limits: BitmapLimits,
) -> Result<CoverResult> {
    if let Nearness::Resemblance(threshold) = near {
        let rank = priority.order.map(|order| ranks(order, sets.column_budget())).transpose()?;
        let rank_of = |set: u32| rank.as_ref().map_or(set, |rank| rank[set as usize]);
        // Sorts pairs by the rank of the later set, then by the rank of the earlier set.
        let mut listed: Sorter<u64> = Sorter::new(resources.dir, resources.memory / 2);
        let take = |batch: &[(u32, u32)]| {
            priority.watched.map_or(Ok(()), SharedProgress::check)?;
            batch.iter().try_for_each(|&(a, b)| {
                let (a, b) = (rank_of(a), rank_of(b));
                listed.push(u64::from(a.max(b)) << 32 | u64::from(a.min(b)))
            })
        };
        let (memory, threads) = (resources.memory / 2, resources.threads);
        if bitmap_candidates(sets, threshold, limits, memory, threads, take)?.is_some() {
            let mut covering = Covering::new(sets, priority)?;
            listed::cover(&mut covering, near, &listed.finish()?, resources.threads)?;
            return Ok(covering.into());
        }
    }
    cover_found(sets, near, priority, resources)
}

/// Makes the decision of [`cover_sets`] with module `found`, which supports any number of pairs.
fn cover_found(
    sets: &ShingleSets,
    near: Nearness,
    priority: Priority<'_>,
    resources: JoinResources<'_>,
) -> Result<CoverResult> {
    let mut covering = Covering::new(sets, priority)?;
    found::cover(&mut covering, &NearSets { sets, near }, resources)?;
    Ok(covering.into())
}

/// Returns the rank of each set in `order`, by set number.
fn ranks(order: &[u32], budget: &MemoryBudget) -> Result<Column<u32>> {
    let mut ranks = Column::filled(budget, order.len(), 0)?;
    let places = &mut ranks[..];
    for (rank, &set) in (0..).zip(order) {
        places[set as usize] = rank;
    }
    Ok(ranks)
}

impl From<Covering<'_>> for CoverResult {
    fn from(covering: Covering<'_>) -> Self {
        let Covering { by, shared, comparisons, counted, passes, .. } = covering;
        Self { by, shared, comparisons, counted, passes }
    }
}

#[cfg(test)]
mod costs;
#[cfg(test)]
mod tests;
