//! Codec `planes`: a directory, and the keys in planes. A plane contains the same bits of all keys.
//!
//! A scan reads the second plane, which has 16 bits of each key. It reads the other planes only for rows that are
//! within the radius in these 16 bits, except for a radius of [`WIDE`] or more.
//!
//! ```text
//! directory  (2^d + 1) x 4, over the first d bits of the keys; d = floor(log2 rows) - 3, from 0 to the number of
//!            leading bits of the table
//! first      rows x 2: bits 1 to 16; absent if d >= 16, because the directory determines them
//! second     rows x 2: bits 17 to 32
//! rest       rows x 4: bits 33 to 64
//! ```

use std::ops::{ControlFlow, Range};

use zerocopy::little_endian::{U16, U32};

use super::search::{Search, between, bisect};
use super::source::{Columns, Source, column, hint_lines};
use crate::error::{Error, Result};
use crate::format::directory::{Directory, DirectoryBuilder};
use crate::format::place;
use crate::format::wire::Fault;
use twindex_kernel::Simd;

/// Number of this codec in the table of contents.
pub const CODEC: u16 = 1;
/// The smallest radius for which a scan compares 48 bits. With 16 bits, too many rows would pass the filter.
pub const WIDE: u32 = 5;
/// The layout of the section of a table with the codec `planes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// The directory over the first bits of the keys.
    pub directory: Directory,
    first: u64,
    second: u64,
    rest: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Planes {
    /// Returns the layout for `rows` keys of a table with `lead` leading bits.
    #[must_use]
    pub fn of(rows: u64, lead: u32) -> Self {
        let directory = Directory::of(rows, lead);
        let first_bytes = if directory.bits < 16 { rows * 2 } else { 0 };
        let first = place(directory.length(), first_bytes);
        let second = place(first + first_bytes, rows * 2);
        let rest = place(second + rows * 2, rows * 4);
        Self { directory, first, second, rest, length: rest + rows * 4 }
    }

    /// Returns whether bits 1 to 16 have their own plane.
    #[must_use]
    pub fn has_first(&self) -> bool {
        self.directory.bits < 16
    }

    #[inline(always)]
    fn firsts<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<&'a [U16]> {
        column(source, self.first + rows.start * 2..self.first + rows.end * 2)
    }

    #[inline(always)]
    fn seconds<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<&'a [U16]> {
        column(source, self.second + rows.start * 2..self.second + rows.end * 2)
    }

    #[inline(always)]
    fn rests<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) -> Result<&'a [U32]> {
        column(source, self.rest + rows.start * 4..self.rest + rows.end * 4)
    }

    /// Returns the offset of the plane of bits 17 to 32 in the section. A scan reads this plane first.
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.second
    }

    /// Returns the rows whose keys begin with `prefix`, a prefix of `bits` bits. Uses the directory, then binary search
    /// in the bucket for the bits that the directory does not cover.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn rows<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) -> Result<Range<u64>> {
        if bits <= self.directory.bits {
            return self.directory.rows(source, prefix, bits);
        }
        self.narrow(source, prefix, bits)
    }

    #[cold]
    fn narrow<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) -> Result<Range<u64>> {
        let bucket = self.directory.bucket(source, prefix >> (bits - self.directory.bits))?;
        let first = prefix << (64 - bits);
        let top = (first >> 48) as u16;
        let last = first | (u64::MAX.checked_shr(bits).unwrap_or(0));
        between(bucket, &(first..=last), Search::Binary, |row| self.key(source, row, top))
    }

    /// Prefetches the entry of the directory for a prefix.
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        self.directory.hint(source, prefix, bits);
    }

    /// Prefetches the data that [`candidates`](Self::candidates) reads first.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        hint_lines(source, self.second + rows.start * 2..self.second + rows.end * 2);
    }

    /// Prefetches bits 33 to 64 of a few rows, which lie in two or three cache lines.
    #[inline(always)]
    pub fn hint_rests<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        let (start, last) = (self.rest + rows.start * 4, self.rest + rows.end * 4 - 1);
        source.hint(start);
        source.hint(start.midpoint(last));
        source.hint(last);
    }

    /// Announces bits 33 to 64 of these rows, and bits 1 to 16 if these have a plane.
    pub fn announce_rests<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        source.announce(self.rest + rows.start * 4..self.rest + rows.end * 4);
        if self.has_first() {
            source.announce(self.first + rows.start * 2..self.first + rows.end * 2);
        }
    }

    /// Prefetches bits 33 to 64 of a row, and bits 1 to 16 if these have a plane.
    #[inline(always)]
    pub fn hint_row<'a>(&self, source: impl Source<'a>, row: u64) {
        let rest = self.rest + row * 4;
        source.hint(rest);
        source.announce(rest..rest + 4);
        if self.has_first() {
            let first = self.first + row * 2;
            source.hint(first);
            source.announce(first..first + 2);
        }
    }

    /// Calls `each` for all rows that are within `radius` of `query` in bits 17 to 64, and possibly for some others.
    /// The arguments are the row and bits 17 to 32 of its key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn candidates<'a, S: Simd>(
        &self,
        simd: S,
        source: impl Source<'a>,
        rows: &Range<u64>,
        query: u64,
        radius: u32,
        mut each: impl FnMut(u64, u16),
    ) -> Result<()> {
        let seconds = self.seconds(source, rows)?;
        let start = rows.start;
        if radius < WIDE {
            twindex_kernel::for_each_near16(simd, seconds, (query >> 32) as u16, radius, |place| {
                each(start + place as u64, seconds[place].get());
            });
        } else {
            let rests = self.rests(source, rows)?;
            twindex_kernel::for_each_near48(simd, seconds, rests, query, radius, |place| {
                each(start + place as u64, seconds[place].get());
            });
        }
        Ok(())
    }

    /// Returns the key of a row whose bits 17 to 32 are `second`. `top` is bits 1 to 16; it is ignored if these bits
    /// have a plane.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn complete<'a>(&self, source: impl Source<'a>, row: u64, top: u16, second: u16) -> Result<u64> {
        let row = row..row + 1;
        let top = if self.has_first() { self.firsts(source, &row)?[0].get() } else { top };
        let rest = self.rests(source, &row)?[0].get();
        Ok(u64::from(top) << 48 | u64::from(second) << 32 | u64::from(rest))
    }

    /// Same as [`complete`](Self::complete), but also reads bits 17 to 32 of the row.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn key<'a>(&self, source: impl Source<'a>, row: u64, top: u16) -> Result<u64> {
        let second = self.seconds(source, &(row..row + 1))?[0].get();
        self.complete(source, row, top, second)
    }

    /// Returns bits 1 to 16 of the keys in a bucket, as far as the directory covers these bits; the others are 0.
    fn top(&self, bucket: u64) -> u16 {
        (bucket.checked_shl(64 - self.directory.bits).unwrap_or(0) >> 48) as u16
    }

    /// Returns the key of a row. Takes O(1) time if bits 1 to 16 have a plane, otherwise a binary search in the
    /// directory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged or the row does not exist.
    pub fn value<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        if row >= self.directory.rows {
            let fault = Fault::new(0, format!("a row below {}", self.directory.rows), row);
            return Err(source.corrupt(fault));
        }
        let top = if self.has_first() { 0 } else { self.top(self.directory.prefix_of(source, row)?) };
        self.key(source, row, top)
    }

    /// Announces the data that [`value`](Self::value) reads, except for bits 33 to 64, whose range is returned.
    pub fn announce_value<'a>(&self, source: impl Source<'a>, row: u64) -> Option<Range<u64>> {
        if row >= self.directory.rows {
            return None;
        }
        source.announce(self.second + row * 2..self.second + row * 2 + 2);
        if self.has_first() {
            source.announce(self.first + row * 2..self.first + row * 2 + 2);
        } else {
            self.directory.announce_search(source, row);
        }
        Some(self.rest + row * 4..self.rest + row * 4 + 4)
    }

    /// Returns the row of a key; `None` if the table does not contain it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn find<'a>(&self, source: impl Source<'a>, key: u64) -> Result<Option<u64>> {
        let bits = self.directory.bits;
        let rows = self.directory.bucket(source, key.checked_shr(64 - bits).unwrap_or(0))?;
        let top = (key >> 48) as u16;
        let row = bisect(rows.clone(), key, |row| self.key(source, row, top))?;
        Ok((row < rows.end && self.key(source, row, top)? == key).then_some(row))
    }

    /// Calls `each` with the row and the key of each row in `rows` whose key is within `radius` of `query`, in
    /// ascending order, until `each` returns `Break`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
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
        if rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        // If bits 1 to 16 have no plane, they follow from the number of the bucket, so scan by buckets.
        let mut bucket = if self.has_first() { 0 } else { self.directory.prefix_of(source, rows.start)? };
        let mut start = rows.start;
        let mut places: Vec<(u64, u16)> = Vec::new();
        while start < rows.end {
            let mut end = rows.end;
            if !self.has_first() {
                if bucket >> self.directory.bits != 0 {
                    let fault = Fault::new(0, format!("a bucket for row {start}"), "none");
                    return Err(source.corrupt(fault));
                }
                end = end.min(self.directory.bucket(source, bucket)?.end);
            }
            if start < end {
                places.clear();
                self.candidates(simd, source, &(start..end), query, radius, |row, second| {
                    places.push((row, second));
                })?;
                let top = self.top(bucket);
                for &(row, second) in &places {
                    let key = self.complete(source, row, top, second)?;
                    if (key ^ query).count_ones() <= radius && each(row, key).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                start = end;
            }
            bucket += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `each` with every row and its key, in ascending order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, for example if keys do not ascend strictly; or the errors of
    /// `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut rows = 0..0;
        let mut last = None;
        for bucket in 0..1_u64 << self.directory.bits {
            rows = self.directory.next_bucket(source, bucket, rows.end)?;
            let (seconds, rests) = (self.seconds(source, &rows)?, self.rests(source, &rows)?);
            let firsts = if self.has_first() { self.firsts(source, &rows)? } else { &[] };
            for (place, (second, rest)) in seconds.iter().zip(rests).enumerate() {
                let top = firsts.get(place).map_or_else(|| self.top(bucket), |first| first.get());
                let key = u64::from(top) << 48 | u64::from(second.get()) << 32 | u64::from(rest.get());
                let row = rows.start + place as u64;
                let leads = key.checked_shr(64 - self.directory.bits).unwrap_or(0);
                if last >= Some(key) || leads != bucket {
                    let expected = format!("a key of bucket {bucket:x} after {last:x?}");
                    return Err(source.corrupt(Fault::new(
                        self.second + row * 2,
                        expected,
                        format!("{key:x}"),
                    )));
                }
                last = Some(key);
                each(row, key)?;
            }
        }
        Ok(())
    }

    /// Creates a walk that starts at the first row of `bucket`, or at the end of the table if there is no such bucket.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    pub fn walk_from<'a>(&self, source: impl Source<'a>, bucket: u64) -> Result<Walk> {
        let row = if bucket >> self.directory.bits == 0 {
            self.directory.bucket(source, bucket)?.start
        } else {
            self.directory.rows
        };
        Ok(Walk { bucket, row, ..Walk::default() })
    }

    /// Appends the next keys to `keys`: at least 1 and at most `max`, or none at the end of the table. Checks the table
    /// as [`for_each`](Self::for_each) does.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    pub fn walk<'a>(
        &self,
        source: impl Source<'a>,
        walk: &mut Walk,
        max: usize,
        keys: &mut Vec<u64>,
    ) -> Result<()> {
        let start = keys.len();
        while keys.len() == start && walk.bucket >> self.directory.bits == 0 {
            if !self.walk_on(source, walk, max.max(1) as u64, keys)? {
                return Err(self.unsound(source));
            }
        }
        // Count the descents without branches, so that the compiler can vectorize the comparisons.
        let pairs = keys[start..].iter().zip(&keys[(start + 1).min(keys.len())..]);
        let ascend = pairs.filter(|(key, next)| key >= next).count() == 0;
        let follows = walk.last.zip(keys.get(start)).is_none_or(|(last, &key)| last < key);
        let ends = walk.bucket >> self.directory.bits == 0 || walk.row == self.directory.rows;
        if !(ascend && follows && ends) {
            return Err(self.unsound(source));
        }
        walk.last = keys[start..].last().copied().or(walk.last);
        Ok(())
    }

    /// Appends the keys of whole buckets up to a total of `max` keys. If the next bucket is larger than that, appends
    /// its first `max` keys. Returns `false` if the table is damaged.
    #[inline(always)]
    fn walk_on<'a>(
        &self,
        source: impl Source<'a>,
        walk: &mut Walk,
        max: u64,
        keys: &mut Vec<u64>,
    ) -> Result<bool> {
        let Directory { bits, rows } = self.directory;
        let buckets = ((1 << bits) - walk.bucket).min(BUCKETS);
        let bounds: &[U32] = column(source, walk.bucket * 4..(walk.bucket + buckets + 1) * 4)?;
        let Some((first, ends)) = bounds.split_first() else { return Ok(false) };
        let first = u64::from(first.get());
        if first > walk.row || !walk.inside && first < walk.row {
            return Ok(false);
        }
        let (start, mut stop, mut whole) = (walk.row, walk.row, 0);
        for end in ends {
            let end = u64::from(end.get());
            if end < stop || end > rows {
                return Ok(false);
            }
            if end - start > max {
                if whole == 0 {
                    stop = start + max;
                }
                break;
            }
            (stop, whole) = (end, whole + 1);
        }
        let all = start..stop;
        let (seconds, rests) = (self.seconds(source, &all)?, self.rests(source, &all)?);
        let before = keys.len();
        let low = seconds.iter().zip(rests);
        let low = low.map(|(second, rest)| u64::from(second.get()) << 32 | u64::from(rest.get()));
        if self.has_first() {
            let firsts = self.firsts(source, &all)?.iter();
            keys.extend(low.zip(firsts).map(|(low, first)| u64::from(first.get()) << 48 | low));
        } else {
            keys.extend(low);
        }
        // Bucket by bucket, set bits 1 to 16 of the keys if they have no plane, and check the prefixes of the keys.
        let mut from = 0;
        for (prefix, end) in (walk.bucket..).zip(ends).take(whole.max(1)) {
            let to = (u64::from(end.get()).min(stop) - start) as usize;
            let own = &mut keys[before + from..before + to];
            if !self.has_first() {
                let top = u64::from(self.top(prefix)) << 48;
                for key in &mut *own {
                    *key |= top;
                }
            }
            let leads = |key: &u64| key.checked_shr(64 - bits).unwrap_or(0) == prefix;
            if !(own.first().is_none_or(leads) && own.last().is_none_or(leads)) {
                return Ok(false);
            }
            from = to;
        }
        walk.row = stop;
        walk.bucket += whole as u64;
        walk.inside = whole == 0;
        Ok(true)
    }

    /// Returns the error for a table in which a walk detected damage. Reads the table again to find the offset.
    #[cold]
    fn unsound<'a>(&self, source: impl Source<'a>) -> Error {
        match self.for_each(source, |_, _| Ok(())) {
            Err(error) => error,
            Ok(()) => source.corrupt(Fault::new(0, "a table that stays as it is", "one that changes")),
        }
    }

    /// Writes one key for each row of the layout. Keys must ascend strictly. Needs memory only for the directory.
    /// # Errors
    /// The errors of `keys` and `columns`.
    pub fn encode(&self, keys: impl Iterator<Item = Result<u64>>, columns: &mut impl Columns) -> Result<()> {
        let mut encoder = Encoder::new(self);
        let mut some = Vec::with_capacity(TOGETHER);
        for key in keys {
            some.push(key?);
            if some.len() == TOGETHER {
                encoder.put(&some, columns)?;
                some.clear();
            }
        }
        encoder.put(&some, columns)?;
        encoder.finish(columns)
    }
}

