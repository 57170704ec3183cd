//! The settings for reading inputs.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::error::InvalidOptions;
use crate::input::fields::fingerprint::FingerprintField;
use crate::input::fields::record::Ids;
use crate::input::open::kind::Kind;
use crate::input::options::{InputFormat, InputOptions, TextForm};
use crate::input::tables::dialect::Dialect;
use crate::input::text::charset::Charset;
use crate::input::text::lossy::InvalidUtf8;
use crate::settings::declared::settings;
use crate::settings::value::{Value, choices};

settings! {
    /// What is read, and how.
    Reading, "What is read" {
        /// Files or folders of JSONL, CSV, TSV, Parquet, Arrow, WET, WARC, ARC, text or HTML
        ///
        /// All formats except Parquet and Arrow may be compressed (.gz, .zst, .xz, .bz2, .lz4). `-` reads JSONL from
        /// standard input.
        inputs: Vec<PathBuf> = Vec::new(), "INPUT";
        /// Field or fields that contain the text, such as `body` or `title,body`
        ///
        /// `a.b` and `/a/b` are paths of nested fields. The texts of several fields are joined by newlines. A field is
        /// a member of a JSON object or a column of a table. Null counts as an empty text. [default: text]
        text_field: Option<String> = None, "FIELD";
        /// Form of the texts in fields: plain or html
        ///
        /// `html` compares the visible text, as of HTML files. Records are kept unchanged.
        text_form: TextForm = TextForm::Plain, "FORM", rare true;
        /// Field that contains the key, or `FILE:ROW`
        ///
        /// Fields are named as in --text-field. A key is a string, a number, a UUID or a time, as written in the input.
        /// In archives, it is the value of a header field. With `FILE:ROW`, a key consists of the file name and the
        /// number of the record, even if there is a field `id`. [default: `id`, or `FILE:ROW` if no field is named
        /// `id`; in archives, `WARC-Target-URI`]
        id_field: Option<String> = None, "FIELD";
        /// Format of all inputs; overrides file names
        ///
        /// One of jsonl, csv, tsv, parquet, arrow, wet, warc, arc and text. In folders, only files with an extension of
        /// this format are read. `text` reads each file as one document. [default: auto, by file names]
        format: InputFormat = InputFormat::Auto, "FORMAT";
        /// In folders, read only files that match GLOB; `!GLOB` skips matching files
        ///
        /// `*.jsonl` matches file names; `en/**` matches paths below the folder. The option may be repeated. A file
        /// that matches a `!GLOB` is skipped even if it matches another pattern. Names that begin with `.`, or with `_`
        /// in folders of records, match only a GLOB with such a name, such as `_*` or `**/.*/**`.
        glob: Vec<String> = Vec::new(), "GLOB";
        /// Skip and count up to N bad records
        skip_bad: u64 = 0, "N";
        /// Encoding of texts: a label such as gbk, or auto
        ///
        /// The Encoding standard defines the labels. `auto` uses the byte order mark, else the encoding that a page
        /// declares, else an encoding guessed from the bytes. [default: UTF-8; for HTML, auto]
        encoding: Option<Charset> = None, "LABEL";
        /// Treatment of invalid bytes: error, replace or skip
        ///
        /// `error` makes the text a bad record, but skips files in folders. `replace` replaces invalid bytes with
        /// U+FFFD; for `dedup`, the text is then a copy only of a text with the same bytes. `skip` skips and counts the
        /// text. Bytes of keys are never replaced. [default: error; in HTML and archives, replace]
        invalid_utf8: InvalidUtf8 = InvalidUtf8::Usual, "ACTION";
        /// Field that contains features instead of a text: a set or vector
        ///
        /// A set is an array of strings and integers. A vector is an array of [feature, weight] pairs, or an object
        /// that maps features to weights. Simhash uses the weights. MinHash uses only the set of features with a
        /// positive weight, unless it is weighted too. The set may be empty.
        features_field: Option<String> = None, "FIELD";
        /// Dialect of CSV and TSV, such as `delimiter=space,no-header`
        ///
        /// Its parts are separated by commas. `delimiter=CHAR` is by default a comma in CSV and a tab in TSV, unless
        /// the first line is `sep=CHAR`. `quote=CHAR` is by default the double quote in CSV; with `quote=none`, the
        /// default in TSV, each line is a row. `escape=CHAR` is for files in which CHAR, not a second quote, escapes a
        /// quote. Without quotes, `escape=\` reads dumps of databases: `\t` and `\n` are a tab and a newline, `\N` is null. With `no-header`, the columns are named 1, 2 and so on. CHAR is a character, or `tab`, `comma` or
        /// `space`.
        dialect: Dialect = Dialect::default(), "DIALECT";
    }
}

settings! {
    /// Fingerprints that are read instead of texts.
    Fingerprints, "What is read" {
        /// Field that contains a fingerprint instead of a text
        ///
        /// It has 64, 128, 192, 256, 384 or 512 bits. FORM:FIELD specifies its form: `hex` (with or without 0x; up to
        /// 16 digits are 64 bits), `decimal` (unsigned), `signed` (a signed 64-bit integer, as in databases), `bits`
        /// (zeros and ones, the highest bit first), `base64` (with padding), `bytes` (of a binary column; by default if
        /// their number is fixed), or `auto` (any other form). `auto` refuses 16 decimal digits, which could be hex or
        /// decimal, and base64 without `=`. A number is decimal, or signed if it is negative. [default form: auto]
        fingerprint_field: Option<FingerprintField> = None, "FIELD";
    }
}

/// The value of `id_field` that requests keys made of the file name and the number of the record.
const FILE_AND_ROW: &str = "FILE:ROW";

impl Reading {
    /// Returns the options for reading inputs.
    ///
    /// # Errors
    ///
    /// Several settings name a field to compare; only one is allowed.
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
            text_form: self.text_form,
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

choices! {
    TextForm {
        TextForm::Plain => "plain",
        TextForm::Html => "html",
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

const FORMATS: [(&str, InputFormat); 10] = [
    ("auto", InputFormat::Auto),
    ("jsonl", InputFormat::Records(Kind::Jsonl)),
    ("csv", InputFormat::Records(Kind::Csv)),
    ("tsv", InputFormat::Records(Kind::Tsv)),
    ("parquet", InputFormat::Records(Kind::Parquet)),
    ("arrow", InputFormat::Records(Kind::Arrow)),
    ("wet", InputFormat::Records(Kind::Wet)),
    ("warc", InputFormat::Records(Kind::Warc)),
    ("arc", InputFormat::Records(Kind::Arc)),
    ("text", InputFormat::Text),
];
