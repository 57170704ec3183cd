//! The fields of a record that make a document.

use super::attached::AttachedFields;

/// The names of the fields that make a document.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) id: String,
    /// The field of the text, or of the features.
    pub(super) text: String,
    /// Whether the second field holds features instead of a text.
    pub(super) features: bool,
    /// Those of what it has beside its text.
    pub(super) attached: AttachedFields,
}
