//! Decides which sets are kept, by comparing each set with the kept sets that share rare elements with it.

use super::super::hamming::JoinResources;
use super::super::threads::{cut, on_threads};
use super::index::CoverIndex;
use super::places::LookupScratch;
use super::rarity::{RareElements, Rarity};
use super::{BLOCK_ELEMENTS, BLOCK_SETS, Covering, LookupOutcome, PIECE_ELEMENTS, PIECE_SETS, SetComparer};
use twindex::error::Result;
use twindex::sys::Column;
use twindex_sketch::Nearness;

/// Results of comparing the sets of a piece with the previously kept sets. `looked` has one entry per set.
#[derive(Default)]
struct Piece {
    looked: Vec<LookupOutcome>,
    /// For each set of the piece, the end of its part of `elements` and the end of its part of `sketches`. Empty for
    /// covered sets.
    ends: Vec<(usize, usize)>,
    /// The elements with which the sets are looked up.
    elements: Vec<u64>,
    sketches: Vec<u64>,
}

/// Working memory of a thread, aligned so that threads share no cache line.
#[repr(align(128))]
struct LookupWorker<'a> {
    counting: SetComparer<'a>,
    head: RareElements,
    sketch: Vec<u64>,
    places: LookupScratch,
}

/// Decides on all sets, in one or more passes.
pub(super) fn cover(covering: &mut Covering<'_>, resources: JoinResources<'_>) -> Result<()> {
    let (sets, near) = (covering.sets, covering.near);
    let threads = resources.threads.max(1);
    let rarity = Rarity::of(sets, 1.0 - near.threshold(), resources.memory / 2, threads)?;
    let max = resources.memory.saturating_sub(rarity.bytes());
    let mut workers: Vec<LookupWorker<'_>> = (0..threads)
        .map(|_| LookupWorker {
            counting: SetComparer::new(sets, near),
            head: RareElements::default(),
            sketch: Vec::new(),
            places: LookupScratch::default(),
        })
        .collect();
    // The ranks of undecided sets, or `None` in the first pass, when all sets are undecided.
    let mut left: Option<Column<u32>> = None;
    covering.covered.passes = 0;
    loop {
        covering.covered.passes += 1;
        let mut pass = Pass { rarity: &rarity, index: CoverIndex::new(max), postponed: None };
        let number = left.as_ref().map_or(sets.len(), |left| left.len());
        let rank = |at: usize| left.as_ref().map_or(at as u32, |left| left[at]);
        let mut start = 0;
        let mut block = Vec::new();
        while start < number {
            block.clear();
            let mut elements = 0;
            while start < number && block.len() < BLOCK_SETS && elements < BLOCK_ELEMENTS {
                let rank = rank(start);
                elements += sets.size(covering.at(rank));
                block.push(rank);
                start += 1;
            }
            pass.decide(covering, &block, &mut workers)?;
            covering.reach(sets.len() - (number - start))?;
        }
        match pass.postponed {
            None => return Ok(()),
            postponed => left = postponed,
        }
    }
}

/// One pass over all undecided sets.
struct Pass<'a> {
    rarity: &'a Rarity,
    index: CoverIndex,
    /// The ranks of the sets that were not decided because the index is full; `None` while it is not full.
    postponed: Option<Column<u32>>,
}

impl Pass<'_> {
    /// Decides on the sets of a block. If the index is full, decides only on sets that are near an indexed set, and
    /// postpones the others.
    fn decide(
        &mut self,
        covering: &mut Covering<'_>,
        block: &[u32],
        workers: &mut [LookupWorker<'_>],
    ) -> Result<()> {
        let pieces = pieces(covering, block);
        let (before, index, rarity) = (&*covering, &self.index, self.rarity);
        let made = on_threads(workers, &pieces, |worker, piece| {
            let mut made = Piece::default();
            before.check()?;
            worker.counting.ahead(piece.iter().map(|&rank| before.at(rank)))?;
            for &rank in *piece {
                worker.look(before, rank, rarity, index, &mut made)?;
            }
            Ok(made)
        })?;
        let first = self.index.members.len() as u32;
        for (ranks, piece) in pieces.into_iter().zip(&made) {
            let mut starts = (0, 0);
            for ((&rank, &looked), &ends) in ranks.iter().zip(&piece.looked).zip(&piece.ends) {
                let set = covering.at(rank);
                let elements = &piece.elements[starts.0..ends.0];
                let sketch = &piece.sketches[starts.1..ends.1];
                starts = ends;
                if covering.take(set, looked)? || sketch.is_empty() {
                    continue;
                }
                let worker = &mut workers[0];
                if !covering.is_fixed(rank) {
                    let lookup = SetLookup { covering, set, index: &self.index, from: first };
                    let looked =
                        lookup.nearest(elements, sketch, &mut worker.places, &mut worker.counting)?;
                    if covering.take(set, looked)? {
                        continue;
                    }
                }
                if let Some(postponed) = &mut self.postponed {
                    postponed.push(rank)?;
                    continue;
                }
                self.keep(covering, rank, elements, sketch, &mut worker.counting, &mut worker.head)?;
            }
        }
        Ok(())
    }

    /// Adds a kept set to the index. If the index is full, postpones the decision on this set.
    fn keep(
        &mut self,
        covering: &Covering<'_>,
        rank: u32,
        elements: &[u64],
        sketch: &[u64],
        counting: &mut SetComparer<'_>,
        head: &mut RareElements,
    ) -> Result<()> {
        let set = covering.at(rank);
        let elements = match covering.near {
            Nearness::Resemblance(_) => elements,
            // Other sets may look up any element of this set.
            Nearness::Containment(_) => {
                self.rarity.all(counting.set(set)?, head);
                &head.shared
            }
        };
        if self.index.is_full(elements.len()) {
            self.postponed = Some(Column::of(covering.sets.column_budget(), [rank])?);
            return Ok(());
        }
        self.index.add(set, covering.sets.size(set) as u32, elements, sketch)
    }
}

