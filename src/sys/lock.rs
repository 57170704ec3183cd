//! The writer's lock, which allows one writer at a time across processes.
//!
//! It is an advisory lock of the operating system on the file `LOCK` in the index directory, which is released when the
//! process ends, for any reason. The first line of the file is the process id of the holder, for users; the second line
//! is a random number that identifies the holder. A holder can check whether it still holds the lock. The file at the
//! path must be the locked file, as the file may have been deleted. It must also have the content that the holder
//! wrote, as another process may have released the lock.
//!
//! A child created by `fork` shares the lock with its parent. An explicit unlock by either process releases the lock
//! for both. So only the process that took the lock unlocks it; any other process only closes its copy of the
//! descriptor.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::vfs::ReadFile;
pub use super::vfs::{HeldLock, LockFailure};

/// The maximum size of the lock file in bytes; it contains a process id and 16 digits, each on its own line.
const CONTENT_BYTES_MAX: u64 = 64;

/// A held lock of the operating system.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
    /// The id of the process that took the lock.
    process: u32,
    /// The content of the file, written by this holder.
    content: String,
}

impl FileLock {
    /// Takes the lock, without waiting.
    ///
    /// # Errors
    /// [`LockFailure::Held`] if another holder, in this process or another, has the lock.
    #[allow(clippy::disallowed_methods, reason = "the lock is part of the Vfs seam")]
    pub fn acquire(path: &Path) -> Result<Self, LockFailure> {
        // Between opening and locking, another process may delete the file and create a new one. The lock would then be
        // on a file that nobody else opens. So check the path again after locking, and retry a few times.
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
                    // guard: a lock that a signal interrupts is asked for again
                    Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    answer => break answer,
                }
            };
            match locked {
                Ok(()) => {}
                // guard: a lock that is held is not taken
                // without it: Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut content = String::new();
                    let _ = Read::take(&mut file, CONTENT_BYTES_MAX).read_to_string(&mut content);
                    let holder = content.lines().next().and_then(|line| line.trim().parse().ok());
                    return Err(LockFailure::Held(holder));
                }
                Err(TryLockError::Error(error)) => return Err(LockFailure::Io(error)),
            }
            let process = std::process::id();
            let mut lock = Self { file, path: path.to_owned(), process, content: String::new() };
            if lock.is_at_path() {
                lock.name_holder().map_err(LockFailure::Io)?;
                return Ok(lock);
            }
        }
        Err(LockFailure::Held(None))
    }

    /// Whether the file at the path is the locked file.
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

    /// Always true: an open file can be deleted only on Unix.
    #[cfg(not(unix))]
    fn is_at_path(&self) -> bool {
        self.path.exists()
    }

    fn name_holder(&mut self) -> io::Result<()> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::from)?;
        self.content = format!("{}\n{:016x}\n", self.process, u64::from_le_bytes(random));
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(self.content.as_bytes())
    }

    /// Whether the locked file has the content that this holder wrote. Another holder would have replaced it.
    fn names_this_holder(&self) -> bool {
        let mut content = vec![0; self.content.len()];
        let read = ReadFile::read_exact_at(&self.file, &mut content, 0);
        read.is_ok() && content == self.content.as_bytes()
    }
}

impl HeldLock for FileLock {
    fn is_current(&self) -> bool {
        self.is_at_path() && self.names_this_holder()
    }
}

impl Drop for FileLock {
    /// Unlocks explicitly. Closing the file would release the lock too, except while the process starts a child, which
    /// keeps the file open until it executes its own program.
    fn drop(&mut self) {
        // In a child created by `fork`, unlocking would release the parent's lock; closing the file does not.
        if self.process == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}
