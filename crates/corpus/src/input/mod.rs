//! Reads documents for all commands.
//!
//! ```text
//! PATH            is                                          its documents
//! *.jsonl         JSON lines; so are .ndjson, .jl, .json      one per line, key = the id field
//! *.csv, *.tsv    a table whose first row names the columns   one per row, key = the id column
//! *.parquet       a table                                     one per row, key = the id column
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
//! A file whose name ends in `.gz`, `.zst` or `.zstd` is decompressed, and this suffix is not part of its key. Inside a
//! folder of texts, a compressed file is treated as binary. [`InputFormat`] overrides the file names. Texts are UTF-8;
//! a byte order mark at the start of a text is removed.
//!
//! There are two kinds of errors. A *bad record* affects a single document, such as a missing field, invalid JSON, or a
//! file in a folder that cannot be opened. Up to [`InputOptions::skip_bad`] bad records are skipped. Any other error,
//! such as a truncated archive or a failing disk, ends the reading. Files in folders that are not text are not errors:
//! they are skipped and counted.
//!
//! Reading and parsing are separate. [`Documents`] reads [`Batch`]es in order. Any thread can parse the lines in a
//! chunk of a batch. [`Documents::account`] takes the counts of the chunks in the order of the input.

mod annotate;
mod arc;
mod archive;
mod attached;
mod batch;
mod charset;
mod columns;
mod compressed;
mod content;
mod cuts;
mod deciding;
mod decoded;
mod dialect;
mod features;
mod field_number;
mod field_value;
mod fields;
mod fingerprint;
mod folder;
mod form;
mod headers;
#[cfg(feature = "html")]
mod html;
mod http;
mod jsonl;
mod kept;
mod kept_keys;
mod kept_names;
mod leaves;
mod lossy;
mod medium;
mod nested;
mod notes;
mod open;
mod packed;
mod parser;
mod partition;
mod patterns;
mod place;
mod revisit;
pub mod rewritten;
mod rows;
mod rows_cut;
mod rows_kept;
mod scan;
mod seen;
mod selection;
mod sniff;
mod thrift;
mod times;
mod warc;
mod window;
mod without_effect;

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{anyhow, bail};
use serde::Serialize;
use twindex::params::{NormalForm, Shingling};
use twindex::sketch::Cutter;
use twindex::sketch::cut::{Letters, letters};

use crate::error::InvalidOptions;
use crate::numbers::{count, counted};
pub use annotate::{AnnotatedFields, Annotation, AnnotationOptions, DocumentNote};
use attached::HasField;
pub use attached::{AttachedFields, OwnAttached};
use batch::WholeFile;
pub use batch::{BATCH_BYTES, Batch, Buffers, ChunkTotals, Record};
pub use charset::Charset;
pub use content::Content;
pub use cuts::Cuts;
pub use deciding::{DecidingFields, DecidingValues, UrlPart, inside_of};
use dialect::RowDialect;
pub use dialect::{Dialect, Quote};
pub use features::Features;
pub use field_number::FieldNumber;
pub use fields::Ids;
pub use fingerprint::{FingerprintField, FingerprintForm};
use folder::Contents;
pub use form::{Ending, Form};
use headers::Headers;
use jsonl::JsonLines;
pub use kept::{KeptBlock, KeptWriter};
use kept_keys::KeptKeys;
pub use kept_keys::{SUFFIX as SUFFIX_OF_KEYS, is_name as is_name_of_keys};
pub use kept_names::{
    ANNOTATED, KEPT, MARKED, is_name as is_name_of_kept, is_name_of_annotated, is_name_of_marked,
};
pub use open::Compression;
use open::{Origin, Reader};
pub use parser::Parser;
use patterns::Patterns;
pub use place::Place;
pub use revisit::revisit;
use seen::FieldsSeen;
pub use selection::{FieldPath, Selection};
use window::Window;
pub use without_effect::InputKinds;

/// Maximum length of a key in bytes; it is the limit of the index.
const KEY_BYTES_MAX: usize = 65_535;
/// Default name of the key field.
const ID_FIELD: &str = "id";
/// Default name of the text field.
const TEXT_FIELD: &str = "text";
/// Number of column names that a message shows of a table without the wanted column, and number of characters of each.
const NAMES_SHOWN: usize = 8;
const NAME_CHARACTERS_SHOWN: usize = 40;
/// Number of bad records that the summary lists.
const BAD_KEPT: usize = 5;
/// Number of bytes at the start and at the end of a long reason that a message shows.
const REASON_BEGINNING: usize = 600;
const REASON_END: usize = 300;

/// The treatment of a text with bytes that are invalid in its encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidUtf8 {
    /// [`InvalidUtf8::Replace`] for HTML pages and web archives, [`InvalidUtf8::Error`] for other inputs.
    #[default]
    Usual,
    /// A line or a named file with invalid bytes is a bad record. Files in folders are skipped.
    Error,
    /// Each maximal invalid part of a character, and each byte that cannot begin a character, is replaced with U+FFFD.
    /// Invalid bytes in keys are an error. `dedup` compares such a text only for equality of its bytes.
    Replace,
    /// The text is skipped and counted.
    Skip,
}

impl InvalidUtf8 {
    /// Returns the treatment in pages and archives, or in other inputs.
    fn of(self, is_page_or_archive: bool) -> Self {
        match self {
            Self::Usual if is_page_or_archive => Self::Replace,
            Self::Usual => Self::Error,
            said => said,
        }
    }
}

/// The advice in messages about texts with invalid bytes.
const LOSSY_ADVICE: &str = "--encoding LABEL, if it is in another encoding; --invalid-utf8 replace takes it, and compares it by \
                            its bytes alone";

/// The message about records in UTF-16.
const UTF16_ADVICE: &str =
    "UTF-16, in which records are not read: convert it, as `iconv -f UTF-16 -t UTF-8` does";

/// The loss in the conversion of a document to text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    None,
    /// Bytes that are invalid in the encoding.
    Bytes,
    /// The whole page, because it shows no text.
    Unseen,
}

/// Selects the format of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputFormat {
    /// From the file name; see the module documentation.
    #[default]
    Auto,
    /// Each file is a single document, whatever its name. Standard input is a document with the key `-`.
    Text,
    /// Records in this format, whatever the file name. In a folder, only files with a suffix of this format are read.
    Records(Kind),
}

/// The format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON lines.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// Texts in WET files.
    Wet,
    /// Pages in WARC files.
    Warc,
    /// Rows of Parquet files.
    Parquet,
    /// Pages in ARC files.
    Arc,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Jsonl, Self::Csv, Self::Tsv, Self::Wet, Self::Warc, Self::Parquet, Self::Arc];

    /// Returns the file name suffixes of this format, without suffixes of compressions.
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Jsonl => &["jsonl", "ndjson", "json", "jl", "jsonlines"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
            Self::Wet => &["wet"],
            Self::Warc => &["warc"],
            Self::Parquet => &[form::PARQUET, "pq"],
            Self::Arc => &["arc"],
        }
    }

    /// Returns the format that a file name indicates; `None` if it indicates none, or a Parquet file that is compressed
    /// as a whole.
    fn of_name(path: &Path) -> Option<Self> {
        let plain = open::without_compression(path);
        let suffix = plain.extension()?;
        let named = |kind: &Self| kind.suffixes().iter().any(|name| suffix.eq_ignore_ascii_case(name));
        Self::ALL.into_iter().find(named).filter(|kind| *kind != Self::Parquet || plain == path)
    }
}

