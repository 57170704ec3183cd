//! External sorting: a k-way merge, and a sorter for records that may exceed the memory.
//!
//! - [`merge`]: a loser tree that merges ascending sources in any given order of their items;
//! - [`record`]: records of fixed or variable width, and their encoding in a scratch file;
//! - [`runs`]: sorted runs in scratch files, merged level by level so that few runs exist at a time;
//! - [`sorter`]: collects records in memory and sorts them; if they exceed the memory, it writes them as sorted runs.
//!
//! The numeric columns of a segment are sorted by [`segment::sorted`](crate::segment::sorted) instead: a radix sort
//! that partitions numbers into scratch files by their leading bits, and sorts each file in memory.

pub mod merge;
pub mod record;
pub mod runs;
pub mod sorter;

pub use merge::{Merge, Source};
pub use record::{NumberCount, Record};
pub use runs::{Run, RunReader, Runs, WordRecord, combine};
pub use sorter::{Sorted, Sorter};
