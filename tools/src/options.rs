//! Options that several verbs share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use twindex::sys::{Access, MemoryBudget};

use twindex_corpus::RepeatedKeys;
use twindex_corpus::input::{
    Charset, Compression, Dialect, FingerprintForm, Ids, InputFormat, InputOptions, InvalidUtf8, Kind, Quote,
};
use twindex_corpus::sketching::SketchOptions;

/// An error in the options that the command-line parser cannot detect. The exit code is 2, as for errors of the parser.
pub(crate) use twindex_corpus::InvalidOptions as Usage;

/// How a resemblance is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    /// By exact counts of shingles in the texts
    Exact,
    /// By the signatures in the index; an estimate
    Signature,
}

/// Options for what a verb prints.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print JSON on standard output instead of text: one object per line for each result, if there are results, and a
    /// last one with statistics
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress bars, summary or notes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options for the resources a verb may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResourceArgs {
    /// Number of threads to use; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Memory budget for work that can use the disk instead, for example 512M or 4G
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    pub(crate) memory: usize,
}

impl ResourceArgs {
    /// Sets the number of threads of the whole process. Only the first call has an effect, so verbs that run as steps of
    /// another verb keep its setting.
    pub(crate) fn apply(&self) -> anyhow::Result<()> {
        static IS_APPLIED: AtomicBool = AtomicBool::new(false);
        if IS_APPLIED.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0).into())
            .use_current_thread() // the current thread is one of the threads
            .build_global()
            .context("cannot start threads")
    }
}

