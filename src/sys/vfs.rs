//! The interface between an index and the file system.
//!
//! The index needs few operations: create a directory, write a file under a temporary name and publish it, append to a
//! log, read, map, list, link and unlink files, sync a directory, take a lock. All code accesses index files through
//! [`Vfs`], so that tests can record operations, skip them or make them fail. `clippy.toml` forbids other access.
//!
//! No operation overwrites bytes: files are created, published by renaming, and unlinked. A log only grows, except that
//! the bytes of a failed append are removed. Only the writer that created a log appends to it.
//!
//! [`RealVfs`](super::RealVfs) is the file system of the operating system.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::watch::{Interval, Watch};

/// Prefix of the names of temporary files. If a crash leaves such files, the next writer removes them.
pub const TEMPORARY_PREFIX: &str = ".twindex-tmp-";

/// The file system operations that an index needs.
pub trait Vfs: Debug + Send + Sync {
    /// Creates a directory, which must not exist. Its parent directory must exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns true if a file, directory or other node exists at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Creates an empty file with a temporary name in `dir`. The file is removed if it is dropped without being published.
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>>;
    /// Creates an empty file for appending. Fails if `path` exists. The name becomes durable when the directory is synced.
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Opens a regular file for reading. Fails immediately if `path` is not a regular file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;
    /// Returns the stamp of the file at `path` without opening it; `None` if the file system has no stamps.
    fn stamp(&self, _path: &Path) -> io::Result<Option<FileStamp>> {
        Ok(None)
    }
    /// Makes the names of the files in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Renames a directory that this process has just created. `to` must not exist.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes the name of a file. Readers that have already opened the file can continue to read it.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Returns the names of all files and directories in `dir`, in arbitrary order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Gives a published file a second name, which must not exist.
    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Returns the number of bytes that can still be written in `dir`, or `None` if the system does not report it.
    fn free_space(&self, _dir: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Returns the directory for scratch files ([`Spill`](super::Spill)) that are needed while processing `dir`.
    fn scratch(&self, dir: &Path) -> PathBuf {
        dir.to_owned()
    }
    /// Returns the absolute path of `path`, which remains valid if the current directory changes.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Watches the files in `dir` for changes.
    fn watch(&self, _dir: &Path) -> Box<dyn Watch> {
        Box::new(Interval)
    }
    /// Takes the lock on the file at `path` without waiting.
    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure>;
}

/// Implements a [`Vfs`] that wraps another one. Forwards all operations except [`create_temporary`](Vfs::create_temporary),
/// which the wrapper implements itself.
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

        fn stamp(&$self, path: &Path) -> io::Result<Option<FileStamp>> {
            $vfs.stamp(path)
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

        fn watch(&$self, dir: &Path) -> Box<dyn Watch> {
            $vfs.watch(dir)
        }

        fn lock(&$self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
            $vfs.lock(path)
        }
    };
}
pub(super) use pass_through;

/// A file that is being written, under a name that no other process uses.
pub trait TemporaryFile: Debug + Send {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Syncs the contents to disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Gives the file its final name. If a file with this name exists, it is atomically replaced if `replace` is true,
    /// otherwise this fails. The name becomes durable when the directory is synced.
    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()>;
}

/// A file for appending that has its final name from the start. Other processes may read it at the same time.
pub trait AppendFile: Debug + Send {
    /// Appends all of `bytes`. If this fails, a part of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Truncates the file to `length` bytes, to remove the bytes of a failed append. No reader has used these bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Syncs the contents and the length to disk. If this fails, all bytes since the last successful sync may be lost, even
    /// if a later sync succeeds.
    fn sync(&mut self) -> io::Result<()>;
}

/// A published file that is open for reading.
pub trait ReadFile: Debug + Send + Sync {
    /// Returns the length of the file in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns true if the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Returns the stamp of the file; `None` if the file system has no stamps.
    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        Ok(None)
    }
    /// Fills `buffer` with the bytes from `offset` on. Fails with [`io::ErrorKind::UnexpectedEof`] if the file ends before
    /// the buffer is full. Several threads may read at the same time.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Maps the first `len` bytes of the file.
    fn map(&self, len: usize) -> io::Result<Bytes>;
    /// Advises the system that these bytes will be read soon. Does not wait. Does nothing if the file system cannot
    /// prefetch.
    fn will_need(&self, _offset: u64, _length: u64) {}
}

/// Distinguishes a file from the files that had its path before, and from its earlier contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// The numbers of the device and of the inode. No two files have the same ones while one of them is open.
    pub file: (u64, u64),
    /// The length in bytes.
    pub length: u64,
    /// The time of the last change of the contents, in seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl FileStamp {
    /// Returns whether both stamps are of the same file, which may have changed in between.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

/// A held lock. It is released when dropped.
pub trait HeldLock: Debug + Send {
    /// Returns true if the file at the path is still the locked file and no other holder has taken the lock since.
    fn is_current(&self) -> bool;
}

/// The reason why a lock could not be taken.
#[derive(Debug)]
pub enum LockFailure {
    /// Another holder has the lock. The number is the holder's process id, if known.
    Held(Option<u32>),
    /// An I/O error of the operating system.
    Io(io::Error),
}

/// The bytes of an immutable file.
#[derive(Debug)]
pub enum Bytes {
    /// A read-only map of the file, or of anonymous memory with a copy of it ([`Access::Load`](super::Access::Load)).
    Mapped(memmap2::Mmap),
    /// A heap copy, for empty files and for a [`Vfs`] that cannot map files.
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

/// An in-memory file with the given bytes.
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
