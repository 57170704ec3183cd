//! Makes the same decision as [`cover_sets`](super::cover_sets) from a complete list of near pairs.

use super::ranks;
use crate::work::runs::Sorter;
use twindex::error::Result;
use twindex::sys::{Column, MemoryBudget};

/// Collects near pairs of numbers, and decides which numbers are kept: see [`cover_sets`](super::cover_sets).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// // 1 is near 0 and 2, which are not near each other.
/// let mut pairs = twindex_join::CoverPairs::new(&twindex::sys::MemoryBudget::new(dir.path(), 0), 1 << 20, 3, None)?;
/// pairs.push(1, 2, 70)?;
/// pairs.push(0, 1, 80)?;
/// let (by, scores) = pairs.finish()?;
/// assert_eq!((&by[..], &scores[..]), (&[0, 0, 2][..], &[0, 80, 0][..]));
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct CoverPairs<'a> {
    sorter: Sorter<u128>,
    count: usize,
    order: Option<&'a [u32]>,
    ranks: Option<Column<u32>>,
    fixed: u32,
    budget: MemoryBudget,
}

impl<'a> CoverPairs<'a> {
    /// Creates an empty collection for pairs of numbers below `count`. `order` holds all numbers in descending priority;
    /// `None` means that lower numbers have higher priority. Memory: about `memory` bytes, then scratch files; and 12 to 16
    /// bytes per number from `budget`.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn new(budget: &MemoryBudget, memory: usize, count: usize, order: Option<&'a [u32]>) -> Result<Self> {
        let ranks = order.map(|order| ranks(order, budget)).transpose()?;
        Ok(Self {
            sorter: Sorter::new(budget.dir(), memory),
            count,
            order,
            ranks,
            fixed: 0,
            budget: budget.clone(),
        })
    }

    /// Sets the number of entries at the start of the order that are always kept.
    #[must_use]
    pub fn fixing(self, fixed: u32) -> Self {
        Self { fixed, ..self }
    }

    /// Adds a near pair, in either order, with an arbitrary score. [`finish`](Self::finish) returns the score if a number
    /// is removed because of this pair.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn push(&mut self, a: u32, b: u32, score: u64) -> Result<()> {
        let rank = |number: u32| self.ranks.as_ref().map_or(number, |ranks| ranks[number as usize]);
        let (a, b) = (rank(a), rank(b));
        self.sorter.push(u128::from(a.max(b)) << 96 | u128::from(a.min(b)) << 64 | u128::from(score))
    }

    /// Returns two columns, indexed by number. The first holds, for a removed number, the kept number that it is near; for
    /// a kept number, the number itself. The second holds the score of this pair; 0 for kept numbers.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn finish(self) -> Result<(Column<u32>, Column<u64>)> {
        let Self { sorter, count, order, fixed, budget, .. } = self;
        let at = |rank: u32| order.map_or(rank, |order| order[rank as usize]);
        let mut all = (Column::of(&budget, 0..count as u32)?, Column::filled(&budget, count, 0)?);
        let (by, scores) = (&mut all.0[..], &mut all.1[..]);
        // Pairs are sorted by the later number, so all earlier numbers are decided before a number's pairs are processed.
        sorter.finish()?.for_each(|pair| {
            let (rank, earlier) = ((pair >> 96) as u32, at((pair >> 64) as u32));
            let later = at(rank);
            if rank >= fixed
                && by[later as usize] == later
                && by[earlier as usize] == earlier
                && later != earlier
            {
                by[later as usize] = earlier;
                scores[later as usize] = pair as u64;
            }
            Ok::<_, twindex::Error>(())
        })?;
        Ok(all)
    }
}
