//! CSV and TSV tables (RFC 4180: quoted fields may contain the delimiter, newlines, and doubled quotes): reads rows
//! from a stream in bounded memory, and parses the key and the text of a row.
//!
//! The first row has the column names. The reader finds the end of each row with `csv-core`; another thread splits the
//! row into fields. If a row of several lines is bad, only its first line is skipped, so that an unbalanced quote does
//! not discard the valid rows after it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use csv_core::{ReadRecordResult, Reader};

use crate::input::content::{Ending, FoundLine};
use crate::input::fields::attached::{HasField, OwnAttached};
use crate::input::fields::names::{FieldPath, Selection, push_key, push_text};
use crate::input::fields::number::FieldValue;
use crate::input::fields::record::{self, Ids};
use crate::input::open::reader::Window;
use crate::input::place::{Place, Problem, not_utf8};
use crate::input::tables::dialect::{Dialect, RowDialect};
use crate::input::text::charset::{self, Charset};
use crate::input::text::cuts::part_without;

/// Maximum length of the header in bytes.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Maximum number of columns.
const COLUMNS_MAX: usize = 1 << 16;
/// Sizes of the buffers to which the reader writes fields and their ends. The content of the buffers is not used.
const FIELD_BYTES: usize = if cfg!(fuzzing) { 50 } else { 64 << 10 };
const FIELD_ENDS: usize = if cfg!(fuzzing) { 3 } else { 1 << 10 };
/// Maximum number of bytes of bad rows that are read again, as a multiple of the table's size. A table that has only
/// bad rows is read about this number of times.
const READ_AGAIN: u64 = 16;
/// Delimiters that the error about a missing column suggests, if the column is found with them.
const OTHER_DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The header of a table, with the positions of its columns.
#[derive(Clone, Debug)]
pub struct TableHeader {
    /// The lines before the first row, without the last line end: a line `sep=`, if any, and the column names. `None`
    /// if the table has no column names.
    pub line: Option<Vec<u8>>,
    /// Whether a byte order mark precedes the header.
    pub is_marked: bool,
    /// The line ending of the header.
    pub ending: Ending,
    written: RowDialect,
    /// The row of column names in UTF-8; empty if the table has none.
    names: Vec<u8>,
    columns: usize,
    /// The columns of the key; empty if keys are created from line numbers.
    id: Vec<usize>,
    text: Vec<usize>,
    value: Option<usize>,
    stamp: Option<usize>,
    /// The column of each rule that determines the order of documents.
    numbers: Vec<Option<usize>>,
    inside: Option<usize>,
    url: Option<usize>,
}

impl TableHeader {
    pub(crate) fn written(&self) -> RowDialect {
        self.written
    }

