//! A directory: maps each prefix of the keys to a range of rows.
//!
//! Tables and bands begin with a directory over the first `d` bits of the keys by which their rows are sorted: `2^d +
//! 1` numbers of 4 bytes. Number `i` is the number of rows with a prefix below `i`, which is also the first row with
//! prefix `i`. The last number is the number of all rows.

use std::ops::Range;

use zerocopy::little_endian::U32;

use super::table::source::Source;
use super::wire::{self, Fault};
use crate::design::prefix_bits;
use crate::error::Result;

/// A directory over `bits` bits, at the start of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Number of bits of the prefixes that the directory maps to rows.
    pub bits: u32,
    /// Number of rows in the section.
    pub rows: u64,
}

impl Directory {
    /// Returns the directory of a section of `rows` rows. It has [`prefix_bits`] bits, at most `max`.
    #[must_use]
    pub fn of(rows: u64, max: u32) -> Self {
        Self { bits: prefix_bits(rows, max), rows }
    }

    /// Returns the length of the directory in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        ((1 << self.bits) + 1) * 4
    }

    /// Returns the byte range in the section of the two numbers that bound the bucket `prefix`: its first row, and the
    /// first row of the next bucket.
    #[must_use]
    #[inline(always)]
    #[allow(clippy::unused_self, reason = "where rows of other widths stand depends on the directory")]
    pub fn range(&self, prefix: u64) -> Range<u64> {
        prefix * 4..prefix * 4 + 8
    }

    /// Decodes the rows of the bucket `prefix` from the bytes at [`range`](Self::range).
    ///
    /// # Errors
    /// A [`Fault`] if the two numbers descend or exceed the number of rows.
    #[inline(always)]
    pub fn decode(&self, bytes: &[u8], prefix: u64) -> std::result::Result<Range<u64>, Fault> {
        let (start, end) = match wire::column::<U32>(bytes) {
            Ok([start, end]) => (u64::from(start.get()), u64::from(end.get())),
            _ => (1, 0),
        };
        if start <= end && end <= self.rows { Ok(start..end) } else { Err(self.fault(prefix, start, end)) }
    }

    #[cold]
    fn fault(&self, prefix: u64, start: u64, end: u64) -> Fault {
        let expected = format!("ascending rows up to {}", self.rows);
        Fault::new(self.range(prefix).start, expected, format!("{start} and {end}"))
    }

    /// Returns the rows of the bucket `prefix`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    #[inline(always)]
    pub fn bucket<'a>(&self, source: impl Source<'a>, prefix: u64) -> Result<Range<u64>> {
        let bytes = source.read(self.range(prefix))?;
        self.decode(bytes, prefix).map_err(|fault| source.corrupt(fault))
    }

    /// Returns the rows whose first `bits` bits are `prefix`; `bits` is at most the number of bits of the directory.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    #[inline(always)]
    pub fn rows<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) -> Result<Range<u64>> {
        if bits == self.bits {
            return self.bucket(source, prefix);
        }
        let narrower = self.bits - bits;
        let (first, last) = (prefix << narrower, ((prefix + 1) << narrower) - 1);
        let start = self.bucket(source, first)?.start;
        let end = self.bucket(source, last)?.end;
        if start <= end { Ok(start..end) } else { Err(source.corrupt(self.fault(first, start, end))) }
    }

    /// Prefetches the directory entry that a lookup of `prefix`, a prefix of `bits` bits, reads first, and announces all
    /// that it reads. If the directory has fewer bits, this is the entry of the bucket that contains all rows of the prefix.
    #[inline(always)]
    pub fn hint<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        let own = self.bits;
        // If `own` is 0 and `bits` is 64, the distance is 64 bits, for which `checked_shr` returns `None`.
        let narrowed = || prefix.checked_shr(bits - own).unwrap_or(0);
        let entry = self.range(if bits <= own { prefix << (own - bits) } else { narrowed() });
        source.hint(entry.start);
        source.announce(entry);
        if bits < own {
            source.announce(self.range(((prefix + 1) << (own - bits)) - 1));
        }
    }

    /// Returns the rows of the bucket `prefix` in a scan of all buckets. The bucket must begin at row `end`, where the
    /// previous bucket ends. Without this check, a corrupt directory could assign all rows to every bucket, and a scan
    /// would take quadratic time.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn next_bucket<'a>(&self, source: impl Source<'a>, prefix: u64, end: u64) -> Result<Range<u64>> {
        let rows = self.bucket(source, prefix)?;
        let last = prefix + 1 == 1 << self.bits;
        let expected = match (rows.start == end, last && rows.end != self.rows) {
            (false, _) => format!("a bucket from row {end}"),
            (true, true) => format!("a last bucket up to row {}", self.rows),
            (true, false) => return Ok(rows),
        };
        let lie = Fault::new(self.range(prefix).start, expected, format!("{}..{}", rows.start, rows.end));
        Err(source.corrupt(lie))
    }

    /// Announces the entries that [`prefix_of`](Self::prefix_of) reads if the rows are distributed evenly.
    pub fn announce_search<'a>(&self, source: impl Source<'a>, row: u64) {
        let expected = (u128::from(row) << self.bits) / u128::from(self.rows.max(1));
        let (mut low, mut high) = (0_u64, 1 << self.bits);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            source.announce(self.range(middle));
            if u128::from(middle) <= expected { low = middle } else { high = middle }
        }
    }

    /// Returns the prefix of the bucket that contains `row`, by binary search with O(bits) reads.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    pub fn prefix_of<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        let (mut low, mut high) = (0_u64, 1 << self.bits);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.bucket(source, middle)?.start <= row {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// Counts rows by prefix, to build a directory.
