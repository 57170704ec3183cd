//! The writer's lock: one writer at a time, across processes.
//!
//! An advisory lock of the operating system on a file `LOCK` in the index directory. It goes with the process,
//! however that ends. The file's content, the holder's process number, is for people. As somebody may delete the
//! file, a holder can ask whether the file at the path is still the one it locked.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A lock that is held; dropping it releases it.
pub trait HeldLock: Debug + Send {
    /// True while the file at the path is the file that is locked.
    fn is_current(&self) -> bool;
}

/// A lock of the operating system.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

/// Why a lock was not to be had.
#[derive(Debug)]
pub enum LockFailure {
    /// Another holds it; the text is its process number where known.
    Held(Option<u32>),
    /// The operating system refused.
    Io(io::Error),
}

impl FileLock {
    /// Takes the lock without waiting.
    ///
    /// # Errors
    /// [`LockFailure::Held`] where another holds it, in this process or another.
    #[allow(clippy::disallowed_methods, reason = "the lock is part of the Vfs seam")]
    pub fn acquire(path: &Path) -> Result<Self, LockFailure> {
        // Between opening and locking, the file may be deleted and made anew by somebody else: then the lock held
        // is on a file that nobody else will look at. So look again, and retry a few times.
        for _ in 0..8 {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(LockFailure::Io)?;
            let locked = loop {
                match file.try_lock() {
                    Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    answer => break answer,
                }
            };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let _ = Read::take(&mut file, 20).read_to_string(&mut holder);
                    return Err(LockFailure::Held(holder.trim().parse().ok()));
                }
                Err(TryLockError::Error(error)) => return Err(LockFailure::Io(error)),
            }
            let mut lock = Self { file, path: path.to_owned() };
            if lock.is_at_path() {
                lock.name_holder().map_err(LockFailure::Io)?;
                return Ok(lock);
            }
        }
        Err(LockFailure::Held(None))
    }

    /// [`HeldLock::is_current`].
    #[cfg(unix)]
    fn is_at_path(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        #[allow(clippy::disallowed_methods, reason = "the lock is part of the Vfs seam")]
        let at_path = std::fs::metadata(&self.path);
        match (self.file.metadata(), at_path) {
            (Ok(held), Ok(found)) => held.dev() == found.dev() && held.ino() == found.ino(),
            _ => false,
        }
    }

    /// [`HeldLock::is_current`]; elsewhere than on Unix an open file cannot be deleted.
    #[cfg(not(unix))]
    fn is_at_path(&self) -> bool {
        self.path.exists()
    }

    fn name_holder(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        writeln!(self.file, "{}", std::process::id())
    }
}

impl HeldLock for FileLock {
    fn is_current(&self) -> bool {
        self.is_at_path()
    }
}

impl Drop for FileLock {
    /// Closing the file would do, but for a process that is being started meanwhile: until it runs its own program, it
    /// has the file open too.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}
