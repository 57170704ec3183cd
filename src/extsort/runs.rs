//! Sorted runs in scratch files.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::merge::{Merge, Source};
use super::record::Record;
use crate::error::{Error, Result};
use crate::sys::Spill;

/// Minimum size of a run's read buffer in bytes.
const BUFFER_MIN: usize = 192;
/// Maximum size of a run's read buffer in bytes. Larger buffers are not faster.
const BUFFER_MAX: usize = 1 << 20;

/// Number of bytes that are buffered before they are appended to the scratch file.
const WRITTEN: usize = 1 << 12;

/// Descriptions of the failed operations in errors of scratch files. They end with "in", because the directory follows
/// in the error message.
#[derive(Clone, Copy, Debug)]
pub struct WordRecord {
    /// Creating a scratch file.
    pub create: &'static str,
    /// Writing to a scratch file.
    pub write: &'static str,
    /// Reading from a scratch file.
    pub read: &'static str,
}

impl Default for WordRecord {
    fn default() -> Self {
        Self {
            create: "create a scratch file in",
            write: "write a scratch file in",
            read: "read a scratch file in",
        }
    }
}

/// Sorted runs of records, stored in unnamed files in a directory.
///
/// Records are appended to the current run until the caller ends the run. Once a level has `fan_in` runs, they are
/// merged into one run of the next level, which is stored in another file, and are deleted. So each level has fewer
/// than `fan_in` runs.
#[derive(Debug)]
pub struct Runs<T> {
    dir: PathBuf,
    words: WordRecord,
    fan_in: usize,
    memory: usize,
    levels: Vec<RunLevel>,
    of: PhantomData<fn() -> T>,
}

/// The runs of one level, which are stored one after the other in a file.
#[derive(Debug, Default)]
struct RunLevel {
    spill: Option<Spill>,
    /// The start and the end offset of each run in the file.
    places: Vec<(u64, u64)>,
    /// The last bytes of the current run, which are not written to the file yet.
    bytes: Vec<u8>,
}

impl RunLevel {
    #[inline]
    fn put<T: Record>(&mut self, record: &T, dir: &Path, words: WordRecord) -> Result<()> {
        record.put(&mut self.bytes);
        if self.bytes.len() < WRITTEN { Ok(()) } else { self.write(dir, words) }
    }

    /// Writes the buffered bytes to the scratch file.
    #[cold]
    fn write(&mut self, dir: &Path, words: WordRecord) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(dir).map_err(|e| Error::io(words.create, dir, e))?),
        };
        spill.append(&self.bytes).map_err(|e| Error::io(words.write, dir, e))?;
        self.bytes.clear();
        Ok(())
    }

    fn end_run(&mut self, dir: &Path, words: WordRecord) -> Result<()> {
        if !self.bytes.is_empty() {
            self.write(dir, words)?;
        }
        let start = self.places.last().map_or(0, |place| place.1);
        let end = self.spill.as_ref().map_or(0, Spill::len);
        if start < end {
            self.places.push((start, end));
        }
        Ok(())
    }

    fn readers<'a, T: Record>(
        &'a self,
        dir: &'a Path,
        words: WordRecord,
        size: usize,
    ) -> impl Iterator<Item = Run<'a, T>> {
        self.spill.iter().flat_map(move |spill| {
            let run = move |&(at, end): &(u64, u64)| Run {
                dir,
                words,
                spill,
                at,
                end,
                size,
                bytes: Vec::new(),
                used: 0,
                of: PhantomData,
            };
            self.places.iter().map(run)
        })
    }
}

impl<T: Record> Runs<T> {
    /// Creates an empty set of runs. `fan_in` is the number of runs that are merged into one run of the next level; a value
    /// below 2 is treated as 2. The read buffers of the runs share `memory` bytes, but each buffer has at least 192 bytes.
    #[must_use]
    pub fn new(dir: &Path, words: WordRecord, fan_in: usize, memory: usize) -> Self {
        Self {
            dir: dir.to_owned(),
            words,
            fan_in: fan_in.max(2),
            memory,
            levels: vec![RunLevel::default()],
            of: PhantomData,
        }
    }

