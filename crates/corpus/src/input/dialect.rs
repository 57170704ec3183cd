//! The dialect of a table in text format: delimiter, quote, escape character and header.

use csv_core::{Reader, ReaderBuilder};

/// Options for the tables of an input. By default, CSV has commas and quotes; TSV has tabs and, as registered with
/// IANA, no quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The delimiter of fields. `None` uses the delimiter in a first line `sep=`, or else a comma for CSV and a tab for
    /// TSV.
    pub delimiter: Option<u8>,
    /// The quote character around fields that contain delimiters or line ends.
    pub quote: Quote,
    /// The escape character before a quote inside a quoted field. Doubled quotes are accepted in addition.
    pub escape: Option<u8>,
    /// Whether the first row contains the column names. If not, the names of columns are their numbers, from 1.
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

/// The dialect of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowDialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) has_header: bool,
    /// Whether the file name says that the table is tab-separated.
    pub(super) is_tsv: bool,
}

impl RowDialect {
    /// Returns the dialect of a table, given its options and its format.
    pub(super) fn of(dialect: Dialect, is_tsv: bool) -> Self {
        let quote = match dialect.quote {
            Quote::Usual => (!is_tsv).then_some(b'"'),
            Quote::None => None,
            Quote::Byte(quote) => Some(quote),
        };
        let delimiter = dialect.delimiter.unwrap_or(if is_tsv { b'\t' } else { b',' });
        Self { delimiter, quote, escape: dialect.escape, has_header: dialect.has_header, is_tsv }
    }

    /// Returns a row with these fields, from which a reader of this dialect restores the fields. Quotes fields only if
    /// necessary.
    pub(super) fn row(self, fields: &[Vec<u8>]) -> Vec<u8> {
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

    /// Returns a reader for this dialect.
    pub(super) fn reader(self) -> Reader {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).escape(self.escape);
        match self.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        builder.build()
    }
}
