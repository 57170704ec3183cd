//! Stores the keys of documents, sorts documents by key, and finds documents by key. Data beyond the memory budget is
//! in scratch files.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use twindex::extsort::{Record, Runs, WordRecord, combine};
use twindex::sys::column::Value;
use twindex::sys::{Column, MemoryBudget};
use twindex_join::HashNumbers;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::input::place::Place;
use crate::work::numbered_paths::NumberedPaths;

/// A list of keys or other byte strings, which are identified by their index in the order of addition.
pub(crate) struct DocumentKeys {
    bytes: Column<u8>,
    /// The end offset of each key in `bytes`.
    ends: Column<u64>,
}

impl DocumentKeys {
    /// Creates an empty list. Each key takes 8 bytes plus its length.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { bytes: Column::new(budget), ends: Column::new(budget) }
    }

    pub(crate) fn push(&mut self, key: &[u8]) -> twindex::Result<()> {
        self.bytes.extend(key)?;
        self.ends.push(self.bytes.len() as u64)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, number: u32) -> &[u8] {
        &self.bytes[self.start(number)..self.ends[number as usize] as usize]
    }

    fn start(&self, number: u32) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before as usize] as usize)
    }

    /// Moves all keys to a new list.
    pub(crate) fn take(&mut self) -> Self {
        Self { bytes: self.bytes.take(), ends: self.ends.take() }
    }

    /// Replaces the list by these runs of its keys.
    pub(crate) fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        let before = self.take();
        for run in runs {
            let (start, to) = (before.start(run.start), self.bytes.len());
            self.bytes.extend(&before.bytes[start..before.start(run.end)])?;
            let ends = &before.ends[run.start as usize..run.end as usize];
            ends.iter().try_for_each(|&end| self.ends.push(end - start as u64 + to as u64))?;
        }
        Ok(())
    }

    /// Returns the key as text for messages; invalid UTF-8 is replaced.
    pub(crate) fn shown(&self, number: u32) -> String {
        String::from_utf8_lossy(self.get(number)).into_owned()
    }

    /// Sorts the indices `numbers` by key. Of equal keys, returns only the first index. Uses about `memory` bytes; the
    /// memory of the result counts against `budget`.
    pub(crate) fn sorted(
        &self,
        numbers: Range<u32>,
        budget: &MemoryBudget,
        memory: usize,
    ) -> twindex::Result<Column<u32>> {
        let compare = |&a: &u32, &b: &u32| self.get(a).cmp(self.get(b)).then(a.cmp(&b));
        let mut sorted = Column::of(budget, numbers.clone())?;
        if !self.bytes.is_on_disk() && !self.ends.is_on_disk() && !sorted.is_on_disk() {
            sorted.par_sort_unstable_by(compare);
            return Ok(sorted);
        }
        let mut runs: Runs<Keyed> = Runs::new(budget.dir(), WordRecord::default(), memory / BUFFER, memory);
        let (mut start, mut some) = (numbers.start, Vec::new());
        while start < numbers.end {
            let from = self.start(start);
            let fits = |&number: &u32| {
                let bytes = self.ends[number as usize] as usize - from;
                number == start || bytes + BESIDE * (number - start) as usize <= memory
            };
            some.clear();
            some.extend((start..numbers.end).take_while(fits));
            some.sort_unstable_by(compare);
            for &number in &some {
                runs.put(&Keyed { key: self.get(number).to_vec(), number })?;
            }
            runs.end_run()?;
            start += some.len() as u32;
        }
        let mut place = 0;
        let take = |keyed: Keyed| {
            sorted[place] = keyed.number;
            place += 1;
            Ok::<_, twindex::Error>(())
        };
        combine(runs.readers(), take)?;
        Ok(sorted)
    }
}

/// Replaces a column by these runs of its values.
pub(crate) fn arrange<T: Value>(column: &mut Column<T>, runs: &[Range<u32>]) -> twindex::Result<()> {
    let before = column.take();
    runs.iter().try_for_each(|run| column.extend(&before[run.start as usize..run.end as usize]))
}

/// Minimum buffer size for reading a sorted run, in bytes.
const BUFFER: usize = 1 << 12;
/// Memory that a sort uses for each key in addition to its bytes, in bytes.
const BESIDE: usize = 16;

/// A key and its index, as stored in a sorted run.
#[derive(PartialEq, Eq)]
struct Keyed {
    key: Vec<u8>,
    number: u32,
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Record for Keyed {
    /// Length of the fixed part of a record: the key length and the index.
    const HEAD: usize = 8;

    fn tail(head: &[u8]) -> usize {
        head.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.key);
    }

    fn take(bytes: &[u8], record: &mut Option<Self>) {
        let mut key = record.take().map_or_else(Vec::new, |record| record.key);
        key.clear();
        let (head, tail) = bytes.split_at(Self::HEAD);
        key.extend_from_slice(tail);
        let number = head[4..].try_into().map_or(0, u32::from_le_bytes);
        *record = Some(Self { key, number });
    }
}

