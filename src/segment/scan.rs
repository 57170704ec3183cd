//! Scans the fingerprints and the documents of a whole segment, in the order of fingerprints.

use std::ops::Range;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use super::open::{Fingerprints, Segment};
use crate::error::Result;

use crate::format::postings::{self, LIST, Posting};
use crate::format::ranks;
use crate::format::table::planes::Walk;
use crate::format::table::{Layout, Source};
use crate::format::wire::{self, Fault};
use twindex_kernel::{prefetch, prefetch_ahead};

impl Segment {
    /// Calls `each` with the rank and the value of each distinct fingerprint, in ascending order.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error that `each` returns.
    pub fn for_each_fingerprint(&self, mut each: impl FnMut(u32, u64) -> Result<()>) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let table = &fingerprints.tables.all[0];
        let source = self.at(&table.section);
        table.layout.for_each(source, |row, fingerprint| each(row as u32, fingerprint))
    }

    /// Divides the distinct fingerprints into at most `max` ranges of ranks, which can be read in parallel; 0 counts as
    /// 1. Returns none if the index stores no fingerprints.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn fingerprint_stretches(&self, max: usize) -> Result<Vec<FingerprintStretch>> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(Vec::new()) };
        let table = &fingerprints.tables.all[0];
        let Layout::Planes(planes) = &table.layout else {
            let rows = 0..fingerprints.distinct;
            return Ok(vec![FingerprintStretch { rows, walk: None }]);
        };
        let source = self.at(&table.section);
        let (max, buckets) = (max.max(1) as u128, 1_u128 << planes.directory.bits);
        let mut walk = Walk::default();
        let mut all = Vec::new();
        for number in 1..=max {
            let next = planes.walk_from(source, (buckets * number / max) as u64)?;
            if next.row() < walk.row() {
                let expected = format!("ascending rows, {} or more", walk.row());
                return Err(source.corrupt(Fault::new(0, expected, next.row())));
            }
            all.push(FingerprintStretch { rows: walk.row()..next.row(), walk: Some(walk) });
            walk = next;
        }
        Ok(all)
    }

    /// Copies the fingerprints of a stretch to `to`, in ascending order. The length of `to` must be the number of rows.
    ///
    /// # Errors
    /// Same as [`for_each_slice_of`](Self::for_each_slice_of).
    pub fn read_fingerprints(&self, stretch: &FingerprintStretch, mut to: &mut [u64]) -> Result<()> {
        self.for_each_slice_of(stretch, |keys| {
            let target = std::mem::take(&mut to);
            let (now, rest) = target.split_at_mut(keys.len().min(target.len()));
            now.copy_from_slice(&keys[..now.len()]);
            to = rest;
            Ok(())
        })
    }

    /// Calls `each` with the fingerprints of a stretch in ascending order, slice by slice. Together the slices have one
    /// fingerprint for each row of the stretch.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error that `each` returns.
    pub fn for_each_slice_of(
        &self,
        stretch: &FingerprintStretch,
        mut each: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let table = &fingerprints.tables.all[0];
        let source = self.at(&table.section);
        let mut keys = Vec::with_capacity(TOGETHER as usize);
        let (Layout::Planes(planes), Some(mut walk)) = (&table.layout, stretch.walk) else {
            table.layout.for_each(source, |_, fingerprint| {
                keys.push(fingerprint);
                if keys.len() == TOGETHER as usize {
                    each(&keys)?;
                    keys.clear();
                }
                Ok(())
            })?;
            return each(&keys);
        };
        let rows = stretch.rows.end - stretch.rows.start;
        let mut left = rows;
        while left > 0 {
            keys.clear();
            planes.walk(source, &mut walk, left.min(TOGETHER) as usize, &mut keys)?;
            if keys.is_empty() {
                return Err(source.corrupt(Fault::new(0, format!("{rows} rows"), rows - left)));
            }
            each(&keys)?;
            left -= keys.len() as u64;
        }
        Ok(())
    }

    /// Calls `each` with each row number and value of a table (numbered from 1), in ascending order. The values are the keys
    /// of a complete table, or the values by which a partial table is [sorted](crate::format::table::Filter::value). Does
    /// nothing if there is no such table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error that `each` returns.
    pub fn for_each_table_row(&self, table: usize, each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let tables = self.fingerprints.as_ref().map(|fingerprints| &fingerprints.tables.all);
        let Some(table) = tables.and_then(|all| all.get(table.checked_sub(1)?)) else { return Ok(()) };
        table.layout.for_each(self.at(&table.section), each)
    }

    /// Calls `each` with each of these ordinals and its rank, in ascending order. Costs less than a call of
    /// [`rank`](Self::rank) per ordinal.
    ///
    /// # Errors
    /// Same as [`rank`](Self::rank), or the error that `each` returns.
    pub(super) fn for_each_rank(
        &self,
        ordinals: Range<u64>,
        mut each: impl FnMut(u32, Option<u32>) -> Result<()>,
    ) -> Result<()> {
        let Some(Fingerprints { ranks: section, distinct, .. }) = &self.fingerprints else { return Ok(()) };
        for start in ordinals.clone().step_by(TOGETHER as usize) {
            let end = ordinals.end.min(start + TOGETHER);
            let bytes = self.read(section, ranks::range(start).start..ranks::range(end).start)?;
            for (ordinal, bytes) in (start..).zip(bytes.chunks(ranks::RANK_BYTES as usize)) {
                let rank = ranks::decode(bytes, ordinal, *distinct);
                each(ordinal as u32, rank.map_err(|fault| self.corrupt_at(section, fault))?)?;
            }
        }
        Ok(())
    }

    /// Returns a reader that is fast if many postings are read.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt). If the file is mapped or in memory, this call checks the pages of all
    /// postings.
    pub fn held_postings(&self) -> Result<HeldPostings<'_>> {
        let documents = self.documents().min(LIST.into()) as u32;
        let (mut entries, mut lists): (&[U32], &[U32]) = (&[], &[]);
        if let Some(Fingerprints { postings: section, .. }) = &self.fingerprints
            && !self.file.whole().is_empty()
        {
            let rows = postings::range(section.rows).start;
            entries = self.column(section, 0..rows)?;
            lists = self.column(section, rows..section.length)?;
        }
        Ok(HeldPostings { segment: self, entries, lists, documents })
    }

    /// Checks the pages of one of `parts` equal parts of the postings; `part` is its number, from 0. With this, several
    /// threads can check the pages before [`held_postings`](Self::held_postings) is called.
    pub fn check_postings(&self, part: usize, parts: usize) -> Result<()> {
        let Some(Fingerprints { postings: section, .. }) = &self.fingerprints else { return Ok(()) };
        if self.file.whole().is_empty() {
            return Ok(());
        }
        let place = |part: usize| (u128::from(section.length) * part as u128 / parts as u128) as u64;
        self.read(section, place(part)..place(part + 1)).map(drop)
    }

    /// Returns a reader of postings for ranks in ascending order.
    pub(super) fn postings_in_order(&self) -> PostingsInOrder<'_> {
        PostingsInOrder { segment: self, start: 0, bytes: &[] }
    }
}

