//! Detects a forked process, and records the number of threads. A fork inherits no threads, so waiting for one of them
//! would never end.

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

/// The id of the process that has the threads for batches.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Checks that this process is not a fork. Must be called before any work on all cores.
///
/// # Errors
/// This process is a fork of the one that called this function first.
pub(crate) fn check_process() -> Result<()> {
    let here = std::process::id();
    let first = *PROCESS.get_or_init(|| here);
    if first == here {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "process {here} was forked from {first} after twindex had started its threads there, which a fork has not; start \
         it by \"spawn\" or \"forkserver\" (multiprocessing.set_start_method), or fork before the first batch"
    )))
}
