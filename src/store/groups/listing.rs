//! All groups of a snapshot: a table with the leader of each document.

use std::collections::BTreeMap;

use super::near::GroupRule;
use super::order::{NONE, Numbering};
use crate::error::Result;
use crate::extsort::Merge;
use crate::key::{Key, KeyBuf};
use crate::segment::keys::LiveKeys;
use crate::store::known_leaders::DocRef;
use crate::store::snapshot::Snapshot;
use crate::sys::column::{Column, MemoryBudget};

/// All groups of a snapshot, returned by [`Snapshot::groups`].
#[derive(Debug)]
pub struct Groups {
    pub(super) numbers: Numbering,
    rule: GroupRule,
    /// The leader of each document, indexed by document number; `NONE` for documents that are not live.
    leaders: Column<u32>,
    /// The group size of each leader, indexed by document number; 0 for documents that are not leaders.
    sizes: Column<u32>,
    count: u64,
    pub(super) questions: u64,
}

impl Groups {
    /// Creates a listing of the documents of a snapshot in which no document has a leader yet.
    pub(super) fn undecided(snapshot: &Snapshot, budget: &MemoryBudget) -> Result<Self> {
        let numbers = Numbering::of(snapshot)?;
        let documents = numbers.documents() as usize;
        Ok(Self {
            numbers,
            rule: snapshot.group_rule()?,
            leaders: Column::filled(budget, documents, NONE)?,
            sizes: Column::filled(budget, documents, 0)?,
            count: 0,
            questions: 0,
        })
    }

    pub(super) fn is_undecided(&self, number: u32) -> bool {
        self.leaders[number as usize] == NONE
    }

    /// Makes a document a leader if it has no leader yet. Returns its leader. All documents that precede it by priority
    /// must have a leader.
    pub(super) fn take_turn(&mut self, number: u32) -> u32 {
        let leader = &mut self.leaders[number as usize];
        if *leader == NONE {
            *leader = number;
        }
        *leader
    }

    /// Adds a document to the group of a leader near it, unless the document has a leader already.
    pub(super) fn belong(&mut self, number: u32, leader: u32) {
        let its = &mut self.leaders[number as usize];
        if *its == NONE {
            *its = leader;
        }
    }

    /// Computes the number of groups and their sizes, when every live document has a leader.
    pub(super) fn count_members(&mut self) {
        let (leaders, sizes) = (&self.leaders[..], &mut self.sizes[..]);
        for (number, &leader) in (0..).zip(leaders).filter(|&(_, &leader)| leader != NONE) {
            sizes[leader as usize] += 1;
            self.count += u64::from(leader == number);
        }
    }

    /// Returns the rule that decides which documents are near.
    #[must_use]
    pub fn rule(&self) -> GroupRule {
        self.rule
    }

    /// Returns the number of groups, including groups of one document.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of queries for near documents; 0 if the groups were computed from the near pairs of a join.
    /// It depends on the number of threads and on the memory budget.
    #[must_use]
    pub fn questions(&self) -> u64 {
        self.questions
    }

    /// Returns, for each group size that occurs, the number of groups of this size.
    #[must_use]
    pub fn sizes(&self) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        for &size in self.sizes.iter().filter(|&&size| size > 0) {
            *counts.entry(size).or_insert(0) += 1;
        }
        counts
    }

    /// Returns the key of a live document's leader and the size of its group; `None` if there is no such document.
    ///
    /// # Errors
    /// Same as [`Snapshot::get`].
    pub fn leader<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<(KeyBuf, u32)>> {
        let key = key.into();
        key.check(self.numbers.snapshot.params().key)?;
        for (part, (segment, deleted)) in (0..).zip(self.numbers.snapshot.segments()) {
            let found = segment.find(key)?.filter(|&ordinal| !deleted.contains(ordinal));
            segment.check_map()?;
            if let Some(ordinal) = found {
                let leader = self.leaders[self.numbers.number(DocRef { part, ordinal }) as usize];
                return Ok(Some((self.numbers.key(leader)?, self.sizes[leader as usize])));
            }
        }
        Ok(None)
    }

    /// Calls `each` for each live document whose group has at least `min_size` documents, in the order of keys. The
    /// arguments are the key of the document, the key of its leader, and the size of the group.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error that `each` returns.
    pub fn for_each(
        &self,
        min_size: u32,
        mut each: impl FnMut(Key<'_>, Key<'_>, u32) -> Result<()>,
    ) -> Result<()> {
        let segments: Vec<_> = self.numbers.snapshot.segments().collect();
        let sources = segments.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
        // Each key is live in at most one segment, so no key is passed twice.
        let mut merge = Merge::new(sources, Ord::cmp);
        while let Some((of, (key, ordinal))) = merge.next()? {
            let number = self.numbers.number(DocRef { part: of as u32, ordinal: *ordinal });
            let leader = self.leaders[number as usize];
            let size = self.sizes[leader as usize];
            if size < min_size {
                continue;
            }
            segments[of].0.check_map()?;
            if leader == number {
                each(key.as_key(), key.as_key(), size)?;
                continue;
            }
            let place = self.numbers.place(leader);
            let segment = segments[place.part as usize].0;
            let leading = segment.key(place.ordinal)?;
            segment.check_map()?;
            each(key.as_key(), leading.as_key(), size)?;
        }
        segments.iter().try_for_each(|(segment, _)| segment.check_map())
    }
}
