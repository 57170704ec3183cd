//! How a document stood in its input, and so what it says and how it is written again.
//!
//! Whatever is read in records is handed on as a *line*: the bytes of the record as they stand in the file (a line
//! of JSON, a row of a CSV file, a record of a web archive), or, of a Parquet file, which has no such bytes, the
//! row's number with its key and text. What a line says is found out by whoever works on it.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;

use super::batch::Parser;
use super::place::Unit;
use super::{Content, InvalidUtf8, OwnAttached, columns, jsonl, page_text, rows, warc};

/// What the line of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object of JSON: the line of a file, or made of a whole file.
    Json,
    /// An object made of a whole file of HTML.
    Html,
    /// A row of a table, whose header stands at this number in the `Headers`.
    Row(u32),
    /// A record of a web archive, of which some consist of texts only.
    Archive {
        /// Of texts, not of pages.
        texts: bool,
    },
    /// A row of a Parquet file, which stands at this number in the `Headers`.
    Columns(u32),
}

impl Form {
    /// What the records of such files are counted in.
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Json | Self::Html | Self::Row(_) => Unit::Line,
            Self::Archive { .. } => Unit::Record,
            Self::Columns(_) => Unit::Row,
        }
    }
}

/// What stands once in an input and concerns all of its records.
#[derive(Clone, Debug)]
pub(super) enum Header {
    /// The first row of a table.
    Row(Arc<rows::Header>),
    /// A Parquet file.
    Columns(Arc<columns::File>),
}

/// The headers of all inputs, in the order in which they are met; a clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Headers(Arc<Mutex<Vec<Header>>>);

impl Headers {
    fn all(&self) -> MutexGuard<'_, Vec<Header>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of one more.
    pub(super) fn push(&self, header: Header) -> u32 {
        let mut all = self.all();
        all.push(header);
        all.len() as u32 - 1
    }

    /// The header of a table; one of equal bytes has the number of the first.
    pub(super) fn push_row(&self, header: rows::Header) -> u32 {
        let same = |other: &Header| matches!(other, Header::Row(other) if **other == header);
        let found = self.all().iter().position(same);
        found.map_or_else(|| self.push(Header::Row(Arc::new(header))), |at| at as u32)
    }

    pub fn row(&self, number: u32) -> Option<Arc<rows::Header>> {
        match self.all().get(number as usize) {
            Some(Header::Row(header)) => Some(Arc::clone(header)),
            _ => None,
        }
    }

    pub fn columns(&self, number: u32) -> Option<Arc<columns::File>> {
        match self.all().get(number as usize) {
            Some(Header::Columns(file)) => Some(Arc::clone(file)),
            _ => None,
        }
    }
}

/// Working memory of [`understand`], reused from line to line.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    json: jsonl::Buffers,
    text: String,
    row: rows::Fields,
    /// The header that was asked for last.
    header: Option<(u32, Arc<rows::Header>)>,
}

/// What a line says.
#[derive(Debug)]
pub(super) enum Understood<'l> {
    Document {
        key: &'l [u8],
        content: Content<'l>,
        /// The line to write again: with bytes replaced that are not UTF-8, where it must have none.
        line: &'l [u8],
        /// Whether bytes were replaced.
        replaced: bool,
    },
    /// It is none of a document.
    NoDocument,
}

