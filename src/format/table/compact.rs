//! Codec 2 of complete tables: Elias-Fano coding, close to the entropy bound.
//!
//! R distinct values of 64 bits need at least about 64 - log2 R + 1.44 bits each. The first h = floor(log2 R) bits of a
//! value are its *high part*. High parts are stored in unary: for row i, bit `i + high` of a stream is set, so a zero
//! bit follows the rows of each high part (Elias 1974; Vigna, WSDM 2013, section 3). The other bits of a value are its
//! *low part*. Low parts are stored in three columns. A scan reads only the first column, 2 bytes per row, and the
//! other columns for rows that pass the filter.
//!
//! ```text
//! 0 directory  (2^D + 1) x 4 bytes: the first row of each prefix of D bits; the last is R
//! 1 stream     R + 2^h bits, bit 0 of byte 0 first, in whole words of 8 bytes
//! 2 first      R x 2: the first 16 bits of the low part
//! 3 second     R x 2: the next 16 bits of the low part
//! 4 rest       R x (32 - h) bits, from bit 0 of byte 0 on, in whole words of 8 bytes, followed by one more word
//! 5 samples    x 4: the number of rows before every 4,096th bit of the stream, from bit 4,096 on
//! ```
//!
//! D = max(h - 6, 0). The stream bits of a bucket of the directory begin at bit `row + (bucket << (h - D))`, where
//! `row` is the first row of the bucket. For uniform values they take 16 to 24 bytes, so a select operation reads only
//! a few words. The samples are for buckets with very many rows: with samples, select reads at most 64 words for any
//! values.

use std::ops::{ControlFlow, Range};

use zerocopy::little_endian::U16;

use super::search::{self, array, bounds, top};
use super::source::{Columns, Source, hint_lines};
use crate::error::{Error, Result};
use crate::format::wire::{self, Fault};
use crate::format::{DOCUMENTS_MAX, align, place};
use twindex_kernel::Simd;

/// Number of this codec in the table of contents.
pub const CODEC: u16 = 2;
/// Number of parts of a section.
const PARTS: usize = 6;
/// Number of bits of a high part that the directory does not cover. If values are uniform, a bucket has 64 to 128 rows.
const BUCKET_BITS: u32 = 6;
/// Number of bits of the stream between two samples. A bucket of at most this length is searched without samples.
const SAMPLE: u64 = 4096;
/// Number of bits of a word of the stream.
const WORD: u64 = 64;
/// Number of rows whose columns are read at once. They take 4 KiB (a page) of the first column.
const STEP: u64 = 2048;
/// Number of rows that one call of a kernel tests.
const LANES: usize = 64;
/// The smallest radius for which a scan filters by the first 32 bits of the low part of each fingerprint. From this radius
/// on, a filter by 16 bits would pass at least a tenth of random rows.
const RADIUS_WIDE: u32 = 5;

