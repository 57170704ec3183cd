//! Splits a JSON array of records, or records of several lines, in bounded memory.

use std::path::Path;
use std::sync::Arc;

use crate::input::content::{Ending, FoundLine};
use crate::input::jsonl::lines::{CHUNK, JsonLines, NumberedLine};
use crate::input::place::{Place, PlaceUnit, Problem};

/// The elements of a stream that is one JSON array, or objects one after the other.
pub(crate) struct JsonArray {
    lines: JsonLines,
    is_array: bool,
    /// Number of elements read so far; also the number of the latest element, from 1.
    number: u64,
    /// The latest element, as one line.
    element: Vec<u8>,
    is_over: bool,
    element_bytes_max: usize,
}

/// The position in an element.
#[derive(Default)]
struct Scan {
    /// Number of arrays and objects that are not closed.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Whether the last byte was part of an end of a line or of the space after it.
    after_line: bool,
}

impl Scan {
    /// Appends the bytes of an element to `element`. Outside of strings, an end of a line and the space after it become
    /// one space. Returns the number of bytes read, and the byte that ends the element: of an array, a comma or a
    /// bracket after it, and otherwise its last brace.
    fn advance(&mut self, bytes: &[u8], element: &mut Vec<u8>, is_array: bool) -> (usize, Option<u8>) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string && !self.is_escaped {
                let end = memchr::memchr2(b'"', b'\\', &bytes[at..]).map_or(bytes.len(), |end| at + end);
                element.extend_from_slice(&bytes[at..end]);
                let Some(&special) = bytes.get(end) else { return (end, None) };
                element.push(special);
                (self.in_string, self.is_escaped) = (special == b'\\', special == b'\\');
                at = end + 1;
                continue;
            }
            at += 1;
            let after_line = std::mem::take(&mut self.after_line);
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b',' | b']' if self.depth == 0 => return (at, Some(byte)),
                b'}' if !is_array && self.depth == 1 => {
                    element.push(byte);
                    return (at, Some(byte));
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.after_line = after_line || byte == b'\r' || byte == b'\n';
                    if self.after_line && !after_line && !element.is_empty() {
                        element.push(b' ');
                    }
                    if self.after_line || element.is_empty() {
                        continue;
                    }
                }
                _ => {}
            }
            element.push(byte);
        }
        (at, None)
    }
}

/// Returns whether the object at the start of `text` goes on after its first line, as in JSON printed for people;
/// `None` if that depends on further bytes. A line that breaks off before another object is a damaged one instead.
fn goes_on(text: &[u8]) -> Option<bool> {
    let end = memchr::memchr(b'\n', text)?;
    let mut scan = Scan::default();
    scan.advance(&text[..end], &mut Vec::new(), true);
    if scan.in_string || scan.depth == 0 {
        return Some(false);
    }
    let next = text[end..].trim_ascii_start().first()?;
    Some(scan.depth > 1 || *next != b'{')
}

/// Returns whether a stream begins with an object of several lines. Must be called before any line is read.
///
/// # Errors
///
/// The stream cannot be read.
pub(crate) fn begins_with_long_object(lines: &mut JsonLines) -> Result<bool, Problem> {
    loop {
        let bytes = lines.unread();
        let bytes = &bytes[..bytes.len().min(CHUNK / 2)];
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        if let Some(goes_on) = goes_on(text) {
            return Ok(goes_on && text.starts_with(b"{"));
        }
        if bytes.len() == CHUNK / 2 || !lines.more()? {
            return Ok(false);
        }
    }
}

impl JsonArray {
    /// Creates a reader of the elements of an array, before whose bracket nothing was read. Elements may have up to
    /// `element_bytes_max` bytes.
    pub(crate) fn new(mut lines: JsonLines, element_bytes_max: usize) -> Self {
        let bracket = memchr::memchr(b'[', lines.unread());
        lines.take(bracket.map_or(0, |at| at + 1));
        Self { lines, is_array: true, number: 0, element: Vec::new(), is_over: false, element_bytes_max }
    }

    /// Creates a reader of objects one after the other. Nothing of them may have been read.
    pub(crate) fn of_objects(mut lines: JsonLines, element_bytes_max: usize) -> Self {
        lines.take(memchr::memchr(b'{', lines.unread()).unwrap_or(0));
        Self { lines, is_array: false, number: 0, element: Vec::new(), is_over: false, element_bytes_max }
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.lines.name()
    }

