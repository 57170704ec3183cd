//! Errors: a code and a message.

use std::ffi::{CString, c_char};

use crate::catch;

/// The result of a function. Numbers never change; later versions may add some.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It is done.
    Ok = 0,
    /// There is no index at this path.
    NotAnIndex = 1,
    /// Something exists at the path of an index that was to be created.
    AlreadyExists = 2,
    /// Another writer holds the index. Try again when it is done.
    Locked = 3,
    /// Written by a newer twindex, or not available on this platform.
    Unsupported = 4,
    /// Made with other parameters than those of the index.
    ParamsMismatch = 5,
    /// Bytes on disk are not what was written.
    Corrupt = 6,
    /// The operating system refused.
    Io = 7,
    /// The caller asked for something that cannot be: a null handle, an option out of range.
    Invalid = 8,
    /// A limit of the format was reached; nothing was written.
    Limit = 9,
    /// The commit is done, but the writer stopped after it. Take a new writer.
    AfterCommit = 10,
    /// The disk has no space for a merge, which was not begun.
    NoSpace = 11,
    /// An earlier failure stopped this writer. Free it and take a new one.
    Poisoned = 12,
    /// A defect of the library. The handle that was used must be freed; please report it.
    Panicked = 13,
    /// An error for which this version has no code.
    Other = 14,
}

/// An error: its code and message. Free it with `twindex_error_free`.
#[derive(Debug)]
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
}

impl From<twindex::Error> for Error {
    fn from(error: twindex::Error) -> Self {
        use twindex::Error as E;
        let code = match error {
            E::NotAnIndex { .. } => Code::NotAnIndex,
            E::AlreadyExists { .. } => Code::AlreadyExists,
            E::Locked { .. } => Code::Locked,
            E::Unsupported { .. } => Code::Unsupported,
            E::ParamsMismatch { .. } => Code::ParamsMismatch,
            E::Corrupt { .. } => Code::Corrupt,
            E::Io { .. } => Code::Io,
            E::Invalid(_) => Code::Invalid,
            E::Limit { .. } => Code::Limit,
            E::AfterCommit { .. } => Code::AfterCommit,
            E::NoSpace { .. } => Code::NoSpace,
            E::Poisoned { .. } => Code::Poisoned,
            _ => Code::Other,
        };
        Self::new(code, error.to_string())
    }
}

/// The code of an error; `TWINDEX_CODE_OK` for null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_code(error: Option<&Error>) -> Code {
    error.map_or(Code::Ok, Error::code)
}

/// The message of an error, in UTF-8: what failed, where, what was expected and found. It lives as long as the error. An
/// empty string for null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"", |error| &error.message).as_ptr()
}

/// Frees an error; null is allowed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_error_free(error: Option<Box<Error>>) {
    catch::free(error);
}
