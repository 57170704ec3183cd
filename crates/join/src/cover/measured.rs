//! The same decision where elements only lead to what may be near, and something else says whether it is.
//!
//! Features of minima lead to texts whose shingles are counted; sketches to estimates. Kept things alone are in the index and
//! are compared with, and no list of it is cut, so that a family of any size is linear beside its kept members.

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

/// Says what is near, of things that are found by what their sets of elements share.
pub trait Measure: Sync {
    /// Working memory of a thread.
    type Scratch: Default + Send;

    /// The fewest elements, 1 or more, that a set of `size` elements shares with each that it is near. More than `size` if it
    /// is near none.
    fn least_shared(&self, size: usize) -> usize;

    /// A number that says how near a thing is to an earlier one that is kept; none if it is not near.
    ///
    /// # Errors
    /// As it likes: the search ends with it.
    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> Result<Option<u64>>;
}

/// The kept things, and for each removed one the kept one that it is near, by a [`Measure`].
#[derive(Debug)]
pub struct MeasuredCover {
    /// For each thing the first kept one before it that it is near; itself for a kept one.
    pub by: Column<u32>,
    /// The score of the two; 0 for what stays.
    pub scores: Column<u64>,
    /// Comparisons of a thing with a kept one.
    pub comparisons: u64,
    /// How often things were gone through: more than once where memory was short.
    pub passes: u32,
}

/// Sketches of nothing: the index keeps one for each set.
const NO_SKETCH: [u64; 1] = [0];

/// Decides which things stay, in the order of their priority: see [`cover_sets`](super::cover_sets). `elements` has a set for
/// each. Any order of elements finds all that is near; rare ones come first.
///
/// Takes about `resources.memory` bytes beside what `elements` holds, and 12 to 20 bytes a thing, in memory or in scratch files.
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
/// Time: linear in the elements, and in the comparisons, which things that share elements without being near make quadratic.
///
/// # Errors
/// [`Error::Io`](twindex::Error::Io) from a scratch file; [`Error::Limit`](twindex::Error::Limit) for more comparisons than are
/// allowed; what [`SharedProgress::check`](crate::SharedProgress::check) or the measure says.
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
    // Ranks that are not decided on; all of them at first.
    let mut left: Option<Column<u32>> = None;
    loop {
        deciding.measured.passes += 1;
        left = deciding.pass(left.as_ref(), max, &mut workers)?;
        if left.is_none() {
            return Ok(deciding.measured);
        }
    }
}

/// The part of the elements by which sets are looked for.
fn part(elements: &ShingleSets, measure: &impl Measure) -> f64 {
    let prefixes: usize =
        (0..elements.len() as u32).map(|set| prefix(measure, elements.size(set) as usize)).sum();
    prefixes as f64 / elements.elements().max(1) as f64
}

/// The length of the prefix by which a set finds all that it is near.
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

/// A thread's working memory. No two share a line of a cache.
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

/// The first kept thing that one is near, with their score, and what it took to find it.
#[derive(Clone, Copy, Default)]
struct FirstNear {
    by: Option<(u32, u64)>,
    comparisons: u64,
}

/// The things of a piece that are not near one kept before.
#[derive(Default)]
struct Piece {
    found: Vec<FirstNear>,
    /// For each set the end of the elements by which it is looked up; a removed set has none.
    ends: Vec<usize>,
    heads: Vec<u64>,
}

impl<M: Measure> MeasuredDecider<'_, M> {
    /// Goes once through what is left. Returns what is left then, if the index was full before the end.
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

    /// Decides on the sets of a block; or, if the index is full, on those that are near what it has.
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

    /// Compares the sets of a piece with what was kept before its block.
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

    /// Finds the elements by which a set is looked for. False if no other set has them.
    fn head(&self, set: u32, worker: &mut LookupWorker<M>) -> Result<bool> {
        let LookupWorker { read, head, .. } = worker;
        read.clear();
        let elements = self.elements.set(set, read)?;
        let wanted = prefix(self.measure, elements.len());
        Ok(wanted > 0 && self.rarity.head(elements, wanted, head))
    }

    /// The first set of the index, from a place on, that a set is near.
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

    /// Takes note of what was found; true if the set goes.
    fn take(&mut self, set: u32, found: FirstNear) -> Result<bool> {
        self.measured.comparisons += found.comparisons;
        self.priority.check_work(self.measured.comparisons)?;
        let Some((by, score)) = found.by else { return Ok(false) };
        self.measured.by[set as usize] = by;
        self.measured.scores[set as usize] = score;
        Ok(true)
    }
}
