//! The same decision as for sets, for things whose elements only find candidates; a measure decides whether they are near.
//!
//! Features of minima find texts whose shingles are counted; sketches find estimates. Only kept things are indexed and
//! compared with, and no list of the index is capped, so a family of any size takes time linear in its kept members.

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

/// Decides whether things are near that are found by shared elements.
pub trait Measure: Sync {
    /// Working memory of a thread.
    type Scratch: Default + Send;

    /// Returns the minimum number of elements, at least 1, that a set of `size` elements shares with each set that it is
    /// near; more than `size` if it is near none.
    fn least_shared(&self, size: usize) -> usize;

    /// Returns a score of how near a thing is to an earlier kept one; `None` if it is not near.
    ///
    /// # Errors
    /// Any error; it ends the search.
    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> Result<Option<u64>>;
}

/// The kept things, and for each removed thing a kept one that it is near, by a [`Measure`].
#[derive(Debug)]
pub struct MeasuredCover {
    /// For each removed thing, the first kept thing before it that it is near; for a kept thing, itself.
    pub by: Column<u32>,
    /// The score of the two; 0 for kept things.
    pub scores: Column<u64>,
    /// Number of comparisons of a thing with a kept one.
    pub comparisons: u64,
    /// Number of passes over the things; more than one if memory was short.
    pub passes: u32,
}

/// An empty sketch: the index stores a sketch for each set.
const NO_SKETCH: [u64; 1] = [0];

/// Decides which things are kept, in the order of their priority: see [`cover_sets`](super::cover_sets). `elements` has one
/// set for each thing. Any order of elements is correct; rare elements come first.
///
/// Takes about `resources.memory` bytes in addition to `elements`, and 12 to 20 bytes per thing, in memory or in scratch
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
/// Time: linear in the elements and in the comparisons. Things that share elements without being near make comparisons
/// quadratic.
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
    // Ranks of undecided things; `None` in the first pass, in which all are undecided.
    let mut left: Option<Column<u32>> = None;
    loop {
        deciding.measured.passes += 1;
        left = deciding.pass(left.as_ref(), max, &mut workers)?;
        if left.is_none() {
            return Ok(deciding.measured);
        }
    }
}

/// Returns the fraction of elements by which sets are looked up.
fn part(elements: &ShingleSets, measure: &impl Measure) -> f64 {
    let prefixes: usize =
        (0..elements.len() as u32).map(|set| prefix(measure, elements.size(set) as usize)).sum();
    prefixes as f64 / elements.elements().max(1) as f64
}

/// Returns the length of the prefix that finds all sets that a set is near.
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

/// A thread's working memory. Aligned so that threads share no cache line.
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

/// The first kept thing that a thing is near, their score, and the work to find it.
#[derive(Clone, Copy, Default)]
struct FirstNear {
    by: Option<(u32, u64)>,
    comparisons: u64,
}

/// The things of a piece that are not near any previously kept thing.
#[derive(Default)]
struct Piece {
    found: Vec<FirstNear>,
    /// For each set, the end of the elements by which it is looked up; a removed set has none.
    ends: Vec<usize>,
    heads: Vec<u64>,
}

impl<M: Measure> MeasuredDecider<'_, M> {
    /// Makes one pass over the undecided things. Returns the things left undecided because the index was full, or `None`.
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

    /// Decides on the sets of a block. If the index is full, decides only on sets that are near an indexed set.
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

    /// Compares the sets of a piece with the sets kept before its block.
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

    /// Finds the elements by which a set is looked up. Returns false if no other set has them.
    fn head(&self, set: u32, worker: &mut LookupWorker<M>) -> Result<bool> {
        let LookupWorker { read, head, .. } = worker;
        read.clear();
        let elements = self.elements.set(set, read)?;
        let wanted = prefix(self.measure, elements.len());
        Ok(wanted > 0 && self.rarity.head(elements, wanted, head))
    }

    /// Returns the first set of the index, from a position on, that a set is near.
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

    /// Records the result for a set; returns true if the set is removed.
    fn take(&mut self, set: u32, found: FirstNear) -> Result<bool> {
        self.measured.comparisons += found.comparisons;
        self.priority.check_work(self.measured.comparisons)?;
        let Some((by, score)) = found.by else { return Ok(false) };
        self.measured.by[set as usize] = by;
        self.measured.scores[set as usize] = score;
        Ok(true)
    }
}
