//! Builds partial tables from ascending fingerprints with two radix sort passes, called distributions.
//!
//! A partial table is sorted by prefix and then by entry, and an entry starts with the first bits of the fingerprint.
//! Since the fingerprints ascend, a stable distribution by prefix sorts nearly all entries. Only entries of one bucket
//! with equal first bits may be out of order. The first distribution uses enough bits that each part fits into the
//! second-level cache. It processes several tables while their fingerprints are cached. The second distribution uses
//! the remaining bits of the directory's prefix. Between the two distributions, a row consists of these remaining bits
//! and its entry. Usually this takes 4 bytes, while the values by which a table is [sorted](Filter::value) take 8.
//!
//! Takes O(n) time for random fingerprints, and O(n log n) in the worst case.

use std::ops::ControlFlow;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::spilled::{SliceSource, SpillColumn};
use crate::design::{BitField, Design};
use crate::error::Result;
use crate::format::table::filter::Encoder;
use crate::format::table::{Columns, Filter};
use crate::sys::threads::{in_order, share_out};
use crate::sys::zeroed::Zeroed;

/// Binary logarithm of the average number of rows in a part.
const PART_BITS: u32 = 15;
/// Maximum number of bits of the first distribution. With more bits, the TLB would not cover the output of all parts.
const PARTS_BITS_MAX: u32 = 10;
/// Number of fingerprints that are processed at once.
const TOGETHER: usize = 1 << 11;

/// A row between the two distributions: the remaining bits of its prefix, and its entry.
trait PartRemainder:
    Copy + Default + Ord + Into<u64> + FromBytes + Immutable + IntoBytes + KnownLayout + Send + Sync
{
    fn of(value: u64) -> Self;
}

impl PartRemainder for u32 {
    #[inline(always)]
    fn of(value: u64) -> Self {
        value as Self
    }
}

impl PartRemainder for u64 {
    #[inline(always)]
    fn of(value: u64) -> Self {
        value
    }
}

/// A partial table that is being built.
struct UnfinishedTable {
    filter: Filter,
    /// The prefix bits that the directory uses. `part` has the first `part_bits` of them, for the first distribution.
    prefix: BitField,
    part: BitField,
    part_bits: u32,
    entry: BitField,
    entry_bits: u32,
}

impl UnfinishedTable {
    fn new(design: &Design, place: usize, width: u8, rows: u64) -> Self {
        let table = &design.tables[place];
        let filter = Filter::of(rows, table.lead, width);
        let (bits, entry_bits) = (filter.directory.bits, 8 * u32::from(width));
        let few = rows.checked_ilog2().unwrap_or(0).saturating_sub(PART_BITS);
        let part_bits = few.max((bits + entry_bits).saturating_sub(32)).min(PARTS_BITS_MAX).min(bits);
        Self {
            filter,
            prefix: table.order.field(0..bits),
            part: table.order.field(0..part_bits),
            part_bits,
            entry: design.entry_order(place).field(0..entry_bits),
            entry_bits,
        }
    }

    /// Returns the number of prefix bits that remain for the second distribution.
    fn bits_left(&self) -> u32 {
        self.filter.directory.bits - self.part_bits
    }

    fn is_short(&self) -> bool {
        self.bits_left() + self.entry_bits <= 32
    }

    /// Returns the number of bytes of a row between the distributions.
    fn row_bytes(&self) -> usize {
        if self.is_short() { size_of::<u32>() } else { size_of::<u64>() }
    }
}

/// The rows of a table after the first distribution.
enum DistributedParts {
    Short(Distributed<u32>),
    Long(Distributed<u64>),
}

impl DistributedParts {
    fn new(table: &UnfinishedTable, rows: usize) -> Result<Self> {
        Ok(if table.is_short() {
            Self::Short(Distributed::new(table, rows)?)
        } else {
            Self::Long(Distributed::new(table, rows)?)
        })
    }
}

struct Distributed<T> {
    rows: Zeroed<T>,
    /// For each part, the index at which its next row is stored. After the distribution, this is the end of the part.
    next: Vec<u32>,
}

impl<T: PartRemainder> Distributed<T> {
    fn new(table: &UnfinishedTable, rows: usize) -> Result<Self> {
        Ok(Self { rows: Zeroed::new(rows)?, next: vec![0; 1 << table.part_bits] })
    }