    /// Returns the file name suffix of tables with this header.
    pub fn suffix(&self) -> &'static str {
        if self.written.is_tsv { "tsv" } else { "csv" }
    }

    /// Returns whether rows can be written below either header. Ignores byte order marks and line ends.
    pub(crate) fn is_equal_header(&self, other: &Self) -> bool {
        let said = |header: &Self| {
            let Self { id, value, stamp, numbers, inside, url, columns, .. } = header;
            (id.clone(), *value, *stamp, numbers.clone(), *inside, *url, *columns)
        };
        (&self.line, self.written, &self.text) == (&other.line, other.written, &other.text)
            && said(self) == said(other)
    }

    /// Returns the header of an empty table, which has no column names.
    fn of_no_rows(written: RowDialect) -> Self {
        Self {
            line: None,
            is_marked: false,
            ending: Ending::None,
            written,
            names: Vec::new(),
            columns: 0,
            id: Vec::new(),
            text: Vec::new(),
            value: None,
            stamp: None,
            numbers: Vec::new(),
            inside: None,
            url: None,
        }
    }

    fn parse(
        line: &[u8],
        written: RowDialect,
        charset: Option<Charset>,
        fields: &record::Fields,
    ) -> Result<Self, String> {
        let decoded = charset::line(line, charset).text;
        let mut names = RowFields::default();
        names.parse(decoded.as_bytes(), written);
        let all: Vec<String> = if written.has_header {
            (0..names.ends.len()).map(|at| String::from_utf8_lossy(names.field(at)).into_owned()).collect()
        } else {
            (1..=names.ends.len()).map(|number| number.to_string()).collect()
        };
        all.iter().try_for_each(|name| fields.check_name(name))?;
        let find = |part: &FieldPath, options: &str| {
            let is_there = |name: &&str| all.iter().any(|column| column == name);
            let wanted = part.flat_names().find(is_there).unwrap_or(&part.name);
            let mut found = all.iter().enumerate().filter(|(_, name)| *name == wanted);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => Ok(at),
                (Some(_), Some(_)) => Err(format!("two columns have the name {wanted:?}")),
                (None, _) if !written.has_header => Err(format!(
                    "no column {wanted:?}; without a header they are 1 to {}; see {options}",
                    all.len()
                )),
                (None, _) => Err(format!(
                    "no column {wanted:?} in its first row, which names {}, with {:?} between them{}; see {options}",
                    crate::input::place::listed(all.iter().map(String::as_str)),
                    char::from(written.delimiter),
                    hint(line, wanted, written),
                )),
            }
        };
        let both = "--id-field and --text-field";
        let select = |name: &str, selection: Option<&Selection>| match selection {
            Some(selection) if !all.iter().any(|column| column == name) => {
                selection.parts.iter().map(|part| find(part, both)).collect()
            }
            _ => find(&FieldPath::of(name), both).map(|at| vec![at]),
        };
        let named = fields.named.as_deref();
        let id = match fields.ids {
            Ids::Line => Vec::new(),
            Ids::FieldOrLine if !all.contains(&fields.id) => Vec::new(),
            Ids::Field | Ids::FieldOrLine => select(&fields.id, named.map(|named| &named.id))?,
        };
        let text = select(&fields.text, named.map(|named| &named.text))?;
        let of = |name: Option<&str>, option| name.map(|name| find(&FieldPath::of(name), option)).transpose();
        let value = of(fields.attached.value.as_deref(), "--value-field")?;
        let stamp = of(fields.attached.stamp.as_deref(), "--stamp-field")?;
        let deciding = &fields.attached.deciding;
        let numbers = deciding.names().map(|name| of(name, deciding.number_option()));
        let numbers = numbers.collect::<Result<_, _>>()?;
        let inside = of(deciding.inside.as_deref(), "--inside")?;
        let url = of(deciding.url.as_deref(), "--url-field")?;
        let line = written.has_header.then(|| line.to_vec());
        let names = if written.has_header { decoded.as_bytes().to_vec() } else { Vec::new() };
        let columns = all.len();
        let of_no_rows = Self::of_no_rows(written);
        Ok(Self { line, names, columns, id, text, value, stamp, numbers, inside, url, ..of_no_rows })
    }

    /// Returns the key and the text of a row.
    pub(crate) fn pick<'f>(
        &self,
        line: &[u8],
        fields: &'f mut RowFields,
    ) -> Result<(Option<&'f [u8]>, &'f [u8]), String> {
        fields.parse(line, self.written);
        if fields.ends.len() != self.columns {
            return Err(self.width(fields.ends.len()));
        }
        if self.is_header_again(line) {
            return Err("the names of the columns again, as where tables were joined: remove this row".into());
        }
        // The joined values of several columns are appended to the bytes of the fields.
        let mut join = |columns: &[usize], push: fn(&mut Vec<u8>, &[u8], usize)| {
            let start = fields.bytes.len();
            if columns.len() > 1 {
                for (number, &at) in columns.iter().enumerate() {
                    let part = fields.field(at).to_vec();
                    push(&mut fields.bytes, &part, number);
                }
            }
            start..fields.bytes.len()
        };
        let (key, text) = (join(&self.id, push_key), join(&self.text, push_text));
        let fields = &*fields;
        let of = |columns: &[usize], joined: Range<usize>| match *columns {
            [] => None,
            [at] => Some(fields.field(at)),
            _ => Some(&fields.bytes[joined]),
        };
        Ok((of(&self.id, key), of(&self.text, text).unwrap_or_default()))
    }

    /// Removes these byte ranges of the text from a row. Returns the new row and the new text. The values of all other
    /// fields are unchanged.
    pub(crate) fn line_without(
        &self,
        line: &[u8],
        cut: &[Range<usize>],
    ) -> anyhow::Result<(Vec<u8>, String)> {
        let mut fields = RowFields::default();
        fields.parse(line, self.written);
        let mut values: Vec<Vec<u8>> = (0..fields.ends.len()).map(|at| fields.field(at).to_vec()).collect();
        let (mut left, mut start) = (Vec::new(), 0);
        for (number, &at) in self.text.iter().enumerate() {
            start += usize::from(number > 0);
            let value = values.get_mut(at).context("a row of another width")?;
            let part = std::str::from_utf8(value)?;
            let place = start..start + part.len();
            let kept = part_without(part, &place, cut);
            push_text(&mut left, kept.as_bytes(), number);
            start = place.end;
            *value = kept.into_bytes();
        }
        let raw = self.written.raw_fields(line).0;
        anyhow::ensure!(raw.len() == values.len(), "its fields are not found as they were read");
        let mut out = Vec::with_capacity(line.len());
        for (at, (value, raw)) in values.iter().zip(raw).enumerate() {
            if at > 0 {
                out.push(self.written.delimiter);
            }
            if *value == fields.field(at) {
                out.extend_from_slice(&line[raw]); // what is not cut keeps its bytes
            } else if let (Some(quote), true, 1) = (self.written.quote, value.is_empty(), values.len()) {
                out.extend_from_slice(&[quote, quote]); // a row with one empty field would be a blank line
            } else {
                self.written.push_field(&mut out, value).map_err(anyhow::Error::msg)?;
            }
        }
        let mut again = RowFields::default();
        again.parse(&out, self.written);
        let same =
            again.ends.len() == values.len() && (0..values.len()).all(|at| again.field(at) == values[at]);
        anyhow::ensure!(same, "cannot be written in its own form: a field would be read as another value");
        Ok((out, String::from_utf8(left)?))
    }
}

