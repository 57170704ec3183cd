//! An index directory in memory: a [`Vfs`] that supports reading, and the writes needed to build an index.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, MemoryFile, ReadFile, TemporaryFile, Vfs};

type Files = Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>;

/// The content of each file by path. Locks are not supported.
#[derive(Clone, Debug, Default)]
pub struct MemoryVfs {
    files: Files,
}

impl MemoryVfs {
    /// Copies the files of a directory on disk.
    #[allow(clippy::disallowed_methods, reason = "copies what an index wrote, from outside the index")]
    pub fn copy_of(dir: &Path) -> Self {
        let vfs = Self::default();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            vfs.set(&path, std::fs::read(&path).unwrap());
        }
        vfs
    }

    /// Returns an independent copy of all files.
    pub fn fork(&self) -> Self {
        Self { files: Arc::new(Mutex::new(self.files.lock().unwrap().clone())) }
    }

    pub fn get(&self, path: &Path) -> Vec<u8> {
        self.files.lock().unwrap()[path].clone()
    }

    pub fn set(&self, path: &Path, bytes: Vec<u8>) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes);
    }

    pub fn remove(&self, path: &Path) {
        self.files.lock().unwrap().remove(path);
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap().keys().cloned().collect()
    }
}

impl Vfs for MemoryVfs {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().unwrap().contains_key(path))
    }

    fn create_temporary(&self, _: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        Ok(Box::new(Temporary { files: Arc::clone(&self.files), bytes: Vec::new() }))
    }

    fn create_append(&self, _: &Path) -> io::Result<Box<dyn AppendFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let files = self.files.lock().unwrap();
        let bytes = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(MemoryFile(bytes.clone())))
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename_dir(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.files.lock().unwrap().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let files = self.files.lock().unwrap();
        let here = files.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
    }

    fn lock(&self, _: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        Err(LockFailure::Io(io::ErrorKind::Unsupported.into()))
    }
}

#[derive(Debug)]
struct Temporary {
    files: Files,
    bytes: Vec<u8>,
}

impl TemporaryFile for Temporary {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let mut files = self.files.lock().unwrap();
        if !replace && files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        files.insert(path.to_owned(), self.bytes);
        Ok(())
    }
}
