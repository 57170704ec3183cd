//! The compared content of a document.

use std::borrow::Cow;

use super::features::Features;

/// The content that is compared.
#[derive(Clone, Copy, Debug)]
pub enum Content<'r> {
    /// A text.
    Text(&'r str),
    /// Features from the caller.
    Features(&'r Features),
    /// A fingerprint from the caller.
    Fingerprint(u64),
    /// A text that does not represent the whole document: bytes were replaced by U+FFFD, or a page shows no text. It is
    /// equal to another one only if the original bytes are.
    Opaque {
        /// The visible text.
        text: &'r str,
        /// The original bytes, after a byte that cannot begin a text.
        identity: &'r [u8],
    },
}

impl<'r> Content<'r> {
    /// Returns the length in bytes of the text, of the names of the features, or of the fingerprint.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Text(text) | Self::Opaque { text, .. } => text.len(),
            Self::Features(features) => features.bytes(),
            Self::Fingerprint(_) => size_of::<u64>(),
        }
    }

    /// Returns bytes that are equal if and only if contents are equal.
    #[must_use]
    pub fn identity(self) -> Cow<'r, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Features(features) => Cow::Owned(features.canonical()),
            Self::Fingerprint(fingerprint) => Cow::Owned(fingerprint.to_be_bytes().to_vec()),
            Self::Opaque { identity, .. } => Cow::Borrowed(identity),
        }
    }
}