/// Returns a hint for the error about a missing column, if the column is found with another delimiter.
fn hint(line: &[u8], wanted: &str, written: RowDialect) -> String {
    let names = |delimiter: &u8| {
        let mut names = RowFields::default();
        names.parse(line, RowDialect { delimiter: *delimiter, ..written });
        (0..names.ends.len()).any(|at| names.field(at) == wanted.as_bytes())
    };
    let other =
        OTHER_DELIMITERS.iter().find(|delimiter| **delimiter != written.delimiter && names(delimiter));
    other.map_or_else(String::new, |&other| {
        let dialect = Dialect { delimiter: Some(other), ..Dialect::default() };
        format!(" (--dialect '{dialect}' finds it)")
    })
}

impl TableHeader {
    /// Returns whether a row repeats the names of two or more columns. A name alone can be a text.
    fn is_header_again(&self, line: &[u8]) -> bool {
        self.columns > 1 && line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) == self.names
    }

    /// Returns the error message for a row with a wrong number of fields.
    fn width(&self, fields: usize) -> String {
        let row = if self.written.has_header { "the first row names" } else { "the first row has" };
        let advice = match self.written.quote {
            Some(_) if fields > self.columns => {
                format!("; quote fields that hold {:?}", char::from(self.written.delimiter))
            }
            _ => String::new(),
        };
        format!("{fields} fields, where {row} {}{advice}", self.columns)
    }

    /// Returns the requested values of a row, except key and text.
    ///
    /// # Errors
    ///
    /// The stamp is missing or invalid.
    pub(crate) fn attached(&self, line: &[u8], fields: &record::Fields) -> anyhow::Result<OwnAttached> {
        let mut row = RowFields::default();
        row.parse(line, self.written);
        anyhow::ensure!(row.ends.len() == self.columns, "another number of fields than the first row");
        let value = self.value.map(|at| row.field(at).to_vec());
        let field = |at: Option<usize>| at.map(|at| row.field(at));
        let number = |at: Option<usize>| field(at).map(FieldValue::of_bytes);
        let own = fields.attached.take(value, number(self.stamp))?;
        let deciding = &fields.attached.deciding;
        let numbers: Vec<_> = self.numbers.iter().map(|&at| number(at)).collect();
        let deciding = deciding.of_text(&numbers, field(self.inside), field(self.url))?;
        let has = HasField { url: self.url.is_some(), ..own.has };
        Ok(OwnAttached { deciding, has, ..own })
    }
}

