//! What a line says: its key, its text or features, and what the document has beside them.
//!
//! Lines are understood by whoever works on them, on any thread; the reader has only found where they end.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Context;
use twindex::sketch::{Cutter, Units};

use super::content::Content;
use super::fields::{Fields, Ids};
use super::form::Form;
use super::headers::Headers;
use super::{ID_FIELD, InputOptions, InvalidUtf8, OwnAttached, columns, jsonl, page_text, rows, warc};

/// Finds out what records say; shared by threads.
#[derive(Clone, Debug)]
pub struct Parser {
    pub(super) fields: Fields,
    pub(super) invalid_utf8: InvalidUtf8,
    pub(super) headers: Headers,
    pub(super) record_bytes_max: usize,
    /// Brings texts into the form in which they are compared, if that is not the one they stand in.
    pub(super) normaliser: Option<Arc<Cutter>>,
}

impl Parser {
    /// For inputs that are read with these options.
    #[must_use]
    pub fn new(options: &InputOptions) -> Self {
        let InputOptions { id_field, text_field, attached, .. } = options;
        // A field that was named must be there.
        let is_named = options.ids == Ids::FieldOrLine && id_field != ID_FIELD;
        let ids = if is_named { Ids::Field } else { options.ids };
        let fields = Fields::new(id_field, text_field, ids, options.features, attached);
        let (invalid_utf8, record_bytes_max) = (options.invalid_utf8, options.record_bytes_max);
        Self { fields, invalid_utf8, headers: Headers::default(), record_bytes_max, normaliser: None }
    }

    /// Bytes that are equal for contents that count as identical, and for no others: the [`identity`](Content::identity) of
    /// the content, or of its text as it was [normalised](super::Documents::compare_normalised).
    #[must_use]
    pub fn identity<'r>(&self, content: Content<'r>) -> Cow<'r, [u8]> {
        let (Some(cutter), Content::Text(text)) = (&self.normaliser, content) else { return content.identity() };
        let mut units = Units::default();
        match cutter.normalised(text, &mut units) {
            // Of nothing it cannot be said what it was.
            "" => Cow::Borrowed(text.as_bytes()),
            same if same == text => Cow::Borrowed(text.as_bytes()),
            other => Cow::Owned(other.as_bytes().to_vec()),
        }
    }

    /// The [`identity`](Self::identity) of what a [`line`](super::Record::line) says.
    ///
    /// # Errors
    ///
    /// What is wrong with the line.
    pub fn identity_of_line(&self, form: Form, line: &[u8]) -> anyhow::Result<Vec<u8>> {
        let identity = identity(form, line, self)?;
        match std::str::from_utf8(&identity) {
            Ok(text) if self.normaliser.is_some() => Ok(self.identity(Content::Text(text)).into_owned()),
            Ok(_) | Err(_) => Ok(identity),
        }
    }

    /// What stood once in an input and concerns all of its records.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

/// Working memory of [`understand`], reused from line to line.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    json: jsonl::Buffers,
    /// A key that is made of several fields.
    key: Vec<u8>,
    text: String,
    row: rows::Fields,
    /// The header that was asked for last.
    header: Option<(u32, Arc<rows::Header>)>,
}

/// What a line says.
#[derive(Debug)]
pub(super) enum Understood<'l> {
    Document {
        /// None where it is to be that of the line.
        key: Option<&'l [u8]>,
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
    let (key, text): (Option<&[u8]>, &[u8]) = match form {
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
            warc::Says::Text { key, text } => (key_in(&mut buffers.key, key), text),
            warc::Says::Made { key, text } => {
                buffers.text = text;
                let key = key_in(&mut buffers.key, key);
                // guard: keys of pages in archives are looked at
                key.map_or(Ok(()), check_key)?;
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
    key.map_or(Ok(()), check_key)?;
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

/// A key, in `room` if it was made.
fn key_in<'k>(room: &'k mut Vec<u8>, key: Option<Cow<'k, [u8]>>) -> Option<&'k [u8]> {
    match key? {
        Cow::Borrowed(key) => Some(key),
        Cow::Owned(key) => {
            *room = key;
            Some(room)
        }
    }
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
