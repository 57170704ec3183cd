//! Scratch space on disk for work that is larger than memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::vfs::ReadFile;

/// A file without a name: written at the end, read anywhere, gone when dropped or when the process ends.
#[derive(Debug)]
pub struct Spill {
    file: File,
    buffer: Vec<u8>,
    flushed: u64,
    /// Bytes before this offset were released.
    released: AtomicU64,
}

/// Bytes collected for the next write.
const BUFFER: usize = 1 << 18;
/// Bytes that are released at once.
const RELEASED: u64 = 16 << 20;

impl Spill {
    /// An empty file on the file system of `dir`.
    ///
    /// # Errors
    /// The operating system's.
    #[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
    pub fn create(dir: &Path) -> io::Result<Self> {
        let released = AtomicU64::new(0);
        Ok(Self { file: tempfile::tempfile_in(dir)?, buffer: Vec::new(), flushed: 0, released })
    }

    /// Bytes in it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// True before the first byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes at the end, and returns where the bytes begin.
    ///
    /// # Errors
    /// The operating system's.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let start = self.len();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            #[cfg(test)]
            faults::write(self.buffer.len() as u64)?;
            self.file.write_all(&self.buffer)?;
            self.flushed += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(start)
    }

    /// Frees the disk space before `offset`, in large steps, if the file system can. Those bytes must not be read any
    /// more.
    pub fn release(&self, offset: u64) {
        let (before, offset) = (self.released.load(Relaxed), offset.min(self.flushed) / RELEASED * RELEASED);
        // One of several threads releases; the others skip it.
        if offset > before && self.released.compare_exchange(before, offset, Relaxed, Relaxed).is_ok() {
            give_back(&self.file, before, offset - before);
        }
    }

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::UnexpectedEof`] past the end; an error for bytes that were
    /// [released](Self::release).
    pub fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        if offset < self.released.load(Relaxed) {
            return Err(io::Error::other("a part of a scratch file that was given back"));
        }
        let on_disk = self.flushed.saturating_sub(offset).min(out.len() as u64) as usize;
        let (first, second) = out.split_at_mut(on_disk);
        if !first.is_empty() {
            #[cfg(test)]
            faults::read()?;
            ReadFile::read_exact_at(&self.file, first, offset)?;
        }
        let start = (offset + on_disk as u64).saturating_sub(self.flushed) as usize;
        let waiting = self.buffer.get(start..).and_then(|rest| rest.get(..second.len()));
        second.copy_from_slice(waiting.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Punches a hole. If the file system cannot, the space stays allocated until the file is closed.
#[cfg(target_os = "linux")]
fn give_back(file: &File, from: u64, bytes: u64) {
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, from, bytes);
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &File, _: u64, _: u64) {}

/// Injected faults of the scratch files of one thread, for tests of the library.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static SPACE: Cell<u64> = const { Cell::new(u64::MAX) };
        static READS: Cell<bool> = const { Cell::new(true) };
    }

    /// From now on this thread can write `bytes` more bytes to scratch files; then the disk is full.
    pub(crate) fn leave_space(bytes: u64) {
        SPACE.set(bytes);
    }

    /// Whether this thread can read scratch files from now on.
    pub(crate) fn allow_reads(allowed: bool) {
        READS.set(allowed);
    }

    pub(in crate::sys) fn write(bytes: u64) -> io::Result<()> {
        SPACE.set(SPACE.get().checked_sub(bytes).ok_or(io::ErrorKind::StorageFull)?);
        Ok(())
    }

    pub(super) fn read() -> io::Result<()> {
        if READS.get() { Ok(()) } else { Err(io::Error::other("a disk that cannot be read")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_back_across_the_buffer() {
        let dir = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(dir.path()).unwrap();
        let piece: Vec<u8> = (0..=255).cycle().take(100_003).collect();
        for round in 0..7 {
            assert_eq!(spill.append(&piece).unwrap(), round * 100_003);
        }
        for offset in [0, 1, 99_999, 262_000, 300_000, 600_017] {
            let mut out = vec![0; 100_003];
            spill.read_exact_at(&mut out, offset).unwrap();
            for (i, &byte) in out.iter().enumerate() {
                assert_eq!(byte, piece[(offset as usize + i) % 100_003], "{offset} + {i}");
            }
        }
        assert!(spill.read_exact_at(&mut [0; 2], 700_020).is_err());
    }

    #[test]
    fn what_was_given_back_takes_no_space_and_is_not_read_as_anything() {
        let dir = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(dir.path()).unwrap();
        let piece = vec![7; 1 << 20];
        for _ in 0..40 {
            spill.append(&piece).unwrap();
        }
        #[cfg(target_os = "linux")]
        let taken = |spill: &Spill| std::os::unix::fs::MetadataExt::blocks(&spill.file.metadata().unwrap()) * 512;
        #[cfg(target_os = "linux")]
        let before = taken(&spill);
        spill.release(RELEASED - 1);
        spill.read_exact_at(&mut [0], 0).unwrap();
        spill.release(2 * RELEASED + 5);
        #[cfg(target_os = "linux")]
        assert_eq!(before - taken(&spill), 2 * RELEASED);
        assert!(spill.read_exact_at(&mut [0], 2 * RELEASED - 1).unwrap_err().to_string().contains("given back"));
        let mut out = [0; 9];
        spill.read_exact_at(&mut out, 2 * RELEASED).unwrap();
        assert_eq!((out, spill.len()), ([7; 9], 40 << 20));
    }
}
