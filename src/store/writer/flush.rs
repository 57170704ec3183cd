//! Records to segments: a full memtable, and batches that are too large for one.
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::states::{Coming, MEMTABLE_BYTES, Owed, Publish, Settings};
use super::{Writer, next_number};
use crate::error::{Error, Result};
use crate::format::log::RECORD_BYTES_MAX;
use crate::format::manifest::{SEGMENTS_MAX, SegmentEntry};
use crate::key::Key;
use crate::segment::records::Records;
use crate::segment::rows::Rows;
use crate::segment::spilled::Room;
use crate::segment::{Built, Segment, build};
use crate::store::memtable::FirstRows;
use crate::store::merging::{Merged, Merging, Source, Work};
use crate::store::names;
use crate::store::state::{Frozen, open_segment};
use crate::sync::pause;
use crate::trace::event;
use crate::sys::heap::Heap;

/// Segments of a batch that are merged before there are more, where it is to become one.
const MERGED_AT: usize = 64;
/// Rows that the end of a writer leaves in the log; more become a segment, so that opening the index is quick.
const TAIL_ROWS: u32 = 1 << 13;
/// How often a commit that waits looks whether the segment of the memtable before is done.
const LOOKED: Duration = Duration::from_millis(1);
/// Rows after which it is looked again whether a memtable is full in the middle of a batch.
const LOOKED_EVERY: u32 = 1024;
/// Bytes of a log that ends, however few rows it has: commits of a payload alone have none. It bounds what there is to
/// be read when the index is opened.
const LOG_BYTES: u64 = 256 << 20;

impl Writer {
    /// True where the memtable has `times` what it should have.
    pub(super) fn is_full(&self, times: usize) -> bool {
        let Settings { memtable_rows, memtable_bytes, memory, .. } = self.settings;
        let rows = self.view.table.read().len();
        rows as usize >= (memtable_rows as usize).saturating_mul(times)
            || rows > 0 && self.view.table.memory() >= memtable_bytes.min(memory).saturating_mul(times)
    }

