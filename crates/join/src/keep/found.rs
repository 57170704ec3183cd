//! Decides which sets are kept, by comparing each set with the kept sets that share rare elements with it.

use std::ops::{ControlFlow, Range};

use super::covering::{
    BLOCK_SETS, Covering, LookupOutcome, NearSets, PIECE_ELEMENTS, PIECE_SETS, SetComparer,
};
use super::index::CoverIndex;
use super::places::LookupScratch;
use super::rarity::{RareElements, Rarity};
use super::undecided::{Undecided, UndecidedPiece, UndecidedPlace, UndecidedSet};
use crate::hamming::JoinResources;
use crate::pairs::odd_sketches::make_sketch;
use crate::sets::shingle_sets::{SetReader, ShingleSets};
use crate::work::slots::tag;
use twindex::error::Result;
use twindex::sys::MemoryBudget;
use twindex::sys::threads::{cut, in_order, on_threads};

/// Undecided sets may use one part in this number of the memory before they are stored in a scratch file.
const PART_OF_UNDECIDED: usize = 8;

/// Decides which sets are kept, in one or more passes.
pub(super) fn cover(
    covering: &mut Covering<'_>,
    rule: &NearSets<'_>,
    resources: JoinResources<'_>,
) -> Result<()> {
    let threads = resources.threads.max(1);
    let rarity = Rarity::of(covering.sets, part(covering.sets, rule), resources.memory, threads)?;
    let budget = MemoryBudget::new(resources.dir, resources.memory / PART_OF_UNDECIDED);
    let mut undecided = Undecided::new(&budget);
    find_undecided(covering, rule, (&rarity, threads), &mut undecided)?;
    // The rarities are used again only if kept sets are indexed by all of their elements.
    let rarity = rule.indexes_all().then_some(rarity);
    let held = rarity.as_ref().map_or(0, Rarity::bytes) + resources.memory / PART_OF_UNDECIDED;
    let max = resources.memory.saturating_sub(held);
    let mut workers: Vec<LookupWorker<'_>> =
        (0..threads).map(|_| LookupWorker::new(covering.sets, rule)).collect();
    loop {
        if !rule.indexes_all() {
            undecided.drop_lonely(max / 2, threads, || covering.check())?;
        }
        covering.passes += 1;
        let index = CoverIndex::new(max);
        let mut pass = Pass { rule, rarity: rarity.as_ref(), index, is_full: false };
        let (mut from, mut to) = (UndecidedPlace::default(), UndecidedPlace::default());
        let (decided, mut block) = (covering.sets.len() - undecided.len(), Vec::new());
        let (mut looked, mut left) = (0, 0);
        loop {
            block.clear();
            block.extend(std::iter::from_fn(|| undecided.next(&mut from)).take(BLOCK_SETS));
            if block.is_empty() {
                break;
            }
            left += pass.decide(covering, &mut undecided, &block, &mut to, &mut workers)?;
            looked += block.len();
            covering.reach(decided + looked - left)?;
        }
        undecided.truncate(to);
        if undecided.len() == 0 {
            return Ok(());
        }
    }
}

/// Returns the fraction of elements that are in the prefixes with which sets are looked up.
fn part(sets: &ShingleSets, rule: &NearSets<'_>) -> f64 {
    let prefixes: usize = (0..sets.len() as u32).map(|set| rule.prefix(sets.size(set) as usize)).sum();
    prefixes as f64 / sets.elements().max(1) as f64
}

/// Number of results of a thread that may wait for earlier results.
const WAITING: usize = 8;