/// Options for reading inputs.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// The field that contains the text. Default: `text`. If no field has exactly this name, the name may be a path
    /// into nested objects: `meta.text`, or the JSON pointer `/meta/text`. The values of several fields, given as names
    /// separated by commas, are joined with line ends. A null text is empty.
    pub text_field: String,
    /// Whether the text field contains features instead of a text: an array of strings and integers, an array of pairs
    /// of a feature and its weight, or an object of weights.
    pub features: bool,
    /// The format of fingerprints, if the text field contains a fingerprint instead of a text.
    pub fingerprint: Option<FingerprintForm>,
    /// The field that contains the key. Default: `id`. It may be a path, or several fields, whose values are joined
    /// with commas. Numbers, decimals, UUIDs and times are used as they are written.
    pub id_field: String,
    /// The source of keys. Default: [`Ids::FieldOrLine`], which acts as [`Ids::Field`] if `id_field` is not `id`.
    pub ids: Ids,
    /// The fields from which other values than key and text are read.
    pub attached: AttachedFields,
    /// Field names that no record may have, because fields with these names are added to the output.
    pub reserved: Vec<String>,
    /// The format of the inputs, or the rule by which it is determined.
    pub format: InputFormat,
    /// Patterns of the files in folders that are read, or, after `!`, ignored; without the former, all files are read. A
    /// pattern is matched against the file name or, if it contains `/`, against the path relative to the folder.
    pub globs: Vec<String>,
    /// The dialect of CSV and TSV tables.
    pub dialect: Dialect,
    /// Maximum number of bad records that are skipped and counted. One more is an error.
    pub skip_bad: u64,
    /// The treatment of texts with bytes that are invalid in their encoding.
    pub invalid_utf8: InvalidUtf8,
    /// The encoding of texts. `None` means UTF-8, or [`Charset::Auto`] for HTML pages. In web archives the encoding
    /// applies to pages. Parquet is always UTF-8.
    pub encoding: Option<Charset>,
    /// Maximum length in bytes of a line or text file. Default: 256 MiB. Memory use is at most a small multiple of it.
    pub record_bytes_max: usize,
    /// Whether documents that were already read from a pipe are returned before the reader waits for more.
    pub streaming: bool,
    /// Whether other inputs are read separately, so that a named field may occur only in those. The caller calls
    /// [`InputOptions::check_fields`] after all inputs.
    pub is_part: bool,
}

impl InputOptions {
    /// Returns whether documents have features or fingerprints instead of texts.
    #[must_use]
    pub fn is_brought(&self) -> bool {
        self.features || self.fingerprint.is_some()
    }

    /// Checks that each named field occurs in a record of the inputs with these counts, which were read
    /// [in parts](Self::is_part).
    ///
    /// # Errors
    ///
    /// No record has a named field. The message lists the fields of a record.
    pub fn check_fields(&self, counts: &Counts) -> anyhow::Result<()> {
        counts.named.seen.check_names(&Parser::new(self).fields)
    }

    /// Returns an error if the name of a field is empty.
    fn check_names(&self) -> Result<(), InvalidOptions> {
        let text = match self.fingerprint {
            Some(_) => "--fingerprint-field",
            None if self.features => "--features-field",
            None => "--text-field",
        };
        selection::check_names(text, &self.text_field, !self.is_brought())?;
        selection::check_names("--id-field", &self.id_field, true)?;
        let AttachedFields { value, stamp, deciding } = &self.attached;
        let single = [
            ("--value-field", value),
            ("--stamp-field", stamp),
            (deciding.number_option(), &deciding.number),
            ("--inside", &deciding.inside),
            ("--url-field", &deciding.url),
        ];
        let mut named = single.into_iter().filter_map(|(option, name)| Some((option, name.as_deref()?)));
        named.try_for_each(|(option, name)| selection::check_names(option, name, false))
    }
}

impl Default for InputOptions {
    fn default() -> Self {
        Self {
            text_field: TEXT_FIELD.to_owned(),
            features: false,
            fingerprint: None,
            id_field: ID_FIELD.to_owned(),
            ids: Ids::FieldOrLine,
            attached: AttachedFields::default(),
            reserved: Vec::new(),
            format: InputFormat::Auto,
            globs: Vec::new(),
            dialect: Dialect::default(),
            skip_bad: 0,
            invalid_utf8: InvalidUtf8::Usual,
            encoding: None,
            record_bytes_max: 256 << 20,
            streaming: false,
            is_part: false,
        }
    }
}

/// Counts of the documents read and skipped so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of documents returned.
    pub documents: u64,
    /// Total length of the texts in bytes of UTF-8, or of the names of all features.
    pub text_bytes: u64,
    /// Number of documents in which invalid bytes were replaced.
    pub replaced_utf8: u64,
    /// The position of the first document in which invalid bytes were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_replaced: Option<String>,
    /// Number of documents that were skipped because of invalid bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_lossy: u64,
    /// Number of pages that show no text.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen_pages: u64,
    /// Number of texts whose encoding was detected from their bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub detected_encodings: u64,
    /// The name of the encoding detector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding_detector: Option<&'static str>,
    /// Number of files in folders that were skipped because they contain a zero byte.
    pub skipped_binary: u64,
    /// Number of files in folders that were skipped because they are not UTF-8, although they contain no zero byte.
    pub skipped_not_utf8: u64,
    /// Number of bad records skipped, at most [`InputOptions::skip_bad`].
    pub skipped_bad: u64,
    /// Number of folder entries that were skipped: links, devices, and files with other suffixes if only one format is
    /// read.
    pub ignored: u64,
    /// Number of records of web archives that are neither texts nor pages.
    pub no_documents: u64,
    /// Number of revisit records in web archives: captures that are equal to an earlier one.
    #[serde(skip_serializing_if = "is_zero")]
    pub revisits: u64,
    /// Number of truncated web archives. All records before the truncation were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_archives: u64,
    /// The first truncated web archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_cut: Option<String>,
    /// Number of files whose format was detected from their content, because their names indicate none.
    #[serde(skip_serializing_if = "is_zero")]
    pub kinds_by_content: u64,
    /// The first file whose format was detected from its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_by_content: Option<String>,
    /// Number of named files that were read as a single text each, because their names indicate no format.
    #[serde(skip_serializing_if = "is_zero")]
    pub files_as_one_text: u64,
    /// The first file that was read as a single text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_as_one_text: Option<String>,
    /// Number of documents with a repeated key, to which a number was added.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbered_keys: u64,
    /// Number of documents that were skipped because another document has the same key.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_keys: u64,
    /// The first document with a repeated key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_repeated: Option<String>,
    /// Number of documents that lack some of the text fields. Their texts consist of the other ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub partial_texts: u64,
    /// The position of the first document that lacks some of the text fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_partial: Option<String>,
    /// Number of documents whose keys have the form `FILE:ROW`.
    #[serde(skip_serializing_if = "is_zero")]
    pub keyed_by_line: u64,
    /// The first few bad records, as messages `place: reason`.
    pub first_bad: Vec<String>,
    /// Counts of texts by the Unicode normal form of their accented letters, among the texts that were checked.
    #[serde(flatten)]
    pub forms: Forms,
    /// A note on the characters that options remove from texts.
    #[serde(skip)]
    pub dropped: Option<String>,
    /// The fields that options name.
    #[serde(skip)]
    pub named: NamedFields,
}

/// Counts of texts by how accented letters are encoded: composed (NFC) or decomposed (NFD). Only counted if texts are
/// not normalized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forms {
    /// Number of texts that have composed letters and are in NFC.
    #[serde(skip_serializing_if = "is_zero")]
    pub composed_texts: u64,
    /// Number of texts that NFC would change.
    #[serde(skip_serializing_if = "is_zero")]
    pub decomposed_texts: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Forms {
    /// Number of bytes of a text that are checked. An author uses the same form throughout, and checking more would
    /// take a few percent of the time for short texts.
    pub const LOOKED_AT: usize = 256;

    /// Counts a text. Does nothing if texts are normalized, or if accents are removed, before texts are compared.
    pub fn count(&mut self, text: &str, shingling: &Shingling) {
        if shingling.normal_form != NormalForm::None || shingling.folding.marks.is_some() {
            return;
        }
        let end = (0..=text.len().min(Self::LOOKED_AT)).rev().find(|&at| text.is_char_boundary(at));
        let start = &text[..end.unwrap_or(0)];
        if start.is_ascii() {
            return;
        }
        let Letters { composed, decomposed } = letters(start);
        self.decomposed_texts += u64::from(decomposed);
        self.composed_texts += u64::from(composed && !decomposed);
    }

    /// Adds the counts of `more`.
    pub fn add(&mut self, more: Self) {
        self.composed_texts += more.composed_texts;
        self.decomposed_texts += more.decomposed_texts;
    }
}