/// Options of verbs that query an index.
#[derive(Args, Clone, Debug)]
pub(crate) struct AccessArgs {
    /// How the index is read: map, through memory maps; read, one page at a time, which is slower, but a failing disk or
    /// network gives an error instead of ending the process; load, which first reads the whole index into memory, for
    /// many queries of a large index; or plain-map, through memory maps without hints to the system, for comparison
    #[arg(long, value_enum, value_name = "HOW", default_value = "map")]
    access: AccessArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccessArg {
    Map,
    Read,
    Load,
    PlainMap,
}

impl AccessArgs {
    pub(crate) fn access(&self) -> Access {
        match self.access {
            AccessArg::Map => Access::Map,
            AccessArg::Read => Access::Read,
            AccessArg::Load => Access::Load,
            AccessArg::PlainMap => Access::PlainMap,
        }
    }
}

pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 1_u64,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err("expected a number and K, M, G or T, for example 512M".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number, for example 512M".to_string())?;
    match number.checked_mul(unit) {
        Some(size) if size < twindex_corpus::MEMORY_MIN as u64 => Err("at least 64K".into()),
        Some(size) => usize::try_from(size).map_err(|_| "more than this machine can address".into()),
        None => Err("too large".into()),
    }
}

/// Options of verbs that read documents.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// JSONL, CSV, TSV, WET, WARC and ARC files (also .gz and .zst), Parquet files, text or HTML files, folders of files of
    /// one of these formats, or - for JSONL on standard input
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Field of a JSONL object, or column of a table, that holds the text. It may be a path into nested objects,
    /// meta.text or /meta/text, or several fields, title,body, which are joined by newlines. Null is an empty text
    /// [default: text]
    #[arg(long, value_name = "NAME")]
    text_field: Option<String>,
    /// Field of a JSONL object that holds features instead of a text: an array of strings and integers (a set), an array
    /// of [feature, weight] pairs, or an object of weights. The simhash uses the weights. MinHash uses the set of
    /// features with a positive weight, which may be empty, unless the index weights the features for MinHash as well
    #[arg(long, value_name = "NAME", conflicts_with = "text_field")]
    features_field: Option<String>,
    /// Field of a JSONL object, column of a table, or header field of an archive record, that holds the document's key:
    /// a string, a number, a UUID or a time, used as it is written. It may be a path, meta.url or /meta/url, or several
    /// fields joined by commas, shard,row [default: id, or `FILE:ROW` if it is missing; for archives, WARC-Target-URI]
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
    /// Format of the inputs: determined by file names, or the same for all inputs. In a folder, auto expects files of one
    /// format, and any other value reads only the files with names of this format [default: auto]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// In folders, read only files that match one of these patterns: file names such as *.jsonl, or, with a /, paths
    /// below the folder such as en/**
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// In folders, skip files that match one of these patterns
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Field delimiter in CSV or TSV files: one character, or tab [default: a comma in CSV, unless the first line sets
    /// another with sep=; a tab in TSV]
    #[arg(long, value_name = "CHAR", value_parser = parse_byte)]
    delimiter: Option<u8>,
    /// Quote character in CSV or TSV files, for fields that contain delimiters or newlines: one character, or none, so
    /// that each line is a row [default: " in CSV, none in TSV]
    #[arg(long, value_name = "CHAR|none", value_parser = parse_quote)]
    quote: Option<Quote>,
    /// Character that escapes a quote inside a quoted field, in files that do not double such quotes
    #[arg(long, value_name = "CHAR", value_parser = parse_byte)]
    escape: Option<u8>,
    /// The first row of CSV or TSV files is not a header; columns are named 1, 2 and so on
    #[arg(long)]
    no_header: bool,
    /// Skip and count up to N bad records instead of stopping at the first [default: 0]
    #[arg(long, value_name = "N")]
    skip_bad: Option<u64>,
    /// What to do with a text that has bytes that are invalid in UTF-8 or in its encoding: refuse it with an error
    /// (files in folders are skipped); replace the bytes by U+FFFD, in which case `dedup` compares the text only for
    /// equality of its bytes; or skip and count it. Bytes of keys are never replaced [default: error; for HTML and
    /// archives, replace]
    #[arg(long, value_enum, value_name = "ACTION")]
    invalid_utf8: Option<Invalid>,
    /// Encoding of texts that are not UTF-8: a label as in `charset=`, for example windows-1251 or gbk; or auto, which
    /// uses a byte order mark, the page's own declaration, or a guess from the bytes [default: UTF-8; for HTML, auto]
    #[arg(long, value_name = "LABEL", value_parser = parse_encoding)]
    encoding: Option<Charset>,
}

/// Options of verbs that compare by distance: fingerprints that are read from records.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FingerprintArgs {
    /// Field of a JSONL object, or column of a table, that holds a 64-bit fingerprint instead of a text, such as a
    /// perceptual hash: a string or an integer. It may be a path, meta.phash or /meta/phash. Only fingerprints are kept,
    /// and compared by Hamming distance
    #[arg(long, value_name = "NAME")]
    fingerprint_field: Option<String>,
    /// How fingerprints are written: hex, 16 digits, or 0x and up to 16 digits; decimal, without a sign; signed, as
    /// databases store 64-bit integers; bits, 64 zeros and ones, the highest bit first; or auto, any of these. With
    /// auto, a string of 16 decimal digits is refused because it could be hex or decimal. A JSON number, or a value in
    /// an integer column, is decimal or signed [default: auto]
    #[arg(long, value_name = "FORM", requires = "fingerprint_field", value_parser = form_parser())]
    fingerprint_form: Option<FingerprintForm>,
}

fn form_parser() -> impl TypedValueParser<Value = FingerprintForm> {
    PossibleValuesParser::new(FingerprintForm::ALL.map(FingerprintForm::name))
        .map(|name| FingerprintForm::named(&name).expect("a name from the list"))
}

impl FingerprintArgs {
    /// Returns whether records are read as fingerprints, not as texts.
    pub(crate) fn are_read(&self) -> bool {
        self.fingerprint_field.is_some()
    }

    /// Returns these options with the field of fingerprints added.
    pub(crate) fn apply(&self, options: InputOptions) -> InputOptions {
        let Some(field) = &self.fingerprint_field else { return options };
        let fingerprint = Some(self.fingerprint_form.unwrap_or_default());
        InputOptions { text_field: field.clone(), features: false, fingerprint, ..options }
    }

