//! Files that are written sequentially and then synced to disk.
//!
//! A durable file must be written to the disk in any case, so a copy in the page cache saves no write. The copy takes
//! memory from other data, and adding its pages to the cache takes longer than the write to the disk. So writes after
//! the first 64 MiB of a file bypass the cache (`O_DIRECT` on Linux), if the file system supports it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::past_cache::{ALIGNED, Aligned, pass_cache};

/// Number of bytes at the start of a file that are written through the cache, so that small files can be read from the
/// cache.
const CACHED: u64 = 64 << 20;
/// An offset that no file reaches: writes never bypass the cache.
const NEVER: u64 = u64::MAX / 2;

/// A file to which bytes are appended, and which is then synced.
#[derive(Debug)]
pub struct DurableFile {
    file: File,
    /// The length of the file in bytes, including buffered bytes.
    length: u64,
    /// The length of the file at which writes start to bypass the cache.
    cached: u64,
    past_cache: Option<Aligned>,
}

#[allow(clippy::disallowed_methods, reason = "tables and kept documents are no files of an index")]
impl DurableFile {
    /// Wraps an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file, length: 0, cached: CACHED, past_cache: None }
    }

    /// Creates a new file.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system. Fails if the file already exists.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::create_new(path)?))
    }

    /// Opens an existing file for appending.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, cached: CACHED, past_cache: None })
    }

    /// Returns the length of the file in bytes, including bytes that are not written yet.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Syncs the contents of the file to disk and closes the file.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system. After an error, the contents of the file are undefined.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()
    }

    /// Syncs the contents of the file to disk. Later writes go through the cache.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system. After an error, the contents of the file are undefined.
    pub fn sync(&mut self) -> io::Result<()> {
        self.cached = NEVER;
        if let Some(mut waiting) = self.past_cache.take() {
            waiting.write_whole(&mut self.file)?;
            pass_cache(&self.file, false)?;
            self.file.write_all(waiting.bytes())?;
        }
        self.file.sync_all()
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(waiting) = &mut self.past_cache {
            let count = waiting.add(bytes);
            if waiting.is_full() && !waiting.write_whole(&mut self.file)? {
                // The file system rejected the write past the cache, so this and all later writes use the cache.
                self.file.write_all(waiting.bytes())?;
                (self.past_cache, self.cached) = (None, NEVER);
            }
            self.length += count as u64;
            return Ok(count);
        }
        // Write through the cache up to an aligned offset.
        let bound = self.cached.max(self.length).next_multiple_of(ALIGNED as u64);
        let until = usize::try_from(bound - self.length).unwrap_or(usize::MAX);
        if until == 0 {
            match pass_cache(&self.file, true) {
                Ok(()) => self.past_cache = Some(Aligned::new()),
                Err(_) => self.cached = NEVER,
            }
            return self.write(bytes);
        }
        let count = self.file.write(&bytes[..bytes.len().min(until)])?;
        self.length += count as u64;
        Ok(count)
    }

    /// Does nothing. [`finish`](Self::finish) writes the buffered bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read what was written")]
mod tests {
    use super::*;
    use crate::sys::past_cache::TOGETHER;

    #[test]
    fn file_contains_the_bytes_of_all_writes_for_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..3 * TOGETHER + 777).map(|at| (at / 7) as u8).collect();
        for length in [0, 1, 5000, 5000 + TOGETHER, 2 * TOGETHER, all.len()] {
            for cached in [0, 1, 4097, CACHED] {
                let path = folder.path().join(format!("{length}-{cached}"));
                // Write the file in two parts, closing and reopening it in between.
                let (first, second) = all[..length].split_at(length / 3);
                for (part, at_once) in [(first, 999), (second, 1 << 20)] {
                    let is_there = path.exists();
                    let file =
                        if is_there { DurableFile::append(&path) } else { DurableFile::create_new(&path) };
                    let mut file = DurableFile { cached, ..file.unwrap() };
                    part.chunks(at_once).for_each(|some| file.write_all(some).unwrap());
                    file.finish().unwrap();
                }
                assert!(std::fs::read(&path).unwrap() == all[..length], "{length} {cached}");
            }
        }
    }

    #[test]
    fn write_that_cannot_bypass_the_cache_uses_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused");
        let all: Vec<u8> = (0..3 * TOGETHER).map(|at| (at / 7) as u8).collect();
        let mut file = DurableFile { cached: 0, ..DurableFile::create_new(&path).unwrap() };
        file.write_all(&all[..1]).unwrap();
        // Most disks reject writes from an unaligned address.
        if let Some(waiting) = &mut file.past_cache {
            waiting.misalign();
        }
        file.write_all(&all[1..]).unwrap();
        file.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == all);
    }
}
