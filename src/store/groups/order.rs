//! Numbers the documents of a snapshot, and sorts the live ones by priority.

use roaring::RoaringBitmap;

use super::answer::Resources;
use crate::error::{Error, Result};
use crate::extsort::{Sorted, Sorter};
use crate::key::{Key, KeyBuf};
use crate::segment::Segment;
use crate::store::known_leaders::DocRef;
use crate::store::snapshot::Snapshot;
use crate::sys::column::{Column, MemoryBudget};

/// A document number that means "no document".
pub(super) const NONE: u32 = u32::MAX;
/// Flag in the third field of a sort record, above the 32 bits of the document number: has a fingerprint.
const HAS_FINGERPRINT: u64 = 1 << 32;

/// The documents of a snapshot, numbered from 0 in the order of segments and ordinals.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    pub(super) snapshot: Snapshot,
    /// The number of the first document of each segment.
    firsts: Vec<u32>,
    documents: u32,
}

impl Numbering {
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self> {
        let (mut firsts, mut documents) = (Vec::new(), 0_u64);
        for (segment, _) in snapshot.segments() {
            firsts.push(documents as u32);
            documents += segment.documents();
            if documents >= u64::from(NONE) {
                return Err(Error::Limit {
                    what: "documents of a listing of groups",
                    limit: NONE.into(),
                    found: documents,
                });
            }
        }
        Ok(Self { snapshot: snapshot.clone(), firsts, documents: documents as u32 })
    }

    /// Returns the number of documents, including documents that are not live.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// Returns for each segment the number of its first document, the segment, and the deleted documents.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u32, &Segment, &RoaringBitmap)> {
        self.firsts
            .iter()
            .zip(self.snapshot.segments())
            .map(|(&first, (segment, deleted))| (first, segment, deleted))
    }

    pub(super) fn place(&self, number: u32) -> DocRef {
        let part = self.firsts.partition_point(|&first| first <= number) - 1;
        DocRef { part: part as u32, ordinal: number - self.firsts[part] }
    }

    pub(super) fn number(&self, of: DocRef) -> u32 {
        self.firsts[of.part as usize] + of.ordinal
    }

    pub(super) fn key(&self, number: u32) -> Result<KeyBuf> {
        let place = self.place(number);
        let Some((segment, _)) = self.snapshot.segments().nth(place.part as usize) else {
            return Err(Error::Invalid(format!("document {number} of a listing of {}", self.documents)));
        };
        let key = segment.key(place.ordinal)?;
        segment.check_map()?;
        Ok(key)
    }
}

/// The item that [`PriorityOrder::for_each`] passes for each document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) number: u32,
    /// The fingerprint of the document; `None` if it has none, or if fingerprints were not requested.
    pub(super) fingerprint: Option<u64>,
}

/// Documents in the order of priority: by the caller's priority number, then by the hash of the key, then by the key.
pub(super) struct PriorityOrder {
    /// Sort records: priority number, hash of the key, document number with a flag, and fingerprint.
    sorted: Sorted<[u64; 4]>,
}

impl PriorityOrder {
    /// Sorts the live documents for which `is_wanted` returns true. If `fingerprints` is given, also reads their
    /// fingerprints; one segment at a time is read into this memory budget. Sorting uses a quarter of the memory of
    /// `resources`.
    pub(super) fn of(
        numbers: &Numbering,
        resources: &Resources<'_>,
        fingerprints: Option<&MemoryBudget>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Self> {
        let mut sorter = Sorter::new(resources.dir, resources.memory / 4);
        for (first, segment, deleted) in numbers.segments() {
            let by_rank = fingerprints.map(|budget| fingerprints_of(segment, budget)).transpose()?;
            let mut done = Ok(());
            let priorities = segment.params().priorities;
            let mut add = |ordinal: u32, key: Key<'_>| {
                let number = if priorities { segment.fields(ordinal)?.priority() } else { None };
                let (mut document, mut fingerprint) = (u64::from(first + ordinal), 0);
                if let Some(by_rank) = &by_rank
                    && let Some(rank) = segment.rank(ordinal)?
                {
                    let known = by_rank.get(rank as usize).copied();
                    fingerprint = known.map_or_else(|| segment.fingerprint(rank), Ok)?;
                    document |= HAS_FINGERPRINT;
                }
                sorter.push([number.unwrap_or(u64::MAX), key.priority_hash(), document, fingerprint])
            };
            segment.for_each_key(|ordinal, key| {
                if done.is_ok() && !deleted.contains(ordinal) && is_wanted(first + ordinal) {
                    done = add(ordinal, key);
                }
            })?;
            done?;
            segment.check_map()?;
        }
        Ok(Self { sorted: sorter.finish()? })
    }

    /// Calls `each` with each document, in the order of priority.
    pub(super) fn for_each(
        &self,
        numbers: &Numbering,
        mut each: impl FnMut(Turn) -> Result<()>,
    ) -> Result<()> {
        // Documents of equal priority and equal key hash are rare. They are collected and sorted by key.
        let (mut same, mut last) = (Vec::new(), None);
        let mut pass = |same: &mut Vec<Turn>| {
            if same.len() > 1 {
                let keyed = same.drain(..).map(|turn| Ok((numbers.key(turn.number)?, turn)));
                let mut keyed: Vec<(KeyBuf, Turn)> = keyed.collect::<Result<_>>()?;
                keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                same.extend(keyed.into_iter().map(|(_, turn)| turn));
            }
            same.drain(..).try_for_each(&mut each)
        };
        self.sorted.for_each(|[number, hash, document, fingerprint]| {
            if last.replace((number, hash)) != Some((number, hash)) {
                pass(&mut same)?;
            }
            let fingerprint = (document & HAS_FINGERPRINT != 0).then_some(fingerprint);
            same.push(Turn { number: document as u32, fingerprint });
            Ok::<(), Error>(())
        })?;
        pass(&mut same)
    }
}

/// Returns the fingerprints of a segment, indexed by rank.
fn fingerprints_of(segment: &Segment, budget: &MemoryBudget) -> Result<Column<u64>> {
    let mut by_rank = Column::new(budget);
    segment.for_each_fingerprint(|_, fingerprint| by_rank.push(fingerprint))?;
    Ok(by_rank)
}
