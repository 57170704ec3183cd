//! Converts errors of the library to exceptions of `twindex/_errors.py` with their attributes.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use twindex::Error;
use twindex_corpus::InvalidOptions;
use twindex_corpus::settings::in_words_of;

/// The text added to an error about a lock that this process itself holds.
pub(crate) const OWN: &str = " in this very process";

/// An error that ends a call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    Library(Error),
    /// An error of the library for the record at this position in a batch, from 0.
    Record(usize, Error),
    /// A Python exception.
    Python(PyErr),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns an error for an invalid argument.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::Library(Error::Invalid(why.into()))
    }

    /// Returns an error of the operating system.
    pub(crate) fn io(op: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Library(Error::Io { op, path: path.to_owned(), source })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<twindex::sketch::Error> for Failure {
    fn from(error: twindex::sketch::Error) -> Self {
        Self::Library(error.into())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let invalid = |error: anyhow::Error| Error::Invalid(in_python(&format!("{error:#}")));
        Self::Library(error.downcast::<Error>().unwrap_or_else(invalid))
    }
}

impl From<InvalidOptions> for Failure {
    fn from(error: InvalidOptions) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// Rewrites a message of the library for Python: replaces the command's spelling of options by that of Python.
pub(crate) fn in_python(message: &str) -> String {
    in_words_of(message, |name| match name {
        // In the command, `features_field` selects features; in Python, `tokens` does.
        "features_field" => "tokens=\"features\"".to_owned(),
        name => name.to_owned(),
    })
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (error, record) = match failure {
            Failure::Python(error) => return error,
            Failure::Library(error) => (error, None),
            Failure::Record(record, error) => (error, Some(record)),
        };
        Python::attach(|py| exception(py, &error, record).unwrap_or_else(|error| error))
    }
}

/// Returns the exception class for an error, and a remedy to add if the message has none.
fn class(error: &Error) -> (&'static str, &'static str) {
    match error {
        Error::Locked { holder, .. } if holder.starts_with(OWN) => {
            ("LockedError", "use that one, or close it")
        }
        Error::NotAnIndex { .. } => {
            ("NotAnIndexError", "name the directory of an index; Index.create makes one")
        }
        Error::AlreadyExists { .. } => ("AlreadyExistsError", "open what is there, or choose another path"),
        Error::Locked { .. } => ("LockedError", "close the other writer, or try again when it is done"),
        Error::Unsupported { .. } => (
            "UnsupportedError",
            "use a newer twindex; an index of a version before format 1.0 must be built again",
        ),
        Error::ParamsMismatch { .. } => {
            ("ParamsMismatchError", "sketch with the index's parameters: index.params")
        }
        Error::ParamsDiffer { .. } => ("ParamsMismatchError", "make all of them with the same parameters"),
        Error::Corrupt { .. } => (
            "CorruptError",
            "restore a copy; `twindex verify` reports the extent, `twindex verify --salvage` saves the rest",
        ),
        Error::Io { .. } => {
            ("IoError", "look at the path, its permissions and the space that is free; then try again")
        }
        Error::Limit { .. } => ("LimitError", "give less at once"),
        Error::NoSpace { .. } => ("NoSpaceError", "free space, or remove what nothing needs with Index.gc()"),
        Error::Poisoned { .. } => {
            ("PoisonedError", "close the index and open it again; what was committed is kept")
        }
        Error::AfterCommit { .. } => {
            ("AfterCommitError", "close the index and open it again; the commit is kept")
        }
        _ => ("InvalidError", ""),
    }
}

fn exception(py: Python<'_>, error: &Error, record: Option<usize>) -> PyResult<PyErr> {
    let (name, remedy) = class(error);
    let details = PyDict::new(py);
    details.set_item("remedy", Some(remedy).filter(|remedy| !remedy.is_empty()))?;
    details.set_item("record", record)?;
    let path = |path: &Path| details.set_item("path", path.as_os_str());
    match error {
        Error::Corrupt { path: of, section, offset, expected, found } => {
            path(of)?;
            details.set_item("section", section)?;
            details.set_item("offset", offset)?;
            details.set_item("expected", expected)?;
            details.set_item("found", found)?;
        }
        Error::ParamsMismatch { field, index, given } => {
            details.set_item("field", field)?;
            details.set_item("expected", index)?;
            details.set_item("found", given)?;
        }
        Error::ParamsDiffer { path: of, first, .. } => {
            path(of)?;
            let (field, [index, given]) = &**first;
            details.set_item("field", field)?;
            details.set_item("expected", index)?;
            details.set_item("found", given)?;
        }
        Error::Unsupported { path: of, field, found, supported } => {
            path(of)?;
            details.set_item("field", field)?;
            details.set_item("expected", supported)?;
            details.set_item("found", found)?;
        }
        Error::Limit { limit, found, .. } => {
            details.set_item("expected", format!("at most {limit}"))?;
            details.set_item("found", found.to_string())?;
        }
        Error::NotAnIndex { path: of, .. }
        | Error::AlreadyExists { path: of }
        | Error::Locked { path: of, .. }
        | Error::Io { path: of, .. }
        | Error::NoSpace { path: of, .. }
        | Error::Poisoned { path: of } => path(of)?,
        _ => {}
    }
    let message = match record {
        Some(record) => format!("record {record}: {error}"),
        // The Display text of `AlreadyExists` already contains a remedy, and `class` adds one for Python, so only the first
        // part is used.
        None => match error {
            Error::AlreadyExists { path } => format!("{}: already exists", path.display()),
            error => error.to_string(),
        },
    };
    let class = py.import("twindex._errors")?.getattr(name)?;
    Ok(PyErr::from_value(class.call((message,), Some(&details))?))
}
