//! Handles Ctrl-C and termination signals: removes unfinished results, and reports what is left, before the process ends.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[cfg(unix)]
use crate::terminal;

/// The folders and files to remove if a signal ends the process.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The message about what a signal leaves, and how to continue.
static LEFT: OnceLock<String> = OnceLock::new();

/// Sets the message that is printed if a signal ends the process. Only the first call has an effect.
pub(crate) fn on_signal(left: String) {
    let _ = LEFT.set(left);
}

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles SIGINT, SIGTERM and SIGHUP by removing unfinished results. Signals that are ignored at the start, as under
/// nohup, stay ignored. If handlers cannot be installed, the signals end the process without this cleanup.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    match signal_hook::iterator::Signals::new(wanted) {
        Ok(mut signals) => {
            let answer = move || {
                if let Some(signal) = signals.forever().next() {
                    end(signal);
                }
            };
            let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(answer);
        }
        Err(error) => tracing::debug!(%error, "signals cannot be answered"),
    }
}

#[cfg(not(unix))]
pub(crate) fn watch() {}

/// Returns the ignored signals as a bit mask whose bit 0 is signal 1; 0 if the system does not report them.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Removes unfinished results, and ends the process with the exit code that shells use for this signal.
#[cfg(unix)]
fn end(signal: i32) -> ! {
    /// Maximum number of attempts to remove a folder while other threads write files into it.
    const TRIES: u32 = 50;
    let folders = folders();
    for _ in 0..TRIES {
        // Other threads run until the process ends, and may write into a folder while it is removed.
        if folders.iter().all(|half_done| remove(half_done) || !half_done.exists()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    if let Some(left) = LEFT.get() {
        terminal::warn(left);
    }
    std::process::exit(128 + signal)
}

#[cfg(unix)]
fn remove(half_done: &Path) -> bool {
    if half_done.is_dir() {
        std::fs::remove_dir_all(half_done).is_ok()
    } else {
        std::fs::remove_file(half_done).is_ok()
    }
}

/// A folder or file that is removed if a signal ends the process. Dropping this value cancels the removal.
pub(crate) struct RemovedOnSignal(PathBuf);

impl RemovedOnSignal {
    pub(crate) fn new(folder: &Path) -> Self {
        folders().push(folder.to_owned());
        Self(folder.to_owned())
    }
}

impl Drop for RemovedOnSignal {
    fn drop(&mut self) {
        folders().retain(|folder| *folder != self.0);
    }
}
