//! Codec 4 of complete tables: uncompressed values.
//!
//! The uncompressed table of Manku, Jain and Das Sarma (WWW 2007, section 3.1): a directory over the first bits of the
//! values, then the sorted values of 8 bytes. It supports every [`Probe`] strategy.
//!
//! ```text
//! 0 directory  (2^d + 1) x 4 bytes: the first row of each prefix of d bits; the last is R
//! 1 values     R x 8
//! ```
//!
//! The number d is [`prefix_bits`](crate::design::prefix_bits) of the rows: clamp(floor(log2 R) - 3, 0, 16).

use std::ops::{ControlFlow, Range};

use zerocopy::little_endian::U64;

use super::compact::{ColumnBuffer, counted, follows};
use super::search::{self, Search, array, bounds, top};
use super::source::{Columns, Probe, Source, hint_lines};
use crate::error::{Error, Result};
use crate::format::directory::Directory;
use crate::format::wire::{self, Fault};
use crate::format::{DOCUMENTS_MAX, place};
use twindex_kernel::Simd;

/// Number of this codec in the table of contents.
pub const CODEC: u16 = 4;
/// Maximum number of bits of the directory's prefixes.
const DIRECTORY_BITS: u32 = 16;
/// Number of rows that a scan reads at once. They take 4 KiB, the size of a page.
const STEP: u64 = 512;
/// Number of rows that a scan tests before it branches.
const CHUNK: usize = 16;

