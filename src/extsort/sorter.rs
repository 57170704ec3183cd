//! A sorter for records that may exceed the available memory.

use std::path::Path;

use super::record::Record;
use super::runs::{RunReader, Runs, WordRecord, combine};
use crate::error::{Error, Result};
use crate::sys::threads::both;

/// Minimum memory of a sorter in bytes. With less memory, runs would be shorter than the read buffers for them.
const LEAST: usize = 1 << 20;
/// Size in bytes of the read buffer of each run during a merge. The memory divided by this size is the number of runs
/// that are merged at once.
const BUFFER: usize = 1 << 12;

/// Sorts records of fixed width, and combines records that [absorb](Record::absorb) each other; by default, these are
/// equal records.
///
/// Records are collected in memory and sorted there. When they exceed the memory, they are written to a scratch file as
/// a sorted run. The runs are merged when the output is read.
#[derive(Debug)]
pub struct Sorter<T> {
    /// The maximum number of records in memory.
    max: usize,
    /// The number of threads that sort.
    threads: usize,
    held: Vec<T>,
    runs: Runs<T>,
}

/// Minimum number of records that a thread sorts.
const TOGETHER: usize = 1 << 13;

/// Sorts records on several threads.
fn sort_on_threads<T: Ord + Send>(records: &mut [T], threads: usize) {
    let threads = threads.min(records.len() / TOGETHER);
    if threads < 2 {
        return records.sort_unstable();
    }
    // The parts have sizes as the numbers of their threads.
    let middle = records.len() / threads * (threads / 2);
    records.select_nth_unstable(middle);
    let (low, high) = records.split_at_mut(middle);
    let on_low = || sort_on_threads(low, threads / 2);
    both(threads, on_low, || sort_on_threads(high, threads - threads / 2));
}

impl<T: Record + Copy + Send> Sorter<T> {
    /// Creates a sorter that uses at most `memory` bytes, but at least 1 MiB. Records that exceed this memory are
    /// written to unnamed files in `dir`.
    #[must_use]
    pub fn new(dir: &Path, memory: usize) -> Self {
        let memory = memory.max(LEAST);
        let runs = Runs::new(dir, WordRecord::default(), memory / BUFFER, memory);
        Self::of(memory / size_of::<T>(), runs)
    }

    fn of(max: usize, runs: Runs<T>) -> Self {
        Self { max, threads: 1, held: Vec::new(), runs }
    }

    /// Sorts on this number of threads instead of one. The output is the same.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    #[inline]
    pub fn push(&mut self, record: T) -> Result<()> {
        if self.held.len() == self.held.capacity() {
            self.grow()?;
        }
        self.held.push(record);
        Ok(())
    }

    /// Sorts the records in memory, and combines records that absorb each other.
    fn sort(&mut self) {
        sort_on_threads(&mut self.held, self.threads);
        self.held.dedup_by(|next, kept| kept.absorb(next));
    }

    /// Doubles the capacity for records. At the limit, sorts the records and combines those that absorb each other
    /// instead. If they still fill more than half of the capacity, writes them as a run.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let held = self.held.len();
        if held < self.max {
            // Double the capacity, up to the limit.
            self.held.reserve_exact(held.max(64).min(self.max - held));
            return Ok(());
        }
        self.sort();
        if self.held.len() > self.max / 2 { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> Result<()> {
        self.held.iter().try_for_each(|record| self.runs.put(record))?;
        self.held.clear();
        self.runs.end_run()
    }

    /// Sorts the remaining records and returns the output.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn finish(mut self) -> Result<Sorted<T>> {
        self.sort();
        if !self.runs.is_empty() {
            self.write_run()?;
            self.held = Vec::new();
        }
        Ok(Sorted { held: self.held, runs: self.runs })
    }
}

/// The output of a [`Sorter`]: sorted records, after combining those that absorb each other. It can be read repeatedly.
#[derive(Debug)]
pub struct Sorted<T> {
    /// All records if there are no runs. Otherwise empty.
    held: Vec<T>,
    runs: Runs<T>,
}

impl<T: Record + Copy> Sorted<T> {
    /// Returns true if the records are in a scratch file.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Calls `each` with each record in ascending order. The read buffers take at most the memory limit of the sorter,
    /// in addition to the records in memory.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file, and the errors of `each`.
    pub fn for_each<E: From<Error>>(
        &self,
        mut each: impl FnMut(T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.runs.is_empty() {
            return self.held.iter().try_for_each(|&record| each(record));
        }
        merge(std::slice::from_ref(self), each)
    }

    fn readers(&self) -> impl Iterator<Item = RunReader<'_, T>> {
        let held = (!self.held.is_empty()).then(|| RunReader::Held(self.held.iter()));
        self.runs.readers().map(RunReader::Spilled).chain(held)
    }
}