/// Fields that options name, for notes on fields that occur in no input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFields {
    /// The name of the value field.
    value: Option<String>,
    /// The number of documents that were checked for the value field, and the number of documents that have it.
    checked: u64,
    valued: u64,
    /// The named fields that were found in records.
    seen: FieldsSeen,
}

impl NamedFields {
    fn add(&mut self, more: &Self) {
        self.value = self.value.take().or_else(|| more.value.clone());
        self.checked += more.checked;
        self.valued += more.valued;
        self.seen.add(&more.seen);
    }

    fn remarks(&self, remarks: &mut Vec<String>) {
        if let Some(field) = &self.value
            && self.checked > 0
            && self.valued == 0
        {
            let none = match self.checked {
                1 => "the document".to_owned(),
                more => format!("none of the {} documents", count(more)),
            };
            let not = if self.checked == 1 { "has no value" } else { "has a value" };
            remarks.push(format!("{none} {not} in a field {field:?} (--value-field)"));
        }
    }
}

impl Counts {
    /// Adds the counts of inputs that were read after these.
    pub fn add(&mut self, more: &Self) {
        self.documents += more.documents;
        self.text_bytes += more.text_bytes;
        self.replaced_utf8 += more.replaced_utf8;
        self.first_replaced = self.first_replaced.take().or_else(|| more.first_replaced.clone());
        self.skipped_lossy += more.skipped_lossy;
        self.unseen_pages += more.unseen_pages;
        self.detected_encodings += more.detected_encodings;
        self.encoding_detector = self.encoding_detector.or(more.encoding_detector);
        self.skipped_binary += more.skipped_binary;
        self.skipped_not_utf8 += more.skipped_not_utf8;
        self.skipped_bad += more.skipped_bad;
        self.ignored += more.ignored;
        self.no_documents += more.no_documents;
        self.revisits += more.revisits;
        self.cut_archives += more.cut_archives;
        self.first_cut = self.first_cut.take().or_else(|| more.first_cut.clone());
        self.keyed_by_line += more.keyed_by_line;
        self.kinds_by_content += more.kinds_by_content;
        self.first_by_content = self.first_by_content.take().or_else(|| more.first_by_content.clone());
        self.files_as_one_text += more.files_as_one_text;
        self.first_as_one_text = self.first_as_one_text.take().or_else(|| more.first_as_one_text.clone());
        self.numbered_keys += more.numbered_keys;
        self.repeated_keys += more.repeated_keys;
        self.first_repeated = self.first_repeated.take().or_else(|| more.first_repeated.clone());
        self.partial_texts += more.partial_texts;
        self.first_partial = self.first_partial.take().or_else(|| more.first_partial.clone());
        let places_left = BAD_KEPT.saturating_sub(self.first_bad.len());
        self.first_bad.extend(more.first_bad.iter().take(places_left).cloned());
        self.named.add(&more.named);
        self.forms.add(more.forms);
        self.dropped = self.dropped.take().or_else(|| more.dropped.clone());
    }

    /// Returns notes for the summary. All inputs must have been read.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.documents == 0 && self.skipped_bad == 0 {
            remarks.push("no document was found in the input".to_owned());
        }
        remarks.extend(self.remarks_of_part());
        remarks
    }

    /// Adds notes on skipped records of web archives.
    fn remarks_on_archives(&self, remarks: &mut Vec<String>) {
        if self.no_documents > 0 {
            let which = if self.no_documents == 1 { "is no text" } else { "are no texts" };
            remarks
                .push(format!("{} passed over, which {which}", counted(self.no_documents, "archive record")));
        }
        if self.revisits > 0 {
            let records = counted(self.revisits, "revisit record");
            remarks.push(format!("{records} passed over: what was captured was the same as before"));
        }
        if let Some(first) = &self.first_cut {
            remarks.push(format!(
                "{} off; the records before that were read, the first: {first}",
                match self.cut_archives {
                    1 => "1 archive breaks".to_owned(),
                    more => format!("{} archives break", count(more)),
                }
            ));
        }
    }

    /// Like [`Counts::remarks`], if some inputs may have been skipped or may have no documents: omits the note that no
    /// documents were found.
    #[must_use]
    pub fn remarks_of_part(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let passed_over = self.skipped_binary + self.skipped_not_utf8;
        if passed_over > 0 {
            remarks.push(format!(
                "{} passed over: {} binary, {} not UTF-8",
                counted(passed_over, "file"),
                count(self.skipped_binary),
                count(self.skipped_not_utf8)
            ));
        }
        if self.replaced_utf8 > 0 {
            let documents = counted(self.replaced_utf8, "document");
            let first = self.first_replaced.as_deref().unwrap_or_default();
            remarks.push(format!(
                "{documents} not UTF-8, or not in the encoding that is said, the invalid bytes shown as U+FFFD, and \
                 compared by all bytes alone, the first: {first}"
            ));
        }
        if self.skipped_lossy > 0 {
            let documents = counted(self.skipped_lossy, "document");
            remarks.push(format!("{documents} passed over, not UTF-8, or not in the encoding that is said"));
        }
        if self.unseen_pages > 0 {
            let pages = counted(self.unseen_pages, "page");
            remarks.push(format!("{pages} without a text to be seen, compared by all of the markup alone"));
        }
        if self.detected_encodings > 0 {
            remarks.push(format!(
                "{} in the encoding that {} takes them to be in",
                counted(self.detected_encodings, "text"),
                self.encoding_detector.unwrap_or_default()
            ));
        }
        if let Some(first) = &self.first_by_content {
            remarks.push(format!(
                "{} read as records by the content, the first: {first} (--format text takes each for one text)",
                counted(self.kinds_by_content, "file")
            ));
        }
        if let Some(first) = &self.first_as_one_text {
            remarks.push(format!(
                "{} read as one text each, the first: {first} (--format reads records whatever the name)",
                counted(self.files_as_one_text, "file")
            ));
        }
        let first = self.first_repeated.as_deref().unwrap_or_default();
        if self.numbered_keys > 0 {
            remarks.push(format!(
                "{} with a key that came before: it has a number now, the first: {first} (--repeated-keys)",
                counted(self.numbered_keys, "document")
            ));
        }
        if self.repeated_keys > 0 {
            remarks.push(format!(
                "{} passed over for a key that others have too, the first: {first} (--repeated-keys)",
                counted(self.repeated_keys, "document")
            ));
        }
        if let Some(first) = &self.first_partial {
            let lack = if self.partial_texts == 1 { "lacks" } else { "lack" };
            let documents = counted(self.partial_texts, "document");
            remarks.push(format!(
                "{documents} {lack} some of the text fields, the first: {first} (--text-field)"
            ));
        }
        if self.keyed_by_line > 0 {
            let documents = counted(self.keyed_by_line, "document");
            remarks.push(format!(
                "{documents} with the key FILE:ROW, as no field is named {ID_FIELD:?} (--id-field NAME), or by --id-field FILE:ROW"
            ));
        }
        self.remarks_on_archives(&mut remarks);
        if self.ignored > 0 {
            remarks.push(format!(
                "{} of folders left out: links, devices, or files named otherwise than those asked for",
                if self.ignored == 1 {
                    "1 entry".to_owned()
                } else {
                    format!("{} entries", count(self.ignored))
                }
            ));
        }
        if let Forms { composed_texts: composed @ 1.., decomposed_texts: decomposed @ 1.. } = self.forms {
            let have = if composed == 1 { "has" } else { "have" };
            remarks.push(format!(
                "{} {have} composed letters and {} decomposed ones, as far as their first {} bytes say: these are \
                 different words, which --normal-form nfkc makes the same",
                counted(composed, "text"),
                count(decomposed),
                count(Forms::LOOKED_AT as u64)
            ));
        }
        if let Some(dropped) = &self.dropped {
            remarks.push(dropped.clone());
        }
        if let Some(first) = self.first_bad.first() {
            remarks.push(format!("{} skipped, the first: {first}", counted(self.skipped_bad, "bad record")));
        }
        self.named.remarks(&mut remarks);
        remarks
    }
}