    /// Returns an error if another field for the content to compare is also given.
    pub(crate) fn check(&self, input: &InputArgs) -> Result<(), Usage> {
        let other = [
            ("--features-field", input.features_field.is_some()),
            ("--text-field", input.text_field.is_some()),
        ];
        match other.iter().find(|(_, given)| *given && self.are_read()) {
            Some((option, _)) => Err(Usage::new(format!(
                "{option} and --fingerprint-field both name what is compared; leave one out"
            ))),
            None => Ok(()),
        }
    }
}

/// The option that compresses written documents.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CompressArgs {
    /// Compress the written JSON Lines, CSV and TSV files, whose names then end in `.gz` or `.zst`; every verb reads them.
    /// Parquet files and archives are not affected [default: not compressed]
    #[arg(long, value_enum, value_name = "HOW")]
    compress: Option<CompressArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressArg {
    Gzip,
    Zstd,
}

impl CompressArgs {
    /// Returns the compression; `None` if the option was not given.
    pub(crate) fn compression(self) -> Option<Compression> {
        self.compress.map(|how| match how {
            CompressArg::Gzip => Compression::Gzip,
            CompressArg::Zstd => Compression::Zstd,
        })
    }
}

/// The option for the source of keys, for verbs that read documents.
#[derive(Args, Clone, Debug)]
pub(crate) struct IdsArgs {
    /// Where keys come from: the field, which each record must have; the file name and the record's number in the file,
    /// as `FILE:ROW`; or the field, or `FILE:ROW` if no field is named and there is no field `id` [default: auto]
    #[arg(long, value_enum, value_name = "WHERE")]
    ids: Option<IdSource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdSource {
    Auto,
    Field,
    Line,
}

impl IdsArgs {
    /// Returns whether the option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.ids.is_some()
    }

    /// Returns these options with the source of keys added.
    pub(crate) fn apply(&self, options: InputOptions) -> InputOptions {
        self.ids.map_or(options.clone(), |source| source.apply(options))
    }
}

impl IdSource {
    pub(crate) fn apply(self, options: InputOptions) -> InputOptions {
        match self {
            Self::Auto => options,
            Self::Field => InputOptions { ids: Ids::Field, ..options },
            Self::Line => InputOptions { ids: Ids::Line, ..options },
        }
    }
}

/// What to do with a repeated key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Repeated {
    /// The second document with key K gets the key K#2, or the next free number
    Number,
    /// The first document is used, later ones are skipped and counted
    First,
    /// The last document is used, earlier ones are skipped and counted
    Last,
    /// Stop with an error
    Error,
}

/// The `--repeated-keys` option of verbs that use every document by default.
#[derive(Args, Clone, Debug)]
pub(crate) struct RepeatedArgs {
    /// What to do with a key that is repeated in the inputs. By default every document is used, so an index keeps the
    /// last one; otherwise later documents get a number after their key; or only the first, or only the last, is used;
    /// or it is an error [default: use every document]
    #[arg(long, value_enum, value_name = "HOW")]
    repeated_keys: Option<Repeated>,
}

impl RepeatedArgs {
    /// Returns the options for sketching documents. The set of seen keys uses `memory` bytes, and unnamed files beyond
    /// that.
    pub(crate) fn wanted(&self, memory: usize) -> SketchOptions {
        let budget = self.is_given().then(|| MemoryBudget::new(&std::env::temp_dir(), memory));
        let repeated_keys = self.repeated_keys.map_or(RepeatedKeys::Any, RepeatedKeys::from);
        SketchOptions { repeated_keys, budget, ..SketchOptions::default() }
    }

    /// Returns whether the option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.repeated_keys.is_some()
    }
}

