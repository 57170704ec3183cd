//! Stores keys, lines, sets and sketches of the documents of a run until the kept documents are known. Data beyond the
//! memory budget is in scratch files.

pub(crate) mod codes;
pub(crate) mod corpus;
pub(crate) mod drawn;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod lines;
pub(crate) mod order;
pub(crate) mod read;
pub(crate) mod set_thread;
pub(crate) mod sketches;
