//! Re-exports the external sorter of `twindex`, and finishes several sorters in parallel.

use twindex::error::Result;
pub use twindex::extsort::sorter::merge;
pub use twindex::extsort::{NumberCount, Record, Sorted, Sorter};
use twindex::sys::threads::on_each;

/// Finishes all sorters, each on its own thread.
///
/// # Errors
/// The first error of [`Sorter::finish`].
pub fn finish_all<T: Record + Copy + Send>(
    sorters: impl IntoIterator<Item = Sorter<T>>,
) -> Result<Vec<Sorted<T>>> {
    let mut sorters: Vec<_> = sorters.into_iter().map(|sorter| (Some(sorter), None)).collect();
    on_each(&mut sorters, |_, (sorter, sorted)| *sorted = sorter.take().map(Sorter::finish));
    sorters.into_iter().filter_map(|(_, sorted)| sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex::error::Error;

    /// A bijection that maps consecutive numbers to a pseudo-random order.
    fn mix(i: u64) -> u64 {
        (i ^ 0x5555).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    #[test]
    fn records_beyond_memory_are_sorted_and_distinct_at_each_reading() {
        let dir = tempfile::tempdir().unwrap();
        // 1 MiB holds 65,536 records of 16 bytes.
        for (count, distinct, on_disk) in [(0, 1, false), (1000, 900, false), (300_000, 250_000, true)] {
            let mut sorter: Sorter<u128> = Sorter::new(dir.path(), 0);
            for i in 0..count {
                let value = mix(i % distinct);
                sorter.push(u128::from(value) << 64 | u128::from(value >> 60)).unwrap();
            }
            let mut wanted: Vec<u128> = (0..count.min(distinct))
                .map(mix)
                .map(|value| u128::from(value) << 64 | u128::from(value >> 60))
                .collect();
            wanted.sort_unstable();
            let sorted = sorter.finish().unwrap();
            assert_eq!(sorted.is_on_disk(), on_disk);
            for _ in 0..2 {
                let mut found = Vec::new();
                sorted
                    .for_each(|record| {
                        found.push(record);
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                assert!(found == wanted, "{count}");
            }
        }
    }

    #[test]
    fn summed_counts_are_equal_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for (memory, on_disk) in [(0, true), (1 << 24, false)] {
            let mut sorter: Sorter<NumberCount> = Sorter::new(dir.path(), memory);
            for i in 0..200_000_u64 {
                sorter.push(NumberCount { number: mix(i % 70_000), count: 1 + (i % 2) as u32 }).unwrap();
            }
            let sorted = sorter.finish().unwrap();
            assert_eq!(sorted.is_on_disk(), on_disk);
            let mut all = Vec::new();
            let take = |record| {
                all.push(record);
                Ok::<_, Error>(())
            };
            sorted.for_each(take).unwrap();
            assert!(all.is_sorted_by(|a, b| a.number < b.number), "each number once");
            // 70,000 is even, so all entries with the same number have the same parity.
            let mut wanted: Vec<NumberCount> = (0..70_000)
                .map(|i| NumberCount {
                    number: mix(i),
                    count: (2 + u32::from(i < 60_000)) * (1 + (i % 2) as u32),
                })
                .collect();
            wanted.sort_unstable();
            assert!(all == wanted);
        }
    }

    #[test]
    fn merged_runs_contain_shared_records_once() {
        let dir = tempfile::tempdir().unwrap();
        for (count, on_disk) in [(1000, false), (100_000, true)] {
            for several in 0..5_u64 {
                let mut sorters: Vec<Sorter<u128>> = Vec::new();
                for number in 0..several {
                    let mut sorter = Sorter::new(dir.path(), 0);
                    // Each sorter gets more records than the previous one, and shares some with it.
                    for i in (number * count / 2..(number + 2) * count / 2 * (number + 1)).rev() {
                        sorter.push(mix(i).into()).unwrap();
                    }
                    sorters.push(sorter);
                }
                let max = (0..several).map(|number| (number + 2) * count / 2 * (number + 1)).max();
                let mut wanted: Vec<u128> = (0..max.unwrap_or(0)).map(|i| mix(i).into()).collect();
                wanted.sort_unstable();
                let sorted = finish_all(sorters).unwrap();
                assert!(sorted.iter().all(|sorted| sorted.is_on_disk() == on_disk));
                let mut found = Vec::new();
                let take = |record| {
                    found.push(record);
                    Ok::<_, Error>(())
                };
                merge(&sorted, take).unwrap();
                assert!(found == wanted, "{several} of {count}");
            }
        }
    }

    #[test]
    fn repeated_records_need_no_scratch_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter: Sorter<u64> = Sorter::new(dir.path(), 0);
        for i in 0..1_000_000_u64 {
            sorter.push(i % 1000).unwrap();
        }
        assert!(!sorter.finish().unwrap().is_on_disk());
    }

    #[test]
    fn first_error_of_the_callback_ends_the_reading() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter: Sorter<u64> = Sorter::new(dir.path(), 0);
        for i in 0..10_u64 {
            sorter.push(i).unwrap();
        }
        let mut seen = 0;
        let stopped = sorter.finish().unwrap().for_each(|_| {
            seen += 1;
            if seen == 3 { Err(Error::Invalid("enough".into())) } else { Ok(()) }
        });
        assert!(stopped.is_err() && seen == 3);
    }
}
