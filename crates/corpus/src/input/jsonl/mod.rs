//! JSON Lines: cuts a stream into lines, and a line into its key, text and other fields.

pub(crate) mod lines;
pub(crate) mod nested;
pub(crate) mod parse;
pub(crate) mod scan;
