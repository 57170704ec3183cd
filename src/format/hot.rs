//! The hot section of a table: nested tables for buckets that have too many rows for a scan.
//!
//! Real fingerprints are not uniform: a template, an empty page or a default value can put the fingerprints of a
//! million documents into one bucket. The fingerprints of a bucket agree in the `b` bits by which the table is probed.
//! For a hot bucket, the other `w = 64 - b` bits are indexed by the pigeonhole principle again, for the remaining
//! radius. They are split into [`NESTED`] blocks with one nested table each, as in the design `blocks-4`. Nested table
//! `j` is sorted by these `w` bits, rotated so that block `j` comes first, and is probed by its first `s` bits. An
//! entry contains the 16 bits after the first `s` bits, and the fingerprint's rank.
//!
//! ```text
//! buckets    H x 24: prefix 8, number of rows in the hot buckets before it 8, rows 8; prefixes ascend
//! directory  for each bucket and nested table (2^s + 1) x 4, s = floor(log2 rows) - 3, at most the block's length:
//!            the number of rows with smaller first s bits
//! filter     for each bucket and nested table, rows x 2
//! rank       for each bucket and nested table, rows x 4
//! ```
//!
//! A bucket is hot if it has more than [`HOT_ROWS`] rows and more than [`HOT_TIMES`] times the mean number of rows. A
//! table without hot buckets has no hot section.

use std::ops::Range;

use zerocopy::little_endian::{U16, U32, U64};

use super::align;
use super::table::source::{Columns, Source, column};
use super::wire::Fault;
use crate::design::prefix_bits;
use crate::design::tables::blocks;
use crate::error::Result;

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;
/// Number of nested tables of a hot bucket.
pub const NESTED: usize = 4;
/// A hot bucket must have more rows than this number.
pub const HOT_ROWS: u64 = 4096;
/// A hot bucket must have more rows than this factor times the mean size of a bucket, rounded down.
pub const HOT_TIMES: u64 = 8;
/// Length in bytes of a bucket's entry in the list of buckets.
const BUCKET_BYTES: u64 = 24;

/// Returns whether a bucket of `count` rows is hot, in a table of `rows` rows that is probed by `bits` bits.
#[must_use]
pub fn is_hot(count: u64, rows: u64, bits: u32) -> bool {
    count > HOT_ROWS && count > HOT_TIMES * rows.checked_shr(bits).unwrap_or(0)
}

/// The bits after the prefix of a hot bucket: their number, and the blocks into which they are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestedKeys {
    /// Number of bits after the prefix, 0 to 64.
    width: u32,
    /// For each block, the position of its first bit; 0 is the first bit after the prefix.
    starts: [u32; NESTED],
    lengths: [u32; NESTED],
}

impl NestedKeys {
    /// Returns how the bits after a prefix of `bits` bits (0 to 64) are split.
    ///
    /// # Panics
    /// Never: the number of blocks is the number of nested tables.
    #[must_use]
    pub fn after(bits: u32) -> Self {
        let width = 64 - bits;
        let blocks = blocks(0..width, NESTED as u32);
        let (mut starts, mut lengths) = ([0; NESTED], [0; NESTED]);
        for (j, block) in blocks.into_iter().enumerate() {
            (starts[j], lengths[j]) = (block.start, block.end - block.start);
        }
        Self { width, starts, lengths }
    }

    /// Returns the number of bits of a probe in nested table `j` of a bucket of `rows` rows.
    #[must_use]
    pub fn lead(&self, j: usize, rows: u64) -> u32 {
        prefix_bits(rows, self.lengths[j])
    }

    /// Converts a key of the table to a key of nested table `j`. The highest bits of the result are the bits after the
    /// prefix, rotated; the other bits are 0.
    #[inline]
    #[must_use]
    pub fn nested(&self, j: usize, key: u64) -> u64 {
        if self.width == 0 {
            return 0;
        }
        let (below, start) = (64 - self.width, self.starts[j]);
        let rest = key << below;
        (rest << start | (rest >> 1) >> (self.width - 1 - start)) & u64::MAX << below
    }
}

/// Returns the part of a nested key that its entry stores: the 16 bits after the first `lead` bits.
#[inline]
#[must_use]
pub fn filter(nested: u64, lead: u32) -> u16 {
    (nested.checked_shl(lead).unwrap_or(0) >> 48) as u16
}