/// The parsed fields of a row, without quotes. Reused for all rows.
#[derive(Debug, Default)]
pub(crate) struct RowFields {
    /// The reader for the dialect. It is reused, because creating a reader takes longer than reading a row.
    reader: Option<(RowDialect, Box<Reader>)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowFields {
    fn parse(&mut self, line: &[u8], written: RowDialect) {
        let delimiter = written.delimiter;
        if let Some(escape) = written.bare_escape() {
            self.bytes.clear();
            self.ends.clear();
            for raw in written.raw_fields(line).0 {
                RowDialect::unescape(&line[raw], escape, &mut self.bytes);
                self.ends.push(self.bytes.len());
            }
            return;
        }
        let reader = match &mut self.reader {
            Some((of, reader)) if *of == written => reader,
            other => &mut other.insert((written, Box::new(written.reader()))).1,
        };
        reader.reset();
        // A parsed field is at most as long as its bytes in the row. With one more byte, the buffer is never full.
        self.bytes.resize(line.len() + 1, 0);
        self.ends.resize(memchr::memchr_iter(delimiter, line).count() + 2, 0);
        // Passes a line end to the reader before the row, because the reader removes a byte order mark from its first
        // input. A mark in the row belongs to its first field.
        // guard: a byte order mark is dropped before the first row alone
        reader.read_record(b"\n", &mut self.bytes, &mut self.ends);
        let (mut read, mut written, mut ended) = (0, 0, 0);
        loop {
            let (result, input, output, ends) =
                reader.read_record(&line[read..], &mut self.bytes[written..], &mut self.ends[ended..]);
            (read, written, ended) = (read + input, written + output, ended + ends);
            if matches!(result, ReadRecordResult::Record | ReadRecordResult::End) {
                break;
            }
            debug_assert_eq!(result, ReadRecordResult::InputEmpty, "both buffers are long enough");
        }
        self.ends.truncate(ended);
    }

    fn field(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }
}

/// The rows of a stream.
pub(crate) struct TableRows {
    window: Window,
    reader: Reader,
    written: RowDialect,
    /// Number of fields that each row must have; 0 if not yet known.
    columns: usize,
    /// Number of bytes of bad rows that were read again.
    read_again: u64,
    row_bytes_max: usize,
    /// Buffers to which the reader writes. Their content is not used.
    fields: Vec<u8>,
    ends: Vec<usize>,
}

/// The extent of a row in the window.
struct Row {
    /// Number of bytes from the start of the window to the start of the next row.
    taken: usize,
    /// Number of the first line of the row, from 1.
    line: u64,
    /// The reason why the row is bad, if it is.
    problem: Option<String>,
}

impl TableRows {
    /// Opens a table and reads its header. A first line `sep=` sets the delimiter, unless `is_given`.
    ///
    /// # Errors
    ///
    /// The stream cannot be read, or the header lacks a required column.
    pub(crate) fn open(
        window: Window,
        mut written: RowDialect,
        is_given: bool,
        charset: Option<Charset>,
        fields: &record::Fields,
        row_bytes_max: usize,
    ) -> Result<(Self, TableHeader), Problem> {
        let mut rows = Self {
            window,
            reader: written.reader(),
            written,
            columns: 0,
            read_again: 0,
            row_bytes_max: HEADER_BYTES_MAX,
            fields: vec![0; FIELD_BYTES],
            ends: vec![0; FIELD_ENDS],
        };
        rows.window.hold(3 + SEP_BYTES)?;
        let is_marked = rows.window.bytes().starts_with(b"\xef\xbb\xbf");
        if is_marked {
            rows.window.take(3);
        }
        if let Some(wide) = charset::marked_wide(rows.window.bytes()) {
            let place = Place::file(Arc::clone(rows.name()));
            return Err(Problem { place, reason: not_utf8(wide) });
        }
        let mut before = Vec::new();
        if !is_given && let Some((delimiter, bytes)) = sep(rows.window.bytes()) {
            before.extend_from_slice(&rows.window.bytes()[..bytes]);
            rows.window.take(bytes);
            written.delimiter = delimiter;
            (rows.reader, rows.written) = (written.reader(), written);
            rows.start_at(2);
        }
        let of_file = |rows: &Self, reason| Problem { place: Place::file(Arc::clone(rows.name())), reason };
        let Some(row) = rows.find()? else {
            if !written.has_header {
                let header = TableHeader { is_marked, ..TableHeader::of_no_rows(written) };
                return Ok((rows, header));
            }
            return Err(of_file(
                &rows,
                "empty, where a first row with the names of its columns is needed".into(),
            ));
        };
        if let Some(reason) = row.problem {
            return Err(of_file(&rows, format!("its first row: {reason}")));
        }
        let ending = rows.ending(row.taken)?;
        let line = trimmed(&rows.window.bytes()[..row.taken], written).0;
        let mut header =
            TableHeader::parse(line, written, charset, fields).map_err(|reason| of_file(&rows, reason))?;
        (header.is_marked, header.ending) = (is_marked, ending);
        if let (Some(line), false) = (&mut header.line, before.is_empty()) {
            *line = [before, line.clone()].concat();
        }
        if written.has_header {
            rows.window.take(row.taken);
        } else {
            rows.start_at(1);
        }
        (rows.row_bytes_max, rows.columns) = (row_bytes_max, header.columns);
        Ok((rows, header))
    }

    /// Resets the reader: a row starts at the start of the window, on line `line`.
    fn start_at(&mut self, line: u64) {
        self.reader.reset();
        // Passes a line end to the reader first, for the reason given in `RowFields::parse`.
        self.reader.read_record(b"\n", &mut self.fields, &mut self.ends);
        self.reader.set_line(line);
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.window.name()
    }

