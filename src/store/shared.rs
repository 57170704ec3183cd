//! The part of an open index that its handles, its writer and its background threads share.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::metrics::MetricCounters;
use super::state::State;
use crate::error::Result;
use crate::sync::{AtomicBool, Mutex, RwLock};
use crate::sys::{Access, Vfs};
use twindex_sketch::IdfTable;

#[derive(Debug)]
pub(super) struct SharedIndex {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    /// The method of reading segment files: memory maps, or read calls.
    pub(super) access: Access,
    /// The last published state, used by new snapshots. A commit replaces the whole state.
    pub(super) published: RwLock<Arc<State>>,
    /// The IDF table, loaded at the first request. It never changes, because the parameters never change.
    pub(super) idf: OnceLock<Arc<IdfTable>>,
    /// Whether a writer created from this index exists. `refresh` then does nothing, because the writer itself puts its
    /// commits into `published`.
    pub(super) writing: AtomicBool,
    /// The lock that a thread holds while it reads the commits of other processes.
    pub(super) refreshing: Mutex<()>,
    /// Whether the index was opened with [`OpenOptions::at_generation`](super::OpenOptions::at_generation). Such an index is
    /// never refreshed.
    pub(super) pinned: bool,
    pub(super) counters: MetricCounters,
}

impl SharedIndex {
    /// Makes a state visible to all later snapshots. The old state is dropped after the lock is released, because
    /// dropping the last reference to a memtable or a segment takes time.
    pub(super) fn publish(&self, state: State) {
        let state = Arc::new(state);
        let before = std::mem::replace(&mut *self.published.write(), state);
        drop(before);
    }

    /// Implements [`Index::refresh`](super::Index::refresh).
    pub(super) fn refresh(&self) -> Result<bool> {
        // guard: one thread at a time takes in what other processes did
        let _refreshing = self.refreshing.lock();
        self.refresh_alone()
    }

    /// Like [`refresh`](Self::refresh); the caller must have locked `refreshing`.
    pub(super) fn refresh_alone(&self) -> Result<bool> {
        // guard: the process of a writer does not read what it writes
        // without it: self.writing.load(Ordering::Acquire) -> false
        if self.pinned || self.writing.load(Ordering::Acquire) {
            return Ok(false); // pinned, or this process has the writer and no other process can commit
        }
        let known = Arc::clone(&self.published.read());
        let newer = State::newer(&*self.vfs, &self.dir, self.access, Some(&known), None)?;
        let Some(state) = newer else { return Ok(false) };
        // A state with the same manifest and the same commit differs only in which commits are durable. The number of the
        // last commit is lower if a copy of the index was restored.
        let is_same = Arc::ptr_eq(&state.manifest, &known.manifest) && state.view.commit == known.view.commit;
        self.publish(state);
        Ok(!is_same)
    }
}
