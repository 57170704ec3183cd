//! Files that are written from the first byte to the last and then made durable.
//!
//! What is to be durable goes to the disk anyway. Of a large file the system's cache would hold a copy meanwhile, which
//! costs memory that others have use for, and more time than the disk takes: so it goes past the cache, as `O_DIRECT` of
//! Linux does it, from the size on at which it is worth it, where the file system knows how.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes of a file that go through the cache: who reads a small file finds it there.
const CACHED: u64 = 64 << 20;
/// What lengths, places in the file and addresses are multiples of past the cache; disks ask for as much or less.
const ALIGNED: usize = 1 << 12;
/// Bytes that go past the cache at once.
const TOGETHER: usize = 4 << 20;
/// More than any file has.
const NEVER: u64 = u64::MAX / 2;

/// A file that grows at its end.
#[derive(Debug)]
pub struct DurableFile {
    file: File,
    /// Bytes in the file.
    length: u64,
    /// From which length on the cache is passed.
    cached: u64,
    past_cache: Option<Aligned>,
}

impl DurableFile {
    /// A new file.
    ///
    /// # Errors
    ///
    /// The system's; one is there.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, length: 0, cached: CACHED, past_cache: None })
    }

    /// One that is there, to be written on.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, cached: CACHED, past_cache: None })
    }

    /// Makes it durable.
    ///
    /// # Errors
    ///
    /// The system's; nothing is known of what is in the file then.
    pub fn finish(mut self) -> io::Result<()> {
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
                // The rest goes as all else would.
                self.file.write_all(waiting.bytes())?;
                (self.past_cache, self.cached) = (None, NEVER);
            }
            self.length += count as u64;
            return Ok(count);
        }
        // Up to a place that is a multiple.
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

    /// Does nothing: what waits is written by [`finish`](Self::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that wait, at an address that is a multiple.
#[derive(Debug)]
struct Aligned {
    room: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new() -> Self {
        let room = vec![0; TOGETHER + ALIGNED];
        let start = room.as_ptr().align_offset(ALIGNED);
        // Where that cannot be told, writing past the cache is refused, and everything goes through it.
        Self { room, start: start.min(ALIGNED), len: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.start + self.len]
    }

    fn is_full(&self) -> bool {
        self.len == TOGETHER
    }

    /// Adds as many as there is room for.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let end = self.start + self.len;
        let count = bytes.len().min(TOGETHER - self.len);
        self.room[end..end + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }

    /// Writes those that are a whole multiple, past the cache, and leaves the others. False where the file system refuses:
    /// then the cache is no more passed, and what was not written is left.
    fn write_whole(&mut self, file: &mut File) -> io::Result<bool> {
        let whole = self.len / ALIGNED * ALIGNED;
        let (mut written, mut passes) = (0, true);
        while passes && written < whole {
            match file.write(&self.room[self.start + written..self.start + whole]) {
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
        self.room.copy_within(self.start + written..self.start + self.len, self.start);
        self.len -= written;
        Ok(passes)
    }
}

/// Has what is written go past the cache, or through it again.
#[cfg(target_os = "linux")]
fn pass_cache(file: &File, past: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, past);
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn pass_cache(_: &File, past: bool) -> io::Result<()> {
    if past { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_whatever_its_length_and_how_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..3 * TOGETHER + 777).map(|at| (at / 7) as u8).collect();
        for length in [0, 1, 5000, 5000 + TOGETHER, 2 * TOGETHER, all.len()] {
            for cached in [0, 1, 4097, CACHED] {
                let path = folder.path().join(format!("{length}-{cached}"));
                // As a file that another came between.
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
    fn what_cannot_go_past_the_cache_goes_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused");
        let all: Vec<u8> = (0..3 * TOGETHER).map(|at| (at / 7) as u8).collect();
        let mut file = DurableFile { cached: 0, ..DurableFile::create_new(&path).unwrap() };
        file.write_all(&all[..1]).unwrap();
        // Few disks take anything from an odd address.
        if let Some(waiting) = &mut file.past_cache {
            waiting.start = (waiting.start + 1) % ALIGNED;
            waiting.room[waiting.start] = all[0];
        }
        file.write_all(&all[1..]).unwrap();
        file.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == all);
    }
}
