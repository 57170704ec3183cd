//! Files that are written sequentially and then synced to disk.
//!
//! A durable file must be written to the disk in any case, so a copy in the page cache saves no write. The copy takes
//! memory from other data, and adding its pages to the cache takes longer than the write to the disk. So writes after
//! the first 64 MiB of a file bypass the cache (`O_DIRECT` on Linux), if the file system supports it. A thread does
//! these writes, while the caller makes the next bytes.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::past_cache::{ALIGNED, Aligned, pass_cache};

/// Number of bytes at the start of a file that are written through the cache, so that small files can be read from the
/// cache.
const CACHED: u64 = 64 << 20;
/// An offset that no file reaches: writes never bypass the cache.
const NEVER: u64 = u64::MAX / 2;

/// A file to which bytes are appended, and which is then synced.
#[derive(Debug)]
pub struct DurableFile {
    file: Arc<File>,
    /// The length of the file in bytes, including buffered bytes.
    length: u64,
    /// The length of the file at which writes start to bypass the cache.
    cached: u64,
    past_cache: Option<WritesBeside>,
}

/// A thread that writes full buffers, and the buffer that is being filled.
#[derive(Debug)]
struct WritesBeside {
    waiting: Aligned,
    full: SyncSender<Aligned>,
    spare: Receiver<Aligned>,
    thread: JoinHandle<io::Result<()>>,
}

impl WritesBeside {
    fn start(file: &Arc<File>) -> io::Result<Self> {
        let ((full, buffers), (done, spare)) = (sync_channel(0), sync_channel(1));
        let file = Arc::clone(file);
        let write = move || write_all(&file, &buffers, &done);
        let thread = Builder::new().name("writes".into()).spawn(write)?;
        Ok(Self { waiting: Aligned::new(), full, spare, thread })
    }

    /// Passes the full buffer to the thread, and begins another. Returns the error of an earlier write.
    fn pass(self) -> io::Result<Self> {
        let Self { waiting, full, spare, thread } = self;
        if full.send(waiting).is_ok() {
            // The thread returned the buffer before when it took this one. The first has none before it.
            let waiting = spare.try_recv().unwrap_or_else(|_| Aligned::new());
            return Ok(Self { waiting, full, spare, thread });
        }
        joined(thread)?;
        Err(io::Error::other("the thread that writes has ended"))
    }

    /// Waits until all full buffers are written, and returns the last one.
    fn end(self) -> io::Result<Aligned> {
        drop((self.full, self.spare));
        joined(self.thread)?;
        Ok(self.waiting)
    }
}

fn joined(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes full buffers until the last one.
fn write_all(file: &File, full: &Receiver<Aligned>, done: &SyncSender<Aligned>) -> io::Result<()> {
    let mut passes = true;
    for mut buffer in full {
        // If the file system rejects writes past the cache, this and all later writes use the cache.
        passes = passes && buffer.write_whole(file)?;
        if !passes {
            (&mut &*file).write_all(buffer.bytes())?;
            buffer.clear();
        }
        let _ = done.try_send(buffer); // the caller needs no further buffer at the end
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "tables and kept documents are no files of an index")]
impl DurableFile {
    /// Wraps an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), length: 0, cached: CACHED, past_cache: None }
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
        Ok(Self { file: Arc::new(file), length, cached: CACHED, past_cache: None })
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
        if let Some(beside) = self.past_cache.take() {
            let mut waiting = beside.end()?;
            waiting.write_whole(&self.file)?;
            pass_cache(&self.file, false)?;
            (&mut &*self.file).write_all(waiting.bytes())?;
        }
        self.file.sync_all()
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(mut beside) = self.past_cache.take() {
            let count = beside.waiting.add(bytes);
            self.past_cache = Some(if beside.waiting.is_full() { beside.pass()? } else { beside });
            self.length += count as u64;
            return Ok(count);
        }
        // Write through the cache up to an aligned offset.
        let bound = self.cached.max(self.length).next_multiple_of(ALIGNED as u64);
        let until = usize::try_from(bound - self.length).unwrap_or(usize::MAX);
        if until == 0 {
            match pass_cache(&self.file, true) {
                Ok(()) => self.past_cache = Some(WritesBeside::start(&self.file)?),
                Err(_) => self.cached = NEVER,
            }
            return self.write(bytes);
        }
        let count = (&mut &*self.file).write(&bytes[..bytes.len().min(until)])?;
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
        if let Some(beside) = &mut file.past_cache {
            beside.waiting.misalign();
        }
        file.write_all(&all[1..]).unwrap();
        file.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == all);
    }
}