/// A hot bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotBucket {
    /// The prefix that all keys of the bucket share.
    pub prefix: u64,
    /// Number of rows of the bucket.
    pub rows: u64,
    /// For each nested table, the offsets of its directory, filters and ranks in the section.
    parts: [[u64; 3]; NESTED],
}

/// The hot buckets of a table. There are few, so the list of all hot buckets is read when the segment is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// The layout of the bits after the prefix, by which the nested tables are sorted.
    pub rest: NestedKeys,
    /// The hot buckets in ascending order of their prefixes.
    pub buckets: Vec<HotBucket>,
}

impl Hot {
    /// Reads the list of buckets from a section of `length` bytes. `entries` is the total number of rows in the hot
    /// buckets of a table of `rows` rows that is probed by `bits` bits.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn open<'a>(
        source: impl Source<'a>,
        entries: u64,
        length: u64,
        rows: u64,
        bits: u32,
    ) -> Result<Self> {
        let wrong =
            |at: u64, expected: String, found: String| source.corrupt(Fault::new(at, expected, found));
        if entries > rows {
            return Err(wrong(0, format!("at most {rows} rows in hot buckets"), entries.to_string()));
        }
        // Each hot bucket has more than `HOT_ROWS` rows, which bounds the length of the list.
        let max = entries / (HOT_ROWS + 1);
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut before = 0;
        while before < entries {
            let at = list.len() as u64 * BUCKET_BYTES;
            let numbers: &[U64] = column(source, at..at + BUCKET_BYTES)?;
            let [prefix, start, count] = [0, 1, 2].map(|i| numbers[i].get());
            let ascends = list.last().is_none_or(|&(last, _)| last < prefix);
            let fits = prefix.checked_shr(bits).unwrap_or(0) == 0;
            if !ascends || !fits || start != before || !is_hot(count, rows, bits) || count > entries - before
            {
                let expected = format!("a hot bucket from row {before} on, after the last");
                return Err(wrong(at, expected, format!("prefix {prefix:x}, {count} rows from {start}")));
            }
            list.push((prefix, count));
            before += count;
            if list.len() as u64 > max {
                return Err(wrong(at, format!("at most {max} hot buckets"), list.len().to_string()));
            }
        }
        let hot = Self::of(&list, bits);
        if hot.length(entries) == length {
            return Ok(hot);
        }
        let expected = format!("{} bytes for these buckets", hot.length(entries));
        Err(wrong(0, expected, format!("{length} bytes")))
    }

    /// Returns the layout for buckets with these prefixes and numbers of rows.
    fn of(list: &[(u64, u64)], bits: u32) -> Self {
        let rest = NestedKeys::after(bits);
        let all = || list.iter().flat_map(|&(_, rows)| (0..NESTED).map(move |j| (rows, j)));
        let directory = align(list.len() as u64 * BUCKET_BYTES);
        let directories: u64 = all().map(|(rows, j)| directory_bytes(rest.lead(j, rows))).sum();
        let entries: u64 = all().map(|(rows, _)| rows).sum();
        let filter = align(directory + directories);
        let rank = align(filter + entries * 2);
        let mut next = [directory, filter, rank];
        let buckets = list
            .iter()
            .map(|&(prefix, rows)| {
                let mut parts = [[0; 3]; NESTED];
                for (j, parts) in parts.iter_mut().enumerate() {
                    *parts = next;
                    next[0] += directory_bytes(rest.lead(j, rows));
                    next[1] += rows * 2;
                    next[2] += rows * 4;
                }
                HotBucket { prefix, rows, parts }
            })
            .collect();
        Self { rest, buckets }
    }

    /// Returns the length of the section in bytes. `entries` is the total number of rows in the hot buckets.
    fn length(&self, entries: u64) -> u64 {
        let last = self.buckets.last().map_or(0, |last| last.parts[NESTED - 1][2] + last.rows * 4);
        if entries == 0 { 0 } else { last }
    }

    /// Returns the hot bucket with this prefix; `None` if the bucket is not hot.
    #[must_use]
    pub fn bucket(&self, prefix: u64) -> Option<&HotBucket> {
        let place = self.buckets.binary_search_by_key(&prefix, |bucket| bucket.prefix).ok()?;
        Some(&self.buckets[place])
    }

    /// Writes the hot section. For each hot bucket, `buckets` contains its prefix, and the key and rank of each
    /// fingerprint.
    ///
    /// # Errors
    /// The errors of `columns`.
    pub fn encode(buckets: &[(u64, Vec<(u64, u32)>)], bits: u32, columns: &mut impl Columns) -> Result<()> {
        let rest = NestedKeys::after(bits);
        let mut before = 0;
        for (prefix, members) in buckets {
            let rows = members.len() as u64;
            for number in [*prefix, before, rows] {
                columns.put(0, &number.to_le_bytes())?;
            }
            before += rows;
            for j in 0..NESTED {
                let lead = rest.lead(j, rows);
                let mut entries: Vec<(u64, u16, u32)> = members
                    .iter()
                    .map(|&(key, rank)| {
                        let nested = rest.nested(j, key);
                        (nested.checked_shr(64 - lead).unwrap_or(0), filter(nested, lead), rank)
                    })
                    .collect();
                entries.sort_unstable();
                let mut next = 0;
                for (place, &(leads, filter, rank)) in (0_u32..).zip(&entries) {
                    while next <= leads {
                        columns.put(1, &place.to_le_bytes())?;
                        next += 1;
                    }
                    columns.put(2, &filter.to_le_bytes())?;
                    columns.put(3, &rank.to_le_bytes())?;
                }
                for _ in next..=1 << lead {
                    columns.put(1, &(rows as u32).to_le_bytes())?;
                }
            }
        }
        Ok(())
    }
}

