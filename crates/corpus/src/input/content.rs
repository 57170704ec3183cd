//! The format of a document in its input, and the content that is compared.

use std::borrow::Cow;

use crate::input::fields::features::Features;
use crate::input::fields::fingerprint::Code;
use crate::input::place::PlaceUnit;
use crate::input::text::lossy::{ABSENT, LONG_FINGERPRINT};

/// The content of a document that is compared.
#[derive(Clone, Copy, Debug)]
pub enum Content<'r> {
    /// A text.
    Text(&'r str),
    /// Features that the caller computed.
    Features(&'r Features),
    /// A fingerprint that the caller computed.
    Fingerprint(Code),
    /// A text that does not represent the whole document, because bytes were replaced with U+FFFD or an HTML page has
    /// no visible text. Two such documents are equal only if their original bytes are equal. Also the content of a
    /// record without a fingerprint or features, which equals only that of another with the same key.
    Opaque {
        /// The visible text.
        text: &'r str,
        /// The original bytes, after a prefix byte that no text can begin with.
        identity: &'r [u8],
    },
}

impl<'r> Content<'r> {
    /// The content of a record without a fingerprint or features, before its key is known.
    pub(crate) const ABSENT: Self = Self::Opaque { text: "", identity: ABSENT };

    /// Returns whether the text does not represent the whole document.
    #[must_use]
    pub fn is_opaque(self) -> bool {
        matches!(self, Self::Opaque { .. })
    }

    /// Returns the length in bytes of the text, of the names of all features, or of the fingerprint.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Text(text) | Self::Opaque { text, .. } => text.len(),
            Self::Features(features) => features.bytes(),
            Self::Fingerprint(fingerprint) => fingerprint.bits() / 8,
        }
    }

    /// Returns bytes that identify the content: two texts, two sets or vectors of features, or two fingerprints have
    /// equal bytes if and only if they are equal.
    #[must_use]
    pub fn identity(self) -> Cow<'r, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Features(features) => Cow::Owned(features.canonical()),
            Self::Fingerprint(fingerprint) if fingerprint.bits() > 64 => {
                Cow::Owned([vec![LONG_FINGERPRINT], fingerprint.to_bytes()].concat())
            }
            Self::Fingerprint(fingerprint) => Cow::Owned(fingerprint.to_bytes()),
            Self::Opaque { identity, .. } => Cow::Borrowed(identity),
        }
    }

    /// Returns the content as text for people: of features their names, of a fingerprint its digits.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Opaque { text, .. } => (*text).to_owned(),
            Self::Features(features) => {
                features.names().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
            }
            Self::Fingerprint(fingerprint) => fingerprint.to_string(),
        }
    }
}

/// A line and its offset in its file. Only lines of regular, uncompressed files have an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundLine<'l> {
    pub(crate) line: &'l [u8],
    pub(crate) offset: Option<u64>,
    pub(crate) ending: Ending,
}

/// The information that was lost when a document was converted to text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    None,
    /// Bytes that are invalid in the encoding were replaced.
    Bytes,
    /// The page has no visible text.
    Unseen,
}

/// File name suffixes of Parquet files and of Arrow IPC files.
pub(crate) const PARQUET: &str = "parquet";
pub(crate) const ARROW: &str = "arrow";

/// The format of a line. A line is the bytes that represent a document in its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object: a line of a file, or generated from a whole file.
    Json,
    /// A JSON object generated from a whole HTML file.
    Html,
    /// An object in a JSON array, or of several lines in its file, without ends of lines.
    Element,
    /// A row of a table. The number is the index of the table's header in the `Headers`.
    Row(u32),
    /// A record of a WARC or WET file.
    Archive {
        /// Whether the records contain texts (WET) instead of pages.
        texts: bool,
    },
    /// A record of an ARC file.
    Arc,
    /// A row of a Parquet or Arrow file. The number is the index of the file in the `Headers`.
    Columns(u32),
}

impl Form {
    /// Returns the form as two numbers: the number of the variant, and its payload. The payload is the index of the
    /// header or file, or 1 for archives of texts. A variant without payload has 0.
    #[must_use]
    pub fn numbers(self) -> [u32; 2] {
        match self {
            Self::Json => [0, 0],
            Self::Html => [1, 0],
            Self::Row(header) => [2, header],
            Self::Archive { texts } => [3, texts.into()],
            Self::Columns(file) => [4, file],
            Self::Arc => [5, 0],
            Self::Element => [6, 0],
        }
    }

    /// Returns the form with these [`numbers`](Self::numbers).
    pub(crate) fn of_numbers([kind, number]: [u32; 2]) -> Self {
        match kind {
            0 => Self::Json,
            1 => Self::Html,
            2 => Self::Row(number),
            3 => Self::Archive { texts: number != 0 },
            5 => Self::Arc,
            6 => Self::Element,
            _ => Self::Columns(number),
        }
    }
}

/// The line ending that follows a line in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// A newline. Generated lines have this ending, too.
    #[default]
    Newline,
    /// A carriage return and a newline.
    Crlf,
    /// The end of the file, without a newline.
    None,
}

impl Ending {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::Crlf => b"\r\n",
            Self::None => b"",
        }
    }
}

impl Form {
    /// Returns the unit in which positions in files of this form are counted.
    pub(crate) fn unit(self) -> PlaceUnit {
        match self {
            Self::Json | Self::Html | Self::Row(_) => PlaceUnit::Line,
            Self::Archive { .. } | Self::Arc | Self::Element => PlaceUnit::Record,
            Self::Columns(_) => PlaceUnit::Row,
        }
    }
}
