//! Makes the same decision as [`cover_sets`](super::cover_sets) for items of any kind. Shared elements find candidates, and
//! a measure decides whether two items are near.
//!
//! For example, the elements are features, and the measure compares the shingles of texts. Only kept items are indexed and
//! compared with, and no posting list is capped. A family of any size therefore takes time linear in its kept members.

use super::index::CoverIndex;
use super::places::LookupScratch;
use super::rarity::{RareElements, Rarity};
use super::{BLOCK_ELEMENTS, BLOCK_SETS, PIECE_ELEMENTS, PIECE_SETS, Priority};
use crate::hamming::JoinResources;
use crate::sets::ShingleSets;
use crate::threads::{cut, on_threads};
use crate::watched::SharedProgress;
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

/// The sketch stored for each item. The index requires one, but it is not used here.
const NO_SKETCH: [u64; 1] = [0];

/// Decides which items are kept, in the order of `priority`, as [`cover_sets`](super::cover_sets) does for sets. `elements`
/// has one set for each item.
///
/// Memory: about `resources.memory` bytes in addition to `elements`, and 12 to 20 bytes per item, in memory or in scratch
/// files.
///
/// ```
/// use twindex_join::{JoinResources, Measure, ShingleSets, cover_measured};
///
/// /// Numbers are near if they differ by 2 at most. Those of a decade and of the next one share an element.
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
/// // 19 is near 17 alone, which is removed for 15.
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
    if let Some(watched) = priority.watched {
        watched.begin("comparing", elements.len() as u64);
    }
    let threads = resources.threads.max(1);
    let rarity = Rarity::of(elements, part(elements, measure), resources.memory / 2, threads)?;
    let max = resources.memory.saturating_sub(rarity.bytes());
    let mut workers: Vec<LookupWorker<M>> = (0..threads).map(|_| LookupWorker::default()).collect();
    let mut deciding = MeasuredDecider {
        elements,
        measure,
        priority,
        rarity,
        measured: MeasuredCover {
            by: Column::of(elements.column_budget(), 0..elements.len() as u32)?,
            scores: Column::filled(elements.column_budget(), elements.len(), 0)?,
            comparisons: 0,
            passes: 0,
        },
    };
    // The ranks of undecided items, or `None` in the first pass, when all items are undecided.
    let mut left: Option<Column<u32>> = None;
    loop {
        deciding.measured.passes += 1;
        left = deciding.pass(left.as_ref(), max, &mut workers)?;
        if left.is_none() {
            return Ok(deciding.measured);
        }
    }
}

/// Returns the fraction of all elements with which items are looked up.
fn part(elements: &ShingleSets, measure: &impl Measure) -> f64 {
    let prefixes: usize =
        (0..elements.len() as u32).map(|set| prefix(measure, elements.size(set) as usize)).sum();
    prefixes as f64 / elements.elements().max(1) as f64
}

/// Returns the smallest n such that any item near an item with `size` elements has at least one of any n of these elements.
fn prefix(measure: &impl Measure, size: usize) -> usize {
    (size + 1).saturating_sub(measure.least_shared(size).max(1))
}

struct MeasuredDecider<'a, M> {
    elements: &'a ShingleSets,
    measure: &'a M,
    priority: Priority<'a>,
    rarity: Rarity,
    measured: MeasuredCover,
}

/// Working memory of a thread, aligned so that threads share no cache line.
#[repr(align(128))]
struct LookupWorker<M: Measure> {
    read: Vec<u64>,
    head: RareElements,
    places: LookupScratch,
    scratch: M::Scratch,
}

impl<M: Measure> Default for LookupWorker<M> {
    fn default() -> Self {
        Self {
            read: Vec::new(),
            head: RareElements::default(),
            places: LookupScratch::default(),
            scratch: M::Scratch::default(),
        }
    }
}

/// The first kept item that an item is near, with its score, or `None`. Also the number of comparisons made.
#[derive(Clone, Copy, Default)]
struct FirstNear {
    by: Option<(u32, u64)>,
    comparisons: u64,
}

/// Results for the items of a piece, compared with the previously kept items.
#[derive(Default)]
struct Piece {
    found: Vec<FirstNear>,
    /// For each item, the end of its part of `heads`, the elements with which it is looked up. Empty for removed items.
    ends: Vec<usize>,
    heads: Vec<u64>,
}

