//! The settings for reading inputs.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::error::InvalidOptions;
use crate::input::fields::fingerprint::FingerprintField;
use crate::input::fields::record::Ids;
use crate::input::open::kind::Kind;
use crate::input::options::{InputFormat, InputOptions};
use crate::input::tables::dialect::Dialect;
use crate::input::text::charset::Charset;
use crate::input::text::lossy::InvalidUtf8;
use crate::settings::declared::settings;
use crate::settings::value::{Value, choices};

settings! {
    /// What is read, and how.
    Reading, "What is read" {
        /// Files or folders: JSONL, CSV, TSV, Parquet, WET, WARC, ARC, text, HTML; or -
        ///
        /// Files but Parquet may be compressed, .gz or .zst. `-` is JSONL on standard input.
        inputs: Vec<PathBuf> = Vec::new(), "INPUT";
        /// Field of the text: a name, a path a.b, or several a,b
        ///
        /// A path is a.b or /a/b. In JSONL, a member of the object; in tables, a column. The texts of several fields are joined by newlines.
        /// Null is an empty text. [default: text]
        text_field: Option<String> = None, "FIELD";
        /// Field of the key, or `FILE:ROW` for its place
        ///
        /// Written as --text-field. A string, a number, a UUID or a time, used as it is written; in archives, a header field. The literal
        /// `FILE:ROW` takes the file's name and the number of the record in it, also if there is a field `id`. [default: id if there is
        /// one, else `FILE:ROW`; in archives, WARC-Target-URI]
        id_field: Option<String> = None, "FIELD";
        /// Format of all inputs, if names do not tell it
        ///
        /// jsonl, csv, tsv, parquet, wet, warc, arc or text. In folders, only files with such names are read. `text` makes
        /// each file a document. [default: auto, by file names]
        format: InputFormat = InputFormat::Auto, "FORMAT";
        /// In folders, read only files that match, or skip !GLOB
        ///
        /// For example *.jsonl, a file name, or en/**, a path below the folder; may be repeated. Files of a !GLOB are skipped,
        /// whatever other patterns say.
        glob: Vec<String> = Vec::new(), "GLOB";
        /// Skip and count up to N bad records
        skip_bad: u64 = 0, "N";
        /// Encoding of texts: a label such as gbk, or auto
        ///
        /// Labels are those of the Encoding standard. `auto` takes a byte order mark, the page's own declaration, or else a
        /// guess from the bytes. [default: UTF-8; for HTML, auto]
        encoding: Option<Charset> = None, "LABEL";
        /// What to do with invalid bytes: error, replace or skip
        ///
        /// `error`: refuse the text; files in folders are skipped. `replace`: by U+FFFD; `dedup` then compares the text
        /// only for equality of its bytes. `skip`: skip and count it. Bytes of keys are never replaced. [default: error; in
        /// HTML and archives, replace]
        invalid_utf8: InvalidUtf8 = InvalidUtf8::Usual, "ACTION";
        /// Field of features instead of a text: a set or vector
        ///
        /// An array of strings and integers (a set), an array of [feature, weight] pairs, or an object of weights. The
        /// simhash uses the weights. MinHash uses the set of features with a positive weight, which may be empty, unless
        /// features are weighted for MinHash as well.
        features_field: Option<String> = None, "FIELD";
        /// Dialect of CSV and TSV, such as delimiter=; or no-header
        ///
        /// Parts are joined by commas. `delimiter=CHAR` [a comma in CSV, or that of a first line sep=; a tab in TSV];
        /// `quote=CHAR`, or `quote=none`, so that each line is a row [the double quote in CSV, none in TSV];
        /// `escape=CHAR`, for files that do not double quotes in quoted fields; `no-header`: columns are named 1, 2 and so
        /// on. A character is itself, or tab, comma or space.
        dialect: Dialect = Dialect::default(), "DIALECT";
    }
}

settings! {
    /// Fingerprints that are read instead of texts.
    Fingerprints, "What is read" {
        /// Field of a 64-bit fingerprint instead of a text
        ///
        /// A string or an integer. Only fingerprints are kept, and compared by Hamming distance. FORM:FIELD says how they
        /// are written: `hex`, 16 digits, or 0x and up to 16; `decimal`, without a sign; `signed`, as databases store 64-bit
        /// integers; `bits`, 64 zeros and ones, the highest bit first; `auto`, any of these, but a string of 16 decimal
        /// digits is refused because it could be hex or decimal. A number is decimal or signed. [default form: auto]
        fingerprint_field: Option<FingerprintField> = None, "FIELD";
    }
}

