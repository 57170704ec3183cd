//! Sorting what may be more than memory holds: sorted runs in a scratch file, and one merge (Knuth, *The Art of
//! Computer Programming* 3, 5.4.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::{Path, PathBuf};

use super::threads::on_each;
use twindex::error::{Error, Result};
use twindex::sys::Spill;

/// What is sorted: a number of fixed width.
pub trait Record: Copy + Ord + 'static {
    /// Bytes in a scratch file.
    const BYTES: usize;
    /// Appends its bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// Reads it from its bytes, of which there are [`BYTES`](Self::BYTES).
    fn take(bytes: &[u8]) -> Self;
    /// Takes the next in order into itself, if both are one: so are equal ones, and records that count.
    #[inline]
    fn absorb(&mut self, next: Self) -> bool {
        *self == next
    }
}

macro_rules! record {
    ($type:ty) => {
        impl Record for $type {
            const BYTES: usize = size_of::<Self>();
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                let mut all = [0; Self::BYTES];
                all.copy_from_slice(&bytes[..Self::BYTES]);
                Self::from_le_bytes(all)
            }
        }
    };
}
record!(u64);
record!(u128);

/// A number and a short one.
impl Record for (u64, u32) {
    const BYTES: usize = 12;
    fn put(self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        bytes.extend_from_slice(&self.1.to_le_bytes());
    }
    fn take(bytes: &[u8]) -> Self {
        (u64::take(bytes), u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]))
    }
}

/// A number, and how often it came: equal ones become one, with the sum of their counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    /// The number.
    pub number: u64,
    /// How often.
    pub count: u32,
}

impl Record for Counted {
    const BYTES: usize = <(u64, u32)>::BYTES;
    fn put(self, bytes: &mut Vec<u8>) {
        (self.number, self.count).put(bytes);
    }
    fn take(bytes: &[u8]) -> Self {
        let (number, count) = Record::take(bytes);
        Self { number, count }
    }
    #[inline]
    fn absorb(&mut self, next: Self) -> bool {
        let same = self.number == next.number;
        self.count = self.count.saturating_add(if same { next.count } else { 0 });
        same
    }
}

/// Two numbers and a byte.
impl Record for (u64, u64, u8) {
    const BYTES: usize = 17;
    fn put(self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
        bytes.push(self.2);
    }
    fn take(bytes: &[u8]) -> Self {
        (u64::take(bytes), u64::take(&bytes[8..]), bytes[16])
    }
}

/// The least memory of a sorter: below it, runs would be shorter than the buffers they are read through.
const LEAST: usize = 1 << 20;
/// The least buffer through which a run is read.
const BUFFER: usize = 1 << 12;

/// Takes records in any order.
#[derive(Debug)]
pub struct Sorter<T> {
    dir: PathBuf,
    /// Records of a run.
    most: usize,
    held: Vec<T>,
    spill: Option<Spill>,
    /// Where each run begins in the scratch file, and its records.
    runs: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

impl<T: Record> Sorter<T> {
    /// Holds up to `memory` bytes, at least 1 MiB; the rest goes to an unnamed file in `dir`.
    #[must_use]
    pub fn new(dir: &Path, memory: usize) -> Self {
        let most = memory.max(LEAST) / size_of::<T>();
        Self { dir: dir.to_owned(), most, held: Vec::new(), spill: None, runs: Vec::new(), bytes: Vec::new() }
    }

    /// Adds a record. Equal ones are kept once, or [counted](Record::absorb).
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    #[inline]
    pub fn push(&mut self, record: T) -> Result<()> {
        if self.held.len() == self.most {
            self.make_room()?;
        }
        self.held.push(record);
        Ok(())
    }

    /// Sorts what is held, and has each once.
    fn sort(&mut self) {
        self.held.sort_unstable();
        self.held.dedup_by(|next, kept| kept.absorb(*next));
    }

