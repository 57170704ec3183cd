//! Holds which sets are kept so far, and compares two sets.

use crate::sets::shingle_sets::{SetReader, ShingleSets};
use crate::work::watched::SharedProgress;
use twindex::error::{Error, Result};
use twindex::sys::Column;
use twindex_sketch::{Nearness, intersection_from};

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
pub(super) const BLOCK_SETS: usize = 2048;
/// Maximum number of sets in a piece of a block, which a thread processes at once.
pub(super) const PIECE_SETS: usize = 64;
/// Maximum number of elements of the sets in a piece.
pub(super) const PIECE_ELEMENTS: u64 = 1 << 15;

/// Which sets are kept and which are removed so far.
pub(super) struct Covering<'a> {
    pub(super) sets: &'a ShingleSets,
    pub(super) priority: Priority<'a>,
    /// For each removed set, the kept set that it is near; for all others, their own number.
    pub(super) by: Column<u32>,
    /// For each removed set, the number of elements that it shares with the set in `by`; for all others, their size.
    pub(super) shared: Column<u32>,
    pub(super) comparisons: u64,
    pub(super) counted: u64,
    pub(super) passes: u32,
}

/// The first kept set that a set is near, and the number of comparisons made to find it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LookupOutcome {
    /// The number of the kept set, and the number of elements that the two share; `None` if no kept set is near.
    pub(super) by: Option<(u32, u32)>,
    pub(super) comparisons: u64,
    pub(super) counted: u64,
}

impl<'a> Covering<'a> {
    /// Starts with all sets kept.
    pub(super) fn new(sets: &'a ShingleSets, priority: Priority<'a>) -> Result<Self> {
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
    pub(super) fn at(&self, rank: u32) -> u32 {
        self.priority.at(rank)
    }

    /// Returns whether the set with this rank is always kept.
    pub(super) fn is_fixed(&self, rank: u32) -> bool {
        rank < self.priority.fixed
    }

    /// Reports the number of decided sets. Returns an error if the work was stopped.
    pub(super) fn reach(&self, sets: usize) -> Result<()> {
        self.priority.watched.map_or(Ok(()), |watched| watched.reach(sets as u64))
    }

    /// Returns an error if the work was stopped.
    pub(super) fn check(&self) -> Result<()> {
        self.priority.watched.map_or(Ok(()), SharedProgress::check)
    }

    pub(super) fn is_kept(&self, set: u32) -> bool {
        self.by[set as usize] == set
    }

    /// Records the result for a set. Returns whether the set is removed.
    pub(super) fn take(&mut self, set: u32, looked: LookupOutcome) -> Result<bool> {
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
pub(super) struct NearSets<'a> {
    pub(super) sets: &'a ShingleSets,
    pub(super) near: Nearness,
}

impl<'a> NearSets<'a> {
    pub(super) fn comparer(&self) -> SetComparer<'a> {
        SetComparer::new(self.sets, self.near)
    }

    /// Returns the smallest n such that every set near a set of `size` elements has at least one of any n of its elements;
    /// 0 if it is near no set.
    pub(super) fn prefix(&self, size: usize) -> usize {
        if size == 0 { 0 } else { self.near.prefix(size) }
    }

    /// Returns whether a kept set is found only if it is indexed by all of its elements, not just by its prefix.
    pub(super) fn indexes_all(&self) -> bool {
        matches!(self.near, Nearness::Containment(_))
    }

    /// Returns the largest number of elements that are in only one of two sets of these sizes if the later set is near the
    /// kept set; `None` if it cannot be near.
    pub(super) fn max_difference(&self, later: usize, kept: usize) -> Option<u64> {
        self.near.least_shared(later, kept).map(|min| (later + kept - 2 * min) as u64)
    }
}

/// Counts the common elements of pairs of sets. Consecutive pairs usually have the same first set, which is read once.
pub(super) struct SetComparer<'a> {
    pub(super) sets: &'a ShingleSets,
    pub(super) near: Nearness,
    pub(super) one: SetReader<'a>,
    /// When a first set is read, the sets up to this one are read, too.
    pub(super) end: u32,
    pub(super) other: SetReader<'a>,
    pub(super) read: [Vec<u64>; 2],
}

impl<'a> SetComparer<'a> {
    pub(super) fn new(sets: &'a ShingleSets, near: Nearness) -> Self {
        let (one, other) = (SetReader::new(sets), SetReader::new(sets));
        Self { sets, near, one, end: 0, other, read: [Vec::new(), Vec::new()] }
    }

    /// Returns the number of elements that two sets share, or `None` if they are not near.
    pub(super) fn shared(&mut self, set: u32, other: u32) -> Result<Option<u32>> {
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
