//! Scratch files for data that exceeds the memory.
//!
//! The start of a scratch file is written through the page cache, so that a small file can be read from the cache. A
//! large scratch file would evict other data, and adding pages to the cache takes longer than writing them to the disk.
//! So later bytes bypass the cache, as for [durable files](super::DurableFile), and so do long reads of these bytes.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::past_cache::{ALIGNED, Aligned, PastCacheReader, pass_cache};
use super::vfs::ReadFile;

/// A scratch file. Bytes are appended at its end and can be read at any offset. A file of [`create`](Self::create) has
/// no name, and is deleted when this value is dropped or the process ends. A file of [`open`](Self::open) remains.
#[derive(Debug)]
pub struct Spill {
    file: File,
    /// Whether the file has a name, and is kept when this value is dropped.
    is_named: bool,
    /// The length of the file when it was opened.
    opened: u64,
    /// Whether the position of the file may differ from `flushed`, so that a write must seek first.
    has_moved: bool,
    /// The unwritten bytes at the end of the file, while writes go through the cache.
    buffer: Vec<u8>,
    /// The unwritten bytes at the end of the file, while writes bypass the cache. `None` while they go through the cache.
    past_cache: Option<Aligned>,
    /// The length of the file at which writes start to bypass the cache.
    cached: u64,
    reader: PastCacheReader,
    flushed: u64,
    /// The offset up to which disk space has been released.
    released: AtomicU64,
}

/// Number of bytes that are buffered before they are written through the cache.
const BUFFER: usize = 1 << 18;
/// Number of bytes at the start of a file that are written through the cache.
const CACHED: u64 = 256 << 20;
/// Disk space is released in multiples of this number of bytes.
const RELEASED: u64 = 16 << 20;

impl Spill {
    /// Creates an empty file on the file system of `dir`.
    ///
    /// # Errors
    /// I/O errors of the operating system.
    #[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
    pub fn create(dir: &Path) -> io::Result<Self> {
        Ok(Self::of(tempfile::tempfile_in(dir)?, 0, false))
    }