fn directory_bytes(lead: u32) -> u64 {
    ((1 << lead) + 1) * 4
}

impl HotBucket {
    /// Returns the rows of nested table `j` whose keys begin with `prefix`, which has [`lead`](NestedKeys::lead) bits.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn nested_rows<'a>(&self, source: impl Source<'a>, j: usize, prefix: u64) -> Result<Range<u64>> {
        let at = self.parts[j][0] + prefix * 4;
        let ends: &[U32] = column(source, at..at + 8)?;
        let (start, end) = (u64::from(ends[0].get()), u64::from(ends[1].get()));
        if start <= end && end <= self.rows {
            return Ok(start..end);
        }
        let expected = format!("ascending rows up to {}", self.rows);
        Err(source.corrupt(Fault::new(at, expected, format!("{start} and {end}"))))
    }

    /// Returns the filters of these rows of nested table `j`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn filters<'a>(&self, source: impl Source<'a>, j: usize, rows: &Range<u64>) -> Result<&'a [U16]> {
        column(source, self.parts[j][1] + rows.start * 2..self.parts[j][1] + rows.end * 2)
    }

    /// Returns the rank stored in a row of nested table `j`. Checks that the rank is below `distinct`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn rank<'a>(&self, source: impl Source<'a>, j: usize, row: u64, distinct: u64) -> Result<u32> {
        let at = self.parts[j][2] + row * 4;
        let rank = column::<U32>(source, at..at + 4)?[0].get();
        if u64::from(rank) < distinct {
            return Ok(rank);
        }
        Err(source.corrupt(Fault::new(at, format!("a rank below {distinct}"), rank)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_key_rotates_bits_after_prefix_by_block() {
        for bits in [0, 13, 16, 20, 27, 60, 64] {
            let rest = NestedKeys::after(bits);
            let width = 64 - bits;
            for key in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
                for j in 0..NESTED {
                    let start = rest.starts[j];
                    let mut expected = 0_u64;
                    for place in 0..width {
                        let bit = key >> (width - 1 - (start + place) % width) & 1;
                        expected |= bit << (63 - place);
                    }
                    assert_eq!(rest.nested(j, key), expected, "{bits} {j} {key:x}");
                }
            }
        }
    }

    #[test]
    fn hot_bucket_exceeds_row_limit_and_multiple_of_the_mean() {
        assert!(!is_hot(4096, 100_000, 12) && is_hot(4097, 100_000, 12));
        assert!(!is_hot(6000, 1 << 26, 16) && is_hot(8193, 1 << 26, 16));
    }
}