impl From<Repeated> for RepeatedKeys {
    fn from(repeated: Repeated) -> Self {
        match repeated {
            Repeated::Number => Self::Number,
            Repeated::First => Self::First,
            Repeated::Last => Self::Last,
            Repeated::Error => Self::Error,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Auto,
    Jsonl,
    Csv,
    Tsv,
    Parquet,
    Wet,
    Warc,
    Arc,
    Text,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Invalid {
    Error,
    Replace,
    Skip,
}

fn parse_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(*byte),
        _ => Err("expected one character of ASCII, or tab".into()),
    }
}

fn parse_quote(text: &str) -> Result<Quote, String> {
    if text == "none" { Ok(Quote::None) } else { parse_byte(text).map(Quote::Byte) }
}

fn parse_encoding(label: &str) -> Result<Charset, String> {
    Charset::named(label)
        .ok_or_else(|| "expected auto, or a label of the Encoding standard, for example windows-1251".into())
}

impl InputArgs {
    /// Returns whether records are read as features, not as texts.
    pub(crate) fn reads_features(&self) -> bool {
        self.features_field.is_some()
    }

    /// Returns the name of the first given option that applies to documents; `None` if there is none.
    pub(crate) fn document_option(&self) -> Option<&'static str> {
        let given = [
            ("features-field", self.features_field.is_some()),
            ("text-field", self.text_field.is_some()),
            ("id-field", self.id_field.is_some()),
            ("format", self.format.is_some()),
            ("skip-bad", self.skip_bad.is_some()),
            ("invalid-utf8", self.invalid_utf8.is_some()),
            ("encoding", self.encoding.is_some()),
            ("include", !self.include.is_empty()),
            ("exclude", !self.exclude.is_empty()),
            ("delimiter", self.delimiter.is_some()),
            ("quote", self.quote.is_some()),
            ("escape", self.escape.is_some()),
            ("no-header", self.no_header),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    pub(crate) fn options(&self) -> InputOptions {
        let usual = InputOptions::default();
        InputOptions {
            text_field: self
                .features_field
                .as_ref()
                .or(self.text_field.as_ref())
                .unwrap_or(&usual.text_field)
                .clone(),
            features: self.reads_features(),
            invalid_utf8: match self.invalid_utf8 {
                None => InvalidUtf8::Usual,
                Some(Invalid::Error) => InvalidUtf8::Error,
                Some(Invalid::Replace) => InvalidUtf8::Replace,
                Some(Invalid::Skip) => InvalidUtf8::Skip,
            },
            encoding: self.encoding,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            dialect: Dialect {
                delimiter: self.delimiter,
                quote: self.quote.unwrap_or_default(),
                escape: self.escape,
                has_header: !self.no_header,
            },
            id_field: self.id_field.as_ref().unwrap_or(&usual.id_field).clone(),
            ids: if self.id_field.is_some() { Ids::Field } else { usual.ids },
            format: match self.format {
                None | Some(FormatArg::Auto) => InputFormat::Auto,
                Some(FormatArg::Jsonl) => InputFormat::Records(Kind::Jsonl),
                Some(FormatArg::Csv) => InputFormat::Records(Kind::Csv),
                Some(FormatArg::Tsv) => InputFormat::Records(Kind::Tsv),
                Some(FormatArg::Parquet) => InputFormat::Records(Kind::Parquet),
                Some(FormatArg::Wet) => InputFormat::Records(Kind::Wet),
                Some(FormatArg::Warc) => InputFormat::Records(Kind::Warc),
                Some(FormatArg::Arc) => InputFormat::Records(Kind::Arc),
                Some(FormatArg::Text) => InputFormat::Text,
            },
            skip_bad: self.skip_bad.unwrap_or(usual.skip_bad),
            ..usual
        }
    }
}

/// Parses a resemblance, which is above 0 and at most 1.
pub(crate) fn parse_resemblance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("expected a resemblance above 0 and up to 1, for example 0.8".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_their_units() {
        for (text, size) in [
            ("1048576", 1 << 20),
            ("2048k", 2 << 20),
            ("512M", 512 << 20),
            ("4GiB", 4 << 30),
            ("1GB", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for bad in ["", "M", "1", "63k", "1X", "-1", "1.5G", "99999999999T", "ü"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
