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
//! - `listed`: all pairs whose odd sketches differ in few enough bits ([`bitmaps`](crate::pairs::bitmaps)), if there are few such
//!   pairs;
//! - `found`: an index of the kept sets, by the rarest of the elements that they may share with other sets (`rarity`).
//!   These elements of all sets are stored first (`undecided`), and elements that only one set has stored are dropped. If
//!   the index exceeds the memory, all later sets are compared with the indexed sets, and the sets that remain undecided
//!   are processed in another pass with an empty index.
//!
//! A set is compared only with kept sets, in the order of priority, until one of them is near. Apart from these
//! comparisons, which are counted, the work is linear. No element is capped.

mod cells;
mod found;
mod index;
mod listed;
mod pairs;
mod places;
mod rarity;
mod undecided;

use crate::hamming::JoinResources;
use crate::pairs::bitmaps::bitmap_candidates;
use crate::sets::shingle_sets::{SetReader, ShingleSets};
use crate::work::runs::Sorter;
use crate::work::watched::SharedProgress;
use twindex::error::{Error, Result};
use twindex::sys::{Column, MemoryBudget};
use twindex_sketch::{Nearness, intersection_from};

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
        if bitmap_candidates(sets, threshold, PARTNERS, resources.memory / 2, resources.threads, take)?
            .is_some()
        {
            let mut covering = Covering::new(sets, priority)?;
            listed::cover(&mut covering, near, &listed.finish()?, resources.threads)?;
            return Ok(covering.into());
        }
    }
    cover_found(sets, near, priority, resources)
}

/// Decides as [`cover_sets`] does, with module `found` for any number of pairs.
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

/// The state of the decision on all sets.
struct Covering<'a> {
    sets: &'a ShingleSets,
    priority: Priority<'a>,
    /// For each removed set, the kept set that it is near; for all others, their own number.
    by: Column<u32>,
    /// For each removed set, the number of elements that it shares with the set in `by`; for all others, their size.
    shared: Column<u32>,
    comparisons: u64,
    counted: u64,
    passes: u32,
}

impl From<Covering<'_>> for CoverResult {
    fn from(covering: Covering<'_>) -> Self {
        let Covering { by, shared, comparisons, counted, passes, .. } = covering;
        Self { by, shared, comparisons, counted, passes }
    }
}

/// The first kept set that a set is near, and the number of comparisons made to find it.
#[derive(Clone, Copy, Debug, Default)]
struct LookupOutcome {
    /// The number of the kept set, and the number of elements that the two share; `None` if no kept set is near.
    by: Option<(u32, u32)>,
    comparisons: u64,
    counted: u64,
}

impl<'a> Covering<'a> {
    /// Starts the decision.
    fn new(sets: &'a ShingleSets, priority: Priority<'a>) -> Result<Self> {
        let numbers = 0..sets.len() as u32;
        let sizes = numbers.clone().map(|set| sets.size(set) as u32);
        let shared = Column::of(sets.column_budget(), sizes)?;
        let by = Column::of(sets.column_budget(), numbers)?;
        if let Some(watched) = priority.watched {
            watched.begin("comparing", sets.len() as u64);
        }
        Ok(Self { sets, priority, by, shared, comparisons: 0, counted: 0, passes: 0 })
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
        self.by[set as usize] == set
    }

    /// Records the result for a set. Returns whether the set is removed.
    fn take(&mut self, set: u32, looked: LookupOutcome) -> Result<bool> {
        self.comparisons += looked.comparisons;
        self.counted += looked.counted;
        self.priority.check_work(self.comparisons)?;
        if let Some((by, shared)) = looked.by {
            self.by[set as usize] = by;
            self.shared[set as usize] = shared;
        }
        Ok(looked.by.is_some())
    }
}

/// Decides whether two sets are near, and which sets cannot be near.
struct NearSets<'a> {
    sets: &'a ShingleSets,
    near: Nearness,
}

impl<'a> NearSets<'a> {
    fn comparer(&self) -> SetComparer<'a> {
        SetComparer::new(self.sets, self.near)
    }

    /// Returns the smallest n such that every set near a set of `size` elements has at least one of any n of its elements;
    /// 0 if it is near no set.
    fn prefix(&self, size: usize) -> usize {
        if size == 0 { 0 } else { self.near.prefix(size) }
    }

    /// Returns whether a kept set is found only if it is indexed by all of its elements, not just by its prefix.
    fn indexes_all(&self) -> bool {
        matches!(self.near, Nearness::Containment(_))
    }

    /// Returns the largest number of elements that are in only one of two sets of these sizes if the later set is near the
    /// kept set; `None` if it cannot be near.
    fn max_difference(&self, later: usize, kept: usize) -> Option<u64> {
        self.near.least_shared(later, kept).map(|min| (later + kept - 2 * min) as u64)
    }
}

/// Counts the common elements of pairs of sets. Consecutive pairs usually have the same first set, which is read once.
struct SetComparer<'a> {
    sets: &'a ShingleSets,
    near: Nearness,
    one: SetReader<'a>,
    /// When a first set is read, the sets up to this one are read, too.
    end: u32,
    other: SetReader<'a>,
    read: [Vec<u64>; 2],
}

impl<'a> SetComparer<'a> {
    fn new(sets: &'a ShingleSets, near: Nearness) -> Self {
        let (one, other) = (SetReader::new(sets), SetReader::new(sets));
        Self { sets, near, one, end: 0, other, read: [Vec::new(), Vec::new()] }
    }

    /// Returns the number of elements that two sets share, or `None` if they are not near.
    fn shared(&mut self, set: u32, other: u32) -> Result<Option<u32>> {
        let sizes = (self.sets.size(set) as usize, self.sets.size(other) as usize);
        let Some(min) = self.near.least_shared(sizes.0, sizes.1) else { return Ok(None) };
        let shared = if self.sets.are_of_one_family(set, other) {
            self.sets.shared((set, other), min, &mut self.read)?
        } else {
            intersection_from(self.one.next_set_before(set, self.end)?, self.other.set(other)?, min)
        };
        Ok(shared.filter(|&shared| self.near.is_met(shared, sizes.0, sizes.1)).map(|shared| shared as u32))
    }
}

#[cfg(test)]
mod tests;