/// A range of the distinct fingerprints in a segment.
#[derive(Clone, Debug)]
pub struct FingerprintStretch {
    /// The ranks of the fingerprints, which are rows of table 1.
    pub rows: Range<u64>,
    /// The position at which reading starts; `None` if the codec can be read only from the first row on.
    walk: Option<Walk>,
}

/// Reads the postings of a segment: from slices if the file is mapped or in memory, otherwise on demand.
#[derive(Clone, Copy, Debug)]
pub struct HeldPostings<'a> {
    segment: &'a Segment,
    entries: &'a [U32],
    lists: &'a [U32],
    /// The number of documents in the segment.
    documents: u32,
}

impl<'a> HeldPostings<'a> {
    /// Prefetches the entry of a rank, which [`only`](Self::only) reads.
    #[inline(always)]
    pub fn hint(self, rank: u32) {
        prefetch(self.entries.as_bytes(), postings::range(rank.into()).start as usize);
    }

    /// Prefetches the posting list of a rank, if it has one. Call [`hint`](Self::hint) some time before this.
    #[inline(always)]
    pub fn hint_list(self, rank: u32) {
        let entry = self.entries.get(rank as usize).map_or(0, |entry| entry.get());
        // Selects the list without a branch, which would be mispredicted too often.
        let place = if entry & LIST == 0 { 0 } else { entry & !LIST };
        prefetch(self.lists.as_bytes(), place as usize * size_of::<U32>());
    }

    /// Returns the only document of a rank. Returns `None` if the rank has several documents or the postings are not in
    /// memory; then call [`documents`](Self::documents).
    #[inline(always)]
    #[must_use]
    pub fn only(self, rank: u32) -> Option<u32> {
        // An entry that refers to a list is greater than all ordinals.
        self.entries.get(rank as usize).map(|entry| entry.get()).filter(|&entry| entry < self.documents)
    }

    /// Replaces `ordinals` by the documents of a rank, in ascending order.
    ///
    /// # Errors
    /// Same as [`Segment::postings`].
    #[inline]
    pub fn documents(self, rank: u32, ordinals: &mut Vec<u32>) -> Result<()> {
        ordinals.clear();
        if self.several(rank, ordinals) {
            return Ok(());
        }
        ordinals.clear();
        self.segment.postings(rank, |ordinal| ordinals.push(ordinal))
    }

