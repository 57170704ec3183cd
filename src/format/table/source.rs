//! The interfaces through which table codecs read and write.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::wire::{self, Fault};
use twindex_kernel::CACHE_LINE;

/// Reads the bytes of one section of a file, and verifies their checksums.
pub trait Source<'a>: Copy {
    /// Returns the bytes at `range` of the section.
    fn read(self, range: Range<u64>) -> Result<&'a [u8]>;
    /// Converts a fault at an offset of the section to an error with the path of the file.
    fn corrupt(self, fault: Fault) -> Error;
    /// Prefetches the cache line at this offset of the section. Neither waits nor causes a read from disk.
    fn hint(self, at: u64);
    /// Announces that the bytes at `range` of the section will be read soon. Pages that are not in memory are then read
    /// ahead.
    fn announce(self, range: Range<u64>) {
        let _ = range;
    }
}

/// Returns the bytes of a range of the section as an array of `T`.
#[inline(always)]
pub fn column<'a, T>(source: impl Source<'a>, range: Range<u64>) -> Result<&'a [T]>
where
    T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned,
{
    let start = range.start;
    wire::column(source.read(range)?).map_err(|mut fault| {
        fault.offset += start;
        source.corrupt(fault)
    })
}

/// Maximum number of cache lines to prefetch. For longer scans, hardware prefetch reads the rest.
const LINES_AHEAD: u64 = 8;

/// Announces a range and prefetches its first cache lines.
#[inline(always)]
pub fn hint_lines<'a>(source: impl Source<'a>, range: Range<u64>) {
    let start = range.start;
    let last = range.end.saturating_sub(1).min(start.saturating_add(LINES_AHEAD * CACHE_LINE as u64));
    source.announce(range);
    let mut at = start;
    while at < last {
        source.hint(at);
        at = at.saturating_add(CACHE_LINE as u64);
    }
    // Rows are not aligned to cache lines, so the last row may extend into one more line.
    source.hint(last);
}

/// The output of an encoder. Bytes are appended to each part separately. The section contains the parts in ascending
/// order of their numbers, each aligned to a multiple of 64.
pub trait Columns {
    /// Appends bytes to the part with this number.
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()>;
}

/// The strategy for finding the rows of a prefix in a table. The result does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// A lookup in the directory, then bisection in the bucket: one or two dependent memory accesses.
    Directory,
    /// Interpolation search on whole keys: about log log n steps for uniform keys (Manku et al. 2007, section 3.1),
    /// O(log n) for any keys. Only for codecs that store whole keys.
    Interpolation,
    /// Binary search on whole keys: log2 n steps. Only for codecs that store whole keys.
    Binary,
}
