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
//! - `listed`: all pairs whose odd sketches differ in few enough bits ([`bitmaps`](super::bitmaps)), if there are few such
//!   pairs;
//! - `found`: an index of the kept sets, by the rarest of the elements that they may share with other sets (`rarity`). If
//!   the index exceeds the memory, all later sets are compared with the indexed sets, and the sets that remain undecided
//!   are processed in another pass with an empty index.
//!
//! A set is compared only with kept sets, in the order of priority, until one of them is near. Apart from these
//! comparisons, which are counted, the work is linear. No element is capped.
//!
//! [`cover_measured`] makes the same decision with a [`Measure`] that decides whether two items are near; elements only
//! find candidates.

mod found;
mod index;
mod listed;
mod measured;
mod pairs;
mod places;
mod rarity;

use super::bitmaps::bitmap_candidates;
use super::hamming::JoinResources;
use super::runs::Sorter;
use super::sets::{SetReader, ShingleSets};
use super::watched::SharedProgress;
use twindex::error::{Error, Result};
use twindex::sys::{Column, MemoryBudget};
use twindex_sketch::{Nearness, intersection_from};

pub use measured::{Measure, MeasuredCover, cover_measured};
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

/// The order in which sets are processed, and limits of the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority<'a> {
    /// The numbers of all sets, in descending priority. `None` means that lower numbers have higher priority.
    pub order: Option<&'a [u32]>,
    /// Number of sets at the start of the order that are always kept, for example sets of earlier runs.
    pub fixed: u32,
    /// Maximum number of comparisons; `None` means no limit.
    pub max: Option<u64>,
    /// Whether to use the index (module `found`) even if there are few pairs.
    pub by_index: bool,
    /// Receives the number of decided sets, and can stop the work.
    pub watched: Option<&'a SharedProgress>,
}

impl Priority<'_> {
    /// Returns the number of the set with this rank in the order.
    fn at(&self, rank: u32) -> u32 {
        self.order.map_or(rank, |order| order[rank as usize])
    }

    /// Returns an error if there were more comparisons than allowed.
    fn check_work(&self, comparisons: u64) -> Result<()> {
        match self.max {
            Some(limit) if comparisons > limit => {
                Err(Error::Limit { what: "comparisons with kept sets", limit, found: comparisons })
            }
            _ => Ok(()),
        }
    }
}

/// Maximum number of sets in a block. The block size changes the number of comparisons, but not the result.
const BLOCK_SETS: usize = 2048;
/// Maximum number of elements of the sets in a block.
const BLOCK_ELEMENTS: u64 = 1 << 20;
/// Maximum number of sets in a piece of a block, which a thread processes at once.
const PIECE_SETS: usize = 64;
/// Maximum number of elements of the sets in a piece.
const PIECE_ELEMENTS: u64 = 1 << 15;
/// Maximum number of candidate partners of a set. If a set has more, module `found` is used.
const PARTNERS: usize = 10_000;

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
/// [`Error::Io`] from a scratch file; [`Error::Limit`] for more comparisons than allowed; the error of
/// [`SharedProgress::check`].
pub fn cover_sets(
    sets: &ShingleSets,
    near: Nearness,
    priority: Priority<'_>,
    resources: JoinResources<'_>,
) -> Result<CoverResult> {
    let mut covering = Covering::new(sets, near, priority)?;
    if let Some(watched) = priority.watched {
        watched.begin("comparing", sets.len() as u64);
    }
    if let Nearness::Resemblance(threshold) = near
        && !priority.by_index
    {
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
        if bitmap_candidates(sets, threshold, PARTNERS, resources.memory / 2, resources.threads, take)?
            .is_some()
        {
            listed::cover(&mut covering, &listed.finish()?, resources.threads)?;
            return Ok(covering.covered);
        }
    }
    found::cover(&mut covering, resources)?;
    Ok(covering.covered)
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

/// The state of the decision on all sets.
struct Covering<'a> {
    sets: &'a ShingleSets,
    near: Nearness,
    priority: Priority<'a>,
    covered: CoverResult,
}