    /// Sorts what is held; where that leaves less than half of the memory free, writes it as a run.
    #[cold]
    fn make_room(&mut self) -> Result<()> {
        self.sort();
        if self.held.len() > self.most / 2 { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> Result<()> {
        if self.spill.is_none() {
            let spill =
                Spill::create(&self.dir).map_err(|e| Error::io("create a scratch file in", &self.dir, e))?;
            self.spill = Some(spill);
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        self.runs.push((spill.len(), self.held.len() as u64));
        for chunk in self.held.chunks(BUFFER) {
            self.bytes.clear();
            for &record in chunk {
                record.put(&mut self.bytes);
            }
            spill.append(&self.bytes).map_err(|e| Error::io("write a scratch file in", &self.dir, e))?;
        }
        self.held.clear();
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn finish(mut self) -> Result<Sorted<T>> {
        self.sort();
        if !self.runs.is_empty() {
            self.write_run()?;
            self.held = Vec::new();
        }
        let buffer = (self.most * size_of::<T>() / (self.runs.len() + 1)).max(BUFFER) / T::BYTES * T::BYTES;
        Ok(Sorted { dir: self.dir, held: self.held, spill: self.spill, runs: self.runs, buffer })
    }
}

/// Ends the input of all of these, of each on a thread of its own.
///
/// # Errors
/// As [`Sorter::finish`]; the first.
pub fn finish_all<T: Record + Send>(sorters: impl IntoIterator<Item = Sorter<T>>) -> Result<Vec<Sorted<T>>> {
    let mut sorters: Vec<_> = sorters.into_iter().map(|sorter| (Some(sorter), None)).collect();
    on_each(&mut sorters, |_, (sorter, sorted)| *sorted = sorter.take().map(Sorter::finish));
    sorters.into_iter().filter_map(|(_, sorted)| sorted).collect()
}

/// Records, ascending, each once; to be read as often as wanted.
#[derive(Debug)]
pub struct Sorted<T> {
    dir: PathBuf,
    /// All of them, if there are no runs.
    held: Vec<T>,
    spill: Option<Spill>,
    runs: Vec<(u64, u64)>,
    /// Bytes of a run that are read at once.
    buffer: usize,
}

impl<T: Record> Sorted<T> {
    /// Whether a scratch file was needed.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.spill.is_some()
    }

    /// Hands each record to `each`, ascending. Memory beside what is held: at least 4 KiB a run.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file, or what `each` returns.
    pub fn for_each<E: From<Error>>(
        &self,
        mut each: impl FnMut(T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.spill.is_none() {
            return self.held.iter().try_for_each(|&record| each(record));
        }
        merge(std::slice::from_ref(self), each)
    }
}

/// Hands each record of all of these to `each`, ascending, those that several have once. Memory as for one of them.
///
/// # Errors
/// [`Error::Io`] from a scratch file, or what `each` returns.
pub fn merge<T: Record, E: From<Error>>(
    all: &[Sorted<T>],
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut readers: Vec<Reader<'_, T>> = all.iter().flat_map(Sorted::readers).collect();
    let mut last: Option<T> = None;
    let mut hand_on = |record: T| {
        // One is whole when the next is another.
        if !last.as_mut().is_some_and(|last| last.absorb(record))
            && let Some(whole) = last.replace(record)
        {
            return each(whole);
        }
        Ok(())
    };
    match &mut readers[..] {
        [] => {}
        [one] => {
            while let Some(record) = one.next()? {
                hand_on(record)?;
            }
        }
        [one, two] => merge_two(one, two, hand_on)?,
        _ => merge_many(&mut readers, hand_on)?,
    }
    last.map_or(Ok(()), each)
}

/// With less to do for each record than a heap.
fn merge_two<'r, T: Record, E: From<Error>>(
    one: &mut Reader<'r, T>,
    two: &mut Reader<'r, T>,
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut first, mut second) = (one.next()?, two.next()?);
    while let (Some(a), Some(b)) = (first, second) {
        if a <= b {
            first = one.next()?;
            each(a)?;
        } else {
            second = two.next()?;
            each(b)?;
        }
    }
    let (mut rest, reader) = if first.is_some() { (first, one) } else { (second, two) };
    while let Some(record) = rest {
        rest = reader.next()?;
        each(record)?;
    }
    Ok(())
}

fn merge_many<T: Record, E: From<Error>>(
    readers: &mut [Reader<'_, T>],
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut heap = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        heap.extend(reader.next()?.map(|first| Reverse((first, number))));
    }
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((record, number)) = *top;
        match readers[number].next()? {
            Some(next) => {
                *top = Reverse((next, number));
                drop(top);
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        each(record)?;
    }
    Ok(())
}

/// Reads what is in memory, or a run.
enum Reader<'a, T> {
    Held(std::slice::Iter<'a, T>),
    Spilled(&'a Sorted<T>, &'a Spill, Run<T>),
}

impl<T: Record> Reader<'_, T> {
    #[inline]
    fn next(&mut self) -> Result<Option<T>> {
        match self {
            Self::Held(records) => Ok(records.next().copied()),
            Self::Spilled(of, spill, run) => {
                run.next(spill, of.buffer).map_err(|e| Error::io("read a scratch file in", &of.dir, e))
            }
        }
    }
}

impl<T: Record> Sorted<T> {
    fn readers(&self) -> Vec<Reader<'_, T>> {
        match &self.spill {
            None => vec![Reader::Held(self.held.iter())],
            Some(spill) => {
                let run = |&(at, left): &(u64, u64)| Reader::Spilled(self, spill, Run::new(at, left));
                self.runs.iter().map(run).collect()
            }
        }
    }
}

/// A run that is being read.
struct Run<T> {
    place: u64,
    left: u64,
    waiting: Vec<T>,
    at: usize,
}

impl<T: Record> Run<T> {
    fn new(place: u64, left: u64) -> Self {
        Self { place, left, waiting: Vec::new(), at: 0 }
    }

