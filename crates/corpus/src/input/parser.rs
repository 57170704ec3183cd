//! Parses lines: the key, the text or features, and the other requested values of a document.
//!
//! Any thread can parse lines. The reader only finds the ends of lines.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context, bail};
use twindex::sketch::{Cutter, Units};

use crate::input::archives::http::{self, page_text};
use crate::input::archives::{arc, warc};
use crate::input::columns::rows as columns;
use crate::input::content::{Content, Form, Loss};
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::fingerprint::FingerprintForm;
use crate::input::fields::record::{Fields, Ids};
use crate::input::headers::Headers;
use crate::input::jsonl::parse;
use crate::input::kept::annotate::{AnnotationOptions, DocumentNote};
use crate::input::options::{ID_FIELD, InputOptions, TextForm};
use crate::input::place::LOSSY_ADVICE;
use crate::input::tables::dialect::Dialect;
use crate::input::tables::rows;
use crate::input::text::charset::{self, Charset};
use crate::input::text::lossy::{self, InvalidUtf8};

/// Parses records. Clones share the headers of the inputs.
#[derive(Clone, Debug)]
pub struct Parser {
    pub(crate) fields: Fields,
    pub(crate) invalid_utf8: InvalidUtf8,
    pub(crate) charset: Option<Charset>,
    pub(crate) dialect: Dialect,
    pub(crate) text_form: TextForm,
    pub(crate) headers: Headers,
    pub(crate) record_bytes_max: usize,
    /// Normalizes texts for comparison; `None` if they are compared unchanged.
    pub(crate) normaliser: Option<Arc<Cutter>>,
}

impl Parser {
    /// Creates a parser for inputs that are read with these options.
    #[must_use]
    pub fn new(options: &InputOptions) -> Self {
        let InputOptions { id_field, text_field, attached, .. } = options;
        // If an option names the key field, every record must have it.
        let is_named = options.ids == Ids::FieldOrLine && id_field != ID_FIELD;
        let ids = if is_named { Ids::Field } else { options.ids };
        let mut fields = Fields::new(id_field, text_field, ids, options.features, attached)
            .with_fingerprint(options.fingerprint);
        fields.reserved.clone_from(&options.reserved);
        let (invalid_utf8, record_bytes_max) = (options.invalid_utf8, options.record_bytes_max);
        let (headers, charset, dialect) = (Headers::default(), options.encoding, options.dialect);
        let (text_form, normaliser) = (options.text_form, None);
        Self { fields, invalid_utf8, charset, dialect, text_form, headers, record_bytes_max, normaliser }
    }

    /// Returns bytes that are equal for two contents if and only if the contents are identical: the
    /// [`identity`](Content::identity) of the content, or the bytes of its
    /// [normalized](crate::input::documents::Documents::compare_normalised) text.
    #[must_use]
    pub fn identity<'r>(&self, content: Content<'r>) -> Cow<'r, [u8]> {
        let (Some(cutter), Content::Text(text)) = (&self.normaliser, content) else {
            return content.identity();
        };
        let mut units = Units::default();
        match cutter.normalised(text, &mut units) {
            // If normalization removes the whole text, its original bytes are compared.
            "" => Cow::Borrowed(text.as_bytes()),
            same if same == text => Cow::Borrowed(text.as_bytes()),
            other => Cow::Owned(other.as_bytes().to_vec()),
        }
    }

    /// Returns the [`identity`](Self::identity) of the content that a [`line`](crate::input::batch::Record::line)
    /// contains.
    ///
    /// # Errors
    ///
    /// The line is invalid; the message has the reason.
    pub fn identity_of_line(&self, form: Form, line: &[u8]) -> anyhow::Result<Vec<u8>> {
        let identity = identity(form, line, self)?;
        match std::str::from_utf8(&identity) {
            Ok(text) if self.normaliser.is_some() => Ok(self.identity(Content::Text(text)).into_owned()),
            Ok(_) | Err(_) => Ok(identity),
        }
    }

    /// Returns the text in a line for people; see [`Content::shown`].
    ///
    /// # Errors
    ///
    /// The line is invalid; the message has the reason.
    pub(crate) fn text_of_line(&self, form: Form, line: &[u8]) -> anyhow::Result<String> {
        content_of_line(form, line, self, |content| content.shown())
    }

    /// Returns whether the URLs of documents are read from a field.
    #[must_use]
    pub fn reads_urls(&self) -> bool {
        self.fields.attached.deciding.url.is_some()
    }

    /// Returns the line of a document, with added fields about the decision on it; see [`AnnotationOptions::line`].
    ///
    /// # Errors
    ///
    /// The errors of [`AnnotationOptions::line`].
    pub fn annotated(
        &self,
        noted: &AnnotationOptions,
        form: Form,
        line: &[u8],
        note: &DocumentNote,
    ) -> Result<Vec<u8>, String> {
        noted.line(form, line, note, &self.headers, self.charset)
    }

    /// Returns a parser that accepts records without a key. Used if keys are in a separate file.
    pub(crate) fn of_other_keys(&self) -> Self {
        let mut parser = self.clone();
        if parser.fields.ids == Ids::Field {
            parser.fields.ids = Ids::FieldOrLine;
        }
        parser
    }

    /// Returns the headers of the inputs. All records of an input share a header.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

