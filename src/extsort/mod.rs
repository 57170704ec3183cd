//! External sorting: one k-way merge, and one sorter for data that may exceed memory.
//!
//! - [`merge`]: a tournament tree over any ascending sources, generic over the ordering.

pub mod merge;

pub use merge::{Merge, Source};