/// An error that concerns a record or a whole input.
#[derive(Clone, Debug)]
struct Problem {
    place: Place,
    reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // guard: a message names its input
        // without it: return f.write_str(&for_people(&self.reason));
        write!(f, "{}: {}", self.place, for_people(&self.reason))
    }
}

/// Formats a reason, which may quote the input or the message of a parser, as a single line without control characters,
/// and shortens it. The end is kept because it has the advice.
fn for_people(reason: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(reason);
    // guard: a message has nothing that a terminal obeys
    if reason.contains(char::is_control) {
        let escaped = |character: char| match character {
            control if control.is_control() => control.escape_default().to_string(),
            other => other.to_string(),
        };
        shown = reason.chars().map(escaped).collect::<String>().into();
    }
    // guard: a message is not as long as its input
    if shown.len() > REASON_BEGINNING + REASON_END {
        let boundary = |at: &usize| shown.is_char_boundary(*at);
        let beginning = (0..=REASON_BEGINNING).rev().find(boundary).unwrap_or(0);
        let end = (shown.len() - REASON_END..shown.len()).find(boundary).unwrap_or(shown.len());
        shown = format!("{} ... {}", &shown[..beginning], &shown[end..]).into();
    }
    shown
}

impl std::error::Error for Problem {}

/// Returns an error that makes the record at this position a bad record.
pub fn bad_at(place: &Place, reason: &impl fmt::Display) -> anyhow::Error {
    Problem { place: place.clone(), reason: reason.to_string() }.into()
}

/// An input that was not yet read.
enum Source {
    Records(Origin, Kind),
    /// A single document with its key.
    Whole(Origin, Vec<u8>),
    /// A folder in which each file is a document.
    Folder {
        root: PathBuf,
        files: std::vec::IntoIter<Box<Path>>,
    },
}

impl Source {
    /// Returns whether the input can only be read once.
    fn is_stream(&self) -> bool {
        matches!(self, Self::Records(Origin::Stream { .. }, _) | Self::Whole(Origin::Stream { .. }, _))
    }

    /// Returns the name of the input for messages.
    fn name(&self) -> Arc<Path> {
        match self {
            Self::Records(origin, _) | Self::Whole(origin, _) => origin.name(),
            Self::Folder { root, .. } => Arc::from(root.as_path()),
        }
    }
}

/// The documents of all inputs, in order.
pub struct Documents {
    parser: Parser,
    skip_bad: u64,
    record_bytes_max: usize,
    streaming: bool,
    /// The inputs that were not yet read, in reverse order, so that the next one is the last element.
    sources: Vec<Source>,
    /// The input with records that is being read. It precedes those in `sources`.
    records: Option<Records>,
    counts: Counts,
    consumed: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    /// Whether reading has failed. Nothing is read afterwards.
    stopped: bool,
    /// The patterns of the files in folders that are read.
    patterns: Patterns,
    kinds: InputKinds,
    /// The inputs and options as specified by the caller.
    asked: (Vec<PathBuf>, InputOptions),
}

/// An input with records.
struct Records {
    stream: Stream,
    /// The keys that are stored outside the records; `None` if there are none.
    keys: Option<KeptKeys>,
}

enum Stream {
    Lines(JsonLines),
    Rows(Box<rows::TableRows>, Form),
    Archive(warc::ArchiveRecords, Form),
    Arc(arc::ArchiveRecords),
    Columns(Box<columns::ParquetRows>, Form),
}

impl Records {
    /// Opens an input, and reads the header before its records.
    fn open(
        origin: Origin,
        kind: Kind,
        parser: &Parser,
        bytes_max: usize,
        consumed: &Arc<AtomicU64>,
    ) -> Result<Self, Problem> {
        let keys = match &origin {
            Origin::File(path) => KeptKeys::beside(path)?,
            Origin::Stream { .. } => None,
        };
        let name = origin.name();
        let partitioned = partition::Partitioned::of(parser, &name);
        let parser = partitioned.as_ref().map_or(parser, |partitioned| &partitioned.parser);
        let keyed = keys.is_some().then(|| parser.of_other_keys());
        let parser = keyed.as_ref().unwrap_or(parser);
        Ok(Self { stream: Stream::open(origin, kind, parser, bytes_max, consumed)?, keys })
    }

    /// Returns a message with the position at which an archive was truncated; `None` if it was not.
    fn cut(&self) -> Option<String> {
        match &self.stream {
            Stream::Archive(records, _) => records.cut(),
            Stream::Arc(records) => records.cut(),
            Stream::Lines(_) | Stream::Rows(..) | Stream::Columns(..) => None,
        }
    }

    /// Returns whether reading the next record would block until a pipe has more data. Only known for JSON Lines; false
    /// for other formats.
    fn would_wait(&self) -> bool {
        matches!(&self.stream, Stream::Lines(lines) if lines.would_wait())
    }

    /// Adds the next record to `batch`. Returns false at the end.
    fn advance(&mut self, batch: &mut Batch) -> Result<bool, Problem> {
        let Self { stream, keys } = self;
        let mut failed = None;
        let more = stream.next(|form, name, number, found| {
            let key = match keys.as_mut().map(|keys| keys.of(number)).transpose() {
                Ok(key) => key.flatten(),
                Err(problem) => {
                    failed = Some(problem);
                    return;
                }
            };
            match found {
                Ok(found) => batch.push_line(form, found, number, name, key),
                Err(reason) => {
                    batch.push_bad(Problem { place: Place::of(name, number, form.unit()), reason });
                }
            }
        })?;
        failed.map_or(Ok(more), Err)
    }
}

impl Stream {
    /// Like [`Records::open`].
    fn open(
        origin: Origin,
        kind: Kind,
        parser: &Parser,
        bytes_max: usize,
        consumed: &Arc<AtomicU64>,
    ) -> Result<Self, Problem> {
        let (fields, headers) = (&parser.fields, &parser.headers);
        if kind == Kind::Parquet {
            let Origin::File(path) = origin else {
                let reason = "Parquet is read from its end; name a regular file".to_owned();
                return Err(Problem { place: Place::file(origin.name()), reason });
            };
            let (rows, file) = columns::ParquetRows::open(&path, fields, bytes_max, consumed)?;
            let form = Form::Columns(headers.push_columns(file));
            headers.meet(form, false);
            return Ok(Self::Columns(Box::new(rows), form));
        }
        let reader = Reader::open(origin, consumed)?;
        Ok(match kind {
            Kind::Jsonl | Kind::Parquet => {
                let mut lines = JsonLines::new(reader, bytes_max);
                headers.meet(Form::Json, lines.is_marked()?);
                Self::Lines(lines)
            }
            Kind::Csv | Kind::Tsv => {
                let written = RowDialect::of(parser.dialect, kind == Kind::Tsv);
                let is_given = kind == Kind::Tsv || parser.dialect.delimiter.is_some();
                let window = Window::new(reader);
                let (rows, header) =
                    rows::TableRows::open(window, written, is_given, parser.charset, fields, bytes_max)?;
                let form = Form::Row(headers.push_row(header));
                headers.meet(form, false);
                Self::Rows(Box::new(rows), form)
            }
            Kind::Arc => {
                headers.meet(Form::Arc, false);
                Self::Arc(arc::ArchiveRecords::new(Window::new(reader), bytes_max))
            }
            Kind::Wet | Kind::Warc => {
                let form = Form::Archive { texts: kind == Kind::Wet };
                headers.meet(form, false);
                Self::Archive(warc::ArchiveRecords::new(Window::new(reader), bytes_max), form)
            }
        })
    }

