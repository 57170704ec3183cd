//! The error for invalid options.

use std::borrow::Cow;
use std::fmt;

/// The error for options that contradict each other or have no effect. The message names each option as on the command
/// line, for example `--verify` for the field `verify`.
#[derive(Clone, Debug)]
pub struct InvalidOptions(Cow<'static, str>);

impl InvalidOptions {
    /// Creates an error with this message.
    pub fn new(why: impl Into<Cow<'static, str>>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for InvalidOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidOptions {}
