//! A disk on which chosen operations fail.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, ReadFile, TemporaryFile, Vfs};
use twindex::sys::{Bytes, RealVfs};

#[path = "device.rs"]
mod device;

pub use device::Device;

/// The operations that fail, their errors, and counters of operations.
#[derive(Debug, Default)]
pub struct Faults {
    /// Number of operations so far, including failed ones.
    pub count: AtomicUsize,
    /// Number of the operation that fails, counted from 1; 0 if none fails.
    pub fails_at: usize,
    /// Whether all operations after `fails_at` fail as well.
    pub for_ever: bool,
    /// Whether the failing operation takes effect although it is reported as failed.
    pub done_anyway: bool,
    pub full: bool,
    /// The error number to report; `None` for EIO or, on a full disk, ENOSPC.
    pub errno: Option<i32>,
    /// The free space in bytes that the file system reports; `None` if it reports none.
    pub space: Option<u64>,
    /// Number of times that the free space was queried.
    pub space_queries: AtomicUsize,
    /// Additional duration of each read.
    pub read_takes: Duration,
    /// The device that reads take their time from.
    pub device: Mutex<Device>,
    /// The underlying file system; `None` for the real one.
    pub over: Option<Arc<dyn Vfs>>,
    /// Whether every operation that changes the disk fails.
    pub read_only: AtomicBool,
    /// The name of the first operation that failed.
    pub failed: Mutex<Option<String>>,
    /// Whether an operation has replaced `CURRENT`.
    pub current_replaced: AtomicBool,
}

impl Faults {
    fn disk(&self) -> &dyn Vfs {
        self.over.as_deref().unwrap_or(&RealVfs)
    }

    /// Performs `operation`, unless it is one that must fail.
    fn attempt<T>(
        &self,
        name: &str,
        writes: bool,
        operation: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let turn = self.fails_at > 0 && (number == self.fails_at || self.for_ever && number > self.fails_at);
        if writes && self.read_only.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(30)); // EROFS
        }
        if !turn {
            return operation();
        }
        self.failed.lock().unwrap().get_or_insert_with(|| format!("{number}: {name}"));
        if self.done_anyway {
            operation()?;
        }
        let usual = if self.full { 28 } else { 5 }; // ENOSPC, EIO
        Err(io::Error::from_raw_os_error(self.errno.unwrap_or(usual)))
    }
}

#[derive(Clone, Debug)]
pub struct FaultyVfs(pub Arc<Faults>);

impl Vfs for FaultyVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.attempt("create_dir", true, || self.0.disk().create_dir(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.attempt("exists", false, || self.0.disk().exists(path))
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let file = self.0.attempt("create_temporary", true, || self.0.disk().create_temporary(dir))?;
        Ok(Box::new(FaultyTemporary { file, faults: Arc::clone(&self.0) }))
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = self.0.attempt("create_append", true, || self.0.disk().create_append(path))?;
        Ok(Box::new(FaultyLog { file, faults: Arc::clone(&self.0) }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.0.attempt("open", false, || self.0.disk().open(path))?;
        Ok(Box::new(FaultyFile {
            file,
            number: self.0.count.load(Ordering::Relaxed),
            faults: Arc::clone(&self.0),
        }))
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.0.attempt("sync_dir", true, || Ok(())) // syncs nothing: no test can observe that here, and a sync takes time
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.attempt("rename_dir", true, || self.0.disk().rename_dir(from, to))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.attempt("remove_dir", true, || self.0.disk().remove_dir(path))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.0.attempt("unlink", true, || self.0.disk().unlink(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.attempt("hard_link", true, || self.0.disk().hard_link(from, to))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.attempt("list", false, || self.0.disk().list(dir))
    }

    fn free_space(&self, _: &Path) -> io::Result<Option<u64>> {
        self.0.space_queries.fetch_add(1, Ordering::Relaxed);
        Ok(self.0.space)
    }

    fn lock(&self, path: &Path) -> std::result::Result<Box<dyn HeldLock>, LockFailure> {
        self.0.attempt("lock", true, || Ok(())).map_err(LockFailure::Io)?;
        self.0.disk().lock(path)
    }
}

#[derive(Debug)]
struct FaultyTemporary {
    file: Box<dyn TemporaryFile>,
    faults: Arc<Faults>,
}

impl TemporaryFile for FaultyTemporary {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = &mut self.file;
        // On a full disk, a failing append may write only part of the bytes.
        let some = if self.faults.done_anyway { &bytes[..bytes.len() / 2] } else { bytes };
        let number = self.faults.count.load(Ordering::Relaxed) + 1;
        let bytes = if number == self.faults.fails_at { some } else { bytes };
        self.faults.attempt("append", true, || file.append(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.faults.attempt("sync", true, || Ok(()))
    }

    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let Self { file, faults } = *self;
        let name = format!("publish {}", path.file_name().unwrap().display());
        faults.clone().attempt(&name, true, || {
            file.publish(path, replace)?;
            if path.ends_with("CURRENT") {
                faults.current_replaced.store(true, Ordering::Relaxed);
            }
            Ok(())
        })
    }
}

#[derive(Debug)]
struct FaultyLog {
    file: Box<dyn AppendFile>,
    faults: Arc<Faults>,
}

impl AppendFile for FaultyLog {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = &mut self.file;
        let number = self.faults.count.load(Ordering::Relaxed) + 1;
        let cut = self.faults.done_anyway && number == self.faults.fails_at;
        let bytes = if cut { &bytes[..bytes.len() / 2] } else { bytes };
        self.faults.attempt("append_log", true, || file.append(bytes))
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let file = &mut self.file;
        self.faults.attempt("cut_log", true, || file.cut(length))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.faults.attempt("sync_log", true, || Ok(()))
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn ReadFile>,
    number: usize,
    faults: Arc<Faults>,
}

impl ReadFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.faults.attempt("len", false, || self.file.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::thread::sleep(self.faults.read_takes);
        self.faults.device.lock().unwrap().read(self.number, offset, buffer.len() as u64);
        self.faults.attempt("read", false, || self.file.read_exact_at(buffer, offset))
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        self.faults.attempt("map", false, || self.file.map(len))
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.faults.device.lock().unwrap().request(self.number, offset, length);
    }
}

/// Returns all combinations of settings with which an operation can fail.
pub fn ways() -> impl Iterator<Item = Faults> {
    [(false, false, false), (true, false, false), (false, true, false), (true, false, true)]
        .into_iter()
        .map(|(full, done_anyway, for_ever)| Faults { for_ever, done_anyway, full, ..Faults::default() })
}
