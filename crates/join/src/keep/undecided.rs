//! The sets that are not decided yet: the elements with which they are looked up, and their sketches.
//!
//! Each set is read once. Later passes read only the data stored here, which is much less. An element is represented by
//! its [tag](crate::work::slots::tag), 32 bits of its hash.

use std::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::cells::{AHEAD, CellAdder, Cells};
use twindex::error::Result;
use twindex::sys::threads::{cut, on_threads};
use twindex::sys::{Column, MemoryBudget};

/// An undecided set, with the numbers of its tags and of the words of its sketch.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct SetHeader {
    rank: u32,
    tags: u32,
    words: u32,
}

/// Consecutive undecided sets that a thread found.
#[derive(Default)]
pub(super) struct UndecidedPiece {
    headers: Vec<SetHeader>,
    tags: Vec<u32>,
    sketches: Vec<u64>,
}

impl UndecidedPiece {
    pub(super) fn push(&mut self, rank: u32, tags: impl Iterator<Item = u32>, sketch: &[u64]) {
        let before = self.tags.len();
        self.tags.extend(tags);
        self.headers.push(SetHeader {
            rank,
            tags: (self.tags.len() - before) as u32,
            words: sketch.len() as u32,
        });
        self.sketches.extend_from_slice(sketch);
    }
}

/// All undecided sets, in the order of their ranks.
pub(super) struct Undecided {
    headers: Column<SetHeader>,
    tags: Column<u32>,
    sketches: Column<u64>,
}

/// A set of [`Undecided`]: its rank, and the positions of its tags and its sketch.
#[derive(Clone, Debug)]
pub(super) struct UndecidedSet {
    pub(super) rank: u32,
    tags: Range<usize>,
    words: Range<usize>,
}

/// A position between two sets of [`Undecided`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UndecidedPlace {
    set: usize,
    tag: usize,
    word: usize,
}

/// Number of cells per tag in which tags are counted, if the memory suffices.
const CELLS: u64 = 4;
/// Maximum number of times that tags are counted.
const ROUNDS: usize = 4;
/// Tags are counted again if at least one tag in this number was dropped.
const WORTH: usize = 4;
/// Number of tags that a thread counts at once.
const PIECE: usize = 1 << 16;

impl Undecided {
    pub(super) fn new(budget: &MemoryBudget) -> Self {
        Self { headers: Column::new(budget), tags: Column::new(budget), sketches: Column::new(budget) }
    }

    pub(super) fn len(&self) -> usize {
        self.headers.len()
    }

    /// Appends sets, whose ranks must be greater than the ranks of all sets before.
    pub(super) fn append(&mut self, piece: &UndecidedPiece) -> Result<()> {
        self.headers.extend(&piece.headers)?;
        self.tags.extend(&piece.tags)?;
        self.sketches.extend(&piece.sketches)
    }

    pub(super) fn tags(&self, set: &UndecidedSet) -> &[u32] {
        &self.tags[set.tags.clone()]
    }

    pub(super) fn sketch(&self, set: &UndecidedSet) -> &[u64] {
        &self.sketches[set.words.clone()]
    }

    /// Returns the set after `place`, and moves `place` past it. `None` at the end.
    pub(super) fn next(&self, place: &mut UndecidedPlace) -> Option<UndecidedSet> {
        let header = *self.headers.get(place.set)?;
        let end = place.after(header.tags as usize, header.words as usize);
        let set = UndecidedSet { rank: header.rank, tags: place.tag..end.tag, words: place.word..end.word };
        *place = end;
        Some(set)
    }

    /// Moves a set to the earlier position `place`, and moves `place` past it.
    pub(super) fn move_to(&mut self, place: &mut UndecidedPlace, set: &UndecidedSet) {
        self.tags.copy_within(set.tags.clone(), place.tag);
        self.put(place, set, set.tags.len());
    }

    /// Stores the header and the sketch of a set at the earlier position `place`, with `tags` tags that are already there.
    fn put(&mut self, place: &mut UndecidedPlace, set: &UndecidedSet, tags: usize) {
        self.headers[place.set] =
            SetHeader { rank: set.rank, tags: tags as u32, words: set.words.len() as u32 };
        self.sketches.copy_within(set.words.clone(), place.word);
        *place = place.after(tags, set.words.len());
    }

    /// Removes all sets from `place` on.
    pub(super) fn truncate(&mut self, place: UndecidedPlace) {
        self.headers.truncate(place.set);
        self.tags.truncate(place.tag);
        self.sketches.truncate(place.word);
    }