/// Working memory of [`understand`], reused for all lines.
#[derive(Debug, Default)]
pub(crate) struct ParseBuffers {
    json: parse::LineBuffers,
    /// A key that consists of several fields.
    key: Vec<u8>,
    /// A row, decoded to UTF-8.
    line: String,
    text: String,
    /// The bytes to compare instead of the text if decoding was lossy.
    identity: Vec<u8>,
    row: rows::RowFields,
    /// The header that was used last, with its index.
    header: Option<(u32, Arc<rows::TableHeader>)>,
}

/// The content of a line, or the reason why it is not a document.
#[derive(Debug)]
pub(crate) enum ParsedLine<'l> {
    Document {
        /// The key; `None` if it is created from the line number.
        key: Option<&'l [u8]>,
        content: Content<'l>,
        loss: Loss,
        /// Whether the encoding of the text was detected from its bytes.
        is_detected: bool,
        /// Bit `i` is set if the record lacks text field `i`.
        absent: u64,
    },
    /// The record lacks a required field. The message names the field.
    MissingField(String),
    /// The record is not a document.
    NoDocument,
    /// The record is a revisit record, which refers to an earlier record.
    Revisit,
    /// The text could not be decoded without loss, and the options skip such documents.
    Skipped,
}

/// Parses a line. Returns an error with the reason if the line is invalid.
pub(crate) fn understand<'l>(
    form: Form,
    line: &'l [u8],
    parser: &Parser,
    buffers: &'l mut ParseBuffers,
) -> Result<ParsedLine<'l>, String> {
    let is_page_or_archive = matches!(form, Form::Html | Form::Archive { .. } | Form::Arc);
    let invalid = parser.invalid_utf8.of(is_page_or_archive);
    let mut is_detected = false;
    let is_html = form == Form::Html || parser.text_form == TextForm::Html;
    let (key, text): (Option<&[u8]>, &[u8]) = match form {
        Form::Json | Form::Html | Form::Element => {
            parse::check_reserved(line, &parser.fields.reserved)?;
            let ParseBuffers { json, text, identity, .. } = buffers;
            let parsed = match parse::parse(line, &parser.fields, invalid, parser.charset, json) {
                Ok(parsed) => parsed,
                Err(parse::LineError::Skipped) => return Ok(ParsedLine::Skipped),
                Err(parse::LineError::Missing(reason)) => return Ok(ParsedLine::MissingField(reason)),
                Err(parse::LineError::Reason(reason)) => return Err(reason),
            };
            let parse::ParsedObject { key, content, is_lossy, is_detected, absent } = parsed;
            let loss = if is_lossy { Loss::Bytes } else { Loss::None };
            let document =
                |content, loss| Ok(ParsedLine::Document { key, content, loss, is_detected, absent });
            return match content {
                Content::Text(markup) if is_html => {
                    let (shown, opaque) = http::shown_of_page(markup, None)?;
                    *text = shown;
                    let (content, loss) = opaque_in(identity, text, opaque);
                    document(content, loss)
                }
                Content::Opaque { text: markup, identity } if is_html => {
                    *text = page_text(markup)?;
                    document(Content::Opaque { text, identity }, loss)
                }
                content => document(content, loss),
            };
        }
        Form::Row(number) => {
            let known = buffers.header.take().filter(|(known, _)| *known == number);
            let Some(header) = known.map(|(_, header)| header).or_else(|| parser.headers.row(number)) else {
                return Err("its header is gone".to_owned());
            };
            let mut line = line;
            if let Some(decoded) = decoded_row(line, parser) {
                is_detected = decoded.is_detected;
                buffers.line = decoded.text.into_owned();
                line = buffers.line.as_bytes();
            }
            let found = header.pick(line, &mut buffers.row);
            buffers.header = Some((number, header));
            found?
        }
        Form::Archive { .. } | Form::Arc => {
            let understand = if form == Form::Arc { arc::understand } else { warc::understand };
            match understand(line, &parser.fields, parser.record_bytes_max, parser.charset)? {
                warc::RecordContent::Text { key, text } => {
                    (key_in(&mut buffers.key, key.map(url_in_utf8)), text)
                }
                warc::RecordContent::Made { key, shown } => {
                    let http::PageText { text, opaque, is_detected } = shown;
                    let ParseBuffers { key: buffer, text: text_buffer, identity, .. } = buffers;
                    *text_buffer = text;
                    let key = key_in(buffer, key.map(url_in_utf8));
                    // guard: keys of pages in archives are checked
                    key.map_or(Ok(()), check_key)?;
                    let (content, loss) = opaque_in(identity, text_buffer, opaque);
                    return match (loss, invalid) {
                        (Loss::Bytes, InvalidUtf8::Error) => {
                            Err(format!("not UTF-8, or not in the encoding that is said ({LOSSY_ADVICE})"))
                        }
                        (Loss::Bytes, InvalidUtf8::Skip) => Ok(ParsedLine::Skipped),
                        _ => Ok(ParsedLine::Document { key, content, loss, is_detected, absent: 0 }),
                    };
                }
                warc::RecordContent::NoDocument => return Ok(ParsedLine::NoDocument),
                warc::RecordContent::Revisit => return Ok(ParsedLine::Revisit),
            }
        }
        Form::Columns(_) => {
            let parts = columns::parts(line, &parser.fields).ok_or("it cannot be read again")?;
            (parts.key, parts.text)
        }
    };
    // guard: keys of rows and of texts in archives are checked
    key.map_or(Ok(()), check_key)?;
    if let Some(said) = parser.fields.fingerprint {
        // The reader of columns writes fingerprints in hexadecimal, whatever their form in the file is.
        let written_so = if matches!(form, Form::Columns(_)) { FingerprintForm::Hex } else { said };
        let content = fingerprint_in(text, written_so, parser)?;
        return Ok(ParsedLine::Document { key, content, loss: Loss::None, is_detected, absent: 0 });
    }
    let is_html = is_html && matches!(form, Form::Row(_) | Form::Columns(_));
    Ok(match content_in(text, (invalid, is_html), &mut buffers.text, &mut buffers.identity)? {
        Some((content, loss)) => ParsedLine::Document { key, content, loss, is_detected, absent: 0 },
        None => ParsedLine::Skipped,
    })
}