    /// Passes the next row, or its error, to `take`, with the number of the row's first line. Skips blank lines.
    /// Returns false at the end of the stream.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn next(
        &mut self,
        take: impl FnOnce(u64, Result<FoundLine<'_>, String>),
    ) -> Result<bool, Problem> {
        let Some(row) = self.find()? else { return Ok(false) };
        if let Some(reason) = row.problem {
            take(row.line, Err(reason));
        } else {
            let ending = self.ending(row.taken)?;
            let (line, before) = trimmed(&self.window.bytes()[..row.taken], self.written);
            let offset = self.window.offset().map(|offset| offset + before as u64);
            take(row.line, Ok(FoundLine { line, offset, ending }));
        }
        self.window.take(row.taken);
        Ok(true)
    }

    /// Finds the end of the next row; `None` at the end of the stream.
    fn find(&mut self) -> Result<Option<Row>, Problem> {
        let (mut taken, mut columns, mut discarded) = (0, 0, false);
        let mut line = self.reader.line();
        let mut begun = false;
        loop {
            // Stops at the limit, so that the detection of long rows is independent of read sizes.
            let limit = self.row_bytes_max.saturating_add(1);
            // guard: a long row is refused
            if taken == limit {
                if !begun {
                    // Discards blank lines, because they are not rows.
                    self.window.take(taken);
                    taken = 0;
                    continue;
                }
                if !discarded && let Some(row) = self.first_line(taken, line, &self.too_long()) {
                    return Ok(Some(row));
                }
                if !discarded && lines(&self.window.bytes()[..taken], self.written) == 1 {
                    return self.rest_of_line(taken, line).map(Some);
                }
                // A row that exceeds the limit is read to its end and discarded.
                self.window.take(taken);
                (taken, discarded) = (0, true);
            }
            if taken == self.window.bytes().len() {
                self.window.more()?;
            }
            let end = self.window.bytes().len().min(limit);
            let input = &self.window.bytes()[taken..end];
            if !begun {
                // Counts line ends before the row: the rest of the line end of the previous row, and blank lines.
                let ends = input.iter().take_while(|byte| b"\r\n".contains(byte)).count();
                line = self.reader.line() + memchr::memchr_iter(b'\n', &input[..ends]).count() as u64;
                begun = ends < input.len();
            }
            let (result, read, _, ended) = self.reader.read_record(input, &mut self.fields, &mut self.ends);
            let at_end = input.is_empty();
            taken += read;
            columns += ended;
            match result {
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::Record => {
                    let row = &self.window.bytes()[..taken];
                    // A row whose line end is escaped goes on.
                    let unended = row.strip_suffix(b"\n").unwrap_or(row);
                    if !at_end
                        && self.written.bare_escape().is_some_and(|escape| escapes_next(unended, escape))
                    {
                        continue;
                    }
                    // The reader takes only single newlines for blank lines here.
                    if !discarded
                        && self.written.bare_escape().is_some()
                        && trimmed(row, self.written).0.is_empty()
                    {
                        self.window.take(taken);
                        (taken, columns, begun, line) = (0, 0, false, self.reader.line());
                        continue;
                    }
                    // guard: a long row is refused
                    let problem = if discarded || taken > self.row_bytes_max {
                        Some(self.too_long())
                    } else if columns > COLUMNS_MAX {
                        Some(format!("more than {COLUMNS_MAX} fields"))
                        // guard: a quote that is not closed is reported
                    } else if at_end && self.written.raw_fields(trimmed(row, self.written).0).1 {
                        Some("a quote that opens a field is not closed: close it, or double it".to_owned())
                    } else if self.written.quote.is_some()
                        && self.columns > 0
                        && columns != self.columns
                        && lines(row, self.written) > 1
                    {
                        Some(format!("{columns} fields, where there should be {}", self.columns))
                    } else {
                        None
                    };
                    // If a row was discarded, its first line is no longer in memory.
                    let again = problem.as_deref().filter(|_| !discarded);
                    let again = again.and_then(|problem| self.first_line(taken, line, problem));
                    return Ok(Some(again.unwrap_or(Row { taken, line, problem })));
                }
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
            }
        }
    }

