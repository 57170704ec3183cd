//! The form of a document in its input.
//!
//! A record is passed on as a *line*: the bytes of the record as they are in the file (a line of JSON, a row of a CSV file,
//! a record of a web archive) or, for a Parquet file, which has no such bytes, the row's number with its key and text. A
//! [`Parser`](super::Parser) parses lines.

use super::place::PlaceUnit;

/// Suffix of Parquet files.
pub(super) const PARQUET: &str = "parquet";

/// The form of a document's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object: the line of a file, or made from a whole file.
    Json,
    /// An object made from a whole HTML file.
    Html,
    /// A row of a table; the number is that of its header in the `Headers`.
    Row(u32),
    /// A record of a web archive, which may have only texts (WET).
    Archive {
        /// Whether the records are texts, not pages.
        texts: bool,
    },
    /// A record of an ARC file.
    Arc,
    /// A row of a Parquet file; the number is that of the file in the `Headers`.
    Columns(u32),
}

impl Form {
    /// Returns the form as two numbers: the kind, and the number within the kind.
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

/// The ending of a line in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// A newline; also for records whose lines are generated.
    #[default]
    Newline,
    /// A carriage return and a newline.
    Crlf,
    /// The end of the file, without a newline.
    None,
}

impl Ending {
    /// Returns the bytes of the ending.
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::Crlf => b"\r\n",
            Self::None => b"",
        }
    }
}

impl Form {
    /// Returns the unit in which places in such files are counted.
    pub(super) fn unit(self) -> PlaceUnit {
        match self {
            Self::Json | Self::Html | Self::Row(_) => PlaceUnit::Line,
            Self::Archive { .. } | Self::Arc => PlaceUnit::Record,
            Self::Columns(_) => PlaceUnit::Row,
        }
    }
}
