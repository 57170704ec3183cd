//! Counts of documents that were read or skipped, and notes for the summary. Also checks that each named field occurs
//! in at least one record.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::Serialize;
use twindex::params::{NormalForm, Shingling};
use twindex::sketch::cut::{Letters, letters};

use crate::input::fields::attached::HasField;
use crate::input::fields::record::Fields;
use crate::input::options::{ID_FIELD, InputOptions};
use crate::input::parser::Parser;
use crate::input::place::{Place, Problem};
use crate::input::whole_files::NoText;
use crate::work::numbers::{count, counted};

/// Number of bad records that the summary lists.
pub(crate) const BAD_KEPT: usize = 5;

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
    /// Number of HTML pages without visible text.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen_pages: u64,
    /// Number of documents without a fingerprint or features.
    #[serde(skip_serializing_if = "is_zero")]
    pub contentless: u64,
    /// The position of the first document without a fingerprint or features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_contentless: Option<String>,
    /// Number of texts in fields that look like HTML and are compared with their markup.
    #[serde(skip_serializing_if = "is_zero")]
    pub marked_up: u64,
    /// Number of texts whose encoding was detected from their bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub detected_encodings: u64,
    /// The name of the encoding detector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding_detector: Option<&'static str>,
    /// Counts of the files in folders that are no texts.
    #[serde(flatten)]
    pub no_texts: NoTexts,
    /// Number of bad records skipped, at most [`InputOptions::skip_bad`].
    pub skipped_bad: u64,
    /// Number of folder entries that were skipped: links, devices and, if only one format is read, files with suffixes
    /// of other formats.
    pub ignored: u64,
    /// Number of hidden files and folders that were skipped: their names begin with `.` or, in folders of records, `_`.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// The first hidden file or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_hidden: Option<String>,
    /// Number of files that the log of their Delta table no longer names, and that were skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale: u64,
    /// The first file that the log of its table no longer names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_stale: Option<String>,
    /// Number of files that describe a dataset beside Arrow files, and were skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub dataset_files: u64,
    /// The first file that describes a dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_dataset_file: Option<String>,
    /// Number of records of web archives that are neither texts nor pages.
    pub no_documents: u64,
    /// Number of revisit records in web archives. Each reports a capture that equals an earlier one.
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
    /// Number of files that several inputs name, and that were read once.
    #[serde(skip_serializing_if = "is_zero")]
    pub named_twice: u64,
    /// The first file that was named again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_named_twice: Option<String>,
    /// Number of documents that share the key of another document, so that a number was added to their key.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbered_keys: u64,
    /// Number of documents that were skipped because another document has the same key.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_keys: u64,
    /// The first document with a repeated key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_repeated: Option<String>,
    /// Number of documents that lack some of the text fields. Their texts consist of the other text fields.
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
    /// Counts of the checked texts by the Unicode normal form of their accented letters.
    #[serde(flatten)]
    pub forms: Forms,
    /// The fields that options name.
    #[serde(skip)]
    pub named: NamedFields,
}

/// Counts of files in folders that were skipped because they are no texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoTexts {
    /// Number of files of unknown formats that contain a zero byte.
    pub skipped_binary: u64,
    /// Number of files that are not UTF-8. Files with a zero byte are not included.
    pub skipped_not_utf8: u64,
    /// Number of files of each known format that is not read, and of files that cannot be decompressed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped_formats: BTreeMap<&'static str, u64>,
    /// The first skipped file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_no_text: Option<String>,
}

impl NoTexts {
    /// Counts a file.
    pub(crate) fn add_file(&mut self, place: &Place, why: NoText) {
        match why {
            NoText::Binary => self.skipped_binary += 1,
            NoText::NotUtf8 => self.skipped_not_utf8 += 1,
            NoText::Foreign(format) => *self.skipped_formats.entry(format.name()).or_default() += 1,
            NoText::Packed => *self.skipped_formats.entry("wrongly compressed").or_default() += 1,
        }
        self.first_no_text.get_or_insert_with(|| place.to_string());
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.skipped_binary += more.skipped_binary;
        self.skipped_not_utf8 += more.skipped_not_utf8;
        for (format, files) in &more.skipped_formats {
            *self.skipped_formats.entry(format).or_default() += files;
        }
        self.first_no_text = self.first_no_text.take().or_else(|| more.first_no_text.clone());
    }