/// Splits a block into pieces that threads process.
fn pieces<'b>(covering: &Covering<'_>, block: &'b [u32]) -> Vec<&'b [u32]> {
    let size = |at: usize| covering.sets.size(covering.at(block[at]));
    cut(0..block.len(), (PIECE_SETS, PIECE_ELEMENTS), size).map(|piece| &block[piece]).collect()
}

impl LookupWorker<'_> {
    /// Compares a set with the indexed sets, and adds the result to `made`.
    fn look(
        &mut self,
        covering: &Covering<'_>,
        rank: u32,
        rarity: &Rarity,
        index: &CoverIndex,
        made: &mut Piece,
    ) -> Result<()> {
        let Self { counting, head, sketch, places } = self;
        let set = covering.at(rank);
        let elements = counting.set(set)?;
        let mut looked = LookupOutcome::default();
        // A set with enough elements that occur in no other set is near no kept set. With containment, later sets may still
        // be near it.
        let is_alone = !rarity.head(elements, covering.near.prefix(elements.len()), head);
        if is_alone {
            head.shared.clear();
        }
        if !is_alone || matches!(covering.near, Nearness::Containment(_)) {
            index.odd.make(elements, sketch);
            if !covering.is_fixed(rank) {
                let lookup = SetLookup { covering, set, index, from: 0 };
                looked = lookup.nearest(&head.shared, sketch, places, counting)?;
            }
            if looked.by.is_none() {
                made.elements.extend_from_slice(&head.shared);
                made.sketches.extend_from_slice(sketch);
            }
        }
        made.looked.push(looked);
        made.ends.push((made.elements.len(), made.sketches.len()));
        Ok(())
    }
}

/// A lookup of a set among the indexed sets, beginning at position `from`.
struct SetLookup<'l> {
    covering: &'l Covering<'l>,
    set: u32,
    index: &'l CoverIndex,
    from: u32,
}

impl SetLookup<'_> {
    /// Returns the first indexed set that the set is near.
    fn nearest(
        &self,
        elements: &[u64],
        sketch: &[u64],
        places: &mut LookupScratch,
        counting: &mut SetComparer<'_>,
    ) -> Result<LookupOutcome> {
        let mut looked = LookupOutcome::default();
        places.visit(self.index, elements, self.from, |place| {
            self.is_near(place, sketch, counting, &mut looked)
        })?;
        Ok(looked)
    }

    /// Returns whether the set is near the indexed set at `place`, and records the comparison in `looked`.
    #[inline]
    fn is_near(
        &self,
        place: u32,
        sketch: &[u64],
        counting: &mut SetComparer<'_>,
        looked: &mut LookupOutcome,
    ) -> Result<bool> {
        let Covering { sets, near, .. } = *self.covering;
        let (size, other) = (sets.size(self.set) as usize, self.index.sizes[place as usize] as usize);
        let Some(min) = near.least_shared(size, other) else { return Ok(false) };
        looked.comparisons += 1;
        let max = (size + other - 2 * min) as u64;
        if self.index.odd.least_difference_from(sketch, place) > max {
            return Ok(false);
        }
        looked.counted += 1;
        let member = self.index.members[place as usize];
        looked.by = counting.shared(self.set, member)?.map(|shared| (member, shared));
        Ok(looked.by.is_some())
    }
}