#[derive(Debug)]
pub struct DirectoryBuilder {
    bits: u32,
    counts: Vec<u32>,
}

impl DirectoryBuilder {
    /// Creates a builder for this directory, with as much memory as the encoded directory takes.
    #[must_use]
    pub fn new(directory: Directory) -> Self {
        Self { bits: directory.bits, counts: vec![0; 1 << directory.bits] }
    }

    /// Counts a row by the first bits of its 64-bit `key`.
    #[inline(always)]
    pub fn count(&mut self, key: u64) {
        self.counts[key.checked_shr(64 - self.bits).unwrap_or(0) as usize] += 1;
    }

    /// Adds `rows` rows to the bucket `prefix`.
    pub fn count_bucket(&mut self, prefix: u64, rows: u32) {
        self.counts[prefix as usize] += rows;
    }

    /// Counts rows with ascending keys; `from` is the number of rows counted before. Stores the end of each prefix's
    /// rows instead of incrementing a counter, because each increment would wait for the previous one. Call
    /// [`settle`](Self::settle) after the last row.
    pub fn count_ascending(&mut self, from: u32, keys: &[u64]) {
        for (row, &key) in (from + 1..).zip(keys) {
            self.counts[key.checked_shr(64 - self.bits).unwrap_or(0) as usize] = row;
        }
    }

    /// Converts the row ends that [`count_ascending`](Self::count_ascending) stored to counts.
    pub fn settle(&mut self) {
        let mut last = 0;
        for end in self.counts.iter_mut().filter(|end| **end > 0) {
            *end -= last;
            last += *end;
        }
    }

    /// Encodes the directory and passes the bytes to `put` in chunks.
    pub fn encode(&self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut next = 0_u32;
        let mut bytes = Vec::new();
        for chunk in self.counts.chunks(1 << 12) {
            bytes.clear();
            for &count in chunk {
                bytes.extend_from_slice(&next.to_le_bytes());
                next += count;
            }
            put(&bytes)?;
        }
        put(&next.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_with_descending_or_too_large_rows_is_refused() {
        let directory = Directory { bits: 4, rows: 10 };
        let pair = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        assert_eq!(directory.decode(&pair(3, 7), 1), Ok(3..7));
        assert!(directory.decode(&pair(7, 3), 1).is_err());
        assert!(directory.decode(&pair(3, 11), 1).is_err());
        assert!(directory.decode(&[0; 4], 1).is_err());
    }
}
