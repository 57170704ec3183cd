//! Writes documents in the form in which they were read.

pub(crate) mod annotate;
pub(crate) mod keys;
pub(crate) mod names;
pub mod rewritten;
pub(crate) mod writer;
