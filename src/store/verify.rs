//! Verifies all files of an index.

use std::path::Path;

use super::names::{self, FileKind};
use super::recovery::missing_is_damage;
use super::state::{State, open_segment};
use super::{idf, log};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::manifest::Manifest;
use crate::idf::file_bytes;
use crate::sys::{Access, Vfs};

/// The result of [`verify`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Findings {
    /// The problems found; empty for a sound index.
    pub problems: Vec<Error>,
    /// Harmless observations: files that do not belong to the index, and leftovers of a crash.
    pub notes: Vec<String>,
    /// Number of bytes of segments and of the IDF table that were checked.
    pub bytes: u64,
}

/// Checks every byte of `CURRENT`, the manifest, its logs, its segments and the IDF table. Changes nothing, and
/// continues after a problem. `progress` receives the number of bytes checked so far.
///
/// Commits may continue during the check, which covers the generation that was current at its start.
pub fn verify(vfs: &dyn Vfs, dir: &Path, progress: impl FnMut(u64)) -> Findings {
    verify_with(vfs, dir, Access::default(), progress)
}

/// Like [`verify`], but reads segments as `access` specifies. With [`Access::Read`], a failing disk is reported as a problem
/// instead of ending the process, but the segments are held in memory.
pub fn verify_with(vfs: &dyn Vfs, dir: &Path, access: Access, progress: impl FnMut(u64)) -> Findings {
    let found = verify_until(vfs, dir, access, &Cancel::default(), progress);
    found.unwrap_or_else(|_| unreachable!("nobody else has this request, so nobody makes it"))
}

/// Like [`verify_with`], but ends early after `cancel` was requested, which is checked before each page of a segment, and
/// between the steps that follow.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn verify_until(
    vfs: &dyn Vfs,
    dir: &Path,
    access: Access,
    cancel: &Cancel,
    mut progress: impl FnMut(u64),
) -> Result<Findings> {
    let mut findings = Findings::default();
    let manifest = match State::load(vfs, dir, access) {
        Ok(state) => {
            for segment in &state.view.segments {
                let before = findings.bytes;
                findings.problems.extend(segment.verify_until(cancel, |bytes| progress(before + bytes))?);
                findings.problems.extend(segment.check_map().err());
                findings.bytes += segment.length();
            }
            Some(Manifest::clone(&state.manifest))
        }
        Err(error) => {
            // Checks each segment on its own, so that one that cannot be opened does not end the check. `error` is
            // reported below, unless a problem of a segment explains it.
            let manifest = State::load_manifest(vfs, dir).ok();
            let mut problems = Vec::new();
            for entry in manifest.iter().flat_map(|manifest| &manifest.segments) {
                let Some(manifest) = &manifest else { continue };
                match open_segment(vfs, dir, access, manifest, entry) {
                    Ok(segment) => {
                        problems
                            .extend(segment.verify_until(cancel, |bytes| progress(findings.bytes + bytes))?);
                        problems.extend(segment.check_map().err());
                        findings.bytes += segment.length();
                    }
                    Err(error) => problems.push(missing_is_damage(error, manifest.generation)),
                }
            }
            let of_a_segment = |problem: &Error| problem.to_string() == error.to_string();
            if !problems.iter().any(of_a_segment) && (problems.is_empty() || is_of_a_log(&error)) {
                problems.push(error);
            }
            findings.problems = problems;
            manifest
        }
    };
    match manifest.as_ref().map_or(Ok(None), |manifest| idf::of_index(vfs, dir, &manifest.params)) {
        Ok(table) => findings.bytes += table.map_or(0, |table| file_bytes(&table)),
        Err(error) => findings.problems.push(error),
    }
    progress(findings.bytes);
    let names = vfs.list(dir).unwrap_or_else(|error| {
        // If the manifest cannot be read, the reason has been reported as a problem already.
        if manifest.is_some() {
            findings.problems.push(Error::io("list", dir, error));
        }
        Vec::new()
    });
    // A newer generation that was published during the check has files that are not leftovers. If its manifest cannot
    // be read, no file is reported as a leftover.
    let newer = State::load_manifest(vfs, dir).ok();
    let named = |number| {
        [&manifest, &newer]
            .into_iter()
            .flatten()
            .any(|m| m.segments.iter().any(|entry| entry.number == number))
    };
    for name in names {
        let shown = name.to_string_lossy();
        let note = match names::parse(&name) {
            None => Some(format!("{shown}: not a file of an index, left alone")),
            Some(FileKind::Temporary) => {
                Some(format!("{shown}: being written, or left by a crash; the next writer removes it"))
            }
            Some(FileKind::Segment(number)) => (newer.is_some() && !named(number))
                .then(|| format!("{shown}: named by no manifest; the next writer removes it")),
            Some(FileKind::Log(number)) => {
                let named =
                    |of: &Manifest| of.logged.iter().flat_map(|l| &l.logs).any(|log| log.number == number);
                let superfluous =
                    newer.as_ref().filter(|_| ![&manifest, &newer].into_iter().flatten().any(named));
                superfluous.map(|newer| {
                    let next = newer.logged.as_ref().map_or(1, |logged| logged.next_log);
                    let has_more = number >= next && log::has_synced(vfs, dir, newer, number).unwrap_or(false);
                    let why = if has_more {
                        "has later commits than CURRENT names: an older copy of CURRENT was restored, or the disk \
                         lost the newer one"
                    } else {
                        "named by no manifest"
                    };
                    format!("{shown}: {why}; the next writer removes it")
                })
            }
            Some(FileKind::Idf(digest)) => {
                let superfluous = newer.as_ref().is_some_and(|m| idf::named_by(&m.params) != Some(digest));
                superfluous
                    .then(|| format!("{shown}: not the table of this index; the next writer removes it"))
            }
            Some(FileKind::Current | FileKind::Lock | FileKind::Manifest(_)) => None,
        };
        findings.notes.extend(note);
    }
    findings.notes.sort_unstable();
    Ok(findings)
}

