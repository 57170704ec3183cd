//! Records out of the stream of an archive, within bounded memory, whatever their heads are like.
//!
//! A length is believed only if the next record begins, or the file ends, right after it. Otherwise the record is bad, and
//! the reading goes on where the next one can begin. A stream that ends in a record is read up to there.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use super::Problem;
use super::form::Ending;
use super::jsonl::FoundLine;
use super::window::Window;

/// The parts of reading in which archive formats differ.
pub(super) trait ArchiveFormat {
    /// The bytes of the record at the front of the window, without and with the ends of lines after it; the window holds
    /// them.
    fn measure(stream: &mut ArchiveStream) -> Result<Result<(usize, usize), BadRecord>, Problem>;

    /// The start of the next line that can begin a record.
    fn next_record(bytes: &[u8]) -> Option<usize>;

    /// How many of these bytes, which have no such line, are before what may have been read of one.
    fn before_open_line(bytes: &[u8]) -> usize;
}

/// A stream, and how far it was read.
pub(super) struct ArchiveStream {
    pub(super) window: Window,
    /// Records found so far, so the number of the latest.
    pub(super) number: u64,
    pub(super) record_bytes_max: usize,
}

/// The error of a record, and the number of its bytes in which no other record can begin.
pub(super) struct BadRecord {
    pub(super) reason: String,
    pub(super) skip: usize,
    /// Whether the stream ends in it.
    pub(super) is_short: bool,
}

/// The records of one stream.
pub(super) struct ArchiveRecords<F> {
    stream: ArchiveStream,
    /// Whether the window may begin in the middle of something.
    lost: bool,
    /// Why the stream ended in a record.
    cut: Option<String>,
    format: PhantomData<F>,
}

impl<F: ArchiveFormat> ArchiveRecords<F> {
    pub(super) fn new(window: Window, record_bytes_max: usize) -> Self {
        let stream = ArchiveStream { window: window.up_to_its_break(), number: 0, record_bytes_max };
        Self { stream, lost: false, cut: None, format: PhantomData }
    }

    /// The place where the stream was cut off, if it was.
    pub(super) fn cut(&self) -> Option<String> {
        let why = self.stream.window.broke_off().or(self.cut.as_deref());
        why.map(|why| format!("{}, after {} records: {why}", self.name().display(), self.stream.number))
    }

    /// The name of the stream in messages.
    pub(super) fn name(&self) -> &Arc<Path> {
        self.stream.window.name()
    }

    /// Hands the next record with its number to `take`, or what is wrong with it; false at the end.
    ///
    /// # Errors
    ///
    /// The stream cannot be read on.
    pub(super) fn next(
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

    /// Takes all up to the next line that can begin a record.
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
