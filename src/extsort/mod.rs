//! External sorting: a k-way merge, and a sorter for records that may exceed memory.
//!
//! - [`merge`]: a tree of losers over any ascending sources, generic over the ordering;
//! - [`record`]: records and their encoding in a scratch file, of fixed or variable width;
//! - [`runs`]: sorted runs in scratch files, merged level by level so that few are open at a time;
//! - [`sorter`]: records collected in memory, sorted, and written as runs.
//!
//! The numbers of a segment are sorted in [`segment::sorted`](crate::segment::sorted) instead: a radix sort that
//! partitions them to scratch files by their leading bits, and sorts each bucket in memory without comparisons.

pub mod merge;
pub mod record;
pub mod runs;
pub mod sorter;

pub use merge::{Merge, Source};
pub use record::{NumberCount, Record};
pub use runs::{RunReader, Run, Runs, WordRecord, combine};
pub use sorter::{Sorted, Sorter};
