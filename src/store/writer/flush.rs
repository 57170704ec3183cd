//! Records to segments: a full memtable, and batches that are too large for one.
use std::path::Path;
use std::sync::Arc;

use super::states::{Coming, Owed, Publish};
use super::{Writer, next_number};
use crate::error::{Error, Result};
use crate::format::log::RECORD_BYTES_MAX;
use crate::format::manifest::{SEGMENTS_MAX, SegmentEntry};
use crate::key::Key;
use crate::segment::records::Records;
use crate::segment::rows::Rows;
use crate::segment::spilled::Room;
use crate::segment::{Built, Segment, build};
use crate::store::memtable::{FirstRows, Memtable};
use crate::store::names;
use crate::store::state::open_segment;
use crate::sys::heap::Heap;

/// Segments of a batch that are merged before there are more, where it is to become one.
const MERGED_AT: usize = 64;
/// Rows of a memtable that becomes a segment.
const MEMTABLE_ROWS: u32 = 1 << 18;
/// Bytes of a memtable that becomes a segment.
const MEMTABLE_BYTES: usize = 64 << 20;
/// Rows after which it is looked again whether a memtable is full in the middle of a batch.
const LOOKED_EVERY: u32 = 1024;
/// Bytes of a log that ends, however few rows it has: commits of a payload alone have none. It bounds what there is to
/// be read when the index is opened.
const LOG_BYTES: u64 = 256 << 20;

impl Writer {
    /// True where the memtable has `times` what it should have.
    pub(super) fn is_full(&self, times: usize) -> bool {
        let rows = self.view.table.read();
        rows.len() as usize >= MEMTABLE_ROWS as usize * times
            || rows.len() > 0 && rows.memory() >= MEMTABLE_BYTES.min(self.settings.memory).saturating_mul(times)
    }

    /// True once in a while: what the memtable takes need not be added up for each record. One record can be several
    /// rows, where others expire by it.
    fn is_time_to_look(&mut self) -> bool {
        let is_time = self.settings.memory < MEMTABLE_BYTES || self.view.rows.abs_diff(self.looked_at) >= LOOKED_EVERY;
        if is_time {
            self.looked_at = self.view.rows;
        }
        is_time
    }

    /// True where the log is longer than a memtable makes it.
    pub(super) fn is_log_long(&self) -> bool {
        // guard: a log of payloads alone comes to an end
        // without it: log.end() >= LOG_BYTES -> false
        self.log.as_ref().is_some_and(|log| log.end() >= LOG_BYTES)
    }

    pub(super) fn flush_if_full(&mut self) -> Result<()> {
        if !self.collects() {
            // A batch that does not end by then is a large one, and comes with segments. It must not become a record
            // that no reader takes.
            if self.batch.len() > RECORD_BYTES_MAX as usize / 2 || self.is_time_to_look() && self.is_full(2) {
                return self.guarded(Self::flush_table);
            }
            return Ok(());
        }
        if self.records.memory() < self.settings.memory {
            return Ok(());
        }
        self.guarded(|writer| {
            if writer.settings.one_segment && Rows::can_hold(&writer.params) {
                return writer.set_aside();
            }
            writer.flush_records()?;
            if writer.settings.one_segment && writer.written.len() >= MERGED_AT {
                writer.merge_written()
            } else {
                Ok(())
            }
        })
    }

