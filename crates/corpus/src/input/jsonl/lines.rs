//! Splits a stream into lines in bounded memory.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::input::content::{Ending, FoundLine};
use crate::input::open::reader::{Origin, Reader};
use crate::input::place::{Place, Problem};

/// Size of reads from the stream, and minimum size of a buffer, in bytes. It is small in fuzzing, so that short inputs
/// cross buffer boundaries.
pub(crate) const CHUNK: usize = if cfg!(fuzzing) { 128 } else { 256 << 10 };

/// The number of a line, from 1, and the line or the error about it.
pub(crate) type NumberedLine<'l> = (u64, Result<FoundLine<'l>, Problem>);

/// The lines of a stream in JSON Lines format.
pub(crate) struct JsonLines {
    lines: Lines,
    /// Number of lines read so far; also the number of the latest line, from 1.
    number: u64,
}

impl JsonLines {
    /// Creates a reader of the lines of `reader`. Lines may have up to `line_bytes_max` bytes.
    pub(crate) fn new(reader: Reader, line_bytes_max: usize) -> Self {
        Self { lines: Lines::new(reader, line_bytes_max), number: 0 }
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.lines.reader.name()
    }

    /// Returns whether the stream starts with a byte order mark. Must be called before any line is read.
    ///
    /// # Errors
    ///
    /// The stream cannot be read.
    pub(crate) fn is_marked(&mut self) -> Result<bool, Problem> {
        let lines = &mut self.lines;
        while lines.end < 3 && !lines.ended {
            lines.fill()?;
        }
        Ok(lines.buffer[..lines.end].starts_with(b"\xef\xbb\xbf"))
    }

    /// Returns the first byte that is neither space nor part of a byte order mark; `None` if the first bytes of the
    /// stream are all space. Must be called before any line is read.
    ///
    /// # Errors
    ///
    /// The stream cannot be read.
    pub(crate) fn first_byte(&mut self) -> Result<Option<u8>, Problem> {
        loop {
            let bytes = self.unread();
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
            let is_enough = bytes.len() >= CHUNK / 2 || self.lines.ended;
            if let (Some(&first), true) = (text.first(), is_enough || bytes.len() >= 3) {
                return Ok(Some(first));
            }
            if is_enough {
                return Ok(None);
            }
            self.lines.fill()?;
        }
    }

    /// Returns the bytes that were read from the stream and not yet returned.
    pub(super) fn unread(&self) -> &[u8] {
        &self.lines.buffer[self.lines.start..self.lines.end]
    }

    /// Removes bytes from the start of [`unread`](Self::unread).
    pub(super) fn take(&mut self, bytes: usize) {
        self.lines.start += bytes;
        self.lines.searched = self.lines.start;
    }

    /// Reads more bytes. Returns false if the stream has ended.
    pub(super) fn more(&mut self) -> Result<bool, Problem> {
        self.lines.fill()?;
        Ok(!self.lines.ended)
    }

    /// Returns whether reading the next line would block until a pipe has more data.
    pub(crate) fn would_wait(&self) -> bool {
        let lines = &self.lines;
        let there = memchr::memchr(b'\n', &lines.buffer[lines.searched..lines.end]).is_some();
        lines.reader.is_stream() && !there && !lines.ended
    }

    /// Returns the next line that is not blank, or its error, with its number; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// The stream cannot be read to its end.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedLine<'_>>, Problem> {
        while let Some(line) = self.lines.next()? {
            self.number += 1;
            let Line::Whole(range) = line else {
                let reason = format!("a line of more than {} bytes", self.lines.line_bytes_max);
                let place = Place::line(Arc::clone(self.name()), self.number);
                return Ok(Some((self.number, Err(Problem { place, reason }))));
            };
            let mut line = range;
            let mut ending = if self.lines.start > line.end { Ending::Newline } else { Ending::None };
            if self.number == 1 && self.lines.buffer[line.clone()].starts_with(b"\xef\xbb\xbf") {
                line.start += 3;
            }
            if ending == Ending::Newline && self.lines.buffer[line.clone()].ends_with(b"\r") {
                line.end -= 1;
                ending = Ending::Crlf;
            }
            if self.lines.buffer[line.clone()].iter().all(|byte| b" \t\r".contains(byte)) {
                continue;
            }
            let offset = self.lines.reader.plain_bytes().map(|_| self.lines.before + line.start as u64);
            return Ok(Some((self.number, Ok(FoundLine { line: &self.lines.buffer[line], offset, ending }))));
        }
        Ok(None)
    }
}

/// The lines of a stream. The buffer holds at most one line of maximum length and one chunk.
struct Lines {
    reader: Reader,
    /// Number of bytes of the stream before the start of the buffer.
    before: u64,
    /// `buffer[start..end]` was read and not yet returned. `buffer[start..searched]` has no newline.
    buffer: Vec<u8>,
    start: usize,
    searched: usize,
    end: usize,
    ended: bool,
    /// Whether the current line is too long. Its bytes are then discarded up to the next newline.
    discarding: bool,
    line_bytes_max: usize,
}

