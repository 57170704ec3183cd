//! Decides which of several near sets are kept: each set is compared with the kept ones, in the order of priority.
//!
//! *A set is removed if and only if it is near a kept set before it.* So each removed set is near a kept one, and no two
//! kept sets are near each other, whatever families and chains there are. (This is leader clustering; in the graph of near
//! pairs, the kept sets are the lexicographically first maximal independent set.) The result depends only on the sets and
//! their order.
//!
//! Sets are processed in blocks, in order. All threads first compare the sets of a block with the sets kept before it; the
//! remaining sets are then decided one by one, against the sets kept within the block. The sets to compare with come from
//! one of two sources:
//!
//! - `listed`: all pairs whose odd sketches differ little enough ([`bitmaps`](super::bitmaps)), if there are few;
//! - `found`: an index of the kept sets by those of their rarest elements that other sets have, too (`rarity`). If it
//!   outgrows the memory, all later sets are compared with the sets in it, and the undecided ones are processed in another
//!   pass with an empty index.
//!
//! A set is compared only with kept sets, in the order of priority, until one is near. So the work is linear, apart from
//! these comparisons, which are counted. Nothing is capped.
//!
//! [`cover_measured`] decides in the same way if elements only find candidates, and a [`Measure`] decides whether they are
//! near.

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

/// The kept sets, and for each removed set a kept one that it is near.
#[derive(Debug)]
pub struct CoverResult {
    /// For each removed set, the first kept set before it that it is near; for a kept set, itself.
    pub by: Column<u32>,
    /// The number of elements that each set shares with the set in `by`.
    pub shared: Column<u32>,
    /// Number of comparisons of a set with a kept one.
    pub comparisons: u64,
    /// Number of comparisons that counted elements; the others were ruled out by sketches.
    pub counted: u64,
    /// Number of passes over the sets; more than one if memory was short.
    pub passes: u32,
}

/// The order in which sets are processed, and limits of the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority<'a> {
    /// The numbers of all sets, in descending priority; `None` for ascending numbers.
    pub order: Option<&'a [u32]>,
    /// Number of sets at the start of the order that are always kept: a history that others are compared with.
    pub fixed: u32,
    /// Maximum number of comparisons; `None` for no limit.
    pub max: Option<u64>,
    /// Whether to use the index (`found`) even if there are few pairs.
    pub by_index: bool,
    /// Reports the number of decided sets, and can stop the work.
    pub watched: Option<&'a SharedProgress>,
}

impl Priority<'_> {
    /// Returns the set with this rank in the order.
    fn at(&self, rank: u32) -> u32 {
        self.order.map_or(rank, |order| order[rank as usize])
    }

    /// Returns an error for more comparisons than allowed.
    fn check_work(&self, comparisons: u64) -> Result<()> {
        match self.max {
            Some(limit) if comparisons > limit => {
                Err(Error::Limit { what: "comparisons with kept sets", limit, found: comparisons })
            }
            _ => Ok(()),
        }
    }
}

/// Maximum number of sets, and of their elements, in a block. It does not change the result, only the number of comparisons.
const BLOCK_SETS: usize = 2048;
/// See [`BLOCK_SETS`].
const BLOCK_ELEMENTS: u64 = 1 << 20;
/// Maximum number of sets of a block, and of elements, that a thread takes at once.
const PIECE_SETS: usize = 64;
/// See [`PIECE_SETS`].
const PIECE_ELEMENTS: u64 = 1 << 15;
/// Maximum number of partners of a set for `listed`.
const PARTNERS: usize = 10_000;

/// Decides which sets are kept, and for which kept set each other one is removed. Sets without elements are near none, so
/// they are kept.
///
/// Takes about `resources.memory` bytes in addition to `sets`, 8 to 16 bytes per set of its [budget](ShingleSets::within),
/// and the memory of the largest sets.
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
/// // The second is near the first, and goes. The third is near the second alone, which is not kept.
/// let near = Nearness::Resemblance(0.6);
/// let covered = cover_sets(&sets, near, Default::default(), JoinResources::in_dir(dir.path()))?;
/// assert_eq!(covered.by[..], [0, 0, 2]);
/// // In the other order the second is removed for the third.
/// let order = twindex_join::Priority { order: Some(&[2, 1, 0]), ..Default::default() };
/// let covered = cover_sets(&sets, near, order, JoinResources::in_dir(dir.path()))?;
/// assert_eq!(covered.by[..], [0, 2, 2]);
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// Time: linear in the elements and in the comparisons. Sets that share their rarest elements without being near make
/// comparisons quadratic.
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
        // The rank of the later set comes first.
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

/// Returns the rank of each set in this order.
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

/// The kept set that a set is near, and the work to find it.
#[derive(Clone, Copy, Debug, Default)]
struct LookupOutcome {
    /// The kept set, and the number of common elements.
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

    /// Returns the set with this rank in the order.
    fn at(&self, rank: u32) -> u32 {
        self.priority.at(rank)
    }

    /// Whether the set with this rank is always kept.
    fn is_fixed(&self, rank: u32) -> bool {
        rank < self.priority.fixed
    }

    /// Reports the number of decided sets; returns an error if the work was stopped.
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

    /// Records the result for a set; returns true if the set is removed.
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

/// Counts common elements: of one set after the other, each with several others.
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

    /// Prefetches these sets, which are compared next, with one read if their numbers are close to each other.
    fn ahead(&mut self, sets: impl ExactSizeIterator<Item = u32>) -> Result<()> {
        let count = sets.len() as u32;
        let (first, end) = sets.fold((u32::MAX, 0), |(first, end), set| (first.min(set), end.max(set + 1)));
        // A range with many other sets in between is not read.
        if end.saturating_sub(first) <= 2 * count { self.one.ahead(first..end) } else { Ok(()) }
    }

    /// Returns the elements of a set that is compared.
    fn set(&mut self, set: u32) -> Result<&[u64]> {
        self.one.set(set)
    }

    /// Returns the number of elements that a set shares with another one, or `None` if it is not near.
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
