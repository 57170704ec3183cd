//! Detects a forked process. A fork inherits no threads, so waiting for one of them would never end.

use std::sync::OnceLock;

use crate::error::{Failure, Result};

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
