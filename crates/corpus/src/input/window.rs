//! A stream, seen through a window that grows with what is in it, up to a limit.

use std::path::Path;
use std::sync::Arc;

use super::Problem;
use super::open::Reader;

/// How much is asked of the stream at once. In fuzzing so little that short inputs come to its ends.
const CHUNK: usize = if cfg!(fuzzing) { 128 } else { 256 << 10 };

/// Bytes read from a stream and not yet taken.
pub(super) struct Window {
    reader: Reader,
    /// Bytes of the stream before the buffer.
    before: u64,
    /// `buffer[start..end]` is the window.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl Window {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, before: 0, buffer: Vec::new(), start: 0, end: 0, ended: false }
    }

    /// The same, where what is compressed and breaks off ends there, and is no error.
    pub(super) fn up_to_its_break(mut self) -> Self {
        self.reader.read_to_its_break();
        self
    }

    /// Why the stream ended before its end.
    pub(super) fn broke_off(&self) -> Option<&str> {
        self.reader.broke_off()
    }

    /// The name of the stream in messages.
    pub(super) fn name(&self) -> &Arc<Path> {
        self.reader.name()
    }

    /// All that was read and not yet taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The offset of the window in its file, if that is a regular one read without decompression.
    pub(super) fn offset(&self) -> Option<u64> {
        self.reader.plain_bytes().map(|_| self.position())
    }

    /// The offset of the window in the decompressed bytes of the stream.
    pub(super) fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Takes bytes off the front.
    pub(super) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "no more than there is");
        self.start += bytes;
    }

    /// Reads until the window holds this many bytes, or the stream ends; true if it holds them.
    ///
    /// # Errors
    ///
    /// The stream cannot be read on.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<bool, Problem> {
        while self.end - self.start < bytes && self.more()? {}
        Ok(self.end - self.start >= bytes)
    }

    /// Reads on; false if the stream has ended.
    ///
    /// # Errors
    ///
    /// The stream cannot be read on.
    pub(super) fn more(&mut self) -> Result<bool, Problem> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 && self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.before += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            // Doubling, so that a long record is moved a few times only.
            self.buffer.resize(2 * self.end + CHUNK, 0);
        } else if self.end < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
            // One long record must not hold its memory until the last.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to_fit();
        }
        let count = self.reader.read_once(&mut self.buffer[self.end..])?;
        self.end += count;
        self.ended = count == 0;
        Ok(!self.ended)
    }
}
