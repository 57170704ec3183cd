//! Searches in ascending columns, and the range of values that begin with a prefix.
//!
//! A column of a damaged file may be out of order. A search then still ends after O(log n) reads and returns a row
//! within the given range.

use std::ops::{Range, RangeInclusive};

use super::source::Source;
use crate::error::Result;
use crate::format::wire::Fault;

/// Maximum number of interpolation steps before a search changes to doubling steps. Uniform keys need two or three.
const INTERPOLATIONS: u32 = 4;
/// A range of at most this number of rows is bisected immediately. The first doubling step has this length.
const SHORT: u64 = 8;

/// The algorithm for finding a row in a column of ascending keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// Interpolation, then doubling steps, then bisection.
    Interpolation,
    /// Bisection.
    Binary,
}

/// Returns the range of values whose first `bits` bits are `prefix`; `None` if `prefix` has more than `bits` bits or
/// `bits` is over 64.
#[inline(always)]
#[must_use]
pub fn bounds(prefix: u64, bits: u32) -> Option<RangeInclusive<u64>> {
    let below = 64_u32.checked_sub(bits)?;
    if prefix.checked_shr(bits).unwrap_or(0) != 0 {
        return None;
    }
    let start = prefix.checked_shl(below).unwrap_or(0);
    Some(start..=start | u64::MAX.checked_shr(bits).unwrap_or(0))
}

/// Returns the first `bits` bits of a value; `bits` is 0 to 64.
#[inline(always)]
#[must_use]
pub fn top(value: u64, bits: u32) -> u64 {
    value.checked_shr(64 - bits).unwrap_or(0)
}

/// Reads the `N` bytes at offset `at` of the section.
#[inline(always)]
pub fn array<'a, const N: usize>(source: impl Source<'a>, at: u64) -> Result<[u8; N]> {
    let bytes = source.read(at..at + N as u64)?;
    bytes
        .try_into()
        .map_err(|_| source.corrupt(Fault::new(at, format!("{N} bytes"), format!("{} bytes", bytes.len()))))
}

