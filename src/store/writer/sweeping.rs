//! A background thread that removes large unneeded files and frees old states while commits continue. Both can take
//! long, in the file system and in the memory allocator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::store::generation;
use crate::store::state::State;
use crate::sync;
use crate::sys::Vfs;

/// Files smaller than this number of bytes are removed directly by the commit. In tests with random thread schedules
/// (`.ci/run races`), all files are removed by the thread.
pub(super) const LARGE: u64 = if cfg!(all(test, twindex_shuttle)) { 0 } else { 1 << 20 };
/// Number of times that the thread checks whether it holds the last reference to a state.
const LOOKS: u32 = 100;
const LOOKED: Duration = Duration::from_millis(10);

/// A thread that removes files and drops old states. Dropping this value waits for the thread.
#[derive(Debug)]
pub(super) struct Sweeping {
    thread: Option<sync::JoinHandle<()>>,
    done: Arc<sync::AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Sweeping {
    /// Starts a thread that removes the files `large` and drops the state `before`. Returns `None` if no thread can be
    /// started; then the files remain until the next sweep.
    pub(super) fn begin(
        vfs: Arc<dyn Vfs>,
        large: Vec<generation::Garbage>,
        before: Arc<State>,
    ) -> Option<Self> {
        let (done, stop) = (Arc::new(sync::AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let work = {
            let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
            move || {
                generation::remove(&*vfs, &large);
                // The thread that drops the last reference to a state frees the memory of the state. This thread waits,
                // up to a limit, until no query refers to the state: otherwise a query would free it.
                let mut looks = 0;
                while Arc::strong_count(&before) > 1 && looks < LOOKS && !stop.load(Ordering::Relaxed) {
                    sync::pause(LOOKED);
                    looks += 1;
                }
                drop(before);
                done.store(true, Ordering::Release);
            }
        };
        let thread = sync::spawn("twindex-sweep", work).ok()?;
        Some(Self { thread: Some(thread), done, stop })
    }

    pub(super) fn is_done(&self) -> bool {
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