/// Returns the content of a text, of HTML the visible text; `None` if it is skipped because it is not UTF-8.
fn content_in<'t>(
    text: &'t [u8],
    (invalid, is_html): (InvalidUtf8, bool),
    shown: &'t mut String,
    identity: &'t mut Vec<u8>,
) -> Result<Option<(Content<'t>, Loss)>, String> {
    Ok(Some(match (std::str::from_utf8(text), invalid) {
        (Ok(markup), _) if is_html => {
            let (visible, opaque) = http::shown_of_page(markup, None)?;
            *shown = visible;
            opaque_in(identity, shown, opaque)
        }
        (Ok(text), _) => (Content::Text(text), Loss::None),
        (Err(error), InvalidUtf8::Error | InvalidUtf8::Usual) => {
            let offset = error.valid_up_to();
            return Err(format!(
                "not UTF-8: byte 0x{:02x} at offset {offset} of the text ({LOSSY_ADVICE})",
                text[offset]
            ));
        }
        (Err(_), InvalidUtf8::Skip) => return Ok(None),
        (Err(_), InvalidUtf8::Replace) => {
            let marked = lossy::mark(text);
            *identity = http::identity(lossy::LOSSY, &marked);
            *shown = lossy::shown(&marked).unwrap_or(marked);
            if is_html {
                *shown = page_text(shown)?;
            }
            (Content::Opaque { text: shown, identity }, Loss::Bytes)
        }
    }))
}

/// Decodes a row that is not UTF-8. Returns `None` if the row is UTF-8, no encoding is given, or decoding is lossy.
fn decoded_row<'l>(line: &'l [u8], parser: &Parser) -> Option<charset::Decoded<'l>> {
    if parser.charset.is_none() || std::str::from_utf8(line).is_ok() {
        return None;
    }
    Some(charset::line(line, parser.charset)).filter(|decoded| !decoded.is_lossy)
}