/// Finds the sets that may be near other sets, and the elements with which they are looked up. All other sets are kept.
fn find_undecided(
    covering: &Covering<'_>,
    rule: &NearSets<'_>,
    (rarity, threads): (&Rarity, usize),
    undecided: &mut Undecided,
) -> Result<()> {
    let size = |rank: usize| covering.sets.size(covering.at(rank as u32));
    let pieces: Vec<_> = cut(0..covering.sets.len(), (usize::MAX, PIECE_ELEMENTS), size).collect();
    let mut finders: Vec<_> = (0..threads).map(|_| UndecidedFinder::new(covering.sets)).collect();
    let mut read = 0;
    let work = |finder: &mut UndecidedFinder<'_>, ranks: &Range<usize>| {
        covering.check()?;
        Ok((ranks.len(), finder.find(covering, rule, rarity, ranks.start as u32..ranks.end as u32)?))
    };
    in_order(&mut finders, &pieces, WAITING, work, |(sets, piece): (usize, UndecidedPiece)| {
        undecided.append(&piece)?;
        read += sets;
        covering.reach(read - undecided.len())?;
        Ok(ControlFlow::Continue(()))
    })
    .map(drop)
}

/// Working memory of a thread that finds undecided sets, aligned so that threads share no cache line.
#[repr(align(128))]
struct UndecidedFinder<'a> {
    reader: SetReader<'a>,
    head: RareElements,
    sketch: Vec<u64>,
}

impl<'a> UndecidedFinder<'a> {
    fn new(sets: &'a ShingleSets) -> Self {
        Self { reader: SetReader::new(sets), head: RareElements::default(), sketch: Vec::new() }
    }

    /// Returns the sets with these ranks that are undecided.
    fn find(
        &mut self,
        covering: &Covering<'_>,
        rule: &NearSets<'_>,
        rarity: &Rarity,
        ranks: Range<u32>,
    ) -> Result<UndecidedPiece> {
        let Self { reader, head, sketch } = self;
        let mut found = UndecidedPiece::default();
        let end = range_of(ranks.clone().map(|rank| covering.at(rank))).end;
        let last = ranks.end - 1;
        for rank in ranks {
            reader.prefetch(covering.at(last.min(rank + 1)));
            let set = reader.next_set_before(covering.at(rank), end)?;
            let wanted = rule.prefix(set.len());
            if wanted == 0 || !rarity.head(set, wanted, head) {
                // No other set has these elements, so the set is near no kept set. Later sets may still be near it.
                if !rule.indexes_all() || !rarity.has_shared(set) {
                    continue;
                }
                head.shared.clear();
            }
            sketch.clear();
            make_sketch(set, sketch);
            found.push(rank, head.shared.iter().map(|&element| tag(element)), sketch);
        }
        Ok(found)
    }
}

/// Returns the range that contains these sets if they are close to each other, so that reading the whole range takes little
/// more time; otherwise an empty range.
fn range_of(sets: impl ExactSizeIterator<Item = u32>) -> Range<u32> {
    let count = sets.len() as u64;
    let (first, end) = sets.fold((u32::MAX, 0), |(first, end), set| (first.min(set), end.max(set + 1)));
    if u64::from(end.saturating_sub(first)) <= CLOSE * count { first..end } else { 0..0 }
}

/// A range of sets is read at once if it contains at most this number of sets for each requested set.
const CLOSE: u64 = 8;

/// Working memory of a thread, aligned so that threads share no cache line.
#[repr(align(128))]
struct LookupWorker<'a> {
    comparer: SetComparer<'a>,
    places: LookupScratch,
    reader: SetReader<'a>,
    shared: Vec<u64>,
    tags: Vec<u32>,
}

impl<'a> LookupWorker<'a> {
    fn new(sets: &'a ShingleSets, rule: &NearSets<'a>) -> Self {
        Self {
            comparer: rule.comparer(),
            places: LookupScratch::default(),
            reader: SetReader::new(sets),
            shared: Vec::new(),
            tags: Vec::new(),
        }
    }
}

/// One pass over all undecided sets.
struct Pass<'a> {
    rule: &'a NearSets<'a>,
    /// `None` if kept sets are indexed by the tags with which they are looked up.
    rarity: Option<&'a Rarity>,
    index: CoverIndex,
    /// Whether a set did not fit in the index. Sets that are not near an indexed set are then left for the next pass.
    is_full: bool,
}