    /// If a valid list of a rank is in memory, appends its documents to `ordinals` and returns true. Otherwise returns
    /// false; `ordinals` may then have some of the documents.
    #[inline]
    fn several(self, rank: u32, ordinals: &mut Vec<u32>) -> bool {
        let Some(list) = self.list(rank) else { return false };
        let mut next = 0;
        for ordinal in list.iter().map(|ordinal| ordinal.get()) {
            if ordinal < next || ordinal >= self.documents {
                return false;
            }
            next = ordinal + 1;
            ordinals.push(ordinal);
        }
        true
    }

    #[inline]
    fn list(self, rank: u32) -> Option<&'a [U32]> {
        let entry = self.entries.get(rank as usize)?.get();
        let (count, rest) = self.lists.get((entry & !LIST) as usize..)?.split_first()?;
        rest.get(..count.get() as usize).filter(|list| entry & LIST != 0 && list.len() > 1)
    }

    /// Calls `each` with each rank of `ranks` that has several documents, and with the ascending ordinals of these
    /// documents. The same as [`Segment::postings`], but with almost no work for ranks with one document.
    ///
    /// # Errors
    /// Same as [`Segment::postings`], or the error that `each` returns.
    pub fn for_each_shared(
        self,
        ranks: Range<u64>,
        mut each: impl FnMut(u32, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let Some(fingerprints) = &self.segment.fingerprints else { return Ok(()) };
        let mut ordinals = Vec::new();
        for start in ranks.clone().step_by(TOGETHER as usize) {
            let end = ranks.end.min(start + TOGETHER);
            let range = postings::range(start).start..postings::range(end).start;
            let entries: &[U32] = self.segment.column(&fingerprints.postings, range)?;
            let length = size_of_val(entries);
            prefetch_ahead(entries.as_bytes(), length, length);
            // Collects the ranks with lists without a branch, which would be mispredicted too often.
            let (mut noted, mut count) = ([0; TOGETHER as usize], 0);
            for (rank, entry) in (start as u32..).zip(entries) {
                noted[count % noted.len()] = rank;
                count += usize::from(entry.get() & LIST != 0);
            }
            for (at, &rank) in noted[..count].iter().enumerate() {
                self.hint_list(noted[(at + LISTS_AHEAD).min(count - 1)]);
                self.documents(rank, &mut ordinals)?;
                each(rank, &ordinals)?;
            }
        }
        Ok(())
    }
}

/// The lists of this number of following ranks are prefetched.
const LISTS_AHEAD: usize = 4;
/// Number of entries that are read at once.
const TOGETHER: u64 = 1 << 10;

/// Reads the same documents as [`Segment::postings`], with less work per rank if many ascending ranks are read.
pub(super) struct PostingsInOrder<'a> {
    segment: &'a Segment,
    /// The rank of the first entry in `bytes`.
    start: u64,
    bytes: &'a [u8],
}

impl PostingsInOrder<'_> {
    /// Calls `each` with the ordinals of the documents of `rank`, as [`Segment::postings`] does.
    #[inline]
    pub(super) fn of(&mut self, rank: u32, mut each: impl FnMut(u32) -> Result<()>) -> Result<()> {
        let place = (u64::from(rank).wrapping_sub(self.start) as usize).saturating_mul(4);
        let Some(entry) = self.bytes.get(place..place.saturating_add(4)) else {
            self.load(rank)?;
            return self.of(rank, each);
        };
        if let Ok(Posting::One(ordinal)) = postings::decode(entry, rank.into(), self.segment.documents()) {
            return each(ordinal);
        }
        // The entry refers to a list or is damaged; `Segment::postings` handles both.
        let mut result = Ok(());
        self.segment.postings(rank, |ordinal| {
            if result.is_ok() {
                result = each(ordinal);
            }
        })?;
        result
    }

    /// Returns the raw entries of ranks from `rank` on: at least one entry, and at most `max`.
    #[inline]
    pub(super) fn entries(&mut self, rank: u32, max: usize) -> Result<&[U32]> {
        let place = (u64::from(rank).wrapping_sub(self.start) as usize).saturating_mul(4);
        if place >= self.bytes.len() {
            self.load(rank)?;
            return self.entries(rank, max);
        }
        let end = self.bytes.len().min(place.saturating_add(max.saturating_mul(4)));
        let start = self.start;
        wire::column(&self.bytes[place..end]).map_err(|mut odd| {
            odd.offset += postings::range(start).start + place as u64;
            match &self.segment.fingerprints {
                Some(fingerprints) => self.segment.corrupt_at(&fingerprints.postings, odd),
                None => Segment::keeps_no_fingerprints(),
            }
        })
    }

    #[cold]
    fn load(&mut self, rank: u32) -> Result<()> {
        let Some(fingerprints) = &self.segment.fingerprints else {
            return Err(Segment::keeps_no_fingerprints());
        };
        let start = u64::from(rank);
        let end = (start + TOGETHER).min(fingerprints.distinct).max(start + 1);
        let range = postings::range(start).start..postings::range(end).start;
        self.bytes = self.segment.read(&fingerprints.postings, range)?;
        self.start = start;
        Ok(())
    }
}
