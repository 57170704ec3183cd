//! The form of a document in its input.
//!
//! A record is represented by a *line*: its bytes as they are in the file, such as a line of JSON, a row of a CSV file,
//! or a record of a web archive. A row of a Parquet file has no such bytes, so its line consists of the row number, the
//! key and the text. [`Parser`](super::Parser) parses lines.

use super::place::PlaceUnit;

/// File name suffix of Parquet files.
pub(super) const PARQUET: &str = "parquet";

/// The form of a document's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object: a line of a file, or generated from a whole file.
    Json,
    /// A JSON object generated from a whole HTML file.
    Html,
    /// A row of a table. The number is the index of the table's header in the `Headers`.
    Row(u32),
    /// A record of a WARC or WET file.
    Archive {
        /// Whether the records contain texts (WET) instead of pages.
        texts: bool,
    },
    /// A record of an ARC file.
    Arc,
    /// A row of a Parquet file. The number is the index of the file in the `Headers`.
    Columns(u32),
}

impl Form {
    /// Returns the form as two numbers: the kind of form, and the index of the header, or a flag.
    #[must_use]
    pub fn numbers(self) -> [u32; 2] {
        match self {
            Self::Json => [0, 0],
            Self::Html => [1, 0],
            Self::Row(header) => [2, header],
            Self::Archive { texts } => [3, texts.into()],
            Self::Columns(file) => [4, file],
            Self::Arc => [5, 0],
        }
    }
}

/// The line ending that follows a line in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// A newline. Also used for lines that are generated.
    #[default]
    Newline,
    /// A carriage return and a newline.
    Crlf,
    /// The end of the file, without a newline.
    None,
}

impl Ending {
    /// Returns the bytes of the line ending.
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::Crlf => b"\r\n",
            Self::None => b"",
        }
    }
}

impl Form {
    /// Returns the unit of positions in files of this form.
    pub(super) fn unit(self) -> PlaceUnit {
        match self {
            Self::Json | Self::Html | Self::Row(_) => PlaceUnit::Line,
            Self::Archive { .. } | Self::Arc => PlaceUnit::Record,
            Self::Columns(_) => PlaceUnit::Row,
        }
    }
}
