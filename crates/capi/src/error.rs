//! Errors of the C interface: a code and a message.

use std::ffi::{CString, c_char};

use crate::catch;

/// The result code of a function. The numbers never change; later versions may add codes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// There is no index at the path.
    NotAnIndex = 1,
    /// Something already exists at the path at which an index was to be created.
    AlreadyExists = 2,
    /// The index has another writer. Retry after that writer has been freed.
    Locked = 3,
    /// The file was written by a newer version, or the function is not available on this platform.
    Unsupported = 4,
    /// The parameters differ from those of the index.
    ParamsMismatch = 5,
    /// Data on disk is damaged.
    Corrupt = 6,
    /// The operating system reported an error.
    Io = 7,
    /// An argument is invalid, such as a null handle or an option out of range.
    Invalid = 8,
    /// A limit of the format was reached. Nothing was written.
    Limit = 9,
    /// The commit succeeded, but the writer failed after it. Free the writer and create a new one.
    AfterCommit = 10,
    /// The disk has too little free space for a merge, which was not started.
    NoSpace = 11,
    /// The writer had failed earlier. Free it and create a new one.
    Poisoned = 12,
    /// A bug in the library. Free the handle that was used, and please report the bug.
    Panicked = 13,
    /// An error for which this version has no code.
    Other = 14,
    /// The work was ended early by a `twindex_cancel`. Nothing was changed.
    Cancelled = 15,
    /// The limit on queries was too low to decide the group of a document.
    Undecided = 16,
}

/// An error with a code and a message. Must be freed with `twindex_error_free`.
#[derive(Clone, Debug)]
pub struct Error {
    code: Code,
    message: CString,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let mut bytes = message.into().into_bytes();
        bytes.retain(|&byte| byte != 0);
        Self { code, message: CString::new(bytes).unwrap_or_default() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn into_message(self) -> CString {
        self.message
    }
}

impl From<twindex::Error> for Error {
    fn from(error: twindex::Error) -> Self {
        use twindex::Error as E;
        let code = match error {
            E::NotAnIndex { .. } => Code::NotAnIndex,
            E::AlreadyExists { .. } => Code::AlreadyExists,
            E::Locked { .. } => Code::Locked,
            E::Unsupported { .. } => Code::Unsupported,
            E::ParamsMismatch { .. } | E::ParamsDiffer { .. } => Code::ParamsMismatch,
            E::Corrupt { .. } => Code::Corrupt,
            E::Io { .. } => Code::Io,
            E::Invalid(_) => Code::Invalid,
            E::Limit { .. } => Code::Limit,
            E::AfterCommit { .. } => Code::AfterCommit,
            E::NoSpace { .. } => Code::NoSpace,
            E::Poisoned { .. } => Code::Poisoned,
            E::Cancelled => Code::Cancelled,
            _ => Code::Other,
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the code of an error; `TWINDEX_CODE_OK` if `error` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_code(error: Option<&Error>) -> Code {
    error.map_or(Code::Ok, Error::code)
}

/// Returns the message of an error in UTF-8: what failed, where, and which value was expected and found. Returns an
/// empty string if `error` is null. The string is valid until the error is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"", |error| &error.message).as_ptr()
}

/// Frees an error. `error` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_free(error: Option<Box<Error>>) {
    catch::free(error);
}
