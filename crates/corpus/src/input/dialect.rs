//! The dialect of a table of text: delimiter, quote, escape and header.

use csv_core::{Reader, ReaderBuilder};

/// The options for the tables of an input. CSV has commas and quotes; TSV has tabs and, by its registration with IANA, no
/// quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The delimiter of fields; `None` for that of a first line `sep=`, or a comma or a tab.
    pub delimiter: Option<u8>,
    /// The quote around a field that contains delimiters or line ends.
    pub quote: Quote,
    /// The escape character before a quote inside a quoted field, in addition to doubled quotes.
    pub escape: Option<u8>,
    /// Whether the first row has the column names; if not, their names are their numbers, from 1.
    pub has_header: bool,
}

/// The quote around fields; see [`Dialect::quote`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// `"` in CSV, no quote in TSV.
    #[default]
    Usual,
    /// No quote: every line is a row, and a quote is an ordinary character.
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
    /// Whether the file is named as tab-separated.
    pub(super) is_tsv: bool,
}

impl RowDialect {
    /// Returns the dialect of a table, by its options and its format.
    pub(super) fn of(dialect: Dialect, is_tsv: bool) -> Self {
        let quote = match dialect.quote {
            Quote::Usual => (!is_tsv).then_some(b'"'),
            Quote::None => None,
            Quote::Byte(quote) => Some(quote),
        };
        let delimiter = dialect.delimiter.unwrap_or(if is_tsv { b'\t' } else { b',' });
        Self { delimiter, quote, escape: dialect.escape, has_header: dialect.has_header, is_tsv }
    }

    /// Returns a row of these fields, from which a reader of this dialect restores them. Quotes a field only if necessary.
    pub(super) fn row(self, fields: &[Vec<u8>]) -> Vec<u8> {
        let mut row = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            if number > 0 {
                row.push(self.delimiter);
            }
            let is_special =
                |byte: &u8| [b'\n', b'\r', self.delimiter].contains(byte) || Some(*byte) == self.quote;
            // A row of one empty field would be a blank line.
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
