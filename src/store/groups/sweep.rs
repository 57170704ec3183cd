//! All leaders at once, in the order of priority: a document with no near leader before it leads, and all near
//! documents without a leader belong to it. One query for each leader decides everything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::answer::Resources;
use super::near::{GroupRule, Neighbourhood};
use crate::error::{Error, Result};
use crate::extsort::{Merge, Sorter};
use crate::key::{Key, KeyBuf};
use crate::segment::Segment;
use crate::segment::keys::LiveKeys;
use crate::store::known_leaders::DocRef;
use crate::store::snapshot::Snapshot;
use crate::sys::column::{Column, Room};

/// The value for "no leader yet".
const NONE: u32 = u32::MAX;
/// Documents for which each thread queries in one round. If one of them leads others of the round, the queries of the
/// others were wasted, so there are few.
const TOGETHER: usize = 32;

/// All groups of a snapshot: made by [`Snapshot::groups`].
#[derive(Debug)]
pub struct Groups {
    snapshot: Snapshot,
    rule: GroupRule,
    /// The number of the first document of each segment.
    bases: Vec<u32>,
    /// The leader of each document, by number; none for documents that are not live.
    leaders: Column<u32>,
    /// The size of each leader's group, by the leader's number.
    sizes: Column<u32>,
    count: u64,
    questions: u64,
}

/// The state of the sweep.
struct Sweep<'a> {
    around: &'a Neighbourhood,
    groups: &'a mut Groups,
    threads: usize,
    /// Documents without a leader that wait for their query, in their order.
    waiting: Vec<u32>,
}

impl Groups {
    pub(super) fn of(snapshot: &Snapshot, resources: &Resources<'_>) -> Result<Self> {
        let room = Room::new(resources.dir, resources.memory / 2);
        let around = Neighbourhood::of_segments(snapshot, &room)?;
        let (mut bases, mut documents) = (Vec::new(), 0_u64);
        for (segment, _) in snapshot.segments() {
            bases.push(documents as u32);
            documents += segment.documents();
            if documents >= u64::from(NONE) {
                return Err(Error::Limit {
                    what: "documents of a listing of groups",
                    limit: NONE.into(),
                    found: documents,
                });
            }
        }
        let mut sorter: Sorter<[u64; 4]> = Sorter::new(resources.dir, resources.memory / 4);
        for ((segment, deleted), &base) in snapshot.segments().zip(&bases) {
            let mut done = Ok(());
            let priorities = segment.params().priorities;
            let mut add = |ordinal: u32, key: Key<'_>| {
                let number = if priorities { segment.fields(ordinal)?.priority() } else { None };
                let place = u64::from(base + ordinal);
                sorter.push([number.unwrap_or(u64::MAX), key.priority_hash(), place, 0])
            };
            segment.for_each_key(|ordinal, key| {
                if done.is_ok() && !deleted.contains(ordinal) {
                    done = add(ordinal, key);
                }
            })?;
            done?;
            segment.check_map()?;
        }
        let count = documents as usize;
        let mut groups = Self {
            snapshot: snapshot.clone(),
            rule: snapshot.group_rule()?,
            bases,
            leaders: Column::filled(&room, count, NONE)?,
            sizes: Column::filled(&room, count, 0)?,
            count: 0,
            questions: 0,
        };
        let threads = resources.threads.max(1);
        let mut sweep = Sweep { around: &around, groups: &mut groups, threads, waiting: Vec::new() };
        // Documents of equal priority and equal key hash are rare; they are sorted by key.
        let mut same: Vec<u32> = Vec::new();
        let mut last = None;
        sorter.finish()?.for_each(|[number, hash, place, _]| {
            if last.replace((number, hash)) != Some((number, hash)) {
                sweep.take_all(&mut same)?;
            }
            same.push(place as u32);
            Ok::<(), Error>(())
        })?;
        sweep.take_all(&mut same)?;
        sweep.ask()?;
        Ok(groups)
    }

    /// The segment and the ordinal of a document number.
    fn place(&self, number: u32) -> DocRef {
        let part = self.bases.partition_point(|&base| base <= number) - 1;
        DocRef { part: part as u32, ordinal: number - self.bases[part] }
    }

    fn number(&self, of: DocRef) -> u32 {
        self.bases[of.part as usize] + of.ordinal
    }

    /// The rule by which documents are near.
    #[must_use]
    pub fn rule(&self) -> GroupRule {
        self.rule
    }

    /// The number of groups, including those of one document.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of queries for near documents; depends on the number of threads.
    #[must_use]
    pub fn questions(&self) -> u64 {
        self.questions
    }

    /// The number of groups of each size.
    #[must_use]
    pub fn sizes(&self) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        for &size in self.sizes.iter().filter(|&&size| size > 0) {
            *counts.entry(size).or_insert(0) += 1;
        }
        counts
    }

    /// The leader's key of a live document, and the size of its group; `None` if there is no such document.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn leader<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<(KeyBuf, u32)>> {
        let key = key.into();
        key.check(self.snapshot.params().key)?;
        for (part, (segment, deleted)) in (0..).zip(self.snapshot.segments()) {
            let found = segment.find(key)?.filter(|&ordinal| !deleted.contains(ordinal));
            segment.check_map()?;
            if let Some(ordinal) = found {
                let leader = self.leaders[self.number(DocRef { part, ordinal }) as usize];
                let place = self.place(leader);
                let segments: Vec<&Segment> = self.snapshot.segments().map(|(segment, _)| segment).collect();
                let key = segments[place.part as usize].key(place.ordinal)?;
                return Ok(Some((key, self.sizes[leader as usize])));
            }
        }
        Ok(None)
    }

    /// Passes each live document whose group has at least `min_size` documents to `each`, in the order of keys: its
    /// key, the key of its leader, and the size of the group.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or what `each` returns.
    pub fn for_each(
        &self,
        min_size: u32,
        mut each: impl FnMut(Key<'_>, Key<'_>, u32) -> Result<()>,
    ) -> Result<()> {
        let segments: Vec<_> = self.snapshot.segments().collect();
        let sources = segments.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
        // No key is live in two segments.
        let mut merge = Merge::new(sources, Ord::cmp);
        while let Some((of, (key, ordinal))) = merge.next()? {
            let number = self.number(DocRef { part: of as u32, ordinal: *ordinal });
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
            let place = self.place(leader);
            let segment = segments[place.part as usize].0;
            let leading = segment.key(place.ordinal)?;
            segment.check_map()?;
            each(key.as_key(), leading.as_key(), size)?;
        }
        segments.iter().try_for_each(|(segment, _)| segment.check_map())
    }
}

