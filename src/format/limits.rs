//! Limits that several kinds of files share.

/// The longest parameters' text.
pub const PARAMS_BYTES_MAX: u32 = 1 << 16;