fn is_of_a_log(error: &Error) -> bool {
    let (Error::Corrupt { path, .. } | Error::Io { path, .. } | Error::Unsupported { path, .. }) = error
    else {
        return false;
    };
    path.file_name().is_some_and(|name| matches!(names::parse(name), Some(FileKind::Log(_))))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;

    use super::*;
    use crate::sys::RealVfs;
    use crate::sys::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile};
    use crate::{Index, Params};

    /// A file system in which files can be read but the directory cannot be listed.
    #[derive(Debug)]
    struct Unlisted;

    fn unused<T>() -> io::Result<T> {
        Err(io::ErrorKind::Unsupported.into())
    }

    impl Vfs for Unlisted {
        fn create_dir(&self, _: &Path) -> io::Result<()> {
            unused()
        }
        fn exists(&self, path: &Path) -> io::Result<bool> {
            RealVfs.exists(path)
        }
        fn create_temporary(&self, _: &Path) -> io::Result<Box<dyn TemporaryFile>> {
            unused()
        }
        fn create_append(&self, _: &Path) -> io::Result<Box<dyn AppendFile>> {
            unused()
        }
        fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
            RealVfs.open(path)
        }
        fn sync_dir(&self, _: &Path) -> io::Result<()> {
            unused()
        }
        fn rename_dir(&self, _: &Path, _: &Path) -> io::Result<()> {
            unused()
        }
        fn remove_dir(&self, _: &Path) -> io::Result<()> {
            unused()
        }
        fn unlink(&self, _: &Path) -> io::Result<()> {
            unused()
        }
        fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
        fn lock(&self, _: &Path) -> std::result::Result<Box<dyn HeldLock>, LockFailure> {
            Err(LockFailure::Io(io::ErrorKind::Unsupported.into()))
        }
    }

    #[test]
    fn directory_that_cannot_be_listed_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        Index::create(&path, Params::builder().simhash(3).build().unwrap()).unwrap();
        assert!(verify(&RealVfs, &path, |_| ()).problems.is_empty());
        let problems = verify(&Unlisted, &path, |_| ()).problems;
        let [Error::Io { op: "list", path: named, source }] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!((named, source.kind()), (&path, io::ErrorKind::PermissionDenied));
    }
}
