//! A partial table: each entry contains some bits of a fingerprint, with which the fingerprint is found in table 1.
//!
//! An entry consists of a *pointer* and a *filter*. The pointer is the first 16 bits of the fingerprint, which locate
//! it in table 1. The filter is 0, 1 or 2 bytes: the bits that follow the pointer in
//! [`Design::entry_order`](crate::design::Design::entry_order). A search compares pointers and filters with those of
//! the query, and looks up only the few remaining entries in table 1. The entries of a bucket ascend. Different
//! fingerprints may have equal entries; all of these are stored.
//!
//! ```text
//! directory  (2^d + 1) x 4, over the first d bits of the table's keys; d = floor(log2 rows) - 3, from 0 to the number
//!            of leading bits of the table
//! pointer    rows x 2
//! filter     rows x (0, 1 or 2); absent for entries of 2 bytes
//! ```

use std::ops::Range;

use zerocopy::little_endian::U16;

use super::planes::{append, flush};
use super::source::{Columns, Source, column, hint_lines};
use crate::design::POINTER_BITS;
use crate::error::Result;
use crate::format::directory::{Directory, DirectoryBuilder};
use crate::format::place;
use crate::format::wire;
use twindex_kernel::Simd;

/// Codec number of a table with entries of 2 bytes. The next two numbers are for entries of 3 and 4 bytes.
pub const CODEC_2: u16 = 1;

/// Returns the codec number of tables with entries of `width` bytes, 2 to 4.
#[must_use]
pub fn codec(width: u8) -> u16 {
    CODEC_2 + u16::from(width) - 2
}

/// Returns the width in bytes, 2 to 4, of the entries of a codec; `None` for an unknown codec number.
#[must_use]
pub fn width(of: u16) -> Option<u8> {
    (2..=4).find(|&width| codec(width) == of)
}

