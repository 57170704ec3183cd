//! The journal of `dedup --resume`: files from which the same command continues a run that was killed.
//!
//! ```text
//! .OUT.twindex-resume/     beside OUT
//!   LOCK                   held by the run that uses the journal
//!   manifest               the options that determine the results, and a random number of the run
//!   inputs                 each file that is read: size in bytes, modification time, path
//!   reading-000001 ...     results of the chunks of the inputs (for a history: history-...)
//!   sets                   the sets that exceed the memory: the scratch file of the run
//!   decided                which groups are kept
//!   index, kept            finished files of results, with their hashes
//!   published              the identity of the folder of results, written before it is renamed
//!   results/               the results, until they are renamed to OUT
//! ```
//!
//! Each file except `sets` is written under a temporary name (with `.tmp`), synced and renamed; then the folder is synced.
//! So a file with its final name is complete, and it was complete before any later file was. Each file has the id of its
//! run and a hash of all its bytes. Bytes are appended to `sets`, and synced before a part that refers to them is complete.
//! The part has their hashes. A resumed run adds the same sets again. A damaged file causes an error that names it.
//!
//! A resumed run has the same results as a run that was not stopped: it reads the stored results of a chunk instead of
//! sketching the chunk, in the same order, and computes everything else from them.

mod fingerprint;
mod parts;
mod results;
mod sealed;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use twindex::sys::lock::FileLock;
use twindex::sys::vfs::LockFailure;
use twindex::sys::{RealVfs, Vfs};

use crate::observer::Observer;
use crate::remembered::BEGIN_ANEW;

pub(super) use self::fingerprint::{JobDescription, JobOptions};
pub(super) use self::parts::ChunkParts;

/// Suffix of the journal folder, after the name of OUT.
const SUFFIX: &str = ".twindex-resume";
/// Suffix of a journal folder that is being removed, because its run has ended.
const ENDED: &str = "-ended";
/// Suffix of a file that is being written.
const UNFINISHED: &str = ".tmp";
const LOCK: &str = "LOCK";
const MANIFEST: &str = "manifest";
const INPUTS: &str = "inputs";
/// Name of the results folder inside the journal.
const RESULTS: &str = "results";
/// Name of the file that marks results as about to be renamed.
const PUBLISHED: &str = "published";
/// Prefixes of the part files: of the history and of the input documents.
const READINGS: [&str; 2] = ["history", "reading"];
/// Name of the scratch file of sets.
const SETS: &str = "sets";
/// Names of the sealed files, which are all files with results except the part files.
const SEALED: [&str; 4] = ["decided", "index", "kept", PUBLISHED];

/// The journal of a run.
pub(super) struct Journal<'o> {
    folder: PathBuf,
    /// The random id of the run.
    run: u128,
    observer: &'o dyn Observer,
    /// Target size of a part file in bytes.
    part_bytes: u64,
    /// Lock on the journal folder, which the system also releases if the process is killed.
    _lock: FileLock,
}

/// Returns the path of the journal folder of a run that writes to `out`.
pub(super) fn folder_of(out: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(SUFFIX);
    out.with_file_name(name)
}

/// Returns the name of a journal folder while it is being removed.
fn ended(folder: &Path) -> PathBuf {
    let mut path = folder.as_os_str().to_owned();
    path.push(ENDED);
    path.into()
}

/// Removes the journal of a run that had ended, but was killed while it removed the journal.
fn remove_ended(folder: &Path) -> anyhow::Result<()> {
    let ended = ended(folder);
    if ended.symlink_metadata().is_err() {
        return Ok(());
    }
    check_ours(&ended)?;
    match fs::remove_dir_all(&ended) {
        // The run may still be removing it.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: cannot be removed", ended.display()))
        }
        _ => Ok(()),
    }
}

/// Returns an error if there is a journal of a stopped run, which could be continued. With `force`, removes the
/// journal.
pub(super) fn check_none(out: &Path, force: bool) -> anyhow::Result<()> {
    let folder = folder_of(out);
    remove_ended(&folder)?;
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    ensure!(
        force,
        "{}: a run was stopped and left its work in {}; --resume continues it, --force removes it and starts over",
        out.display(),
        folder.display()
    );
    let _lock = lock(&folder)?;
    check_ours(&folder)?;
    remove(&folder)
}