/// The layout of a section, which depends only on its number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    rows: u64,
    /// h: the number of bits of a high part.
    high: u32,
    /// D: the number of bits of the directory's prefixes.
    prefix: u32,
    stream: u64,
    first: u64,
    second: u64,
    rest: u64,
    samples: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Compact {
    /// Returns the layout for `rows` distinct values. [`open`](Self::open) and [`encode`](Self::encode) return an error
    /// for more than [`DOCUMENTS_MAX`] rows.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        let counted = rows.min(DOCUMENTS_MAX);
        let high = counted.checked_ilog2().unwrap_or(0);
        let prefix = high.saturating_sub(BUCKET_BITS);
        let bits = counted + (1 << high);
        let rest_bits = counted * u64::from(32 - high);
        let stream = align(((1 << prefix) + 1) * 4);
        let first = place(stream + bits.div_ceil(WORD) * 8, counted * 2);
        let second = place(first + counted * 2, counted * 2);
        let rest = align(second + counted * 2);
        let samples_bytes = (bits - 1) / SAMPLE * 4;
        let samples = place(rest + (rest_bits.div_ceil(WORD) + 1) * 8, samples_bytes);
        let length = samples + samples_bytes;
        Self { rows, high, prefix, stream, first, second, rest, samples, length }
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

    /// Returns the rows whose first `bits` bits are `prefix`. Takes constant time for uniform values and O(log n) time
    /// for any values.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source.
    #[inline(always)]
    pub fn rows<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) -> Result<Range<u64>> {
        let Some(bounds) = bounds(prefix, bits) else { return Ok(0..0) };
        let bucket = top(*bounds.start(), self.prefix);
        if bits <= self.prefix {
            return self.buckets(source, bucket..top(*bounds.end(), self.prefix) + 1);
        }
        let rows = self.buckets(source, bucket..bucket + 1)?;
        if rows.is_empty() {
            return Ok(rows);
        }
        let highs = top(*bounds.start(), self.high)..top(*bounds.end(), self.high) + 1;
        let start = self.row_of_high(source, bucket, &rows, highs.start)?;
        let end = self.row_of_high(source, bucket, &rows, highs.end)?;
        if bits <= self.high || start >= end {
            return self.ordered(source, bucket, start..end);
        }
        // All remaining rows have the same high part, so it is enough to compare the low parts.
        let mask = u64::MAX >> self.high;
        let lows = bounds.start() & mask..=bounds.end() & mask;
        search::between(start..end, &lows, search::Search::Binary, |row| self.low(source, row))
    }

    /// Calls `each` with the row and the value of each row in `rows` whose value is within `radius` of `query`, in
    /// ascending order, until `each` returns `Break`. Reads 2 bytes per row, and 4 if `radius` is 5 or more.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source. Values passed to `each` before
    /// an error are correct.
    #[inline(always)]
    pub fn scan<'a, S: Simd>(
        &self,
        simd: S,
        source: impl Source<'a>,
        rows: Range<u64>,
        query: u64,
        radius: u32,
        mut each: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.check(source, &rows)?;
        let low = query & (u64::MAX >> self.high);
        let (first, second) = ((low >> (48 - self.high)) as u16, (low >> (32 - self.high)) as u16);
        let mut place = BucketRows { bucket: 0, rows: 0..0 };
        let mut start = rows.start;
        while start < rows.end {
            let step = start..rows.end.min(start + STEP);
            let firsts: &[U16] = column(source, self.first, &step)?;
            let seconds: &[U16] =
                if radius < RADIUS_WIDE { &[] } else { column(source, self.second, &step)? };
            for (chunk, lanes) in firsts.chunks(LANES).enumerate() {
                let mut near = if seconds.is_empty() {
                    simd.near16(lanes, first, radius)
                } else {
                    let seconds = &seconds[chunk * LANES..][..lanes.len()];
                    near_pairs(lanes, seconds, first, second, radius)
                };
                while near != 0 {
                    let row = step.start + (chunk * LANES) as u64 + u64::from(near.trailing_zeros());
                    near &= near - 1;
                    if let Some(value) = self.survivor(source, &mut place, row, query, radius)?
                        && each(row, value).is_break()
                    {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            start = step.end;
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
        let high = self.high(source, &mut BucketRows { bucket: 0, rows: 0..0 }, row)?;
        Ok(self.whole(high, self.low(source, row)?))
    }

    /// Returns the row of a value; `None` if the table does not contain it.
    ///
    /// # Errors
    /// Same as [`rows`](Self::rows).
    #[inline]
    pub fn find<'a>(&self, source: impl Source<'a>, value: u64) -> Result<Option<u64>> {
        let rows = self.rows(source, value, 64)?;
        if rows.is_empty() || self.low(source, rows.start)? != value & (u64::MAX >> self.high) {
            return Ok(None);
        }
        Ok(Some(rows.start))
    }

    /// Calls `each` with every row and its value, in ascending order. Checks that the directory, the stream and the
    /// samples are consistent, that values ascend strictly, and that all bits after the last row are zero.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source and of `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let open = self.high - self.prefix;
        let (mut row, mut bucket, mut last) = (0, 0, None);
        let entry = |bucket: u64, row: u64| {
            let found = u64::from(u32::from_le_bytes(array(source, bucket * 4)?));
            if found == row { Ok(()) } else { Err(disagrees(source, bucket * 4, row, found)) }
        };
        entry(0, 0)?;
        let bits = self.rows + (1 << self.high);
        let mut lows = LowBits { rows: 0..0, first: &[], second: &[], rest: &[] };
        for word in 0..bits.div_ceil(WORD) {
            let (at, bit) = (self.stream + word * 8, word * WORD);
            let mut ones = u64::from_le_bytes(array(source, at)?);
            if bit > 0 && bit.is_multiple_of(SAMPLE) {
                self.check_sample(source, bit / SAMPLE, row)?;
            }
            while ones != 0 {
                let place = bit + u64::from(ones.trailing_zeros());
                ones &= ones - 1;
                let high = place - row;
                if row == self.rows || high >> self.high != 0 {
                    let expected = format!("{} rows and {} zeros", self.rows, 1_u64 << self.high);
                    return Err(source.corrupt(Fault::new(
                        at,
                        expected,
                        "a row too many, or after the last",
                    )));
                }
                while bucket < high >> open {
                    bucket += 1;
                    entry(bucket, row)?;
                }
                if row >= lows.rows.end {
                    lows = self.lows(source, row)?;
                }
                let value = self.whole(high, lows.get(self.high, row));
                if last.is_some_and(|last| last >= value) {
                    let expected = format!("a value over {:016x} in row {row}", last.unwrap_or(0));
                    return Err(source.corrupt(Fault::new(
                        self.first + row * 2,
                        expected,
                        format!("{value:016x}"),
                    )));
                }
                last = Some(value);
                each(row, value)?;
                row += 1;
            }
        }
        if row != self.rows {
            return Err(disagrees(source, self.stream, self.rows, row));
        }
        for bucket in bucket + 1..=1 << self.prefix {
            entry(bucket, row)?;
        }
        self.check_rest_padding(source)
    }

    /// Prefetches the data that [`rows`](Self::rows) reads first.
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        if let Some(bounds) = bounds(prefix, bits) {
            let entry = top(*bounds.start(), self.prefix) * 4;
            source.hint(entry);
            source.announce(entry..entry + 8);
        }
    }

    /// Prefetches the data that [`scan`](Self::scan) reads first.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        let start = self.first.saturating_add(rows.start.saturating_mul(2));
        hint_lines(
            source,
            start..start.saturating_add(rows.end.saturating_sub(rows.start).saturating_mul(2)),
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
        let mut out = CompactEncoder::new(self, columns)?;
        for value in values {
            out.push(value?)?;
        }
        out.finish()
    }

    /// Returns the rows of consecutive buckets. Reads only the directory.
    #[inline(always)]
    fn buckets<'a>(&self, source: impl Source<'a>, buckets: Range<u64>) -> Result<Range<u64>> {
        let rows = if buckets.end - buckets.start == 1 {
            let pair = u64::from_le_bytes(array(source, buckets.start * 4)?);
            pair & u64::from(u32::MAX)..pair >> 32
        } else {
            let entry =
                |bucket: u64| array(source, bucket * 4).map(|bytes| u64::from(u32::from_le_bytes(bytes)));
            entry(buckets.start)?..entry(buckets.end)?
        };
        self.ordered(source, buckets.start, rows)
    }

    #[inline(always)]
    fn ordered<'a>(&self, source: impl Source<'a>, bucket: u64, rows: Range<u64>) -> Result<Range<u64>> {
        if rows.start <= rows.end && rows.end <= self.rows {
            return Ok(rows);
        }
        Err(self.disorder(source, bucket, &rows))
    }

    #[cold]
    fn disorder<'a>(&self, source: impl Source<'a>, bucket: u64, rows: &Range<u64>) -> Error {
        let expected = format!("ascending rows up to {}", self.rows);
        source.corrupt(Fault::new(bucket * 4, expected, format!("{} and {}", rows.start, rows.end)))
    }

    #[inline(always)]
    fn check<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<()> {
        if rows.end <= self.rows && rows.start <= rows.end && self.rows <= DOCUMENTS_MAX {
            return Ok(());
        }
        let expected = format!("rows below {}", self.rows);
        Err(source.corrupt(Fault::new(0, expected, format!("{}..{}", rows.start, rows.end))))
    }

    /// Returns the range of the stream's bits that belong to a bucket.
    #[inline(always)]
    fn piece(&self, bucket: u64, rows: &Range<u64>) -> Range<u64> {
        let open = self.high - self.prefix;
        rows.start + (bucket << open)..rows.end + ((bucket + 1) << open)
    }

    /// Returns the first row of a bucket whose high part is at least `high`, which must be a high part of the bucket or
    /// the first high part of the next bucket.
    #[inline(always)]
    fn row_of_high<'a>(
        &self,
        source: impl Source<'a>,
        bucket: u64,
        rows: &Range<u64>,
        high: u64,
    ) -> Result<u64> {
        let open = self.high - self.prefix;
        if high == bucket << open {
            return Ok(rows.start);
        }
        if high == (bucket + 1) << open {
            return Ok(rows.end);
        }
        let piece = self.piece(bucket, rows);
        // The row follows zero bit number `high` (from 1), which ends the previous high part. Start the search before
        // this bit.
        let mut walk = self.walk(source, &piece, rows, |bit, row| bit.saturating_sub(row) < high)?;
        while let Some(ones) = walk.next_word() {
            // Number of zero bits between the current bit and zero bit number `high`.
            let Some(left) = high.checked_sub(walk.bit - walk.row + 1) else { break };
            let zeros = !ones & walk.valid();
            if u64::from(zeros.count_ones()) > left {
                let row = walk.bit + u64::from(select(zeros, left)) + 1 - high;
                return self.in_bucket(source, bucket, rows, row);
            }
            walk.skip(u64::from(zeros.count_zeros()) - (WORD - walk.width()));
        }
        Err(self.broken_stream(source, &piece))
    }

    #[inline(always)]
    fn in_bucket<'a>(
        &self,
        source: impl Source<'a>,
        bucket: u64,
        rows: &Range<u64>,
        row: u64,
    ) -> Result<u64> {
        if rows.start <= row && row <= rows.end {
            return Ok(row);
        }
        Err(self.broken_stream(source, &self.piece(bucket, rows)))
    }

    /// Returns the high part of a row. `place` keeps the bucket of the row for the next call.
    #[inline(always)]
    fn high<'a>(&self, source: impl Source<'a>, place: &mut BucketRows, row: u64) -> Result<u64> {
        if !place.rows.contains(&row) {
            *place = self.place(source, row)?;
        }
        let piece = self.piece(place.bucket, &place.rows);
        let mut walk = self.walk(source, &piece, &place.rows, |_, before| before <= row)?;
        while let Some(ones) = walk.next_word() {
            let ones = ones & walk.valid();
            let Some(left) = row.checked_sub(walk.row) else { break };
            if u64::from(ones.count_ones()) > left {
                let bit = walk.bit + u64::from(select(ones, left));
                let high = bit.wrapping_sub(row);
                if bit < piece.end && high >> (self.high - self.prefix) == place.bucket {
                    return Ok(high);
                }
                break;
            }
            walk.skip(ones.count_ones().into());
        }
        Err(self.broken_stream(source, &piece))
    }

    /// Returns the bucket of a row, by interpolation in the directory: about log2 D reads for uniform values.
    #[inline]
    fn place<'a>(&self, source: impl Source<'a>, row: u64) -> Result<BucketRows> {
        // The first directory entry above `row` belongs to the bucket after the one that contains the row.
        let next = search::interpolate(1..1 << self.prefix, 0..=self.rows, row + 1, |bucket| {
            array(source, bucket * 4).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
        })?;
        let bucket = next.max(1) - 1;
        let rows = self.buckets(source, bucket..bucket + 1)?;
        if rows.contains(&row) {
            return Ok(BucketRows { bucket, rows });
        }
        Err(self.disorder(source, bucket, &rows))
    }

    /// Starts a search in `piece`, the stream's bits of a bucket. The search begins at the last sample in the piece for
    /// which `before` is true, or at the start of the piece.
    #[inline(always)]
    fn walk<'a>(
        &self,
        source: impl Source<'a>,
        piece: &Range<u64>,
        rows: &Range<u64>,
        before: impl Fn(u64, u64) -> bool,
    ) -> Result<StreamWalk<'a>> {
        let (mut bit, mut row, mut end) = (piece.start, rows.start, piece.end);
        if piece.end - piece.start > SAMPLE {
            (bit, row) = self.sample(source, piece, rows, before)?;
            // The row to be found is before the next sample.
            end = end.min((bit / SAMPLE + 1) * SAMPLE);
        }
        let words = bit / WORD..end.div_ceil(WORD);
        let bytes = source.read(self.stream + words.start * 8..self.stream + words.end * 8)?;
        Ok(StreamWalk { bytes, bit, row, end })
    }

    /// Returns the bit and the row of the last sample in a piece for which `before` is true, or of the start of the
    /// piece if `before` is false for all samples.
    #[cold]
    fn sample<'a>(
        &self,
        source: impl Source<'a>,
        piece: &Range<u64>,
        rows: &Range<u64>,
        before: impl Fn(u64, u64) -> bool,
    ) -> Result<(u64, u64)> {
        let read = |sample: u64| -> Result<u64> {
            let at = self.samples + (sample - 1) * 4;
            Ok(u64::from(u32::from_le_bytes(array(source, at)?)))
        };
        // Sample `s`, from 1, is at bit `s * SAMPLE`. So sample `low` is initially not after the start of the piece.
        let (mut low, mut high) = (piece.start / SAMPLE, (piece.end - 1) / SAMPLE);
        let start = low;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if before(middle * SAMPLE, read(middle)?) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low == start {
            return Ok((piece.start, rows.start));
        }
        let (bit, row) = (low * SAMPLE, read(low)?);
        if rows.start <= row && row <= rows.end && row <= bit {
            return Ok((bit, row));
        }
        let expected = format!("a row from {} to {}", rows.start, rows.end);
        Err(source.corrupt(Fault::new(self.samples + (low - 1) * 4, expected, row)))
    }

    #[cold]
    fn broken_stream<'a>(&self, source: impl Source<'a>, piece: &Range<u64>) -> Error {
        let expected = format!("the rows and the zeros of bits {}..{}", piece.start, piece.end);
        source.corrupt(Fault::new(self.stream + piece.start / 8, expected, "others"))
    }

    /// Returns the value of a row if it is within the radius, otherwise `None`.
    #[inline(always)]
    fn survivor<'a>(
        &self,
        source: impl Source<'a>,
        place: &mut BucketRows,
        row: u64,
        query: u64,
        radius: u32,
    ) -> Result<Option<u64>> {
        let low = self.low(source, row)?;
        if ((low ^ query) & (u64::MAX >> self.high)).count_ones() > radius {
            return Ok(None);
        }
        let value = self.whole(self.high(source, place, row)?, low);
        Ok(((value ^ query).count_ones() <= radius).then_some(value))
    }

    #[inline(always)]
    fn whole(&self, high: u64, low: u64) -> u64 {
        (high << 1) << (63 - self.high) | low
    }

    /// Returns the low part of a row, which must exist.
    #[inline(always)]
    fn low<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        let first = u16::from_le_bytes(array(source, self.first + row * 2)?);
        let second = u16::from_le_bytes(array(source, self.second + row * 2)?);
        let bit = row * u64::from(32 - self.high);
        let word = u64::from_le_bytes(array(source, self.rest + bit / 8)?);
        Ok(join(self.high, first, second, word >> (bit % 8)))
    }

    /// Reads the low parts of the rows from `start` on, at most [`STEP`] rows.
    fn lows<'a>(&self, source: impl Source<'a>, start: u64) -> Result<LowBits<'a>> {
        let rows = start..self.rows.min(start + STEP);
        let bits = rows.start * u64::from(32 - self.high)..rows.end * u64::from(32 - self.high);
        Ok(LowBits {
            first: column(source, self.first, &rows)?,
            second: column(source, self.second, &rows)?,
            rest: source.read(self.rest + bits.start / 8..self.rest + bits.end / 8 + 8)?,
            rows,
        })
    }

    fn check_sample<'a>(&self, source: impl Source<'a>, sample: u64, row: u64) -> Result<()> {
        let at = self.samples + (sample - 1) * 4;
        let found = u64::from(u32::from_le_bytes(array(source, at)?));
        if found == row { Ok(()) } else { Err(disagrees(source, at, row, found)) }
    }

    fn check_rest_padding<'a>(&self, source: impl Source<'a>) -> Result<()> {
        let bits = self.rows * u64::from(32 - self.high);
        let words = bits / WORD..bits.div_ceil(WORD) + 1;
        for word in words {
            let at = self.rest + word * 8;
            let kept = (bits - (word * WORD).min(bits)).min(WORD);
            let padding = u64::from_le_bytes(array(source, at)?).checked_shr(kept as u32).unwrap_or(0);
            if padding != 0 {
                return Err(source.corrupt(Fault::new(
                    at,
                    "zeros after the last row",
                    format!("{padding:#x}"),
                )));
            }
        }
        Ok(())
    }
}

