//! External sorting: a k-way merge, and a sorter for records that may exceed the memory.
//!
//! - [`merge`]: a loser tree that merges any ascending sources, generic over the ordering;
//! - [`record`]: records of fixed or variable width, and their encoding in a scratch file;
//! - [`runs`]: sorted runs in scratch files, merged level by level so that few runs exist at a time;
//! - [`sorter`]: collects records in memory, sorts them, and writes them as runs if they exceed the memory.
//!
//! The numeric columns of a segment are sorted in [`segment::sorted`](crate::segment::sorted) instead. Its radix sort
//! partitions numbers into scratch files by their leading bits, and sorts each bucket in memory.

pub mod merge;
pub mod record;
pub mod runs;
pub mod sorter;

pub use merge::{Merge, Source};
pub use record::{NumberCount, Record};
pub use runs::{Run, RunReader, Runs, WordRecord, combine};
pub use sorter::{Sorted, Sorter};
