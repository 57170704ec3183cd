//! The writer's lock, which ensures that only one process at a time writes an index.
//!
//! It is an advisory lock of the operating system on the file `LOCK` in the index directory. The system releases it
//! when the process ends for any reason. The first line of the file is the process id of the holder, for users. The
//! second line is a random number that identifies the holder. A holder still has the lock under two conditions.
//! The file at the path is the locked file; another process may have deleted and recreated it. And the file has the
//! contents that the holder wrote; otherwise the lock was released, and another process took it.
//!
//! A child process created by `fork` shares the lock with its parent. An explicit unlock in either process would
//! release it for both. So only the process that took the lock unlocks it, and children only close their descriptor.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::vfs::ReadFile;
pub use super::vfs::{HeldLock, LockFailure};

/// Maximum number of bytes read from the lock file. It contains a process id and 16 hexadecimal digits, each on a line.
const CONTENT_BYTES_MAX: u64 = 64;

/// A held lock of the operating system.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
    /// The id of the process that took the lock.
    process: u32,
    /// The contents of the file, which this holder wrote.
    content: String,
}

impl FileLock {
    /// Takes the lock without waiting.
    ///
    /// # Errors
    /// [`LockFailure::Held`] if this process or another process already holds the lock, [`LockFailure::Io`] if an operation
    /// on the file fails.
    #[allow(clippy::disallowed_methods, reason = "the lock is part of the Vfs seam")]
    pub fn acquire(path: &Path) -> Result<Self, LockFailure> {
        // Between opening and locking, another process may delete the file and create a new one. The lock would then be
        // on a file that no other process opens. So compare the file with the path after locking, and retry a few
        // times.
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

    /// Returns true if the file at the path is the locked file.
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

    /// Returns true if a file exists at the path. Systems other than Unix do not delete open files, so this is the
    /// locked file.
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

    /// Returns true if the file still has the contents that this holder wrote. Another holder would have replaced them.
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
    /// Unlocks the file explicitly, because closing it may release the lock late: a child process that another thread
    /// is just starting keeps the file open until it executes its program.
    fn drop(&mut self) {
        // In a child created by `fork`, unlocking would release the lock of the parent. Closing the file does not.
        if self.process == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}
