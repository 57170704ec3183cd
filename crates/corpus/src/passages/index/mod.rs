//! A passage index: finds the stored documents that share passages with a text, and the positions of these passages.
//!
//! An index is a folder of immutable *parts*, and a list of the parts and of their deleted documents. Each addition of
//! documents writes a part. A part stores the key of each document, a 32-bit hash of each unit, the byte range of each
//! unit in the text, and the postings of the fingerprints that winnowing selected, sorted by fingerprint. Texts are not
//! stored. A text and a document that share a run of `t` units share a selected fingerprint. Its posting is verified,
//! and extended to a run in both directions, by comparing the hashes of units.

pub(crate) mod build;
pub(crate) mod change;
pub(crate) mod deletions;
pub(crate) mod find;
pub(crate) mod folder;
pub(crate) mod format;
pub(crate) mod part;

pub use build::{Builder, BuiltPart, Extract};
pub use change::{Compacted, Deleted};
pub use find::{Answer, Limits, Match, Matches};
pub use folder::{LIST, PassageIndex, is_name};