    /// Passes the number of the next record, and the record or its error, to `take`, with the name of the stream.
    /// Returns false at the end.
    fn next(
        &mut self,
        mut take: impl FnMut(Form, Arc<Path>, u64, Result<jsonl::FoundLine<'_>, String>),
    ) -> Result<bool, Problem> {
        match self {
            Self::Lines(lines) => {
                let name = Arc::clone(lines.name());
                let Some((number, found)) = lines.next()? else { return Ok(false) };
                take(Form::Json, name, number, found.map_err(|bad| bad.reason));
                Ok(true)
            }
            Self::Rows(rows, form) => {
                let name = Arc::clone(rows.name());
                rows.next(|number, found| take(*form, name, number, found))
            }
            Self::Archive(records, form) => {
                let name = Arc::clone(records.name());
                records.next(|number, found| take(*form, name, number, found))
            }
            Self::Arc(records) => {
                let name = Arc::clone(records.name());
                records.next(|number, found| take(Form::Arc, name, number, found))
            }
            Self::Columns(rows, form) => {
                let Some((number, line)) = rows.next()? else { return Ok(false) };
                let found = line.as_deref().map(|line| jsonl::FoundLine {
                    line,
                    offset: None,
                    ending: Ending::default(),
                });
                take(*form, Arc::clone(rows.name()), number, found.map_err(Clone::clone));
                Ok(true)
            }
        }
    }
}

/// The lines of a table, which may be compressed, with their numbers. Skips blank lines.
pub struct TableLines(JsonLines);

impl TableLines {
    /// Maximum length of a line in bytes: two keys of maximum length with each byte escaped, and some numbers.
    const LINE_BYTES_MAX: usize = 1 << 20;

    /// Opens a table.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is not compressed as its name says.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
        Ok(Self(JsonLines::new(reader, Self::LINE_BYTES_MAX)))
    }

    /// Returns the name of the file for messages.
    #[must_use]
    pub fn name(&self) -> Arc<Path> {
        Arc::clone(self.0.name())
    }

    /// Returns the next line and its number, from 1; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read further, or the line is too long.
    pub fn next_line(&mut self) -> anyhow::Result<Option<(u64, &[u8])>> {
        match self.0.next()? {
            None => Ok(None),
            Some((number, found)) => Ok(Some((number, found?.line))),
        }
    }
}

impl Documents {
    /// Opens the inputs. Checks the names of all inputs without reading documents, so that a wrong name is reported
    /// before anything is written.
    ///
    /// Folders are listed here, which takes about a hundred bytes of memory per file. Files that are added to a folder
    /// later are not read.
    ///
    /// # Errors
    ///
    /// An input does not exist, cannot be opened, read or listed, or is not compressed although its name says so; a
    /// folder has no JSON Lines files although they are required; `-` is given twice; key and text are the same field.
    /// The message names the input. [`InvalidOptions`] if an option has no effect on these inputs.
    pub fn open(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        let documents = Self::open_part(paths, options)?;
        documents.kinds.check(options)?;
        Ok(documents)
    }

    /// Like [`Documents::open`], for some of the inputs that the options are for: options that have no effect on these
    /// inputs are accepted.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`], except for options without effect.
    pub fn open_part(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        Self::open_with(paths, options, &mut || Box::new(std::io::stdin()))
    }