    /// Returns the line ending of a row of `taken` bytes. A single carriage return is a line end, too.
    fn ending(&mut self, taken: usize) -> Result<Ending, Problem> {
        if self.written.bare_escape().is_some() {
            let row = &self.window.bytes()[..taken];
            let (line, before) = trimmed(row, self.written);
            return Ok(match row.len() - before - line.len() {
                0 => Ending::None,
                1 => Ending::Newline,
                _ => Ending::Crlf,
            });
        }
        Ok(match self.window.bytes()[..taken].last().copied() {
            // The reader treats this newline as the start of the next row.
            Some(b'\r') if self.window.hold(taken + 1)? && self.window.bytes()[taken] == b'\n' => {
                Ending::Crlf
            }
            Some(b'\r' | b'\n') => Ending::Newline,
            _ => Ending::None,
        })
    }

    /// Handles a row whose first line is too long. Skips only that line, so that the next line is parsed as a row.
    fn rest_of_line(&mut self, mut taken: usize, line: u64) -> Result<Row, Problem> {
        let problem = Some(self.too_long());
        loop {
            let rest = &self.window.bytes()[taken..];
            if let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
                let next = line + u64::from(rest[at] == b'\n');
                taken += at + 1;
                self.start_at(next);
                return Ok(Row { taken, line, problem });
            }
            let seen = self.window.bytes().len();
            self.window.take(seen);
            taken = 0;
            if !self.window.more()? {
                self.start_at(line);
                return Ok(Row { taken, line, problem });
            }
        }
    }

    fn too_long(&self) -> String {
        format!("a row of more than {} bytes", self.row_bytes_max)
    }

    /// Returns the first line of a bad row of several lines as the bad row, so that the next line is parsed as a row.
    /// Returns `None` if the row has one line, or if too many bytes were already read again.
    fn first_line(&mut self, taken: usize, line: u64, problem: &str) -> Option<Row> {
        let row = &self.window.bytes()[..taken];
        let before = row.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let end = before + memchr::memchr(b'\n', &row[before..])? + 1;
        let (covered, read_again) = (lines(row, self.written), self.read_again + (taken - end) as u64);
        if covered < 2 || read_again > READ_AGAIN * (self.window.position() + taken as u64) {
            return None;
        }
        self.read_again = read_again;
        self.start_at(line + 1);
        let problem =
            format!("{problem}; a quote makes {covered} lines of it, and only this one is passed over");
        Some(Row { taken: end, line, problem: Some(problem) })
    }
}

/// Returns whether the byte after `bytes` is escaped.
fn escapes_next(bytes: &[u8], escape: u8) -> bool {
    bytes.iter().rev().take_while(|&&byte| byte == escape).count() % 2 == 1
}

fn lines(row: &[u8], written: RowDialect) -> usize {
    memchr::memchr_iter(b'\n', trimmed(row, written).0).count() + 1
}

/// Maximum length in bytes of a line `sep=`, which sets the delimiter.
const SEP_BYTES: usize = 10;

/// Parses a first line such as `sep=;`, which Excel writes. Returns the delimiter, and the length of the line in bytes,
/// including its end.
fn sep(bytes: &[u8]) -> Option<(u8, usize)> {
    let line = &bytes[..memchr::memchr(b'\n', &bytes[..bytes.len().min(SEP_BYTES)])?];
    let said = line.strip_suffix(b"\r").unwrap_or(line);
    let said = said.strip_prefix(b"\"").and_then(|said| said.strip_suffix(b"\"")).unwrap_or(said);
    let (name, delimiter) = said.split_at_checked(4)?;
    match delimiter {
        [delimiter] if name.eq_ignore_ascii_case(b"sep=") => Some((*delimiter, line.len() + 1)),
        _ => None,
    }
}

