//! Errors, grouped by how the caller can respond to them.
//!
//! Every variant about a file contains its path. [`Error::Corrupt`] also contains the section, the offset, and the
//! expected and the found value, so that `format-spec.md` and a hex dump are enough to check a report.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every function of this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. The variants are grouped by how the caller can respond.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no index at this path. `create` would create one; `open` does not.
    #[error("{path}: not a twindex index: {why}")]
    NotAnIndex {
        /// The path of the directory to be opened.
        path: PathBuf,
        /// The reason why the directory is not an index.
        why: String,
    },
    /// The path at which an index was to be created exists and is not an empty directory. Nothing was changed.
    #[error("{path}: already exists; open it, or choose another place")]
    AlreadyExists {
        /// The existing path.
        path: PathBuf,
    },
    /// Another writer, in this or another process, holds the index. Try again after it has finished.
    #[error("{path}: locked by another writer{holder}; an index has one writer at a time")]
    Locked {
        /// The path of the lock file.
        path: PathBuf,
        /// ` (process N)` if the lock file names the holder, otherwise empty.
        holder: String,
    },
    /// This version cannot read the file, which shows no damage. A newer twindex wrote it, it uses a feature that this
    /// build does not have, or its version precedes format 1.0 and was never released. Use a newer twindex, or build an
    /// index of an older version again.
    #[error("{path}: {field} is {found}, this version of twindex reads {supported}")]
    Unsupported {
        /// The path of the file.
        path: PathBuf,
        /// The field or feature bit that is not supported.
        field: &'static str,
        /// The value in the file.
        found: String,
        /// The values that this version can read.
        supported: String,
    },
    /// A sketch, an option or a segment was made with parameters that differ from those of the index.
    #[error(
        "parameters differ: {field} is {index} in the index and {given} here; sketch with the index's parameters"
    )]
    ParamsMismatch {
        /// The name of the first parameter that differs, as encoded by [`Params::encode`](crate::Params::encode).
        field: String,
        /// The value of the parameter in the index.
        index: String,
        /// The value given by the caller.
        given: String,
    },
    /// Indexes or segments that are to be joined have different parameters.
    #[error("{path} and {other} have different parameters: {differences}; make both with the same options")]
    ParamsDiffer {
        /// The path of the first index.
        path: PathBuf,
        /// The path of the index or segment whose parameters differ.
        other: PathBuf,
        /// The first parameter that differs, and its two values.
        first: Box<(&'static str, [String; 2])>,
        /// The first few parameters that differ, in words.
        differences: String,
    },
    /// The bytes of a file violate the format or do not match their checksum. `twindex verify` lists all damaged parts.
    #[error("{path}: damaged: {section} at offset {offset}: expected {expected}, found {found}")]
    Corrupt {
        /// The path of the damaged file.
        path: PathBuf,
        /// The part of the file, named as in `format-spec.md`.
        section: &'static str,
        /// The offset in the file at which the damage was detected.
        offset: u64,
        /// The value that the format or the checksum requires.
        expected: String,
        /// The value found.
        found: String,
    },
    /// An operation of the operating system failed. Data committed earlier is unaffected.
    #[error("{path}: cannot {op}{}: {source}", of_what(op))]
    Io {
        /// The failed operation: a verb or a verb phrase whose object is the file. After a phrase that ends with a
        /// preposition, such as `use a scratch file in`, the message continues with `it`.
        op: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The caller's request is not valid: for example an option out of range, or a key of the wrong kind.
    #[error("{0}")]
    Invalid(String),
    /// The caller ended the work early ([`Cancel`](crate::Cancel)). Nothing was changed.
    #[error("cancelled before the work was complete; nothing was changed")]
    Cancelled,
    /// A documented limit of the format was exceeded. Nothing was written.
    #[error("{what}: {found} is over the limit of {limit}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit in `format-spec.md`.
        limit: u64,
        /// The requested value.
        found: u64,
    },
    /// The batch is committed: it is visible, and as durable as requested. But a later step failed (flushing a full
    /// memtable, or adopting a finished merge) and stopped the writer. Do not repeat the batch; take a new writer to
    /// continue.
    #[error(
        "commit {commit} is complete, but the writer stopped after it; take a new one to go on: {source}"
    )]
    AfterCommit {
        /// The number of the commit.
        commit: u64,
        /// The error of the later step.
        #[source]
        source: Box<Error>,
    },
    /// The disk has too little free space for a merge, so the merge was not started. Free some space, or remove unused
    /// files (`gc`).
    #[error("{path}: a merge may need {needed} bytes, and {free} are free; nothing was written")]
    NoSpace {
        /// The path of the index.
        path: PathBuf,
        /// An upper bound of the number of bytes that the merge needs.
        needed: u64,
        /// The number of free bytes.
        free: u64,
    },
    /// An earlier write or sync of this writer failed. Data committed before is kept. The current batch is lost as a
    /// whole or, if only the last steps of its commit failed, may be committed as a whole: refresh and compare the
    /// generation to see. Drop the writer and take a new one.
    #[error(
        "{path}: the writer stopped after an earlier failure; take a new one to go on from the last commit"
    )]
    Poisoned {
        /// The path of the index.
        path: PathBuf,
    },
}

/// Returns ` it` if the operation ends with a preposition, otherwise an empty string. In the message, `it` refers to
/// the path, which comes first.
fn of_what(op: &str) -> &'static str {
    if op.ends_with(" in") || op.ends_with(" of") { " it" } else { "" }
}

impl Error {
    /// Creates the error of a failed system call on `path`. `op` is the operation, as in [`Io`](Self::Io).
    #[must_use]
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { op, path: path.to_owned(), source }
    }

    /// Returns whether damaged bytes on disk caused the error.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

impl From<twindex_sketch::Error> for Error {
    fn from(error: twindex_sketch::Error) -> Self {
        match error {
            twindex_sketch::Error::ParamsMismatch { field, index, given } => {
                Self::ParamsMismatch { field, index, given }
            }
            other => Self::Invalid(other.to_string()),
        }
    }
}

/// A mismatch between bytes and the format, at an offset in the part that is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset in bytes from the start of the part.
    pub offset: u64,
    /// The value that the format requires.
    pub expected: String,
    /// The value found.
    pub found: String,
}

impl Fault {
    /// Creates a fault at `offset` of the decoded part.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers have a number or a new String, never a thing to keep"
    )]
    pub fn new(offset: u64, expected: impl Into<String>, found: impl ToString) -> Self {
        Self { offset, expected: expected.into(), found: found.to_string() }
    }
}

/// The reason why a header cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The header is damaged.
    Damaged(Fault),
    /// The header has an unsupported version or unknown features. The values are the name of the field, the value found, and
    /// the supported values.
    Unsupported(&'static str, String, String),
}

/// Creates the error for damage in a section that begins at `base`; the offset of `fault` is relative to `base`.
#[must_use]
pub fn corrupt(path: &Path, section: &'static str, base: u64, fault: Fault) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        section,
        offset: base.saturating_add(fault.offset),
        expected: fault.expected,
        found: fault.found,
    }
}

/// Converts the refusal of a header to an error with the path of the file.
#[must_use]
pub fn refused(path: &Path, section: &'static str, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Damaged(fault) => corrupt(path, section, 0, fault),
        Refusal::Unsupported(field, found, supported) => {
            Error::Unsupported { path: path.to_owned(), field, found, supported }
        }
    }
}