#[cold]
fn disagrees<'a>(source: impl Source<'a>, at: u64, expected: u64, found: u64) -> Error {
    source.corrupt(Fault::new(at, format!("row {expected}, as the stream says"), found))
}

/// Returns the 16-bit numbers of `rows` in the column that begins at offset `part`.
#[inline(always)]
fn column<'a>(source: impl Source<'a>, part: u64, rows: &Range<u64>) -> Result<&'a [U16]> {
    let bytes = source.read(part + rows.start * 2..part + rows.end * 2)?;
    wire::column(bytes).map_err(|fault| source.corrupt(fault))
}

/// Assembles a low part from its three columns. `rest` begins with the bits of this row; higher bits are ignored.
#[inline(always)]
fn join(high: u32, first: u16, second: u16, rest: u64) -> u64 {
    let bits = 32 - high;
    u64::from(first) << (16 + bits) | u64::from(second) << bits | rest & ((1 << bits) - 1)
}

/// Returns the position of the set bit of `word` that has `before` set bits below it, by bisection with population
/// counts.
#[inline(always)]
fn select(word: u64, before: u64) -> u32 {
    let (mut word, mut before, mut place) = (word, before as u32, 0);
    for width in [32, 16, 8, 4, 2, 1] {
        let below = (word & ((1 << width) - 1)).count_ones();
        let skip = u32::from(before >= below);
        before -= skip * below;
        word >>= skip * width;
        place += skip * width;
    }
    place
}

