//! Creates the directory of an index under a temporary name, and renames it when it is complete. An existing empty
//! directory, such as the root of a new volume, is filled in place. It becomes an index when `CURRENT` is renamed to
//! its final name.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::generation;
use super::names::{self, FileKind};
use crate::error::{Error, Result};
use crate::format::manifest::Manifest;
use crate::params::Params;
use crate::sys::Vfs;
use crate::sys::vfs::{LockFailure, TEMPORARY_PREFIX};

/// Returns the parent directory of a path, or `.` if the path has only one component.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The maximum number of waits for a directory that another process is filling: 10 seconds in total.
const WAITS: usize = 1000;
const WAIT: Duration = Duration::from_millis(10);

/// Returns an error unless the path does not exist or is an empty directory. Also accepts a directory that another process
/// is filling, because [`make`] waits for it.
///
/// # Errors
/// [`Error::AlreadyExists`]; [`Error::Io`] if the directory cannot be listed.
pub(super) fn check_free(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    if !exists(vfs, path)? {
        return Ok(());
    }
    let names = match vfs.list(path) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Err(taken(path)),
        // A symbolic link with a missing target exists, but cannot be listed.
        Err(error) if error.kind() == ErrorKind::NotFound && exists(vfs, path)? => return Err(taken(path)),
        Err(error) => return Err(Error::io("list", path, error)),
    };
    let names: Vec<_> = names.iter().map(|name| names::parse(name)).collect();
    let is_being_filled = names.contains(&Some(FileKind::Lock)) && !names.contains(&Some(FileKind::Current));
    if names.is_empty() || is_being_filled { Ok(()) } else { Err(taken(path)) }
}

fn exists(vfs: &dyn Vfs, path: &Path) -> Result<bool> {
    vfs.exists(path).map_err(|e| Error::io("look at", path, e))
}

fn taken(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_owned() }
}

pub(super) fn new_uuid(path: &Path) -> Result<u128> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(|e| Error::io("get random bytes for", path, e.into()))?;
    Ok(u128::from_le_bytes(uuid))
}

/// Returns the manifest of a new index in `path`, without segments. Its UUID is random.
pub(super) fn new_manifest(path: &Path, params: Params) -> Result<Manifest> {
    Ok(Manifest {
        uuid: new_uuid(path)?,
        read_only_compatible: 0,
        generation: 1,
        next_segment: 1,
        params,
        segments: Vec::new(),
        logged: None,
        now: None,
    })
}

/// Creates an index at `path`, which must not exist or must be an empty directory. `fill` writes and syncs the files of the
/// index in the directory that it receives, and returns the manifest. Creation is atomic, and `path` is durable when this
/// returns.
///
/// # Errors
/// [`Error::AlreadyExists`] if another process created the index first; the error that `fill` returns; [`Error::Io`].
pub(super) fn make(vfs: &dyn Vfs, path: &Path, fill: impl FnOnce(&Path) -> Result<Manifest>) -> Result<()> {
    if exists(vfs, path)? {
        return make_in_place(vfs, path, fill);
    }
    let parent = parent(path);
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}{:032x}", new_uuid(path)?));
    let made = vfs.create_dir(&temporary).map_err(|e| Error::io("create a directory in", parent, e));
    let named = made
        .and_then(|()| fill(&temporary))
        .and_then(|manifest| generation::write_manifest(vfs, &temporary, &manifest))
        .and_then(|current| generation::point(vfs, &temporary, &current, &mut false))
        .and_then(|()| generation::sync_dir(vfs, &temporary))
        .and_then(|()| {
            // On some systems, the rename replaces an empty directory that another process created at `path`. No data
            // is lost.
            vfs.rename_dir(&temporary, path).map_err(|e| match e.kind() {
                // Another process created the directory first.
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {
                    taken(path)
                }
                _ => Error::io("create", path, e),
            })
        });
    if let Err(error) = named {
        discard(vfs, &temporary);
        return Err(error);
    }
    // guard: the parent of a new index is synced before it is acknowledged
    // without it: generation::sync_dir(vfs, parent) -> Ok(())
    generation::sync_dir(vfs, parent)
}

/// Removes the directory of a failed creation. Ignores errors: a directory that remains has a temporary name, which no
/// reader opens.
pub(super) fn discard(vfs: &dyn Vfs, temporary: &Path) {
    // Ignores a directory that cannot be listed: either it was not created yet, or it cannot be removed either.
    for name in vfs.list(temporary).unwrap_or_default() {
        // If a file cannot be removed, the directory remains.
        let _ = vfs.unlink(&temporary.join(name));
    }
    // guard: a failed creation takes its directory away
    let _ = vfs.remove_dir(temporary);
}

/// Like [`make`], but fills an existing empty directory, which a rename may be unable to replace (a mount point).
fn make_in_place(vfs: &dyn Vfs, path: &Path, fill: impl FnOnce(&Path) -> Result<Manifest>) -> Result<()> {
    let list = || vfs.list(path).map_err(|e| Error::io("list", path, e));
    // The process that holds the lock fills the directory; the others wait until `CURRENT` exists.
    let lock_path = names::lock(path);
    let mut waits = 0;
    let lock = loop {
        match vfs.lock(&lock_path) {
            Ok(lock) => break lock,
            Err(LockFailure::Io(error)) => return Err(Error::io("lock", &lock_path, error)),
            Err(LockFailure::Held(_)) if waits == WAITS || exists(vfs, &names::current(path))? => {
                return Err(taken(path));
            }
            Err(LockFailure::Held(_)) => {
                waits += 1;
                std::thread::sleep(WAIT);
            }
        }
    };
    // Removes the temporary files of a process that was killed while it created the index. Other files are an error.
    let names = list()?;
    if names.iter().any(|name| !matches!(names::parse(name), Some(FileKind::Lock | FileKind::Temporary))) {
        return Err(taken(path));
    }
    // A temporary file that cannot be removed does no harm; the first writer tries to remove it again.
    for name in names.iter().filter(|name| names::parse(name) == Some(FileKind::Temporary)) {
        let _ = vfs.unlink(&path.join(name));
    }
    let mut pointed = false;
    let filled = fill(path)
        .and_then(|manifest| generation::write_manifest(vfs, path, &manifest))
        .and_then(|current| generation::sync_dir(vfs, path).map(|()| current))
        .and_then(|current| generation::point(vfs, path, &current, &mut pointed))
        .and_then(|()| generation::sync_dir(vfs, path));
    if filled.is_err() && !pointed {
        // Returns the original error even if the clean-up fails. Remaining files are not an index without `CURRENT`,
        // and the next creation refuses the directory.
        for name in list().unwrap_or_default() {
            if names::parse(&name).is_some() {
                let _ = vfs.unlink(&path.join(name));
            }
        }
    }
    drop(lock);
    filled
}
