//! Merges segments in the background and on request, compacts an index, and removes unneeded files.
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::commits::LOGS;
use super::flush::LOOKED;
use super::states::{NextGeneration, Pointer, Publish, Route};
use super::{Durability, Writer};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::segment::Segment;
use crate::segment::merge::{self, MergeInput};
use crate::segment::spilled::SpillBudget;
use crate::store::merge_plan::{self, Size};
use crate::store::merging::{DocumentSource, FinishedMerge, MergeWork};
use crate::store::{generation, names};
use crate::sync::pause;
use crate::trace::event;

impl Writer {
    /// Returns and clears the error that stopped background merges, such as a full disk or a damaged segment; `None` if
    /// there is none. The index is intact, but has more segments than the merge policy allows. This call starts
    /// background merges again.
    pub fn take_merge_failure(&mut self) -> Option<Error> {
        self.merge_failure.take()
    }

    /// Merges the chosen segments of the next generation into one segment, together with `newer`, a segment in memory
    /// that no generation contains. Replaces the chosen segments by the merged one. Returns false if there is nothing
    /// to do: at most one segment, without deletes.
    pub(super) fn merge_all(
        &mut self,
        newer: Option<&Segment>,
        cancel: &Cancel,
        chosen: impl Fn(&SegmentEntry) -> bool,
    ) -> Result<bool> {
        let nothing = RoaringBitmap::new();
        let taken: Vec<bool> = self.next.segments.iter().map(chosen).collect();
        let inputs: Vec<MergeInput<'_>> = (self.view.segments.iter().zip(&self.view.deleted).zip(&taken))
            .filter(|(_, taken)| **taken)
            .map(|((segment, deleted), _)| MergeInput { segment, deleted })
            .chain(
                newer
                    .filter(|segment| segment.documents() > 0)
                    .map(|segment| MergeInput { segment, deleted: &nothing }),
            )
            .collect();
        if inputs.len() < 2 && inputs.iter().all(|input| input.deleted.is_empty()) {
            return Ok(false);
        }
        let live: Vec<MergeInput<'_>> =
            inputs.into_iter().filter(|input| input.deleted.len() < input.segment.documents()).collect();
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let documents = live.iter().map(|input| input.segment.documents()).sum();
        let budget = SpillBudget::new(self.options.memory.saturating_mul(2), &scratch)
            .on_threads(self.options.threads_for(documents))
            .until(cancel);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let built = if live.is_empty() { None } else { Some(merge::merge(&live, vfs, dir, budget)?) };
        live.iter().try_for_each(|input| input.segment.check_map())?;
        self.keep_segments(|place, _, _| !taken[place]);
        self.coming = NextGeneration::Changed;
        built.map_or(Ok(()), |built| self.add(built))?;
        Ok(true)
    }

    /// Merges all segments and the batch into one segment, and makes it visible and durable as [`commit`](Self::commit)
    /// does. Query results do not change. The segment is byte for byte identical to the segment of an index to which
    /// the live documents were added in one batch. If no document is live, no segment is written. An index that already
    /// consists of this segment alone is not changed.
    ///
    /// Takes as long as building the segment. Uses up to twice the bytes of [`WriterOptions::memory`](super::WriterOptions::memory), plus a
    /// thousandth of the size of the files; the disk temporarily needs space for a second copy. The old files are removed
    /// once no manifest names them; snapshots that have them open can still read them.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); [`Error::NoSpace`] if the disk has not enough space; [`Error::Corrupt`] for a
    /// damaged segment, and [`Error::Limit`] for more than 2^30 documents. After these errors the index is unchanged.
    pub fn compact(&mut self) -> Result<u64> {
        self.check_process()?;
        self.check_sound()?;
        drop(self.merging.take());
        self.prepare_compaction()?;
        self.guarded(|writer| writer.compact_all(&Cancel::default()))
    }

    /// Like [`compact`](Self::compact), but ends early after `cancel` was requested: see [`merge`] how often it is checked.
    /// The index is then as it was, the files of the merge are removed, and the writer can be used further. Requires an
    /// empty batch, because a cancelled compaction could not keep it.
    ///
    /// # Errors
    /// Same as [`compact`](Self::compact); [`Error::Cancelled`]; [`Error::Invalid`] in the middle of a batch.
    pub fn compact_until(&mut self, cancel: &Cancel) -> Result<u64> {
        self.check_between("compact, if that can be cancelled,")?;
        // A background merge that is stopped can have its file already.
        self.written.extend(self.merging.take().map(|merging| merging.number));
        self.prepare_compaction()?;
        let done = self.guarded(|writer| match writer.compact_all(cancel) {
            Err(Error::Cancelled) => {
                writer.drop_batch();
                Ok(None)
            }
            done => done.map(Some),
        });
        done?.ok_or(Error::Cancelled)
    }

