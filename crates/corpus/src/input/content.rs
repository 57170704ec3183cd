//! What of a document is compared.

use std::borrow::Cow;

use super::features::Features;

/// The content that is compared.
#[derive(Clone, Copy, Debug)]
pub enum Content<'r> {
    /// A text.
    Text(&'r str),
    /// Features that the caller brought.
    Features(&'r Features),
    /// A fingerprint that the caller brought.
    Fingerprint(u64),
    /// A text that does not say all that was there: bytes are in it as U+FFFD, or a page shows nothing. It is equal to
    /// another only if what was there is.
    Opaque {
        /// The visible text.
        text: &'r str,
        /// The original bytes, after a byte that cannot begin a text.
        identity: &'r [u8],
    },
}

impl<'r> Content<'r> {
    /// The length of the text, of the names of the features, or of the fingerprint.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Text(text) | Self::Opaque { text, .. } => text.len(),
            Self::Features(features) => features.bytes(),
            Self::Fingerprint(_) => size_of::<u64>(),
        }
    }

    /// Bytes that are equal for equal contents and for no others.
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