    /// Appends a record to the current run. It must not be less than the previous record of the same run.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    #[inline]
    pub fn put(&mut self, record: &T) -> Result<()> {
        self.levels[0].put(record, &self.dir, self.words)
    }

    /// Ends the current run. Has no effect if the run has no records.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn end_run(&mut self) -> Result<()> {
        let mut level = 0;
        while let Some(ended) = self.levels.get_mut(level) {
            ended.end_run(&self.dir, self.words)?;
            if ended.places.len() < self.fan_in {
                break;
            }
            let full = std::mem::take(ended);
            level += 1;
            if self.levels.len() == level {
                self.levels.push(RunLevel::default());
            }
            let (next, dir, words) = (&mut self.levels[level], &self.dir, self.words);
            let readers = full.readers(dir, words, buffer(self.memory, full.places.len()));
            combine(readers, |record: T| next.put(&record, dir, words))?;
        }
        Ok(())
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.levels.iter().map(|level| level.places.len()).sum()
    }

    /// Returns true if there are no runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of levels, which is at least 1.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns a reader for each run, in the order in which the runs were written.
    pub fn readers(&self) -> impl Iterator<Item = Run<'_, T>> {
        let size = buffer(self.memory, self.len());
        self.levels.iter().rev().flat_map(move |level| level.readers(&self.dir, self.words, size))
    }
}

/// Returns the size in bytes of each read buffer if `runs` runs share `memory` bytes.
fn buffer(memory: usize, runs: usize) -> usize {
    (memory / runs.max(1)).clamp(BUFFER_MIN, BUFFER_MAX)
}

/// Merges ascending sources and calls `each` with each record. Records that [absorb](Record::absorb) each other are combined
/// into one.
///
/// # Errors
/// The errors of the sources and of `each`.
pub fn combine<T: Record, S: Source<Item = T>, E: From<Error>>(
    sources: impl IntoIterator<Item = S>,
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut last: Option<T> = None;
    // A record can be passed to `each` once it does not absorb the next record.
    let mut hand_on = |record: T| {
        if !last.as_mut().is_some_and(|last| last.absorb(&record))
            && let Some(complete) = last.replace(record)
        {
            return each(complete);
        }
        Ok(())
    };
    let mut sources: Vec<S> = sources.into_iter().collect();
    if let [one, two] = &mut sources[..] {
        combine_two(one, two, hand_on)?;
    } else {
        let mut merge = Merge::new(sources, T::cmp);
        while let Some(record) = merge.take()? {
            hand_on(record)?;
        }
    }
    last.map_or(Ok(()), each)
}

/// Merges two sources with less work per record than [`Merge`]. Two sources, the results of two threads, are the most
/// common case, and [`Merge`] takes 5 % longer for them.
fn combine_two<T: Record, S: Source<Item = T>, E: From<Error>>(
    one: &mut S,
    two: &mut S,
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut first, mut second) = (None, None);
    one.advance(&mut first)?;
    two.advance(&mut second)?;
    while let (Some(a), Some(b)) = (&first, &second) {
        let (source, head) = if a <= b { (&mut *one, &mut first) } else { (&mut *two, &mut second) };
        let record = head.take();
        source.advance(head)?;
        record.map_or(Ok(()), &mut each)?;
    }
    let (rest, mut head) = if first.is_some() { (one, first) } else { (two, second) };
    while let Some(record) = head.take() {
        rest.advance(&mut head)?;
        each(record)?;
    }
    Ok(())
}

