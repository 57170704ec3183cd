//! Publishes a generation (a manifest and the files that it names). `writer/commits.rs` takes these steps:
//!
//! 1. Segments, and for a new index its IDF table, are written and synced under temporary names, then renamed (before
//!    the functions of this module are called).
//! 2. The manifest is written and synced under a temporary name, then renamed to `MANIFEST-<generation>`.
//! 3. The directory is synced, which makes the names of the segments and of the manifest durable. Without this, a crash
//!    could keep the new `CURRENT` and lose the files that it depends on.
//! 4. `CURRENT` is written and synced under a temporary name, then renamed over the old one. From then on, readers that open
//!    the index see the new generation.
//! 5. The directory is synced: the commit is durable. A generation that adds no documents and begins no log skips this
//!    step: if a crash restores the old `CURRENT`, the files of the old generation still exist.
//! 6. Files that the index no longer needs are removed: segments, logs, and all manifests except the last two. If the
//!    removal fails, only disk space is lost, and the next commit tries again. A generation that only moves documents
//!    between files may keep the files of the previous generation until the next one, as a fallback.
//!
//! An index that is being created or salvaged skips step 3, because readers cannot open its directory yet.
//!
//! Most commits do not publish a generation: they append a record to a log that the manifest already names, and sync the log
//! (`store::log`).

use std::path::{Path, PathBuf};

use zerocopy::IntoBytes;

use super::idf;
use super::names::{self, FileKind};
use crate::error::{Error, Result};
use crate::format::current::Current;
use crate::format::manifest::{MANIFEST_BYTES_MAX, Manifest};
use crate::sys::Vfs;
use crate::sys::vfs::TemporaryFile;

/// Writes the manifest (step 2 above). Returns the new content of `CURRENT`.
pub(super) fn write_manifest(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> Result<Current> {
    let bytes = manifest.encode();
    if bytes.len() as u64 > MANIFEST_BYTES_MAX {
        let found = bytes.len() as u64;
        return Err(Error::Limit { what: "bytes of a manifest", limit: MANIFEST_BYTES_MAX, found });
    }
    // A crash between steps 2 and 4 may have left a manifest with this number. It is replaced, because `CURRENT` does
    // not name it.
    write(vfs, dir, &names::manifest(dir, manifest.generation), &bytes)?;
    Ok(Current::new(manifest.uuid, manifest.params.digest(), manifest.generation, Manifest::digest(&bytes)))
}

/// Replaces `CURRENT` (step 4 above). Sets `pointed` before the rename: if the rename or a later step fails, the caller
/// cannot know which generation is current.
pub(super) fn point(vfs: &dyn Vfs, dir: &Path, current: &Current, pointed: &mut bool) -> Result<()> {
    let file = write_current(vfs, dir, current)?;
    *pointed = true;
    replace_current(dir, file)
}

/// Writes and syncs a temporary file, which [`replace_current`] renames to `CURRENT`.
pub(super) fn write_current(vfs: &dyn Vfs, dir: &Path, current: &Current) -> Result<Box<dyn TemporaryFile>> {
    write_temporary(vfs, dir, &names::current(dir), current.as_bytes())
}

/// Renames the temporary file to `CURRENT`. After a failure the caller cannot know which generation is current.
pub(super) fn replace_current(dir: &Path, file: Box<dyn TemporaryFile>) -> Result<()> {
    let path = names::current(dir);
    file.publish(&path, true).map_err(|e| Error::io("publish", &path, e))
}

fn write(vfs: &dyn Vfs, dir: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = write_temporary(vfs, dir, path, bytes)?;
    file.publish(path, true).map_err(|e| Error::io("publish", path, e))
}

/// Writes and syncs a temporary file, which the caller renames to `path`.
fn write_temporary(vfs: &dyn Vfs, dir: &Path, path: &Path, bytes: &[u8]) -> Result<Box<dyn TemporaryFile>> {
    let mut file = vfs.create_temporary(dir).map_err(|e| Error::io("create a temporary file in", dir, e))?;
    file.append(bytes).map_err(|e| Error::io("write", path, e))?;
    // guard: a file is synced before it is given the name CURRENT or MANIFEST
    file.sync().map_err(|e| Error::io("sync", path, e))?;
    Ok(file)
}

pub(super) fn sync_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    // guard: a sync of the directory that failed is a failure
    // without it: vfs.sync_dir(dir) -> vfs.sync_dir(dir).or(Ok(()))
    vfs.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))
}