impl<M: Measure> MeasuredDecider<'_, M> {
    /// Makes one pass over the undecided items. Returns the ranks of items that are still undecided because the index was
    /// full, or `None` if there are none.
    fn pass(
        &mut self,
        left: Option<&Column<u32>>,
        max: usize,
        workers: &mut [LookupWorker<M>],
    ) -> Result<Option<Column<u32>>> {
        let (mut index, mut postponed) = (CoverIndex::new(max), None);
        let count = left.map_or(self.elements.len(), |left| left.len());
        let rank = |at: usize| left.map_or(at as u32, |left| left[at]);
        let (mut start, mut block) = (0, Vec::new());
        while start < count {
            block.clear();
            let mut elements = 0;
            while start < count && block.len() < BLOCK_SETS && elements < BLOCK_ELEMENTS {
                let rank = rank(start);
                elements += self.elements.size(self.priority.at(rank));
                block.push(rank);
                start += 1;
            }
            self.decide(&block, &mut index, &mut postponed, workers)?;
            let decided = (self.elements.len() - (count - start)) as u64;
            self.priority.watched.map_or(Ok(()), |watched| watched.reach(decided))?;
        }
        Ok(postponed)
    }

    /// Decides on the items of a block. If the index is full, decides only on items that are near an indexed item, and
    /// postpones the others.
    fn decide(
        &mut self,
        block: &[u32],
        index: &mut CoverIndex,
        postponed: &mut Option<Column<u32>>,
        workers: &mut [LookupWorker<M>],
    ) -> Result<()> {
        let size = |at: usize| self.elements.size(self.priority.at(block[at]));
        let pieces: Vec<&[u32]> =
            cut(0..block.len(), (PIECE_SETS, PIECE_ELEMENTS), size).map(|piece| &block[piece]).collect();
        let (before, so_far) = (&*self, &*index);
        let made = on_threads(workers, &pieces, |worker, piece| before.piece(piece, so_far, worker))?;
        let first = index.members.len() as u32;
        for (ranks, piece) in pieces.into_iter().zip(&made) {
            let mut start = 0;
            for ((&rank, &found), &end) in ranks.iter().zip(&piece.found).zip(&piece.ends) {
                let (set, head) = (self.priority.at(rank), &piece.heads[start..end]);
                start = end;
                if self.take(set, found)? || head.is_empty() {
                    continue;
                }
                if rank >= self.priority.fixed {
                    let found = self.nearest(set, head, index, first, &mut workers[0])?;
                    if self.take(set, found)? {
                        continue;
                    }
                }
                if let Some(postponed) = postponed {
                    postponed.push(rank)?;
                } else if index.is_full(head.len()) {
                    *postponed = Some(Column::of(self.elements.column_budget(), [rank])?);
                } else {
                    index.add(set, self.elements.size(set) as u32, head, &NO_SKETCH)?;
                }
            }
        }
        Ok(())
    }

    /// Compares the items of a piece with the items kept before its block.
    fn piece(&self, ranks: &[u32], index: &CoverIndex, worker: &mut LookupWorker<M>) -> Result<Piece> {
        self.priority.watched.map_or(Ok(()), SharedProgress::check)?;
        let mut made = Piece::default();
        for &rank in ranks {
            let set = self.priority.at(rank);
            let mut found = FirstNear::default();
            if self.head(set, worker)? {
                let head = std::mem::take(&mut worker.head);
                if rank >= self.priority.fixed {
                    found = self.nearest(set, &head.shared, index, 0, worker)?;
                }
                if found.by.is_none() {
                    made.heads.extend_from_slice(&head.shared);
                }
                worker.head = head;
            }
            made.found.push(found);
            made.ends.push(made.heads.len());
        }
        Ok(made)
    }

    /// Finds the elements with which an item is looked up. Returns false if no other item has any of them.
    fn head(&self, set: u32, worker: &mut LookupWorker<M>) -> Result<bool> {
        let LookupWorker { read, head, .. } = worker;
        read.clear();
        let elements = self.elements.set(set, read)?;
        let wanted = prefix(self.measure, elements.len());
        Ok(wanted > 0 && self.rarity.head(elements, wanted, head))
    }

    /// Returns the first indexed item, from position `from` on, that `set` is near.
    fn nearest(
        &self,
        set: u32,
        head: &[u64],
        index: &CoverIndex,
        from: u32,
        worker: &mut LookupWorker<M>,
    ) -> Result<FirstNear> {
        let mut found = FirstNear::default();
        let LookupWorker { places, scratch, .. } = worker;
        places.visit(index, head, from, |place| {
            let kept = index.members[place as usize];
            found.comparisons += 1;
            found.by = self.measure.score(scratch, set, kept)?.map(|score| (kept, score));
            Ok(found.by.is_some())
        })?;
        Ok(found)
    }

    /// Records the result for an item. Returns whether the item is removed.
    fn take(&mut self, set: u32, found: FirstNear) -> Result<bool> {
        self.measured.comparisons += found.comparisons;
        self.priority.check_work(self.measured.comparisons)?;
        let Some((by, score)) = found.by else { return Ok(false) };
        self.measured.by[set as usize] = by;
        self.measured.scores[set as usize] = score;
        Ok(true)
    }
}
