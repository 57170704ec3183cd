//! The content of a document that is compared.

use std::borrow::Cow;

use super::features::Features;

/// The content of a document that is compared.
#[derive(Clone, Copy, Debug)]
pub enum Content<'r> {
    /// A text.
    Text(&'r str),
    /// Features that the caller computed.
    Features(&'r Features),
    /// A fingerprint that the caller computed.
    Fingerprint(u64),
    /// A text that does not represent the whole document, because bytes were replaced with U+FFFD or a page shows no
    /// text. Two such documents are equal only if their original bytes are equal.
    Opaque {
        /// The visible text.
        text: &'r str,
        /// The original bytes, after a prefix byte that no text can begin with.
        identity: &'r [u8],
    },
}

impl<'r> Content<'r> {
    /// Returns the length in bytes of the text, of the names of all features, or of the fingerprint.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Text(text) | Self::Opaque { text, .. } => text.len(),
            Self::Features(features) => features.bytes(),
            Self::Fingerprint(_) => size_of::<u64>(),
        }
    }

    /// Returns bytes that are equal if and only if the contents are equal.
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