/// Returns a bit mask of the rows, at most [`LANES`], whose distances in the two columns sum to at most the radius.
#[inline(always)]
fn near_pairs(firsts: &[U16], seconds: &[U16], first: u16, second: u16, radius: u32) -> u64 {
    const TOGETHER: usize = 16;
    let distance = |(a, b): (&U16, &U16)| (a.get() ^ first).count_ones() + (b.get() ^ second).count_ones();
    let steps = firsts.chunks(TOGETHER).zip(seconds.chunks(TOGETHER));
    let mut near = 0;
    for (step, (firsts, seconds)) in steps.enumerate() {
        // The loop has no branch, so that the compiler vectorizes it.
        let mut any = false;
        for pair in firsts.iter().zip(seconds) {
            any |= distance(pair) <= radius;
        }
        if any {
            for (lane, pair) in firsts.iter().zip(seconds).enumerate() {
                near |= u64::from(distance(pair) <= radius) << (step * TOGETHER + lane);
            }
        }
    }
    near
}

/// A bucket of the directory and its rows.
struct BucketRows {
    bucket: u64,
    rows: Range<u64>,
}

/// The state of a search in the stream, which proceeds word by word.
struct StreamWalk<'a> {
    /// The bytes of the stream, starting with the word that contains `bit`.
    bytes: &'a [u8],
    bit: u64,
    /// Number of rows before `bit`.
    row: u64,
    end: u64,
}