/// Locks the journal folder, which must exist.
fn lock(folder: &Path) -> anyhow::Result<FileLock> {
    FileLock::acquire(&folder.join(LOCK)).map_err(|failure| match failure {
        LockFailure::Held(Some(process)) => {
            anyhow::anyhow!("{}: the process {process} works on it; wait for it, or end it", folder.display())
        }
        LockFailure::Held(None) => {
            anyhow::anyhow!("{}: another process works on it; wait for it, or end it", folder.display())
        }
        LockFailure::Io(error) => {
            anyhow::Error::new(error).context(format!("{}: cannot lock it", folder.display()))
        }
    })
}

/// Returns whether a journal may contain a file of this name.
fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let is_part = || READINGS.iter().any(|reading| parts::number(reading, name).is_some());
    [LOCK, MANIFEST, INPUTS, SETS, RESULTS].contains(&name) || SEALED.contains(&name) || is_part()
}

/// Returns an error if the folder contains files that do not belong to a journal.
fn check_ours(folder: &Path) -> anyhow::Result<()> {
    for name in names(folder)? {
        ensure!(
            name.to_str().is_some_and(is_ours),
            "{}: `{}` in it is not of a run that was stopped; move it away",
            folder.display(),
            name.display()
        );
    }
    Ok(())
}

fn names(folder: &Path) -> anyhow::Result<Vec<std::ffi::OsString>> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>();
    list().with_context(|| format!("{}: cannot be listed", folder.display()))
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("{}: cannot be removed", folder.display()))
}

/// Removes a file or a folder.
fn remove_any(path: &Path) -> anyhow::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| format!("{}: cannot be removed", path.display()))
}

