//! A window on a stream, which grows with its content, up to a limit.

use std::path::Path;
use std::sync::Arc;

use super::Problem;
use super::open::Reader;

/// Size of reads from the stream in bytes. Small in fuzzing, so that short inputs reach the ends of buffers.
const CHUNK: usize = if cfg!(fuzzing) { 128 } else { 256 << 10 };

/// Bytes that are read from a stream and not yet taken.
pub(super) struct Window {
    reader: Reader,
    /// Number of bytes of the stream before the buffer.
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

    /// Returns the window with truncated compressed data treated as the end of the stream, not as an error.
    pub(super) fn up_to_its_break(mut self) -> Self {
        self.reader.read_to_its_break();
        self
    }

    /// Returns why the stream was truncated, if it was.
    pub(super) fn broke_off(&self) -> Option<&str> {
        self.reader.broke_off()
    }

    /// Returns the name of the stream in messages.
    pub(super) fn name(&self) -> &Arc<Path> {
        self.reader.name()
    }

    /// Returns all bytes that are read and not yet taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the offset of the window in its file, if that is a regular file read without decompression.
    pub(super) fn offset(&self) -> Option<u64> {
        self.reader.plain_bytes().map(|_| self.position())
    }

    /// Returns the offset of the window in the decompressed bytes of the stream.
    pub(super) fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Removes bytes from the front.
    pub(super) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "no more than there is");
        self.start += bytes;
    }

    /// Reads until the window has this many bytes, or the stream ends; returns whether it has them.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<bool, Problem> {
        while self.end - self.start < bytes && self.more()? {}
        Ok(self.end - self.start >= bytes)
    }

    /// Reads more bytes; false if the stream has ended.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
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
            // Doubled, so that a long record is moved only a few times.
            self.buffer.resize(2 * self.end + CHUNK, 0);
        } else if self.end < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
            // Frees the memory of a single long record.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to_fit();
        }
        let count = self.reader.read_once(&mut self.buffer[self.end..])?;
        self.end += count;
        self.ended = count == 0;
        Ok(!self.ended)
    }
}
