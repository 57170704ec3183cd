//! A window on a stream: a buffer that grows up to a limit to contain the current record.

use std::path::Path;
use std::sync::Arc;

use crate::input::open::reader::Reader;
use crate::input::place::Problem;

/// Read size in bytes. It is small in fuzzing, so that short inputs cross buffer boundaries.
const CHUNK: usize = if cfg!(fuzzing) { 128 } else { 256 << 10 };

/// Bytes of a stream that were read and not yet removed.
pub(crate) struct Window {
    reader: Reader,
    /// Number of bytes of the stream before the start of the buffer.
    before: u64,
    /// `buffer[start..end]` is the window.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl Window {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, before: 0, buffer: Vec::new(), start: 0, end: 0, ended: false }
    }

    /// Makes the window treat truncated compressed data as the end of the stream, not as an error.
    pub(crate) fn up_to_its_break(mut self) -> Self {
        self.reader.read_to_its_break();
        self
    }

    /// Returns the reason why the stream was truncated; `None` if it was not.
    pub(crate) fn broke_off(&self) -> Option<&str> {
        self.reader.broke_off()
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.reader.name()
    }

    /// Returns the bytes in the window.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the offset of the window in its file; `None` unless the file is a regular file that is read without
    /// decompression.
    pub(crate) fn offset(&self) -> Option<u64> {
        self.reader.plain_bytes().map(|_| self.position())
    }

    /// Returns the offset of the window in the decompressed stream.
    pub(crate) fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Removes bytes from the start of the window.
    pub(crate) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "no more than there is");
        self.start += bytes;
    }

    /// Reads until the window has at least this number of bytes, or the stream ends. Returns whether the window has
    /// them.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<bool, Problem> {
        while self.end - self.start < bytes && self.more()? {}
        Ok(self.end - self.start >= bytes)
    }

    /// Reads more bytes. Returns false if the stream has ended.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn more(&mut self) -> Result<bool, Problem> {
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
            // The size is doubled, so that a long record is moved only a few times.
            self.buffer.resize(2 * self.end + CHUNK, 0);
        } else if self.end < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
            // Frees the memory that a single long record needed.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to_fit();
        }
        let count = self.reader.read_once(&mut self.buffer[self.end..])?;
        self.end += count;
        self.ended = count == 0;
        Ok(!self.ended)
    }
}