/// A file that the index no longer needs.
#[derive(Debug)]
pub(super) struct Garbage {
    pub(super) path: PathBuf,
    pub(super) length: u64,
    /// Whether the file has a number that the index has already assigned. Numbers are never reused, so no new file gets
    /// the same name.
    pub(super) is_numbered: bool,
}

/// Removes the files that [`garbage`] returns (step 6 above). Returns the number of bytes removed.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be listed.
pub(super) fn sweep(
    vfs: &dyn Vfs,
    dir: &Path,
    manifest: &Manifest,
    kept: Option<&Manifest>,
    busy: &[u64],
) -> Result<u64> {
    Ok(remove(vfs, &garbage(vfs, dir, manifest, kept, busy)?))
}

/// Removes files and returns the number of bytes removed. If a file cannot be removed, only disk space is lost, and the next
/// sweep tries again.
pub(super) fn remove(vfs: &dyn Vfs, garbage: &[Garbage]) -> u64 {
    let removed = garbage.iter().filter(|file| vfs.unlink(&file.path).is_ok());
    removed.map(|file| file.length).sum()
}

/// Returns the files that neither the current generation `manifest` nor the previous generation `kept` needs. `busy`
/// has the numbers of the segments that are being written. Their files are not returned, nor are temporary files
/// while there are any such segments. Files whose names twindex does not use are never returned. Only the writer may
/// call this.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be listed.
pub(super) fn garbage(
    vfs: &dyn Vfs,
    dir: &Path,
    manifest: &Manifest,
    kept: Option<&Manifest>,
    busy: &[u64],
) -> Result<Vec<Garbage>> {
    let names = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let generations = || {
        names.iter().filter_map(|name| match names::parse(name) {
            Some(FileKind::Manifest(generation)) => Some(generation),
            _ => None,
        })
    };
    // Keeps the manifest of the previous generation for readers that are opening that generation now.
    let before = generations().filter(|&generation| generation < manifest.generation).max();
    let named = |is: &dyn Fn(&Manifest) -> bool| is(manifest) || kept.is_some_and(is);
    let mut found = Vec::new();
    for name in &names {
        let parsed = names::parse(name);
        let superfluous = match parsed {
            Some(FileKind::Manifest(generation)) => {
                generation != manifest.generation && Some(generation) != before
            }
            Some(FileKind::Segment(number)) => {
                // guard: a segment under way is not swept
                // without it: !busy.contains(&number) -> true
                !busy.contains(&number)
                    && !named(&|of| of.segments.iter().any(|segment| segment.number == number))
            }
            Some(FileKind::Log(number)) => {
                !named(&|of| of.logged.iter().flat_map(|logged| &logged.logs).any(|log| log.number == number))
            }
            Some(FileKind::Idf(digest)) => idf::named_by(&manifest.params) != Some(digest),
            Some(FileKind::Temporary) => busy.is_empty(),
            Some(FileKind::Current | FileKind::Lock) | None => false,
        };
        // guard: files that nothing names are removed
        if superfluous {
            let path = dir.join(name);
            // The length only serves to count removed bytes, and to decide which thread removes the file.
            let length = vfs.open(&path).and_then(|file| file.len()).unwrap_or(0);
            let is_numbered = match parsed {
                Some(FileKind::Segment(number)) => number < manifest.next_segment,
                Some(FileKind::Log(number)) => {
                    manifest.logged.as_ref().is_some_and(|logged| number < logged.next_log)
                }
                _ => false,
            };
            found.push(Garbage { path, length, is_numbered });
        }
    }
    Ok(found)
}
