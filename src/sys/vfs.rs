//! The interface between the index and the file system.
//!
//! The index needs few operations: create a directory, write a new file under a temporary name and publish it, append
//! to a log, read and map, list, link, unlink, sync a directory, lock. All code that reads or writes index files uses
//! [`Vfs`], so that tests can record, refuse or lose each operation; `clippy.toml` forbids any other access.
//!
//! No operation changes bytes that were written: files are created, published by rename, and unlinked. A log only
//! grows, and only the writer that created it appends to it.
//!
//! [`RealVfs`](super::RealVfs) is the file system of the operating system.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The prefix of the names of an index's temporary files. The next writer removes files that a crash left.
pub const TEMPORARY_PREFIX: &str = ".twindex-tmp-";

/// The file system operations that the index needs.
pub trait Vfs: Debug + Send + Sync {
    /// Creates a directory. Its parent must exist, and the directory must not.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Whether a file, directory or anything else exists at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Creates an empty file in `dir` under a temporary name. It is removed when dropped without being published.
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>>;
    /// Creates an empty file with this name, for appending; an error if the name exists. The name is durable after the
    /// directory is synced.
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Opens a regular file for reading; returns an error at once if `path` is not a regular file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;
    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Renames a directory that was just created; `to` must not exist.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes the name of a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Returns the names in `dir`, in arbitrary order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Adds a second, unused name to a published file, which is never written again.
    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Returns the number of bytes that can still be written in `dir`; `None` if the system does not report it.
    fn free_space(&self, _dir: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Returns the folder of scratch files ([`Spill`](super::Spill)) for operations on `dir`.
    fn scratch(&self, dir: &Path) -> PathBuf {
        dir.to_owned()
    }
    /// Returns the absolute path, which stays valid if the process changes its current directory.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Takes the lock on this file, without waiting.
    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure>;
}

/// Implements the operations of a [`Vfs`] that wraps another one and only changes how temporary files are written:
/// forwards all operations except [`create_temporary`](Vfs::create_temporary).
macro_rules! pass_through {
    ($self:ident => $vfs:expr) => {
        fn create_dir(&$self, path: &Path) -> io::Result<()> {
            $vfs.create_dir(path)
        }

        fn exists(&$self, path: &Path) -> io::Result<bool> {
            $vfs.exists(path)
        }

        fn create_append(&$self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
            $vfs.create_append(path)
        }

        fn open(&$self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
            $vfs.open(path)
        }

        fn sync_dir(&$self, dir: &Path) -> io::Result<()> {
            $vfs.sync_dir(dir)
        }

        fn rename_dir(&$self, from: &Path, to: &Path) -> io::Result<()> {
            $vfs.rename_dir(from, to)
        }

        fn remove_dir(&$self, path: &Path) -> io::Result<()> {
            $vfs.remove_dir(path)
        }

        fn unlink(&$self, path: &Path) -> io::Result<()> {
            $vfs.unlink(path)
        }

        fn list(&$self, dir: &Path) -> io::Result<Vec<OsString>> {
            $vfs.list(dir)
        }

        fn hard_link(&$self, from: &Path, to: &Path) -> io::Result<()> {
            $vfs.hard_link(from, to)
        }

        fn free_space(&$self, dir: &Path) -> io::Result<Option<u64>> {
            $vfs.free_space(dir)
        }

        fn scratch(&$self, dir: &Path) -> PathBuf {
            $vfs.scratch(dir)
        }

        fn absolute(&$self, path: &Path) -> io::Result<PathBuf> {
            $vfs.absolute(path)
        }

        fn lock(&$self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
            $vfs.lock(path)
        }
    };
}
pub(super) use pass_through;

/// A file being written, under a name that no other process uses.
pub trait TemporaryFile: Debug + Send {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Gives the file its final name. If `replace` is true, it atomically replaces an existing file of that name,
    /// otherwise an existing file is an error. The name is durable after the directory is synced.
    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()>;
}

/// A file that has its name from its creation on, to which bytes are appended. Others may read it at the same time.
pub trait AppendFile: Debug + Send {
    /// Appends all of `bytes`. After an error, a part of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Truncates the file to `length`, to remove bytes of a failed append that no reader has used.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Makes the content and the length durable. After an error, all bytes appended since the last successful sync may
    /// be lost, even if a later sync succeeds.
    fn sync(&mut self) -> io::Result<()>;
}

/// A published file.
pub trait ReadFile: Debug + Send + Sync {
    /// Returns the length of the file in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buffer` with the bytes from `offset` on; an earlier end of file is [`io::ErrorKind::UnexpectedEof`].
    /// Threads may read at the same time.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Maps the first `len` bytes.
    fn map(&self, len: usize) -> io::Result<Bytes>;
    /// Hints that these bytes will be read soon. Does not wait, and does nothing if prefetching has no advantage.
    fn will_need(&self, _offset: u64, _length: u64) {}
}

/// A held lock, released when dropped.
pub trait HeldLock: Debug + Send {
    /// Whether the file at the path is still the locked file, and no other holder has taken the lock since.
    fn is_current(&self) -> bool;
}

/// The reason why a lock was not taken.
#[derive(Debug)]
pub enum LockFailure {
    /// Another holder has the lock; the number is its process id, if known.
    Held(Option<u32>),
    /// An I/O error of the operating system.
    Io(io::Error),
}

/// The bytes of an immutable file: a read-only map, or a copy on the heap if the file cannot be mapped.
#[derive(Debug)]
pub enum Bytes {
    /// A map of the file, whose pages the kernel reads on first access.
    Mapped(memmap2::Mmap),
    /// A copy on the heap.
    Heap(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Heap(bytes) => bytes,
        }
    }
}

/// An in-memory file, for tests and for bytes from other sources.
#[derive(Clone, Debug)]
pub struct MemoryFile(pub Vec<u8>);

impl ReadFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let range =
            usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(buffer.len())?));
        let bytes = range.and_then(|range| self.0.get(range)).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        Ok(Bytes::Heap(self.0.get(..len).ok_or(io::ErrorKind::UnexpectedEof)?.to_vec()))
    }
}
