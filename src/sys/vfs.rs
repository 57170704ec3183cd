//! The interface between the index and the file system.
//!
//! The index needs few operations: make a directory, write a new file under a temporary name and publish it, append to
//! a log, read and map, list, link, unlink, sync a directory, lock. Everything that reads or writes index files goes
//! through [`Vfs`], so that tests can record, refuse or lose each operation; `clippy.toml` bans every other access.
//!
//! There is no operation that changes what is written: files are created, published by rename, and unlinked, and a
//! log only grows, in the hands of the writer that made it.
//!
//! The file system of the operating system is [`RealVfs`](super::RealVfs).

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The prefix of an index's temporary files. The next writer removes those that a crash left.
pub const TEMPORARY_PREFIX: &str = ".twindex-tmp-";

/// The operations that the index needs of a file system.
pub trait Vfs: Debug + Send + Sync {
    /// Makes a directory. Its parent must exist, and the directory must not.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// True where something, of any kind, is at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// A new, empty file in `dir` under a temporary name, removed when dropped unpublished.
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>>;
    /// A new, empty file of this name, to be appended to; an error if one exists. The name is durable once the
    /// directory is synced.
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Opens a regular file for reading; anything else at the path is an error at once.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;
    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Renames a directory that was just made to a name that is free.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes a name.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// The names in `dir`, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// A second name, which is free, for a published file that will never be written again.
    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Bytes that can still be written below `dir`; `None` where the system does not say.
    fn free_space(&self, _dir: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// The folder of scratch files ([`Spill`](super::Spill)) for work on `dir`.
    fn scratch(&self, dir: &Path) -> PathBuf {
        dir.to_owned()
    }
    /// The absolute path, which stays valid when the process changes its current directory.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Takes the lock of this file, without waiting.
    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure>;
}

/// The operations of a [`Vfs`] that wraps another one and changes only how temporary files are written: all but
/// [`create_temporary`](Vfs::create_temporary) go to the other one.
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

/// A file being written; nobody else knows its name yet.
pub trait TemporaryFile: Debug + Send {
    /// Writes all of `bytes` at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Gives the file its name. With `replace`, atomically replaces a file of that name; without, an existing file is
    /// an error. The name is durable once the directory is synced.
    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()>;
}

/// A file that has its name from the start and grows at its end. Others may read it meanwhile.
pub trait AppendFile: Debug + Send {
    /// Writes all of `bytes` at the end. After a failure a part of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Truncates to `length` what a failed append left, which nobody has read.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Makes the content and the length durable. After a failure, everything appended since the last success may be
    /// lost, even if a later sync succeeds.
    fn sync(&mut self) -> io::Result<()>;
}

/// A published file.
pub trait ReadFile: Debug + Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// True where [`len`](Self::len) is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buffer` from `offset` on; an end of file before that is [`io::ErrorKind::UnexpectedEof`]. Threads may
    /// read at the same time.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// The first `len` bytes, mapped.
    fn map(&self, len: usize) -> io::Result<Bytes>;
    /// A hint that these bytes will be read soon; nothing waits for them, and nothing happens where there is nothing
    /// to gain.
    fn will_need(&self, _offset: u64, _length: u64) {}
}

/// A lock that is held; dropping it releases it.
pub trait HeldLock: Debug + Send {
    /// True while the file at the path is the file that is locked, and nobody else has taken the lock since.
    fn is_current(&self) -> bool;
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockFailure {
    /// Another holds it; the number is its process where known.
    Held(Option<u32>),
    /// The operating system refused.
    Io(io::Error),
}

/// The bytes of one immutable file: a read-only map, or a copy on the heap where there is nothing to map.
#[derive(Debug)]
pub enum Bytes {
    /// Pages of the file, read by the kernel when touched.
    Mapped(memmap2::Mmap),
    /// A copy.
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

/// A file that is only in memory, for tests and for bytes that come from elsewhere.
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
