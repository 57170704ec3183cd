//! The answer of `twindex why`: the decision about a document, and the evidence for it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use twindex::Params;
use twindex::params::Shingling;

use crate::input::options::InputOptions;
use crate::results::layout::Row;
use crate::results::run_file::{RunFile, RunInput};
use crate::rule::repeated::RepeatedKeys;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::work::word_diff::WordDiff;

/// The answer to the query [`Why`](crate::Why).
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The key of the document, escaped as in the tables.
    pub key: String,
    /// Whether the document was kept or removed.
    pub fate: DocumentStatus,
    /// The key of the document that was kept in its place, in this run or a history. For a kept document, its own key.
    pub kept: Option<String>,
    /// The reason for the removal; `None` if the document was kept or the reason is unknown.
    pub reason: Option<Reason>,
    /// The table line that lists the document.
    pub listed: TableLine,
    /// The score columns of the line `listed`, recomputed from the texts; `None` if a text was not found.
    pub recomputed: Option<Vec<(String, String)>>,
    /// Whether the recomputed columns equal the columns in the table; `None` if no column could be recomputed.
    pub agrees: Option<bool>,
    /// For each rule of `--keep` that compares a field or URLs, and for `--inside FIELD`: the values in the two documents,
    /// which affected the decision in addition to the texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldOfBoth>,
    /// The sizes of the two documents' sets of shingles, or of features.
    pub sets: Option<Sets>,
    /// The file, and the position in it, from which the document's text was read.
    pub place: Option<String>,
    /// The file, and the position in it, from which the kept document's text was read.
    pub place_of_kept: Option<String>,
    /// The words that differ between the two texts; `None` if a text was not found.
    pub differences: Option<WordDiff>,
    /// For a kept document, the number of documents that were removed as its duplicates; `None` for a removed document.
    pub removed_for_it: Option<u64>,
    /// For a kept document, the keys of the first documents that were removed as its duplicates. For a removed document
    /// that pairs.tsv does not list with the kept document, the keys with which pairs.tsv lists it.
    pub others: Vec<String>,
    /// Notes, for example that a text was not found or that scores differ.
    pub notes: Vec<String>,
}

/// Whether a document was kept or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentStatus {
    /// The document was kept.
    Kept,
    /// The document was removed as a duplicate of a document of the same run.
    Removed,
    /// The document was removed as a duplicate of a history document.
    Dropped,
}

/// The reason why a document was removed as a duplicate of another document.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The texts are equal.
    Identical {
        /// Whether the texts are equal only after normalization and folding, not byte for byte.
        normalised: bool,
    },
    /// The exact resemblance of the documents reaches the threshold.
    Counted {
        /// Number of distinct shingles that are in both documents.
        intersection: u64,
        /// Number of distinct shingles that are in at least one of the documents.
        union: u64,
        /// The threshold for the resemblance, if known.
        threshold: Option<f64>,
    },
    /// The share of the document's shingles that the kept document contains reaches the threshold.
    Contained {
        /// Number of distinct shingles that are in both documents.
        intersection: u64,
        /// Number of distinct shingles in the removed document.
        shingles: u64,
        /// The threshold for the share, if known.
        threshold: Option<f64>,
    },
    /// The fingerprints differ in at most `within` bits.
    Distance {
        /// Number of bits in which the fingerprints differ.
        bits: u64,
        /// The largest number of bits in which the fingerprints of near documents may differ, if known.
        within: Option<u16>,
    },
}

/// A line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct TableLine {
    /// The path of the table.
    pub file: PathBuf,
    /// The line number, from 1.
    pub line: u64,
    /// The name and value of each column after the keys.
    pub columns: Vec<(String, String)>,
}

/// The values of a field in two documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldOfBoth {
    /// The option that names the field: `keep max`, `keep min`, `keep earliest`, `keep rank` or `inside`; `keep` for URLs.
    pub option: &'static str,
    /// The name of the field, or of the rule that compares URLs.
    pub name: String,
    /// The value of the field in the queried document.
    pub key: String,
    /// The value of the field in the kept document; `None` if the kept document is in a history, where it may lack the
    /// field.
    pub kept: Option<String>,
}

/// The sizes of two sets and of their intersection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sets {
    /// Number of elements in the set of the queried document.
    pub key: usize,
    /// Number of elements in the set of the kept document.
    pub kept: usize,
    /// Number of elements in both sets.
    pub both: usize,
}

/// The options of the run that wrote the results folder, as far as they are known.
pub(crate) struct RunDescription {
    pub(crate) run: Option<RunFile>,
    pub(crate) params: Params,
    /// The options for reading the documents.
    pub(crate) input: InputOptions,
    /// How the run treated repeated keys.
    pub(crate) repeated: RepeatedKeys,
}

impl RunDescription {
    fn near(&self) -> Option<Near> {
        self.run.as_ref().map(|run| run.job().near())
    }

    pub(crate) fn threshold(&self) -> Option<f64> {
        self.near()?.threshold()
    }

    pub(crate) fn within(&self) -> Option<u16> {
        self.near()?.within()
    }

    /// Returns the shingling whose normalization and folding define equal texts; `None` unless the run removed only
    /// equal texts.
    pub(crate) fn normalised(&self) -> Option<&Shingling> {
        (self.near() == Some(Near::Equal)).then_some(&self.params.shingling)
    }

    /// Returns the inputs that `of` selects from the settings of the run, each with its given and its absolute path.
    pub(crate) fn paths(&self, of: impl Fn(&Dedup) -> &[PathBuf]) -> anyhow::Result<Vec<RunInput>> {
        self.run.as_ref().map_or_else(|| Ok(Vec::new()), |run| run.inputs(of(run.job())))
    }
}

impl TableLine {
    pub(crate) fn of(file: &Path, row: &Row, columns: &[String], keys: usize) -> Self {
        let values = row.fields.iter().skip(keys).map(|value| String::from_utf8_lossy(value).into_owned());
        Self { file: file.to_owned(), line: row.line, columns: columns.iter().cloned().zip(values).collect() }
    }
}
