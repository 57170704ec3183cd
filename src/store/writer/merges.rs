//! Keeps segments few: merges in the background and on request, compaction, and removal of unneeded files.
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::commits::LOGS;
use super::states::{NextGeneration, Pointer, Publish, Route};
use super::{Durability, Writer};
use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::segment::Segment;
use crate::segment::merge::{self, MergeInput};
use crate::segment::spilled::SpillBudget;
use crate::store::merge_plan::{self, Size};
use crate::store::merging::{FinishedMerge, DocumentSource, MergeWork};
use crate::store::{commit, names};
use crate::trace::event;

impl Writer {
    /// Whether threads flush full memtables and merge segments while this writer works (the default). Otherwise the
    /// commit that fills a memtable makes the segment, and segments are merged only by [`merge_step`](Self::merge_step)
    /// and [`compact`](Self::compact).
    pub fn set_background_merges(&mut self, background: bool) {
        self.settings.background = background;
    }

    /// The write rate of background merges, in bytes a second; `None`, the default, is unlimited.
    pub fn set_merge_rate(&mut self, rate: Option<u64>) {
        self.settings.rate = rate;
    }

    /// The failure that stopped background merges, if any: a full disk, or a damaged segment. The index is intact, with
    /// more segments than it should have. Taking the failure allows merges again.
    pub fn take_merge_failure(&mut self) -> Option<Error> {
        self.merge_failure.take()
    }

    /// Merges the chosen segments of the next generation, and one that is in no generation, into one, in the place of
    /// the last. Returns false if there is nothing to do, as the only one has no deletes.
    pub(super) fn merge_all(
        &mut self,
        newer: Option<&Segment>,
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
        let budget = SpillBudget::new(self.settings.memory.saturating_mul(2), &scratch);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let built = if live.is_empty() { None } else { Some(merge::merge(&live, vfs, dir, budget)?) };
        live.iter().try_for_each(|input| input.segment.check_map())?;
        self.keep_segments(|place, _, _| !taken[place]);
        self.coming = NextGeneration::Changed;
        built.map_or(Ok(()), |built| self.add(built))?;
        Ok(true)
    }

    /// Merges all segments, and the batch with them, into one, and makes it visible and durable as
    /// [`commit`](Self::commit) does: the index gives the same answers as before. The segment is byte for byte the one
    /// of an index that gets the live documents in one batch; without a live document there is none. An index that is
    /// one such segment already is left alone.
    ///
    /// Time is that of building it; memory is up to twice the bytes of [`set_memory`](Self::set_memory), plus a
    /// thousandth of the files; the disk needs space for a second copy meanwhile. The old files are removed once
    /// nothing names them; snapshots that have them open can still read them.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::NoSpace`] if the disk has no space for it; [`Error::Corrupt`] for a
    /// damaged segment, and [`Error::Limit`] for more than 2^30 documents: the index stays as it was.
    pub fn compact(&mut self) -> Result<u64> {
        self.check_process()?;
        self.check_sound()?;
        drop(self.merging.take());
        let all: Vec<usize> = (0..self.view.segments.len()).collect();
        if self.view.segments.len() > 1 {
            self.work(&all, 0).check_space()?;
        }
        self.guarded(|writer| {
            writer.settle_flush()?;
            writer.flush_records()?;
            writer.expire_written()?;
            writer.view.advance()?;
            // Merged right away, it need not be written to a file first.
            let table = if writer.view.segments.is_empty() { None } else { writer.take_table()? };
            writer.flush_table()?;
            writer.merge_all(table.as_ref(), |_| true)?;
            writer.route = Route::BySettings;
            if writer.coming == NextGeneration::Changed {
                let generation = writer.publish(Publish::Commit)?;
                writer.settle_sweep();
                return Ok(generation);
            }
            writer.keep_promise(Durability::Sync)?;
            writer.sweep_all()?;
            Ok(writer.view.commit)
        })
    }