/// Returns a row without the line ends before and after it, and the number of bytes of line ends before it. In a table with
/// a bare escape, a carriage return belongs to a line end only if a newline follows, and if it is not escaped.
fn trimmed(row: &[u8], written: RowDialect) -> (&[u8], usize) {
    if let Some(escape) = written.bare_escape() {
        let before = row.iter().take_while(|&&byte| byte == b'\n').count();
        let Some(line) = row[before..].strip_suffix(b"\n") else { return (&row[before..], before) };
        let ends = line.strip_suffix(b"\r").filter(|line| !escapes_next(line, escape));
        return (ends.unwrap_or(line), before);
    }
    let is_end = |byte: &&u8| b"\r\n".contains(byte);
    let before = row.iter().take_while(is_end).count();
    let after = row[before..].iter().rev().take_while(is_end).count();
    (&row[before..row.len() - after], before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::open::reader::{Origin, Reader as Stream};
    use crate::input::tables::dialect::{Dialect, Quote};

    /// The line number of a row, and the key and text of the row, or its error.
    type RowResult = (u64, Result<[String; 2], String>);

    fn rows(bytes: &[u8], delimiter: u8, max: usize) -> Result<Vec<RowResult>, String> {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
        let window = Window::new(Stream::open_verbatim(origin, &Arc::default()).unwrap());
        let fields = record::Fields {
            id: "id".to_owned(),
            text: "text".to_owned(),
            features: false,
            ..Default::default()
        };
        let dialect = Dialect { quote: Quote::Byte(b'"'), ..Dialect::default() };
        let written = RowDialect::of(dialect, delimiter == b'\t');
        let (mut rows, header) = TableRows::open(window, written, false, None, &fields, max)
            .map_err(|problem| problem.to_string())?;
        let mut all = Vec::new();
        let mut buffers = RowFields::default();
        while rows
            .next(|line, found| {
                let picked = found.and_then(|found| {
                    let (key, text) = header.pick(found.line, &mut buffers)?;
                    Ok([key.unwrap_or_default(), text]
                        .map(|field| String::from_utf8_lossy(field).into_owned()))
                });
                all.push((line, picked));
            })
            .map_err(|problem| problem.to_string())?
        {}
        Ok(all)
    }

    fn good(line: u64, key: &str, text: &str) -> RowResult {
        (line, Ok([key.to_owned(), text.to_owned()]))
    }

    #[test]
    fn fields_are_found_by_column_name_in_any_order() {
        let table = b"\xef\xbb\xbftext,other,id\r\n\"one, two\",,a\r\n\n\"a \"\"b\"\"\nc\",x,b\r\nlast,,c";
        let wanted = vec![good(2, "a", "one, two"), good(4, "b", "a \"b\"\nc"), good(6, "c", "last")];
        assert_eq!(rows(table, b',', 1000).unwrap(), wanted);
        let tabbed = b"id\ttext\n1\tone, two\n2\t\"a\tb\"\n";
        assert_eq!(rows(tabbed, b'\t', 1000).unwrap(), [good(2, "1", "one, two"), good(3, "2", "a\tb")]);
    }

    #[test]
    fn header_of_a_joined_table_is_no_document() {
        let again = "the names of the columns again, as where tables were joined: remove this row";
        let found = rows(b"id,text\r\n1,one\r\nid,text\r\n\xef\xbb\xbfid,text\r\nid,texts\r\n", b',', 1000);
        let bad = |line| (line, Err(again.to_owned()));
        assert_eq!(found.unwrap(), [good(2, "1", "one"), bad(3), bad(4), good(5, "id", "texts")]);
    }

    #[test]
    fn byte_order_mark_is_removed_only_before_the_first_row() {
        let found = rows("\u{feff}id,text\na,one\n\u{feff}a,two\n".as_bytes(), b',', 1000).unwrap();
        assert_eq!(found, [good(2, "a", "one"), good(3, "\u{feff}a", "two")]);
        let twice = rows("\u{feff}\u{feff}id,text\na,one\n".as_bytes(), b',', 1000);
        assert!(twice.unwrap_err().contains("no column \"id\""));
    }

    #[test]
    fn row_of_another_width_or_over_the_limit_is_bad_and_the_next_is_read() {
        let long = "x".repeat(600_000);
        let table = format!("id,text\n1\n2,{long}\n3,\"{long}\n\"\n4,d\n5,e,f\n6,\n");
        let found = rows(table.as_bytes(), b',', 1000).unwrap();
        let too_long = "a row of more than 1000 bytes".to_owned();
        assert_eq!(found[0], (2, Err("1 fields, where the first row names 2".to_owned())));
        assert_eq!(found[1], (3, Err(too_long.clone())));
        // A line that is too long by itself is skipped. Each line after it is parsed as a row again, because a quote
        // may have joined the lines.
        let one_of =
            |lines: usize| format!("; a quote makes {lines} lines of it, and only this one is passed over");
        assert_eq!(found[2], (4, Err(too_long)));
        let not_ended = "a quote that opens a field is not closed: close it, or double it".to_owned();
        assert_eq!(found[3], (5, Err(not_ended + &one_of(4))));
        assert_eq!(found[4], good(6, "4", "d"));
        assert_eq!(
            found[5],
            (7, Err("3 fields, where the first row names 2; quote fields that hold ','".to_owned()))
        );
        assert_eq!(found[6], good(8, "6", ""));
    }

    #[test]
    fn rows_over_the_limit_do_not_depend_on_read_sizes() {
        struct Pieces(std::io::Cursor<Vec<u8>>, usize);
        impl std::io::Read for Pieces {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let upper = self.1.min(buffer.len());
                self.0.read(&mut buffer[..upper])
            }
        }
        let table =
            b"id,text\n1,\"ab\ncd\"\n2,\"x\r\n\n\n3,z\"\r\n\n\n\n\n4,\"long long\n5,q\n6,r\n\"\r7,s\n";
        let read = |piece: usize, max: usize| {
            let reader = Box::new(Pieces(std::io::Cursor::new(table.to_vec()), piece));
            let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
            let window = Window::new(Stream::open_verbatim(origin, &Arc::default()).unwrap());
            let fields = record::Fields { id: "id".into(), text: "text".into(), ..Default::default() };
            let written = RowDialect::of(Dialect { quote: Quote::Byte(b'"'), ..Dialect::default() }, false);
            let (mut rows, _) = TableRows::open(window, written, false, None, &fields, max)
                .map_err(|problem| problem.to_string())
                .unwrap();
            let mut all = Vec::new();
            while rows.next(|line, found| all.push((line, found.map(|found| found.line.to_vec())))).unwrap() {
            }
            all
        };
        for max in 0..30 {
            let whole = read(usize::MAX, max);
            assert!((1..9).all(|piece| read(piece, max) == whole), "{max}: {whole:?}");
        }
    }

    #[test]
    fn rows_across_every_read_buffer_boundary_are_read_whole() {
        for pad in [1, 1000, 65_530, 131_070, 262_140, 262_150, 600_000] {
            let text = "y".repeat(pad);
            let table = format!("id,text\na,{text}\nb,\"{text}\"\nc,z\n");
            let found = rows(table.as_bytes(), b',', 1 << 20).unwrap();
            let wanted = [good(2, "a", &text), good(3, "b", &text), good(4, "c", "z")];
            assert_eq!(found, wanted, "{pad}");
        }
    }

    #[test]
    fn unclosed_quote_is_reported_and_row_is_not_a_document() {
        let found = rows(b"id,text\n1,\"one\n2,two\n", b',', 1000).unwrap();
        let not_ended = "a quote that opens a field is not closed: close it, or double it";
        let bad = |line| (line, Err(not_ended.to_owned()));
        let one_of_two = "; a quote makes 2 lines of it, and only this one is passed over";
        assert_eq!(found, [(2, Err(format!("{not_ended}{one_of_two}"))), good(3, "2", "two")]);
        let last =
            |row: &str| rows(format!("id,text\n1,one\n{row}").as_bytes(), b',', 1000).unwrap().remove(1);
        // A quote at the start of a field opens a quoted field, to which the line ends after the quote belong.
        assert_eq!(last("a\"b,\"two\n\n"), bad(3));
        assert_eq!(last("2,\"two \"\""), bad(3));
        assert_eq!(last("2,\""), bad(3));
        // In these rows every quoted field is closed, so the rows are valid.
        assert_eq!(last("2,of 5\" and more"), good(3, "2", "of 5\" and more"));
        assert_eq!(last("2,\"two\" \"more"), good(3, "2", "two \"more"));
        assert_eq!(last("2,\"two\"\"\"\n"), good(3, "2", "two\""));
        assert_eq!(last("2,\"\""), good(3, "2", ""));
    }

    #[test]
    fn rows_after_an_unbalanced_quote_are_read() {
        let found =
            rows(b"id,text\n1,\"open\n2,two\n3,\"a, b\"\n4,\"four\nlines\"\n5,x\n", b',', 1000).unwrap();
        assert_eq!(found[0].0, 2);
        assert!(found[0].1.as_ref().unwrap_err().contains("3 lines of it, and only this one"), "{found:?}");
        assert_eq!(
            found[1..],
            [good(3, "2", "two"), good(4, "3", "a, b"), good(5, "4", "four\nlines"), good(7, "5", "x")]
        );
        // Rows are read again only up to a limit: a table of such rows is read `READ_AGAIN` times. After that, all
        // lines of a bad row are discarded.
        let bad = format!("id,text\n{}", "x,\"\"\"\n".repeat(20_000));
        assert!(rows(bad.as_bytes(), b',', 1 << 20).unwrap().len() <= 20_001);
    }

    #[test]
    fn table_without_a_requested_column_is_refused_with_its_column_names() {
        let message = rows(b"key,\"bo\"\"dy\"\n", b',', 1000).unwrap_err();
        assert_eq!(
            message,
            "t: no column \"id\" in its first row, which names \"key\", \"bo\\\"dy\", with ',' between them; see --id-field and \
             --text-field"
        );
        assert!(rows(b"", b',', 1000).unwrap_err().starts_with("t: empty, where a first row"));
        assert!(rows(b"id,text,id\n", b',', 1000).unwrap_err().contains("two columns have the name \"id\""));
    }
}
