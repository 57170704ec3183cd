//! Options of reading that have no effect on the inputs of a command. They are refused, because a user who gives an
//! option expects that it changes something.

use std::path::PathBuf;

use super::dialect::RowDialect;
use super::{Dialect, ID_FIELD, Ids, InputFormat, InputOptions, Kind, TEXT_FIELD};
use crate::error::InvalidOptions;

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

/// An option, and the inputs on which it has an effect.
struct Rule {
    option: &'static str,
    /// Whether the option has another value than the default.
    is_given: fn(&InputOptions) -> bool,
    has_effect: fn(InputKinds, &InputOptions) -> bool,
    /// The inputs on which the option has an effect, for the message. `None` if these are folders.
    applies_to: Option<&'static str>,
}

/// The options that have an effect only on some inputs. These have an effect on all: `--format`, `--skip-bad`, and
/// `--invalid-utf8`, which also applies to binary columns of Parquet files.
const RULES: [Rule; 6] = [
    Rule {
        option: "--dialect escape",
        is_given: |options| options.dialect.escape.is_some(),
        has_effect: |kinds, options| {
            let has_quotes = |kind| RowDialect::of(options.dialect, kind == Kind::Tsv).quote.is_some();
            [Kind::Csv, Kind::Tsv].into_iter().any(|kind| kinds.has(kind) && has_quotes(kind))
        },
        applies_to: Some(
            "quoted fields of CSV and TSV files (a TSV file has none unless --dialect quote sets the quote)",
        ),
    },
    Rule {
        option: "--dialect",
        is_given: |options| options.dialect != Dialect::default(),
        has_effect: |kinds, _| kinds.have_tables(),
        applies_to: Some("CSV and TSV files"),
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
        has_effect: |kinds, _| kinds.have_tables() || kinds.has(Kind::Jsonl) || kinds.has(Kind::Parquet),
        applies_to: Some(
            "JSONL, CSV, TSV and Parquet files (a record of an archive has one text, which no field names)",
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
            kinds.texts || Kind::ALL.into_iter().any(|kind| kind != Kind::Parquet && kinds.has(kind))
        },
        applies_to: Some("files of other formats than Parquet, whose texts are UTF-8"),
    },
];

impl Kind {
    /// Returns the name of the format for messages.
    fn title(self) -> &'static str {
        match self {
            Self::Jsonl => "JSONL",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Wet => "WET",
            Self::Warc => "WARC",
            Self::Parquet => "Parquet",
            Self::Arc => "ARC",
        }
    }
}

impl InputKinds {
    /// Adds an input: records of this kind, or, if `None`, files that are one document each.
    pub(super) fn add(&mut self, kind: Option<Kind>) {
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

    /// Adds that a folder is named as an input.
    pub(super) fn add_folder(&mut self) {
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

    /// Returns the names of the kinds.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let records = Kind::ALL.into_iter().filter(move |&kind| self.has(kind)).map(Kind::title);
        records.chain(self.texts.then_some("text"))
    }

    /// Returns whether an option is given that has an effect only on some kinds of inputs.
    pub(super) fn some_depend_on_kinds(options: &InputOptions) -> bool {
        RULES.iter().any(|rule| (rule.is_given)(options))
    }

    /// Returns an error if an option has no effect on inputs of these kinds. An option that has its default value is
    /// treated as not given. Nothing is an error if there are no files.
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

    /// Returns an error if revisit records are to be written and no input has pages of WARC files.
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

    /// Returns an error if written documents are to be compressed, and all inputs are written in formats that are never
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
