//! Texts: encodings, bytes that cannot be decoded, and HTML pages.

pub(crate) mod charset;
pub(crate) mod cuts;
#[cfg(feature = "html")]
pub(crate) mod html;
pub(crate) mod lossy;
