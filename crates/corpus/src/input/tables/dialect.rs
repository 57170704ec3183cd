//! The dialect of a table in text format: delimiter, quote, escape character and header.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use csv_core::{Reader, ReaderBuilder, Terminator};

use crate::work::tsv;

/// Options for the tables of an input. By default, CSV has commas and quotes, and TSV has tabs and no quotes, as in its
/// registration with IANA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The delimiter of fields. If `None`, a first line `sep=` sets the delimiter. Without this line, it is a comma for
    /// CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// The quote character around fields that contain delimiters or line ends.
    pub quote: Quote,
    /// The escape character before a quote inside a quoted field; doubled quotes are accepted, too. In a table without
    /// quotes, the character that escapes delimiters and line ends, and begins `\N`, which is null.
    pub escape: Option<u8>,
    /// Whether the first row contains the column names. If not, columns are named by their numbers, from 1.
    pub has_header: bool,
}

/// The quote character; see [`Dialect::quote`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// `"` in CSV, no quote in TSV.
    #[default]
    Usual,
    /// No quote: every line is a row, and quotes are ordinary characters.
    None,
    /// This character.
    Byte(u8),
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: None, quote: Quote::Usual, escape: None, has_header: true }
    }
}

/// Parses settings such as `delimiter=;`, separated by commas.
impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut dialect = Self::default();
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("delimiter", character)) => dialect.delimiter = Some(byte_named(character)?),
                Some(("quote", "none")) => dialect.quote = Quote::None,
                Some(("quote", character)) => dialect.quote = Quote::Byte(byte_named(character)?),
                Some(("escape", character)) => dialect.escape = Some(byte_named(character)?),
                None if part == "no-header" => dialect.has_header = false,
                _ => {
                    return Err(format!(
                        "expected delimiter=CHAR, quote=CHAR, quote=none, escape=CHAR or no-header, or several of them \
                         joined by commas, found {part:?}"
                    ));
                }
            }
        }
        Ok(dialect)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delimiter, quote, escape, has_header } = *self;
        let quote = match quote {
            Quote::Usual => None,
            Quote::None => Some("none".to_owned()),
            Quote::Byte(byte) => Some(name_of(byte)),
        };
        let named =
            [("delimiter", delimiter.map(name_of)), ("quote", quote), ("escape", escape.map(name_of))];
        let named = named.into_iter().filter_map(|(part, value)| Some(format!("{part}={}", value?)));
        let parts: Vec<String> = named.chain((!has_header).then(|| "no-header".to_owned())).collect();
        f.write_str(&parts.join(","))
    }
}

/// Bytes that are written as an escape character and a letter in tables without quotes.
const ESCAPED: [(u8, u8); 6] =
    [(b'\t', b't'), (b'\n', b'n'), (b'\r', b'r'), (0, b'0'), (0x08, b'b'), (0x0c, b'f')];

/// Characters that have names in the text form of a dialect.
const NAMES_OF_BYTES: [(&str, u8); 3] = [("tab", b'\t'), ("comma", b','), ("space", b' ')];

fn byte_named(text: &str) -> Result<u8, String> {
    let named = NAMES_OF_BYTES.iter().find(|(name, _)| *name == text).map(|&(_, byte)| byte);
    let byte = named.or(match *text.as_bytes() {
        [byte] if byte.is_ascii() && !b"\r\n".contains(&byte) => Some(byte),
        _ => None,
    });
    byte.ok_or_else(|| format!("expected one character of ASCII, or tab, comma or space, found {text:?}"))
}

fn name_of(byte: u8) -> String {
    let named = NAMES_OF_BYTES.iter().find(|(_, named)| *named == byte);
    named.map_or_else(|| char::from(byte).to_string(), |(name, _)| (*name).to_owned())
}

/// The dialect of one table. Defaults are replaced by their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowDialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) has_header: bool,
    /// Whether the table is tab-separated (TSV) according to its format.
    pub(crate) is_tsv: bool,
}