    /// Returns the kinds of inputs. Does not open standard input or pipes.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`], except for options without effect.
    pub fn kinds_of(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<InputKinds> {
        let is_file = |path: &Path| path.is_file() || path.is_dir();
        let (files, streams): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.iter().cloned().partition(|path| !is_stdin(path) && is_file(path));
        let mut documents = Self::empty(options)?;
        for path in &files {
            documents.add(path, options.format)?;
        }
        for path in &streams {
            documents.add_stream(path, path, Box::new(std::io::empty()), options.format);
        }
        Ok(documents.kinds)
    }

    /// Returns an error if an option has no effect on any of these inputs, which are then opened one at a time.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`]; the errors of [`Documents::open`].
    pub fn check_options(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<()> {
        if InputKinds::some_depend_on_kinds(options) {
            Self::kinds_of(paths, options)?.check(options)?;
        }
        Ok(())
    }

    /// Returns the kinds of the inputs.
    #[must_use]
    pub fn kinds(&self) -> InputKinds {
        self.kinds
    }

    /// Like [`Documents::open`], for documents whose lines are parsed and written together with the lines of `self`.
    /// Both share the data that an input has once, such as headers.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`].
    pub fn open_second(&self, paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        let mut documents = Self::open_part(paths, options)?;
        documents.parser.headers = self.parser.headers.clone();
        documents.parser.normaliser.clone_from(&self.parser.normaliser);
        Ok(documents)
    }

    /// Like [`Documents::open`], with a function that returns standard input.
    pub fn open_with(
        paths: &[PathBuf],
        options: &InputOptions,
        stdin: &mut dyn FnMut() -> Box<dyn Read + Send>,
    ) -> anyhow::Result<Self> {
        options.check_names()?;
        if options.id_field == options.text_field {
            let what = match options.fingerprint {
                Some(_) => "fingerprint",
                None if options.features => "features",
                None => "text",
            };
            bail!("the id and the {what} are both to be read from the field {:?}", options.id_field);
        }
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            bail!("`-`, standard input, is named twice; it can be read only once");
        }
        let mut documents = Self::empty(options)?;
        documents.asked.0 = paths.to_vec();
        for path in paths {
            if is_stdin(path) {
                documents.add_stream(path, Place::STDIN.as_ref(), stdin(), options.format);
            } else {
                documents.add(path, options.format)?;
            }
        }
        if options.features
            && let Some(source) =
                documents.sources.iter().find(|source| !matches!(source, Source::Records(_, Kind::Jsonl)))
        {
            bail!(
                "{}: no JSONL, which --features-field {} asks for (--format jsonl takes any file so)",
                source.name().display(),
                options.text_field
            );
        }
        let has_columns = |source: &Source| {
            matches!(source, Source::Records(_, Kind::Jsonl | Kind::Csv | Kind::Tsv | Kind::Parquet))
        };
        if options.fingerprint.is_some()
            && let Some(source) = documents.sources.iter().find(|source| !has_columns(source))
        {
            bail!(
                "{}: no JSONL, CSV, TSV or Parquet, whose fields --fingerprint-field {} asks for (--format takes any file as \
                 one of these)",
                source.name().display(),
                options.text_field
            );
        }
        if options.encoding.is_some_and(Charset::is_utf16)
            && let Some(source) = documents
                .sources
                .iter()
                .find(|source| matches!(source, Source::Records(_, Kind::Jsonl | Kind::Csv | Kind::Tsv)))
        {
            bail!("{}: {UTF16_ADVICE}", source.name().display());
        }
        // An unused field name is reported at the end, not refused here: other inputs of the same command may have the
        // field.
        documents.counts.named.value.clone_from(&options.attached.value);
        if options.attached.any()
            && let Some(source) =
                documents.sources.iter().find(|source| !matches!(source, Source::Records(..)))
        {
            let asked = options.attached.options();
            let ask = if asked.len() == 1 { "asks" } else { "ask" };
            bail!(
                "{}: text files have no fields, which {} {ask} for; JSONL, CSV, TSV and Parquet files have, and the records \
                 of web archives",
                source.name().display(),
                asked.join(" and ")
            );
        }
        // guard: inputs come in the order in which they are named
        documents.sources.reverse();
        Ok(documents)
    }

    /// Returns a value without inputs.
    fn empty(options: &InputOptions) -> Result<Self, InvalidOptions> {
        Ok(Self {
            parser: Parser::new(options),
            // guard: no bad record less than allowed is skipped
            // without it: options.skip_bad -> options.skip_bad.saturating_sub(1)
            skip_bad: options.skip_bad,
            record_bytes_max: options.record_bytes_max,
            streaming: options.streaming,
            sources: Vec::new(),
            records: None,
            counts: Counts::default(),
            consumed: Arc::default(),
            total_bytes: Some(0),
            stopped: false,
            patterns: Patterns::new(&options.globs).map_err(InvalidOptions::new)?,
            kinds: InputKinds::default(),
            asked: (Vec::new(), options.clone()),
        })
    }

    /// Returns whether all keys are created from line numbers, so that no key is repeated.
    pub(crate) fn are_keyed_by_line(&self) -> bool {
        let is_of_records = |source: &Source| matches!(source, Source::Records(..));
        self.parser.fields.ids == Ids::Line && self.sources.iter().all(is_of_records)
    }

    /// Opens the same inputs again.
    ///
    /// # Errors
    ///
    /// One of the inputs is a pipe; the errors of [`Documents::open`].
    pub fn again(&self) -> anyhow::Result<Self> {
        let (paths, options) = &self.asked;
        if let Some(source) = self.sources.iter().find(|source| source.is_stream()) {
            bail!(
                "{}: can be read only once, and the last of a repeated key is known at the end; write it to a file",
                source.name().display()
            );
        }
        Self::open_part(paths, options)
    }

    /// Returns the files that will be read, except pipes.
    pub(crate) fn named_files(&self) -> Vec<PathBuf> {
        let mut named = Vec::new();
        for source in &self.sources {
            match source {
                Source::Records(Origin::File(path), _) | Source::Whole(Origin::File(path), _) => {
                    named.push(path.clone());
                }
                Source::Folder { root, files } => {
                    named.extend(files.as_slice().iter().map(|file| root.join(file)));
                }
                Source::Records(Origin::Stream { .. }, _) | Source::Whole(Origin::Stream { .. }, _) => {}
            }
        }
        named
    }

    /// Passes each file that will be read to `each`, in order.
    ///
    /// # Errors
    ///
    /// One of the inputs is a pipe, which cannot be read again; the errors of `each`.
    pub(crate) fn for_each_file(
        &self,
        mut each: impl FnMut(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for source in self.sources.iter().rev() {
            match source {
                Source::Records(Origin::File(path), _) | Source::Whole(Origin::File(path), _) => each(path)?,
                Source::Folder { root, files } => {
                    files.as_slice().iter().try_for_each(|file| each(&root.join(file)))?;
                }
                Source::Records(Origin::Stream { name, .. }, _)
                | Source::Whole(Origin::Stream { name, .. }, _) => {
                    return Err(InvalidOptions::new(format!(
                        "{}: can be read only once, and --resume reads the inputs again; write it to a file",
                        name.display()
                    ))
                    .into());
                }
            }
        }
        Ok(())
    }

    /// Adds the file or folder at `path`.
    fn add(&mut self, path: &Path, format: InputFormat) -> anyhow::Result<()> {
        let metadata = fs::metadata(path).map_err(|error| open::cannot(path, "read", &error))?;
        if metadata.is_dir() {
            return self.add_folder(path, format);
        }
        if !metadata.is_file() {
            let file = fs::File::open(path).map_err(|error| open::cannot(path, "open", &error))?;
            self.add_stream(path, path, Box::new(file), format);
            return Ok(());
        }
        let kind = match format {
            InputFormat::Auto => match Kind::of_name(path) {
                None if !is_named_as_text(path) => self.by_content(path)?,
                named => named,
            },
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Text => None,
        };
        let plain = open::without_compression(path);
        if kind.is_none() && format == InputFormat::Auto && Kind::of_name(&plain) == Some(Kind::Parquet) {
            bail!(
                "{}: Parquet is read from its end, so not out of a packed file; unpack it (its columns are packed inside)",
                path.display()
            );
        }
        self.check_file(path, kind)?;
        self.add_total(Some(metadata.len()));
        let origin = Origin::File(path.to_owned());
        self.kinds.add(kind);
        self.sources.push(if let Some(kind) = kind {
            Source::Records(origin, kind)
        } else {
            let key = folder::os_bytes(open::without_compression(path).as_os_str());
            Source::Whole(origin, key)
        });
        Ok(())
    }

    /// Detects the format of a file from its content, if the file name indicates none. The summary reports such files.
    fn by_content(&mut self, path: &Path) -> Result<Option<Kind>, Problem> {
        let packed_parquet = Kind::of_name(&open::without_compression(path)) == Some(Kind::Parquet);
        let kind = if packed_parquet { None } else { sniff::kind(path)? };
        if let Some(kind) = kind {
            self.count_by_content(path, kind);
        } else {
            let counts = &mut self.counts;
            counts.files_as_one_text += 1;
            counts.first_as_one_text.get_or_insert_with(|| path.display().to_string());
        }
        Ok(kind)
    }

    /// Returns an error if a file cannot be read, is not in the format that its name indicates, or lacks a column.
    /// Called before any work is done.
    fn check_file(&self, path: &Path, kind: Option<Kind>) -> Result<(), Problem> {
        let Some(kind @ (Kind::Csv | Kind::Tsv | Kind::Parquet)) = kind else {
            let may_break = matches!(kind, Some(Kind::Wet | Kind::Warc | Kind::Arc));
            return open::check_file(path, may_break);
        };
        // Headers are numbered later, when the files are read in order.
        let parser = Parser { headers: Headers::default(), ..self.parser.clone() };
        let origin = Origin::File(path.to_owned());
        Records::open(origin, kind, &parser, self.record_bytes_max, &Arc::default()).map(drop)
    }

    /// Adds a stream that can be opened only once. Its format is JSON Lines unless another one is set.
    fn add_stream(&mut self, path: &Path, name: &Path, reader: Box<dyn Read + Send>, format: InputFormat) {
        self.add_total(None);
        let origin = Origin::Stream { name: Arc::from(name), reader };
        let kind = match format {
            InputFormat::Auto => Some(Kind::Jsonl),
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Text => None,
        };
        self.kinds.add(kind);
        self.sources.push(match kind {
            Some(kind) => Source::Records(origin, kind),
            None => Source::Whole(origin, folder::os_bytes(path.as_os_str())),
        });
    }

    /// Adds the files in a folder: as records if they are all of one format, otherwise as one document each.
    fn add_folder(&mut self, root: &Path, format: InputFormat) -> anyhow::Result<()> {
        let kind = match format {
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Auto | InputFormat::Text => None,
        };
        let patterns = &self.patterns;
        let is_wanted = |path: &Path| {
            if !patterns.want(path.strip_prefix(root).unwrap_or(path)) {
                return false;
            }
            kind.is_none() || Kind::of_name(path) == kind || Kind::of_name(path).is_none() && is_part(path)
        };
        let listing = folder::list(root, is_wanted);
        if format == InputFormat::Auto {
            return self.add_folder_by_names(root, listing);
        }
        self.add_listing(root, listing, kind)
    }

    /// Adds the listed files of a folder in the format that all of them have. The format of files that are named as parts
    /// is detected from their content, and the summary reports them.
    fn add_folder_by_names(&mut self, root: &Path, listing: folder::Listing) -> anyhow::Result<()> {
        let kind = kind_of_folder(root, &listing)?;
        if let Some(kind) = kind {
            for part in listing.files.iter().filter(|file| Kind::of_name(file).is_none()) {
                self.count_by_content(&root.join(part), kind);
            }
        }
        self.add_listing(root, listing, kind)
    }

    /// Counts a file whose format was detected from its content.
    fn count_by_content(&mut self, path: &Path, kind: Kind) {
        let counts = &mut self.counts;
        counts.kinds_by_content += 1;
        let name = kind.suffixes()[0];
        counts.first_by_content.get_or_insert_with(|| format!("{} as {name}", path.display()));
    }

    /// Adds the listed files of a folder: as inputs with records, or as one document each.
    fn add_listing(
        &mut self,
        root: &Path,
        listing: folder::Listing,
        kind: Option<Kind>,
    ) -> anyhow::Result<()> {
        for bad in listing.unreadable {
            self.skip(&bad)?;
        }
        if let Some(kind) = kind
            && listing.files.is_empty()
        {
            let names: Vec<String> = kind.suffixes().iter().map(|suffix| format!(".{suffix}")).collect();
            let names = match names.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
                _ => names.concat(),
            };
            let compressed = if kind == Kind::Parquet { "" } else { " (with or without .gz or .zst)" };
            let fits = if self.patterns.are_given() { ", and as --glob wants it," } else { "" };
            bail!("{}: no file named {names}{compressed}{fits} below it", root.display());
        }
        self.counts.ignored += listing.ignored;
        self.add_total(Some(listing.bytes));
        self.kinds.add_folder();
        if !listing.files.is_empty() {
            self.kinds.add(kind);
        }
        let Some(kind) = kind else {
            self.sources.push(Source::Folder { root: root.to_owned(), files: listing.files.into_iter() });
            return Ok(());
        };
        for file in &listing.files {
            let path = root.join(file);
            self.check_file(&path, Some(kind))?;
            self.sources.push(Source::Records(Origin::File(path), kind));
        }
        Ok(())
    }

    /// Adds the size of an input to the total size, which is unknown if any size is unknown.
    fn add_total(&mut self, bytes: Option<u64>) {
        self.total_bytes = self.total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
    }

    /// Replaces the content of `batch` with the next records, about `bytes` bytes. An empty batch marks the end. If an
    /// error ended the reading, [`Batch::take_failure`] returns it, and nothing is read afterwards.
    pub fn next_batch(&mut self, batch: &mut Batch, bytes: usize) {
        batch.clear(bytes);
        while !self.stopped && !batch.is_full(bytes) {
            let waits = || self.records.as_ref().is_some_and(Records::would_wait);
            if self.streaming && batch.has_records() && waits() {
                return;
            }
            match self.advance(batch) {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    self.stopped = true;
                    batch.fail(failure);
                }
            }
        }
    }