impl StreamWalk<'_> {
    /// Returns the current word, shifted so that bit 0 is the current bit; `None` at the end of the search.
    #[inline(always)]
    fn next_word(&self) -> Option<u64> {
        let word = self.bytes.first_chunk().filter(|_| self.bit < self.end)?;
        Some(u64::from_le_bytes(*word) >> (self.bit % WORD))
    }

    /// Returns the number of bits from the current bit to the end of the word.
    #[inline(always)]
    fn width(&self) -> u64 {
        WORD - self.bit % WORD
    }

    #[inline(always)]
    fn valid(&self) -> u64 {
        u64::MAX >> (self.bit % WORD)
    }

    /// Advances to the next word. `rows` is the number of rows in the rest of the current word.
    #[inline(always)]
    fn skip(&mut self, rows: u64) {
        self.bit += self.width();
        self.row += rows;
        self.bytes = &self.bytes[8..];
    }
}

/// The low parts of consecutive rows.
struct LowBits<'a> {
    rows: Range<u64>,
    first: &'a [U16],
    second: &'a [U16],
    /// The bytes of the third column, starting with the byte that contains the first bit of the first row.
    rest: &'a [u8],
}

impl LowBits<'_> {
    #[inline(always)]
    fn get(&self, high: u32, row: u64) -> u64 {
        let place = (row - self.rows.start) as usize;
        let width = u64::from(32 - high);
        let bit = row * width;
        let at = (bit / 8 - self.rows.start * width / 8) as usize;
        let word = wire::wide(&self.rest[at..at + 8]);
        join(high, self.first[place].get(), self.second[place].get(), word >> (bit % 8))
    }
}

