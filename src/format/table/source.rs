//! The interfaces through which table codecs read and write.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::wire::{self, Fault};
use twindex_kernel::CACHE_LINE;

/// The bytes of one section. Reading them compares their checksums.
pub trait Source<'a>: Copy {
    /// The bytes at `range` of the section.
    fn read(self, range: Range<u64>) -> Result<&'a [u8]>;
    /// A fault at an offset of the section, as an error that names the file.
    fn corrupt(self, fault: Fault) -> Error;
    /// Prefetches the cache line at this offset of the section, without waiting: a hint, which reads nothing from the
    /// disk.
    fn hint(self, at: u64);
    /// Announces that the bytes at `range` of the section will be read soon, so that missing pages are read ahead.
    fn announce(self, range: Range<u64>) {
        let _ = range;
    }
}

/// The bytes of a range of the section as numbers.
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

/// Cache lines of a plane that are prefetched; the hardware prefetcher follows longer scans.
const LINES_AHEAD: u64 = 8;

/// Announces a range, and prefetches its first cache lines.
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
    // Rows do not begin at cache lines, so the last of them may be in one more.
    source.hint(last);
}

/// The output of an encoder: bytes are appended to each part separately; parts are in the file in ascending order, each
/// from the next multiple of 64 on.
pub trait Columns {
    /// Appends to part `part`.
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()>;
}

/// The strategy by which the rows of a prefix are found in a table. Answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// A lookup in the directory, then bisection in the bucket: one or two memory accesses to wait for.
    Directory,
    /// Interpolation between whole keys: about log log n steps on uniform keys (Manku et al. 2007, section 3.1), O(log
    /// n) on any. For codecs that hold whole keys.
    Interpolation,
    /// Bisection over whole keys: log2 n steps. For codecs that hold whole keys.
    Binary,
}