/// The first kept set that a set is near, and the number of comparisons made to find it.
#[derive(Clone, Copy, Debug, Default)]
struct LookupOutcome {
    /// The number of the kept set, and the number of common elements; `None` if no kept set is near.
    by: Option<(u32, u32)>,
    comparisons: u64,
    counted: u64,
}

impl<'a> Covering<'a> {
    fn new(sets: &'a ShingleSets, near: Nearness, priority: Priority<'a>) -> Result<Self> {
        let numbers = 0..sets.len() as u32;
        let shared = Column::of(sets.column_budget(), numbers.clone().map(|set| sets.size(set) as u32))?;
        let by = Column::of(sets.column_budget(), numbers)?;
        let covered = CoverResult { by, shared, comparisons: 0, counted: 0, passes: 1 };
        Ok(Self { sets, near, priority, covered })
    }

    /// Returns the number of the set with this rank in the order.
    fn at(&self, rank: u32) -> u32 {
        self.priority.at(rank)
    }

    /// Returns whether the set with this rank is always kept.
    fn is_fixed(&self, rank: u32) -> bool {
        rank < self.priority.fixed
    }

    /// Reports the number of decided sets. Returns an error if the work was stopped.
    fn reach(&self, sets: usize) -> Result<()> {
        self.priority.watched.map_or(Ok(()), |watched| watched.reach(sets as u64))
    }

    /// Returns an error if the work was stopped.
    fn check(&self) -> Result<()> {
        self.priority.watched.map_or(Ok(()), SharedProgress::check)
    }

    fn is_kept(&self, set: u32) -> bool {
        self.covered.by[set as usize] == set
    }

    /// Records the result for a set. Returns whether the set is removed.
    fn take(&mut self, set: u32, looked: LookupOutcome) -> Result<bool> {
        self.covered.comparisons += looked.comparisons;
        self.covered.counted += looked.counted;
        self.priority.check_work(self.covered.comparisons)?;
        if let Some((by, shared)) = looked.by {
            self.covered.by[set as usize] = by;
            self.covered.shared[set as usize] = shared;
        }
        Ok(looked.by.is_some())
    }
}

/// Counts the common elements of pairs of sets. Consecutive pairs usually have the same first set, which is read once.
struct SetComparer<'a> {
    sets: &'a ShingleSets,
    near: Nearness,
    one: SetReader<'a>,
    other: SetReader<'a>,
    read: [Vec<u64>; 2],
}

impl<'a> SetComparer<'a> {
    fn new(sets: &'a ShingleSets, near: Nearness) -> Self {
        let (one, other) = (SetReader::new(sets), SetReader::new(sets));
        Self { sets, near, one, other, read: [Vec::new(), Vec::new()] }
    }

    /// Prefetches the sets that are compared next, in one read, if their numbers are close to each other.
    fn ahead(&mut self, sets: impl ExactSizeIterator<Item = u32>) -> Result<()> {
        let count = sets.len() as u32;
        let (first, end) = sets.fold((u32::MAX, 0), |(first, end), set| (first.min(set), end.max(set + 1)));
        // Skips the read if most sets in the range are not needed.
        if end.saturating_sub(first) <= 2 * count { self.one.ahead(first..end) } else { Ok(()) }
    }

    /// Returns the elements of a set. Keeps them for later comparisons with this set as the first one.
    fn set(&mut self, set: u32) -> Result<&[u64]> {
        self.one.set(set)
    }

    /// Returns the number of elements that two sets share, or `None` if they are not near.
    fn shared(&mut self, set: u32, other: u32) -> Result<Option<u32>> {
        let sizes = (self.sets.size(set) as usize, self.sets.size(other) as usize);
        let Some(min) = self.near.least_shared(sizes.0, sizes.1) else { return Ok(None) };
        let shared = if self.sets.are_of_one_family(set, other) {
            self.sets.shared((set, other), min, &mut self.read)?
        } else {
            intersection_from(self.one.set(set)?, self.other.set(other)?, min)
        };
        Ok(shared.filter(|&shared| self.near.is_met(shared, sizes.0, sizes.1)).map(|shared| shared as u32))
    }
}

#[cfg(test)]
mod tests;