impl Pass<'_> {
    /// Decides which sets of a block are kept. If the index is full, decides only sets that are near an indexed set,
    /// moves the others to `to`, and returns their number.
    fn decide(
        &mut self,
        covering: &mut Covering<'_>,
        undecided: &mut Undecided,
        block: &[UndecidedSet],
        to: &mut UndecidedPlace,
        workers: &mut [LookupWorker<'_>],
    ) -> Result<usize> {
        let size = |at: usize| covering.sets.size(covering.at(block[at].rank));
        let pieces: Vec<&[UndecidedSet]> =
            cut(0..block.len(), (PIECE_SETS, PIECE_ELEMENTS), size).map(|piece| &block[piece]).collect();
        let (before, all, pass) = (&*covering, &*undecided, &*self);
        let found = on_threads(workers, &pieces, |worker, piece| {
            before.check()?;
            worker.comparer.end = range_of(piece.iter().map(|set| before.at(set.rank))).end;
            piece
                .iter()
                .map(|set| {
                    if before.is_fixed(set.rank) {
                        return Ok(LookupOutcome::default());
                    }
                    pass.nearest(before, all, set, 0, worker)
                })
                .collect::<Result<Vec<_>>>()
        })?;
        let first = self.index.members.len() as u32;
        let mut left = 0;
        for (entry, found) in block.iter().zip(found.into_iter().flatten()) {
            let set = covering.at(entry.rank);
            if covering.take(set, found)? {
                continue;
            }
            if !covering.is_fixed(entry.rank) {
                let found = self.nearest(covering, undecided, entry, first, &mut workers[0])?;
                if covering.take(set, found)? {
                    continue;
                }
            }
            if !self.keep(covering, undecided, entry, &mut workers[0])? {
                undecided.move_to(to, entry);
                left += 1;
            }
        }
        Ok(left)
    }

    /// Adds a kept set to the index. Returns false if the index is full.
    fn keep(
        &mut self,
        covering: &Covering<'_>,
        undecided: &Undecided,
        entry: &UndecidedSet,
        worker: &mut LookupWorker<'_>,
    ) -> Result<bool> {
        let set = covering.at(entry.rank);
        let tags = match self.rarity {
            _ if self.is_full => return Ok(false),
            None => undecided.tags(entry),
            Some(rarity) => {
                rarity.shared(worker.reader.set(set)?, &mut worker.shared);
                worker.tags.clear();
                worker.tags.extend(worker.shared.iter().map(|&element| tag(element)));
                &worker.tags
            }
        };
        self.is_full = self.index.is_full(tags.len());
        if !self.is_full {
            self.index.add(set, covering.sets.size(set) as u32, tags, undecided.sketch(entry))?;
        }
        Ok(!self.is_full)
    }

    /// Returns the first indexed set, from position `from` on, that the set is near.
    fn nearest(
        &self,
        covering: &Covering<'_>,
        undecided: &Undecided,
        entry: &UndecidedSet,
        from: u32,
        worker: &mut LookupWorker<'_>,
    ) -> Result<LookupOutcome> {
        let set = covering.at(entry.rank);
        let (size, sketch) = (covering.sets.size(set) as usize, undecided.sketch(entry));
        let mut found = LookupOutcome::default();
        let LookupWorker { comparer, places, .. } = worker;
        places.visit(&self.index, undecided.tags(entry), from, |place| {
            let kept = self.index.sizes[place as usize] as usize;
            let Some(max) = self.rule.max_difference(size, kept) else { return Ok(false) };
            found.comparisons += 1;
            if self.index.odd.least_difference_from(sketch, place) > max {
                return Ok(false);
            }
            found.counted += 1;
            let member = self.index.members[place as usize];
            found.by = comparer.shared(set, member)?.map(|shared| (member, shared));
            Ok(found.by.is_some())
        })?;
        Ok(found)
    }
}
