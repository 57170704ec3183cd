//! Folders in which results are made before they get their name. A running process locks its folder, so a later run can
//! tell the folders of killed runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::work::observer::Observer;

const PREFIX: &str = ".twindex-run-";
/// The name under which a run moves earlier results into its folder before its own get their place.
pub(crate) const EARLIER: &str = "earlier";

/// A folder with a temporary name. Drop removes it.
pub(crate) struct OwnFolder {
    folder: tempfile::TempDir,
    /// The lock on the folder; `None` if the system has no locks on folders.
    _lock: Option<File>,
}

impl OwnFolder {
    /// Creates a folder in `parent`. If `parent` is also the parent of the results folder, both are on one file system
    /// and a rename between them works.
    pub(crate) fn make(parent: &Path) -> anyhow::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        loop {
            let folder = builder
                .tempdir_in(parent)
                .with_context(|| format!("{}: cannot create a folder in it", parent.display()))?;
            let lock = locked(folder.path());
            // Another run may have taken the folder for that of a killed run before it was locked.
            if folder.path().exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder, and returns its path.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Returns the locked folder; `None` if it is locked already, or cannot be locked.
fn locked(folder: &Path) -> Option<File> {
    File::open(folder).ok().filter(|folder| folder.try_lock().is_ok())
}

/// Removes the folders that killed runs have left in `parent`, except those with earlier results. Notes both.
pub(crate) fn sweep(parent: &Path, observer: &dyn Observer) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let folder = entry.path();
        let Some(_lock) = locked(&folder).filter(|_| is_ours) else { continue };
        let earlier = folder.join(EARLIER);
        if earlier.symlink_metadata().is_ok() {
            observer.note(&format!(
                "a run that was killed left the results before it at {}; move them back, or delete the folder",
                earlier.display()
            ));
        } else if fs::remove_dir_all(&folder).is_ok() {
            observer.note(&format!("removed {}, which a run that was killed had left", folder.display()));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Notes(Mutex<Vec<String>>);

    impl Observer for Notes {
        fn note(&self, note: &str) {
            self.0.lock().unwrap().push(note.to_owned());
        }
    }

    #[test]
    fn only_folders_of_killed_runs_without_earlier_results_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let running = OwnFolder::make(parent.path()).unwrap();
        let [killed, replacing] = [0; 2].map(|_| OwnFolder::make(parent.path()).unwrap().keep());
        fs::write(killed.join("kept.jsonl"), "half").unwrap();
        fs::create_dir(replacing.join(EARLIER)).unwrap();
        let notes = Notes(Mutex::default());
        sweep(parent.path(), &notes);
        assert!(running.path().exists() && !killed.exists() && replacing.join(EARLIER).exists());
        let notes = notes.0.into_inner().unwrap().join("\n");
        let [killed, replacing] = [killed, replacing].map(|folder| folder.display().to_string());
        assert!(notes.contains(&format!("removed {killed},")), "{notes}");
        assert!(notes.contains(&format!("at {replacing}/earlier;")), "{notes}");
        assert_eq!(notes.lines().count(), 2, "{notes}");
    }
}