/// A line, without its newline.
pub(crate) enum Line {
    /// The range of the line in [`Lines::buffer`], valid until the next line is read.
    Whole(Range<usize>),
    TooLong,
}

impl Lines {
    fn new(reader: Reader, line_bytes_max: usize) -> Self {
        let buffer = vec![0; CHUNK];
        Self {
            reader,
            before: 0,
            buffer,
            start: 0,
            searched: 0,
            end: 0,
            ended: false,
            discarding: false,
            line_bytes_max,
        }
    }

    /// Returns the next line without its newline; `None` at the end. The last line may lack a newline.
    fn next(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            let unsearched = &self.buffer[self.searched..self.end];
            let found = memchr::memchr(b'\n', unsearched);
            self.searched += found.map_or(unsearched.len(), |at| at + 1);
            let newline = usize::from(found.is_some());
            let line = self.start..self.searched - newline;
            // guard: a long line is refused
            if line.len() > self.line_bytes_max {
                self.discarding = true;
            }
            if newline == 1 || self.ended {
                self.start = self.searched;
                if std::mem::take(&mut self.discarding) {
                    return Ok(Some(Line::TooLong));
                }
                // If the last line ends with a newline, no empty line follows.
                let is_finished = newline == 0 && line.is_empty();
                return Ok((!is_finished).then_some(Line::Whole(line)));
            }
            if self.discarding {
                self.start = self.searched;
            }
            self.fill()?;
        }
    }

    /// Appends further bytes of the stream to the buffer. Grows the buffer if necessary.
    fn fill(&mut self) -> Result<(), Problem> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.before += self.start as u64;
        self.end -= self.start;
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < CHUNK / 2 {
            // The size is doubled each time, so that a long line is moved only a few times.
            let grown = (2 * self.end).min(self.line_bytes_max.saturating_add(1)).max(self.end) + CHUNK;
            self.buffer.resize(grown, 0);
        } else if self.end < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
            // Frees the memory that a single long line needed.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to_fit();
        }
        let count = self.reader.read_once(&mut self.buffer[self.end..])?;
        self.end += count;
        self.ended = count == 0;
        Ok(())
    }
}

/// Reads the lines of a text table, which may be compressed, with their line numbers. Skips blank lines.
pub struct TableLines(JsonLines);

impl TableLines {
    /// Maximum length of a line in bytes: enough for two keys of maximum length, fully escaped, and some numbers.
    const LINE_BYTES_MAX: usize = 1 << 20;