    /// Counts the rows of each part in `next`.
    fn count(&mut self, table: &UnfinishedTable, fingerprints: &[u64], numbers: &mut [u64]) {
        numbers.fill(0);
        table.part.add_to(fingerprints, 0, numbers);
        let last = self.next.len() - 1;
        for &part in &numbers[..fingerprints.len()] {
            self.next[part as usize & last] += 1;
        }
    }

    /// Distributes rows on several threads. Each thread moves consecutive fingerprints to its own places in each part, so
    /// that the order of rows does not depend on the number of threads.
    fn on_threads(table: &UnfinishedTable, fingerprints: &[u64], threads: usize) -> Result<Self> {
        let mut all = Self::new(table, fingerprints.len())?;
        let (piece, last) = (fingerprints.len().div_ceil(threads).max(1), all.next.len() - 1);
        let mut pieces: Vec<DistributedPiece<'_, T>> = fingerprints
            .chunks(piece)
            .map(|from| DistributedPiece { from, counts: vec![0; all.next.len()], to: Vec::new() })
            .collect();
        share_out(threads, &mut pieces, |piece| {
            let mut numbers = [0; TOGETHER];
            for some in piece.from.chunks(TOGETHER) {
                numbers.fill(0);
                table.part.add_to(some, 0, &mut numbers);
                for &part in &numbers[..some.len()] {
                    piece.counts[part as usize & last] += 1;
                }
            }
        });
        let (mut rest, mut end) = (&mut all.rows[..], 0);
        for (part, next) in all.next.iter_mut().enumerate() {
            for piece in &mut pieces {
                let own;
                (own, rest) = std::mem::take(&mut rest).split_at_mut(piece.counts[part] as usize);
                end += own.len() as u32;
                piece.to.push(own);
            }
            *next = end;
        }
        let shift = table.bits_left() + table.entry_bits;
        share_out(threads, pieces, |piece| {
            let DistributedPiece { from, counts: mut next, mut to } = piece;
            next.fill(0);
            let mut numbers = [0; TOGETHER];
            for some in from.chunks(TOGETHER) {
                numbers.fill(0);
                table.entry.add_to(some, 0, &mut numbers);
                table.prefix.add_to(some, table.entry_bits, &mut numbers);
                for &number in &numbers[..some.len()] {
                    let part = (number.checked_shr(shift).unwrap_or(0)) as usize & last;
                    to[part][next[part] as usize] = T::of(number);
                    next[part] += 1;
                }
            }
        });
        Ok(all)
    }

    /// Converts the counts in `next` into start indices.
    fn settle(&mut self) {
        let mut sum = 0;
        for count in &mut self.next {
            sum += std::mem::replace(count, sum);
        }
    }

    fn distribute(&mut self, table: &UnfinishedTable, fingerprints: &[u64], numbers: &mut [u64]) {
        numbers.fill(0);
        table.entry.add_to(fingerprints, 0, numbers);
        table.prefix.add_to(fingerprints, table.entry_bits, numbers);
        let (shift, last) = (table.bits_left() + table.entry_bits, self.next.len() - 1);
        let rows = &mut self.rows[..];
        for &number in &numbers[..fingerprints.len()] {
            let place = &mut self.next[(number.checked_shr(shift).unwrap_or(0)) as usize & last];
            rows[*place as usize] = T::of(number);
            *place += 1;
        }
    }

    /// Sorts each part by the remaining prefix bits and by entry, and encodes it.
    fn encode(
        self,
        table: &UnfinishedTable,
        threads: usize,
        columns: &mut (impl Columns + Send),
    ) -> Result<()> {
        let mut encoder = Encoder::new(&table.filter);
        let starts = [0].into_iter().chain(self.next.iter().copied());
        let parts: Vec<(u64, &[T])> = (0..)
            .zip(starts.zip(&self.next).map(|(start, &end)| &self.rows[start as usize..end as usize]))
            .collect();
        let sort = |(): &mut (), &(part, rows): &(u64, &[T])| Ok((part, sort_part(table, rows)));
        let encode = |(part, (counts, sorted)): (u64, (Vec<u32>, Vec<T>))| {
            for (prefix, count) in (part << table.bits_left()..).zip(counts) {
                encoder.bucket(prefix, count);
            }
            encoder.put(&sorted, columns).map(ControlFlow::Continue)
        };
        let _ = in_order(&mut vec![(); threads], &parts, 4, sort, encode)?;
        encoder.finish(columns)
    }
}

/// Consecutive fingerprints, the number of their rows in each part, and the places of these rows.
struct DistributedPiece<'a, T> {
    from: &'a [u64],
    counts: Vec<u32>,
    to: Vec<&'a mut [T]>,
}

