//! Threads do not live on in a process that was forked: who waits for them there waits for ever.

use std::sync::OnceLock;

use crate::error::{Failure, Result};

/// The process whose threads work on batches.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// To be called before anything that works on all cores.
///
/// # Errors
/// In a fork of the process that did so first.
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
