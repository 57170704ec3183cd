//! Removes large unneeded files and frees old states on a background thread while commits continue, because both can take
//! long in the file system and the memory allocator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Writer;
use crate::format::manifest::Manifest;
use crate::store::commit;
use crate::store::state::State;
use crate::sync;

/// Files smaller than this number of bytes are removed directly by the commit. In tests with random thread schedules
/// (`.ci/run races`), all files are removed by the thread.
const LARGE: u64 = if cfg!(twindex_shuttle) { 0 } else { 1 << 20 };
/// Maximum number of times that the thread checks whether it can free a state.
const LOOKS: u32 = 100;
/// The pause between two checks.
const LOOKED: Duration = Duration::from_millis(10);

/// A thread that removes files and drops old states. Dropping this value waits for the thread.
#[derive(Debug)]
pub(super) struct Sweeping {
    thread: Option<sync::JoinHandle<()>>,
    done: Arc<sync::AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Sweeping {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // the thread returns nothing, and its panic has been printed
        }
    }
}

impl Writer {
    /// Removes the files that the published generation does not need, except the files of the previous generation `kept`,
    /// and drops the state `before`. If a file cannot be removed, the next sweep tries again.
    pub(super) fn sweep_after(&mut self, kept: Option<&Manifest>, before: Arc<State>) {
        let busy: Vec<u64> = self.merging.iter().chain(&self.flushing).map(|work| work.number).collect();
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let Ok(garbage) = commit::garbage(vfs, dir, &self.next, kept, &busy) else { return };
        // A file without a number, or with a number that is not assigned yet, may be created again under the same name, so
        // it is removed now.
        // guard: a name that is given again is not removed later
        // without it: file.is_numbered -> true
        let waits =
            |file: &commit::Garbage| self.options.background && file.length >= LARGE && file.is_numbered;
        let (large, small): (Vec<_>, Vec<_>) = garbage.into_iter().partition(waits);
        // guard: each commit removes what it does not need
        commit::remove(vfs, &small);
        let frees_memory = before.view.frozen.is_some() && self.view.frozen.is_none();
        if large.is_empty() && !(frees_memory && self.options.background) {
            return;
        }
        // Files that the previous thread has not removed are found again by the next sweep.
        if self.sweeping.as_ref().is_some_and(|sweeping| !sweeping.is_done()) {
            return;
        }
        let (done, stop) = (Arc::new(sync::AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let work = {
            let (vfs, done, stop) = (Arc::clone(&self.shared.vfs), Arc::clone(&done), Arc::clone(&stop));
            move || {
                commit::remove(&*vfs, &large);
                // The thread that drops the last reference to a state frees its memory. Waits until this thread has the last
                // reference, so that no query has to free the memory.
                let mut looks = 0;
                while Arc::strong_count(&before) > 1 && looks < LOOKS && !stop.load(Ordering::Relaxed) {
                    sync::pause(LOOKED);
                    looks += 1;
                }
                drop(before);
                done.store(true, Ordering::Release);
            }
        };
        // If no thread can be started, the files are kept until the next sweep.
        self.sweeping = None;
        self.sweeping = sync::spawn("twindex-sweep", work).ok().map(|thread| Sweeping {
            thread: Some(thread),
            done,
            stop,
        });
    }

    /// Waits until the thread has finished.
    pub(super) fn settle_sweep(&mut self) {
        drop(self.sweeping.take());
    }
}