    /// Opens or creates the file at `path`, which remains when this value is dropped. Appended bytes overwrite the file
    /// from its start. The bytes after the last appended byte remain.
    ///
    /// # Errors
    /// I/O errors of the operating system.
    #[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let opened = file.metadata()?.len();
        Ok(Self::of(file, opened, true))
    }

    fn of(file: File, opened: u64, is_named: bool) -> Self {
        Self {
            file,
            is_named,
            opened,
            has_moved: false,
            buffer: Vec::new(),
            past_cache: None,
            cached: CACHED,
            reader: PastCacheReader::default(),
            flushed: 0,
            released: AtomicU64::new(0),
        }
    }

    /// Returns the unwritten bytes at the end of the file.
    fn waiting(&self) -> &[u8] {
        self.past_cache.as_ref().map_or(&self.buffer, Aligned::bytes)
    }

    /// Returns the length of the file in bytes, including unwritten bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.flushed + self.waiting().len() as u64
    }

    /// Returns true if nothing has been appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes, and returns the offset at which they start.
    ///
    /// # Errors
    /// I/O errors of the operating system.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let (start, mut bytes) = (self.len(), bytes);
        while let Some(waiting) = &mut self.past_cache {
            bytes = &bytes[waiting.add(bytes)..];
            if bytes.is_empty() {
                return Ok(start);
            }
            self.write_past_cache()?;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.write_buffer()?;
        }
        Ok(start)
    }

    /// Skips `bytes` bytes of the opened file. The caller guarantees that they equal the bytes it would append. Returns
    /// false, and does nothing, if the file was shorter when it was opened, or if appended bytes are not written yet.
    pub fn pass_over(&mut self, bytes: u64) -> bool {
        let is_empty = self.past_cache.is_none() && self.buffer.is_empty();
        let end = self.flushed.checked_add(bytes).filter(|&end| is_empty && end <= self.opened);
        self.flushed = end.unwrap_or(self.flushed);
        self.has_moved |= end.is_some();
        end.is_some()
    }

    /// Moves the position of the file to the end of the flushed bytes.
    fn seek(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_moved) {
            self.file.seek(SeekFrom::Start(self.flushed))?;
        }
        Ok(())
    }

    /// Writes the buffer through the cache. Once the file has the length `cached`, later bytes bypass the cache.
    fn write_buffer(&mut self) -> io::Result<()> {
        #[cfg(test)]
        faults::write(self.buffer.len() as u64)?;
        self.seek()?;
        let end = self.flushed + self.buffer.len() as u64;
        // Keep the bytes after the last aligned offset in the buffer. They will be the first that bypass the cache.
        let after = if end < self.cached { 0 } else { (end % ALIGNED as u64) as usize };
        let (now, later) = self.buffer.split_at(self.buffer.len() - after);
        self.file.write_all(now)?;
        if end >= self.cached {
            let mut waiting = Aligned::new();
            waiting.add(later);
            self.past_cache = Some(waiting);
        }
        self.flushed += now.len() as u64;
        self.buffer.clear();
        if self.past_cache.is_some() {
            self.buffer.shrink_to_fit();
        }
        Ok(())
    }

    /// Writes the unwritten bytes past the cache, up to the last aligned length. If the file system rejects this,
    /// writes these and all later bytes through the cache.
    #[cold]
    fn write_past_cache(&mut self) -> io::Result<()> {
        let Some(waiting) = &mut self.past_cache else { return Ok(()) };
        let before = waiting.bytes().len();
        #[cfg(test)]
        faults::write(before as u64)?;
        // Let only this write bypass the cache, because other reads of the file are not aligned.
        let passes = match pass_cache(&self.file, true) {
            Ok(()) => {
                let passes = waiting.write_whole(&self.file);
                pass_cache(&self.file, false)?;
                passes?
            }
            Err(_) => false,
        };
        if !passes {
            self.file.write_all(waiting.bytes())?;
            (self.past_cache, self.cached) = (None, u64::MAX);
        }
        self.flushed += (before - self.waiting().len()) as u64;
        Ok(())
    }

    /// Writes all bytes to the file. Returns a handle of the file; syncing it makes all bytes appended so far durable.
    /// # Errors
    /// I/O errors of the operating system.
    pub fn flush(&mut self) -> io::Result<File> {
        #[cfg(test)]
        faults::write(self.waiting().len() as u64)?;
        self.seek()?;
        (&self.file).write_all(self.waiting())?;
        // The bytes remain in the buffer, and the next aligned write past the cache writes them again.
        self.has_moved = true;
        self.seek()?;
        self.file.try_clone()
    }

    /// Frees the disk space of the bytes before `offset`, rounded down to a multiple of 16 MiB, if the file system supports
    /// it. The bytes before `offset` must not be read afterwards. Does nothing if the file has a name.
    pub fn release(&self, offset: u64) {
        if self.is_named {
            return;
        }
        let (before, offset) = (self.released.load(Relaxed), offset.min(self.flushed) / RELEASED * RELEASED);
        // If several threads release space at the same time, only one of them succeeds.
        if offset > before && self.released.compare_exchange(before, offset, Relaxed, Relaxed).is_ok() {
            give_back(&self.file, before, offset - before);
        }
    }

    /// Fills `out` with the bytes of the file from `offset` on.
    ///
    /// # Errors
    /// I/O errors of the operating system; [`io::ErrorKind::UnexpectedEof`] past the end of the file; an error for
    /// [released](Self::release) bytes.
    pub fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        if offset < self.released.load(Relaxed) {
            return Err(io::Error::other("a part of a scratch file that was given back"));
        }
        let on_disk = self.flushed.saturating_sub(offset).min(out.len() as u64) as usize;
        let (first, second) = out.split_at_mut(on_disk);
        if !first.is_empty() {
            #[cfg(test)]
            faults::read()?;
            if offset < self.cached {
                ReadFile::read_exact_at(&self.file, first, offset)?;
            } else {
                self.reader.read_exact_at(&self.file, first, offset)?;
            }
        }
        let start = (offset + on_disk as u64).saturating_sub(self.flushed) as usize;
        let waiting = self.waiting().get(start..).and_then(|rest| rest.get(..second.len()));
        second.copy_from_slice(waiting.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Frees the disk space of a range of the file. If the file system cannot do this, the space remains allocated until the
/// file is closed.
#[cfg(target_os = "linux")]
fn give_back(file: &File, from: u64, bytes: u64) {
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, from, bytes);
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &File, _: u64, _: u64) {}

/// Injects faults into the scratch files of the current thread. Used by the tests of the library.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static SPACE: Cell<u64> = const { Cell::new(u64::MAX) };
        static READS: Cell<bool> = const { Cell::new(true) };
    }

    /// Sets the number of bytes that this thread can still write to scratch files. Further writes fail as on a full
    /// disk.
    pub(crate) fn leave_space(bytes: u64) {
        SPACE.set(bytes);
    }

    /// Sets whether this thread can read scratch files.
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
#[allow(clippy::disallowed_methods, reason = "tests read what was written")]
mod tests {
    use super::*;

