//! Builds segments from full memtables, and from batches that are too large for a memtable.
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::options::{MEMTABLE_BYTES, WriterOptions};
use super::states::{NextGeneration, PendingSync, Publish};
use super::{Writer, next_number};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::log::RECORD_BYTES_MAX;
use crate::format::manifest::{SEGMENTS_MAX, SegmentEntry};
use crate::key::Key;
use crate::segment::records::Records;
use crate::segment::rows::Rows;
use crate::segment::spilled::SpillBudget;
use crate::segment::{BuiltSegment, Segment, build};
use crate::store::memtable::FirstRows;
use crate::store::merging::{DocumentSource, FinishedMerge, MergeWork, Merging};
use crate::store::names;
use crate::store::state::{FrozenMemtable, open_segment};
use crate::sync::pause;
use crate::sys::heap::Heap;
use crate::trace::event;

/// With the option `one_segment`, a batch merges its segments when it has this number of them.
const MERGED_AT: usize = 64;
/// When the writer is dropped, a memtable of at least this number of rows is written to a segment. Fewer rows remain in
/// the log, because replaying them is fast.
const TAIL_ROWS: u32 = 1 << 13;
/// Interval at which a waiting writer checks whether a flush or a merge is finished.
pub(super) const LOOKED: Duration = Duration::from_millis(1);
/// A batch checks whether the memtable is full each time it has added this number of rows.
const LOOKED_EVERY: u32 = 1024;
/// A log of this length in bytes is closed, even if it has few rows (commits with only a payload add no rows). This
/// limits the number of bytes that are read when the index is opened.
const LOG_BYTES: u64 = 256 << 20;

impl Writer {
    /// Returns whether the memtable has reached `times` times its limit of rows or its limit of bytes.
    pub(super) fn is_full(&self, times: usize) -> bool {
        let WriterOptions { memtable_rows, memtable_bytes, memory, .. } = self.options;
        let rows = self.view.table.read().len();
        rows as usize >= (memtable_rows as usize).saturating_mul(times)
            || rows > 0 && self.view.table.memory() >= memtable_bytes.min(memory).saturating_mul(times)
    }

    /// Returns whether to check the size of the memtable. Computing the size is slow, so it is checked about every
    /// [`LOOKED_EVERY`] rows. A record adds several rows if it makes documents expire.
    fn is_time_to_check(&mut self) -> bool {
        let WriterOptions { memtable_rows, memtable_bytes, memory, .. } = self.options;
        let is_small = memory.min(memtable_bytes) < MEMTABLE_BYTES || memtable_rows < LOOKED_EVERY;
        let is_time = is_small || self.view.rows.abs_diff(self.checked_at) >= LOOKED_EVERY;
        if is_time {
            self.checked_at = self.view.rows;
        }
        is_time
    }

    pub(super) fn is_log_long(&self) -> bool {
        // guard: a log of payloads alone comes to an end
        // without it: log.end() >= LOG_BYTES -> false
        self.log.as_ref().is_some_and(|log| log.end() >= LOG_BYTES)
    }

    pub(super) fn flush_if_full(&mut self) -> Result<()> {
        if !self.collects() {
            if self.batch.len() > RECORD_BYTES_MAX as usize / 2
                || self.is_time_to_check() && self.is_batch_large()
            {
                return self.guarded(Self::freeze_batch);
            }
            return Ok(());
        }
        if self.records.memory() < self.options.memory {
            return Ok(());
        }
        self.guarded(|writer| {
            if writer.options.one_segment && Rows::can_hold(&writer.params) {
                return writer.set_aside();
            }
            writer.flush_and_reuse()?;
            if writer.options.one_segment && writer.written.len() >= MERGED_AT {
                writer.merge_written()
            } else {
                Ok(())
            }
        })
    }

