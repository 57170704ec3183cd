//! Files that are one document each, before and after their content is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::archives::http;
use crate::input::open::folder::{self, Contents};
use crate::input::open::kind::is_named_as_text;
use crate::input::open::reader::{self, Foreign, Origin, Packing, Reader};
use crate::input::parser::Parser;
use crate::input::place::{LOSSY_ADVICE, Place, Problem, check_key};
use crate::input::text::lossy::InvalidUtf8;

/// A file that is a single document.
#[derive(Debug)]
pub(crate) struct WholeFile {
    pub(crate) key: Vec<u8>,
    pub(crate) text: folder::FileText,
    /// Whether the text is HTML.
    pub(crate) html: bool,
    pub(crate) place: Place,
}

/// A regular file that is a single document and was not yet read.
#[derive(Debug, Default)]
pub(crate) struct UnreadFile {
    pub(crate) path: PathBuf,
    pub(crate) key: Vec<u8>,
    /// Whether the user named the file. A named file must be text; a file of a folder that is not text is skipped.
    pub(crate) is_named: bool,
    /// The size of the file in bytes when it was listed.
    pub(crate) bytes: u64,
    /// The counter of bytes read from all inputs.
    pub(crate) consumed: Arc<AtomicU64>,
}

/// The result of reading a file that is a single document.
pub(crate) enum FileContent {
    Document(WholeFile),
    Bad(Problem),
    PassedOver(PassedOver),
}

/// A file that is skipped without counting as a bad record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PassedOver {
    /// A file of a folder is no text.
    NoText(Place, NoText),
    /// A file is not UTF-8, and the options skip such files.
    Lossy,
}

/// The reason why a file of a folder is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoText {
    /// It has a zero byte.
    Binary,
    NotUtf8,
    Foreign(Foreign),
    /// It is not compressed as its name says, or cannot be decompressed.
    Packed,
}

impl UnreadFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// A named file cannot be opened or read. If a file of a folder cannot be read, it is a bad record instead.
    pub(crate) fn read(self, parser: &Parser) -> Result<FileContent, Problem> {
        let origin = Origin::File(self.path);
        if self.is_named {
            return read_named(origin, self.key, parser, &self.consumed);
        }
        let name = origin.name();
        let is_packed = Packing::promised(&name).is_some();
        let html = http::is_named_html(&reader::without_compression(&name));
        let is_text = is_named_as_text(&name);
        let place = Place::file(name);
        // Without a suffix, the bytes of a file of a folder do not say that it is compressed: it may be a file of tests.
        let reader = if is_packed {
            Reader::open(origin, &self.consumed)
        } else {
            Reader::open_verbatim(origin, &self.consumed)
        };
        let contents = reader.and_then(|reader| folder::read_contents(reader, &options(parser, html)));
        let no_text = |why| Ok(FileContent::PassedOver(PassedOver::NoText(place.clone(), why)));
        let reason = match contents {
            Ok(Contents::Text(text)) => return Ok(document(self.key, text, html, place)),
            Ok(Contents::Foreign(foreign)) => return no_text(NoText::Foreign(foreign)),
            Ok(Contents::Binary { .. }) => return no_text(NoText::Binary),
            Ok(Contents::Lossy { .. }) if parser.invalid_utf8 == InvalidUtf8::Skip => {
                return Ok(FileContent::PassedOver(PassedOver::Lossy));
            }
            Ok(Contents::Lossy { .. }) => return no_text(NoText::NotUtf8),
            Ok(Contents::TooLong) => too_long(parser),
            // Folders of code have damaged archives among their tests. A file that is named as a text is one.
            Err(_) if is_packed && !is_text => return no_text(NoText::Packed),
            Err(problem) => return Ok(FileContent::Bad(problem)),
        };
        Ok(FileContent::Bad(Problem { place, reason }))
    }
}

/// Reads a named input that is a single document. If the input is not text, it is a bad record or, by option, skipped.
///
/// # Errors
///
/// The input cannot be opened or read.
pub(crate) fn read_named(
    origin: Origin,
    key: Vec<u8>,
    parser: &Parser,
    consumed: &Arc<AtomicU64>,
) -> Result<FileContent, Problem> {
    let name = origin.name();
    let html = http::is_named_html(&reader::without_compression(&name));
    let place = Place::file(name);
    let contents = folder::read_contents(Reader::open(origin, consumed)?, &options(parser, html))?;
    let reason = match contents {
        Contents::Text(text) => return Ok(document(key, text, html, place)),
        Contents::Lossy { .. } if parser.invalid_utf8 == InvalidUtf8::Skip => {
            return Ok(FileContent::PassedOver(PassedOver::Lossy));
        }
        Contents::Foreign(foreign) => foreign.refusal(),
        Contents::Binary { offset } => format!("not text: a zero byte at offset {offset}"),
        Contents::Lossy { offset: Some(offset) } => {
            format!("not UTF-8: a bad byte at offset {offset} ({LOSSY_ADVICE})")
        }
        Contents::Lossy { offset: None } => format!("not in the encoding that is said ({LOSSY_ADVICE})"),
        Contents::TooLong => too_long(parser),
    };
    Ok(FileContent::Bad(Problem { place, reason }))
}

/// Creates a document from the text of a file and its key. If the key is invalid, the file is a bad record.
fn document(key: Vec<u8>, text: folder::FileText, html: bool, place: Place) -> FileContent {
    match check_key(&key) {
        Ok(()) => FileContent::Document(WholeFile { key, text, html, place }),
        Err(reason) => FileContent::Bad(Problem { place, reason }),
    }
}

fn options(parser: &Parser, html: bool) -> folder::FileReadOptions {
    folder::FileReadOptions {
        bytes_max: parser.record_bytes_max,
        invalid: parser.invalid_utf8.of(html),
        charset: parser.charset,
        html,
    }
}

fn too_long(parser: &Parser) -> String {
    format!("a text of more than {} bytes", parser.record_bytes_max)
}