/// The layout of a partial table's section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The directory over the first bits of the table's keys.
    pub directory: Directory,
    /// Length of an entry in bytes, 2 to 4.
    pub width: u8,
    pointers: u64,
    filters: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Filter {
    /// Returns the layout of a table of `rows` fingerprints, with entries of `width` bytes (2 to 4). The table is
    /// sorted by its first `lead` bits.
    #[must_use]
    pub fn of(rows: u64, lead: u32, width: u8) -> Self {
        let directory = Directory::of(rows, lead);
        let pointers = place(directory.length(), rows * 2);
        let filter_bytes = rows * u64::from(width - 2);
        let filters = place(pointers + rows * 2, filter_bytes);
        Self { directory, width, pointers, filters, length: filters + filter_bytes }
    }

    /// Returns the offset of the plane of pointers in the section. A scan reads this plane first.
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.pointers
    }

    /// Returns the sort value of an entry. Its highest bits are, in this order, the bits of the directory, the pointer
    /// and the filter. `prefix` contains the bits of the directory; `entry` contains the pointer and the filter.
    #[inline(always)]
    #[must_use]
    pub fn value(&self, prefix: u64, entry: u64) -> u64 {
        let width = 8 * u32::from(self.width);
        (prefix << width | entry) << (64 - self.directory.bits - width)
    }

    /// Returns the rows of the buckets that contain all keys beginning with `prefix`, a prefix of `bits` bits. If the
    /// directory has fewer bits, these rows also include other keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    #[inline(always)]
    pub fn rows<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) -> Result<Range<u64>> {
        if bits <= self.directory.bits {
            self.directory.rows(source, prefix, bits)
        } else {
            self.directory.bucket(source, prefix >> (bits - self.directory.bits))
        }
    }

    /// Prefetches the entry of the directory for a prefix.
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        self.directory.hint(source, prefix, bits);
    }

    /// Prefetches the data that [`candidates`](Self::candidates) reads.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        hint_lines(source, self.pointers + rows.start * 2..self.pointers + rows.end * 2);
    }

    /// Prefetches the filter of a row.
    #[inline(always)]
    pub fn hint_row<'a>(&self, source: impl Source<'a>, row: u64) {
        if self.width > 2 {
            let width = u64::from(self.width - 2);
            let filter = self.filters + row * width;
            source.hint(filter);
            source.announce(filter..filter + width);
        }
    }

    /// Calls `each` with the row and the pointer of each row in `rows` whose pointer is within `radius` of the pointer
    /// `query`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    #[inline(always)]
    pub fn candidates<'a, S: Simd>(
        &self,
        simd: S,
        source: impl Source<'a>,
        rows: &Range<u64>,
        query: u16,
        radius: u32,
        mut each: impl FnMut(u64, u16),
    ) -> Result<()> {
        let pointers = self.pointers(source, rows)?;
        let start = rows.start;
        twindex_kernel::for_each_near16(simd, pointers, query, radius, |place| {
            each(start + place as u64, pointers[place].get());
        });
        Ok(())
    }

    #[inline(always)]
    fn pointers<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<&'a [U16]> {
        column(source, self.pointers + rows.start * 2..self.pointers + rows.end * 2)
    }

    /// Returns the Hamming distance between the filter of a row and the filter in `entry`, the entry of the query.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged.
    #[inline(always)]
    pub fn distance<'a>(&self, source: impl Source<'a>, row: u64, entry: u64) -> Result<u32> {
        let stored = self.filter(source, row)?;
        let query = (entry << POINTER_BITS).checked_shr(64 - 8 * u32::from(self.width - 2)).unwrap_or(0);
        Ok((u64::from(stored) ^ query).count_ones())
    }

    #[inline(always)]
    fn filter<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u16> {
        let width = u64::from(self.width - 2);
        let at = self.filters + row * width;
        Ok(wire::short(source.read(at..at + width)?))
    }

    /// Calls `each` with the [sort value](Self::value) of every entry, in the order of the table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the section is damaged, for example if entries do not ascend; or
    /// the errors of `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut rows = 0..0;
        let mut last = 0;
        for bucket in 0..1_u64 << self.directory.bits {
            rows = self.directory.next_bucket(source, bucket, rows.end)?;
            let pointers = self.pointers(source, &rows)?;
            for (row, pointer) in rows.clone().zip(pointers) {
                let filter = u64::from(self.filter(source, row)?);
                let entry = u64::from(pointer.get()) << (8 * self.width - 16) | filter;
                let value = self.value(bucket, entry);
                if value < last {
                    let at = self.pointers + row * 2;
                    let fault =
                        wire::Fault::new(at, format!("an entry from {last:x} on"), format!("{value:x}"));
                    return Err(source.corrupt(fault));
                }
                last = value;
                each(value)?;
            }
        }
        Ok(())
    }

    /// Writes a table, given a [sort value](Self::value) for each row of the layout in ascending order. Needs memory
    /// only for the directory.
    ///
    /// # Errors
    /// The errors of `values` and `columns`.
    pub fn encode(
        &self,
        values: impl Iterator<Item = Result<u64>>,
        columns: &mut impl Columns,
    ) -> Result<()> {
        let mut directory = DirectoryBuilder::new(self.directory);
        let mut chunk: [Vec<u8>; 2] = Default::default();
        let bits = self.directory.bits;
        for value in values {
            let value = value?;
            directory.count(value);
            let entry = value.checked_shl(bits).unwrap_or(0);
            chunk[0].extend_from_slice(&((entry >> 48) as u16).to_le_bytes());
            let filter = (entry << POINTER_BITS) >> 48;
            match self.width {
                2 => {}
                3 => chunk[1].push((filter >> 8) as u8),
                _ => chunk[1].extend_from_slice(&(filter as u16).to_le_bytes()),
            }
            if chunk[0].len() >= 1 << 15 {
                flush(&mut chunk, columns)?;
            }
        }
        flush(&mut chunk, columns)?;
        directory.encode(|bytes| columns.put(0, bytes))
    }
}

/// Writes a partial table, given the entries bucket by bucket.
#[derive(Debug)]
pub struct Encoder {
    directory: DirectoryBuilder,
    width: u8,
    chunk: [Vec<u8>; 2],
}

impl Encoder {
    /// Creates an encoder for this layout. Needs memory for the directory.
    #[must_use]
    pub fn new(filter: &Filter) -> Self {
        let directory = DirectoryBuilder::new(filter.directory);
        Self { directory, width: filter.width, chunk: Default::default() }
    }

    /// Adds `rows` to the number of entries in the bucket `prefix`.
    pub fn bucket(&mut self, prefix: u64, rows: u32) {
        self.directory.count_bucket(prefix, rows);
    }

    /// Appends entries in the order of the table. An entry is the lowest `8 * width` bits of a number.
    ///
    /// # Errors
    /// The errors of `columns`.
    pub fn put<T: Copy + Into<u64>>(&mut self, entries: &[T], columns: &mut impl Columns) -> Result<()> {
        for entries in entries.chunks(1 << 11) {
            let [pointers, filters] = &mut self.chunk;
            let below = 8 * u32::from(self.width) - POINTER_BITS;
            append(entries, pointers, |entry| ((entry.into() >> below) as u16).to_le_bytes());
            match self.width {
                2 => {}
                3 => append(entries, filters, |entry| [entry.into() as u8]),
                _ => append(entries, filters, |entry| (entry.into() as u16).to_le_bytes()),
            }
            flush(&mut self.chunk, columns)?;
        }
        Ok(())
    }

    /// Writes the directory.
    ///
    /// # Errors
    /// The errors of `columns`.
    pub fn finish(self, columns: &mut impl Columns) -> Result<()> {
        self.directory.encode(|bytes| columns.put(0, bytes))
    }
}
