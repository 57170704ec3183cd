//! The real file system, except that large segments are written past the page cache.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::RealVfs;
use super::durable_file::DurableFile;
use super::vfs::{AppendFile, FileStamp, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs, pass_through};
use super::watch::Watch;

/// A [`RealVfs`] for an index that is written once and queried later, such as the index of a batch job. Large segments are
/// written [past the page cache](DurableFile), so the first queries must read them from the disk.
#[derive(Clone, Copy, Debug)]
pub struct UncachedVfs;

impl Vfs for UncachedVfs {
    pass_through!(self => RealVfs);

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let (file, path) = super::real::temporary(dir)?.into_parts();
        Ok(Box::new(UncachedFile { file: DurableFile::new(file), path }))
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
    fn publish_keeps_contents_and_replaces_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("segment");
        for (bytes, replace, is_published) in
            [(&b"first"[..], false, true), (b"second", false, false), (b"third", true, true)]
        {
            let mut file = UncachedVfs.create_temporary(folder.path()).unwrap();
            bytes.chunks(2).for_each(|some| file.append(some).unwrap());
            file.sync().unwrap();
            assert_eq!(file.publish(&path, replace).is_ok(), is_published, "{bytes:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(UncachedVfs.list(folder.path()).unwrap(), ["segment"], "no temporary file is left");
    }
}