/// A reader of a run.
#[derive(Debug)]
pub struct Run<'a, T> {
    dir: &'a Path,
    words: WordRecord,
    spill: &'a Spill,
    at: u64,
    end: u64,
    /// The number of bytes per read.
    size: usize,
    bytes: Vec<u8>,
    used: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Record> Run<'_, T> {
    /// Returns the size of the read buffer in bytes.
    #[cfg(test)]
    pub(super) fn buffer(&self) -> usize {
        self.size
    }

    /// Reads from the file until the buffer has at least `count` unread bytes. Returns false at the end of the run.
    #[cold]
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        let left = self.bytes.len() - self.used;
        let more = (self.end - self.at).min((count - left).max(self.size) as u64) as usize;
        if left + more < count {
            // A run ends with a whole record, so a partial record at its end is an error.
            return if left + more == 0 { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.resize(left + more, 0);
        self.spill.read_exact_at(&mut self.bytes[left..], self.at)?;
        self.at += more as u64;
        Ok(true)
    }

    #[inline(always)]
    fn read(&mut self, record: &mut Option<T>) -> io::Result<()> {
        if self.bytes.len() - self.used < T::HEAD && !self.fill(T::HEAD)? {
            *record = None;
            return Ok(());
        }
        let length = T::HEAD + T::tail(&self.bytes[self.used..self.used + T::HEAD]);
        if self.bytes.len() - self.used < length {
            self.fill(length)?;
        }
        T::take(&self.bytes[self.used..self.used + length], record);
        self.used += length;
        Ok(())
    }
}

impl<T: Record> Source for Run<'_, T> {
    type Item = T;

    #[inline]
    fn advance(&mut self, head: &mut Option<T>) -> Result<()> {
        self.read(head).map_err(|e| Error::io(self.words.read, self.dir, e))
    }
}

/// A reader of ascending records that are in memory or in a run on disk.
#[derive(Debug)]
pub enum RunReader<'a, T> {
    /// Records in memory.
    Held(std::slice::Iter<'a, T>),
    /// Records in a scratch file.
    Spilled(Run<'a, T>),
}

impl<T: Record + Copy> Source for RunReader<'_, T> {
    type Item = T;

    #[inline(always)]
    fn advance(&mut self, head: &mut Option<T>) -> Result<()> {
        match self {
            Self::Held(records) => {
                *head = records.next().copied();
                Ok(())
            }
            Self::Spilled(run) => run.advance(head),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    /// A record that is sorted by its text. The number does not affect the order.
    #[derive(Clone, Debug)]
    struct TextRecord(Vec<u8>, u32);

    impl PartialEq for TextRecord {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Eq for TextRecord {}

    impl Ord for TextRecord {
        fn cmp(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for TextRecord {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Record for TextRecord {
        const HEAD: usize = 6;

        fn tail(head: &[u8]) -> usize {
            usize::from(u16::from_le_bytes([head[4], head[5]]))
        }

        fn put(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.1.to_le_bytes());
            bytes.extend_from_slice(&(self.0.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&self.0);
        }

        fn take(bytes: &[u8], record: &mut Option<Self>) {
            let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            *record = Some(Self(bytes[6..].to_vec(), number));
        }

        fn absorb(&mut self, _: &Self) -> bool {
            false
        }
    }

    proptest! {
        /// The texts include empty ones and ones longer than the read buffer.
        #[test]
        fn merge_of_text_runs_equals_a_stable_sort(
            texts in proptest::collection::vec((0..6_u8, prop_oneof![0..3_usize, 180..700_usize]), 0..200),
            (length, fan_in) in (1..30_usize, 2..5_usize),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut all: Vec<TextRecord> =
                (0..).zip(&texts).map(|(number, &(byte, length))| TextRecord(vec![byte; length], number)).collect();
            let mut runs = Runs::new(dir.path(), WordRecord::default(), fan_in, 0);
            for run in all.chunks(length) {
                let mut run = run.to_vec();
                run.sort();
                run.iter().try_for_each(|text| runs.put(text)).unwrap();
                runs.end_run().unwrap();
            }
            prop_assert!(runs.len() < fan_in * runs.levels());
            let mut merged = Vec::new();
            combine(runs.readers(), |text: TextRecord| {
                merged.push(text);
                Ok::<_, Error>(())
            })
            .unwrap();
            all.sort();
            prop_assert_eq!(merged.len(), all.len());
            for (found, expected) in merged.iter().zip(&all) {
                prop_assert_eq!((&found.0, found.1), (&expected.0, expected.1));
            }
        }
    }
}
