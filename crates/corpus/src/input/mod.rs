//! Reads documents for all commands.
//!
//! ```text
//! PATH            is                                          its documents
//! *.jsonl         JSON lines; so are .ndjson, .jl, .json      one per line, key = the id field; a .json file may also
//!                                                             be one array, with a document per object
//! *.csv, *.tsv    a table whose first row names the columns   one per row, key = the id column
//! *.parquet       a table; so are .arrow, .feather, .ipc      one per row, key = the id column
//! *.wet, *.warc   a web archive; so is .arc                   one per text or page, key = its URL
//! FOLDER          every regular file below it, in order       as of the files, if all are records of one format;
//!                                                             else one per file, key = the path below FOLDER
//! -               standard input; so is any named pipe        as JSON lines
//! *.html          a page; so are .htm and .xhtml              one, its visible text
//! *.txt, ...      plain text                                  one, key = the path as given
//! anything else   records or one text, detected from its      as detected; a note reports it
//!                 first bytes
//! ```
//!
//! A file whose name ends in `.gz`, `.zst` or `.zstd` is decompressed, and its key omits this suffix. Inside a folder
//! of texts, a compressed file is skipped as binary. [`InputFormat`] overrides the format that file names indicate.
//! Texts are UTF-8; a byte order mark at the start of a text is removed.
//!
//! There are two kinds of errors. A *bad record* affects a single document, for example a missing field, invalid JSON,
//! or a file in a folder that cannot be opened. Up to [`InputOptions::skip_bad`] bad records are skipped. Any other
//! error, for example truncated gzip data or a failing disk, ends the reading. Files in folders that are not text are
//! not errors: they are skipped and counted.
//!
//! Reading and parsing are separate. [`Documents`] reads [`Batch`]es in order. Any thread can parse the lines in a
//! chunk of a batch. [`Documents::account`] takes the counts of the chunks of an input in their order.

pub(crate) mod archives;
pub(crate) mod arrow;
pub(crate) mod batch;
pub(crate) mod columns;
pub(crate) mod content;
pub(crate) mod counts;
pub(crate) mod documents;
pub(crate) mod fields;
pub(crate) mod headers;
pub(crate) mod inputs;
pub(crate) mod jsonl;
pub(crate) mod kept;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod parquet;
pub(crate) mod parser;
pub(crate) mod part_counts;
pub(crate) mod partition;
pub(crate) mod place;
pub(crate) mod records;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod whole_files;

pub use archives::revisit::revisit;
pub use batch::{BATCH_BYTES, Batch, Buffers, ChunkTotals, Record};
pub use content::{Content, Ending, Form};
pub use counts::{Counts, Forms, NamedFields};
pub use documents::Documents;
pub use fields::attached::{AttachedFields, OwnAttached};
pub use fields::deciding::{DecidingFields, DecidingNumber, DecidingValues, UrlPart, inside_of};
pub use fields::features::Features;
pub use fields::fingerprint::{Code, FingerprintField, FingerprintForm};
pub use fields::names::{FieldPath, Selection};
pub use fields::number::FieldNumber;
pub use fields::record::Ids;
pub use jsonl::lines::TableLines;
pub use kept::annotate::{AnnotatedFields, Annotation, AnnotationOptions, DocumentNote};
pub use kept::files::KEPT;
pub use kept::rewritten;
pub use kept::writer::{KeptBlock, KeptWriter};
pub use open::kind::Kind;
pub use open::reader::Compression;
pub use options::{InputFormat, InputKinds, InputOptions};
pub use parser::Parser;
pub use place::{Place, bad_at};
pub use tables::dialect::{Dialect, Quote};
pub use text::charset::Charset;
pub use text::cuts::Cuts;
pub use text::lossy::InvalidUtf8;