/// Finds out what a line says, or what is wrong with it.
pub(super) fn understand<'l>(
    form: Form,
    line: &'l [u8],
    parser: &Parser,
    buffers: &'l mut Buffers,
) -> Result<Understood<'l>, String> {
    let invalid = parser.invalid_utf8;
    let (key, text): (&[u8], &[u8]) = match form {
        Form::Json | Form::Html => {
            let parsed = jsonl::parse(line, &parser.fields, invalid, &mut buffers.json)?;
            let replaced = parsed.replaced.is_some();
            let line = parsed.replaced.map_or(line, str::as_bytes);
            let content = match parsed.content {
                Content::Text(text) if form == Form::Html => {
                    buffers.text = page_text(text)?;
                    Content::Text(&buffers.text)
                }
                content => content,
            };
            return Ok(Understood::Document { key: parsed.key, content, line, replaced });
        }
        Form::Row(number) => {
            let known = buffers.header.take().filter(|(known, _)| *known == number);
            let Some(header) = known.map(|(_, header)| header).or_else(|| parser.headers.row(number)) else {
                return Err("its header is gone".to_owned());
            };
            let found = header.pick(line, &mut buffers.row);
            buffers.header = Some((number, header));
            found?
        }
        Form::Archive { .. } => match warc::understand(line, &parser.fields, parser.record_bytes_max)? {
            warc::Says::Text { key, text } => (key, text),
            warc::Says::Made { key, text } => {
                buffers.text = text;
                // guard: keys of pages in archives are looked at
                check_key(key)?;
                let content = Content::Text(&buffers.text);
                return Ok(Understood::Document { key, content, line, replaced: false });
            }
            warc::Says::NoDocument => return Ok(Understood::NoDocument),
        },
        Form::Columns(_) => {
            let parts = columns::parts(line, &parser.fields).ok_or("it cannot be read again")?;
            (parts.key, parts.text)
        }
    };
    // guard: keys of rows and of texts in archives are looked at
    check_key(key)?;
    let (text, replaced) = match std::str::from_utf8(text) {
        Ok(text) => (text, false),
        Err(error) if invalid == InvalidUtf8::Error => {
            let offset = error.valid_up_to();
            return Err(format!(
                "not UTF-8: byte 0x{:02x} at offset {offset} of the text (--invalid-utf8 replace takes it)",
                text[offset]
            ));
        }
        Err(_) => {
            buffers.text = String::from_utf8_lossy(text).into_owned();
            (buffers.text.as_str(), true)
        }
    };
    Ok(Understood::Document { key, content: Content::Text(text), line, replaced })
}

/// A key is what users see of a document, in JSON among others: it stays as it is, or there is none.
fn check_key(key: &[u8]) -> Result<(), String> {
    super::check_key(key)?;
    // guard: a key of a row or of an archive is UTF-8
    // without it: return Ok(());
    std::str::from_utf8(key).map(drop).map_err(|error| {
        let offset = error.valid_up_to();
        let byte = key[offset];
        format!("not UTF-8: byte 0x{byte:02x} at offset {offset} of the key, of which no byte is replaced")
    })
}

/// What a document has beside its text, by its line.
///
/// # Errors
///
/// It lacks a stamp, or has something else in its place.
pub(super) fn attached(form: Form, line: &[u8], parser: &Parser) -> anyhow::Result<OwnAttached> {
    let fields = &parser.fields;
    if !fields.attached.any() {
        return Ok(OwnAttached::default());
    }
    match form {
        Form::Json | Form::Html => fields.attached.of_json(line),
        Form::Row(number) => {
            let header = parser.headers.row(number).context("its header is gone")?;
            header.attached(line, fields)
        }
        Form::Archive { .. } => warc::attached(line, fields),
        Form::Columns(_) => {
            let parts = columns::parts(line, fields).context("it cannot be read again")?;
            Ok(parts.attached())
        }
    }
}

/// The [`identity`](Content::identity) of what a line says.
///
/// # Errors
///
/// What is wrong with the line.
pub(super) fn identity(form: Form, line: &[u8], parser: &Parser) -> anyhow::Result<Vec<u8>> {
    let mut buffers = Buffers::default();
    match understand(form, line, parser, &mut buffers) {
        Ok(Understood::Document { content, .. }) => Ok(Cow::into_owned(content.identity())),
        Ok(Understood::NoDocument) => Err(anyhow::anyhow!("no document any more")),
        Err(reason) => Err(anyhow::anyhow!("{reason}")),
    }
}

/// The name of the file that documents of one form are written to again, behind `kept`.
pub(super) fn suffix(form: Form, headers: &Headers) -> &'static str {
    match form {
        Form::Json | Form::Html => "jsonl",
        Form::Row(number) => headers.row(number).map_or("csv", |header| header.suffix()),
        Form::Archive { texts: true } => "wet",
        Form::Archive { texts: false } => "warc",
        Form::Columns(_) => "parquet",
    }
}
