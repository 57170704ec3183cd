//! A new directory that is an index: made under a temporary name, complete before it has its own.

use std::path::Path;

use super::commit;
use crate::error::{Error, Result};
use crate::format::manifest::Manifest;
use crate::sys::Vfs;
use crate::sys::vfs::TEMPORARY_PREFIX;

/// The directory that has, or will have, this path.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses a path where anything stands.
///
/// # Errors
/// [`Error::AlreadyExists`], [`Error::Io`].
pub(super) fn check_free(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    if vfs.exists(path).map_err(|e| Error::io("look at", path, e))? {
        return Err(Error::AlreadyExists { path: path.to_owned() });
    }
    Ok(())
}

/// A number that nothing else has.
pub(super) fn new_uuid(path: &Path) -> Result<u128> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(|e| Error::io("get random bytes for", path, e.into()))?;
    Ok(u128::from_le_bytes(uuid))
}

/// Makes an index at `path`, where nothing is: `fill` puts the files that its manifest names into the directory it is
/// given, synced, and returns the manifest. All or nothing; `path` is durable when it returns.
pub(super) fn make(vfs: &dyn Vfs, path: &Path, fill: impl FnOnce(&Path) -> Result<Manifest>) -> Result<()> {
    let parent = parent(path);
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}{:032x}", new_uuid(path)?));
    let made = vfs.create_dir(&temporary).map_err(|e| Error::io("create a directory in", parent, e));
    let named = made
        .and_then(|()| fill(&temporary))
        .and_then(|manifest| commit::write_manifest(vfs, &temporary, &manifest))
        .and_then(|current| commit::point(vfs, &temporary, &current, &mut false))
        .and_then(|()| commit::sync_dir(vfs, &temporary))
        .and_then(|()| {
            // On some systems a rename replaces an empty directory that came there meanwhile; nothing is lost.
            vfs.rename_dir(&temporary, path).map_err(|e| Error::io("create", path, e))
        });
    if let Err(error) = named {
        for name in vfs.list(&temporary).unwrap_or_default() {
            let _ = vfs.unlink(&temporary.join(name));
        }
        let _ = vfs.remove_dir(&temporary);
        return Err(error);
    }
    commit::sync_dir(vfs, parent)
}
