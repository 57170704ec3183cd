//! A disk in memory on which the scheduler may switch threads at every operation.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::sync::atomic::AtomicBool as Point;

use twindex::sys::Bytes;
use twindex::sys::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs};

use super::model::ModelVfs;

/// A disk on which the scheduler may switch threads at every operation. An open log grows while it is read, and readers may
/// see half of an append.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    disk: ModelVfs,
    point: Arc<Point>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { disk: ModelVfs::default(), point: Arc::new(Point::new(false)) }
    }

    fn turn(&self) -> &ModelVfs {
        self.point.load(Ordering::SeqCst);
        &self.disk
    }
}

impl Vfs for Turns {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.turn().create_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.turn().exists(path)
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        self.turn().create_temporary(dir)
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = self.turn().create_append(path)?;
        Ok(Box::new(ByHalves { turns: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.turn().open(path)?;
        Ok(Box::new(GrowingFile { turns: self.clone(), path: path.to_owned(), file }))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.turn().sync_dir(dir)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.turn().rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.turn().remove_dir(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.turn().unlink(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.turn().list(dir)
    }

    fn scratch(&self, dir: &Path) -> PathBuf {
        self.disk.scratch(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        self.turn().lock(path)
    }
}

#[derive(Debug)]
struct ByHalves {
    turns: Turns,
    file: Box<dyn AppendFile>,
}

impl AppendFile for ByHalves {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.turns.turn();
        self.file.append(first)?;
        self.turns.turn();
        self.file.append(second)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.cut(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.turns.turn();
        self.file.sync()
    }
}

/// An open file. Reads return its content at the time of opening. Only a log is read with its current content, as long as
/// its name exists; names of logs are not reused.
#[derive(Debug)]
struct GrowingFile {
    turns: Turns,
    path: PathBuf,
    file: Box<dyn ReadFile>,
}

impl GrowingFile {
    fn now(&self) -> Option<Box<dyn ReadFile>> {
        self.turns.turn();
        let name = self.path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("LOG-")) {
            self.turns.disk.open(&self.path).ok()
        } else {
            None
        }
    }
}

impl ReadFile for GrowingFile {
    fn len(&self) -> io::Result<u64> {
        self.now().map_or_else(|| self.file.len(), |file| file.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.now();
        file.as_ref().unwrap_or(&self.file).read_exact_at(buffer, offset)
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        self.turns.turn();
        self.file.map(len)
    }
}