    #[test]
    fn spill_returns_appended_bytes_from_file_and_buffer() {
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
    fn bytes_written_past_the_cache_are_read_back_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..11_000_000_u32).map(|at| (at / 5) as u8 ^ (at >> 16) as u8).collect();
        for (cached, at_once, is_odd) in [
            (0, 100_003, false),
            (300_001, 7, false),
            (4096, 5_000_000, false),
            (u64::MAX, 4096, false),
            (1 << 20, 70_001, true),
        ] {
            let mut spill = Spill { cached, ..Spill::create(dir.path()).unwrap() };
            let mut written = 0;
            for piece in all.chunks(at_once) {
                assert_eq!(spill.append(piece).unwrap(), written as u64);
                written += piece.len();
                // Most disks reject writes from an unaligned address. The bytes must then be written through the cache.
                if let (true, Some(waiting)) = (is_odd, &mut spill.past_cache) {
                    waiting.misalign();
                }
                // Read a range with bytes from the file and bytes that are not written yet.
                let from = written.saturating_sub(600_000) / 3 * 2;
                if at_once > 7 || written % 1_000_003 < 7 {
                    let mut out = vec![0; written - from];
                    spill.read_exact_at(&mut out, from as u64).unwrap();
                    assert!(out == all[from..written], "{cached} {at_once} {from}..{written}");
                }
            }
            assert_eq!(spill.len(), all.len() as u64);
            #[cfg(target_os = "linux")]
            assert_eq!(spill.past_cache.is_some(), cached < u64::MAX && !is_odd, "{cached}");
            assert!(spill.read_exact_at(&mut [0; 2], all.len() as u64 - 1).is_err());
        }
    }

    #[test]
    fn flushed_bytes_of_a_named_file_are_in_the_file_and_later_appends_are_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("named");
        let all: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8 ^ (at >> 15) as u8).collect();
        for cached in [0, 1 << 20, u64::MAX] {
            // The second pass overwrites the bytes of the first with the same bytes, or skips some of them.
            for passed in [0, 0, 1, 12, usize::MAX] {
                let mut spill = Spill { cached, ..Spill::open(&path).unwrap() };
                for (number, piece) in all.chunks(70_001).enumerate() {
                    let passes = number < passed && spill.pass_over(piece.len() as u64);
                    assert_eq!(passes, number < passed);
                    if !passes {
                        spill.append(piece).unwrap();
                        assert!(spill.waiting().is_empty() || !spill.pass_over(1), "before waiting bytes");
                    }
                    if number % 5 == 4 {
                        spill.flush().unwrap().sync_data().unwrap();
                        let end = spill.len() as usize;
                        assert!(std::fs::read(&path).unwrap()[..end] == all[..end], "{cached} {end}");
                    }
                }
                spill.release(spill.len());
                let mut out = vec![0; all.len()];
                spill.read_exact_at(&mut out, 0).unwrap();
                assert!(out == all, "{cached}");
                spill.flush().unwrap();
                assert!(!spill.pass_over(1), "past the end");
            }
            assert!(std::fs::read(&path).unwrap() == all, "{cached}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn released_bytes_take_no_space_and_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(dir.path()).unwrap();
        let piece = vec![7; 1 << 20];
        for _ in 0..40 {
            spill.append(&piece).unwrap();
        }
        #[cfg(target_os = "linux")]
        let taken =
            |spill: &Spill| std::os::unix::fs::MetadataExt::blocks(&spill.file.metadata().unwrap()) * 512;
        #[cfg(target_os = "linux")]
        let before = taken(&spill);
        spill.release(RELEASED - 1);
        spill.read_exact_at(&mut [0], 0).unwrap();
        spill.release(2 * RELEASED + 5);
        #[cfg(target_os = "linux")]
        assert_eq!(before - taken(&spill), 2 * RELEASED);
        assert!(
            spill.read_exact_at(&mut [0], 2 * RELEASED - 1).unwrap_err().to_string().contains("given back")
        );
        let mut out = [0; 9];
        spill.read_exact_at(&mut out, 2 * RELEASED).unwrap();
        assert_eq!((out, spill.len()), ([7; 9], 40 << 20));
    }
}