    /// Opens a table.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or its name indicates a compression that its content does not have.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
        Ok(Self(JsonLines::new(reader, Self::LINE_BYTES_MAX)))
    }

    /// Returns the name of the file for messages.
    #[must_use]
    pub fn name(&self) -> Arc<Path> {
        Arc::clone(self.0.name())
    }

    /// Returns the next line and its number, from 1; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read to its end, or the line is too long.
    pub fn next_line(&mut self) -> anyhow::Result<Option<(u64, &[u8])>> {
        match self.0.next()? {
            None => Ok(None),
            Some((number, found)) => Ok(Some((number, found?.line))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;
    use crate::input::content::Content;
    use crate::input::fields::attached::AttachedFields;
    use crate::input::fields::record::{Fields, Ids};
    use crate::input::jsonl::parse::{LineBuffers, LineError, ParsedObject, parse};
    use crate::input::text::lossy::InvalidUtf8;

    /// A reader that returns its bytes in small pieces. If it has an error, it returns the error after the last byte.
    struct Pieces {
        bytes: Vec<u8>,
        at: usize,
        piece: usize,
        error: Option<io::ErrorKind>,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.piece.min(buffer.len()).min(self.bytes.len() - self.at);
            if count == 0
                && let Some(kind) = self.error
            {
                return Err(kind.into());
            }
            buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
            self.at += count;
            Ok(count)
        }
    }

    fn json_lines(bytes: &[u8], piece: usize, error: Option<io::ErrorKind>, max: usize) -> JsonLines {
        let reader = Box::new(Pieces { bytes: bytes.to_vec(), at: 0, piece, error });
        let origin = Origin::Stream { name: Arc::from(Path::new("in.jsonl")), reader };
        JsonLines::new(Reader::open(origin, &Arc::default()).unwrap(), max)
    }

    /// Returns the key and the text of a line.
    fn parsed(line: &[u8]) -> Result<(Vec<u8>, String), String> {
        let options = AttachedFields::default();
        let fields = Fields::new("id", "text", Ids::Field, false, &options);
        let mut buffers = LineBuffers::default();
        match parse(line, &fields, InvalidUtf8::Error, None, &mut buffers) {
            Ok(ParsedObject { key: Some(key), content: Content::Text(text), .. }) => {
                Ok((key.to_vec(), text.to_owned()))
            }
            Err(LineError::Reason(reason)) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    /// A line with its key and its text.
    type FoundRecord = (Vec<u8>, Vec<u8>, String);

    /// Returns the next record of a stream, or its error.
    fn next(lines: &mut JsonLines) -> Result<Option<Result<FoundRecord, Problem>>, Problem> {
        let name = Arc::clone(lines.name());
        let Some((number, line)) = lines.next()? else { return Ok(None) };
        Ok(Some(line.and_then(|found| match parsed(found.line) {
            Ok((key, text)) => Ok((found.line.to_vec(), key, text)),
            Err(reason) => Err(Problem { place: Place::line(name, number), reason }),
        })))
    }

    /// Returns the result of each line: `key=text`, or the error message.
    fn read_all(bytes: &[u8], piece: usize, max: usize) -> Vec<String> {
        let mut lines = json_lines(bytes, piece, None, max);
        let mut out = Vec::new();
        while let Some(record) = next(&mut lines).unwrap() {
            out.push(match record {
                Ok((_, key, text)) => format!("{}={text}", String::from_utf8(key).unwrap()),
                Err(bad) => bad.to_string(),
            });
        }
        out
    }

    #[test]
    fn lines_do_not_depend_on_read_sizes() {
        let bytes = b"\xef\xbb\xbf{\"id\":1,\"text\":\"a\"}\r\n\n \t\r\n\
            {\"id\":2,\"text\":\"b\"}\nx\n{\"id\":3,\"text\":\"c\"}";
        for piece in 1..bytes.len() {
            let wanted = ["1=a", "2=b", "in.jsonl:5: invalid JSON at column 1: expected value", "3=c"];
            assert_eq!(read_all(bytes, piece, 1000), wanted, "pieces of {piece}");
        }
    }

    #[test]
    fn line_is_returned_verbatim_without_its_newline() {
        let mut lines = json_lines(b"\xef\xbb\xbf {\"id\" : 1,\"text\":\"a\", \"z\":0} \r\n", 7, None, 1000);
        let (line, ..) = next(&mut lines).unwrap().unwrap().unwrap();
        assert_eq!(line, b" {\"id\" : 1,\"text\":\"a\", \"z\":0} ");
    }

    #[test]
    fn line_over_the_limit_is_refused_and_the_next_is_read() {
        let line = |text: &str| format!("{{\"id\":1,\"text\":\"{text}\"}}");
        let fits = line(&"x".repeat(100));
        let over = line(&"x".repeat(101));
        let refused = |number| format!("in.jsonl:{number}: a line of more than {} bytes", fits.len());
        let fitting = format!("1={}", "x".repeat(100));
        for piece in [1, 50, fits.len(), fits.len() + 1, 1000] {
            let bytes = format!("{over}\n{fits}\n{over}");
            let found = read_all(bytes.as_bytes(), piece, fits.len());
            assert_eq!(found, [refused(1), fitting.clone(), refused(3)], "pieces of {piece}");
        }
    }

    #[test]
    fn endless_line_uses_at_most_the_limit_and_one_chunk_of_memory() {
        let max = 3 * CHUNK;
        let mut bytes = vec![b'x'; 20 * CHUNK];
        bytes.extend(b"\n{\"id\":1,\"text\":\"a\"}\n");
        let mut lines = json_lines(&bytes, usize::MAX, None, max);
        assert!(next(&mut lines).unwrap().unwrap().is_err());
        assert!(lines.lines.buffer.capacity() <= max + 2 * CHUNK, "{}", lines.lines.buffer.capacity());
        assert!(next(&mut lines).unwrap().unwrap().is_ok());
    }

    #[test]
    fn memory_of_a_long_line_is_released() {
        let mut bytes = format!("{{\"id\":1,\"text\":\"{}\"}}\n", "x".repeat(20 * CHUNK)).into_bytes();
        bytes.extend(b"{\"id\":2,\"text\":\"a\"}\n".repeat(3 * CHUNK / 20));
        let mut lines = json_lines(&bytes, usize::MAX, None, usize::MAX);
        assert!(next(&mut lines).unwrap().unwrap().is_ok());
        assert!(lines.lines.buffer.len() > 20 * CHUNK);
        while let Some(record) = next(&mut lines).unwrap() {
            record.unwrap();
        }
        assert!(lines.lines.buffer.capacity() <= 4 * CHUNK, "{}", lines.lines.buffer.capacity());
    }

    #[test]
    fn read_error_is_returned_after_the_complete_lines_before_it() {
        let bytes = b"{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\"te";
        let mut lines = json_lines(bytes, 1000, Some(io::ErrorKind::ConnectionReset), 1000);
        assert!(next(&mut lines).unwrap().unwrap().is_ok());
        let error = next(&mut lines).unwrap_err().to_string();
        assert!(error.starts_with("in.jsonl: cannot read on after 31 bytes: "), "{error}");
    }

    #[test]
    fn interrupted_read_is_retried() {
        struct Interrupted(bool);
        impl Read for Interrupted {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    Ok(0)
                } else {
                    Err(io::ErrorKind::Interrupted.into())
                }
            }
        }
        let origin =
            Origin::Stream { name: Arc::from(Path::new("in")), reader: Box::new(Interrupted(false)) };
        let mut lines = JsonLines::new(Reader::open(origin, &Arc::default()).unwrap(), 10);
        assert!(next(&mut lines).unwrap().is_none());
    }
}
