//! Options for reading inputs. An option that has no effect on the inputs of a command is refused, because a user who
//! gives it expects an effect.

use std::path::PathBuf;

use crate::error::InvalidOptions;
use crate::input::fields::attached::AttachedFields;
use crate::input::fields::fingerprint::FingerprintForm;
use crate::input::fields::names;
use crate::input::fields::record::Ids;
use crate::input::open::kind::Kind;
use crate::input::tables::dialect::Dialect;
use crate::input::text::charset::Charset;
use crate::input::text::lossy::InvalidUtf8;

/// Default name of the key field.
pub(crate) const ID_FIELD: &str = "id";
/// Default name of the text field.
const TEXT_FIELD: &str = "text";

/// Selects the format of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputFormat {
    /// The format that the file name indicates, as listed in the documentation of the module `input`.
    #[default]
    Auto,
    /// Each file is a single document, whatever its name. Standard input is a document with the key `-`.
    Text,
    /// Records in this format, whatever the file name. In a folder, only files with a suffix of this format are read.
    Records(Kind),
}

/// Options for reading inputs.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// The field that contains the text. Default: `text`. If no field has exactly this name, the name may be a path
    /// into nested objects: `meta.text`, or the JSON pointer `/meta/text`. If several names are given, separated by
    /// commas, the values are joined with a newline between them. A null text is empty.
    pub text_field: String,
    /// Whether the text field contains features instead of a text: an array of strings and integers, an array of pairs
    /// of a feature and its weight, or an object of weights.
    pub features: bool,
    /// The format of fingerprints, if the text field contains a fingerprint instead of a text.
    pub fingerprint: Option<FingerprintForm>,
    /// The field that contains the key. Default: `id`. It may be a path, or several fields, whose values are joined
    /// with commas. Numbers, decimals, UUIDs and times are used as they are written.
    pub id_field: String,
    /// The source of keys. The default, [`Ids::FieldOrLine`], acts as [`Ids::Field`] if `id_field` is not `id`.
    pub ids: Ids,
    /// The fields that contain values other than key and text.
    pub attached: AttachedFields,
    /// Field names that no record may have, because output adds fields with these names.
    pub reserved: Vec<String>,
    /// The format of the inputs; by default, the format that each file name indicates.
    pub format: InputFormat,
    /// Glob patterns that select files in folders. Files that match a pattern after `!` are ignored. Without other
    /// patterns, all files are read. A pattern with `/` matches the path relative to the folder, others the file name.
    pub globs: Vec<String>,
    /// The dialect of CSV and TSV tables.
    pub dialect: Dialect,
    /// The form of the texts in fields.
    pub text_form: TextForm,
    /// Maximum number of bad records that are skipped and counted. The next bad record is an error.
    pub skip_bad: u64,
    /// The treatment of texts with bytes that are invalid in their encoding.
    pub invalid_utf8: InvalidUtf8,
    /// The encoding of texts. `None` means UTF-8, or [`Charset::Auto`] for HTML pages. In web archives the encoding
    /// applies to pages. Parquet and Arrow are always UTF-8.
    pub encoding: Option<Charset>,
    /// Maximum length in bytes of a line or text file. Default: 256 MiB. Memory use is at most a small multiple of it.
    pub record_bytes_max: usize,
    /// Whether documents that a pipe has delivered are returned before the reader waits for more.
    pub streaming: bool,
    /// Whether these inputs are only a part of all inputs, so that a named field may occur only in another part. After
    /// all parts were read, the caller calls [`Counts::check`](crate::input::counts::Counts::check).
    pub is_part: bool,
}

impl InputOptions {
    /// Returns whether documents are features or fingerprints that the caller computed, instead of texts.
    #[must_use]
    pub fn is_brought(&self) -> bool {
        self.features || self.fingerprint.is_some()
    }

