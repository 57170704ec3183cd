//! External sorting: one k-way merge, and one sorter for records that may exceed memory.
//!
//! - [`merge`]: a tree of losers over any ascending sources, generic over the ordering;
//! - [`record`]: records and their bytes in a scratch file, of fixed width or not;
//! - [`runs`]: sorted runs in scratch files, merged level by level so that few are open at once;
//! - [`sorter`]: records collected in memory, sorted, and written as runs.
//!
//! The numbers of a segment are sorted in [`segment::sorted`](crate::segment::sorted): by radix, and partitioned to
//! scratch files by the leading bits, so that a bucket is sorted in memory without a comparison.

pub mod merge;
pub mod record;
pub mod runs;
pub mod sorter;

pub use merge::{Merge, Source};
pub use record::{NumberCount, Record};
pub use runs::{RunReader, Run, Runs, WordRecord, combine};
pub use sorter::{Sorted, Sorter};