    /// Drops the tags that only one set has, and the sets without other tags: near sets have a tag in common. Uses a table
    /// of at most `memory` bytes, more than once if many tags collide in it. `check` returns an error to stop the work.
    pub(super) fn drop_lonely(
        &mut self,
        memory: usize,
        threads: usize,
        check: impl Fn() -> Result<()> + Sync,
    ) -> Result<()> {
        for round in 1..=ROUNDS {
            let before = self.tags.len();
            let cells = Cells::new(before as u64, CELLS, memory, 0, round);
            let tags = &self.tags[..];
            let pieces: Vec<_> = cut(0..before, (PIECE, u64::MAX), |_| 0).collect();
            let mut adders: Vec<_> = (0..threads.max(1)).map(|_| CellAdder::new(&cells)).collect();
            on_threads(&mut adders, &pieces, |adder, piece| {
                check()?;
                tags[piece.clone()].iter().for_each(|&tag| adder.add(tag.into()));
                Ok(())
            })?;
            adders.into_iter().for_each(CellAdder::finish);
            self.keep_tags(&cells, &check)?;
            let is_exact = cells.count() >= CELLS * before as u64 / 2;
            if is_exact || WORTH * (before - self.tags.len()) < before {
                break;
            }
        }
        Ok(())
    }

    /// Drops the tags that are alone in their cells, and the sets without other tags.
    fn keep_tags(&mut self, cells: &Cells, check: impl Fn() -> Result<()>) -> Result<()> {
        let (mut from, mut to) = (UndecidedPlace::default(), UndecidedPlace::default());
        while let Some(set) = self.next(&mut from) {
            if from.set.is_multiple_of(1 << 12) {
                check()?;
            }
            let tags = &mut self.tags[..];
            let mut kept = to.tag;
            for at in set.tags.clone() {
                let tag = tags[at];
                if let Some(&later) = tags.get(at + AHEAD) {
                    cells.fetch(later.into());
                }
                tags[kept] = tag;
                kept += usize::from(!cells.is_alone(tag.into()));
            }
            if kept > to.tag {
                let tags = kept - to.tag;
                self.put(&mut to, &set, tags);
            }
        }
        self.truncate(to);
        Ok(())
    }
}

impl UndecidedPlace {
    /// Returns the position after a set at this position.
    fn after(self, tags: usize, words: usize) -> Self {
        Self { set: self.set + 1, tag: self.tag + tags, word: self.word + words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns ranks, tags and sketches.
    fn all(undecided: &Undecided) -> Vec<(u32, Vec<u32>, Vec<u64>)> {
        let mut place = UndecidedPlace::default();
        std::iter::from_fn(|| undecided.next(&mut place))
            .map(|set| (set.rank, undecided.tags(&set).to_vec(), undecided.sketch(&set).to_vec()))
            .collect()
    }

    #[test]
    fn tags_of_one_set_are_dropped_whatever_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        for budget in [0, 1 << 20] {
            for memory in [64, 1 << 10, 1 << 20] {
                let mut undecided = Undecided::new(&MemoryBudget::new(dir.path(), budget));
                for rank in 0..1000_u32 {
                    // Sets 3 n and 3 n + 1 share a tag; other tags are in one set only.
                    let shared = (rank % 3 < 2).then_some(1_000_000 + rank / 3);
                    let tags = (rank * 10..rank * 10 + rank % 10).chain(shared);
                    let mut piece = UndecidedPiece::default();
                    piece.push(rank, tags, &vec![u64::from(rank); (rank % 4) as usize]);
                    undecided.append(&piece).unwrap();
                }
                let before = all(&undecided);
                undecided.drop_lonely(memory, 2, || Ok(())).unwrap();
                let left = all(&undecided);
                for (rank, tags, sketch) in &before {
                    let now = left.iter().find(|set| set.0 == *rank);
                    assert!(now.is_some() || rank % 3 == 2 || *rank == 999, "{rank}");
                    if let Some((_, few, same)) = now {
                        assert!(same == sketch && few.iter().all(|tag| tags.contains(tag)));
                        assert!(rank % 3 == 2 || *rank == 999 || few.contains(tags.last().unwrap()));
                    }
                }
                if memory == 1 << 20 {
                    let tags: usize = left.iter().map(|set| set.1.len()).sum();
                    assert!(left.len() < 900 && tags < 2500, "{} {tags}", left.len());
                }
            }
        }
    }

    #[test]
    fn sets_that_are_moved_to_the_front_are_left_after_truncation() {
        let dir = tempfile::tempdir().unwrap();
        let mut undecided = Undecided::new(&MemoryBudget::new(dir.path(), 100));
        let mut piece = UndecidedPiece::default();
        for rank in 0..100 {
            piece.push(rank, 0..rank % 7, &vec![u64::from(rank); (rank % 5) as usize]);
        }
        undecided.append(&piece).unwrap();
        let mut wanted = all(&undecided);
        wanted.retain(|set| set.0 % 3 == 0);
        let (mut from, mut to) = (UndecidedPlace::default(), UndecidedPlace::default());
        while let Some(set) = undecided.next(&mut from) {
            if set.rank % 3 == 0 {
                undecided.move_to(&mut to, &set);
            }
        }
        undecided.truncate(to);
        assert_eq!((undecided.len(), all(&undecided)), (wanted.len(), wanted));
    }
}
