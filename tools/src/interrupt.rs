//! Ctrl-C, and requests to end: what is half done goes away first.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Folders that go when the process is told to end.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// What shells take for the end by Ctrl-C: 128 and the number of SIGINT.
const EXIT_CODE: i32 = 130;
/// How often a folder is tried into which something is written meanwhile.
const TRIES: u32 = 50;

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for SIGINT, SIGTERM and SIGHUP to be answered by removing what is half done. Where they cannot be asked for,
/// the system ends the process as ever.
pub(crate) fn watch() {
    let answered = ctrlc::set_handler(|| {
        let folders = folders();
        for _ in 0..TRIES {
            // Other threads go on until the end, and may write into a folder while it is removed.
            if folders.iter().all(|folder| fs::remove_dir_all(folder).is_ok() || !folder.exists()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::process::exit(EXIT_CODE)
    });
    if let Err(error) = answered {
        tracing::debug!(%error, "signals cannot be answered");
    }
}

/// A folder that goes when this is dropped, and when the process is told to end.
pub(crate) struct HalfDone(PathBuf);

impl HalfDone {
    pub(crate) fn new(folder: &Path) -> Self {
        folders().push(folder.to_owned());
        Self(folder.to_owned())
    }
}

impl Drop for HalfDone {
    fn drop(&mut self) {
        folders().retain(|folder| *folder != self.0);
    }
}