    fn prepare_compaction(&self) -> Result<()> {
        let all: Vec<usize> = (0..self.view.segments.len()).collect();
        if self.view.segments.len() > 1 {
            self.work(&all, 0).check_space()?;
        }
        Ok(())
    }

    fn compact_all(&mut self, cancel: &Cancel) -> Result<u64> {
        cancel.check()?;
        self.settle_flush()?;
        self.flush_records()?;
        self.expire_written()?;
        self.view.advance()?;
        // The rows of the memtable are merged directly from memory, without being written to a file first.
        let table = if self.view.segments.is_empty() { None } else { self.take_table()? };
        self.flush_table()?;
        self.merge_all(table.as_ref(), cancel, |_| true)?;
        self.route = Route::BySettings;
        if self.coming == NextGeneration::Changed {
            let generation = self.publish(Publish::Commit)?;
            self.settle_sweep();
            return Ok(generation);
        }
        self.keep_promise(Durability::Sync)?;
        self.sweep_all()?;
        Ok(self.view.commit)
    }

    /// Does the work that is due between two batches: flushes a full memtable, replaces the sources of a finished merge
    /// with the output, and starts the next merge.
    pub(super) fn maintain(&mut self) -> Result<()> {
        self.poll_flush()?;
        let is_full = self.is_full(1);
        if self.options.background && self.view.rows > 0 && self.log.is_some() {
            let logs = self.next.logged.as_ref().map_or(0, |logged| logged.logs.len());
            self.start_flush()?;
            if is_full && self.flushing.is_some() {
                self.hold_back();
                self.poll_flush()?;
            }
            if (is_full || self.is_log_long() || logs > LOGS) && self.flushing.is_none() {
                self.freeze()?;
                if self.coming == NextGeneration::AsPublished {
                    self.show_again();
                }
            }
        } else if is_full || self.is_log_long() {
            self.flush_table()?;
            if self.coming == NextGeneration::AsPublished {
                self.empty_table()?; // the log has only payloads, and the manifest stores the last one
            }
        }
        self.poll_merge()?;
        if self.coming == NextGeneration::Changed {
            self.publish(Publish::Shape)?;
        }
        if self.options.background && self.merging.is_none() && self.merge_failure.is_none() {
            let chosen = merge_plan::choose(&self.sizes(), &[]);
            if !chosen.is_empty() {
                self.check_lock()?;
                let number = self.take_number()?;
                let work = self.work(&chosen, number);
                match work.check_space().and_then(|()| work.spawn(self.options.rate)) {
                    Ok(merging) => self.merging = Some(merging),
                    Err(error) => self.merge_failure = Some(error),
                }
            }
        }
        Ok(())
    }

    pub(super) fn sizes(&self) -> Vec<Size> {
        let segments = self.view.segments.iter().zip(&self.view.deleted);
        segments
            .map(|(segment, deleted)| Size {
                live: segment.documents() - deleted.len(),
                documents: segment.documents(),
            })
            .collect()
    }

    /// Prepares a merge of the segments at the positions `chosen` into a segment with this number.
    pub(super) fn work(&self, chosen: &[usize], number: u64) -> MergeWork {
        let input = |&place: &usize| {
            let (segment, deleted) = (&self.view.segments[place], &self.view.deleted[place]);
            let number = self.next.segments[place].number;
            (DocumentSource::Segment(number, Arc::clone(segment)), Arc::clone(deleted))
        };
        MergeWork {
            vfs: Arc::clone(&self.shared.vfs),
            dir: self.shared.dir.clone(),
            access: self.shared.access,
            manifest: Manifest { segments: Vec::new(), ..self.next.clone() },
            number,
            memory: self.options.memory.saturating_mul(2),
            cancel: Cancel::default(),
            threads: self
                .options
                .threads_for(chosen.iter().map(|&place| self.view.segments[place].documents()).sum()),
            inputs: chosen.iter().map(input).collect(),
        }
    }

