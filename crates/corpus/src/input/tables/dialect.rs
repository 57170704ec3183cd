//! The dialect of a table in text format: delimiter, quote, escape character and header.

use std::fmt;
use std::str::FromStr;

use csv_core::{Reader, ReaderBuilder};

/// Options for the tables of an input. By default, CSV has commas and quotes, and TSV has tabs and no quotes, as in its
/// registration with IANA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The delimiter of fields. If `None`, a first line `sep=` sets the delimiter. Without this line, it is a comma for
    /// CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// The quote character around fields that contain delimiters or line ends.
    pub quote: Quote,
    /// The escape character before a quote inside a quoted field. Doubled quotes are accepted, too.
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

    /// Formats fields as a row, so that a reader of this dialect returns the same fields. Quotes a field only if
    /// necessary.
    pub(crate) fn row(self, fields: &[Vec<u8>]) -> Vec<u8> {
        let mut row = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            if number > 0 {
                row.push(self.delimiter);
            }
            let is_special =
                |byte: &u8| [b'\n', b'\r', self.delimiter].contains(byte) || Some(*byte) == self.quote;
            // A row with one empty field would be a blank line, so the field is quoted.
            let is_alone = fields.len() == 1 && field.is_empty();
            match self.quote {
                Some(quote) if is_alone || field.iter().any(is_special) => {
                    row.push(quote);
                    for &byte in field {
                        if byte == quote {
                            row.push(quote);
                        } else if Some(byte) == self.escape {
                            row.push(byte);
                        }
                        row.push(byte);
                    }
                    row.push(quote);
                }
                Some(_) | None => row.extend_from_slice(field),
            }
        }
        row
    }

    pub(crate) fn reader(self) -> Reader {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).escape(self.escape);
        match self.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        builder.build()
    }
}
