//! Files that are one document each, before and after their content is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::archives::http;
use crate::input::open::folder::{self, Contents};
use crate::input::open::reader::{self, Origin, Reader};
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
#[derive(Debug)]
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

/// The reason why a file or document is skipped without counting as a bad record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassedOver {
    /// A file of a folder has a zero byte.
    Binary,
    /// A file of a folder is not UTF-8.
    NotUtf8,
    /// A named file is not UTF-8, and the options skip such files.
    Lossy,
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
        let (html, place) = (http::is_named_html(&name), Place::file(Arc::clone(&name)));
        let contents = Reader::open_verbatim(origin, &self.consumed)
            .and_then(|reader| folder::read_contents(reader, &options(parser, html)));
        let reason = match contents {
            Ok(Contents::Text(text)) => return Ok(document(self.key, text, html, place)),
            Ok(Contents::Binary { .. }) => return Ok(FileContent::PassedOver(PassedOver::Binary)),
            Ok(Contents::Lossy { .. }) => return Ok(FileContent::PassedOver(PassedOver::NotUtf8)),
            Ok(Contents::TooLong) => too_long(parser),
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
        Contents::Binary { is_tar: true, .. } => {
            "is a tar archive, which twindex does not decode: unpack it, as `tar -xf` does".to_owned()
        }
        Contents::Binary { offset, .. } => format!("not text: a zero byte at offset {offset}"),
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
