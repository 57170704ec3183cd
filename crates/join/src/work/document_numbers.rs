//! Assigns numbers to the documents of a snapshot.

use twindex::error::Result;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::{Column, MemoryBudget};

/// Marks a document without a number, because it was deleted or excluded by the caller.
pub(crate) const NO_NUMBER: u32 = u32::MAX;

/// The number of each document, in one column for all segments.
pub(crate) struct SegmentNumbers {
    pub(crate) all: Column<u32>,
    /// The end of each segment's part of `all`.
    pub(crate) ends: Vec<usize>,
}

impl SegmentNumbers {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { all: Column::new(budget), ends: Vec::new() }
    }

    /// Returns the numbers of the documents of a segment, indexed by ordinal.
    pub(crate) fn of(&self, segment: usize) -> &[u32] {
        let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[segment]]
    }
}

/// Calls `number` for each live document of `snapshot` and stores the results in the memory of `budget`.
pub(crate) fn numbers(
    snapshot: &Snapshot,
    budget: &MemoryBudget,
    mut number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<SegmentNumbers> {
    let mut numbers = SegmentNumbers::new(budget);
    for (segment, deleted) in snapshot.segments() {
        for ordinal in 0..segment.documents() as u32 {
            let is_live = !deleted.contains(ordinal);
            let found = if is_live { number(Place { segment, ordinal })? } else { None };
            numbers.all.push(found.unwrap_or(NO_NUMBER))?;
        }
        numbers.ends.push(numbers.all.len());
    }
    Ok(numbers)
}