    /// Returns the note for the summary; `None` if no file was skipped.
    fn remark(&self) -> Option<String> {
        let first = self.first_no_text.as_deref()?;
        let formats = self.skipped_formats.iter().map(|(format, files)| (*format, *files));
        let all = formats.chain([("binary", self.skipped_binary), ("not UTF-8", self.skipped_not_utf8)]);
        let all: Vec<_> = all.filter(|(_, files)| *files > 0).collect();
        let total = counted(all.iter().map(|(_, files)| files).sum(), "file");
        let each: Vec<_> = all.iter().map(|(what, files)| format!("{} {what}", count(*files))).collect();
        Some(format!("{total} passed over: {}, the first: {first}", each.join(", ")))
    }
}

/// Counts of texts by the encoding of their accented letters: composed (NFC) or decomposed (NFD). Not counted if texts
/// are normalized.
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
    /// Number of bytes at the start of a text whose normal form is checked. Texts rarely mix forms, and checking more
    /// bytes would noticeably slow down the processing of short texts.
    pub const LOOKED_AT: usize = 256;

    /// Counts the normal form of a text. Does nothing if texts are normalized or accents are removed before comparison.
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

    /// Adds the counts in `more` to these counts.
    pub fn add(&mut self, more: Self) {
        self.composed_texts += more.composed_texts;
        self.decomposed_texts += more.decomposed_texts;
    }
}

