//! An in-memory file system that keeps a single file: a segment that is built, queried and then dropped.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs};

/// A file system in which files can be written and published, but not opened. It keeps only the last published file.
#[derive(Clone, Debug, Default)]
pub struct Heap {
    published: Arc<Mutex<Vec<u8>>>,
}

impl Heap {
    /// Removes and returns the bytes of the last published file. Empty if there is none.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.published.lock())
    }
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Vfs for Heap {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        unsupported()
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn create_temporary(&self, _: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        Ok(Box::new(HeapFile { heap: self.clone(), bytes: Vec::new() }))
    }

    fn create_append(&self, _: &Path) -> io::Result<Box<dyn AppendFile>> {
        unsupported()
    }

    fn open(&self, _: &Path) -> io::Result<Box<dyn ReadFile>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename_dir(&self, _: &Path, _: &Path) -> io::Result<()> {
        unsupported()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        unsupported()
    }

    fn unlink(&self, _: &Path) -> io::Result<()> {
        unsupported()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn lock(&self, _: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        Err(LockFailure::Io(io::ErrorKind::Unsupported.into()))
    }
}

#[derive(Debug)]
struct HeapFile {
    heap: Heap,
    bytes: Vec<u8>,
}

impl TemporaryFile for HeapFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn publish(self: Box<Self>, _: &Path, _: bool) -> io::Result<()> {
        *self.heap.published.lock() = self.bytes;
        Ok(())
    }
}
