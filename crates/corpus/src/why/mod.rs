//! Explains why a document was removed or kept: shows the table line that lists the document, the scores recomputed
//! from the texts, and the words that differ.

pub(crate) mod basis;
pub(crate) mod explain;
pub(crate) mod explanation;
pub(crate) mod texts;

pub use explain::Why;
pub use explanation::{DocumentStatus, Explanation, FieldOfBoth, Reason, Sets, TableLine};
