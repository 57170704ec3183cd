//! Values, fields and stamps: the data that the caller attaches to a document. Their sections store them by ordinal.

use std::ops::Range;

use zerocopy::IntoBytes;

use super::open::Segment;
use super::output::SegmentOutput;
use super::spilled::SliceSource;
use crate::error::{Error, Result, corrupt};
use crate::format::attached::{Stamps, Values};
use crate::format::contents::{Kind, Section};
use crate::format::fields::Fields;
use crate::format::samples::offset_bytes;
use crate::format::wire::{self, Fault};

/// The value, fields and stamp of a record, as its hash covers them; `None` for data that the index does not store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordAttached<'a> {
    pub(super) value: Option<&'a [u8]>,
    pub(super) stamp: Option<u64>,
    pub(super) fields: Option<&'a [u8]>,
}

/// Number of bytes that are collected before they are written.
const CHUNK: usize = 1 << 16;

/// A function that takes a callback, and calls it with an item of each document in the order of ordinals. It can be
/// called repeatedly.
type ItemSource<'a, T> = dyn FnMut(&mut dyn FnMut(T) -> Result<()>) -> Result<()> + 'a;

/// Writes a section of values or fields. `lengths` yields the length of each document's bytes, and is called twice.
/// `values` writes the bytes of all documents.
pub(super) fn write_values(
    out: &mut SegmentOutput,
    (kind, codec): (Kind, u16),
    lengths: &mut ItemSource<'_, u64>,
    values: impl FnOnce(&mut SegmentOutput) -> Result<()>,
) -> Result<()> {
    let mut rows = 0;
    lengths(&mut |length| {
        rows += length;
        Ok(())
    })?;
    let width = offset_bytes(rows) as usize;
    out.section(kind, 0, codec, rows, |out| {
        let (mut next, mut bytes) = (0_u64, Vec::new());
        lengths(&mut |length| {
            bytes.extend_from_slice(&next.to_le_bytes()[..width]);
            next += length;
            if bytes.len() >= CHUNK {
                out.put(&bytes)?;
                bytes.clear();
            }
            Ok(())
        })?;
        bytes.extend_from_slice(&next.to_le_bytes()[..width]);
        out.put(&bytes)?;
        values(out)
    })
}

/// Writes the section of stamps. `stamps` yields the stamp of each document in the order of ordinals, and `order` yields
/// (stamp, ordinal) in ascending order.
pub(super) fn write_stamps(
    out: &mut SegmentOutput,
    layout: Stamps,
    documents: u64,
    stamps: &mut ItemSource<'_, u64>,
    order: &mut impl SliceSource<u128>,
) -> Result<()> {
    out.section(Kind::Stamps, 0, crate::format::attached::CODEC, documents, |out| {
        let mut bytes = layout.head().as_bytes().to_vec();
        stamps(&mut |stamp| {
            layout.encode(stamp, &mut bytes);
            if bytes.len() >= CHUNK {
                out.put(&bytes)?;
                bytes.clear();
            }
            Ok(())
        })?;
        out.put(&bytes)?;
        while let Some(some) = order.next_slice()? {
            for some in some.chunks(CHUNK / 4) {
                bytes.clear();
                bytes.extend(some.iter().flat_map(|&item| (item as u32).to_le_bytes()));
                out.put(&bytes)?;
            }
        }
        Ok(())
    })
}