    /// Returns whether the batch must be written to segments, because readers would refuse a log record of its size.
    /// The limit is above the normal size of a memtable, because the memtable may have been nearly full when the batch
    /// began.
    fn is_batch_large(&mut self) -> bool {
        let WriterOptions { memtables, background, .. } = self.options;
        if self.coming == NextGeneration::AsPublished {
            return self.is_full(if self.view.frozen.is_some() { memtables + 1 } else { 2 });
        }
        if !background || self.options.one_segment {
            return self.is_full(2);
        }
        // A part of the batch is in segments already, or a thread is writing it to one.
        let is_full = self.is_full(1);
        if is_full && self.flushing.is_some() {
            if self.is_forked() {
                return true; // a forked child has no thread to wait for; `freeze_batch` returns the error
            }
            self.hold_back();
        }
        is_full && self.flushing.as_ref().is_none_or(Merging::is_done)
    }

    /// Freezes the memtable in the middle of a large batch. A thread writes the rows to a segment, which the next
    /// generation publishes. The commit waits for this thread.
    pub(super) fn freeze_batch(&mut self) -> Result<()> {
        self.check_lock()?;
        self.settle_flush()?;
        if !self.options.background || self.options.one_segment || self.view.rows == 0 {
            return self.flush_table();
        }
        let (rows, live) = (self.view.rows, self.view.live);
        let logs = self.next.logged.iter().flat_map(|logged| &logged.logs).map(|log| log.number).collect();
        let table = Arc::clone(&self.view.table);
        self.leave_table()?;
        self.view.frozen = Some(FrozenMemtable { table, rows, live, deleted: Arc::default(), logs });
        event!(DEBUG, rows, live, "a memtable is frozen in the middle of a batch");
        self.start_flush()
    }

