//! Drops the uncommitted batch, so that the writer continues from the last commit.
use std::sync::Arc;

use super::Writer;
use super::states::{NextGeneration, PendingSync, Route};
use crate::error::Result;
use crate::format::log::LogBatch;
use crate::format::manifest::Manifest;
use crate::segment::records::Records;
use crate::store::names;

impl Writer {
    /// Drops the batch: all puts, deletes and admissions since the last commit. The writer continues as if they had never
    /// been requested, and also takes back the time to which their stamps advanced it. Segments that a large batch has
    /// already written are removed, and the memory of its documents is freed, except hash buckets of the memtable. Options,
    /// and merges that began before the batch, are kept. Without a batch this does nothing.
    ///
    /// Time is proportional to the number of operations in the batch.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().u64_keys().simhash(3).build()?)?;
    /// let mut writer = index.writer()?;
    /// writer.put(1, Fingerprint(1))?;
    /// writer.commit()?;
    /// writer.delete(1)?;
    /// writer.put(2, Fingerprint(2))?;
    /// assert!(writer.contains(2)? && !writer.contains(1)?);
    /// writer.rollback()?;
    /// assert!(writer.contains(1)? && !writer.contains(2)?);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned) after an earlier failure of this writer; its batch is dropped with the
    /// writer. [`Error::Locked`](crate::Error::Locked) if the lock file was removed, [`Error::Io`](crate::Error::Io); the
    /// writer is then poisoned.
    pub fn rollback(&mut self) -> Result<()> {
        self.check_process()?;
        self.guarded(|writer| {
            writer.check_lock()?;
            writer.drop_batch();
            Ok(())
        })
    }

    pub(super) fn drop_batch(&mut self) {
        let published = Arc::clone(&self.shared.published.read());
        // A flush of the frozen memtable that is part of the last commit continues. A memtable that was frozen in the
        // middle of this batch contains rows of the batch, so its flush is stopped.
        let of_commit = published.view.frozen.as_ref().map(|frozen| Arc::as_ptr(&frozen.table));
        let frozen = self.view.frozen.as_ref().map(|frozen| Arc::as_ptr(&frozen.table));
        if frozen != of_commit {
            self.written.extend(self.flushing.take().map(|flushing| flushing.number));
        }
        self.batch = LogBatch::default();
        self.records = Records::new(&self.params);
        self.rows = None;
        self.smallest.clear();
        self.dropped = None;
        published.view.table.truncate(published.view.rows);
        self.view = published.view.clone();
        self.checked_at = self.view.rows;
        // Numbers that the batch took are not reused: a file whose removal fails could have such a number.
        let next_segment = self.next.next_segment;
        self.next = Manifest { next_segment, ..Manifest::clone(&published.manifest) };
        self.coming = NextGeneration::AsPublished;
        self.owed = PendingSync::Nothing;
        self.route = Route::BySettings;
        // A log is retired only in the middle of a batch, and the last commit names it.
        self.log = self.retired.take().or(self.log.take());
        self.unlink_written(&published.manifest);
        self.written.clear();
    }

    /// Removes the segments that this writer has written and that the published generation does not name. If a file
    /// cannot be removed, the sweep of the next writer removes it, because no manifest names it.
    pub(super) fn unlink_written(&self, published: &Manifest) {
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        // guard: files of a batch that was not committed are removed
        for &number in &self.written {
            if published.segments.iter().all(|known| known.number != number) {
                let _ = vfs.unlink(&names::segment(dir, number));
            }
        }
    }
}