impl Segment {
    /// Returns the value of a document. Empty if the document has no value, or if the index stores no values.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn value(&self, ordinal: u32) -> Result<&[u8]> {
        let Some(values) = &self.values else { return Ok(&[]) };
        self.bytes_of(values, ordinal)
    }

    /// Returns the fields of a document. Empty if the index stores no fields.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn fields(&self, ordinal: u32) -> Result<Fields<'_>> {
        let Some(fields) = &self.fields else { return Ok(Fields::default()) };
        self.bytes_of(fields, ordinal).map(Fields::of)
    }

    /// Replaces `out` by the set of a document. Leaves `out` empty if the index stores no sets.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn set(&self, ordinal: u32, out: &mut Vec<u64>) -> Result<()> {
        self.fields(ordinal)?.set_into(out).map_err(|fault| self.wrong_fields(ordinal, fault))
    }

    /// Returns the number of hashes that the set of a document shares with `set`; `None` if there are fewer than `min`.
    /// See [`Fields::shared_from`](crate::format::fields::Fields::shared_from).
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn shared_from(
        &self,
        ordinal: u32,
        set: &[u64],
        min: usize,
        scratch: &mut Vec<u64>,
    ) -> Result<Option<usize>> {
        let shared = self.fields(ordinal)?.shared_from(set, min, scratch);
        shared.map_err(|fault| self.wrong_fields(ordinal, fault))
    }

    /// Returns the number of shingle hashes in a document's set; 0 if the index stores no sets.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn set_size(&self, ordinal: u32) -> Result<usize> {
        self.fields(ordinal)?.set_size().map_err(|fault| self.wrong_fields(ordinal, fault))
    }

    /// Creates the error that reports damaged fields of a document.
    #[cold]
    pub(super) fn wrong_fields(&self, ordinal: u32, fault: Fault) -> Error {
        let Some((section, layout)) = &self.fields else {
            return corrupt(self.path(), Kind::Fields.name(), 0, fault);
        };
        let at = self.read(section, layout.offsets(ordinal.into())).ok();
        let at =
            at.and_then(|offsets| layout.range(offsets, ordinal.into()).ok()).map_or(0, |range| range.start);
        self.corrupt_at(section, Fault { offset: at + fault.offset, ..fault })
    }

    fn bytes_of(&self, (section, layout): &(Section, Values), ordinal: u32) -> Result<&[u8]> {
        let ordinal = u64::from(ordinal);
        // Past the last ordinal, value bytes would be misread as offsets. Reads a range past the section instead, which
        // fails.
        let offsets = if ordinal < self.documents() {
            layout.offsets(ordinal)
        } else {
            section.length..section.length + layout.offset_bytes
        };
        let offsets = self.read(section, offsets)?;
        let range = layout.range(offsets, ordinal).map_err(|e| self.corrupt_at(section, e))?;
        self.read(section, range)
    }

    /// Calls `each` with these documents, which must exist, and their fields. Costs less than a call of
    /// [`fields`](Self::fields) per document. Does nothing if the index stores no fields.
    ///
    /// # Errors
    /// Same as [`fields`](Self::fields), or the error that `each` returns.
    #[inline(always)]
    pub(super) fn for_each_fields(
        &self,
        ordinals: Range<u32>,
        mut each: impl FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some((section, layout)) = &self.fields else { return Ok(()) };
        if ordinals.is_empty() {
            return Ok(());
        }
        let (first, last) = (u64::from(ordinals.start), u64::from(ordinals.end - 1));
        let width = layout.offset_bytes as usize;
        let offsets = self.read(section, layout.offsets(first).start..layout.offsets(last).end)?;
        let ends = [offsets.get(..2 * width), offsets.get(offsets.len().saturating_sub(2 * width)..)];
        let wrong = |fault| self.corrupt_at(section, fault);
        let of = |offsets: &[u8], ordinal| layout.range(offsets, ordinal).map_err(wrong);
        let (start, end) =
            (of(ends[0].unwrap_or_default(), first)?.start, of(ends[1].unwrap_or_default(), last)?.end);
        let bytes = self.read(section, start..end)?;
        for (ordinal, offsets) in ordinals.zip(offsets.windows(2 * width).step_by(width)) {
            let range = of(offsets, ordinal.into())?;
            let within = range.start.checked_sub(start).zip(range.end.checked_sub(start));
            let fields = within.and_then(|(from, to)| bytes.get(from as usize..to as usize));
            let outside =
                || wrong(Fault::new(layout.offsets(ordinal.into()).start, "ascending offsets", "others"));
            each(ordinal, fields.ok_or_else(outside)?)?;
        }
        Ok(())
    }

    /// Returns the stamp of a document; `None` if the index stores no stamps.
    ///
    /// # Errors
    /// Same as [`value`](Self::value).
    pub fn stamp(&self, ordinal: u32) -> Result<Option<u64>> {
        let Some((section, layout)) = &self.stamps else { return Ok(None) };
        let ordinal = u64::from(ordinal);
        if ordinal >= self.documents() {
            let fault = Fault::new(0, format!("an ordinal below {}", self.documents()), ordinal);
            return Err(self.corrupt_at(section, fault));
        }
        let bytes = self.read(section, layout.range(ordinal))?;
        layout.decode(bytes, ordinal).map(Some).map_err(|e| self.corrupt_at(section, e))
    }

    /// Returns the ordinal of the document at position `place` of the order by stamp.
    fn stamped_at(&self, place: u64) -> Result<u32> {
        let (section, layout) = self.stamps.as_ref().ok_or_else(|| self.has_no_stamps())?;
        let range = layout.ordinal(place);
        let at = range.start;
        let ordinal = wire::wide(self.read(section, range)?);
        if ordinal >= self.documents() {
            let expected = format!("an ordinal below {}", self.documents());
            return Err(self.corrupt_at(section, Fault::new(at, expected, ordinal)));
        }
        Ok(ordinal as u32)
    }

    /// Returns the number of documents whose stamp is at most `stamp`. O(log n).
    fn stamped_to(&self, stamp: u64) -> Result<u64> {
        let (_, layout) = self.stamps.as_ref().ok_or_else(|| self.has_no_stamps())?;
        // The smallest stamp (`base`) was read when the segment was opened.
        if stamp < layout.base {
            return Ok(0);
        }
        let (mut low, mut high) = (0, self.documents());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.stamp(self.stamped_at(middle)?)? <= Some(stamp) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Calls `each` with each document whose stamp is above `above` (if specified) and at most `to`. If these two are
    /// expiry limits, the documents expire when the limit advances. Takes O(log n), and O(1) for each document.
    ///
    /// # Errors
    /// Same as [`value`](Self::value); also if the segment has no stamps.
    pub(crate) fn stamped_between(
        &self,
        above: Option<u64>,
        to: u64,
        mut each: impl FnMut(u32),
    ) -> Result<()> {
        let end = self.stamped_to(to)?;
        let start = if end == 0 { 0 } else { above.map_or(Ok(0), |above| self.stamped_to(above))? };
        for place in start..end {
            each(self.stamped_at(place)?);
        }
        Ok(())
    }

    /// Returns the stamp of a document. The index must store stamps.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; also if the segment has no stamps.
    pub(super) fn kept_stamp(&self, ordinal: u32) -> Result<u64> {
        self.stamp(ordinal)?.ok_or_else(|| self.has_no_stamps())
    }

    #[cold]
    fn has_no_stamps(&self) -> Error {
        corrupt(self.path(), Kind::Stamps.name(), 0, Fault::new(0, "a section of stamps", "none"))
    }

    /// Returns the value, fields and stamp of a document; `None` for data that the index does not store.
    pub(super) fn attached(&self, ordinal: u32) -> Result<RecordAttached<'_>> {
        let value = if self.values.is_some() { Some(self.value(ordinal)?) } else { None };
        let fields = if self.fields.is_some() { Some(self.fields(ordinal)?.bytes()) } else { None };
        Ok(RecordAttached { value, stamp: self.stamp(ordinal)?, fields })
    }

    /// Checks the sections of this module for [`verify`](Self::verify): the offsets of values and fields start at 0 and end
    /// at the number of bytes; base and width of the stamps are the smallest possible; the order of stamps ascends and has
    /// each ordinal once.
    pub(super) fn verify_attached(&self) -> Result<()> {
        for values in [&self.values, &self.fields].into_iter().flatten() {
            let (section, layout) = values;
            for (ordinal, expected) in [(0, 0), (self.documents(), section.rows)] {
                let at = layout.offsets(ordinal).start;
                let found = wire::wide(self.read(section, at..at + layout.offset_bytes)?);
                if found != expected {
                    return Err(self.corrupt_at(section, Fault::new(at, format!("offset {expected}"), found)));
                }
            }
            for ordinal in 0..self.documents() as u32 {
                self.bytes_of(values, ordinal)?;
            }
        }
        let Some((section, layout)) = &self.stamps else { return Ok(()) };
        let (mut last, mut min): (Option<(u64, u32)>, Option<u64>) = (None, None);
        for place in 0..self.documents() {
            let ordinal = self.stamped_at(place)?;
            let stamp = self.kept_stamp(ordinal)?;
            min = min.or(Some(stamp));
            if last >= Some((stamp, ordinal)) {
                let found = format!("document {ordinal} of {stamp}");
                let at = layout.ordinal(place).start;
                return Err(self.corrupt_at(section, Fault::new(at, format!("one after {last:?}"), found)));
            }
            last = Some((stamp, ordinal));
        }
        let max = last.map_or(0, |(stamp, _)| stamp);
        let expected = Stamps::spanning(min.unwrap_or(0), max, self.documents());
        if expected == *layout {
            return Ok(());
        }
        let found = format!("{layout:?}");
        Err(self.corrupt_at(section, Fault::new(0, format!("the least layout, {expected:?}"), found)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Key;
    use crate::params::Params;
    use crate::segment::build::build;
    use crate::segment::records::{Kept, Records};
    use crate::sys::RealVfs;

    /// Builds a segment of three documents, with stamps 10, 20 and 30 or without stamps.
    fn segment(stamped: bool) -> (tempfile::TempDir, Segment) {
        let params = Params::builder().u64_keys().simhash(3);
        let params = if stamped { params.expire_after(5) } else { params }.build().unwrap();
        let mut records = Records::new(&params);
        for key in 1..=3 {
            let kept = Kept { fingerprint: key, ..Kept::default() };
            let attached = crate::format::attached::Attached {
                stamp: stamped.then_some(10 * key),
                ..Default::default()
            };
            records.push_with(Key::U64(key), Some(kept), attached).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.seg");
        build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
        let segment = Segment::open(&RealVfs, Path::new(&path)).unwrap();
        (dir, segment)
    }

    #[test]
    fn reading_a_missing_stamp_is_an_error() {
        let between = |segment: &Segment, above, to| {
            let mut found = Vec::new();
            segment.stamped_between(above, to, |ordinal| found.push(ordinal)).map(|()| found)
        };
        let (_dir, stamped) = segment(true);
        assert_eq!(stamped.kept_stamp(1).unwrap(), 20);
        assert_eq!(between(&stamped, Some(10), 30).unwrap(), [1, 2]);
        assert_eq!(between(&stamped, None, 9).unwrap(), [0; 0]);
        let (_dir, plain) = segment(false);
        assert_eq!(plain.stamp(1).unwrap(), None);
        let refused = [
            plain.kept_stamp(1).map(drop),
            between(&plain, None, 30).map(drop),
            plain.stamped_at(0).map(drop),
        ];
        for refused in refused {
            let Err(Error::Corrupt { section, expected, found, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(
                (section, expected.as_str(), found.as_str()),
                ("stamps", "a section of stamps", "none")
            );
        }
    }
}