    /// Moves the collected records of the batch from memory to a scratch file.
    pub(super) fn set_aside(&mut self) -> Result<()> {
        self.check_process()?; // a forked child shares the file position of the scratch file
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let budget = SpillBudget::new(self.options.memory, &scratch);
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => none.insert(Rows::new(budget)?),
        };
        rows.append(&records, budget)
    }

    /// Freezes the memtable and replaces it with an empty one. A thread writes the frozen memtable to a segment.
    /// Nothing more is appended to its logs, which belong to the index until the segment is published. The caller must
    /// publish the view.
    pub(super) fn freeze(&mut self) -> Result<()> {
        self.check_lock()?;
        let Some(log) = &mut self.log else { return Ok(()) };
        // Makes all batches of this log durable, so that the next log does not begin with copies of them.
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
        self.view.frozen = Some(FrozenMemtable { table, rows, live, deleted: Arc::default(), logs });
        self.view.count();
        self.checked_at = 0;
        event!(DEBUG, rows, live, "a full memtable is frozen");
        self.start_flush()
    }

    /// Starts a thread that writes the frozen memtable to a segment, unless such a thread is running. The frozen
    /// memtable may come from the previous writer.
    pub(super) fn start_flush(&mut self) -> Result<()> {
        let Some(frozen) = self.view.frozen.as_ref().filter(|_| self.flushing.is_none()) else {
            return Ok(());
        };
        let source = DocumentSource::Frozen(Arc::clone(&frozen.table));
        let number = self.take_number()?;
        let work = MergeWork { inputs: vec![(source, Arc::default())], ..self.work(&[], number) };
        self.flushing = Some(work.spawn(None)?);
        Ok(())
    }

    /// Waits until the frozen memtable, if there is one, is written to a segment. Adds the segment to the next
    /// generation.
    pub(super) fn settle_flush(&mut self) -> Result<()> {
        self.start_flush()?;
        let Some(mut flushing) = self.flushing.take() else { return Ok(()) };
        let number = flushing.number;
        let flushed = flushing.join();
        self.take_flushed(number, flushed)
    }

    /// Like [`settle_flush`](Self::settle_flush), but does not wait: does nothing if the segment is not finished.
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

    fn take_flushed(&mut self, number: u64, flushed: Result<FinishedMerge>) -> Result<()> {
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
        self.coming = NextGeneration::Changed;
        if let Some(logged) = &mut self.next.logged {
            // guard: a log stays until its rows are in a segment
            // without it: !logs.contains(&log.number) -> false
            logged.logs.retain(|log| !logs.contains(&log.number));
        }
        Ok(())
    }

    /// Delays a commit, so that a running flush can finish before the new memtable grows too large.
    pub(super) fn hold_back(&mut self) {
        let Some(flushing) = &self.flushing else { return };
        let (mut waited, start) = (Duration::ZERO, Instant::now());
        let WriterOptions { pause: longest, memtables, .. } = self.options;
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

    /// Writes the rows to a segment when the writer is dropped, if replaying them from the log would take long. After a
    /// failure the rows remain in the log.
    pub(super) fn shorten_tail(&mut self) {
        let is_long = self.view.frozen.is_some() || self.view.rows >= TAIL_ROWS;
        let is_graceful = self.options.background && !std::thread::panicking();
        if is_long && is_graceful && self.check_between("end").is_ok() {
            let _ = self.guarded(|writer| {
                writer.check_lock()?;
                writer.settle_flush()?;
                if writer.view.rows >= TAIL_ROWS {
                    writer.flush_table()?;
                }
                if writer.coming == NextGeneration::Changed {
                    writer.publish(Publish::Shape).map(drop)
                } else {
                    Ok(())
                }
            });
        }
    }

    /// Writes the memtable to a segment of the next generation, after which the logs are not needed.
    pub(super) fn flush_table(&mut self) -> Result<()> {
        self.settle_flush()?;
        let Some(records) = self.table_records() else { return Ok(()) };
        let start = Instant::now();
        let built = self.build(&records)?;
        drop(records);
        self.shared.counters.flushes.add(start.elapsed(), built.length);
        self.empty_table()?;
        self.add(built)
    }

    fn build(&self, records: &Records) -> Result<BuiltSegment> {
        let WriterOptions { memory, .. } = self.options;
        let threads = self.options.threads_for(records.len() as u64);
        build::build_on_threads(records, &*self.shared.vfs, &self.shared.dir, threads, memory)
    }

    /// Copies the rows of the memtable; `None` if it is empty. Does not block readers of the memtable during the copy.
    fn table_records(&self) -> Option<Records> {
        let rows = self.view.table.read();
        let first = (rows.len() > 0).then(|| rows.first(rows.len()));
        drop(rows);
        first.map(FirstRows::into_records)
    }

    /// Empties the memtable after its rows were written to a segment, and removes the logs from the next generation.
    pub(super) fn empty_table(&mut self) -> Result<()> {
        self.leave_table()?;
        if let Some(logged) = &mut self.next.logged {
            logged.logs.clear();
        }
        Ok(())
    }

    /// Replaces the memtable with an empty one. Its rows must be in a segment, or a thread must be writing them.
    fn leave_table(&mut self) -> Result<()> {
        self.view.table = Arc::new(self.view.table.next());
        self.view.count();
        self.batch.clear();
        // The segment also has the commits that are held in memory, but it is published only with this batch. They are
        // written to the log, because the batch may fail.
        if let Some(log) = &mut self.log {
            log.write()?;
        }
        // Commits that were never synced become durable only when the segment is published.
        if self.log.as_ref().map_or_else(|| self.is_torn(), |log| !log.is_synced()) {
            self.owed = PendingSync::Sync;
        }
        self.retired = self.log.take().or(self.retired.take());
        self.checked_at = 0;
        self.coming = NextGeneration::Changed;
        Ok(())
    }

    /// Empties the memtable, and returns its rows as a segment in memory; `None` if the memtable is empty.
    pub(super) fn take_table(&mut self) -> Result<Option<Segment>> {
        self.settle_flush()?;
        let Some(records) = self.table_records() else { return Ok(None) };
        let (heap, path) = (Heap::default(), Path::new("memtable"));
        build::build(&records, &heap, path)?.publish(path)?;
        drop(records);
        self.empty_table()?;
        Segment::from_bytes(heap.take(), path).map(Some)
    }

    /// Like [`flush_records`](Self::flush_records), in the middle of a batch: later records reuse the allocated memory.
    fn flush_and_reuse(&mut self) -> Result<()> {
        if let Some(mut records) = self.write_records()? {
            records.truncate(0);
            self.records = records;
        }
        Ok(())
    }

    /// Writes the collected records to a segment of the next generation.
    pub(super) fn flush_records(&mut self) -> Result<()> {
        self.write_records().map(drop)
    }

    /// Like [`flush_records`](Self::flush_records), but also returns the written records if they were in memory.
    fn write_records(&mut self) -> Result<Option<Records>> {
        if self.rows.is_none() && self.records.is_empty() {
            return Ok(None);
        }
        // The memtable must be written first, because the collected records are newer than its rows.
        self.flush_table()?;
        // Documents that the same batch deletes again also advance the time, as they do in the log.
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
        let built = self.build(&records)?;
        self.add(built)?;
        Ok(Some(records))
    }

    /// Like [`flush_records`](Self::flush_records), including records that were moved to a scratch file.
    pub(super) fn flush_rows(&mut self) -> Result<()> {
        self.set_aside()?;
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let budget = SpillBudget::new(self.options.memory.saturating_mul(2), &scratch)
            .on_threads(self.options.threads_for(rows.len()));
        let (view, coming) = (&mut self.view, &mut self.coming);
        let built = rows.build(&self.params, &*self.shared.vfs, &self.shared.dir, budget, |key| {
            coming.note(view.forget(Key::U64(key))?);
            Ok(())
        })?;
        self.add(built)
    }

    /// Adds a segment to the next generation.
    pub(super) fn add(&mut self, built: BuiltSegment) -> Result<()> {
        if built.documents == 0 {
            return Ok(()); // the batch contains only deletes
        }
        let entry = SegmentEntry {
            number: self.take_number()?,
            length: built.length,
            digest: built.digest,
            salt: built.salt,
            documents: built.documents,
            deleted: roaring::RoaringBitmap::new(),
        };
        self.add_file(entry, |path| built.publish(path))
    }

    /// Adds a segment to the next generation. `publish` gives its file the name.
    pub(super) fn add_file(
        &mut self,
        entry: SegmentEntry,
        publish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        self.coming = NextGeneration::Changed;
        // After a writer has lost its lock, the new lock holder may use the same file name, so this writer must not.
        self.check_lock()?;
        self.written.push(entry.number);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        publish(&names::segment(dir, entry.number))?;
        self.view.segments.push(open_segment(vfs, dir, self.shared.access, &self.next, &entry)?);
        self.view.deleted.push(Arc::default());
        self.next.segments.push(entry);
        // With `one_segment`, only the final segment expires documents, so that the intermediate segments do not affect
        // it.
        if self.options.one_segment {
            Ok(())
        } else {
            self.view.expire_segment(self.view.segments.len() - 1, None)
        }
    }

    /// Returns the number of a new segment. Numbers are never reused.
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

    /// Merges the segments of this batch into one, and removes the merged segments.
    pub(super) fn merge_written(&mut self) -> Result<()> {
        let written = std::mem::take(&mut self.written);
        // Keeps the numbers during the merge: if the merge fails, dropping the writer removes the files.
        self.written.clone_from(&written);
        if !self.merge_all(None, &Cancel::default(), |entry| written.contains(&entry.number))? {
            return Ok(());
        }
        self.written.retain(|number| !written.contains(number));
        for number in written {
            // If this fails, the next `generation::sweep` removes the file, because no manifest names it.
            let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
        }
        Ok(())
    }

    /// Marks expired documents in the segments of this batch as deleted. Does not advance the time.
    pub(super) fn expire_written(&mut self) -> Result<()> {
        for place in 0..self.next.segments.len() {
            if self.written.contains(&self.next.segments[place].number) {
                self.view.expire_segment(place, None)?;
            }
        }
        Ok(())
    }

    /// Removes from the next generation the segments for which `keep` returns false. The arguments of `keep` are the
    /// position of the segment, its entry in the manifest, and the number of its deleted documents.
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

    /// Writes the rows of the log to a segment, and empties the log.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); [`Error::Invalid`] in the middle of a batch.
    pub fn flush(&mut self) -> Result<()> {
        self.check_between("flush")?;
        self.guarded(|writer| {
            writer.flush_table()?;
            if writer.coming == NextGeneration::Changed {
                writer.publish(Publish::Shape).map(drop)
            } else {
                Ok(())
            }
        })
    }
}
