//! A common interface for queries on segments and memtables, the two kinds of parts of an index.

use std::ops::ControlFlow;

use roaring::RoaringBitmap;

use super::memory::MemtablePart;
use crate::design::DesignChoice;
use crate::error::{Error, Result};
use crate::format::bands;
use crate::format::fields::unread;
use crate::key::{Key, KeyBuf};
use crate::segment::ahead::ReadNext;
use crate::segment::{SearchOptions, SearchScratch, Segment};
use twindex_sketch::Code;

/// A segment or a memtable of an index. Ordinals identify the documents within the part.
pub(super) enum IndexPart<'a> {
    Segment { segment: &'a Segment, deleted: &'a RoaringBitmap },
    Memory(MemtablePart<'a>),
}

impl IndexPart<'_> {
    /// Calls [`Segment::check_map`] for a segment. Callers must do this before they use the result of a read.
    pub(super) fn check_map(&self) -> Result<()> {
        match self {
            Self::Segment { segment, .. } => segment.check_map(),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Calls `each` with the ordinal and the distance of each live document within the radius, until `each` returns `Break`.
    /// Returns the number of skipped buckets.
    pub(super) fn search(
        &self,
        code: &Code,
        ask: SearchOptions,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(u32, u32) -> ControlFlow<()>,
    ) -> Result<u64> {
        match self {
            Self::Segment { segment, deleted } => {
                let hit = |_, ordinal, distance| {
                    if deleted.contains(ordinal) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    Ok(each(ordinal, distance))
                };
                if segment.params().codes.is_some() {
                    return segment.search_codes(&[*code], ask.within, hit).map(|()| 0);
                }
                segment.search_documents(&[code.words()[0]], ask, scratch, hit)?;
                Ok(scratch.left_out())
            }
            Self::Memory(memory) => {
                let mut near = Vec::new();
                memory_within(memory, code, ask.within, |row, distance| near.push((row, distance)))?;
                for (first, distance) in near {
                    for row in memory.equal_rows(first, usize::MAX) {
                        if each(row, distance).is_break() {
                            return Ok(0);
                        }
                    }
                }
                Ok(0)
            }
        }
    }

    /// Calls `each` with the index of the query, the ordinal and the distance of each live document within the radius, in
    /// an index that stores codes.
    pub(super) fn search_codes(
        &self,
        queries: &[Code],
        within: u32,
        mut each: impl FnMut(usize, u32, u32) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Segment { segment, deleted } => {
                segment.search_codes(queries, within, |query, ordinal, distance| {
                    if !deleted.contains(ordinal) {
                        each(query, ordinal, distance)?;
                    }
                    Ok(ControlFlow::Continue(()))
                })
            }
            Self::Memory(memory) => queries.iter().enumerate().try_for_each(|(query, code)| {
                let mut near = Vec::new();
                memory.codes_within(code, within, |row, distance| near.push((row, distance)));
                near.into_iter().try_for_each(|(row, distance)| {
                    let mut equal = memory.equal_rows(row, usize::MAX).into_iter();
                    equal.try_for_each(|row| each(query, row, distance))
                })
            }),
        }
    }

    /// Returns the distance and the place of each fingerprint within the radius. A place is a rank of a segment, its
    /// ordinal if codes are stored, or the first row of a content of a memtable, for [`with_fingerprint`](Self::with_fingerprint). Adds the number of skipped buckets to `unvisited`.
    pub(super) fn fingerprints_within(
        &self,
        code: &Code,
        ask: SearchOptions,
        unvisited: &mut u64,
    ) -> Result<Vec<(u32, u32)>> {
        let mut near = Vec::new();
        match self {
            Self::Segment { segment, .. } if segment.params().codes.is_some() => {
                segment.search_codes(&[*code], ask.within, |_, ordinal, distance| {
                    near.push((distance, ordinal));
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            Self::Segment { segment, .. } => {
                *unvisited += SearchScratch::lend(|scratch| {
                    segment.search(&[code.words()[0]], ask, scratch, |_, found| {
                        near.push((found.distance, found.rank));
                        Ok(ControlFlow::Continue(()))
                    })?;
                    Ok::<u64, Error>(scratch.left_out())
                })?;
                if near.len() > 1 {
                    let ranks: Vec<u32> = near.iter().map(|&(_, rank)| rank).collect();
                    segment.announce_lists(&ranks);
                    segment.check_lists(&ranks)?;
                }
            }
            Self::Memory(memory) => {
                memory_within(memory, code, ask.within, |row, distance| near.push((distance, row)))?;
            }
        }
        Ok(near)
    }

    /// Calls `each` with the documents that have the fingerprint at this place, in ascending order, until it returns `Break`.
    /// A segment also passes deleted documents. A memtable passes the first row of the content.
    pub(super) fn with_fingerprint(
        &self,
        place: u32,
        mut each: impl FnMut(u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match self {
            Self::Segment { segment, .. } if segment.params().codes.is_some() => each(place).map(drop),
            Self::Segment { segment, .. } => {
                let mut done = Ok(());
                segment.postings_until(place, |ordinal| {
                    each(ordinal).unwrap_or_else(|error| {
                        done = Err(error);
                        ControlFlow::Break(())
                    })
                })?;
                done
            }
            Self::Memory(_) => each(place).map(drop),
        }
    }

    /// Returns whether a document of a segment is deleted. False for a row of a memtable, because rows that equal it can be
    /// live.
    pub(super) fn is_deleted(&self, ordinal: u32) -> bool {
        match self {
            Self::Segment { deleted, .. } => deleted.contains(ordinal),
            Self::Memory(_) => false,
        }
    }

    /// Calls `each` with the live documents that equal a document found by a search: in a memtable all such rows, or at
    /// least the `enough` rows with the smallest keys; in a segment this document alone.
    pub(super) fn for_each_equal(
        &self,
        found: u32,
        enough: usize,
        mut each: impl FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Segment { deleted, .. } if deleted.contains(found) => Ok(()),
            Self::Segment { .. } => each(found),
            Self::Memory(memory) => memory.equal_rows(found, enough).into_iter().try_for_each(each),
        }
    }

    /// Calls `each` with each document that has this feature in this band. Deleted documents can be included. A memtable
    /// passes the first row of each content, for [`for_each_equal`](Self::for_each_equal).
    pub(super) fn same_feature(&self, band: usize, feature: u64, each: impl FnMut(u32)) -> Result<()> {
        match self {
            Self::Segment { segment, .. } => segment.same_feature(band, feature, each),
            Self::Memory(memory) => {
                memory.same_feature(band, feature, each);
                Ok(())
            }
        }
    }

    /// Like [`same_feature`](Self::same_feature), but compares only the first `bits` stored bits of the features.
    pub(super) fn same_feature_bits(
        &self,
        band: usize,
        feature: u64,
        bits: u32,
        each: impl FnMut(u32),
    ) -> Result<()> {
        let params = match self {
            Self::Segment { segment, .. } => segment.params(),
            Self::Memory(memory) => memory.params,
        };
        match self {
            _ if bits == bands::bits_of(params) => self.same_feature(band, feature, each),
            Self::Segment { segment, .. } => segment.same_feature_bits(band, feature, bits, each),
            Self::Memory(memory) => {
                memory.same_feature_bits(band, feature, bits, each);
                Ok(())
            }
        }
    }

    /// Prefetches the data that queries for these features will read. `features` has one feature per band. Only
    /// its first `bits` bits are compared.
    pub(super) fn hint_features(&self, features: &[u64], bits: u32) {
        match self {
            Self::Segment { segment, .. } => segment.hint_features(features, bits),
            // If a query compares fewer bits than are stored, it scans all rows, so there is nothing to prefetch.
            Self::Memory(memory) if bits == bands::bits_of(memory.params) => {
                memory.read_set(features.len(), |rows| rows.warm_features(features));
            }
            Self::Memory(_) => {}
        }
    }

    /// Announces data of documents that are read next. Does nothing for a memtable, which is in memory.
    pub(super) fn announce_documents(&self, next: ReadNext, ordinals: impl Iterator<Item = u32> + Clone) {
        if let Self::Segment { segment, .. } = self {
            segment.announce_documents(next, ordinals);
        }
    }

    /// Returns whether a document is marked as a duplicate; false if marks are not stored.
    pub(super) fn is_marked(&self, ordinal: u32) -> Result<bool> {
        match self {
            Self::Segment { segment, .. } => Ok(segment.fields(ordinal)?.is_marked()),
            Self::Memory(memory) => {
                Ok(memory.read(|rows| rows.records().fields(ordinal as usize).is_marked()))
            }
        }
    }

    /// Returns whether marked documents can be near `set`, without reading them. `keys` are the keys under which a segment
    /// finds unmarked documents near the set.
    pub(super) fn may_have_marked(&self, set: &[u64], keys: &[(u32, u32)]) -> Result<bool> {
        match self {
            Self::Segment { segment, .. } => segment.has_marked(keys),
            Self::Memory(memory) => Ok(memory.read_set(set.len(), |rows| rows.may_have_marked(set))),
        }
    }

    /// Returns the sort key of a document in the order of priority; see [`Segment::priority`].
    pub(super) fn order(&self, ordinal: u32) -> Result<[u64; 2]> {
        match self {
            Self::Segment { segment, .. } => segment.priority(ordinal),
            Self::Memory(memory) => memory.read(|rows| {
                let number = rows.records().fields(ordinal as usize).priority().unwrap_or(u64::MAX);
                Ok([number, rows.records().key(ordinal as usize).priority_hash()])
            }),
        }
    }

    pub(super) fn priority(&self, ordinal: u32) -> Result<Option<u64>> {
        match self {
            Self::Segment { segment, .. } => Ok(segment.fields(ordinal)?.priority()),
            Self::Memory(memory) => {
                Ok(memory.read(|rows| rows.records().fields(ordinal as usize).priority()))
            }
        }
    }

    /// Returns the number of shingle hashes in a document's set; 0 if no set is stored.
    pub(super) fn set_size(&self, ordinal: u32) -> Result<usize> {
        match self {
            Self::Segment { segment, .. } => segment.set_size(ordinal),
            Self::Memory(memory) => {
                memory.read(|rows| rows.records().fields(ordinal as usize).set_size()).map_err(unread)
            }
        }
    }

    /// Returns the number of hashes that a document's set shares with `set`; `None` if there are fewer than `min`.
    /// `scratch` is a reusable buffer.
    pub(super) fn shared_from(
        &self,
        ordinal: u32,
        set: &[u64],
        min: usize,
        scratch: &mut Vec<u64>,
    ) -> Result<Option<usize>> {
        match self {
            Self::Segment { segment, .. } => segment.shared_from(ordinal, set, min, scratch),
            Self::Memory(memory) => memory
                .read_set(set.len(), |rows| {
                    rows.records().fields(ordinal as usize).shared_from(set, min, scratch)
                })
                .map_err(unread),
        }
    }

    /// Replaces the contents of `out` with the set of a document; leaves `out` empty if sets are not stored.
    pub(super) fn set(&self, ordinal: u32, out: &mut Vec<u64>) -> Result<()> {
        match self {
            Self::Segment { segment, .. } => segment.set(ordinal, out),
            Self::Memory(memory) => {
                memory.read(|rows| rows.records().set(ordinal as usize, out))?;
                memory.read_set(out.len(), |_| Ok(()))
            }
        }
    }

    pub(super) fn is_live(&self, ordinal: u32) -> bool {
        match self {
            Self::Segment { deleted, .. } => !deleted.contains(ordinal),
            Self::Memory(memory) => memory.is_live(ordinal),
        }
    }

    /// Returns the ordinal of the live document with this key; `None` if there is none.
    pub(super) fn find(&self, key: Key<'_>) -> Result<Option<u32>> {
        let found = match self {
            Self::Segment { segment, .. } => segment.find(key)?,
            Self::Memory(memory) => memory.read(|rows| rows.find(key, memory.limit)),
        };
        Ok(found.filter(|&ordinal| self.is_live(ordinal)))
    }

    pub(super) fn key(&self, ordinal: u32) -> Result<KeyBuf> {
        match self {
            Self::Segment { segment, .. } => segment.key(ordinal),
            Self::Memory(memory) => Ok(memory.read(|rows| rows.records().key(ordinal as usize).to_buf())),
        }
    }

    /// Returns the fingerprint of a document; `None` if it has none, or fingerprints are not stored.
    pub(super) fn code(&self, ordinal: u32) -> Result<Option<Code>> {
        match self {
            Self::Segment { segment, .. } => segment.code(ordinal),
            Self::Memory(memory) => Ok(memory.read(|rows| rows.code(ordinal))),
        }
    }

    /// Replaces the contents of `out` with the stored bits of the features of a memtable row. Returns false if the row
    /// has no sketch, and for a segment, which stores no features per document.
    pub(super) fn features(&self, ordinal: u32, out: &mut Vec<u64>) -> bool {
        out.clear();
        match self {
            Self::Segment { .. } => false,
            Self::Memory(memory) => memory.read(|rows| {
                let (records, row) = (rows.records(), ordinal as usize);
                let is_sketched = records.is_sketched(row);
                if is_sketched {
                    out.extend(records.band_keys(row).iter().map(|&key| u64::from(key) << 32));
                }
                is_sketched
            }),
        }
    }

    /// Returns the stored bits of the features of a document; `None` if it has none. `expected` are the features that it
    /// probably has, one for each band; see [`Segment::features_of`].
    pub(super) fn stored_features(&self, ordinal: u32, expected: &[u64]) -> Result<Option<Vec<u64>>> {
        match self {
            Self::Segment { segment, .. } => segment.features_of(ordinal, expected),
            Self::Memory(_) => {
                let mut features = Vec::new();
                Ok(self.features(ordinal, &mut features).then_some(features))
            }
        }
    }

    #[inline]
    pub(super) fn signature<T>(&self, ordinal: u32, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Self::Segment { segment, .. } => Ok(read(segment.signature(ordinal)?)),
            Self::Memory(memory) => Ok(memory.read(|rows| read(rows.records().signature(ordinal as usize)))),
        }
    }

    /// Returns the value of a document; empty if it has none.
    pub(super) fn value(&self, ordinal: u32) -> Result<Vec<u8>> {
        match self {
            Self::Segment { segment, .. } => Ok(segment.value(ordinal)?.to_vec()),
            Self::Memory(memory) => Ok(memory.read(|rows| rows.records().value(ordinal as usize).to_vec())),
        }
    }

    /// Returns the stamp of a document; `None` if stamps are not stored.
    pub(super) fn stamp(&self, ordinal: u32) -> Result<Option<u64>> {
        match self {
            Self::Segment { segment, .. } => segment.stamp(ordinal),
            Self::Memory(memory) => Ok(memory.read(|rows| rows.records().stamp(ordinal as usize))),
        }
    }

    /// Replaces the contents of `out` with the stored bottom and modular samples of a document.
    pub(super) fn samples(&self, ordinal: u32, out: &mut [Vec<u64>; 2]) -> Result<()> {
        match self {
            Self::Segment { segment, .. } => {
                segment.bottom(ordinal, &mut out[0])?;
                segment.modular(ordinal, &mut out[1])
            }
            Self::Memory(memory) => memory.read(|rows| {
                for (of, out) in out.iter_mut().enumerate() {
                    out.clear();
                    rows.records().sample(ordinal as usize, of, out);
                }
                Ok(())
            }),
        }
    }
}

/// Calls `each` with the first row of each content within the radius and its distance.
fn memory_within(
    memory: &MemtablePart<'_>,
    code: &Code,
    within: u32,
    each: impl FnMut(u32, u32),
) -> Result<()> {
    if memory.params.codes.is_some() {
        memory.codes_within(code, within, each);
    } else {
        check_design(memory, within)?;
        memory.within(code.words()[0], within, each);
    }
    Ok(())
}

/// Refuses a radius that the table design cannot search, even if no segment exists yet.
fn check_design(memory: &MemtablePart<'_>, within: u32) -> Result<()> {
    match memory.params.simhash.map(|simhash| simhash.design) {
        Some(DesignChoice::Named(name)) => name.check_within(within),
        _ => Ok(()),
    }
}
