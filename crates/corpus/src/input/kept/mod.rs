//! Writes documents in the format in which they were read.

pub(crate) mod annotate;
pub(crate) mod files;
pub mod rewritten;
pub(crate) mod rows;
pub(crate) mod writer;
