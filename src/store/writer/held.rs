//! Checks that a writer still holds its index: the process, the lock, and the history on disk.
use std::io::ErrorKind;
use std::sync::Arc;

use super::Writer;
use crate::error::{Error, Result};
use crate::store::history::{another_history, another_index, current_stamp};
use crate::store::log::OpenLog;
use crate::store::{names, recovery};
use crate::sys::fork;

impl Writer {
    /// Returns whether this process is a forked child, which has a copy of this writer.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Returns an error if this writer is used in a forked child.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.is_forked() {
            return Err(Error::Invalid(format!(
                "{}: this writer was opened by process {}, and this is process {}; after a fork only the process that \
                 opened a writer may use it; open a writer of your own",
                self.shared.dir.display(),
                self.process,
                std::process::id()
            )));
        }
        Ok(())
    }

    /// Like [`check_process`](Self::check_process), but cheaper: makes the system call only before the first document
    /// of a batch and after a detected fork. In between, documents stay in memory until a step writes them, and this
    /// step checks the process again.
    pub(super) fn check_process_of_batch(&self) -> Result<()> {
        let is_first = self.batch.is_empty() && self.records.is_empty();
        if is_first || self.forks != fork::generation() { self.check_process() } else { Ok(()) }
    }

    pub(super) fn check_lock(&self) -> Result<()> {
        self.check_process()?;
        // guard: a writer whose lock file is gone does not commit
        // without it: self.lock.is_current() -> true
        if self.lock.is_current() {
            return self.check_history();
        }
        let (vfs, dir) = (&self.shared.vfs, &self.shared.dir);
        if matches!(vfs.exists(dir), Ok(false)) {
            let why = "the directory was moved or removed while a writer had it open; open the index where it is now";
            return Err(Error::NotAnIndex { path: dir.clone(), why: why.into() });
        }
        let uuid = self.next.uuid;
        if recovery::read_current(&**vfs, dir).is_ok_and(|current| current.header.salt.get() != uuid) {
            return Err(another_index(dir));
        }
        let path = names::lock(dir);
        Err(Error::Locked { path, holder: " (the lock file was replaced)".into() })
    }

    /// Returns an error if a restored copy or another index has taken the place of the index on disk. An acknowledged commit
    /// would then be in files that the index on disk does not name.
    pub(super) fn check_history(&self) -> Result<()> {
        let (vfs, dir) = (&*self.shared.vfs, self.shared.dir.as_path());
        let stamp = current_stamp(vfs, dir)?;
        if stamp != self.current.get() {
            let current = recovery::read_current(vfs, dir)?;
            if current.header.salt.get() != self.next.uuid {
                return Err(another_index(dir));
            }
            // guard: a writer does not continue an index whose CURRENT was replaced
            if current.digest.get() != self.shared.published.read().history.manifest {
                return Err(another_history(dir));
            }
            self.current.set(stamp);
        }
        match &self.log {
            // guard: a writer does not append to a log that was replaced
            Some(log) if !log.is_on_disk(vfs)? => Err(another_history(dir)),
            _ => Ok(()),
        }
    }

    /// Returns an error if a log that the published generation names is not the one that was read or written. Checks the
    /// logs to which this writer does not append; [`check_lock`](Self::check_lock) checks the other one.
    pub(super) fn check_logs(&self) -> Result<()> {
        let known = Arc::clone(&self.shared.published.read());
        let (vfs, dir) = (&*self.shared.vfs, self.shared.dir.as_path());
        let active = self.log.as_ref().map(OpenLog::number);
        // guard: a writer does not name a log that was replaced
        if !known.history.has_logs(vfs, dir, |number| active != Some(number))? {
            return Err(another_history(dir));
        }
        Ok(())
    }

    /// Returns the reason for an error. A new file of this writer has a number that its history has not used. If a file with
    /// this number exists, another history has left it.
    pub(super) fn explained(&self, error: Error) -> Error {
        match error {
            Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists => {
                another_history(&self.shared.dir)
            }
            other => other,
        }
    }
}