/// A buffer for the bytes of one part of a section, which are passed to [`Columns::put`] in chunks.
pub(super) struct ColumnBuffer {
    number: usize,
    bytes: Vec<u8>,
}

impl ColumnBuffer {
    /// Number of bytes at which the buffer is passed on and cleared.
    const FULL: usize = 4096;

    pub(super) fn new(number: usize) -> Self {
        Self { number, bytes: Vec::with_capacity(Self::FULL + 8) }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, columns: &mut impl Columns, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= Self::FULL { self.flush(columns) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, columns: &mut impl Columns) -> Result<()> {
        columns.put(self.number, &self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Checks that `value` may follow `last`, the value before it, in row `row` of a table of `rows` rows.
///
/// # Errors
/// [`Error::Invalid`] if `value` is not above `last`, or if the table would have too many rows.
#[inline(always)]
pub(super) fn follows(last: Option<u64>, value: u64, row: u64, rows: u64) -> Result<()> {
    if last.is_some_and(|last| last >= value) {
        return Err(Error::Invalid(format!("values of a table ascend strictly, and {value:016x} does not")));
    }
    if row < rows { Ok(()) } else { Err(counted(row + 1, rows)) }
}

#[cold]
pub(super) fn counted(found: u64, rows: u64) -> Error {
    Error::Invalid(format!("a table of {rows} values was given {found}"))
}

struct CompactEncoder<'c, C> {
    layout: Compact,
    columns: &'c mut C,
    parts: [ColumnBuffer; PARTS],
    row: u64,
    last: Option<u64>,
    /// Number of directory entries written so far.
    entries: u64,
    /// The incomplete last word of the stream. `words` is the number of words already written.
    word: u64,
    words: u64,
    /// The last bits of the third column, which do not fill a word yet. `rest_bits` is their number.
    rest: u64,
    rest_bits: u32,
}

impl<'c, C: Columns> CompactEncoder<'c, C> {
    fn new(layout: &Compact, columns: &'c mut C) -> Result<Self> {
        if layout.rows > DOCUMENTS_MAX {
            return Err(Error::Limit { what: "rows of a table", limit: DOCUMENTS_MAX, found: layout.rows });
        }
        Ok(Self {
            layout: *layout,
            columns,
            parts: std::array::from_fn(ColumnBuffer::new),
            row: 0,
            last: None,
            entries: 0,
            word: 0,
            words: 0,
            rest: 0,
            rest_bits: 0,
        })
    }

    #[inline(always)]
    fn push(&mut self, value: u64) -> Result<()> {
        follows(self.last, value, self.row, self.layout.rows)?;
        self.last = Some(value);
        self.entries_up_to(top(value, self.layout.prefix))?;
        let bit = self.row + top(value, self.layout.high);
        self.words_up_to(bit / WORD)?;
        self.word |= 1 << (bit % WORD);
        let width = 32 - self.layout.high;
        let low = value & (u64::MAX >> self.layout.high);
        self.parts[2].put(self.columns, &((low >> (16 + width)) as u16).to_le_bytes())?;
        self.parts[3].put(self.columns, &((low >> width) as u16).to_le_bytes())?;
        self.pack(low & ((1 << width) - 1), width)?;
        self.row += 1;
        Ok(())
    }

    /// Writes the directory entries up to and including the entry of `bucket`.
    #[inline(always)]
    fn entries_up_to(&mut self, bucket: u64) -> Result<()> {
        while self.entries <= bucket {
            self.parts[0].put(self.columns, &(self.row as u32).to_le_bytes())?;
            self.entries += 1;
        }
        Ok(())
    }

    /// Writes all words of the stream before word number `word`, and the samples at the ends of these words.
    #[inline(always)]
    fn words_up_to(&mut self, word: u64) -> Result<()> {
        while self.words < word {
            self.parts[1].put(self.columns, &self.word.to_le_bytes())?;
            self.word = 0;
            self.words += 1;
            let bits = self.layout.rows + (1 << self.layout.high);
            if (self.words * WORD).is_multiple_of(SAMPLE) && self.words * WORD < bits {
                self.parts[5].put(self.columns, &(self.row as u32).to_le_bytes())?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn pack(&mut self, rest: u64, width: u32) -> Result<()> {
        self.rest |= rest << self.rest_bits;
        self.rest_bits += width;
        if self.rest_bits >= 64 {
            self.parts[4].put(self.columns, &self.rest.to_le_bytes())?;
            self.rest_bits -= 64;
            self.rest = rest >> (width - self.rest_bits);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let layout = self.layout;
        if self.row != layout.rows {
            return Err(counted(self.row, layout.rows));
        }
        self.entries_up_to(1 << layout.prefix)?;
        self.words_up_to((layout.rows + (1 << layout.high)).div_ceil(WORD))?;
        if self.rest_bits > 0 {
            self.parts[4].put(self.columns, &self.rest.to_le_bytes())?;
        }
        self.parts[4].put(self.columns, &[0; 8])?;
        for part in &mut self.parts {
            part.flush(self.columns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Memory, Parts, bytes_read, reset_bytes_read, uniform};
    use super::*;

    fn section(values: &[u64]) -> Vec<u8> {
        let mut parts = Parts::default();
        Compact::of(values.len() as u64).encode(values.iter().map(|&value| Ok(value)), &mut parts).unwrap();
        parts.section()
    }

    #[test]
    fn compact_size_is_within_10_percent_of_the_entropy_bound() {
        let ratio = |rows: u64| {
            let bound = 64.0 - (rows as f64).log2() + std::f64::consts::LOG2_E;
            Compact::of(rows).length as f64 * 8.0 / rows as f64 / bound
        };
        assert!(ratio(10_000_000) <= 1.03, "{}", ratio(10_000_000));
        for rows in [10_000, 16_383, 16_384, 100_000, 1 << 20, (1 << 21) - 1, 50_000_000, 1 << 30] {
            assert!(ratio(rows) <= 1.10, "{rows}: {}", ratio(rows));
        }
    }

    #[test]
    fn layout_depends_only_on_the_number_of_rows() {
        for rows in (0..3000).chain([1 << 20, 10_000_000, 1 << 30]) {
            let layout = Compact::of(rows);
            assert!(layout.high <= 30 && layout.high >= layout.prefix && layout.high - layout.prefix <= 6);
            assert_eq!(layout.high == 0, rows < 2);
        }
        for rows in [0, 1, 2, 3, 63, 64, 65, 1000, 5000] {
            let section = section(&uniform(rows, rows as u64));
            assert_eq!(section.len() as u64, Compact::of(rows as u64).length, "{rows}");
        }
        assert!(Compact::open(Memory(&[]), DOCUMENTS_MAX + 1, 0).is_err());
        assert!(Compact::open(Memory(&[]), u64::MAX, 0).is_err());
    }

    #[test]
    fn three_values_encode_to_the_bytes_of_the_specification() {
        // R = 3, so h = 1, D = 0, and the rest has 31 bits. The stream is: row 0 with high part 0, a zero, rows 1 and 2
        // with high part 1, a zero.
        let values = [0x0123_4567_89AB_CDEF, 0x8000_0000_0000_0001, 0xFFFF_FFFF_FFFF_FFFF];
        let mut expected = vec![0; 280];
        expected[4] = 3;
        expected[64] = 0b01101;
        // The low parts have 63 bits: `first` has bits 62 to 47, `second` bits 46 to 31, `rest` bits 30 to 0.
        expected[128..134].copy_from_slice(&[0x46, 0x02, 0x00, 0x00, 0xFF, 0xFF]);
        expected[192..198].copy_from_slice(&[0xCF, 0x8A, 0x00, 0x00, 0xFF, 0xFF]);
        let rest = 0x09AB_CDEF_u128 | 1 << 31 | 0x7FFF_FFFF << 62;
        expected[256..272].copy_from_slice(&rest.to_le_bytes());
        // There are no samples, and an empty part takes no space.
        assert_eq!(section(&values), expected);
        assert_eq!(Compact::of(3).length, 280);
    }

    #[test]
    fn select_returns_the_position_of_every_set_bit() {
        for word in uniform(200, 3).into_iter().chain([1, u64::MAX, 1 << 63]) {
            let places: Vec<u32> = (0..64).filter(|place| word >> place & 1 == 1).collect();
            for (before, place) in places.into_iter().enumerate() {
                assert_eq!(select(word, before as u64), place, "{word:016x} {before}");
            }
        }
    }

    #[test]
    fn for_each_detects_damage_of_every_sample() {
        let values = uniform(20_000, 4);
        let section = section(&values);
        let codec = Compact::of(20_000);
        assert!(codec.for_each(Memory(&section), |_, _| Ok(())).is_ok());
        let samples = codec.samples as usize..section.len();
        assert_eq!(samples.len() / 4, (20_000 + (1 << 14) - 1) / 4096);
        for at in samples.step_by(4) {
            let mut damaged = section.clone();
            damaged[at] ^= 1;
            assert!(codec.for_each(Memory(&damaged), |_, _| Ok(())).is_err(), "the sample at {at}");
        }
    }

    #[test]
    fn lookup_in_a_hot_bucket_reads_few_bytes() {
        // All rows are in one bucket. Without samples, a lookup would read 12 KiB of the stream.
        let values: Vec<u64> = (0..100_000).map(|value| value << 20).collect();
        let section = section(&values);
        let codec = Compact::of(100_000);
        for value in [0, 1, 4095, 50_000, 99_999] {
            reset_bytes_read();
            assert_eq!(codec.find(Memory(&section), value << 20).unwrap(), Some(value));
            assert_eq!(codec.value(Memory(&section), value).unwrap(), value << 20);
            assert!(bytes_read() < 2500, "{} bytes for row {value}", bytes_read());
        }
    }
}