    /// Returns an error if the name of a field is empty.
    pub(crate) fn check_names(&self) -> Result<(), InvalidOptions> {
        let text = match self.fingerprint {
            Some(_) => "--fingerprint-field",
            None if self.features => "--features-field",
            None => "--text-field",
        };
        names::check_names(text, &self.text_field, !self.is_brought())?;
        names::check_names("--id-field", &self.id_field, true)?;
        let AttachedFields { value, stamp, deciding } = &self.attached;
        let single = [
            ("--value-field", value),
            ("--stamp-field", stamp),
            ("--inside", &deciding.inside),
            ("--url-field", &deciding.url),
        ];
        let single = single.into_iter().filter_map(|(option, name)| Some((option, name.as_deref()?)));
        let numbers = deciding.keep.iter().filter_map(|rule| Some((deciding.number_option(), rule.field()?)));
        let mut named = single.chain(numbers);
        named.try_for_each(|(option, name)| names::check_names(option, name, false))
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
            text_form: TextForm::Plain,
            skip_bad: 0,
            invalid_utf8: InvalidUtf8::Usual,
            encoding: None,
            record_bytes_max: 256 << 20,
            streaming: false,
            is_part: false,
        }
    }
}

/// The form of the texts in the fields of JSONL, CSV, TSV and Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// The text is compared as it is.
    Plain,
    /// The text is HTML, whose visible text is compared.
    Html,
}

/// The kinds of the inputs of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputKinds {
    /// For each kind of records, whether there is an input of this kind.
    records: [bool; Kind::ALL.len()],
    /// Whether there is an input in which each file is one document.
    texts: bool,
    /// Whether a folder is named as an input.
    folders: bool,
}

/// An option that has an effect only on some inputs, and the condition under which it has an effect.
struct Rule {
    option: &'static str,
    /// Whether the option has another value than the default.
    is_given: fn(&InputOptions) -> bool,
    has_effect: fn(InputKinds, &InputOptions) -> bool,
    /// The noun for these inputs in the error message; `None` if the option applies to folders.
    applies_to: Option<&'static str>,
}

/// The options that have an effect only on some inputs. `--format`, `--skip-bad` and `--invalid-utf8` affect all
/// inputs; `--invalid-utf8` also applies to binary columns of Parquet and Arrow files.
const RULES: [Rule; 6] = [
    Rule {
        option: "--dialect",
        is_given: |options| options.dialect != Dialect::default(),
        has_effect: |kinds, _| kinds.have_tables(),
        applies_to: Some("CSV and TSV files"),
    },
    Rule {
        option: "--text-form",
        is_given: |options| options.text_form != TextForm::Plain,
        has_effect: |kinds, options| {
            let have_fields = kinds.have_tables() || kinds.has(Kind::Jsonl) || kinds.has(Kind::Parquet);
            have_fields && !options.is_brought()
        },
        applies_to: Some("texts in fields of JSONL, CSV, TSV and Parquet files"),
    },
    Rule {
        option: "--glob",
        is_given: |options| !options.globs.is_empty(),
        has_effect: |kinds, _| kinds.folders,
        applies_to: None,
    },
    Rule {
        option: "--text-field",
        is_given: |options| options.text_field != TEXT_FIELD && !options.is_brought(),
        has_effect: |kinds, _| {
            kinds.have_tables()
                || [Kind::Jsonl, Kind::Parquet, Kind::Arrow].iter().any(|kind| kinds.has(*kind))
        },
        applies_to: Some(
            "JSONL, CSV, TSV, Parquet and Arrow files (a record of an archive has one text, which no field names)",
        ),
    },
    Rule {
        option: "--id-field",
        is_given: |options| options.id_field != ID_FIELD || options.ids != Ids::FieldOrLine,
        has_effect: |kinds, _| kinds.have_records(),
        applies_to: Some("files of records (the key of a text file is its path)"),
    },
    Rule {
        option: "--encoding",
        is_given: |options| options.encoding.is_some(),
        has_effect: |kinds, _| {
            kinds.texts || Kind::ALL.into_iter().any(|kind| !kind.is_of_columns() && kinds.has(kind))
        },
        applies_to: Some("files of other formats than Parquet and Arrow, whose texts are UTF-8"),
    },
];