impl<'o> Journal<'o> {
    /// Creates the journal of a run that writes to `out`, or opens the journal of a stopped run. Notifies the observer
    /// which of the two happened.
    ///
    /// # Errors
    ///
    /// Another process uses the journal; the stopped run had other options or inputs, which the message names; a file
    /// of the journal is damaged; I/O errors.
    pub(super) fn open(
        out: &Path,
        asked: &JobDescription<'_>,
        memory: usize,
        observer: &'o dyn Observer,
    ) -> anyhow::Result<Self> {
        let folder = folder_of(out);
        remove_ended(&folder)?;
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("{}: cannot create", folder.display()));
            }
            _ => {}
        }
        let lock = lock(&folder)?;
        check_ours(&folder)?;
        for name in names(&folder)? {
            if name.to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
                remove_any(&folder.join(name))?;
            }
        }
        let part_bytes = (memory as u64 / 4).clamp(PART_LEAST, PART_MOST);
        let journal = |run| Self { folder: folder.clone(), run, observer, part_bytes, _lock: lock };
        if !folder.join(MANIFEST).exists() {
            // A run that was stopped before it wrote the manifest can have left only the list of inputs.
            if names(&folder)?.iter().any(|name| *name != *LOCK && *name != *INPUTS) {
                return Err(missing(&folder, MANIFEST));
            }
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
            RealVfs
                .sync_dir(parent.unwrap_or(Path::new(".")))
                .with_context(|| format!("{}: cannot make its name durable", folder.display()))?;
            asked.write_inputs(&folder)?;
            let run = asked.write_manifest(&folder)?;
            observer.note(&format!(
                "nothing to continue in {}: the run starts with the first input",
                folder.display()
            ));
            return Ok(journal(run));
        }
        let journal = journal(asked.check(&folder)?);
        let parts = parts::last(&folder, "reading")?;
        let done = if journal.has("decided") {
            "after the decision which documents stay".to_owned()
        } else {
            format!("after {parts} parts of the reading")
        };
        observer.note(&format!("continuing {done}, from {}", folder.display()));
        Ok(journal)
    }

    /// Returns the results folder, after removing all files from it that are not known to be complete.
    pub(super) fn results(&self) -> anyhow::Result<PathBuf> {
        let results = self.folder.join(RESULTS);
        if results.is_dir() {
            self.clean(&results)?;
            return Ok(results);
        }
        // Without a results folder, the files under these seals were renamed to OUT or are missing. The seals are removed.
        for name in ["index", "kept"] {
            if self.has(name) {
                remove_any(&self.folder.join(name))?;
            }
        }
        let made = || {
            fs::create_dir(&results)?;
            RealVfs.sync_dir(&self.folder)
        };
        made().with_context(|| format!("{}: cannot create", results.display()))?;
        Ok(results)
    }

    /// Returns whether `out` has the results of this run, which was then killed after the rename.
    pub(super) fn is_published(&self, out: &Path) -> anyhow::Result<bool> {
        let Some(mut content) = self.sealed(PUBLISHED)? else { return Ok(false) };
        let mut known = String::new();
        content
            .read_to_string(&mut known)
            .with_context(|| format!("{}: cannot read", self.folder.join(PUBLISHED).display()))?;
        Ok(identity(out).is_some_and(|found| found == known))
    }

    /// Records the identity of the results folder, which is about to be renamed.
    pub(super) fn publish(&self, results: &Path) -> anyhow::Result<()> {
        let known = identity(results).unwrap_or_default();
        self.seal(PUBLISHED, |out| out.write_all(known.as_bytes()))
    }

    /// Removes the journal, after the results were renamed. Renames it first, so that a kill does not leave a part of a
    /// journal from which no run could continue.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let ended = ended(&self.folder);
        // Some systems cannot rename a folder with an open file, which is the lock.
        let is_renamed = fs::rename(&self.folder, &ended).is_ok();
        remove(if is_renamed { &ended } else { &self.folder })
    }

    /// Opens the chunk results of the input documents or of the history.
    pub(super) fn parts(&self, reading: &'static str) -> anyhow::Result<ChunkParts<'_>> {
        ChunkParts::open(self, reading)
    }

    /// Returns the path of the scratch file of sets.
    pub(super) fn sets(&self) -> PathBuf {
        self.folder.join(SETS)
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// Syncs a file, renames it to its final name, and syncs the folder.
    fn name(&self, file: &fs::File, name: &str) -> anyhow::Result<()> {
        name_file(&self.folder, file, name)
    }
}

/// Minimum size of a part file in bytes.
const PART_LEAST: u64 = 256 << 10;
/// Maximum size of a part file in bytes. A killed run loses the results in the current part, and in the part before it.
const PART_MOST: u64 = 256 << 20;

/// Returns the identity of a folder, which a rename does not change; `None` if the folder does not exist or the system
/// has no such identity.
#[cfg(unix)]
fn identity(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    folder.symlink_metadata().ok().map(|metadata| format!("{} {}", metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<String> {
    None
}

/// Syncs a file in the folder, renames it to its final name, and syncs the folder.
fn name_file(folder: &Path, file: &fs::File, name: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    let named = || {
        file.sync_all()?;
        fs::rename(folder.join(format!("{name}{UNFINISHED}")), &path)?;
        RealVfs.sync_dir(folder)
    };
    named().with_context(|| format!("{}: cannot make it durable", path.display()))
}

/// Creates a file in the folder under its temporary name.
fn unnamed_file(folder: &Path, name: &str) -> anyhow::Result<fs::File> {
    let path = folder.join(format!("{name}{UNFINISHED}"));
    fs::File::create(&path).with_context(|| format!("{}: cannot create", path.display()))
}

/// Returns the error for a run that cannot be continued.
fn refuse(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}; {BEGIN_ANEW}")
}

/// Returns the error for a missing journal file.
fn missing(folder: &Path, name: &str) -> anyhow::Error {
    is_missing(&folder.join(name))
}

/// Returns the error for a missing journal file at `path`.
pub(super) fn is_missing(path: &Path) -> anyhow::Error {
    refuse(&format!("{}: is missing, though later files are there", path.display()))
}