    /// Makes the parser treat texts as identical if they are equal after the normalization and folding of `shingling`.
    /// Texts that are empty after folding are identical only if their bytes are equal. The tokenizer of `shingling` has
    /// no effect.
    ///
    /// # Errors
    ///
    /// This build does not support the normal form.
    pub fn compare_normalised(&mut self, shingling: &Shingling) -> anyhow::Result<()> {
        let cutter = Cutter::new(shingling)?;
        self.parser.normaliser = cutter.normalises().then(|| Arc::new(cutter));
        Ok(())
    }

    /// Returns the parser of records. Each thread uses a clone.
    #[must_use]
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// Adds the counts of a chunk. Must be called in the order of the input.
    ///
    /// # Errors
    ///
    /// There is one bad record more than [`InputOptions::skip_bad`]; the message has its position.
    pub fn account(&mut self, seen: ChunkTotals) -> anyhow::Result<()> {
        let ChunkTotals { documents, text_bytes, no_documents, revisits, keyed_by_line, bad, .. } = seen;
        let counts = &mut self.counts;
        counts.first_replaced = counts.first_replaced.take().or(seen.first_replaced);
        counts.skipped_lossy += seen.skipped_lossy;
        counts.unseen_pages += seen.unseen_pages;
        counts.detected_encodings += seen.detected;
        if seen.detected > 0 {
            counts.encoding_detector = Some(charset::DETECTOR);
        }
        self.counts.documents += documents;
        self.counts.no_documents += no_documents;
        self.counts.revisits += revisits;
        self.counts.keyed_by_line += keyed_by_line;
        self.counts.text_bytes += text_bytes;
        self.counts.replaced_utf8 += seen.replaced;
        self.counts.partial_texts += seen.partial_texts;
        self.counts.first_partial = self.counts.first_partial.take().or(seen.first_partial);
        self.counts.named.seen.add(&seen.fields);
        self.counts.named.seen.check_types(&self.parser.fields)?;
        bad.iter().try_for_each(|bad| self.skip(bad))
    }

    /// Checks that each named field occurs in a record. Must be called after the counts of all chunks were added.
    ///
    /// # Errors
    ///
    /// No record has a named field. The message lists the fields of a record.
    pub(crate) fn check_fields(&self) -> anyhow::Result<()> {
        if self.asked.1.is_part {
            return Ok(());
        }
        self.counts.named.seen.check_names(&self.parser.fields)
    }

    /// Adds the counts of normal forms among the texts that were returned.
    pub fn account_forms(&mut self, forms: Forms) {
        self.counts.forms.add(forms);
    }

    /// Sets the note on the characters that options remove from texts.
    pub fn set_dropped_remark(&mut self, dropped: String) {
        self.counts.dropped = Some(dropped);
    }

    /// If `error` is the error of a record, counts its document as a bad record. The document, with `text_bytes` bytes
    /// of text, must have been counted as returned; these counts are reversed. Must be called in the order of the
    /// input.
    ///
    /// # Errors
    ///
    /// There is one bad record more than [`InputOptions::skip_bad`]; the message has its position. Any other `error`.
    pub fn refuse(&mut self, error: anyhow::Error, text_bytes: u64) -> anyhow::Result<()> {
        let bad = error.downcast::<Problem>()?;
        self.counts.documents -= 1;
        self.counts.text_bytes -= text_bytes;
        self.skip(&bad)
    }

    /// Counts a document whose key is repeated. If a number was added to the key, `numbered` is the new key and the
    /// document is used; if `None`, it is skipped.
    pub fn repeated(&mut self, place: &Place, key: &[u8], numbered: Option<&[u8]>, text_bytes: u64) {
        let counts = &mut self.counts;
        let shown = |key: &[u8]| String::from_utf8_lossy(key).escape_debug().to_string();
        let what = if let Some(numbered) = numbered {
            counts.numbered_keys += 1;
            format!("`{}` is `{}`", shown(key), shown(numbered))
        } else {
            counts.repeated_keys += 1;
            counts.documents -= 1;
            counts.text_bytes -= text_bytes;
            format!("`{}`", shown(key))
        };
        counts.first_repeated.get_or_insert_with(|| format!("{place}: {}", for_people(&what)));
    }

    /// Counts a document as checked for the value field.
    pub fn count_attached(&mut self, attached: &OwnAttached) {
        let named = &mut self.counts.named;
        if named.value.is_some() {
            named.checked += 1;
            named.valued += u64::from(!attached.value.is_empty());
        }
    }