    /// Moves the records held to a scratch file.
    pub(super) fn set_aside(&mut self) -> Result<()> {
        self.check_process()?; // a child made by fork shares the position in the scratch file
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.settings.memory, &scratch);
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => none.insert(Rows::new(room)?),
        };
        rows.append(&records, room)
    }

    /// Writes the memtable as a segment of the generation to come, which needs no logs then.
    pub(super) fn flush_table(&mut self) -> Result<()> {
        let Some(records) = self.table_records() else { return Ok(()) };
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        drop(records);
        self.empty_table()?;
        self.add(built)
    }

    /// The rows of the memtable, if there are any. Whoever asks them meanwhile does not wait.
    fn table_records(&self) -> Option<Records> {
        let rows = self.view.table.read();
        let first = (rows.len() > 0).then(|| rows.first(rows.len()));
        drop(rows);
        first.map(FirstRows::into_records)
    }

    /// What is in the memtable comes with the generation to come, in a segment.
    pub(super) fn empty_table(&mut self) -> Result<()> {
        self.view.table = Arc::new(Memtable::new(&self.params));
        self.view.count();
        self.batch.clear();
        // What was committed and held back is in the segment, which only comes with this batch; if that does not come,
        // it is in the log.
        if let Some(log) = &mut self.log {
            log.write()?;
        }
        // What was committed and never synced is durable with the segment only.
        if self.log.as_ref().map_or_else(|| self.is_torn(), |log| !log.is_synced()) {
            self.owed = Owed::Sync;
        }
        self.retired = self.log.take().or(self.retired.take());
        if let Some(logged) = &mut self.next.logged {
            logged.logs.clear();
        }
        self.coming = Coming::Changed;
        Ok(())
    }

    /// The memtable as a segment in memory, which is empty then; nothing if it is empty.
    pub(super) fn take_table(&mut self) -> Result<Option<Segment>> {
        let Some(records) = self.table_records() else { return Ok(None) };
        let (heap, path) = (Heap::default(), Path::new("memtable"));
        build::build(&records, &heap, path)?.publish(path)?;
        drop(records);
        self.empty_table()?;
        Segment::from_bytes(heap.take(), path).map(Some)
    }

    /// Writes the records held as a segment of the generation to come.
    pub(super) fn flush_records(&mut self) -> Result<()> {
        if self.rows.is_none() && self.records.is_empty() {
            return Ok(());
        }
        // They are newer than what is in the memtable.
        self.flush_table()?;
        // Also by documents that are deleted again in the same batch, as in the log.
        self.coming.note(self.view.is_to_advance());
        if self.rows.is_some() {
            return self.flush_rows();
        }
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        if !self.view.segments.is_empty() {
            for key in records.keys() {
                self.coming.note(self.view.forget(key)?);
            }
        }
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        drop(records);
        self.add(built)
    }

    /// As [`flush_records`](Self::flush_records), for what waits in a scratch file too.
    pub(super) fn flush_rows(&mut self) -> Result<()> {
        self.set_aside()?;
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.settings.memory.saturating_mul(2), &scratch);
        let (view, coming) = (&mut self.view, &mut self.coming);
        let built = rows.build(&self.params, &*self.shared.vfs, &self.shared.dir, room, |key| {
            coming.note(view.forget(Key::U64(key))?);
            Ok(())
        })?;
        self.add(built)
    }

    /// Adds a segment to the generation to come.
    pub(super) fn add(&mut self, built: Built) -> Result<()> {
        if built.documents == 0 {
            return Ok(()); // nothing but deletes
        }
        self.coming = Coming::Changed;
        let entry = SegmentEntry {
            number: self.take_number()?,
            length: built.length,
            digest: built.digest,
            salt: built.salt,
            documents: built.documents,
            deleted: roaring::RoaringBitmap::new(),
        };
        // A writer that lost its lock must not take a name from the one that has it.
        self.check_lock()?;
        self.written.push(entry.number);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        built.publish(&names::segment(dir, entry.number))?;
        self.view.segments.push(open_segment(vfs, dir, self.shared.access, &self.next, &entry)?);
        self.view.deleted.push(Arc::default());
        self.next.segments.push(entry);
        // The one segment to be has all that came, whatever it was made of meanwhile.
        if self.settings.one_segment { Ok(()) } else { self.view.expire_segment(self.view.segments.len() - 1, None) }
    }

    /// The number of a segment to come.
    pub(super) fn take_number(&mut self) -> Result<u64> {
        if self.next.segments.len() as u64 >= u64::from(SEGMENTS_MAX) {
            let found = self.next.segments.len() as u64 + 1;
            return Err(Error::Limit { what: "segments of an index", limit: SEGMENTS_MAX.into(), found });
        }
        // guard: numbers of segments are not given again
        // without it: self.next.next_segment -> self.next.segments.last().map_or(1, |last| last.number + 1)
        let number = self.next.next_segment;
        self.next.next_segment = next_number("number of a segment", number)?;
        Ok(number)
    }

    /// Merges the segments of this batch to one, and removes them.
    pub(super) fn merge_written(&mut self) -> Result<()> {
        let written = std::mem::take(&mut self.written);
        // Whatever happens, they are known: they go when the writer goes, if not before.
        self.written.clone_from(&written);
        if !self.merge_all(None, |entry| written.contains(&entry.number))? {
            return Ok(());
        }
        self.written.retain(|number| !written.contains(number));
        for number in written {
            // No manifest names these segments; what stays goes with the next sweep.
            let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
        }
        Ok(())
    }

    /// What is too old by the time before this batch is not live in the segments of this batch.
    pub(super) fn expire_written(&mut self) -> Result<()> {
        for place in 0..self.next.segments.len() {
            if self.written.contains(&self.next.segments[place].number) {
                self.view.expire_segment(place, None)?;
            }
        }
        Ok(())
    }

    /// Leaves segments out of the generation to come.
    pub(super) fn keep_segments(&mut self, keep: impl Fn(usize, &SegmentEntry, u64) -> bool) {
        let (mut entries, mut segments, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        let all = std::mem::take(&mut self.next.segments).into_iter();
        let all =
            all.zip(std::mem::take(&mut self.view.segments)).zip(std::mem::take(&mut self.view.deleted));
        for (place, ((entry, segment), deleted)) in all.enumerate() {
            if keep(place, &entry, deleted.len()) {
                entries.push(entry);
                segments.push(segment);
                deletes.push(deleted);
            }
        }
        (self.next.segments, self.view.segments, self.view.deleted) = (entries, segments, deletes);
    }

    /// Makes a segment of what is in the log, which is empty then.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::Invalid`] in the middle of a batch.
    pub fn flush(&mut self) -> Result<()> {
        self.check_between("flush")?;
        self.guarded(|writer| {
            writer.flush_table()?;
            if writer.coming == Coming::Changed { writer.publish(Publish::Shape).map(drop) } else { Ok(()) }
        })
    }
}
