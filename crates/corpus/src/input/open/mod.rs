//! Finds and opens files, folders and streams, and detects their formats.

pub(crate) mod folder;
pub(crate) mod kind;
pub(crate) mod reader;
