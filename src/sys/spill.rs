//! Scratch space on disk for work that is larger than memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::vfs::ReadFile;

/// A file without a name: written at the end, read anywhere, gone when dropped or when the process ends.
#[derive(Debug)]
pub struct Spill {
    file: File,
    buffer: Vec<u8>,
    flushed: u64,
}

/// Bytes collected before they are written.
const BUFFER: usize = 1 << 18;

impl Spill {
    /// An empty file on the file system of `dir`.
    ///
    /// # Errors
    /// The operating system's.
    #[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
    pub fn create(dir: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(dir)?, buffer: Vec::new(), flushed: 0 })
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

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::UnexpectedEof`] behind the end.
    pub fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
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

/// Scratch files of one thread that fail, for tests of the library.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static SPACE: Cell<u64> = const { Cell::new(u64::MAX) };
        static READS: Cell<bool> = const { Cell::new(true) };
    }

    /// From now on this thread can write `bytes` more to scratch files; then the disk is full.
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
}
