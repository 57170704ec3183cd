//! The mistakes that are the caller's.

use std::borrow::Cow;
use std::fmt;

/// Options that go with nothing, or not with each other. The message names them as the command does: `--verify` is the
/// field `verify`.
#[derive(Clone, Debug)]
pub struct InvalidOptions(Cow<'static, str>);

impl InvalidOptions {
    /// With this message.
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
