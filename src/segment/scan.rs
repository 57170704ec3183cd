//! Scans of a whole segment, in the order of table 1.

use std::ops::Range;

use zerocopy::little_endian::U32;
use zerocopy::IntoBytes;

use super::open::{Fingerprints, Segment};
use crate::error::Result;

use crate::format::postings::{self, LIST, Posting};
use crate::format::ranks;
use crate::format::table::planes::Walk;
use crate::format::table::{Layout, Source};
use crate::format::wire::{self, Fault};
use twindex_kernel::{prefetch, prefetch_ahead};

impl Segment {
    /// Hands all distinct fingerprints to `each` with their ranks, ascending.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
    pub fn for_each_fingerprint(&self, mut each: impl FnMut(u32, u64) -> Result<()>) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let table = &fingerprints.tables.all[0];
        let source = self.at(&table.section);
        table.layout.for_each(source, |row, fingerprint| each(row as u32, fingerprint))
    }

    /// Divides the distinct fingerprints into at most `max` stretches that can be read in parallel.
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

    /// Reads the fingerprints of a stretch; they ascend, and their number is its number of rows.
    ///
    /// # Errors
    /// As [`for_each_slice_of`](Self::for_each_slice_of).
    pub fn read_fingerprints(&self, stretch: &FingerprintStretch, mut to: &mut [u64]) -> Result<()> {
        self.for_each_slice_of(stretch, |keys| {
            let target = std::mem::take(&mut to);
            let (now, rest) = target.split_at_mut(keys.len().min(target.len()));
            now.copy_from_slice(&keys[..now.len()]);
            to = rest;
            Ok(())
        })
    }

    /// Hands the fingerprints of a stretch to `each`, several at a time; they ascend, and their number is its number of
    /// rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
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

    /// Hands the rows of a table, numbered from 1, to `each`, ascending: keys of a complete table, or what a partial
    /// table is [sorted by](crate::format::table::Filter::value). Nothing if there is no such table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
    pub fn for_each_table_row(&self, table: usize, each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let tables = self.fingerprints.as_ref().map(|fingerprints| &fingerprints.tables.all);
        let Some(table) = tables.and_then(|all| all.get(table.checked_sub(1)?)) else { return Ok(()) };
        table.layout.for_each(self.at(&table.section), each)
    }

    /// Hands these ordinals and their ranks to `each`, ascending: as [`rank`](Self::rank), with less work for each.
    ///
    /// # Errors
    /// As [`rank`](Self::rank), or what `each` returns.
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

    /// All postings, for callers that need many.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt): of a file that is mapped or in memory, all pages are checked.
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

    /// Checks the pages of part `part` of `parts` of the postings that [`held_postings`](Self::held_postings) then
    /// keeps available.
    pub fn check_postings(&self, part: usize, parts: usize) -> Result<()> {
        let Some(Fingerprints { postings: section, .. }) = &self.fingerprints else { return Ok(()) };
        if self.file.whole().is_empty() {
            return Ok(());
        }
        let place = |part: usize| (u128::from(section.length) * part as u128 / parts as u128) as u64;
        self.read(section, place(part)..place(part + 1)).map(drop)
    }

    /// A reader of postings by ascending ranks.
    pub(super) fn postings_in_order(&self) -> PostingsInOrder<'_> {
        PostingsInOrder { segment: self, start: 0, bytes: &[] }
    }
}

/// A stretch of the distinct fingerprints of a segment.
#[derive(Clone, Debug)]
pub struct FingerprintStretch {
    /// The range of ranks.
    pub rows: Range<u64>,
    /// The position at which reading begins; `None` if rows can only be read from the first on.
    walk: Option<Walk>,
}

/// The postings of a segment: available if the file is mapped or in memory, otherwise read on demand.
#[derive(Clone, Copy, Debug)]
pub struct HeldPostings<'a> {
    segment: &'a Segment,
    entries: &'a [U32],
    lists: &'a [U32],
    /// Documents of the segment.
    documents: u32,
}

impl<'a> HeldPostings<'a> {
    /// Prefetches what [`only`](Self::only) of this rank reads.
    #[inline(always)]
    pub fn hint(self, rank: u32) {
        prefetch(self.entries.as_bytes(), postings::range(rank.into()).start as usize);
    }

    /// Prefetches the list of this rank if it has one; its entry must be there already.
    #[inline(always)]
    pub fn hint_list(self, rank: u32) {
        let entry = self.entries.get(rank as usize).map_or(0, |entry| entry.get());
        // Without a branch, which would be mispredicted too often.
        let place = if entry & LIST == 0 { 0 } else { entry & !LIST };
        prefetch(self.lists.as_bytes(), place as usize * size_of::<U32>());
    }

    /// The document of this rank if it is available and the only one; otherwise `None`, and
    /// [`documents`](Self::documents) decides.
    #[inline(always)]
    #[must_use]
    pub fn only(self, rank: u32) -> Option<u32> {
        // The start of a list is encoded as a number above any ordinal.
        self.entries.get(rank as usize).map(|entry| entry.get()).filter(|&entry| entry < self.documents)
    }

    /// Replaces `ordinals` by those of the documents of this rank, ascending.
    ///
    /// # Errors
    /// As [`Segment::postings`].
    #[inline]
    pub fn documents(self, rank: u32, ordinals: &mut Vec<u32>) -> Result<()> {
        ordinals.clear();
        if self.several(rank, ordinals) {
            return Ok(());
        }
        ordinals.clear();
        self.segment.postings(rank, |ordinal| ordinals.push(ordinal))
    }

    /// Adds the documents of this rank if there are several, and they are available and valid.
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

    /// Hands the fingerprints of those of these ranks that several documents have to `each`, by rank and with the
    /// ordinals, ascending. As [`Segment::postings`], with almost no work for all other ranks.
    ///
    /// # Errors
    /// As [`Segment::postings`], or what `each` returns.
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
            // Collected first: a branch for each would be mispredicted too often.
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

/// Lists after the current one that are prefetched.
const LISTS_AHEAD: usize = 4;
/// Entries read together.
const TOGETHER: u64 = 1 << 10;

/// As [`Segment::postings`], with less work for each of many ascending ranks.
pub(super) struct PostingsInOrder<'a> {
    segment: &'a Segment,
    /// The rank of the first of the current entries.
    start: u64,
    bytes: &'a [u8],
}

impl PostingsInOrder<'_> {
    /// As [`Segment::postings`].
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
        // Lists, and damaged entries.
        let mut result = Ok(());
        self.segment.postings(rank, |ordinal| {
            if result.is_ok() {
                result = each(ordinal);
            }
        })?;
        result
    }

    /// The entries of ranks from `rank` on, for callers that decode them themselves: at least one, at most `max`.
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