/// The position of a sequential read of the keys of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    bucket: u64,
    row: u64,
    /// Whether some but not all rows of `bucket` have been read.
    inside: bool,
    last: Option<u64>,
}

impl Walk {
    /// Returns the next row to be read.
    #[must_use]
    pub fn row(&self) -> u64 {
        self.row
    }
}

/// Maximum number of buckets that a walk reads at once.
const BUCKETS: u64 = 1 << 9;

/// Writes a table, given the keys in consecutive slices.
#[derive(Debug)]
pub struct Encoder {
    directory: DirectoryBuilder,
    has_first: bool,
    row: u32,
    chunk: [Vec<u8>; 3],
}

impl Encoder {
    /// Creates an encoder for this layout. Needs memory for the directory.
    #[must_use]
    pub fn new(planes: &Planes) -> Self {
        let directory = DirectoryBuilder::new(planes.directory);
        Self { directory, has_first: planes.has_first(), row: 0, chunk: Default::default() }
    }

    /// Appends keys. Keys must ascend strictly, also from one call to the next.
    ///
    /// # Errors
    /// The errors of `columns`.
    pub fn put(&mut self, keys: &[u64], columns: &mut impl Columns) -> Result<()> {
        for keys in keys.chunks(TOGETHER) {
            self.directory.count_ascending(self.row, keys);
            self.row += keys.len() as u32;
            let [first, second, rest] = &mut self.chunk;
            if self.has_first {
                append(keys, first, |key| ((key >> 48) as u16).to_le_bytes());
            }
            append(keys, second, |key| ((key >> 32) as u16).to_le_bytes());
            append(keys, rest, |key| (key as u32).to_le_bytes());
            flush(&mut self.chunk, columns)?;
        }
        Ok(())
    }