/// The layout of a section, which depends only on its number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    directory: Directory,
    values: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Plain {
    /// Returns the layout for `rows` distinct values. [`open`](Self::open) and [`encode`](Self::encode) return an error
    /// for more than [`DOCUMENTS_MAX`] rows.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        let directory = Directory::of(rows, DIRECTORY_BITS);
        let bytes = rows.min(DOCUMENTS_MAX) * 8;
        let values = place(directory.length(), bytes);
        Self { directory, values, length: values + bytes }
    }

    /// Opens a section of `rows` rows and `length` bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the length does not match the number of rows.
    pub fn open<'a>(source: impl Source<'a>, rows: u64, length: u64) -> Result<Self> {
        let layout = Self::of(rows);
        if rows > DOCUMENTS_MAX {
            return Err(source.corrupt(Fault::new(0, format!("at most {DOCUMENTS_MAX} rows"), rows)));
        }
        if length != layout.length {
            let expected = format!("{} bytes for {rows} rows", layout.length);
            return Err(source.corrupt(Fault::new(0, expected, format!("{length} bytes"))));
        }
        Ok(layout)
    }

    /// Returns the rows whose first `bits` bits are `prefix`. For uniform values, this takes constant time with the
    /// directory and O(log log n) time with interpolation. For any values, every strategy takes O(log n) time.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source.
    #[inline(always)]
    pub fn rows<'a>(
        &self,
        source: impl Source<'a>,
        prefix: u64,
        bits: u32,
        probe: Probe,
    ) -> Result<Range<u64>> {
        let Some(bounds) = bounds(prefix, bits) else { return Ok(0..0) };
        let key = |row: u64| array(source, self.values + row * 8).map(u64::from_le_bytes);
        let all = 0..self.directory.rows;
        match probe {
            Probe::Binary => search::between(all, &bounds, Search::Binary, key),
            Probe::Interpolation => search::between(all, &bounds, Search::Interpolation, key),
            Probe::Directory => {
                let first = top(*bounds.start(), self.directory.bits);
                let last = top(*bounds.end(), self.directory.bits);
                let mut rows = self.directory.bucket(source, first)?;
                if last > first {
                    rows.end = self.directory.bucket(source, last)?.end;
                }
                if bits > self.directory.bits {
                    return search::between(rows, &bounds, Search::Binary, key);
                }
                self.check(source, &rows)?;
                Ok(rows)
            }
        }
    }

    /// Calls `each` with the row and the value of each row in `rows` whose value is within `radius` of `query`, in
    /// ascending order, until `each` returns `Break`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source. Values passed to `each` before
    /// an error are correct.
    #[inline(always)]
    pub fn scan<'a, S: Simd>(
        &self,
        _: S,
        source: impl Source<'a>,
        rows: Range<u64>,
        query: u64,
        radius: u32,
        mut each: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.check(source, &rows)?;
        let is_near = |value: &U64| (value.get() ^ query).count_ones() <= radius;
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start + STEP);
            let values = self.column(source, start..end)?;
            for (chunk, values) in (start..).step_by(CHUNK).zip(values.chunks(CHUNK)) {
                // The loop has no branch, so the compiler can vectorize it.
                let mut any = false;
                for value in values {
                    any |= is_near(value);
                }
                if !any {
                    continue;
                }
                for (row, value) in (chunk..).zip(values) {
                    if is_near(value) && each(row, value.get()).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            start = end;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the value of a row.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged or the row does not exist, and the errors of the source.
    #[inline]
    pub fn value<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        self.check(source, &(row..row.saturating_add(1)))?;
        array(source, self.values + row * 8).map(u64::from_le_bytes)
    }

    /// Returns the row of a value; `None` if the table does not contain it.
    ///
    /// # Errors
    /// Same as [`rows`](Self::rows).
    #[inline]
    pub fn find<'a>(&self, source: impl Source<'a>, value: u64) -> Result<Option<u64>> {
        let rows = self.rows(source, value, 64, Probe::Directory)?;
        if rows.is_empty() || self.value(source, rows.start)? != value {
            return Ok(None);
        }
        Ok(Some(rows.start))
    }

    /// Calls `each` with every row and its value, in ascending order. Checks that the values ascend strictly and are in
    /// their buckets of the directory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source and of `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let entry = |bucket: u64, row: u64| {
            let found = u64::from(u32::from_le_bytes(array(source, bucket * 4)?));
            if found == row {
                return Ok(());
            }
            Err(source.corrupt(Fault::new(bucket * 4, format!("row {row}, as the values say"), found)))
        };
        let (mut next, mut last) = (0, None);
        for start in (0..self.directory.rows).step_by(STEP as usize) {
            let values = self.column(source, start..self.directory.rows.min(start + STEP))?;
            for (row, value) in (start..).zip(values) {
                let value = value.get();
                if last.is_some_and(|last| last >= value) {
                    let expected = format!("a value over {:016x}", last.unwrap_or(0));
                    let fault = Fault::new(self.values + row * 8, expected, format!("{value:016x}"));
                    return Err(source.corrupt(fault));
                }
                last = Some(value);
                while next <= top(value, self.directory.bits) {
                    entry(next, row)?;
                    next += 1;
                }
                each(row, value)?;
            }
        }
        (next..=1 << self.directory.bits).try_for_each(|bucket| entry(bucket, self.directory.rows))
    }

    /// Prefetches the data that [`rows`](Self::rows) reads first with [`Probe::Directory`].
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        if let Some(bounds) = bounds(prefix, bits) {
            let entry = self.directory.range(top(*bounds.start(), self.directory.bits));
            source.hint(entry.start);
            source.announce(entry);
        }
    }

    /// Prefetches the data that [`scan`](Self::scan) reads first.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        let start = self.values.saturating_add(rows.start.saturating_mul(8));
        hint_lines(
            source,
            start..start.saturating_add(rows.end.saturating_sub(rows.start).saturating_mul(8)),
        );
    }

    /// Encodes the values as a section. Needs a few KiB of memory.
    ///
    /// # Errors
    /// The errors of `values` and `columns`; [`Error::Invalid`] if values do not ascend strictly or if their number
    /// differs from the number of rows of the layout; [`Error::Limit`] for more than [`DOCUMENTS_MAX`] rows.
    pub fn encode(
        &self,
        values: impl Iterator<Item = Result<u64>>,
        columns: &mut impl Columns,
    ) -> Result<()> {
        let Directory { bits, rows } = self.directory;
        if rows > DOCUMENTS_MAX {
            return Err(Error::Limit { what: "rows of a table", limit: DOCUMENTS_MAX, found: rows });
        }
        let [mut entries, mut column] = std::array::from_fn(ColumnBuffer::new);
        let (mut row, mut last, mut next) = (0_u64, None, 0);
        for value in values {
            let value = value?;
            follows(last, value, row, rows)?;
            while next <= top(value, bits) {
                entries.put(columns, &(row as u32).to_le_bytes())?;
                next += 1;
            }
            column.put(columns, &value.to_le_bytes())?;
            (last, row) = (Some(value), row + 1);
        }
        if row != rows {
            return Err(counted(row, rows));
        }
        for _ in next..=1 << bits {
            entries.put(columns, &(rows as u32).to_le_bytes())?;
        }
        entries.flush(columns)?;
        column.flush(columns)
    }

    #[inline(always)]
    fn column<'a>(&self, source: impl Source<'a>, rows: Range<u64>) -> Result<&'a [U64]> {
        let bytes = source.read(self.values + rows.start * 8..self.values + rows.end * 8)?;
        wire::column(bytes).map_err(|fault| source.corrupt(fault))
    }

    #[inline(always)]
    fn check<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<()> {
        if rows.start <= rows.end && rows.end <= self.directory.rows {
            return Ok(());
        }
        let expected = format!("ascending rows up to {}", self.directory.rows);
        Err(source.corrupt(Fault::new(0, expected, format!("{}..{}", rows.start, rows.end))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Memory, Parts, bytes_read, random, reset_bytes_read, uniform};
    use super::*;

    fn section(values: &[u64]) -> Vec<u8> {
        let mut parts = Parts::default();
        Plain::of(values.len() as u64).encode(values.iter().map(|&value| Ok(value)), &mut parts).unwrap();
        parts.section()
    }

    #[test]
    fn three_values_encode_to_the_bytes_of_the_specification() {
        let values = [0x0123_4567_89AB_CDEF_u64, 0x8000_0000_0000_0001, u64::MAX];
        let mut expected = vec![0; 64];
        expected[4] = 3;
        expected.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(section(&values), expected);
        assert_eq!(expected.len() as u64, Plain::of(3).length);
        assert!(Plain::open(Memory(&[]), u64::MAX, 0).is_err());
    }

    #[test]
    fn directory_and_interpolation_read_fewer_bytes_than_bisection() {
        let section = section(&uniform(100_000, 70));
        let codec = Plain::of(100_000);
        let read = |probe: Probe| {
            reset_bytes_read();
            for query in random(71).take(500) {
                codec.rows(Memory(&section), query >> 48, 16, probe).unwrap();
            }
            bytes_read()
        };
        let [directory, interpolation, binary] =
            [Probe::Directory, Probe::Interpolation, Probe::Binary].map(read);
        assert!(directory.max(interpolation) * 3 < binary, "{directory} {interpolation} {binary}");
    }
}