impl InputKinds {
    /// Adds the kind of an input. `None` means that files are one document each.
    pub(crate) fn add(&mut self, kind: Option<Kind>) {
        match kind {
            Some(kind) => self.records[kind as usize] = true,
            None => self.texts = true,
        }
    }

    /// Returns the kinds that the names of files indicate.
    pub(crate) fn of_names(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut kinds = Self::default();
        paths.into_iter().for_each(|path| kinds.add(Kind::of_name(&path)));
        kinds
    }

    /// Notes that a folder is named as an input.
    pub(crate) fn add_folder(&mut self) {
        self.folders = true;
    }

    /// Returns the kinds of these inputs and of `others`.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        let mut records = self.records;
        records.iter_mut().zip(others.records).for_each(|(mine, other)| *mine |= other);
        Self { records, texts: self.texts || others.texts, folders: self.folders || others.folders }
    }

    fn has(self, kind: Kind) -> bool {
        self.records[kind as usize]
    }

    fn have_tables(self) -> bool {
        self.has(Kind::Csv) || self.has(Kind::Tsv)
    }

    fn have_records(self) -> bool {
        self.records.contains(&true)
    }

    fn have_files(self) -> bool {
        self.have_records() || self.texts
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let records = Kind::ALL.into_iter().filter(move |&kind| self.has(kind)).map(Kind::title);
        records.chain(self.texts.then_some("text"))
    }

    /// Returns whether an option is given that has an effect only on some kinds of inputs.
    pub(crate) fn some_depend_on_kinds(options: &InputOptions) -> bool {
        RULES.iter().any(|rule| (rule.is_given)(options))
    }

    /// Returns an error if an option has no effect on inputs of these kinds. An option with its default value counts as
    /// not given. Without any files, no option is refused.
    ///
    /// # Errors
    ///
    /// The message names the option and the kinds.
    pub fn check(self, options: &InputOptions) -> Result<(), InvalidOptions> {
        let unused = RULES.iter().find(|rule| (rule.is_given)(options) && !(rule.has_effect)(self, options));
        let Some(rule) = unused.filter(|_| self.have_files()) else { return Ok(()) };
        let option = rule.option;
        Err(match rule.applies_to {
            None => InvalidOptions::new(format!(
                "{option} has no effect in this run: it selects files of folders, and no input is a folder; leave it out"
            )),
            Some(applies_to) if options.format == InputFormat::Auto => self.without_effect(
                option,
                applies_to,
                "leave it out, or name the format of the inputs with --format",
            ),
            Some(applies_to) => self.without_effect(option, applies_to, "leave it out"),
        })
    }

    /// Returns an error if revisit records are requested although no input has pages of WARC files.
    ///
    /// # Errors
    ///
    /// The message names the kinds.
    pub fn check_revisits(self, write_revisits: bool) -> Result<(), InvalidOptions> {
        if !write_revisits || self.has(Kind::Warc) || !self.have_files() {
            return Ok(());
        }
        Err(self.without_effect("--also revisits", "pages of WARC files", "leave it out"))
    }

    /// Returns an error if compressed output is requested although all inputs are written in formats that are never
    /// compressed. `has_pages_as_lines` is whether pages of archives are written as JSON Lines.
    ///
    /// # Errors
    ///
    /// The message names the kinds.
    pub fn check_compression(self, compresses: bool, has_pages_as_lines: bool) -> Result<(), InvalidOptions> {
        let has_lines = self.texts || self.have_tables() || self.has(Kind::Jsonl);
        let has_pages = self.has(Kind::Warc) || self.has(Kind::Arc);
        if !compresses || has_lines || has_pages_as_lines && has_pages || !self.have_files() {
            return Ok(());
        }
        Err(self.without_effect("--compress", "written JSONL, CSV and TSV files", "leave it out"))
    }

    fn without_effect(self, option: &str, applies_to: &str, hint: &str) -> InvalidOptions {
        let names: Vec<&str> = self.names().collect();
        let names = match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => names.concat(),
        };
        InvalidOptions::new(format!(
            "{option} has no effect in this run: it applies to {applies_to}, and the inputs are {names} files; {hint}"
        ))
    }
}