    /// Writes the directory.
    ///
    /// # Errors
    /// The errors of `columns`.
    pub fn finish(mut self, columns: &mut impl Columns) -> Result<()> {
        self.directory.settle();
        self.directory.encode(|bytes| columns.put(0, bytes))
    }
}

/// Number of values that are encoded at once, so that the values and their bytes fit into the first-level cache.
const TOGETHER: usize = 1 << 11;

/// Appends, for each value, the `N` bytes that `of` returns.
pub(super) fn append<T: Copy, const N: usize>(values: &[T], bytes: &mut Vec<u8>, of: impl Fn(T) -> [u8; N]) {
    let start = bytes.len();
    bytes.resize(start + values.len() * N, 0);
    let (places, _) = bytes[start..].as_chunks_mut::<N>();
    for (place, &value) in places.iter_mut().zip(values) {
        *place = of(value);
    }
}

/// Appends the collected bytes of each part after the directory to the output, and clears the buffers.
pub(super) fn flush<const N: usize>(chunk: &mut [Vec<u8>; N], columns: &mut impl Columns) -> Result<()> {
    for (part, bytes) in (1..).zip(chunk) {
        columns.put(part, bytes)?;
        bytes.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Memory, Parts, uniform};
    use super::*;

    fn section(keys: &[u64]) -> (Planes, Vec<u8>) {
        let planes = Planes::of(keys.len() as u64, 16);
        let mut parts = Parts::default();
        planes.encode(keys.iter().map(|&key| Ok(key)), &mut parts).unwrap();
        let mut bytes = parts.section();
        bytes.resize(planes.length as usize, 0);
        (planes, bytes)
    }

    fn walked(planes: &Planes, section: &[u8], max: usize) -> Result<Vec<u64>> {
        let (mut walk, mut keys) = (Walk::default(), Vec::new());
        loop {
            let before = keys.len();
            planes.walk(Memory(section), &mut walk, max, &mut keys)?;
            assert!(keys.len() - before <= max);
            if keys.len() == before {
                return Ok(keys);
            }
        }
    }

    #[test]
    fn walk_returns_all_keys_and_detects_damage_like_for_each() {
        for count in [0, 1, 7, 40, 5000, 600_000] {
            for shift in [0, 30] {
                let mut keys: Vec<u64> = uniform(count, 5).iter().map(|key| key >> shift).collect();
                keys.dedup();
                let (planes, mut bytes) = section(&keys);
                for max in [1, 33, 1000, usize::MAX >> 8] {
                    if max > 1 || count < 6000 {
                        assert!(walked(&planes, &bytes, max).unwrap() == keys, "{count} {shift} {max}");
                    }
                }
                if count > 6000 {
                    continue;
                }
                let (mut refused, mut flips) = (0, 0);
                for at in (0..bytes.len()).step_by(1 + bytes.len() / 400) {
                    bytes[at] ^= 1 << (at % 8);
                    let scanned = planes.for_each(Memory(&bytes), |_, _| Ok(()));
                    for max in [3, 1000] {
                        let walked = walked(&planes, &bytes, max);
                        assert_eq!(walked.is_err(), scanned.is_err(), "{count} {shift} {max}, byte {at}");
                    }
                    refused += usize::from(scanned.is_err());
                    flips += 1;
                    bytes[at] ^= 1 << (at % 8);
                }
                assert!(count < 40 || refused > 0, "{refused} of {flips}");
            }
        }
    }
}