/// Returns the number of rows in each bucket of a part, and the rows sorted by bucket and entry.
fn sort_part<T: PartRemainder>(table: &UnfinishedTable, rows: &[T]) -> (Vec<u32>, Vec<T>) {
    let buckets = 1_usize << table.bits_left();
    let bucket = |row: T| (row.into() >> table.entry_bits) as usize & (buckets - 1);
    let mut counts = vec![0_u32; buckets];
    for &row in rows {
        counts[bucket(row)] += 1;
    }
    let (mut next, mut sum) = (counts.clone(), 0);
    for count in &mut next {
        sum += std::mem::replace(count, sum);
    }
    let mut sorted = vec![T::default(); rows.len()];
    for &row in rows {
        let place = &mut next[bucket(row)];
        sorted[*place as usize] = row;
        *place += 1;
    }
    // Most parts are sorted. Counts descents without branches, so that several rows are compared at once.
    let pairs = sorted.iter().zip(sorted.get(1..).unwrap_or_default());
    if pairs.filter(|(row, next)| row > next).count() > 0 {
        let mut start = 0;
        for &end in &next {
            let bucket = &mut sorted[start..end as usize];
            if !bucket.is_sorted() {
                bucket.sort_unstable();
            }
            start = end as usize;
        }
    }
    (counts, sorted)
}

/// Builds the partial table `place` (from 0) of the design on several threads, as [`encode_partial`] does.
pub(super) fn encode_partial_on_threads(
    design: &Design,
    place: usize,
    width: u8,
    fingerprints: &[u64],
    threads: usize,
    columns: &mut (impl Columns + Send),
) -> Result<()> {
    let table = UnfinishedTable::new(design, place, width, fingerprints.len() as u64);
    if table.is_short() {
        Distributed::<u32>::on_threads(&table, fingerprints, threads)?.encode(&table, threads, columns)
    } else {
        Distributed::<u64>::on_threads(&table, fingerprints, threads)?.encode(&table, threads, columns)
    }
}

/// Builds the partial tables `places` (from 0) of the design from ascending fingerprints. Entries have `width` bytes.
/// Uses at most `bytes` bytes of memory; returns false if this is too little for even one of the remaining tables.
/// Writes each table to `columns` and then calls `each`, which must clear `columns`.
pub(super) fn encode_partial<C: Columns + Send>(
    design: &Design,
    places: std::ops::Range<usize>,
    width: u8,
    fingerprints: &SpillColumn<'_, u64>,
    bytes: usize,
    columns: &mut C,
    mut each: impl FnMut(usize, &mut C) -> Result<()>,
) -> Result<bool> {
    let rows = fingerprints.len();
    let tables: Vec<(usize, UnfinishedTable)> =
        places.map(|place| (place, UnfinishedTable::new(design, place, width, rows))).collect();
    let mut rest = &tables[..];
    while let Some(widest) = rest.iter().map(|(_, table)| table.row_bytes()).max() {
        let fit = (bytes as u64 / (rows * widest as u64).max(1)).min(rest.len() as u64) as usize;
        if fit == 0 {
            return Ok(false);
        }
        let (now, later) = rest.split_at(fit);
        rest = later;
        let mut parts: Vec<DistributedParts> = now
            .iter()
            .map(|(_, table)| DistributedParts::new(table, rows as usize))
            .collect::<Result<_>>()?;
        let mut numbers = [0_u64; TOGETHER];
        for_each_slice(fingerprints, |some| {
            for ((_, table), parts) in now.iter().zip(&mut parts) {
                match parts {
                    DistributedParts::Short(parts) => parts.count(table, some, &mut numbers),
                    DistributedParts::Long(parts) => parts.count(table, some, &mut numbers),
                }
            }
        })?;
        for parts in &mut parts {
            match parts {
                DistributedParts::Short(parts) => parts.settle(),
                DistributedParts::Long(parts) => parts.settle(),
            }
        }
        for_each_slice(fingerprints, |some| {
            for ((_, table), parts) in now.iter().zip(&mut parts) {
                match parts {
                    DistributedParts::Short(parts) => parts.distribute(table, some, &mut numbers),
                    DistributedParts::Long(parts) => parts.distribute(table, some, &mut numbers),
                }
            }
        })?;
        for ((place, table), parts) in now.iter().zip(parts) {
            match parts {
                DistributedParts::Short(parts) => parts.encode(table, 1, columns)?,
                DistributedParts::Long(parts) => parts.encode(table, 1, columns)?,
            }
            each(*place, columns)?;
        }
    }
    Ok(true)
}

