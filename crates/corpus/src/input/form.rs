//! How a document stood in its input.
//!
//! Whatever is read in records is handed on as a *line*: the bytes of the record as they are in the file (a line
//! of JSON, a row of a CSV file, a record of a web archive), or, of a Parquet file, which has no such bytes, the
//! row's number with its key and text. A [`Parser`](super::Parser) finds out what a line says.

use super::place::PlaceUnit;

/// The end of the names of Parquet files.
pub(super) const PARQUET: &str = "parquet";

/// The form of a document's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object of JSON: the line of a file, or made of a whole file.
    Json,
    /// An object made of a whole file of HTML.
    Html,
    /// A row of a table, whose header is at this number in the `Headers`.
    Row(u32),
    /// A record of a web archive, which may consist of texts only (WET).
    Archive {
        /// Whether they are texts, not pages.
        texts: bool,
    },
    /// A record of an ARC file.
    Arc,
    /// A row of a Parquet file, which is at this number in the `Headers`.
    Columns(u32),
}

impl Form {
    /// It as two numbers: of the kind, and within the kind.
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

/// How a line ends in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// With a newline; also records whose lines are generated.
    #[default]
    Newline,
    /// With a carriage return and a newline.
    Crlf,
    /// With the file.
    None,
}

impl Ending {
    /// The bytes of it.
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::Crlf => b"\r\n",
            Self::None => b"",
        }
    }
}

impl Form {
    /// The unit in which places of such files are counted.
    pub(super) fn unit(self) -> PlaceUnit {
        match self {
            Self::Json | Self::Html | Self::Row(_) => PlaceUnit::Line,
            Self::Archive { .. } | Self::Arc => PlaceUnit::Record,
            Self::Columns(_) => PlaceUnit::Row,
        }
    }
}
