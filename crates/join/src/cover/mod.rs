//! Which sets stay where near ones go: each is compared with those that stay, in the order of their priority.
//!
//! *A set goes if and only if a set that is kept, and that comes before it, is near it.* So no set goes that is not near
//! a kept one, and no two kept ones are near each other, whatever families and chains there are. (It is called leader
//! clustering; of the graph of what is near, the kept ones are the lexicographically first maximal independent set.)
//! It depends on the sets and their order alone.
//!
//! Sets are taken in blocks, in their order. Those of a block are first compared with what was kept before the block, by
//! all threads; what is left of them is then decided one after the other, against what the block itself keeps. What a set
//! is compared with comes from one of two sources:
//!
//! - `listed`: all pairs whose odd sketches differ little enough ([`bitmaps`](super::bitmaps)), where these are few;
//! - `found`: an index of the kept sets by those elements that other sets have, too, and that are among the rarest of
//!   the set (`rarity`). Where it outgrows the memory, all later sets are compared with what it has, and those that are
//!   left are gone through once more, with an empty one.
//!
//! Only kept sets are compared with, the nearest in priority first, and none any more once one is near. So the work is
//! linear, beside these comparisons, which are counted. Nothing is capped.
//!
//! [`cover_measured`] decides in the same way where elements only lead to what may be near, and a [`Measure`] says whether it
//! is.

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

/// The kept sets, and for each removed set the kept one that it is near.
#[derive(Debug)]
pub struct CoverResult {
    /// For each set the first kept set before it that it is near; itself for a kept set.
    pub by: Column<u32>,
    /// The number of elements that each set shares with that one.
    pub shared: Column<u32>,
    /// Comparisons of a set with a kept one.
    pub comparisons: u64,
    /// The comparisons for which elements were counted; sketches ruled the others out.
    pub counted: u64,
    /// How often sets were gone through: more than once where memory was short.
    pub passes: u32,
}

/// In which order sets are taken, and how much may be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority<'a> {
    /// The numbers of all sets, the first to be kept first; their own order if it is not given.
    pub order: Option<&'a [u32]>,
    /// The number of first sets that are always kept: a history that others are compared with.
    pub fixed: u32,
    /// Comparisons at most; any number if it is not given.
    pub max: Option<u64>,
    /// Kept sets are found by their rarest elements, however few there are.
    pub by_index: bool,
    /// Progress as the number of decided sets, and the flag that ends the work.
    pub watched: Option<&'a SharedProgress>,
}

impl Priority<'_> {
    /// The set with this place in the order.
    fn at(&self, rank: u32) -> u32 {
        self.order.map_or(rank, |order| order[rank as usize])
    }

    /// Refuses more comparisons than are allowed.
    fn check_work(&self, comparisons: u64) -> Result<()> {
        match self.max {
            Some(limit) if comparisons > limit => {
                Err(Error::Limit { what: "comparisons with kept sets", limit, found: comparisons })
            }
            _ => Ok(()),
        }
    }
}

/// Sets that are taken together, and elements of theirs. What is found does not depend on it, how much is compared does.
const BLOCK_SETS: usize = 2048;
/// See [`BLOCK_SETS`].
const BLOCK_ELEMENTS: u64 = 1 << 20;
/// Sets of a block that a thread takes at once, and elements.
const PIECE_SETS: usize = 64;
/// See [`PIECE_SETS`].
const PIECE_ELEMENTS: u64 = 1 << 15;
/// More partners of a set than this are not listed.
const PARTNERS: usize = 10_000;

/// Decides which sets are kept, and for which kept set each other one is removed. Sets without elements are kept: they
/// are near none.
///
/// Takes about `resources.memory` bytes beside the memory of `sets`, 8 to 16 bytes a set of its [budget](ShingleSets::within),
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
/// Time: linear in the elements, and in the comparisons. Sets that share their rarest elements without being near make
/// these quadratic.
///
/// # Errors
/// [`Error::Io`] from a scratch file; [`Error::Limit`] for more comparisons than are allowed; what
/// [`SharedProgress::check`] says.
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
        // The later one in front.
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

/// The place of each set in this order.
fn ranks(order: &[u32], budget: &MemoryBudget) -> Result<Column<u32>> {
    let mut ranks = Column::filled(budget, order.len(), 0)?;
    let places = &mut ranks[..];
    for (rank, &set) in (0..).zip(order) {
        places[set as usize] = rank;
    }
    Ok(ranks)
}

/// The state of the search for kept sets.
struct Covering<'a> {
    sets: &'a ShingleSets,
    near: Nearness,
    priority: Priority<'a>,
    covered: CoverResult,
}

/// The kept set that one set is near, and the work to find it.
#[derive(Clone, Copy, Debug, Default)]
struct LookupOutcome {
    /// The kept set, and the elements that both have.
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

    /// The set with this place in the order.
    fn at(&self, rank: u32) -> u32 {
        self.priority.at(rank)
    }

    /// Whether the set at this place stays whatever it is near.
    fn is_fixed(&self, rank: u32) -> bool {
        rank < self.priority.fixed
    }

    /// Says how many sets are decided on; ends the work if it is to stop.
    fn reach(&self, sets: usize) -> Result<()> {
        self.priority.watched.map_or(Ok(()), |watched| watched.reach(sets as u64))
    }

    /// Ends the work if it is to stop.
    fn check(&self) -> Result<()> {
        self.priority.watched.map_or(Ok(()), SharedProgress::check)
    }

    fn is_kept(&self, set: u32) -> bool {
        self.covered.by[set as usize] == set
    }

    /// Takes note of what was found; true if the set goes.
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

/// Counts what sets have in common: of one set after the other, each with several others.
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

    /// Reads these sets, which are compared next, together if their numbers are close to each other.
    fn ahead(&mut self, sets: impl ExactSizeIterator<Item = u32>) -> Result<()> {
        let count = sets.len() as u32;
        let (first, end) = sets.fold((u32::MAX, 0), |(first, end), set| (first.min(set), end.max(set + 1)));
        // Not for many sets between them, which nobody asks for.
        if end.saturating_sub(first) <= 2 * count { self.one.ahead(first..end) } else { Ok(()) }
    }

    /// The elements of a set that is to be compared.
    fn set(&mut self, set: u32) -> Result<&[u64]> {
        self.one.set(set)
    }

    /// How many elements a set shares with another one, if it is near it.
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
