//! What is stored of the documents of a run until it is decided which stay: keys, lines, sets and sketches. Data beyond
//! the memory budget is in scratch files.

pub(crate) mod corpus;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod line_blocks;
pub(crate) mod lines;
pub(crate) mod read;
pub(crate) mod sketches;