    fn next(&mut self, spill: &Spill, buffer: usize) -> io::Result<Option<T>> {
        if self.at == self.waiting.len() {
            let count = self.left.min((buffer / T::BYTES) as u64);
            if count == 0 {
                return Ok(None);
            }
            let mut bytes = vec![0; count as usize * T::BYTES];
            spill.read_exact_at(&mut bytes, self.place)?;
            self.place += bytes.len() as u64;
            self.left -= count;
            self.waiting.clear();
            self.waiting.extend(bytes.chunks_exact(T::BYTES).map(T::take));
            self.at = 0;
        }
        self.at += 1;
        Ok(Some(self.waiting[self.at - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bijection that leaves nothing in order.
    fn mix(i: u64) -> u64 {
        (i ^ 0x5555).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    #[test]
    fn more_than_memory_holds_comes_back_sorted_each_once_and_as_often_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        // 1 MiB holds 65,536 of 16 bytes.
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
    fn counts_add_up_to_the_same_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for (memory, on_disk) in [(0, true), (1 << 24, false)] {
            let mut sorter: Sorter<Counted> = Sorter::new(dir.path(), memory);
            for i in 0..200_000_u64 {
                sorter.push(Counted { number: mix(i % 70_000), count: 1 + (i % 2) as u32 }).unwrap();
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
            // 70,000 is even: all that come to a number have its parity.
            let mut wanted: Vec<Counted> = (0..70_000)
                .map(|i| Counted {
                    number: mix(i),
                    count: (2 + u32::from(i < 60_000)) * (1 + (i % 2) as u32),
                })
                .collect();
            wanted.sort_unstable();
            assert!(all == wanted);
        }
    }

    #[test]
    fn several_become_one_with_what_they_share_once_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for (count, on_disk) in [(1000, false), (100_000, true)] {
            for several in 0..5_u64 {
                let mut sorters: Vec<Sorter<u128>> = Vec::new();
                for number in 0..several {
                    let mut sorter = Sorter::new(dir.path(), 0);
                    // The last are longer than the first, and each has what the one before has, too.
                    for i in (number * count / 2..(number + 2) * count / 2 * (number + 1)).rev() {
                        sorter.push(mix(i).into()).unwrap();
                    }
                    sorters.push(sorter);
                }
                let most = (0..several).map(|number| (number + 2) * count / 2 * (number + 1)).max();
                let mut wanted: Vec<u128> = (0..most.unwrap_or(0)).map(|i| mix(i).into()).collect();
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
    fn records_that_repeat_take_no_scratch_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter: Sorter<u64> = Sorter::new(dir.path(), 0);
        for i in 0..1_000_000_u64 {
            sorter.push(i % 1000).unwrap();
        }
        assert!(!sorter.finish().unwrap().is_on_disk());
    }

    #[test]
    fn the_first_failure_of_a_reader_ends_the_reading() {
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
