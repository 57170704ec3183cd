//! Reads and writes of large files that bypass the page cache (`O_DIRECT` on Linux).
//!
//! Adding a page to the cache takes time, on a virtual machine more than writing the page to the disk, and cached pages
//! take memory from other processes. Bypassing the cache requires aligned offsets, lengths and addresses. If the file
//! system does not support it, the cache is used.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::vfs::ReadFile;

/// The alignment in bytes of lengths, offsets and addresses for bypassing the cache. Common disks require at most
/// this alignment.
pub(super) const ALIGNED: usize = 1 << 12;
/// Size in bytes of a write that bypasses the cache, and maximum size of such a read.
pub(super) const TOGETHER: usize = 4 << 20;
/// Minimum size in bytes of a read that bypasses the cache. For shorter reads, waiting for the disk takes longer than
/// adding pages to the cache.
const READ_MIN: usize = 1 << 18;

/// A buffer whose bytes start at an aligned address.
#[derive(Debug)]
pub(super) struct Aligned {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(super) fn new() -> Self {
        let buffer = vec![0; TOGETHER + ALIGNED];
        let start = buffer.as_ptr().align_offset(ALIGNED);
        // If the start cannot be aligned, the system rejects the write, and the whole file is written through the
        // cache.
        Self { buffer, start: start.min(ALIGNED), len: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == TOGETHER
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Moves the bytes to an unaligned address.
    #[cfg(test)]
    pub(super) fn misalign(&mut self) {
        if self.start.is_multiple_of(2) {
            let to = if self.start == 0 { 1 } else { self.start - 1 };
            self.buffer.copy_within(self.start..self.start + self.len, to);
            self.start = to;
        }
    }

    /// Appends bytes up to the capacity of the buffer, and returns the number of appended bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) -> usize {
        let end = self.start + self.len;
        let count = bytes.len().min(TOGETHER - self.len);
        self.buffer[end..end + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }

    /// Writes the longest prefix of aligned length past the cache, and keeps the rest. If the file system rejects this,
    /// switches the file back to the cache, keeps the unwritten bytes and returns false.
    pub(super) fn write_whole(&mut self, mut file: &File) -> io::Result<bool> {
        let whole = self.len / ALIGNED * ALIGNED;
        let (mut written, mut passes) = (0, true);
        while passes && written < whole {
            match file.write(&self.buffer[self.start + written..self.start + whole]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    pass_cache(file, false)?;
                    passes = false;
                }
                Err(error) => return Err(error),
            }
        }
        self.buffer.copy_within(self.start + written..self.start + self.len, self.start);
        self.len -= written;
        Ok(passes)
    }
}

/// Selects whether reads and writes of an open file bypass the cache.
#[cfg(target_os = "linux")]
pub(super) fn pass_cache(file: &File, past: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, past);
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn pass_cache(_: &File, past: bool) -> io::Result<()> {
    if past { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

/// Reads ranges of a file at any offset and of any length. Long reads bypass the cache.
#[derive(Debug, Default)]
pub(super) struct PastCacheReader {
    /// A second descriptor of the file for reads that bypass the cache. `None` if the system cannot open it.
    file: OnceLock<Option<File>>,
    /// The buffer of aligned reads, which all reads share.
    buffer: Mutex<Vec<u8>>,
}

impl PastCacheReader {
    /// Fills `out` with the bytes of `file` from `offset` on. Long reads bypass the cache if the system supports it; short
    /// reads use the cache.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system, including [`io::ErrorKind::UnexpectedEof`] past the end of the file.
    pub(super) fn read_exact_at(&self, file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for piece in out.chunks_mut(TOGETHER) {
            self.read_piece(file, piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Reads at most [`TOGETHER`] bytes, so that the aligned buffer is small even for a long read.
    fn read_piece(&self, file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
        if out.len() >= READ_MIN
            && let Some(past) = self.file.get_or_init(|| opened_past_cache(file).ok())
        {
            let mut buffer = std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
            let read = read_aligned(past, &mut buffer, out, offset);
            *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = buffer;
            if read {
                return Ok(());
            }
        }
        // Read through the cache. This also reports the error if the disk cannot read the bytes.
        ReadFile::read_exact_at(file, out, offset)
    }
}

/// Reads whole aligned blocks into `buffer` with one call, and copies the requested bytes to `out`. Returns false if the
/// read failed or was too short.
fn read_aligned(file: &File, buffer: &mut Vec<u8>, out: &mut [u8], offset: u64) -> bool {
    let before = (offset % ALIGNED as u64) as usize;
    let length = (before + out.len()).next_multiple_of(ALIGNED);
    if buffer.len() < length + ALIGNED {
        buffer.resize(length + ALIGNED, 0);
    }
    let start = buffer.as_ptr().align_offset(ALIGNED).min(ALIGNED);
    let blocks = &mut buffer[start..start + length];
    // The last block of the file may be incomplete, so a read may be short.
    match read_once_at(file, blocks, offset - before as u64) {
        Ok(count) if count >= before + out.len() => {
            out.copy_from_slice(&blocks[before..before + out.len()]);
            true
        }
        Ok(_) | Err(_) => false,
    }
}

#[cfg(unix)]
fn read_once_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(not(unix))]
fn read_once_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens an open file a second time; this works even if the file has no name.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
fn opened_past_cache(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    File::options().read(true).custom_flags(direct).open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn opened_past_cache(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests write what is read")]
mod tests {
    use super::*;

    #[test]
    fn reads_at_any_offset_and_length_return_the_file_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let all: Vec<u8> = (0..3 * READ_MIN + 777).map(|at| (at / 7) as u8 ^ (at >> 12) as u8).collect();
        std::fs::write(&path, &all).unwrap();
        let file = File::open(&path).unwrap();
        let reader = PastCacheReader::default();
        for offset in [0, 1, ALIGNED - 1, ALIGNED, 100_003, 2 * READ_MIN] {
            for length in [1, READ_MIN - 1, READ_MIN, READ_MIN + 1, all.len() - 2 * READ_MIN] {
                let mut out = vec![0; length];
                reader.read_exact_at(&file, &mut out, offset as u64).unwrap();
                assert!(out == all[offset..offset + length], "{offset} {length}");
            }
        }
        let mut beyond = vec![0; READ_MIN];
        let error = reader.read_exact_at(&file, &mut beyond, (all.len() - READ_MIN + 1) as u64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