    /// Waits for the background merge, if one is running, and publishes its output.
    ///
    /// # Errors
    /// The error that stopped the merge, after which the index is unchanged; otherwise the same as [`commit`](Self::commit).
    /// [`Error::Invalid`] in the middle of a batch.
    pub fn wait_for_merge(&mut self) -> Result<()> {
        self.check_between("wait for a merge")?;
        self.guarded(|writer| {
            writer.settle_flush()?;
            writer.settle_merge()?;
            if writer.coming == NextGeneration::Changed {
                writer.publish(Publish::Shape).map(drop)
            } else {
                Ok(())
            }
        })?;
        self.settle_sweep();
        self.merge_failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn check_between(&self, what: &str) -> Result<()> {
        self.check_process()?;
        self.check_sound()?;
        if self.batch.is_empty()
            && self.records.is_empty()
            && self.rows.is_none()
            && self.coming == NextGeneration::AsPublished
        {
            return Ok(());
        }
        Err(Error::Invalid(format!("{what} between batches: commit this one first")))
    }

    /// Waits for the background merge, if one is running, and adds its output to the next generation.
    fn settle_merge(&mut self) -> Result<()> {
        let Some(mut merging) = self.merging.take() else { return Ok(()) };
        let merged = merging.join();
        self.take_merged(merging.number, merged)
    }

    /// Like [`settle_merge`](Self::settle_merge), but does not wait: does nothing if the merge is not finished.
    fn poll_merge(&mut self) -> Result<()> {
        let Some(merging) = &mut self.merging else { return Ok(()) };
        let number = merging.number;
        match merging.poll(&self.next, &self.view).transpose() {
            None => Ok(()),
            Some(merged) => {
                self.merging = None;
                self.take_merged(number, merged)
            }
        }
    }

    fn take_merged(&mut self, number: u64, merged: Result<FinishedMerge>) -> Result<()> {
        match merged {
            Ok(merged) => {
                merged.count(&self.shared.counters.merges);
                event!(INFO, segment = number, bytes = merged.bytes(), "segments were merged");
                self.take_place(merged)
            }
            Err(error) => {
                event!(ERROR, %error, "a merge failed; take_merge_failure lets merges begin again");
                self.shared.counters.merges.fail();
                // If another process has the lock now, or another history has taken the place of this one, a segment
                // with this number may be another one, which must not be removed. The next sweep removes a leftover file.
                if self.check_lock().is_ok() {
                    let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
                }
                self.merge_failure = Some(error);
                Ok(())
            }
        }
    }

    fn take_place(&mut self, merged: FinishedMerge) -> Result<()> {
        self.written.extend(merged.number());
        if merged.fits(&self.next, &self.view) {
            merged.take_place(&mut self.next, &mut self.view)?;
            self.coming = NextGeneration::Changed;
        }
        // Otherwise a source was removed during the merge. The output is discarded, because the documents of this
        // source that were deleted since could not be found in it.
        Ok(())
    }

    /// Runs the next due merge on the calling thread; returns false if none is due. To keep the number of segments
    /// small, call it until it returns false.
    ///
    /// # Errors
    /// Same as [`compact`](Self::compact); [`Error::Invalid`] in the middle of a batch.
    pub fn merge_step(&mut self) -> Result<bool> {
        self.merge_step_until(&Cancel::default())
    }

    /// Like [`merge_step`](Self::merge_step), but ends early after `cancel` was requested. The index is then as it was, and
    /// the files of the merge are removed. A merge that runs in the background continues.
    ///
    /// # Errors
    /// Same as [`merge_step`](Self::merge_step); [`Error::Cancelled`].
    pub fn merge_step_until(&mut self, cancel: &Cancel) -> Result<bool> {
        self.check_between("merge")?;
        cancel.check()?;
        while let Some(merging) = &self.merging {
            if merging.is_done() {
                self.wait_for_merge()?;
                return Ok(true);
            }
            cancel.check()?;
            pause(LOOKED);
        }
        let chosen = merge_plan::choose(&self.sizes(), &[]);
        if chosen.is_empty() {
            return Ok(false);
        }
        self.work(&chosen, 0).check_space()?;
        self.guarded(|writer| {
            writer.check_lock()?;
            let number = writer.take_number()?;
            let work = MergeWork { cancel: cancel.clone(), ..writer.work(&chosen, number) };
            match work.run() {
                Err(Error::Cancelled) => Ok(Err(Error::Cancelled)), // nothing was changed, so the writer stays sound
                merged => {
                    writer.take_place(merged?)?;
                    writer.publish(Publish::Shape).map(|_| Ok(true))
                }
            }
        })?
    }

    /// Removes the files that the current generation does not need, including the files of the previous generation,
    /// which then can no longer be opened. Returns the number of bytes removed. Snapshots that are open can still read
    /// their files.
    ///
    /// # Errors
    /// [`Error::Invalid`] in the middle of a batch, [`Error::Locked`] if the lock file was removed, [`Error::Io`].
    pub fn gc(&mut self) -> Result<u64> {
        self.check_between("collect garbage")?;
        drop(self.merging.take());
        self.guarded(|writer| {
            writer.settle_flush()?;
            if writer.coming == NextGeneration::Changed {
                writer.publish(Publish::Shape).map(drop)
            } else {
                Ok(())
            }
        })?;
        self.sweep_all()
    }

    pub(super) fn sweep_all(&mut self) -> Result<u64> {
        self.settle_sweep();
        self.check_lock()?;
        // A killed writer may have renamed CURRENT without a sync. Without this sync, a crash could make the previous
        // generation current again, after its files were removed.
        // guard: the directory is synced before a new writer collects garbage
        if self.pointer == Pointer::MayBeLost {
            generation::sync_dir(&*self.shared.vfs, &self.shared.dir)?;
            self.pointer = Pointer::Durable;
        }
        generation::sweep(&*self.shared.vfs, &self.shared.dir, &self.next, None, &[])
    }
}