/// The fields that options name, to report those that occur in no input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFields {
    /// The name of the value field.
    pub(crate) value: Option<String>,
    /// The number of documents that were checked for the value field, and the number of documents that have it.
    pub(crate) checked: u64,
    pub(crate) valued: u64,
    /// The named fields that were found in records.
    pub(crate) seen: FieldsSeen,
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
    /// Adds the counts in `more`, which are from later inputs.
    pub fn add(&mut self, more: &Self) {
        self.documents += more.documents;
        self.text_bytes += more.text_bytes;
        self.replaced_utf8 += more.replaced_utf8;
        self.first_replaced = self.first_replaced.take().or_else(|| more.first_replaced.clone());
        self.skipped_lossy += more.skipped_lossy;
        self.unseen_pages += more.unseen_pages;
        self.contentless += more.contentless;
        self.first_contentless = self.first_contentless.take().or_else(|| more.first_contentless.clone());
        self.marked_up += more.marked_up;
        self.detected_encodings += more.detected_encodings;
        self.encoding_detector = self.encoding_detector.or(more.encoding_detector);
        self.no_texts.add(&more.no_texts);
        self.skipped_bad += more.skipped_bad;
        self.ignored += more.ignored;
        self.hidden += more.hidden;
        self.first_hidden = self.first_hidden.take().or_else(|| more.first_hidden.clone());
        self.stale += more.stale;
        self.first_stale = self.first_stale.take().or_else(|| more.first_stale.clone());
        self.dataset_files += more.dataset_files;
        self.first_dataset_file = self.first_dataset_file.take().or_else(|| more.first_dataset_file.clone());
        self.no_documents += more.no_documents;
        self.revisits += more.revisits;
        self.cut_archives += more.cut_archives;
        self.first_cut = self.first_cut.take().or_else(|| more.first_cut.clone());
        self.keyed_by_line += more.keyed_by_line;
        self.kinds_by_content += more.kinds_by_content;
        self.first_by_content = self.first_by_content.take().or_else(|| more.first_by_content.clone());
        self.files_as_one_text += more.files_as_one_text;
        self.first_as_one_text = self.first_as_one_text.take().or_else(|| more.first_as_one_text.clone());
        self.named_twice += more.named_twice;
        self.first_named_twice = self.first_named_twice.take().or_else(|| more.first_named_twice.clone());
        self.numbered_keys += more.numbered_keys;
        self.repeated_keys += more.repeated_keys;
        self.first_repeated = self.first_repeated.take().or_else(|| more.first_repeated.clone());
        self.partial_texts += more.partial_texts;
        self.first_partial = self.first_partial.take().or_else(|| more.first_partial.clone());
        let places_left = BAD_KEPT.saturating_sub(self.first_bad.len());
        self.first_bad.extend(more.first_bad.iter().take(places_left).cloned());
        self.named.add(&more.named);
        self.forms.add(more.forms);
    }

    /// Checks that files of folders were not all skipped, and that each field that `options` name occurs in a record of
    /// the counted inputs. Used after all [parts](InputOptions::is_part) of the inputs were read.
    ///
    /// # Errors
    ///
    /// There is no document, and files of folders were skipped. A named field occurs in no record. The message lists the
    /// skipped files, or the fields that a record has.
    pub fn check(&self, options: &InputOptions) -> anyhow::Result<()> {
        self.check_for(&Parser::new(options).fields)
    }

    /// Like [`check`](Self::check), for fields.
    pub(crate) fn check_for(&self, fields: &Fields) -> anyhow::Result<()> {
        if self.documents == 0
            && self.skipped_bad == 0
            && let Some(skipped) = self.no_texts.remark()
        {
            bail!("no document was found in the input: {skipped}");
        }
        self.named.seen.check_names(fields)
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

    /// Adds notes on how files were read.
    fn remarks_on_files(&self, remarks: &mut Vec<String>) {
        if let Some(first) = &self.first_dataset_file {
            let (files, describe) = match self.dataset_files {
                1 => ("1 file".to_owned(), "describes"),
                more => (counted(more, "file"), "describe"),
            };
            remarks.push(format!("{files} passed over that {describe} the dataset, the first: {first}"));
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
        if let Some(first) = &self.first_named_twice {
            remarks.push(format!(
                "{} named more than once and read once, the first: {first}",
                counted(self.named_twice, "file")
            ));
        }
    }

    /// Adds notes on documents with the key of another document.
    fn remarks_on_repeated_keys(&self, remarks: &mut Vec<String>) {
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

    /// Like [`Counts::remarks`], but without a note if there are no documents. Used for parts of the inputs, which may
    /// have none.
    #[must_use]
    pub fn remarks_of_part(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(self.no_texts.remark());
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
        if let Some(first) = &self.first_contentless {
            remarks.push(format!(
                "{} without a fingerprint or features, near nothing but one with the same key, the first: {first}",
                counted(self.contentless, "document")
            ));
        }
        if self.marked_up > 0 {
            let texts = counted(self.marked_up, "text");
            remarks.push(format!(
                "{texts} compared with tags of HTML; --text-form html compares what is visible"
            ));
        }
        if self.detected_encodings > 0 {
            remarks.push(format!(
                "{} in the encoding that {} takes them to be in",
                counted(self.detected_encodings, "text"),
                self.encoding_detector.unwrap_or_default()
            ));
        }
        self.remarks_on_files(&mut remarks);
        self.remarks_on_repeated_keys(&mut remarks);
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
        if let Some(first) = &self.first_hidden {
            let entries = match self.hidden {
                1 => "1 hidden file or folder".to_owned(),
                more => format!("{} hidden files and folders", count(more)),
            };
            remarks.push(format!("{entries} left out, the first: {first} (--glob)"));
        }
        if let Some(first) = &self.first_stale {
            remarks.push(format!(
                "{} left out that the log of the Delta table no longer names, the first: {first}",
                counted(self.stale, "file")
            ));
        }
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
        if let Some(first) = self.first_bad.first() {
            remarks.push(format!("{} skipped, the first: {first}", counted(self.skipped_bad, "bad record")));
        }
        self.named.remarks(&mut remarks);
        remarks
    }
}

/// The named fields that were found in records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldsSeen {
    /// Number of documents that are records, not whole files.
    documents: u64,
    /// Number of documents with their text in named fields. Texts of web archives are not in named fields.
    texts: u64,
    /// Number of documents whose fields other than key and text were read.
    attached: u64,
    /// Bit `i` is set if at least one document has text field `i`.
    text: u64,
    /// The optional fields that at least one document has.
    has: HasField,
    /// The position of the first document that lacks a text field or an optional field, and the fields that it has.
    first_lacking: Option<String>,
    /// The message of the first bad record that lacks a required field.
    first_missing: Option<String>,
    /// A field that decides which documents are kept may have numbers or times. For each rule, the positions of the first
    /// document with a number and of the first with a time.
    firsts: Vec<[Option<String>; 2]>,
}

/// The fields, except key and text, that were found in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttachedSeen {
    pub(crate) has: HasField,
    /// Bit `i` is set if rule `i` that decides which documents are kept has a field with a number, or with a time.
    pub(crate) numbers: u32,
    pub(crate) times: u32,
}

