//! What files are protected from: changes between two readings, and panics of the crates that decode them.

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::SystemTime;

/// Size and modification time of a file. If they differ later, the file has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(file: &fs::File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// An error of copying rows from a file to another one.
pub(crate) enum CopyError {
    /// The rows cannot be copied from their file.
    Read(String),
    /// The output file cannot be created.
    Write(anyhow::Error),
}

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls arrow-rs in `what`, and returns a panic as an error, without printing it. Damaged files make arrow-rs panic in
/// more situations than can be detected in advance.
pub(crate) fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // guard: a panic of arrow-rs that is caught is not printed
            // without it: GUARDED.get() -> false
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    GUARDED.set(true);
    // guard: a panic of arrow-rs is an error
    // without it: catch_unwind(AssertUnwindSafe(what)) -> Ok(what())
    let done = catch_unwind(AssertUnwindSafe(what));
    GUARDED.set(false);
    done.unwrap_or_else(|_| Err("its decoder failed: the file is damaged".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn caught_panics_are_silent_and_others_are_printed() {
        const ALONE: &str = "TWINDEX_ALONE";
        static NOTICED: AtomicU64 = AtomicU64::new(0);
        if std::env::var_os(ALONE).is_none() {
            // The panic hook is shared by all tests of a process, so this test needs a process of its own.
            let name = "input::columns::file::tests::caught_panics_are_silent_and_others_are_printed";
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            let alone = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&alone.stdout);
            assert!(alone.status.success() && said.contains("1 passed"), "alone: {said}");
            return;
        }
        std::panic::set_hook(Box::new(|_| {
            NOTICED.fetch_add(1, Ordering::Relaxed);
        }));
        let done = guarded(|| -> Result<(), String> { panic!("as arrow-rs does") });
        assert_eq!(done, Err("its decoder failed: the file is damaged".to_owned()));
        assert_eq!(NOTICED.load(Ordering::Relaxed), 0);
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        assert!(catch_unwind(|| panic!("of ours")).is_err());
        assert_eq!(NOTICED.load(Ordering::Relaxed), 1);
    }
}
