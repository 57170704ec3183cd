//! Reads the records of one input in any format: finds the ends of records, which other threads then parse.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::archives::{arc, warc};
use crate::input::arrow::columns as arrow;
use crate::input::batch::Batch;
use crate::input::columns::rows::NumberedRow;
use crate::input::content::{Ending, Form, FoundLine};
use crate::input::headers::{ColumnFile, FileColumns};
use crate::input::jsonl::array::{JsonArray, begins_with_long_object};
use crate::input::jsonl::lines::JsonLines;
use crate::input::kept::files::KeptKeys;
use crate::input::open::kind::{Kind, is_named_json};
use crate::input::open::reader::{Origin, Reader, Window};
use crate::input::parquet::columns as parquet;
use crate::input::parser::Parser;
use crate::input::partition;
use crate::input::place::{Place, Problem};
use crate::input::tables::dialect::RowDialect;
use crate::input::tables::rows;

/// An input with records.
pub(crate) struct Records {
    stream: Stream,
    /// The keys that are stored outside the records; `None` if there are none.
    keys: Option<KeptKeys>,
}

pub(crate) enum Stream {
    Lines(JsonLines),
    Array(JsonArray),
    Rows(Box<rows::TableRows>, Form),
    Archive(warc::ArchiveRecords, Form),
    Arc(arc::ArchiveRecords),
    Columns(ColumnRows, Form),
}

/// The rows of a file that stores values column by column.
pub(crate) enum ColumnRows {
    Parquet(Box<parquet::ParquetRows>),
    Arrow(Box<arrow::ArrowRows>),
}

impl ColumnRows {
    fn name(&self) -> &Arc<Path> {
        match self {
            Self::Parquet(rows) => rows.name(),
            Self::Arrow(rows) => rows.name(),
        }
    }

    fn next(&mut self) -> Result<Option<NumberedRow>, Problem> {
        match self {
            Self::Parquet(rows) => rows.next(),
            Self::Arrow(rows) => rows.next(),
        }
    }
}

impl Records {
    /// Opens an input, and reads the header that precedes its records.
    pub(crate) fn open(
        origin: Origin,
        kind: Kind,
        parser: &Parser,
        bytes_max: usize,
        consumed: &Arc<AtomicU64>,
    ) -> Result<Self, Problem> {
        let keys = match &origin {
            Origin::File(path) => KeptKeys::beside(path)?,
            Origin::Stream { .. } => None,
        };
        let name = origin.name();
        let partitioned = partition::Partitioned::of(parser, &name);
        let parser = partitioned.as_ref().map_or(parser, |partitioned| &partitioned.parser);
        let keyed = keys.is_some().then(|| parser.of_other_keys());
        let parser = keyed.as_ref().unwrap_or(parser);
        Ok(Self { stream: Stream::open(origin, kind, parser, bytes_max, consumed)?, keys })
    }

    /// Returns a message with the position at which an archive is truncated; `None` if the input is not truncated.
    pub(crate) fn cut(&self) -> Option<String> {
        match &self.stream {
            Stream::Archive(records, _) => records.cut(),
            Stream::Arc(records) => records.cut(),
            Stream::Lines(_) | Stream::Array(_) | Stream::Rows(..) | Stream::Columns(..) => None,
        }
    }

    /// Returns whether reading the next record would block until a pipe has more data. Can be true only for JSON Lines.
    pub(crate) fn would_wait(&self) -> bool {
        matches!(&self.stream, Stream::Lines(lines) if lines.would_wait())
    }

    /// Adds the next record to `batch`. Returns false at the end of the input.
    pub(crate) fn advance(&mut self, batch: &mut Batch) -> Result<bool, Problem> {
        let Self { stream, keys } = self;
        let mut failed = None;
        let more = stream.next(|form, name, number, found| {
            let key = match keys.as_mut().map(|keys| keys.of(number)).transpose() {
                Ok(key) => key.flatten(),
                Err(problem) => {
                    failed = Some(problem);
                    return;
                }
            };
            match found {
                Ok(found) => batch.push_line(form, found, number, name, key),
                Err(reason) => {
                    batch.push_bad(Problem { place: Place::of(name, number, form.unit()), reason });
                }
            }
        })?;
        failed.map_or(Ok(more), Err)
    }
}

