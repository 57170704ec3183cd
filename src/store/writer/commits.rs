//! Makes a batch visible and durable, either by a record in the log or by a manifest.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::states::{DirectoryName, Life, NextGeneration, PendingSync, Pointer, Publish, Route};
use super::sweeping::{LARGE, Sweeping};
use super::{Durability, Writer, next_number};
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::fields::{self, Fields};
use crate::format::log::{LOG_HEAD_BYTES, PAYLOAD_BYTES_MAX};
use crate::format::manifest::{LogEntry, Logged, Manifest};
use crate::store::history::{History, current_stamp};
use crate::store::log::OpenLog;
use crate::store::state::State;
use crate::store::{generation, names, recovery};
use crate::trace::span;

/// Maximum number of bytes that [`Durability::None`] commits hold in memory.
const HELD: usize = 1 << 20;
/// Maximum number of logs of earlier writers. If there are more, their rows are flushed to a segment.
pub(super) const LOGS: usize = 16;
/// If there are this many logs, the commit itself flushes the memtable. More than [`LOGS`] logs accumulate if writers
/// are killed before they have written a segment.
const LOGS_MAX: usize = 48;

impl Writer {
    /// Makes the batch visible and durable, atomically, and returns the number of the commit. Writes nothing if there
    /// are no changes.
    ///
    /// # Errors
    /// [`Error::AfterCommit`] if the batch is committed but a later step of the writer failed (the flush of a full
    /// memtable). Otherwise [`Error::Io`], for example if the disk is full: earlier commits are intact, and the whole
    /// batch is lost. If one of the last steps failed, such as the sync of the directory, the whole batch may still
    /// have been committed; [`Index::refresh`](crate::Index::refresh) and
    /// [`Snapshot::generation`](crate::Snapshot::generation) show whether it was. [`Error::Locked`] if the lock file
    /// was removed. After any of these errors the writer is poisoned.
    pub fn commit(&mut self) -> Result<u64> {
        self.check_process()?;
        self.guarded(|writer| writer.commit_batch(None))
    }