/// The value of `id_field` with which keys consist of the file name and the number of the record.
const FILE_AND_ROW: &str = "FILE:ROW";

impl Reading {
    /// Returns the options of the readers.
    ///
    /// # Errors
    ///
    /// Several settings name the field that is compared.
    pub fn options(&self, fingerprints: &Fingerprints) -> Result<InputOptions, InvalidOptions> {
        let usual = InputOptions::default();
        let fingerprint = fingerprints.fingerprint_field.as_ref();
        let fields = [
            ("--features-field", self.features_field.as_ref()),
            ("--text-field", self.text_field.as_ref()),
            ("--fingerprint-field", fingerprint.map(|fingerprint| &fingerprint.field)),
        ];
        let mut named = fields.into_iter().filter_map(|(option, field)| Some((option, field?)));
        let compared = named.next();
        if let (Some((one, _)), Some((other, _))) = (compared, named.next()) {
            return Err(InvalidOptions::new(format!(
                "{one} and {other} both name what is compared; leave one out"
            )));
        }
        let is_by_row = self.id_field.as_deref() == Some(FILE_AND_ROW);
        Ok(InputOptions {
            text_field: compared.map_or(usual.text_field, |(_, field)| field.clone()),
            features: self.features_field.is_some(),
            fingerprint: fingerprint.map(|fingerprint| fingerprint.form),
            invalid_utf8: self.invalid_utf8,
            encoding: self.encoding,
            globs: self.glob.clone(),
            dialect: self.dialect,
            ids: match &self.id_field {
                _ if is_by_row => Ids::Line,
                Some(_) => Ids::Field,
                None => usual.ids,
            },
            id_field: self.id_field.clone().filter(|_| !is_by_row).unwrap_or(usual.id_field),
            format: self.format,
            skip_bad: self.skip_bad,
            ..InputOptions::default()
        })
    }
}

impl Value for Dialect {
    fn parse(text: &OsStr) -> Result<Self, String> {
        crate::settings::value::utf8(text)?.parse()
    }

    fn write(&self) -> Vec<String> {
        if *self == Self::default() { Vec::new() } else { vec![self.to_string()] }
    }
}

impl Value for Charset {
    fn parse(text: &OsStr) -> Result<Self, String> {
        text.to_str().and_then(Self::named).ok_or_else(|| {
            "expected auto, or a label of the Encoding standard, for example windows-1251".to_owned()
        })
    }

    fn write(&self) -> Vec<String> {
        vec![self.name().to_owned()]
    }
}

impl Value for FingerprintField {
    fn parse(text: &OsStr) -> Result<Self, String> {
        crate::settings::value::utf8(text)?.parse()
    }

    fn write(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

choices! {
    InvalidUtf8 {
        InvalidUtf8::Error => "error",
        InvalidUtf8::Replace => "replace",
        InvalidUtf8::Skip => "skip",
    }
}

impl Value for InputFormat {
    fn parse(text: &OsStr) -> Result<Self, String> {
        let found = FORMATS.iter().find(|(name, _)| text == *name).map(|&(_, format)| format);
        found.ok_or_else(|| not_one_of(FORMATS.map(|(name, _)| name), text))
    }

    fn write(&self) -> Vec<String> {
        let found = FORMATS.iter().find(|(_, format)| format == self && *format != Self::Auto);
        found.map(|(name, _)| (*name).to_owned()).into_iter().collect()
    }
}

/// Returns the message for a text that is none of these names.
fn not_one_of<const N: usize>(names: [&str; N], text: &OsStr) -> String {
    format!("expected one of {}, found {:?}", names.join(", "), text.display().to_string())
}

const FORMATS: [(&str, InputFormat); 9] = [
    ("auto", InputFormat::Auto),
    ("jsonl", InputFormat::Records(Kind::Jsonl)),
    ("csv", InputFormat::Records(Kind::Csv)),
    ("tsv", InputFormat::Records(Kind::Tsv)),
    ("parquet", InputFormat::Records(Kind::Parquet)),
    ("wet", InputFormat::Records(Kind::Wet)),
    ("warc", InputFormat::Records(Kind::Warc)),
    ("arc", InputFormat::Records(Kind::Arc)),
    ("text", InputFormat::Text),
];