impl RowDialect {
    /// Resolves the options for a table. `is_tsv` is whether its format is TSV.
    pub(crate) fn of(dialect: Dialect, is_tsv: bool) -> Self {
        let quote = match dialect.quote {
            Quote::Usual => (!is_tsv).then_some(b'"'),
            Quote::None => None,
            Quote::Byte(quote) => Some(quote),
        };
        let delimiter = dialect.delimiter.unwrap_or(if is_tsv { b'\t' } else { b',' });
        Self { delimiter, quote, escape: dialect.escape, has_header: dialect.has_header, is_tsv }
    }

    /// Returns the escape character if the table has no quotes, as dumps of databases: it makes a letter a control character
    /// (`\t`), any other byte an ordinary one, and `\N` is null.
    pub(crate) fn bare_escape(self) -> Option<u8> {
        self.escape.filter(|_| self.quote.is_none())
    }

    /// Appends a field to a row, so that a reader of this dialect returns the same field. Quotes it only if necessary. If
    /// the table has neither quotes nor escapes, tabs and line ends are escaped as in the tables of results.
    ///
    /// # Errors
    ///
    /// The field has the delimiter, and the dialect cannot express it.
    pub(crate) fn push_field(self, row: &mut Vec<u8>, field: &[u8]) -> Result<(), String> {
        let Some(quote) = self.quote else {
            if let Some(escape) = self.escape {
                self.push_escaped(row, field, escape);
                return Ok(());
            }
            if self.delimiter != b'\t' && field.contains(&self.delimiter) {
                return Err(format!(
                    "a table without quotes cannot hold the field \"{}\", which has the delimiter; set --dialect quote",
                    field.escape_ascii()
                ));
            }
            // Writing to memory does not fail.
            let _ = tsv::write_field(row, field);
            return Ok(());
        };
        let is_special =
            |byte: &u8| [self.delimiter, quote, b'\r', b'\n'].contains(byte) || Some(*byte) == self.escape;
        if !field.iter().any(is_special) {
            row.extend_from_slice(field);
            return Ok(());
        }
        row.push(quote);
        for &byte in field {
            if byte == quote || Some(byte) == self.escape {
                row.push(self.escape.unwrap_or(quote));
            }
            row.push(byte);
        }
        row.push(quote);
        Ok(())
    }

    fn push_escaped(self, row: &mut Vec<u8>, field: &[u8], escape: u8) {
        for &byte in field {
            match ESCAPED.iter().find(|(plain, _)| *plain == byte) {
                Some(&(_, letter)) => row.extend_from_slice(&[escape, letter]),
                None if [escape, self.delimiter].contains(&byte) => row.extend_from_slice(&[escape, byte]),
                None => row.push(byte),
            }
        }
    }

    /// Appends the value of a field that is written with escapes and without quotes. Null is empty.
    pub(crate) fn unescape(field: &[u8], escape: u8, value: &mut Vec<u8>) {
        if *field == [escape, b'N'] {
            return;
        }
        let mut bytes = field.iter();
        while let Some(&byte) = bytes.next() {
            let escaped = if byte == escape { bytes.next() } else { None };
            value.push(match escaped {
                Some(letter) => {
                    ESCAPED.iter().find(|(_, known)| known == letter).map_or(*letter, |&(plain, _)| plain)
                }
                None => byte,
            });
        }
    }

    /// Returns the ranges of the fields of a row, with their quotes and escapes, and whether the row ends inside quotes, by
    /// the rules of `csv-core`: a quote opens a quoted field only at the start of the field, and two quotes inside the
    /// field stand for one.
    pub(crate) fn raw_fields(self, row: &[u8]) -> (Vec<Range<usize>>, bool) {
        let (mut fields, mut start, mut quoted) = (Vec::new(), 0, false);
        let mut bytes = row.iter().copied().enumerate().peekable();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                byte if Some(byte) == self.escape && (quoted || self.quote.is_none()) => drop(bytes.next()),
                byte if Some(byte) == self.quote && quoted => {
                    quoted = bytes.next_if(|&(_, next)| next == byte).is_some();
                }
                byte if Some(byte) == self.quote => quoted = at == start,
                byte if byte == self.delimiter && !quoted => {
                    fields.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
        }
        fields.push(start..row.len());
        (fields, quoted)
    }

    pub(crate) fn reader(self) -> Reader {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).escape(self.escape);
        match self.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        if self.bare_escape().is_some() {
            builder.terminator(Terminator::Any(b'\n')); // a carriage return may be part of a field
        }
        builder.build()
    }
}
