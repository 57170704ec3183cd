//! A file system for background work: limits the write rate, and can be stopped.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancel::Cancel;

use super::vfs::{AppendFile, FileStamp, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs, pass_through};
use super::watch::Watch;

/// Wraps another file system, and limits the rate of writes to temporary files.
#[derive(Clone, Debug)]
pub struct Paced {
    vfs: Arc<dyn Vfs>,
    stop: Cancel,
    /// The maximum rate in bytes per second; `None` for no limit.
    rate: Option<u64>,
}

impl Paced {
    /// Wraps `vfs`. `rate` is the maximum rate in bytes per second. Once `stop` is requested, writes to temporary files fail.
    #[must_use]
    pub fn new(vfs: Arc<dyn Vfs>, stop: Cancel, rate: Option<u64>) -> Self {
        Self { vfs, stop, rate }
    }
}

impl Vfs for Paced {
    pass_through!(self => self.vfs);

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let file = self.vfs.create_temporary(dir)?;
        let (stop, rate) = (self.stop.clone(), self.rate);
        Ok(Box::new(PacedFile { file, stop, rate, written: 0, start: Instant::now() }))
    }
}

#[derive(Debug)]
struct PacedFile {
    file: Box<dyn TemporaryFile>,
    stop: Cancel,
    rate: Option<u64>,
    written: u64,
    start: Instant,
}

impl PacedFile {
    fn check(&self) -> io::Result<()> {
        if self.stop.is_cancelled() { Err(io::Error::other("stopped by its owner")) } else { Ok(()) }
    }
}

impl TemporaryFile for PacedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.append(bytes)?;
        self.written += bytes.len() as u64;
        let due = self.rate.map(|rate| Duration::from_secs_f64(self.written as f64 / rate.max(1) as f64));
        while let Some(ahead) = due.and_then(|due| due.checked_sub(self.start.elapsed())) {
            self.check()?;
            std::thread::sleep(ahead.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        self.file.sync()
    }

    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        self.check()?;
        self.file.publish(path, replace)
    }
}
