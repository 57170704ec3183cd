//! The disk, with segments that bypass the page cache.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::RealVfs;
use super::durable_file::DurableFile;
use super::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs};

/// [`RealVfs`], for an index that is written once and queried later, such as that of a batch job: large segments are
/// written [past the page cache](DurableFile). The first queries then read them from the disk.
#[derive(Clone, Copy, Debug)]
pub struct UncachedVfs;

impl Vfs for UncachedVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.create_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealVfs.exists(path)
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let (file, path) = super::real::temporary(dir)?.into_parts();
        Ok(Box::new(UncachedFile { file: DurableFile::new(file), path }))
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        RealVfs.create_append(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        RealVfs.open(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealVfs.sync_dir(dir)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealVfs.rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.remove_dir(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealVfs.unlink(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        RealVfs.list(dir)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealVfs.hard_link(from, to)
    }

    fn free_space(&self, dir: &Path) -> io::Result<Option<u64>> {
        RealVfs.free_space(dir)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        RealVfs.absolute(path)
    }

    fn scratch(&self, dir: &Path) -> PathBuf {
        RealVfs.scratch(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        RealVfs.lock(path)
    }
}

#[derive(Debug)]
struct UncachedFile {
    file: DurableFile,
    path: TempPath,
}

impl TemporaryFile for UncachedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let published = if replace { self.path.persist(path) } else { self.path.persist_noclobber(path) };
        published.map_err(|failure| failure.error)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read what was written")]
mod tests {
    use super::*;

    #[test]
    fn file_has_its_bytes_and_name_and_replaces_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("segment");
        for (bytes, replace, is_published) in [(&b"first"[..], false, true), (b"second", false, false), (b"third", true, true)] {
            let mut file = UncachedVfs.create_temporary(folder.path()).unwrap();
            bytes.chunks(2).for_each(|some| file.append(some).unwrap());
            file.sync().unwrap();
            assert_eq!(file.publish(&path, replace).is_ok(), is_published, "{bytes:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(UncachedVfs.list(folder.path()).unwrap(), ["segment"], "no temporary file is left");
    }
}