    /// Between batches: a full memtable is flushed, finished merges replace their sources, and the next merge begins.
    pub(super) fn maintain(&mut self) -> Result<()> {
        self.poll_flush()?;
        let is_full = self.is_full(1);
        if self.settings.background && self.view.rows > 0 && self.log.is_some() {
            let logs = self.next.logged.as_ref().map_or(0, |logged| logged.logs.len());
            self.start_flush()?;
            if is_full && self.flushing.is_some() {
                self.hold_back();
                self.poll_flush()?;
            }
            if (is_full || self.is_log_long() || logs > LOGS) && self.flushing.is_none() {
                self.freeze()?;
                if self.coming == NextGeneration::AsPublished {
                    let manifest = Arc::clone(&self.shared.published.read().manifest);
                    self.show(manifest);
                }
            }
        } else if is_full || self.is_log_long() {
            self.flush_table()?;
            if self.coming == NextGeneration::AsPublished {
                self.empty_table()?; // a log of only payloads; the manifest stores the last one
            }
        }
        self.poll_merge()?;
        if self.coming == NextGeneration::Changed {
            self.publish(Publish::Shape)?;
        }
        if self.settings.background && self.merging.is_none() && self.merge_failure.is_none() {
            let chosen = merge_plan::choose(&self.sizes(), &[]);
            if !chosen.is_empty() {
                self.check_lock()?;
                let number = self.take_number()?;
                let work = self.work(&chosen, number);
                match work.check_space().and_then(|()| work.spawn(self.settings.rate)) {
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

    /// A merge of the segments at these positions.
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
            memory: self.settings.memory.saturating_mul(2),
            inputs: chosen.iter().map(input).collect(),
        }
    }

    /// Waits for the background merge, if there is one, and publishes its output.
    ///
    /// # Errors
    /// The failure that stopped the merge, after which the index is as it was; otherwise as [`commit`](Self::commit).
    /// [`Error::Invalid`] in the middle of a batch.
    pub fn wait_for_merge(&mut self) -> Result<()> {
        self.check_between("wait for a merge")?;
        self.guarded(|writer| {
            writer.settle_flush()?;
            writer.settle_merge()?;
            if writer.coming == NextGeneration::Changed { writer.publish(Publish::Shape).map(drop) } else { Ok(()) }
        })?;
        self.settle_sweep();
        self.merge_failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn check_between(&self, what: &str) -> Result<()> {
        self.check_process()?;
        self.check_sound()?;
        if self.batch.is_empty() && self.records.is_empty() && self.rows.is_none() && self.coming == NextGeneration::AsPublished {
            return Ok(());
        }
        Err(Error::Invalid(format!("{what} between batches: commit this one first")))
    }

    /// Waits for the background merge, if there is one; its output is then in the next generation.
    fn settle_merge(&mut self) -> Result<()> {
        let Some(mut merging) = self.merging.take() else { return Ok(()) };
        let merged = merging.join();
        self.take_merged(merging.number, merged)
    }

    /// As [`settle_merge`](Self::settle_merge), if the merge is finished.
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
                // If another process took the lock, it may use the same number. A leftover is removed by the next
                // sweep.
                if self.lock.is_current() {
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
        // Otherwise documents deleted from its sources since could not be deleted from the output.
        Ok(())
    }

    /// Runs the merge that is due, on this thread; returns false if none is. Repeated until then, it leaves few
    /// segments.
    ///
    /// # Errors
    /// As [`compact`](Self::compact); [`Error::Invalid`] in the middle of a batch.
    pub fn merge_step(&mut self) -> Result<bool> {
        self.check_between("merge")?;
        if self.merging.is_some() {
            self.wait_for_merge()?;
            return Ok(true);
        }
        let chosen = merge_plan::choose(&self.sizes(), &[]);
        if chosen.is_empty() {
            return Ok(false);
        }
        self.work(&chosen, 0).check_space()?;
        self.guarded(|writer| {
            writer.check_lock()?;
            let number = writer.take_number()?;
            let merged = writer.work(&chosen, number).run()?;
            writer.take_place(merged)?;
            writer.publish(Publish::Shape).map(drop)
        })?;
        Ok(true)
    }

    /// Removes files that the current generation does not need, including the generation before: after this there is no
    /// fallback. Returns the bytes removed. Open snapshots keep their files.
    ///
    /// # Errors
    /// [`Error::Invalid`] in the middle of a batch, [`Error::Locked`] if the lock file was taken away, [`Error::Io`].
    pub fn gc(&mut self) -> Result<u64> {
        self.check_between("collect garbage")?;
        drop(self.merging.take());
        self.guarded(|writer| {
            writer.settle_flush()?;
            if writer.coming == NextGeneration::Changed { writer.publish(Publish::Shape).map(drop) } else { Ok(()) }
        })?;
        self.sweep_all()
    }

    pub(super) fn sweep_all(&mut self) -> Result<u64> {
        self.settle_sweep();
        self.check_lock()?;
        // A killed writer may have renamed CURRENT without a sync; then the generation before could come back.
        // guard: the directory is synced before a new writer collects garbage
        if self.pointer == Pointer::MayBeLost {
            commit::sync_dir(&*self.shared.vfs, &self.shared.dir)?;
            self.pointer = Pointer::Durable;
        }
        commit::sweep(&*self.shared.vfs, &self.shared.dir, &self.next, None, &[])
    }
}