/// Parses the fingerprint in a field. `text` is the value of the field: none if it is empty; a value that is not UTF-8
/// is an error.
fn fingerprint_in<'t>(text: &[u8], form: FingerprintForm, parser: &Parser) -> Result<Content<'t>, String> {
    if text.is_empty() {
        return Ok(Content::ABSENT);
    }
    let fingerprint = form.parse(&String::from_utf8_lossy(text));
    let fingerprint = fingerprint.map_err(|why| format!("field {:?}: {why}", parser.fields.text))?;
    Ok(Content::Fingerprint(fingerprint))
}

/// Returns the content to compare. If decoding was lossy, writes the bytes to compare instead of the text to `buffer`.
fn opaque_in<'t>(
    buffer: &'t mut Vec<u8>,
    text: &'t str,
    opaque: Option<http::OpaqueIdentity>,
) -> (Content<'t>, Loss) {
    match opaque {
        None => (Content::Text(text), Loss::None),
        Some((loss, identity)) => {
            *buffer = identity;
            (Content::Opaque { text, identity: buffer }, loss)
        }
    }
}

/// Returns the key. Copies it to `buffer` unless it is borrowed from the input.
fn key_in<'k>(buffer: &'k mut Vec<u8>, key: Option<Cow<'k, [u8]>>) -> Option<&'k [u8]> {
    match key? {
        Cow::Borrowed(key) => Some(key),
        Cow::Owned(key) => {
            *buffer = key;
            Some(buffer)
        }
    }
}

/// Returns a URL in which each byte that is not UTF-8 is percent-encoded, as browsers do.
fn url_in_utf8(url: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if std::str::from_utf8(&url).is_ok() {
        return url;
    }
    let mut made = Vec::with_capacity(url.len() + 16);
    for chunk in url.utf8_chunks() {
        made.extend_from_slice(chunk.valid().as_bytes());
        chunk.invalid().iter().for_each(|byte| made.extend_from_slice(format!("%{byte:02X}").as_bytes()));
    }
    Cow::Owned(made)
}

/// Returns an error if a key is invalid or not UTF-8. Keys are written to JSON, and their bytes are never replaced.
fn check_key(key: &[u8]) -> Result<(), String> {
    crate::input::place::check_key(key)?;
    // guard: a key of a row is UTF-8
    // without it: return Ok(());
    std::str::from_utf8(key).map(drop).map_err(|error| {
        let offset = error.valid_up_to();
        let byte = key[offset];
        format!(
            "not UTF-8: byte 0x{byte:02x} at offset {offset} of the key, and bytes of keys are never replaced"
        )
    })
}

/// Returns the requested values of a line, except key and text.
///
/// # Errors
///
/// The stamp is missing or invalid.
pub(crate) fn attached(form: Form, line: &[u8], parser: &Parser) -> anyhow::Result<OwnAttached> {
    let fields = &parser.fields;
    if !fields.attached.any() {
        return Ok(OwnAttached::default());
    }
    match form {
        Form::Json | Form::Html | Form::Element => fields.attached.of_json(&decoded_line(line, parser)),
        Form::Row(number) => {
            let header = parser.headers.row(number).context("its header is gone")?;
            match decoded_row(line, parser) {
                Some(decoded) => header.attached(decoded.text.as_bytes(), fields),
                None => header.attached(line, fields),
            }
        }
        Form::Archive { .. } => warc::attached(line, fields),
        Form::Arc => arc::attached(line, fields),
        Form::Columns(_) => {
            let parts = columns::parts(line, fields).context("it cannot be read again")?;
            Ok(parts.attached())
        }
    }
}