    /// Returns the counts of the documents read and skipped so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the number of bytes read from the inputs, before decompression.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Returns the value that [`Documents::bytes_read`] has at the end, unless a file changes; `None` if standard input
    /// or a pipe is among the inputs.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Reads the next record, or makes progress towards it. Returns false at the end of all inputs.
    fn advance(&mut self, batch: &mut Batch) -> anyhow::Result<bool> {
        if let Some(records) = &mut self.records {
            if !records.advance(batch)? {
                if let Some(cut) = records.cut() {
                    self.counts.cut_archives += 1;
                    self.counts.first_cut.get_or_insert(cut);
                }
                self.records = None;
            }
        } else if let Some(source) = self.sources.pop() {
            self.begin(source, batch)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads a single document from `source`, or makes `source` the current input with records.
    fn begin(&mut self, source: Source, batch: &mut Batch) -> anyhow::Result<()> {
        match source {
            Source::Records(origin, kind) => {
                tracing::info!(?kind, "reading {}", origin.name().display());
                let (parser, max) = (&self.parser, self.record_bytes_max);
                self.records = Some(Records::open(origin, kind, parser, max, &self.consumed)?);
            }
            Source::Whole(origin, key) => match self.whole(origin, key)? {
                Some(Ok(whole)) => batch.push_whole(whole),
                Some(Err(bad)) => batch.push_bad(bad),
                None => self.counts.skipped_lossy += 1,
            },
            Source::Folder { root, mut files } => {
                let Some(file) = files.next() else { return Ok(()) };
                let path = root.join(&file);
                tracing::debug!("reading {}", path.display());
                self.sources.push(Source::Folder { root, files });
                match self.file_of_folder(&path, &file) {
                    None => {}
                    Some(Ok(whole)) => batch.push_whole(whole),
                    Some(Err(bad)) => batch.push_bad(bad),
                }
            }
        }
        Ok(())
    }

    /// Reads an input that is a single document; `None` if it is skipped. The user named the input, so it is an error
    /// if it is not text.
    fn whole(&self, origin: Origin, key: Vec<u8>) -> anyhow::Result<Option<Result<WholeFile, Problem>>> {
        let name = origin.name();
        let html = http::is_named_html(&open::without_compression(&name));
        let place = Place::file(name);
        let reader = Reader::open(origin, &self.consumed)?;
        let contents = folder::read_contents(reader, &self.reading(html))?;
        let reason = match contents {
            Contents::Text(text) => return Ok(Some(whole(key, text, html, place))),
            Contents::Lossy { .. } if self.parser.invalid_utf8 == InvalidUtf8::Skip => return Ok(None),
            Contents::Binary { is_tar: true, .. } => {
                "is a tar archive, which twindex does not decode: unpack it, as `tar -xf` does".to_owned()
            }
            Contents::Binary { offset, .. } => format!("not text: a zero byte at offset {offset}"),
            Contents::Lossy { offset: Some(offset) } => {
                format!("not UTF-8: a bad byte at offset {offset} ({LOSSY_ADVICE})")
            }
            Contents::Lossy { offset: None } => format!("not in the encoding that is said ({LOSSY_ADVICE})"),
            Contents::TooLong => self.too_long(),
        };
        Ok(Some(Err(Problem { place, reason })))
    }

    /// Reads a file in a folder; `None` if it is not text.
    fn file_of_folder(&mut self, path: &Path, below: &Path) -> Option<Result<WholeFile, Problem>> {
        let (html, place) = (http::is_named_html(path), Place::file(Arc::from(path)));
        let reason = match folder::read_file(path, &self.reading(html), &self.consumed) {
            Ok(Contents::Text(text)) => return Some(whole(folder::key_below(below), text, html, place)),
            Ok(Contents::Binary { .. }) => {
                self.counts.skipped_binary += 1;
                return None;
            }
            Ok(Contents::Lossy { .. }) => {
                self.counts.skipped_not_utf8 += 1;
                return None;
            }
            Ok(Contents::TooLong) => self.too_long(),
            Err(problem) => return Some(Err(problem)),
        };
        Some(Err(Problem { place, reason }))
    }

    /// Returns the options for reading a whole file.
    fn reading(&self, html: bool) -> folder::FileReadOptions {
        folder::FileReadOptions {
            bytes_max: self.record_bytes_max,
            invalid: self.parser.invalid_utf8.of(html),
            charset: self.parser.charset,
            html,
        }
    }

    fn too_long(&self) -> String {
        format!("a text of more than {} bytes", self.record_bytes_max)
    }

    /// Counts a bad record. Returns an error if too many were skipped.
    fn skip(&mut self, bad: &Problem) -> anyhow::Result<()> {
        // guard: no bad record more than allowed is skipped
        // without it: self.skip_bad -> self.skip_bad.saturating_add(1)
        if self.counts.skipped_bad == self.skip_bad {
            return Err(match self.skip_bad {
                0 => anyhow!("{bad}; --skip-bad N passes over up to N bad records"),
                allowed => {
                    anyhow!("{bad}; as many bad records as --skip-bad {allowed} allows came before it")
                }
            });
        }
        self.counts.skipped_bad += 1;
        if self.counts.first_bad.len() < BAD_KEPT {
            self.counts.first_bad.push(bad.to_string());
        }
        Ok(())
    }
}

/// Returns whether a file has the suffix of a text format, including HTML.
fn is_named_as_text(path: &Path) -> bool {
    let plain = open::without_compression(path);
    let is_one =
        |suffix: &std::ffi::OsStr| TEXT_SUFFIXES.iter().any(|name| suffix.eq_ignore_ascii_case(name));
    plain.extension().is_some_and(is_one) || http::is_named_html(&plain)
}

/// The suffixes of text files.
const TEXT_SUFFIXES: [&str; 7] = ["txt", "text", "md", "markdown", "rst", "tex", "log"];

/// Returns whether a file has the name of an output file of Hadoop or Spark without a suffix, such as `part-00000`.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("part-").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Returns the format of the files in a folder: `None` if each file is one document, or there is no file.
///
/// A folder that has files of several formats, or record files and other files, is an error: its record files would be
/// read as one text each, or files would be left out. JSON objects are common among texts of other kinds, so `.json`
/// files are records only if there are no other files.
fn kind_of_folder(root: &Path, listing: &folder::Listing) -> anyhow::Result<Option<Kind>> {
    let mut found = [0_u64; Kind::ALL.len()];
    let (mut others, mut objects) = (0_u64, 0_u64);
    for file in &listing.files {
        let kind = match Kind::of_name(file) {
            None if is_part(file) => sniff::kind(&root.join(file)).ok().flatten(),
            named => named,
        };
        let plain = open::without_compression(file);
        objects += u64::from(plain.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json")));
        match kind {
            Some(kind) => found[kind as usize] += 1,
            None => others += 1,
        }
    }
    if others > 0 && found.iter().sum::<u64>() == objects {
        return Ok(None);
    }
    let found: Vec<(Kind, u64)> = Kind::ALL.into_iter().zip(found).filter(|(_, files)| *files > 0).collect();
    if others == 0 && found.len() < 2 {
        return Ok(found.first().map(|(kind, _)| *kind));
    }
    let root = root.display();
    let named = if others == 0 {
        "its files are records of several formats".to_owned()
    } else {
        let files: u64 = found.iter().map(|(_, files)| files).sum();
        let are = if files == 1 { "is" } else { "are" };
        format!(
            "a folder of texts is expected, and {} beside {} {are} records",
            counted(files, "file"),
            counted(others, "other")
        )
    };
    if let [(kind, _)] = found[..] {
        let name = kind.suffixes()[0];
        bail!(
            "{root}: {named}: --format {name} reads their records, and leaves out the others, --glob PATTERN \
             selects files, --format text takes each file as one document"
        );
    }
    let formats: Vec<&str> = found.iter().map(|(kind, _)| kind.suffixes()[0]).collect();
    let kinds: Vec<String> = formats
        .iter()
        .zip(&found)
        .map(|(name, (_, files))| format!("{} of {name}", counted(*files, "file")))
        .collect();
    bail!(
        "{root}: {named}, {}: name the files one by one to read all records; --format {} reads those of one kind and \
         leaves out the others, --glob PATTERN selects files, --format text takes each file as one document",
        kinds.join(", "),
        formats.join(" or ")
    )
}

/// Returns the visible text of an HTML page.
///
/// # Errors
///
/// This build does not read HTML.
#[cfg(feature = "html")]
#[allow(clippy::unnecessary_wraps, reason = "as where the feature is not there")]
fn page_text(page: &str) -> Result<String, String> {
    Ok(html::text(page))
}

#[cfg(not(feature = "html"))]
fn page_text(_page: &str) -> Result<String, String> {
    Err("a page of HTML, which this build of twindex does not read; build it with the cargo feature `html`"
        .to_owned())
}

/// Combines the text of a file and its key. Fails if the key is invalid.
fn whole(key: Vec<u8>, text: folder::FileText, html: bool, place: Place) -> Result<WholeFile, Problem> {
    match check_key(&key) {
        Ok(()) => Ok(WholeFile { key, text, html, place }),
        Err(reason) => Err(Problem { place, reason }),
    }
}

/// Returns whether `path` is `-`, which means standard input.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns an error if an index does not allow the key.
pub(crate) fn check_key(key: &[u8]) -> Result<(), String> {
    match key.len() {
        // guard: an empty key is refused
        // without it: Err("the key is empty".to_owned()) -> Ok(())
        0 => Err("the key is empty".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        // guard: a key of more than 65,535 bytes is refused
        // without it: _ => Ok(()),
        bytes => Err(format!("the key has {bytes} bytes, {KEY_BYTES_MAX} is the most")),
    }
}

/// Returns the first few of `names` for a message.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let mut shown: Vec<String> = names
        .take(NAMES_SHOWN)
        .map(|name| {
            let start: String = name.chars().take(NAME_CHARACTERS_SHOWN).collect();
            let dots = if start.len() < name.len() { "..." } else { "" };
            format!("{start:?}{dots}")
        })
        .collect();
    match (shown.len(), more) {
        (0, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        _ => {
            shown.push(format!("and {more} more"));
            shown.join(", ")
        }
    }
}

#[cfg(test)]
mod tests;
