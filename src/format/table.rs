//! The permutation tables.
//!
//! *Table 1* is complete: the distinct fingerprints in ascending order, as a directory over their first `d` bits
//! and the rest in planes, so that a scan reads one plane and looks at the next for survivors only.
//!
//! ```text
//! directory  (2^d + 1) x 4 bytes: the rank at which each prefix begins; the last is the number of fingerprints
//! first      rows x 2: block 1; absent where d = 16, because the directory has it all
//! middle     rows x 4: blocks 2 and 3 (the upper half is block 2)
//! last       rows x 2: block 4
//! ```
//!
//! *Tables 2 to 4* (Manku et al.'s other permutations) do not repeat the fingerprint. Table `t` has a directory
//! over the first `d` bits of block `t`; an entry is block 1, by which the fingerprint is found in table 1, and 0,
//! 1 or 2 further bytes of the block that follows block `t` in the cycle 2, 3, 4, which let fewer candidates
//! through. Within a bucket, entries ascend. Writers choose the width by
//! [`filter_bytes`](crate::tables::filter_bytes); readers take each.
//!
//! ```text
//! directory  (2^d + 1) x 4
//! pointer    rows x 2: block 1
//! filter     rows x (0, 1 or 2): the first byte, or both, of the next block
//! ```
//!
//! `d` is [`prefix_bits`] of the rows; parts begin at multiples of 64 in the section.

use std::ops::Range;

use zerocopy::little_endian::U32;

use super::align;
use super::wire::{self, Fault};
use crate::tables::prefix_bits;

/// Codec of table 1.
pub const CODEC_COMPLETE: u16 = 1;
/// Codec of a filter table whose entries are 2 bytes; 3 and 4 bytes have the next numbers.
pub const CODEC_FILTER_2: u16 = 1;

/// The codec of filter tables whose entries are `width` bytes, 2 to 4.
#[must_use]
pub fn filter_codec(width: u32) -> u16 {
    CODEC_FILTER_2 + (width - 2) as u16
}

/// The width of a codec's entries, 2 to 4 bytes.
#[must_use]
pub fn filter_width(codec: u16) -> Option<u32> {
    (2..=4).find(|&width| filter_codec(width) == codec)
}

/// A directory over `bits` bits, at the start of a section: tables and bands begin with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Bits of a prefix.
    pub bits: u32,
    /// What the directory counts.
    pub rows: u64,
}

impl Directory {
    /// The directory of a section of `rows` entries.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        Self { bits: prefix_bits(rows), rows }
    }

    /// Bytes it takes.
    #[must_use]
    pub fn length(&self) -> u64 {
        ((1 << self.bits) + 1) * 4
    }

    /// Where the first row of `prefix` and the first behind it stand.
    #[must_use]
    pub fn range(&self, prefix: u16) -> Range<u64> {
        let start = u64::from(prefix) * 4;
        start..start + 8
    }

    /// Reads the rows of a bucket from the bytes at [`range`](Self::range).
    ///
    /// # Errors
    /// A [`Fault`] where the two are not in order or beyond the rows.
    #[inline(always)]
    pub fn decode(&self, bytes: &[u8], prefix: u16) -> Result<Range<u64>, Fault> {
        let (start, end) = match wire::column::<U32>(bytes) {
            Ok([start, end]) => (u64::from(start.get()), u64::from(end.get())),
            _ => (1, 0),
        };
        if start <= end && end <= self.rows { Ok(start..end) } else { Err(self.fault(prefix, start, end)) }
    }

    #[cold]
    fn fault(&self, prefix: u16, start: u64, end: u64) -> Fault {
        let expected = format!("ascending rows up to {}", self.rows);
        Fault::new(self.range(prefix).start, expected, format!("{start} and {end}"))
    }
}

/// Where the parts of table 1 stand in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Over the first bits of block 1.
    pub directory: Directory,
    first: u64,
    middle: u64,
    last: u64,
    /// Length of the section.
    pub length: u64,
}

impl Complete {
    /// The layout for `rows` distinct fingerprints.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        let directory = Directory::of(rows);
        let first = align(directory.length());
        let middle = if directory.bits < 16 { align(first + rows * 2) } else { first };
        let last = align(middle + rows * 4);
        Self { directory, first, middle, last, length: last + rows * 2 }
    }

    /// True where block 1 has a plane of its own.
    #[must_use]
    pub fn has_first(&self) -> bool {
        self.directory.bits < 16
    }

    /// Where block 1 of these rows stands; empty where the directory has it all.
    #[must_use]
    pub fn first(&self, rows: &Range<u64>) -> Range<u64> {
        if self.has_first() {
            self.first + rows.start * 2..self.first + rows.end * 2
        } else {
            self.first..self.first
        }
    }

    /// Where blocks 2 and 3 of these rows stand.
    #[must_use]
    #[inline]
    pub fn middle(&self, rows: &Range<u64>) -> Range<u64> {
        self.middle + rows.start * 4..self.middle + rows.end * 4
    }

    /// Where block 4 of these rows stands.
    #[must_use]
    #[inline]
    pub fn last(&self, rows: &Range<u64>) -> Range<u64> {
        self.last + rows.start * 2..self.last + rows.end * 2
    }
}

/// Where the parts of a filter table stand in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Over the first bits of the table's own block.
    pub directory: Directory,
    /// Bytes of an entry, 2 to 4.
    pub width: u32,
    pointers: u64,
    bytes: u64,
    /// Length of the section.
    pub length: u64,
}

impl Filter {
    /// The layout for `rows` distinct fingerprints and entries of `width` bytes, 2 to 4.
    #[must_use]
    pub fn of(rows: u64, width: u32) -> Self {
        let directory = Directory::of(rows);
        let pointers = align(directory.length());
        let end = pointers + rows * 2;
        let bytes = if width == 2 { end } else { align(end) };
        Self { directory, width, pointers, bytes, length: bytes + rows * u64::from(width - 2) }
    }

    /// Where block 1 of these rows stands.
    #[must_use]
    #[inline]
    pub fn pointer(&self, rows: &Range<u64>) -> Range<u64> {
        self.pointers + rows.start * 2..self.pointers + rows.end * 2
    }

    /// Where the filter bytes of these rows stand; empty for entries of 2 bytes.
    #[must_use]
    #[inline]
    pub fn filter(&self, rows: &Range<u64>) -> Range<u64> {
        let width = u64::from(self.width - 2);
        self.bytes + rows.start * width..self.bytes + rows.end * width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::filter_bytes;

    #[test]
    fn ten_million_fingerprints_take_what_the_design_says() {
        let rows = 10_000_000;
        let bytes = (Complete::of(rows).length + 3 * Filter::of(rows, filter_bytes(rows)).length) as f64
            / rows as f64;
        assert!((15.0..15.2).contains(&bytes), "{bytes}");
        let rows = 1_000_000;
        let bytes = (Complete::of(rows).length + 3 * Filter::of(rows, filter_bytes(rows)).length) as f64
            / rows as f64;
        assert!((12.0..13.1).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_directory_that_runs_backwards_or_past_the_end_is_refused() {
        let directory = Directory { bits: 4, rows: 10 };
        let pair = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        assert_eq!(directory.decode(&pair(3, 7), 1), Ok(3..7));
        assert!(directory.decode(&pair(7, 3), 1).is_err());
        assert!(directory.decode(&pair(3, 11), 1).is_err());
        assert!(directory.decode(&[0; 4], 1).is_err());
    }
}
