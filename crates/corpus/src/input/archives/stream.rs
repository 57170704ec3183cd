//! Reads records from the stream of a web archive in bounded memory. Works with any format of record headers.
//!
//! The length in a header is accepted only if the next record begins, or the file ends, right after the record.
//! Otherwise the record is bad, and reading continues at the next line that can begin a record. If a stream ends within
//! a record, all records before that one are read.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use crate::input::content::{Ending, FoundLine};
use crate::input::open::reader::Window;
use crate::input::place::Problem;

/// The operations on records that depend on the archive format.
pub(crate) trait ArchiveFormat {
    /// Reads the record at the start of the stream into the window. Returns its length without, and with, the line ends
    /// after it.
    fn measure(stream: &mut ArchiveStream) -> Result<Result<(usize, usize), BadRecord>, Problem>;

    /// Returns the offset of the first line after the start that can be a record header.
    fn next_record(bytes: &[u8]) -> Option<usize>;

    /// Returns how many bytes cannot belong to a record header: those before an incomplete last line, which may become
    /// one. `bytes` contain no complete header line.
    fn before_open_line(bytes: &[u8]) -> usize;
}

/// A stream, and the number of records read from it.
pub(crate) struct ArchiveStream {
    pub(crate) window: Window,
    /// Number of records found so far; also the number of the latest record, from 1.
    pub(crate) number: u64,
    pub(crate) record_bytes_max: usize,
}

/// The reason why a record is bad, and the number of bytes to skip. The search for the next record starts after them.
pub(crate) struct BadRecord {
    pub(crate) reason: String,
    pub(crate) skip: usize,
    /// Whether the stream ends within the record.
    pub(crate) is_short: bool,
}

/// The records of one stream.
pub(crate) struct ArchiveRecords<F> {
    stream: ArchiveStream,
    /// Whether the window may start in the middle of a record, because the previous record was bad.
    lost: bool,
    /// The reason why the stream ended within a record, if it did.
    cut: Option<String>,
    format: PhantomData<F>,
}

impl<F: ArchiveFormat> ArchiveRecords<F> {
    pub(crate) fn new(window: Window, record_bytes_max: usize) -> Self {
        let stream = ArchiveStream { window: window.up_to_its_break(), number: 0, record_bytes_max };
        Self { stream, lost: false, cut: None, format: PhantomData }
    }

    /// Returns a message with the position at which the stream is truncated; `None` if the stream is complete.
    pub(crate) fn cut(&self) -> Option<String> {
        let why = self.stream.window.broke_off().or(self.cut.as_deref());
        why.map(|why| format!("{}, after {} records: {why}", self.name().display(), self.stream.number))
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.stream.window.name()
    }

    /// Passes the number of the next record and its bytes, or an error, to `take`. Returns false at the end.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn next(
        &mut self,
        take: impl FnOnce(u64, Result<FoundLine<'_>, String>),
    ) -> Result<bool, Problem> {
        if self.lost {
            self.find_next()?;
            self.lost = false;
        }
        loop {
            let bytes = self.stream.window.bytes();
            let ends = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            let more = ends == bytes.len();
            self.stream.window.take(ends);
            if !more {
                break;
            }
            if !self.stream.window.more()? {
                return Ok(false);
            }
        }
        self.stream.number += 1;
        let measured = F::measure(&mut self.stream)?;
        let ArchiveStream { window, number, .. } = &mut self.stream;
        match measured {
            Ok((bytes, with_ends)) => {
                let (line, offset) = (&window.bytes()[..bytes], window.offset());
                take(*number, Ok(FoundLine { line, offset, ending: Ending::default() }));
                window.take(with_ends);
            }
            // guard: the records before a break are read
            Err(BadRecord { reason, is_short, .. }) if is_short => {
                *number -= 1;
                self.cut = Some(reason);
                let rest = window.bytes().len();
                window.take(rest);
                return Ok(false);
            }
            Err(BadRecord { reason, skip, .. }) => {
                take(*number, Err(reason));
                window.take(skip);
                self.lost = true;
            }
        }
        Ok(true)
    }

    /// Skips all bytes before the next line that can be a record header.
    fn find_next(&mut self) -> Result<(), Problem> {
        let window = &mut self.stream.window;
        loop {
            let bytes = window.bytes();
            if let Some(at) = F::next_record(bytes) {
                window.take(at);
                return Ok(());
            }
            let seen = F::before_open_line(bytes);
            window.take(seen);
            if !window.more()? {
                let rest = window.bytes().len();
                window.take(rest);
                return Ok(());
            }
        }
    }
}
