//! What codecs of tables read from and write to.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::wire::{self, Fault};
use twindex_kernel::CACHE_LINE;

/// The bytes of one section, checked as far as checksums go when they are read.
pub trait Source<'a>: Copy {
    /// The bytes at `range` of the section.
    fn read(self, range: Range<u64>) -> Result<&'a [u8]>;
    /// What is wrong at an offset of the section, as an error that names the file.
    fn corrupt(self, fault: Fault) -> Error;
    /// Brings the cache line at this offset of the section near, without waiting for it: a hint, which reads nothing
    /// from the disk.
    fn hint(self, at: u64);
    /// Says that the bytes at `range` of the section will be read soon, so that what is not in memory yet is on its
    /// way.
    fn announce(self, range: Range<u64>) {
        let _ = range;
    }
}

/// Sees these bytes of the section as numbers.
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

/// Lines of a plane brought near ahead; the processor's own prefetching follows a longer scan.
const LINES_AHEAD: u64 = 8;

/// Announces a range, and hints at its first lines.
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
    // Rows do not begin at lines, so the last of them may be in one more.
    source.hint(last);
}

/// Where an encoder puts the parts of a section: bytes are appended to each part by itself; parts are in the file in
/// ascending order, each from the next multiple of 64 on.
pub trait Columns {
    /// Appends to part `part`.
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()>;
}

/// How the rows of a prefix are found in a table. Answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// A look-up in the directory, then bisection in the bucket: one place to wait for, two at the most.
    Directory,
    /// Interpolation between whole keys: about log log n steps on uniform keys (Manku et al. 2007, section 3.1),
    /// O(log n) on any. For codecs that hold whole keys.
    Interpolation,
    /// Bisection over whole keys: log2 n steps. For codecs that hold whole keys.
    Binary,
}