    /// True once in a while: what the memtable takes need not be added up for each record. One record can be several
    /// rows, where others expire by it.
    fn is_time_to_look(&mut self) -> bool {
        let Settings { memtable_rows, memtable_bytes, memory, .. } = self.settings;
        let is_small = memory.min(memtable_bytes) < MEMTABLE_BYTES || memtable_rows < LOOKED_EVERY;
        let is_time = is_small || self.view.rows.abs_diff(self.looked_at) >= LOOKED_EVERY;
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
            if self.batch.len() > RECORD_BYTES_MAX as usize / 2 || self.is_time_to_look() && self.is_batch_large() {
                return self.guarded(Self::freeze_batch);
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
            writer.flush_and_reuse()?;
            if writer.settings.one_segment && writer.written.len() >= MERGED_AT {
                writer.merge_written()
            } else {
                Ok(())
            }
        })
    }

    /// True for a batch that does not end before the memtable is too full: it is a large one, and comes with segments. It
    /// must not become a record that no reader takes. Before it began, the memtable may have been nearly as full as
    /// commits let it be.
    fn is_batch_large(&mut self) -> bool {
        let Settings { memtables, background, .. } = self.settings;
        if self.coming == Coming::AsPublished {
            return self.is_full(if self.view.frozen.is_some() { memtables + 1 } else { 2 });
        }
        if !background || self.settings.one_segment {
            return self.is_full(2);
        }
        // Some of the batch is in segments already, or on its way.
        let is_full = self.is_full(1);
        if is_full && self.flushing.is_some() {
            if self.is_forked() {
                return true; // and it is refused: there is no thread to wait for here
            }
            self.hold_back();
        }
        is_full && self.flushing.as_ref().is_none_or(Merging::is_done)
    }

    /// Makes room in the middle of a large batch: what is in the memtable comes with the generation to come, in a segment,
    /// which a thread makes. The commit waits for it.
    pub(super) fn freeze_batch(&mut self) -> Result<()> {
        self.check_lock()?;
        self.settle_flush()?;
        if !self.settings.background || self.settings.one_segment || self.view.rows == 0 {
            return self.flush_table();
        }
        let (rows, live) = (self.view.rows, self.view.live);
        let logs = self.next.logged.iter().flat_map(|logged| &logged.logs).map(|log| log.number).collect();
        let table = Arc::clone(&self.view.table);
        self.leave_table()?;
        self.view.frozen = Some(Frozen { table, rows, live, deleted: Arc::default(), logs });
        event!(DEBUG, rows, live, "a memtable is frozen in the middle of a batch");
        self.start_flush()
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

    /// Reserves capacity for rows to come without waiting for a segment: the memtable is frozen, and a thread makes a segment of
    /// it. Its logs get no more batches, and belong to the index until the segment does. Whoever calls this shows the
    /// view.
    pub(super) fn freeze(&mut self) -> Result<()> {
        self.check_lock()?;
        let Some(log) = &mut self.log else { return Ok(()) };
        // The next log begins with what is not durable in this one: nothing.
        log.sync()?;
        log.mark()?;
        self.show_durable();
        self.log = None;
        let logs = self.next.logged.iter().flat_map(|logged| &logged.logs).map(|log| log.number).collect();
        let table = {
            let next = Arc::new(self.view.table.next());
            std::mem::replace(&mut self.view.table, next)
        };
        let (rows, live) = (self.view.rows, self.view.live);
        self.view.frozen = Some(Frozen { table, rows, live, deleted: Arc::default(), logs });
        self.view.count();
        self.looked_at = 0;
        event!(DEBUG, rows, live, "a full memtable is frozen");
        self.start_flush()
    }

    /// Lets a thread make a segment of the frozen memtable, if there is one that no thread works at: a writer may find
    /// it as the one before has left it.
    pub(super) fn start_flush(&mut self) -> Result<()> {
        let Some(frozen) = self.view.frozen.as_ref().filter(|_| self.flushing.is_none()) else { return Ok(()) };
        let source = Source::Frozen(Arc::clone(&frozen.table));
        let number = self.take_number()?;
        let work = Work { inputs: vec![(source, Arc::default())], ..self.work(&[], number) };
        self.flushing = Some(work.spawn(None)?);
        Ok(())
    }

    /// Waits for the segment of the frozen memtable, if there is one; it is in the generation to come then.
    pub(super) fn settle_flush(&mut self) -> Result<()> {
        self.start_flush()?;
        let Some(mut flushing) = self.flushing.take() else { return Ok(()) };
        let number = flushing.number;
        let flushed = flushing.join();
        self.take_flushed(number, flushed)
    }

    /// As [`settle_flush`](Self::settle_flush), if it is done.
    pub(super) fn poll_flush(&mut self) -> Result<()> {
        let Some(flushing) = &mut self.flushing else { return Ok(()) };
        let number = flushing.number;
        match flushing.poll(&self.next, &self.view).transpose() {
            None => Ok(()),
            Some(flushed) => {
                self.flushing = None;
                self.take_flushed(number, flushed)
            }
        }
    }

    fn take_flushed(&mut self, number: u64, flushed: Result<Merged>) -> Result<()> {
        self.written.push(number);
        let logs = self.view.frozen.as_ref().map(|frozen| Arc::clone(&frozen.logs)).unwrap_or_default();
        let flushed = flushed.inspect_err(|error| {
            event!(ERROR, %error, "no segment could be made of a memtable");
            let _: &Error = error;
            self.shared.counters.flushes.fail();
        })?;
        event!(INFO, segment = number, bytes = flushed.bytes(), "a memtable became a segment");
        flushed.count(&self.shared.counters.flushes);
        flushed.take_place(&mut self.next, &mut self.view)?;
        self.coming = Coming::Changed;
        if let Some(logged) = &mut self.next.logged {
            // guard: a log stays until its rows are in a segment
            // without it: !logs.contains(&log.number) -> false
            logged.logs.retain(|log| !logs.contains(&log.number));
        }
        Ok(())
    }

    /// Gives the thread that makes a segment time to end before the memtable is too full.
    pub(super) fn hold_back(&mut self) {
        let Some(flushing) = &self.flushing else { return };
        let (mut waited, start) = (Duration::ZERO, Instant::now());
        let Settings { pause: longest, memtables, .. } = self.settings;
        // guard: a memtable does not grow without end while another becomes a segment
        // without it: self.is_full(memtables) -> false
        while !flushing.is_done() && (waited < longest || self.is_full(memtables)) {
            pause(LOOKED);
            waited += LOOKED;
        }
        if waited > Duration::ZERO {
            event!(WARN, waited = ?start.elapsed(), "a commit waited for the segment of the memtable before");
            self.shared.counters.stalls.add(start.elapsed(), 0);
        }
    }

    /// At the end of a writer: what takes long to read from the log becomes a segment, if nothing stands against it. A
    /// failure leaves the log, which has it all.
    pub(super) fn shorten_tail(&mut self) {
        let is_long = self.view.frozen.is_some() || self.view.rows >= TAIL_ROWS;
        let is_graceful = self.settings.background && !std::thread::panicking();
        if is_long && is_graceful && self.check_between("end").is_ok() {
            let _ = self.guarded(|writer| {
                writer.check_lock()?;
                writer.settle_flush()?;
                if writer.view.rows >= TAIL_ROWS {
                    writer.flush_table()?;
                }
                if writer.coming == Coming::Changed { writer.publish(Publish::Shape).map(drop) } else { Ok(()) }
            });
        }
    }

    /// Writes the memtable as a segment of the generation to come, which needs no logs then.
    pub(super) fn flush_table(&mut self) -> Result<()> {
        self.settle_flush()?;
        let Some(records) = self.table_records() else { return Ok(()) };
        let start = Instant::now();
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        drop(records);
        self.shared.counters.flushes.add(start.elapsed(), built.length);
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

    /// What is in the memtable comes with the generation to come, in a segment that is there.
    pub(super) fn empty_table(&mut self) -> Result<()> {
        self.leave_table()?;
        if let Some(logged) = &mut self.next.logged {
            logged.logs.clear();
        }
        Ok(())
    }

    /// What is in the memtable comes with the generation to come, in a segment that is made.
    fn leave_table(&mut self) -> Result<()> {
        self.view.table = Arc::new(self.view.table.next());
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
        self.looked_at = 0;
        self.coming = Coming::Changed;
        Ok(())
    }

    /// The memtable as a segment in memory, which is empty then; nothing if it is empty.
    pub(super) fn take_table(&mut self) -> Result<Option<Segment>> {
        self.settle_flush()?;
        let Some(records) = self.table_records() else { return Ok(None) };
        let (heap, path) = (Heap::default(), Path::new("memtable"));
        build::build(&records, &heap, path)?.publish(path)?;
        drop(records);
        self.empty_table()?;
        Segment::from_bytes(heap.take(), path).map(Some)
    }

    /// As [`flush_records`](Self::flush_records), in the middle of a batch: its next records take the same memory, whose
    /// pages need not come from the system again.
    fn flush_and_reuse(&mut self) -> Result<()> {
        if let Some(mut records) = self.write_records()? {
            records.truncate(0);
            self.records = records;
        }
        Ok(())
    }

    /// Writes the records held as a segment of the generation to come.
    pub(super) fn flush_records(&mut self) -> Result<()> {
        self.write_records().map(drop)
    }

    /// As [`flush_records`](Self::flush_records), and returns the records that were written, if there were any in memory.
    fn write_records(&mut self) -> Result<Option<Records>> {
        if self.rows.is_none() && self.records.is_empty() {
            return Ok(None);
        }
        // They are newer than what is in the memtable.
        self.flush_table()?;
        // Also by documents that are deleted again in the same batch, as in the log.
        self.coming.note(self.view.is_to_advance());
        if self.rows.is_some() {
            return self.flush_rows().map(|()| None);
        }
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        if !self.view.segments.is_empty() {
            for key in records.keys() {
                self.coming.note(self.view.forget(key)?);
            }
        }
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        self.add(built)?;
        Ok(Some(records))
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