/// Returns the first row of `rows` whose value is at least `target`; the end of `rows` if there is none. Reads about
/// log2 n of n rows.
#[inline(always)]
pub fn bisect(rows: Range<u64>, target: u64, mut value: impl FnMut(u64) -> Result<u64>) -> Result<u64> {
    let Range { start: mut low, end: mut high } = rows;
    while low < high {
        let middle = low + (high - low) / 2;
        if value(middle)? < target {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Same as [`bisect`], but faster if the values are uniform over `span`: makes a few interpolation steps, then doubling
/// steps, then bisects. Reads O(log n) rows for any values.
#[inline]
pub fn interpolate(
    rows: Range<u64>,
    span: RangeInclusive<u64>,
    target: u64,
    mut value: impl FnMut(u64) -> Result<u64>,
) -> Result<u64> {
    let Range { start: mut low, end: mut high } = rows;
    // Bounds of the values in `low..high`. `min` does not exceed the target, and `max` is not below it.
    let (mut min, mut max) = (target.min(*span.start()), target.max(*span.end()));
    let mut upwards = true;
    for _ in 0..INTERPOLATIONS {
        if high.saturating_sub(low) <= SHORT || min == max {
            break;
        }
        let share = u128::from(target - min) * u128::from(high - low) / u128::from(max - min);
        let guess = (low + share as u64).min(high - 1);
        let found = value(guess)?;
        upwards = found < target;
        if upwards {
            (low, min) = (guess + 1, found);
        } else {
            (high, max) = (guess, found);
        }
    }
    let mut step = SHORT;
    while high.saturating_sub(low) > step {
        let place = if upwards { low + step } else { high - step };
        let below = value(place)? < target;
        if below {
            low = place + 1;
        } else {
            high = place;
        }
        if below != upwards {
            break;
        }
        step *= 2;
    }
    bisect(low..high, target, value)
}

/// Returns the rows of `rows` whose values are within `bounds`. The values must ascend and may be any `u64`.
#[inline(always)]
pub fn between(
    rows: Range<u64>,
    bounds: &RangeInclusive<u64>,
    search: Search,
    mut value: impl FnMut(u64) -> Result<u64>,
) -> Result<Range<u64>> {
    let mut first = |rows: Range<u64>, span: RangeInclusive<u64>, target: u64| match search {
        Search::Binary => bisect(rows, target, &mut value),
        Search::Interpolation => interpolate(rows, span, target, &mut value),
    };
    let start = first(rows.clone(), 0..=u64::MAX, *bounds.start())?;
    let end = match bounds.end().checked_add(1) {
        // All values from row `start` on are at least the lower bound.
        Some(after) => first(start..rows.end, *bounds.start()..=u64::MAX, after)?,
        None => rows.end,
    };
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefix_bounds_are_the_range_of_values_with_that_prefix() {
        assert_eq!(bounds(0, 0), Some(0..=u64::MAX));
        assert_eq!(bounds(1, 0), None);
        assert_eq!(bounds(1, 1), Some(1 << 63..=u64::MAX));
        assert_eq!(bounds(2, 1), None);
        assert_eq!(bounds(0xAB, 8), Some(0xAB << 56..=(0xAC << 56) - 1));
        assert_eq!(bounds(7, 64), Some(7..=7));
        assert_eq!(bounds(u64::MAX, 64), Some(u64::MAX..=u64::MAX));
        assert_eq!(bounds(0, 65), None);
        assert_eq!((top(u64::MAX, 0), top(u64::MAX, 3), top(5, 64)), (0, 7, 5));
    }

    proptest! {
        #[test]
        fn bisect_and_interpolate_find_the_partition_point_in_few_reads(
            mut values in proptest::collection::vec(any::<u64>(), 0..600), shift in 0_u32..63, target: u64,
            pick: prop::sample::Index,
        ) {
            for value in &mut values {
                *value >>= shift * u32::from(*value % 3 != 0);
            }
            values.sort_unstable();
            let picked = values.get(pick.index(values.len().max(1))).copied().unwrap_or(0);
            let targets = [target, target >> shift, picked];
            for target in targets {
                let expected = values.partition_point(|&value| value < target) as u64;
                let rows = 0..values.len() as u64;
                let mut reads = 0;
                let mut read = |row: u64| { reads += 1; Ok(values[row as usize]) };
                prop_assert_eq!(bisect(rows.clone(), target, &mut read).unwrap(), expected);
                let found = interpolate(rows.clone(), 0..=u64::MAX, target, &mut read).unwrap();
                prop_assert_eq!(found, expected);
                prop_assert!(reads <= 10 + 4 + 2 * 10, "{} reads", reads);
            }
        }

        #[test]
        fn search_in_unsorted_column_returns_rows_within_the_range(
            values in proptest::collection::vec(any::<u64>(), 0..100), from in 0_u64..100, target: u64,
        ) {
            let rows = from.min(values.len() as u64)..values.len() as u64;
            for search in [Search::Binary, Search::Interpolation] {
                let bounds = target..=target.saturating_add(1 << 60);
                let found = between(rows.clone(), &bounds, search, |row| Ok(values[row as usize])).unwrap();
                prop_assert!(rows.start <= found.start && found.start <= found.end && found.end <= rows.end);
            }
        }
    }

    #[test]
    fn interpolation_reads_few_rows_of_uniform_values() {
        let values: Vec<u64> = super::super::tests::uniform(100_000, 1);
        let mut reads = 0;
        for target in super::super::tests::uniform(1000, 2) {
            let place = interpolate(0..values.len() as u64, 0..=u64::MAX, target, |row| {
                reads += 1;
                Ok(values[row as usize])
            });
            assert_eq!(place.unwrap(), values.partition_point(|&value| value < target) as u64);
        }
        // For comparison: bisection takes 17 reads per search.
        assert!(reads < 1000 * 11, "{reads} reads in 1,000 searches");
    }
}