impl Sweep<'_> {
    /// Adds documents of equal rank, the next in order.
    fn take_all(&mut self, same: &mut Vec<u32>) -> Result<()> {
        if same.len() > 1 {
            let mut documents: Vec<DocRef> = same.iter().map(|&number| self.groups.place(number)).collect();
            self.around.sort_by_key(&mut documents)?;
            for (number, document) in same.iter_mut().zip(documents) {
                *number = self.groups.number(document);
            }
        }
        for number in same.drain(..) {
            if self.groups.leaders[number as usize] == NONE {
                self.waiting.push(number);
            }
        }
        // A single thread wastes no query.
        let together = if self.threads == 1 { 1 } else { TOGETHER * self.threads };
        if self.waiting.len() >= together { self.ask() } else { Ok(()) }
    }

    /// Queries for all waiting documents; those without a leader when their turn comes become leaders.
    fn ask(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let found = self.near_all(&waiting)?;
        self.groups.questions += waiting.len() as u64;
        for (leader, near) in waiting.into_iter().zip(found) {
            if self.groups.leaders[leader as usize] != NONE {
                continue;
            }
            self.groups.count += 1;
            self.groups.leaders[leader as usize] = leader;
            let mut size = 1;
            for number in near {
                let its = &mut self.groups.leaders[number as usize];
                if *its == NONE {
                    *its = leader;
                    size += 1;
                }
            }
            self.groups.sizes[leader as usize] = size;
        }
        Ok(())
    }

    /// For each of these, the near documents without a leader.
    fn near_all(&self, waiting: &[u32]) -> Result<Vec<Vec<u32>>> {
        let near = |number: u32| {
            let mut near = Vec::new();
            let has_none = |document| self.groups.leaders[self.groups.number(document) as usize] == NONE;
            self.around.for_each_near(
                self.groups.place(number),
                |document, _| Ok(has_none(document)),
                |document, _| {
                    near.push(self.groups.number(document));
                    Ok(())
                },
            )?;
            Ok(near)
        };
        let threads = self.threads.min(waiting.len());
        if threads < 2 {
            return waiting.iter().map(|&number| near(number)).collect();
        }
        let next = AtomicUsize::new(0);
        let on_one = || {
            let mut found = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(&number) = waiting.get(place) else { return found };
                let result = near(number);
                if result.is_err() {
                    next.store(waiting.len(), Ordering::Relaxed);
                }
                found.push((place, result));
            }
        };
        let mut all: Vec<(usize, Result<Vec<u32>>)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(on_one)).collect();
            let mut all = on_one();
            for worker in workers {
                match worker.join() {
                    Ok(found) => all.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        });
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, result)| result).collect()
    }
}