    /// Returns the next element, or its error, with its number; `None` at the end of the array.
    ///
    /// # Errors
    ///
    /// The stream cannot be read to its end, or is not one array or whole objects.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedLine<'_>>, Problem> {
        if self.is_over {
            return Ok(None);
        }
        self.element.clear();
        if self.element.capacity() > 4 * CHUNK {
            // Frees the memory that a single long element needed.
            self.element.shrink_to(CHUNK);
        }
        let (mut scan, mut is_long) = (Scan::default(), false);
        let end = loop {
            let (read, end) = scan.advance(self.lines.unread(), &mut self.element, self.is_array);
            self.lines.take(read);
            // guard: a long element of an array is refused
            if self.element.len() > self.element_bytes_max {
                is_long = true;
                self.element.clear();
            }
            if let Some(end) = end {
                break end;
            }
            if !self.lines.more()? {
                if !self.is_array && self.element.is_empty() && !is_long {
                    return Ok(None);
                }
                let reason = if self.is_array {
                    format!("its array does not end after record {}", self.number)
                } else {
                    format!("its object {} does not end", self.number + 1)
                };
                return Err(self.problem(format!("truncated: {reason}; copy the file again")));
            }
        };
        self.is_over = self.is_array && end == b']';
        if self.is_over {
            self.check_end()?;
        }
        let element = self.element.trim_ascii_end();
        if self.is_over && self.number == 0 && element.is_empty() && !is_long {
            return Ok(None);
        }
        self.number += 1;
        let expected = "where an object is expected: write each record as {\"id\": ..., \"text\": ...}";
        let reason = match element.first() {
            _ if is_long => format!("a record of more than {} bytes", self.element_bytes_max),
            Some(b'{') => {
                let line = FoundLine { line: element, offset: None, ending: Ending::default() };
                return Ok(Some((self.number, Ok(line))));
            }
            Some(b'[') => format!("an array, {expected}"),
            Some(b'"') => format!("a string, {expected}"),
            Some(_) => format!("a value that is no object, {expected}"),
            None => format!("nothing, {expected}"),
        };
        let place = Place::of(Arc::clone(self.name()), self.number, PlaceUnit::Record);
        Ok(Some((self.number, Err(Problem { place, reason }))))
    }

    /// Returns an error if the array is followed by anything but space.
    fn check_end(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.lines.unread();
            if !rest.trim_ascii_start().is_empty() {
                let reason = "its array is followed by more: one array is expected, or JSON lines";
                return Err(self.problem(reason.to_owned()));
            }
            self.lines.take(self.lines.unread().len());
            if !self.lines.more()? {
                return Ok(());
            }
        }
    }

    fn problem(&self, reason: String) -> Problem {
        Problem { place: Place::file(Arc::clone(self.name())), reason }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::input::open::reader::{Origin, Reader};

    /// A reader that returns its bytes in small pieces.
    struct Pieces(Vec<u8>, usize);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    /// Returns the elements of an array that is read in pieces of `piece` bytes, or their errors.
    fn elements(array: &str, piece: usize, max: usize) -> Vec<String> {
        let name = Arc::from(Path::new("in.json"));
        let reader = Box::new(Pieces(array.as_bytes().to_vec(), piece));
        let reader = Reader::open(Origin::Stream { name, reader }, &Arc::default()).unwrap();
        let mut lines = JsonLines::new(reader, max);
        assert_eq!(lines.first_byte().unwrap(), Some(b'['));
        let mut array = JsonArray::new(lines, max);
        let mut found = Vec::new();
        loop {
            match array.next() {
                Ok(None) => return found,
                Ok(Some((_, Ok(FoundLine { line, .. })))) => {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                }
                Ok(Some((number, Err(problem)))) => found.push(format!("{number}: {problem}")),
                Err(problem) => {
                    found.push(problem.to_string());
                    return found;
                }
            }
        }
    }

    #[test]
    fn elements_are_the_same_in_pieces_of_any_size() {
        let array = "\u{feff} \n[{\"a\" : \"[,]} \\\" \\\\\"} ,\r\n  {\n    \"b\": [1,\n\t{}],\n    \"c\": 2\n  }\n,{}\n]\n ";
        let wanted = ["{\"a\" : \"[,]} \\\" \\\\\"}", "{ \"b\": [1, {}], \"c\": 2 }", "{}"];
        for piece in 1..array.len() {
            assert_eq!(elements(array, piece, 100), wanted, "pieces of {piece}");
        }
    }

    #[test]
    fn invalid_json_does_not_become_valid() {
        // A raw newline in a string, two numbers without a comma, and two objects without one.
        for (element, wanted) in [
            ("{\"a\":\"b\nc\"}", "{\"a\":\"b\nc\"}"),
            ("{\"a\":1\n2}", "{\"a\":1 2}"),
            ("{} {}", "{} {}"),
            ("{\"a\":1}}", "{\"a\":1}}"),
        ] {
            let [found] = elements(&format!("[{element}]"), 3, 100).try_into().unwrap();
            assert_eq!(found, wanted);
            assert!(serde_json::from_str::<serde_json::Value>(&found).is_err(), "{found}");
        }
    }

    #[test]
    fn arrays_of_something_else_and_broken_arrays_are_errors() {
        let expected = "where an object is expected: write each record as {\"id\": ..., \"text\": ...}";
        let bad = |kind: &str| format!("1: in.json, record 1: {kind}, {expected}");
        assert_eq!(elements("[\"a\"]", 9, 100), [bad("a string")]);
        assert_eq!(elements("[[1, 2]]", 9, 100), [bad("an array")]);
        assert_eq!(elements("[null]", 9, 100), [bad("a value that is no object")]);
        assert_eq!(elements("[,{}]", 9, 100), [bad("nothing"), "{}".to_owned()]);
        assert_eq!(elements("[ \n]", 9, 100), [""; 0]);
        let truncated = "in.json: truncated: its array does not end after record 1; copy the file again";
        assert_eq!(elements("[{},{\"a", 9, 100), ["{}", truncated]);
        let more = "in.json: its array is followed by more: one array is expected, or JSON lines";
        assert_eq!(elements("[{}]\n[{}]", 3, 100), [more]);
    }

    #[test]
    fn long_element_is_refused_and_the_next_is_read() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(10 * CHUNK));
        let found = elements(&format!("[{{}},{long},{{}}]"), usize::MAX, 3 * CHUNK);
        let reason = format!("2: in.json, record 2: a record of more than {} bytes", 3 * CHUNK);
        assert_eq!(found, ["{}", &reason, "{}"]);
    }
}