impl Stream {
    /// Opens the stream of an input; see [`Records::open`].
    fn open(
        origin: Origin,
        kind: Kind,
        parser: &Parser,
        bytes_max: usize,
        consumed: &Arc<AtomicU64>,
    ) -> Result<Self, Problem> {
        let (fields, headers) = (&parser.fields, &parser.headers);
        if kind.is_of_columns() {
            let Origin::File(path) = origin else {
                let reason = format!("{} is read in parts; name a regular file", kind.title());
                return Err(Problem { place: Place::file(origin.name()), reason });
            };
            let (rows, columns, stamp) = if kind == Kind::Parquet {
                let (rows, columns, stamp) = parquet::open(&path, fields, bytes_max, consumed)?;
                (ColumnRows::Parquet(Box::new(rows)), FileColumns::Parquet(columns), stamp)
            } else {
                let (rows, columns, stamp) = arrow::open(&path, fields, bytes_max, consumed)?;
                (ColumnRows::Arrow(Box::new(rows)), FileColumns::Arrow(columns), stamp)
            };
            let path = Arc::clone(rows.name());
            let form = Form::Columns(headers.push_columns(ColumnFile { path, stamp, columns }));
            headers.meet(form, false);
            return Ok(Self::Columns(rows, form));
        }
        let reader = Reader::open(origin, consumed)?;
        Ok(match kind {
            Kind::Jsonl | Kind::Parquet | Kind::Arrow => {
                let is_json = is_named_json(reader.name());
                let mut lines = JsonLines::new(reader, bytes_max);
                if is_json && lines.first_byte()? == Some(b'[') {
                    headers.meet(Form::Element, false);
                    Self::Array(JsonArray::new(lines, bytes_max))
                } else if is_json && begins_with_long_object(&mut lines)? {
                    headers.meet(Form::Element, false);
                    Self::Array(JsonArray::of_objects(lines, bytes_max))
                } else {
                    headers.meet(Form::Json, lines.is_marked()?);
                    Self::Lines(lines)
                }
            }
            Kind::Csv | Kind::Tsv => {
                let written = RowDialect::of(parser.dialect, kind == Kind::Tsv);
                let is_given = kind == Kind::Tsv || parser.dialect.delimiter.is_some();
                let window = Window::new(reader);
                let (rows, header) =
                    rows::TableRows::open(window, written, is_given, parser.charset, fields, bytes_max)?;
                let form = Form::Row(headers.push_row(header));
                headers.meet(form, false);
                Self::Rows(Box::new(rows), form)
            }
            Kind::Arc => {
                headers.meet(Form::Arc, false);
                Self::Arc(arc::ArchiveRecords::new(Window::new(reader), bytes_max))
            }
            Kind::Wet | Kind::Warc => {
                let form = Form::Archive { texts: kind == Kind::Wet };
                headers.meet(form, false);
                Self::Archive(warc::ArchiveRecords::new(Window::new(reader), bytes_max), form)
            }
        })
    }

    /// Passes the next record or its error to `take`, with the form, path and number of the record. Returns false at
    /// the end of the input.
    fn next(
        &mut self,
        mut take: impl FnMut(Form, Arc<Path>, u64, Result<FoundLine<'_>, String>),
    ) -> Result<bool, Problem> {
        match self {
            Self::Lines(lines) => {
                let name = Arc::clone(lines.name());
                let Some((number, found)) = lines.next()? else { return Ok(false) };
                take(Form::Json, name, number, found.map_err(|bad| bad.reason));
                Ok(true)
            }
            Self::Array(array) => {
                let name = Arc::clone(array.name());
                let Some((number, found)) = array.next()? else { return Ok(false) };
                take(Form::Element, name, number, found.map_err(|bad| bad.reason));
                Ok(true)
            }
            Self::Rows(rows, form) => {
                let name = Arc::clone(rows.name());
                rows.next(|number, found| take(*form, name, number, found))
            }
            Self::Archive(records, form) => {
                let name = Arc::clone(records.name());
                records.next(|number, found| take(*form, name, number, found))
            }
            Self::Arc(records) => {
                let name = Arc::clone(records.name());
                records.next(|number, found| take(Form::Arc, name, number, found))
            }
            Self::Columns(rows, form) => {
                let Some((number, line)) = rows.next()? else { return Ok(false) };
                let found =
                    line.as_deref().map(|line| FoundLine { line, offset: None, ending: Ending::default() });
                take(*form, Arc::clone(rows.name()), number, found.map_err(Clone::clone));
                Ok(true)
            }
        }
    }
}
