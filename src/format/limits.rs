//! Limits that apply to several kinds of files.

/// Maximum length in bytes of the parameters' text.
pub const PARAMS_BYTES_MAX: u32 = 1 << 16;