fn for_each_slice(fingerprints: &SpillColumn<'_, u64>, mut each: impl FnMut(&[u64])) -> Result<()> {
    let mut values = fingerprints.values();
    while let Some(slice) = values.next_slice()? {
        slice.chunks(TOGETHER).for_each(&mut each);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::Codec;
    use crate::segment::spilled::SpillBudget;
    use crate::segment::tables::sorted_values;
    use twindex_kernel::splitmix::SplitMix;

    #[derive(Default, PartialEq)]
    struct Bytes(Vec<Vec<u8>>);

    impl Columns for Bytes {
        fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()> {
            self.0.resize_with(self.0.len().max(part + 1), Vec::new);
            self.0[part].extend_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn distribution_builds_the_same_tables_as_sorting() {
        let mut random = SplitMix(3);
        let mut sets: Vec<Vec<u64>> = vec![Vec::new(), vec![u64::MAX]];
        for count in [9, 1000, 70_000, 300_000] {
            sets.push((0..count).map(|_| random.next()).collect());
            // The first 16 bits have few distinct values, so that entries of a bucket are out of order.
            sets.push((0..count).map(|_| random.next() & !(0xFFFC << 48)).collect());
            sets.push(
                (0..count).map(|i| if i % 2 == 0 { random.next() >> 20 } else { random.next() }).collect(),
            );
        }
        let mut disordered = 0;
        for fingerprints in &mut sets {
            fingerprints.sort_unstable();
            fingerprints.dedup();
            let rows = fingerprints.len() as u64;
            let mut column = SpillColumn::new(SpillBudget::unlimited(0), usize::MAX);
            column.extend(fingerprints).unwrap();
            for (design, width) in [
                ("blocks-4", 2),
                ("blocks-4", 3),
                ("blocks-4", 4),
                ("blocks-3", 2),
                ("choose-5-2", 3),
                ("blocks-2", 4),
            ] {
                let design = Design::new(design.parse().unwrap()).unwrap();
                let places = 1..design.tables.len();
                let expected: Vec<Bytes> = places
                    .clone()
                    .map(|place| {
                        let (codec, mut values, mut bytes) =
                            (Codec::Partial(width), Vec::new(), Bytes::default());
                        sorted_values(&design, place, codec, fingerprints, &mut values);
                        let by_place = UnfinishedTable::new(&design, place, width, rows);
                        let mut last = (0, 0);
                        for &fingerprint in &*fingerprints {
                            let now = (by_place.prefix.of(fingerprint), by_place.entry.of(fingerprint));
                            disordered += u32::from(now.0 == last.0 && now.1 < last.1);
                            last = now;
                        }
                        let values = || values.iter().map(|&value| Ok(value));
                        codec.encode(rows, design.tables[place].lead, values, &mut bytes).unwrap();
                        bytes
                    })
                    .collect();
                // The first size is enough memory for all tables, the second for only one or two at a time.
                for bytes in [usize::MAX, 13 * fingerprints.len() + 8] {
                    let mut found = Vec::new();
                    let each = |place: usize, columns: &mut Bytes| {
                        assert_eq!(place, found.len() + 1);
                        found.push(std::mem::take(columns));
                        Ok(())
                    };
                    let mut columns = Bytes::default();
                    assert!(
                        encode_partial(&design, places.clone(), width, &column, bytes, &mut columns, each)
                            .unwrap()
                    );
                    // For empty filters, the encoder of sorted values writes no parts, so this adds empty parts.
                    for (found, expected) in found.iter_mut().zip(&expected) {
                        found.0.resize_with(expected.0.len(), Vec::new);
                    }
                    assert!(found == expected, "{rows} {:?} {width} {bytes}", design.name);
                }
                for threads in [1, 2, 3, 16] {
                    for (place, expected) in places.clone().zip(&expected) {
                        let mut found = Bytes::default();
                        encode_partial_on_threads(&design, place, width, fingerprints, threads, &mut found)
                            .unwrap();
                        found.0.resize_with(expected.0.len(), Vec::new);
                        assert!(found == *expected, "{rows} {:?} {width} {threads} threads", design.name);
                    }
                }
                if rows > 0 {
                    let mut columns = Bytes::default();
                    let none = |_: usize, _: &mut Bytes| unreachable!("no table fits");
                    assert!(!encode_partial(&design, places, width, &column, 0, &mut columns, none).unwrap());
                }
            }
        }
        assert!(disordered > 0, "no entries are out of order");
    }
}