/// Returns the canonical link of the page in a line; `None` if the page has none.
///
/// # Errors
///
/// The line has no page but a text.
pub(crate) fn link(form: Form, line: &[u8], parser: &Parser) -> anyhow::Result<Option<String>> {
    let (bytes_max, charset) = (parser.record_bytes_max, parser.charset);
    let is_html = form == Form::Html || parser.text_form == TextForm::Html;
    let markup = match form {
        Form::Archive { .. } => return warc::link(line, bytes_max, charset).map_err(anyhow::Error::msg),
        Form::Arc => return arc::link(line, bytes_max, charset).map_err(anyhow::Error::msg),
        _ if !is_html => {
            bail!("--keep canonical compares HTML pages; give --text-form html if the texts are pages")
        }
        Form::Json | Form::Html | Form::Element => {
            let invalid = parser.invalid_utf8.of(form == Form::Html);
            let mut buffers = parse::LineBuffers::default();
            match parse::parse(line, &parser.fields, invalid, charset, &mut buffers) {
                Ok(parse::ParsedObject {
                    content: Content::Text(markup) | Content::Opaque { text: markup, .. },
                    ..
                }) => markup.to_owned(),
                _ => return Ok(None),
            }
        }
        Form::Row(number) => {
            let header = parser.headers.row(number).context("its header is gone")?;
            let decoded = decoded_row(line, parser);
            let line = decoded.as_ref().map_or(line, |decoded| decoded.text.as_bytes());
            let mut row = rows::RowFields::default();
            let (_, markup) = header.pick(line, &mut row).map_err(anyhow::Error::msg)?;
            String::from_utf8_lossy(markup).into_owned()
        }
        Form::Columns(_) => {
            let parts = columns::parts(line, &parser.fields).context("it cannot be read again")?;
            String::from_utf8_lossy(parts.text).into_owned()
        }
    };
    Ok(http::link_of_page(&markup))
}

/// Decodes a line of JSON to UTF-8.
fn decoded_line<'l>(line: &'l [u8], parser: &Parser) -> Cow<'l, str> {
    match std::str::from_utf8(line) {
        Ok(line) => Cow::Borrowed(line),
        Err(_) => charset::line(line, parser.charset).text,
    }
}

/// Returns the names of the fields of a record for messages.
pub(crate) fn fields_here(form: Form, line: &[u8], parser: &Parser) -> String {
    match form {
        Form::Json | Form::Html | Form::Element => parse::fields_here(&decoded_line(line, parser)),
        Form::Archive { .. } => {
            let names = warc::field_names(line);
            format!("fields here: {}", crate::input::place::listed(names.iter().map(|name| &**name)))
        }
        Form::Arc => format!("fields here: {}", arc::NAMES.join(", ")),
        // Rows lack no named column: their file was checked for all named columns when it was opened.
        Form::Row(_) | Form::Columns(_) => "a row".to_owned(),
    }
}

/// Returns the [`identity`](Content::identity) of the content in a line.
///
/// # Errors
///
/// The line is invalid; the message has the reason.
pub(crate) fn identity(form: Form, line: &[u8], parser: &Parser) -> anyhow::Result<Vec<u8>> {
    content_of_line(form, line, parser, |content| content.identity().into_owned())
}

/// Returns what `of` makes of the content in a line that was accepted before.
fn content_of_line<T>(
    form: Form,
    line: &[u8],
    parser: &Parser,
    of: impl FnOnce(Content<'_>) -> T,
) -> anyhow::Result<T> {
    AcceptedLines::new(parser).content(form, line, |_, content| of(content))
}

/// Parses lines that were accepted before.
pub(crate) struct AcceptedLines {
    parser: Parser,
    buffers: ParseBuffers,
}

impl AcceptedLines {
    pub(crate) fn new(parser: &Parser) -> Self {
        // Accepts a text that is decoded with loss, because the document was already accepted when it was first read.
        let mut parser = Parser { invalid_utf8: InvalidUtf8::Replace, ..parser.clone() };
        // Also accepts reserved fields, which lines of a history have, and a missing key, which may be in folder names.
        parser.fields.reserved.clear();
        parser.fields.ids = Ids::Line;
        Self { parser, buffers: ParseBuffers::default() }
    }

    /// Returns what `of` makes of the parser and the content in a line.
    fn content<T>(
        &mut self,
        form: Form,
        line: &[u8],
        of: impl FnOnce(&Parser, Content<'_>) -> T,
    ) -> anyhow::Result<T> {
        match understand(form, line, &self.parser, &mut self.buffers) {
            Ok(ParsedLine::Document { content, .. }) => Ok(of(&self.parser, content)),
            Ok(ParsedLine::NoDocument | ParsedLine::Revisit | ParsedLine::Skipped) => {
                Err(anyhow::anyhow!("no document any more"))
            }
            Ok(ParsedLine::MissingField(reason)) | Err(reason) => Err(anyhow::anyhow!("{reason}")),
        }
    }

    /// Returns whether the content in a line has this [`identity`](Parser::identity). False if the line is invalid.
    pub(crate) fn has_identity(&mut self, form: Form, line: &[u8], identity: &[u8]) -> bool {
        let is_same = |parser: &Parser, content: Content<'_>| *parser.identity(content) == *identity;
        self.content(form, line, is_same).unwrap_or(false)
    }
}