impl FieldsSeen {
    /// Counts a document. Bit `i` of `absent` is set if the document lacks text field `i`; `absent` is `None` if the
    /// text is not in a field. `place` returns the document's position, and `here` lists its fields.
    pub(crate) fn add_document(
        &mut self,
        fields: &Fields,
        absent: Option<u64>,
        attached: Option<AttachedSeen>,
        place: impl Fn() -> Place,
        here: impl FnOnce() -> String,
    ) {
        self.documents += 1;
        let mut is_lacking = false;
        if let Some(absent) = absent {
            self.texts += 1;
            self.text |= !absent;
            is_lacking = absent != 0;
        }
        if let Some(AttachedSeen { has, numbers, times }) = attached {
            self.attached += 1;
            self.has.value |= has.value;
            self.has.url |= has.url;
            is_lacking |= fields.attached.value.is_some() && !has.value;
            is_lacking |= fields.attached.deciding.url.is_some() && !has.url;
            let count = (u32::BITS - (numbers | times).leading_zeros()) as usize;
            if self.firsts.len() < count {
                self.firsts.resize(count, [None, None]);
            }
            for (rule, firsts) in self.firsts.iter_mut().enumerate() {
                for (first, seen) in firsts.iter_mut().zip([numbers, times]) {
                    if seen >> rule & 1 == 1 {
                        first.get_or_insert_with(|| place().to_string());
                    }
                }
            }
        }
        if is_lacking && self.first_lacking.is_none() {
            self.first_lacking = Some(format!("{}: {}", place(), here()));
        }
    }

    /// Stores the message of the first bad record that lacks a required field.
    pub(crate) fn add_missing(&mut self, bad: &Problem) {
        self.first_missing.get_or_insert_with(|| bad.to_string());
    }

    /// Adds the fields in `more`, which were found in later records.
    pub(crate) fn add(&mut self, more: &Self) {
        self.documents += more.documents;
        self.texts += more.texts;
        self.attached += more.attached;
        self.text |= more.text;
        self.has.value |= more.has.value;
        self.has.url |= more.has.url;
        self.first_lacking = self.first_lacking.take().or_else(|| more.first_lacking.clone());
        self.first_missing = self.first_missing.take().or_else(|| more.first_missing.clone());
        self.firsts.resize(self.firsts.len().max(more.firsts.len()), [None, None]);
        for (first, more) in self.firsts.iter_mut().flatten().zip(more.firsts.iter().flatten()) {
            *first = first.take().or_else(|| more.clone());
        }
    }

    /// Returns an error if a field that decides which documents are kept has numbers in some documents and times in
    /// others.
    pub(crate) fn check_types(&self, fields: &Fields) -> anyhow::Result<()> {
        let deciding = &fields.attached.deciding;
        for (rule, firsts) in deciding.keep.iter().zip(&self.firsts) {
            let (Some(name), [Some(number), Some(time)]) = (rule.field(), firsts) else { continue };
            let option = deciding.number_option();
            bail!(
                "field {name:?} ({option}): a number at {number}, and a time at {time}, which have no order; expected \
                 numbers or times alone"
            );
        }
        Ok(())
    }

    /// Returns an error if a named field occurs in no record. All records must have been read.
    pub(crate) fn check_names(&self, fields: &Fields) -> anyhow::Result<()> {
        // Documents of a history may lack a field that was added later.
        if fields.attached.deciding.is_history {
            return Ok(());
        }
        if self.documents == 0 {
            if let Some(missing) = &self.first_missing {
                bail!("no record has the named fields: {missing}");
            }
            return Ok(());
        }
        let mut absent: Vec<(&str, &str)> = Vec::new();
        let is_absent = |number: usize| self.texts > 0 && self.text >> number & 1 == 0;
        let names = fields.text_names().into_iter().enumerate();
        absent.extend(
            names.filter(|(number, _)| is_absent(*number)).map(|(_, name)| (name, fields.text_option())),
        );
        // These fields are checked only if they were read from all documents. A shard, for example, does not read them
        // from documents of other shards.
        if self.attached >= self.documents {
            let url = &fields.attached.deciding.url;
            absent.extend(
                fields
                    .attached
                    .value
                    .as_deref()
                    .filter(|_| !self.has.value)
                    .map(|name| (name, "--value-field")),
            );
            absent.extend(url.as_deref().filter(|_| !self.has.url).map(|name| (name, "--url-field")));
        }
        let Some((name, option)) = absent.first() else { return Ok(()) };
        let also: Vec<String> = absent[1..].iter().map(|(name, _)| format!(", nor {name:?}")).collect();
        let first = self.first_lacking.as_deref().unwrap_or_default();
        bail!("no record has a field {name:?}{} (see {option}); the first is {first}", also.concat())
    }
}