/// Merges several sorted outputs, and calls `each` with each record in ascending order. Records of different outputs
/// that [`absorb`](Record::absorb) each other are combined first. Each output has its own read buffers.
///
/// # Errors
/// [`Error::Io`] from a scratch file, and the errors of `each`.
pub fn merge<T: Record + Copy, E: From<Error>>(
    all: &[Sorted<T>],
    each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    combine(all.iter().flat_map(Sorted::readers), each)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::record::NumberCount;
    use super::*;
    use crate::sys::spill::faults;

    fn small<T: Record + Copy + Send>(dir: &Path, max: usize, fan_in: usize) -> Sorter<T> {
        Sorter::of(max, Runs::new(dir, WordRecord::default(), fan_in, 0))
    }

    fn sorted<T: Record + Copy + Send>(
        mut sorter: Sorter<T>,
        records: impl IntoIterator<Item = T>,
    ) -> Sorted<T> {
        records.into_iter().try_for_each(|record| sorter.push(record)).unwrap();
        sorter.finish().unwrap()
    }

    fn all<T: Record + Copy>(sorted: &[Sorted<T>]) -> Vec<T> {
        let mut all = Vec::new();
        merge(sorted, |record| {
            all.push(record);
            Ok::<_, Error>(())
        })
        .unwrap();
        all
    }

    proptest! {
        #[test]
        fn sorter_output_is_sorted_and_distinct_for_any_memory_limit(
            parts in proptest::collection::vec(proptest::collection::vec(any::<(u8, u8)>(), 0..300), 1..4),
            (max, fan_in) in (1..200_usize, 2..5_usize),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            let wide = |&(a, b): &(u8, u8)| u128::from(a) << 100 | u128::from(b);
            let triple = |&(a, b): &(u8, u8)| (u64::from(b), u64::from(a % 4) << 40, a);
            let counted = |&(a, _): &(u8, u8)| NumberCount { number: u64::from(a) << 56 | 1, count: 2 };
            let (mut of_wide, mut of_triples) = (Vec::new(), Vec::new());
            let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
            let mut found = (Vec::new(), Vec::new(), Vec::new());
            for part in &parts {
                of_wide.extend(part.iter().map(wide));
                of_triples.extend(part.iter().map(triple));
                for one in part.iter().map(counted) {
                    *counts.entry(one.number).or_default() += one.count;
                }
                found.0.push(sorted(small(dir, max, fan_in), part.iter().map(wide)));
                found.1.push(sorted(small(dir, max, fan_in), part.iter().map(triple)));
                found.2.push(sorted(small(dir, max, fan_in), part.iter().map(counted)));
            }
            of_wide.sort_unstable();
            of_wide.dedup();
            of_triples.sort_unstable();
            of_triples.dedup();
            for _ in 0..2 {
                prop_assert_eq!(&all(&found.0), &of_wide);
                prop_assert_eq!(&all(&found.1), &of_triples);
                let counts = counts.iter().map(|(&number, &count)| NumberCount { number, count });
                prop_assert_eq!(all(&found.2), counts.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn output_is_the_same_on_any_number_of_threads() {
        let dir = tempfile::tempdir().unwrap();
        let records = |i: u64| [i * 7919 % 1009, i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50, i % 3, 0];
        let sorted_on = |threads| {
            let sorter: Sorter<[u64; 4]> = Sorter::new(dir.path(), 4 << 20).on_threads(threads);
            let sorted = sorted(sorter, (0..400_000).map(records));
            assert!(sorted.is_on_disk());
            all(&[sorted])
        };
        let on_one = sorted_on(1);
        assert!(on_one.is_sorted() && on_one.len() > 300_000);
        for threads in [2, 3, 7, 64] {
            assert!(sorted_on(threads) == on_one, "{threads}");
        }
    }

    #[test]
    fn sorter_never_exceeds_its_memory_limit() {
        let dir = tempfile::tempdir().unwrap();
        // A record takes 24 bytes in memory, so a power-of-two number of records never fills 1 MiB exactly.
        let mut sorter: Sorter<(u64, u64, u8)> = Sorter::new(dir.path(), 0);
        for i in 0..600_000_u64 {
            sorter.push((i.wrapping_mul(0x9E37_79B9_7F4A_7C15), i, 0)).unwrap();
            assert!(sorter.held.capacity() * size_of::<(u64, u64, u8)>() <= LEAST);
        }
        assert!(sorter.runs.len() > 10);
        let sorted = sorter.finish().unwrap();
        assert_eq!(sorted.held.capacity(), 0);
        assert!(sorted.runs.readers().map(|run| run.buffer()).sum::<usize>() <= LEAST);

        // Each level has fewer than `fan_in` runs, however many runs were written.
        let mut sorter: Sorter<u64> = small(dir.path(), 2, 3);
        (0..5000).try_for_each(|i| sorter.push(i * 7919 % 5000)).unwrap();
        let sorted = sorter.finish().unwrap();
        assert!(sorted.runs.levels() > 5 && sorted.runs.len() <= 2 * sorted.runs.levels());
        assert!(all(&[sorted]).into_iter().eq(0..5000));
    }

    #[test]
    fn scratch_file_error_names_the_operation_and_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let failed = |error: Error, wanted: &str, at: &Path| match error {
            Error::Io { op, path, source } => {
                assert_eq!((op, path.as_path()), (wanted, at));
                source
            }
            other => panic!("{other:?}"),
        };
        let mut sorter: Sorter<u64> = Sorter::new(dir.path(), 0);
        faults::leave_space(1 << 19);
        let error = (0..1 << 20).find_map(|i| sorter.push(i).err());
        faults::leave_space(u64::MAX);
        let source = failed(error.unwrap(), "write a scratch file in", dir.path());
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);

        let sorted = sorted(Sorter::<u64>::new(dir.path(), 0), 0..1 << 19);
        faults::allow_reads(false);
        let error = sorted.for_each(|_| Ok::<_, Error>(())).unwrap_err();
        faults::allow_reads(true);
        failed(error, "read a scratch file in", dir.path());
        assert_eq!(all(&[sorted]).len(), 1 << 19, "it can be read again");

        let gone = dir.path().join("gone");
        let mut sorter: Sorter<u64> = Sorter::new(&gone, 0);
        let error = (0..1 << 20).find_map(|i| sorter.push(i).err()).unwrap();
        failed(error, "create a scratch file in", &gone);
    }
}