/// Documents in ascending order of their keys, and the rank of each document in that order.
pub(crate) struct ByKey {
    pub(crate) documents: Column<u32>,
    pub(crate) places: Column<u32>,
}

impl ByKey {
    /// Sorts these documents by key.
    pub(crate) fn of(
        keys: &DocumentKeys,
        documents: Range<u32>,
        budget: &MemoryBudget,
        memory: usize,
    ) -> twindex::Result<Self> {
        let documents = keys.sorted(documents, budget, memory)?;
        let mut places = Column::filled(budget, keys.len(), 0)?;
        let of_documents = &mut places[..];
        for (place, &document) in (0..).zip(&documents[..]) {
            of_documents[document as usize] = place;
        }
        Ok(Self { documents, places })
    }

    /// Returns the rank of a document in the order of keys.
    pub(crate) fn place(&self, document: u32) -> u32 {
        self.places[document as usize]
    }
}

/// A hash table that finds the index of a key in [`DocumentKeys`].
pub(crate) struct KnownKeys {
    numbers: HashNumbers,
    /// A random hash seed, so that inputs cannot be crafted with colliding keys.
    seed: u64,
}

impl KnownKeys {
    pub(crate) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        Ok(Self { numbers: HashNumbers::new(budget)?, seed })
    }

    /// Returns the index of this key; `None` if it was not inserted.
    pub(crate) fn find(&self, keys: &DocumentKeys, key: &[u8]) -> Option<u32> {
        let is_same = |number| Ok::<_, std::convert::Infallible>(keys.get(number) == key);
        match self.numbers.find(self.hash(key), is_same) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// Inserts a key, which must be new.
    pub(crate) fn insert(&mut self, key: &[u8], number: u32) -> twindex::Result<()> {
        self.numbers.insert(self.hash(key), number)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }
}

/// The positions of documents in the inputs: a file, and the line or offset in the file.
pub(crate) struct DocumentPlaces {
    paths: NumberedPaths,
    /// For each document, the index of its path, then its position in the file, packed into two numbers.
    at: Column<[u32; 3]>,
}

impl DocumentPlaces {
    /// Creates an empty list. Each position takes 12 bytes of memory or of a scratch file.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { paths: NumberedPaths::default(), at: Column::new(budget) }
    }

    pub(crate) fn push(&mut self, place: &Place) -> twindex::Result<()> {
        let (path, packed) = place.packed();
        self.at.push([self.paths.number(path), (packed >> 32) as u32, packed as u32])
    }

    /// Replaces the list by these runs of its positions.
    pub(crate) fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        arrange(&mut self.at, runs)
    }

    pub(crate) fn get(&self, number: u32) -> Place {
        let [path, high, low] = self.at[number as usize];
        Place::unpacked(Arc::clone(self.paths.get(path)), u64::from(high) << 32 | u64::from(low))
    }

    /// Returns the file of a record; `None` if the whole file is the document.
    pub(crate) fn file_of_record(&self, number: u32) -> Option<&Arc<Path>> {
        let [path, high, low] = self.at[number as usize];
        Place::is_of_record(u64::from(high) << 32 | u64::from(low)).then(|| self.paths.get(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_found_in_memory_and_in_scratch_files() {
        let dir = tempfile::tempdir().unwrap();
        let text = |number: u32| match number % 3 {
            0 => format!("{}", number.wrapping_mul(0x9E37_79B9)),
            1 => format!("a key that begins as others do {}", number * 7919 % 4001),
            _ => "x".repeat((number * 31 % 997) as usize) + &number.to_string(),
        };
        let mut all: Vec<u32> = (100..4000).collect();
        all.sort_by_key(|&number| text(number));
        for bytes in [0, 1 << 16, usize::MAX] {
            let budget = MemoryBudget::new(dir.path(), bytes);
            let (mut keys, mut known) = (DocumentKeys::new(&budget), KnownKeys::new(&budget).unwrap());
            for number in 0..4000 {
                assert_eq!(known.find(&keys, text(number).as_bytes()), None);
                keys.push(text(number).as_bytes()).unwrap();
                known.insert(text(number).as_bytes(), number).unwrap();
            }
            assert_eq!(keys.bytes.is_on_disk(), bytes < usize::MAX);
            assert!((0..4000).all(|number| known.find(&keys, text(number).as_bytes()) == Some(number)));
            for memory in [0, 1 << 14, 1 << 24] {
                let by_key = ByKey::of(&keys, 100..4000, &budget, memory).unwrap();
                assert_eq!(by_key.documents[..], all, "{bytes} {memory}");
                assert!((0..).zip(&all).all(|(place, &document)| by_key.place(document) == place));
            }
        }
    }
}