    /// Like [`commit`](Self::commit), but also commits an empty batch, and stores `payload` with the commit.
    /// [`Snapshot::payload`](crate::Snapshot::payload) returns the payload, also after reopening, until another commit
    /// stores one. For example, a program can store the position in its input up to which documents are committed.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); [`Error::Limit`] for more than 65,536 bytes.
    pub fn commit_with(&mut self, payload: &[u8]) -> Result<u64> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let (limit, found) = (PAYLOAD_BYTES_MAX as u64, payload.len() as u64);
            return Err(Error::Limit { what: "bytes of a commit's payload", limit, found });
        }
        self.check_process()?;
        self.guarded(|writer| writer.commit_batch(Some(payload)))
    }

    /// Makes earlier commits durable that a weaker [`Durability`] left unsynced.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); [`Error::Invalid`] in the middle of a batch, if a previous writer left
    /// unsynced commits.
    pub fn sync(&mut self) -> Result<()> {
        self.check_process()?;
        if self.log.is_none() && self.retired.is_none() && self.is_torn() {
            // A previous writer made the unsynced commits. Publishing a generation copies these commits to a new log.
            self.check_between("sync what another writer has left")?;
            return self.guarded(|writer| {
                writer.coming = NextGeneration::Changed;
                writer.publish(Publish::Commit).map(drop)
            });
        }
        self.guarded(|writer| {
            writer.check_lock()?;
            writer.retired.iter_mut().chain(&mut writer.log).try_for_each(OpenLog::sync)?;
            writer.show_durable();
            writer.log.as_mut().map_or(Ok(()), OpenLog::mark)
        })
    }

    pub(super) fn commit_batch(&mut self, payload: Option<&[u8]>) -> Result<u64> {
        span!("commit", after = self.view.commit);
        let collected = self.options.makes_segments();
        self.record_time()?;
        self.flush_records()?;
        if self.options.one_segment {
            self.flush_table()?;
            self.merge_written()?;
        }
        // `add` expires no documents while `one_segment` is set. So they expire here, even if the option was changed
        // since.
        if !self.written.is_empty() {
            self.expire_written()?;
        }
        self.view.advance()?;
        if self.coming == NextGeneration::Changed || collected && !self.batch.is_empty() {
            // Either the next generation already differs from the published one, or commits are written as segments. So
            // the rest of the batch is flushed, and published with this generation.
            self.flush_table()?;
            self.set_payload(payload);
            self.publish(Publish::Commit)?;
        } else if !self.batch.is_empty() || payload.is_some() {
            self.log_batch(payload)?;
        } else {
            return self.keep_promise(self.options.durability);
        }
        self.route = Route::BySettings;
        let commit = self.view.commit;
        if !self.options.makes_segments() {
            self.maintain().map_err(|error| Error::AfterCommit { commit, source: Box::new(error) })?;
        }
        Ok(commit)
    }

    /// Stores the highest stamp if `admit` dropped the document with this stamp: adds an empty document with the stamp
    /// to the batch, and deletes it again.
    fn record_time(&mut self) -> Result<()> {
        // guard: the time of a dropped document is kept
        // without it: self.view.unrecorded() -> None::<u64>
        let Some(stamp) = self.view.unrecorded() else { return Ok(()) };
        match self.dropped.take() {
            Some(key) if !self.contains(&key)? => {
                let mut fields = Vec::new();
                fields::encode(&self.params, false, &[], None, &mut fields);
                let fields = Fields::of(&fields);
                self.push(
                    key.as_key(),
                    None,
                    Attached { stamp: Some(stamp), fields, ..Attached::default() },
                    true,
                )?;
                self.delete(&key)
            }
            // Meanwhile a document with this key exists, so a new manifest stores the time instead.
            _ => {
                self.coming = NextGeneration::Changed;
                Ok(())
            }
        }
    }

    /// Completes a commit without changes: syncs earlier commits as far as `durability` requires.
    pub(super) fn keep_promise(&mut self, durability: Durability) -> Result<u64> {
        let torn = self.log.is_none() && self.is_torn();
        self.check_lock()?;
        match (&mut self.log, durability) {
            (Some(log), Durability::Sync) => log.sync()?,
            (Some(log), Durability::Batch) => log.write()?,
            (None, Durability::Sync) if torn => {
                self.coming = NextGeneration::Changed;
                return self.publish(Publish::Commit);
            }
            _ => {}
        }
        Ok(self.view.commit)
    }

    pub(super) fn set_payload(&mut self, payload: Option<&[u8]>) {
        if let Some(payload) = payload {
            self.view.payload = Some(payload.into());
            self.coming = NextGeneration::Changed;
        }
    }

    pub(super) fn log_batch(&mut self, payload: Option<&[u8]>) -> Result<()> {
        let commit = next_number("number of a commit", self.view.commit)?;
        self.check_lock()?;
        let begins = self.log.is_none();
        if begins {
            let logs = self.next.logged.as_ref().map_or(0, |logged| logged.logs.len());
            if logs >= if self.options.background { LOGS_MAX } else { LOGS } {
                self.flush_table()?;
                // If the memtable is empty, because commits had only payloads, `flush_table` does nothing. The new
                // manifest stores the last payload, so the logs are not needed.
                if self.is_torn() {
                    self.owed = PendingSync::Sync;
                }
                if let Some(logged) = &mut self.next.logged {
                    logged.logs.clear();
                }
                self.batch.clear();
                self.coming = NextGeneration::Changed;
                self.set_payload(payload);
                return self.publish(Publish::Commit).map(drop);
            }
            self.begin_log(commit)?;
        }
        let start = Instant::now();
        let Some(log) = &mut self.log else { unreachable!("begun above") };
        let before = log.end();
        // guard: a commit is given to the log before it is acknowledged
        log.add(&self.batch, commit, payload);
        let held = log.held();
        match self.options.durability {
            // guard: a sync of the log that failed is a failure
            // without it: log.sync()? -> drop(log.sync())
            _ if begins => log.sync()?,
            // guard: a sync of the log that failed is a failure
            // without it: log.sync()? -> drop(log.sync())
            Durability::Sync => log.sync()?,
            Durability::Batch => log.write()?,
            Durability::None if held > HELD => log.write()?,
            Durability::None => {}
        }
        self.shared.counters.commits.add(start.elapsed(), log.end() - before);
        self.batch.clear();
        self.view.commit = commit;
        if let Some(payload) = payload {
            self.view.payload = Some(payload.into());
        }
        self.view.count();
        if begins {
            // A manifest must be published that names the new log and its first commit.
            return self.publish_as(commit, Publish::Log).map(drop);
        }
        // guard: a commit is shown before it is acknowledged
        self.show_again();
        Ok(())
    }

    /// Creates a log for this writer; the next generation names it. It begins with the batches of the previous writer's
    /// log that are not known to be durable. `commit` is the number of the next commit.
    pub(super) fn begin_log(&mut self, commit: u64) -> Result<()> {
        let (vfs, dir) = (Arc::clone(&self.shared.vfs), self.shared.dir.clone());
        let position = self.shared.published.read().position();
        let number = self.next.logged.as_ref().map_or(1, |logged| logged.next_log);
        let (log, first) = recovery::rewrite_tail(&*vfs, &dir, &self.next, position, number, commit)?;
        let logged = self.next.logged.get_or_insert_with(Logged::default);
        if let (Some(last), Some(position)) = (logged.logs.last_mut(), position)
            && last.grows
        {
            (last.length, last.grows) = (position.synced, false);
            if position.synced <= LOG_HEAD_BYTES {
                logged.logs.pop();
            }
        }
        logged.logs.push(LogEntry { number, first, length: 0, grows: true });
        logged.next_log = next_number("number of a log", number)?;
        self.log = Some(log);
        Ok(())
    }

    /// Returns whether the previous writer's log has batches that are not known to be durable.
    pub(super) fn is_torn(&self) -> bool {
        self.shared.published.read().position().is_some_and(|at| at.synced < at.batches)
    }

    /// Publishes the next generation if it differs from the current one. Then removes files that are no longer needed.
    pub(super) fn publish(&mut self, what: Publish) -> Result<u64> {
        if self.coming == NextGeneration::AsPublished {
            return Ok(self.view.commit);
        }
        let generation = next_number("generation of an index", self.view.commit)?;
        self.publish_as(generation, what)
    }

    /// Like [`publish`](Self::publish), but always publishes, and takes the generation number from the caller.
    pub(super) fn publish_as(&mut self, generation: u64, what: Publish) -> Result<u64> {
        self.check_lock()?;
        self.check_logs()?;
        // The manifest contains the deletes of all batches, so it must not be written before all batches are durable.
        let named = self.next.logged.as_ref().is_some_and(|logged| !logged.logs.is_empty());
        let begins = named && self.log.is_none() && self.is_torn();
        if begins {
            self.begin_log(generation)?;
        }
        let durable = match &mut self.log {
            Some(log) => {
                // guard: batches are durable before the manifest that has their deletes
                log.sync()?;
                log.synced()
            }
            None => self.shared.published.read().position().map_or(0, |position| position.synced),
        };
        // Records the durable length of the log, so that a later reader detects if the log was truncated.
        if let Some(last) = self.next.logged.as_mut().and_then(|logged| logged.logs.last_mut())
            && last.grows
        {
            last.length = last.length.max(durable);
        }
        // Removes segments without live documents, which would only slow queries down. The sources of a running merge
        // are kept.
        let merging = self.merging.take();
        let takes = |number| merging.as_ref().is_some_and(|merging| merging.takes(number));
        self.keep_segments(|_, entry, deleted| deleted < entry.documents || takes(entry.number));
        self.merging = merging;
        for (entry, deleted) in self.next.segments.iter_mut().zip(&self.view.deleted) {
            if entry.deleted != **deleted {
                entry.deleted.clone_from(deleted);
            }
        }
        self.next.generation = generation;
        self.next.now = self.view.now();
        if self.next.logged.is_some() || self.view.payload.is_some() {
            let logged = self.next.logged.get_or_insert_with(|| Logged { next_log: 1, ..Logged::default() });
            logged.payload = self.view.payload.as_deref().map(<[u8]>::to_vec);
        }

        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let current = generation::write_manifest(vfs, dir, &self.next)?;
        let settles = what.acknowledges() || begins || self.owed == PendingSync::Sync;
        // No reader opens a directory with a temporary name, so it is enough to sync it after `CURRENT` is written.
        // guard: the directory is synced before CURRENT names what is in it
        if self.place == DirectoryName::Named || !settles {
            generation::sync_dir(vfs, dir)?;
        }
        self.pointer = Pointer::MayBeLost;
        let pointer = generation::write_current(vfs, dir, &current)?;
        self.life = Life::InDoubt;
        // guard: files are removed after the generation without them is published
        // without it: generation::sweep(vfs, dir, &self.next, None, &[]);
        generation::replace_current(dir, pointer)?;
        // guard: the directory is synced before files that have expired are removed
        if settles {
            generation::sync_dir(vfs, dir)?;
            self.pointer = Pointer::Durable;
        }
        self.life = Life::Sound;
        self.coming = NextGeneration::AsPublished;
        self.owed = PendingSync::Nothing;
        self.retired = None;
        self.written.clear();
        self.view.commit = generation;
        self.current.set(current_stamp(vfs, dir).unwrap_or(None)); // after a failure, the next check reads `CURRENT`
        let before = Arc::clone(&self.shared.published.read());
        self.show(Arc::new(self.next.clone()), current.digest.get());
        // The commit is complete, even if the removal of files fails now.
        let manifest = Arc::clone(&before.manifest);
        self.sweep_after(what.keeps_before().then_some(&*manifest), before);
        Ok(generation)
    }

    /// Updates the durable commit of the published state, without publishing the uncommitted batch.
    pub(super) fn show_durable(&self) {
        let known = Arc::clone(&self.shared.published.read());
        let history = self.history(&known.manifest, known.history.manifest, known.view.commit);
        if history.position() != known.position() {
            let state =
                State::new(Arc::clone(&known.manifest), known.view.clone(), history, self.sketch_digest);
            self.shared.publish(state);
        }
    }

    /// Returns the history of the published state with the manifest `manifest`, whose digest is `digest`, after `commit`.
    fn history(&self, manifest: &Manifest, digest: u128, commit: u64) -> History {
        let known = Arc::clone(&self.shared.published.read());
        let entries = manifest.logged.iter().flat_map(|logged| &logged.logs);
        let logs = entries.filter_map(|entry| match &self.log {
            Some(log) if log.number() == entry.number => Some(log.read_log(commit)),
            _ => known.history.log(entry.number).cloned(),
        });
        History { manifest: digest, logs: logs.collect() }
    }

    /// Publishes the view with a new manifest, whose digest is `digest`: all later snapshots see it.
    fn show(&self, manifest: Arc<Manifest>, digest: u128) {
        let history = self.history(&manifest, digest, self.view.commit);
        self.shared.publish(State::new(manifest, self.view.clone(), history, self.sketch_digest));
    }

    /// Publishes the view with the manifest of the published state.
    pub(super) fn show_again(&self) {
        let known = Arc::clone(&self.shared.published.read());
        self.show(Arc::clone(&known.manifest), known.history.manifest);
    }

    /// Removes the files that neither the published generation nor the previous generation `kept` needs, and drops the
    /// state `before`. If a file cannot be removed, the next sweep tries again.
    pub(super) fn sweep_after(&mut self, kept: Option<&Manifest>, before: Arc<State>) {
        let busy: Vec<u64> = self.merging.iter().chain(&self.flushing).map(|work| work.number).collect();
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let Ok(garbage) = generation::garbage(vfs, dir, &self.next, kept, &busy) else { return };
        // Removes files at once if a new file may get the same name: files without a number, and with a number that is
        // not assigned yet.
        // guard: a name that is given again is not removed later
        // without it: file.is_numbered -> true
        let waits =
            |file: &generation::Garbage| self.options.background && file.length >= LARGE && file.is_numbered;
        let (large, small): (Vec<_>, Vec<_>) = garbage.into_iter().partition(waits);
        // guard: each commit removes what it does not need
        generation::remove(vfs, &small);
        let frees_memory = before.view.frozen.is_some() && self.view.frozen.is_none();
        if large.is_empty() && !(frees_memory && self.options.background) {
            return;
        }
        // While the previous thread runs, no other is started: the next sweep will find the remaining files.
        if self.sweeping.as_ref().is_some_and(|sweeping| !sweeping.is_done()) {
            return;
        }
        self.sweeping = None; // waits for the previous thread
        self.sweeping = Sweeping::begin(Arc::clone(&self.shared.vfs), large, before);
    }

    /// Waits until the thread that removes files has ended.
    pub(super) fn settle_sweep(&mut self) {
        drop(self.sweeping.take());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_forked() {
            // This is a forked child. The files, the lock and the background threads belong to the process that opened
            // this writer. The child must not wait for the threads: it does not have them, so the wait would never end.
            std::mem::forget(self.merging.take());
            std::mem::forget(self.flushing.take());
            std::mem::forget(self.sweeping.take());
            self.shared.writing.store(false, Ordering::Release);
            return;
        }
        self.shorten_tail();
        self.settle_sweep();
        let under_way = [self.merging.take(), self.flushing.take()];
        self.written.extend(under_way.into_iter().flatten().map(|work| work.number));
        let is_held = self.check_lock().is_ok();
        if self.life == Life::Sound
            && is_held
            && let Some(log) = &mut self.log
            && log.write().is_ok()
        {
            // Writes the commits held in memory, whose durability was not guaranteed. Ignores a failure to write the
            // mark, which is optional, because `drop` cannot return an error.
            let _ = log.mark();
            self.show_durable();
        }
        let held = self.log.iter().chain(&self.retired).any(|log| log.held() > 0);
        if self.life != Life::Sound && (held || self.options.durability == Durability::None) {
            // Commits held in memory could not be written and are lost, although earlier snapshots contain them. From
            // now on snapshots show the state on disk.
            let loaded = State::load(&*self.shared.vfs, &self.shared.dir, self.shared.access);
            if let Ok(state) = loaded {
                self.shared.publish(state);
            }
        }
        // Removes the memtable rows of a batch that was not committed.
        let published = Arc::clone(&self.shared.published.read());
        let beyond = published.view.table.read().len() > published.view.rows;
        if beyond {
            published.view.table.truncate(published.view.rows);
        }
        self.shared.writing.store(false, Ordering::Release);
        // Removes the segments of a batch that was not committed, unless `CURRENT` may name the new generation already.
        // The next writer removes segments that no manifest names.
        // guard: what CURRENT may name is not removed after a failure
        // without it: self.life == Life::InDoubt -> false
        if self.life == Life::InDoubt || !is_held {
            return;
        }
        self.view.segments.clear();
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        self.unlink_written(&published.manifest);
        let known = published.manifest.logged.iter().flat_map(|logged| &logged.logs);
        let known: Vec<u64> = known.map(|log| log.number).collect();
        for log in self.next.logged.iter().flat_map(|logged| &logged.logs) {
            if !known.contains(&log.number) {
                let _ = vfs.unlink(&names::log(dir, log.number));
            }
        }
        if self.next.generation > published.manifest.generation {
            let _ = vfs.unlink(&names::manifest(dir, self.next.generation));
        }
    }
}
