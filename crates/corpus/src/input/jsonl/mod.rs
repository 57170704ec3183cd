//! JSON Lines: splits a stream into lines, and parses the key, the text and other fields of a line.

pub(crate) mod array;
pub(crate) mod lines;
pub(crate) mod nested;
pub(crate) mod parse;
pub(crate) mod scan;
