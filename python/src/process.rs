//! Runs work on all cores, also in a forked process. A fork inherits no threads, so waiting for one of them would never
//! end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use twindex::WriterOptions;

use crate::error::{Failure, Result};

/// The number of threads that was set; 0 for all cores.
pub(crate) static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Returns the default options of a writer, with the number of threads that was set.
pub(crate) fn writer_options() -> WriterOptions {
    let options = WriterOptions::default();
    match THREADS.load(Ordering::Relaxed) {
        0 => options,
        threads => options.threads(threads),
    }
}

/// The id of the process that has the global threads for batches.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Returns whether this process is a fork of the one in which the first batch ran.
pub(crate) fn is_fork() -> bool {
    let here = std::process::id();
    *PROCESS.get_or_init(|| here) != here
}

/// Runs work that uses all cores. A fork starts threads for each call: global ones cannot be started again, and calls
/// that share threads could wait for each other's locks.
pub(crate) fn on_all_cores<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if !is_fork() {
        return work();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS.load(Ordering::Relaxed)).build();
    let pool = pool.map_err(|error| Failure::invalid(format!("cannot start threads: {error}")))?;
    pool.install(work)
}
