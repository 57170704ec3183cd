//! Errors, sorted by what the caller can do about them.
//!
//! Every variant that speaks of a file names it; [`Error::Corrupt`] also names the section, the offset and both
//! values, so that a report can be checked against `format-spec.md` with a hex dump in hand.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no index at this path; `create` makes one, `open` never does.
    #[error("{path}: not a twindex index: {why}")]
    NotAnIndex {
        /// The directory that was to be opened.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// Something other than an empty directory is where an index was to be created; nothing was changed.
    #[error("{path}: already exists; open it, or choose another place")]
    AlreadyExists {
        /// The path in the way.
        path: PathBuf,
    },
    /// Another writer, in this process or another, holds the index. Try again when it is done.
    #[error("{path}: locked by another writer{holder}; an index has one writer at a time")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// ` (process N)` where the holder has said so, otherwise empty.
        holder: String,
    },
    /// The file is sound as far as this version can tell, but was written by a newer twindex or with a feature
    /// that this build does not know: use a newer version. Or it is of a format that was never final: build the
    /// index again.
    #[error("{path}: {field} is {found}, this version of twindex reads {supported}")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field or feature bit that says so.
        field: &'static str,
        /// The value in the file.
        found: String,
        /// The values that this version can read.
        supported: String,
    },
    /// A sketch, an option or a segment made with parameters other than the index's.
    #[error(
        "parameters differ: {field} is {index} in the index and {given} here; sketch with the index's parameters"
    )]
    ParamsMismatch {
        /// The first parameter that differs, by its name in `params`.
        field: String,
        /// The index's value.
        index: String,
        /// The caller's value.
        given: String,
    },
    /// Bytes on disk are not what was written. Older data is untouched; `twindex verify` shows the extent.
    #[error("{path}: damaged: {section} at offset {offset}: expected {expected}, found {found}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The part of the file, in the words of `format-spec.md`.
        section: &'static str,
        /// The byte in the file at which the disagreement was noticed.
        offset: u64,
        /// The value that the format or the checksum requires.
        expected: String,
        /// The value found.
        found: String,
    },
    /// The operating system refused. What was committed before is untouched.
    #[error("{path}: cannot {op}{}: {source}", of_what(op))]
    Io {
        /// The failed operation, as a verb applied to the file. If it ends with a preposition, to something of the file
        /// or in it.
        op: &'static str,
        /// The file it was done to.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The caller asked for something that cannot be: an option out of range, a key of the wrong kind.
    #[error("{0}")]
    Invalid(String),
    /// A stated limit of the format was reached; nothing wrapped and nothing was written.
    #[error("{what}: {found} is over the limit of {limit}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit, as `format-spec.md` states it.
        limit: u64,
        /// The requested value.
        found: u64,
    },
    /// The batch is committed: visible, and as durable as requested. A later step of the writer failed (the flush of a
    /// full memtable, or the adoption of a finished merge) and ended the writer. Do not repeat the batch; take a new
    /// writer to go on.
    #[error("commit {commit} is complete, but the writer stopped after it; take a new one to go on: {source}")]
    AfterCommit {
        /// The number of the commit.
        commit: u64,
        /// The failure.
        #[source]
        source: Box<Error>,
    },
    /// The disk has no space for a merge, which was not begun. Free some, or remove what nothing needs (`gc`).
    #[error("{path}: a merge may need {needed} bytes, and {free} are free; nothing was written")]
    NoSpace {
        /// The index.
        path: PathBuf,
        /// The bytes that it may need, at most.
        needed: u64,
        /// The bytes that are free.
        free: u64,
    },
    /// An earlier write or sync of this writer failed. What was committed stays. The batch is lost as a whole, or,
    /// where the very last steps of a commit failed, may have become current as a whole: refresh, and compare the
    /// generation. Drop the writer and take a new one.
    #[error(
        "{path}: the writer stopped after an earlier failure; take a new one to go on from the last commit"
    )]
    Poisoned {
        /// The index.
        path: PathBuf,
    },
}

/// The end of an [`Error::Io`] message whose verb ends with a preposition, as the path comes first.
fn of_what(op: &str) -> &'static str {
    if op.ends_with(" in") || op.ends_with(" of") { " it" } else { "" }
}

impl Error {
    /// The error of an operating system call on `path`; `op` is the verb that failed.
    #[must_use]
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { op, path: path.to_owned(), source }
    }

    /// True where the bytes on disk, not the request, are at fault.
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

/// A disagreement between bytes and the format, at an offset in the part being decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes from the start of the part.
    pub offset: u64,
    /// The value that the format requires.
    pub expected: String,
    /// The value found.
    pub found: String,
}

impl Fault {
    /// A disagreement at `offset` of the part.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers have a number or a new String, never a thing to keep"
    )]
    pub fn new(offset: u64, expected: impl Into<String>, found: impl ToString) -> Self {
        Self { offset, expected: expected.into(), found: found.to_string() }
    }
}

/// Why a header was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not what was written.
    Damaged(Fault),
    /// Another version or unknown features: field, found, supported.
    Unsupported(&'static str, String, String),
}

/// The error for damage in a section: `base` is where the section begins, `fault` counts from there.
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

/// A refused header as an error about a file.
#[must_use]
pub fn refused(path: &Path, section: &'static str, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Damaged(fault) => corrupt(path, section, 0, fault),
        Refusal::Unsupported(field, found, supported) => {
            Error::Unsupported { path: path.to_owned(), field, found, supported }
        }
    }
}
