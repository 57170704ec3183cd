//! Sorts fingerprints and merges equal ones: distributes them to parts by their first bits, and sorts each part.

use std::ops::Range;

use super::rows::{Row, RowParts, of_words};
use super::{
    FingerprintValues, HammingJoin, JoinResources, JoinTable, PART_BITS, PARTS_BITS_MAX, RANGES_A_THREAD,
    THREAD_LEAST, TablePool, check_count, on_threads,
};
use twindex::error::Result;
use twindex::segment::sorted::sort;
use twindex::sys::zeroed::Zeroed;

/// Distinct fingerprints in ascending order, with the numbers of all occurrences of each.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    pub(crate) values: Zeroed<u64>,
    /// For each fingerprint, the start of its numbers in `numbers`; at the end, the length of `numbers`.
    pub(crate) starts: Zeroed<u32>,
    /// For each fingerprint, the numbers of its occurrences, ascending.
    pub(crate) numbers: Zeroed<u32>,
}

impl Distinct {
    /// Sorts fingerprints: distributes them to parts by their first bits, and sorts each part in the cache.
    pub(crate) fn of(
        values: FingerprintValues<'_>,
        resources: JoinResources<'_>,
        spare: &TablePool,
    ) -> Result<Self> {
        let count = values.len();
        check_count(count as u64)?;
        if count == 0 {
            return Ok(Self { starts: Zeroed::new(1)?, ..Self::default() });
        }
        // `HammingJoin` does not distribute `Sorted` fingerprints, so they are passed as `Held`.
        let sides = [values.held().map_or(values, FingerprintValues::Held)];
        let bits = count.ilog2().saturating_sub(PART_BITS).clamp(1, PARTS_BITS_MAX);
        let threads = resources.threads.clamp(1, (count / THREAD_LEAST).max(1));
        let join = HammingJoin::new(
            &sides,
            vec![JoinTable { start: 0, bits, part_bits: bits, parity: None }],
            threads,
        )?;
        let mut distributed: Vec<(usize, RowParts)> =
            (0..threads).map(|piece| (piece, spare.take())).collect();
        let turn = join.tables[0].turn();
        let mut sorting: Vec<Sorting> =
            (0..threads).map(|_| Sorting { turn, ..Sorting::default() }).collect();
        let mut all = Self {
            values: Zeroed::shared(count, threads)?,
            starts: Zeroed::shared(count + 1, threads)?,
            numbers: Zeroed::shared(count, threads)?,
        };
        // For each range of parts, its start and its number of distinct fingerprints.
        let mut distinct: Vec<(usize, usize)> = Vec::new();
        let mut rest = (&mut all.values[..], &mut all.starts[..], &mut all.numbers[..]);
        let mut first = 0;
        for parts in join.ranges(0, resources) {
            on_threads(&mut distributed, |(piece, to)| join.distribute::<Row>(0, *piece, 0, &parts, to))?;
            let pieces: Vec<&RowParts> = distributed.iter().map(|(_, parts)| parts).collect();
            let some =
                if threads > 1 { parts.len().div_ceil(threads * RANGES_A_THREAD) } else { parts.len() };
            let mut work: Vec<_> = sorting.iter_mut().map(|sorting| (sorting, Vec::new())).collect();
            for (at, start) in parts.clone().step_by(some).enumerate() {
                let range = start..parts.end.min(start + some);
                let max = range.clone().map(|part| join.count(0, 0, part)).sum();
                let (values, starts, numbers) = rest;
                let (values, more_values) = values.split_at_mut(max);
                let (starts, more_starts) = starts.split_at_mut(max);
                let (numbers, more_numbers) = numbers.split_at_mut(max);
                rest = (more_values, more_starts, more_numbers);
                let range = range.start - parts.start..range.end - parts.start;
                work[at % threads].1.push((first, range, SortedRows { values, starts, numbers }));
                first += max;
            }
            on_threads(&mut work, |(sorting, work)| {
                for (first, range, to) in work {
                    let len = sorting.sort(&pieces, range.clone(), *first as u32, to);
                    to.values = &mut std::mem::take(&mut to.values)[..len];
                }
                Ok(())
            })?;
            let of_threads = work.iter().flat_map(|(_, work)| work);
            distinct.extend(of_threads.map(|(first, _, to)| (*first, to.values.len())));
        }
        for (_, parts) in distributed {
            spare.put(parts);
        }
        // Closes the gaps that removed duplicates left at the end of each range.
        distinct.sort_unstable();
        let end = distinct.iter().map(|(_, len)| len).sum();
        std::thread::scope(|scope| {
            let mut values = || close_gaps(&mut all.values, &distinct);
            if threads > 1 {
                scope.spawn(values);
            } else {
                values();
            }
            close_gaps(&mut all.starts, &distinct);
        });
        all.values.truncate(end);
        all.starts.truncate(end + 1);
        all.starts[end] = count as u32;
        Ok(all)
    }

    /// Returns the numbers of the fingerprint at position `place`.
    #[inline]
    pub(crate) fn at(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.numbers[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Moves ranges, given as start and length in ascending order, to the front so that there are no gaps between them.
fn close_gaps<T: Copy>(all: &mut [T], stretches: &[(usize, usize)]) {
    let mut end = 0;
    for &(first, len) in stretches {
        if end < first {
            all.copy_within(first..first + len, end);
        }
        end += len;
    }
}

/// The sorted fingerprints of a range of parts. The fields have the same meaning as in [`Distinct`].
struct SortedRows<'t> {
    values: &'t mut [u64],
    starts: &'t mut [u32],
    numbers: &'t mut [u32],
}

/// Working memory of a thread that sorts parts, aligned so that no two threads write to the same cache line.
#[derive(Default)]
#[repr(align(128))]
struct Sorting {
    /// Number of bits by which the fingerprints in rows are rotated left.
    turn: u32,
    buffer: Vec<u32>,
    items: Vec<u128>,
    scratch: Vec<u128>,
}

impl Sorting {
    /// Sorts the rows of a range of parts, gathered from all pieces. Returns the number of distinct fingerprints. `first`
    /// is the number of rows in earlier ranges.
    fn sort(
        &mut self,
        pieces: &[&RowParts],
        parts: Range<usize>,
        first: u32,
        to: &mut SortedRows<'_>,
    ) -> usize {
        let Self { turn, buffer, items, scratch } = self;
        let (mut distinct, mut at, mut last) = (0, 0, None);
        for part in parts {
            let rows: &[Row] = of_words(RowParts::gathered(pieces, part, buffer));
            items.clear();
            let item =
                |row: &Row| u128::from({ row.value }.rotate_right(*turn)) << 32 | u128::from(row.number);
            items.extend(rows.iter().map(item));
            sort(items, scratch);
            for &item in &*items {
                let value = (item >> 32) as u64;
                if last != Some(value) {
                    (to.values[distinct], to.starts[distinct]) = (value, first + at as u32);
                    distinct += 1;
                    last = Some(value);
                }
                to.numbers[at] = item as u32;
                at += 1;
            }
        }
        distinct
    }
}
