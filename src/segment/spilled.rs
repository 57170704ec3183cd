//! Columns that spill to a scratch file when they exceed their memory budget.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use super::output::SegmentOutput;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::table::Columns;
use crate::sys::Spill;

/// A memory budget, the directory of the scratch files for data that exceeds the budget, and a number of threads.
#[derive(Clone, Copy, Debug)]
pub struct SpillBudget<'a> {
    memory: usize,
    dir: &'a Path,
    threads: usize,
    /// Number of bytes for sections that are built at the same time.
    sections: usize,
    cancel: Option<&'a Cancel>,
}

impl<'a> SpillBudget<'a> {
    /// Creates a budget of `memory` bytes. Scratch files are created on the file system of `dir`. They have no names,
    /// and their space is freed when they are closed or the process ends.
    #[must_use]
    pub fn new(memory: usize, dir: &'a Path) -> Self {
        Self { memory, dir, threads: 1, sections: memory / 2, cancel: None }
    }

    /// Returns an unlimited budget, which needs no scratch files. Sections are built at the same time only if they take at
    /// most `sections` bytes together.
    pub(crate) fn unlimited(sections: usize) -> Self {
        Self { memory: usize::MAX, dir: Path::new(""), threads: 1, sections, cancel: None }
    }

    /// Sets the number of threads (default 1, at least 1). It does not affect what is built.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// Ends the build with [`Error::Cancelled`] after `cancel` was requested. Checked before each 2 MiB of the file (512
    /// pages) and each 65,536 numbers of a column, such as the ordinals of merged documents.
    #[must_use]
    pub fn until(self, cancel: &'a Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// Returns an error if the build was cancelled.
    pub(super) fn check(self) -> Result<()> {
        self.cancel.map_or(Ok(()), Cancel::check)
    }

    pub(super) fn cancel(self) -> Option<Cancel> {
        self.cancel.cloned()
    }

    pub(super) fn threads(self) -> usize {
        self.threads
    }

    /// Returns the number of sections that can be built at the same time, if each takes this number of bytes; 0 if even one
    /// takes too many.
    pub(super) fn sections_at_once(self, bytes: u64) -> usize {
        let fit = (self.sections as u64 / bytes.max(1)) as usize;
        self.threads.min(if self.memory == usize::MAX { fit.max(1) } else { fit })
    }

    /// Returns the number of bytes in one of `parts` equal shares of the budget.
    pub(super) fn share(self, parts: usize) -> usize {
        self.memory / parts
    }

    pub(super) fn spill(self) -> Result<Spill> {
        Spill::create(self.dir).map_err(|e| Error::io("create a scratch file in", self.dir, e))
    }

    pub(super) fn append(self, spill: &mut Spill, bytes: &[u8]) -> Result<u64> {
        spill.append(bytes).map_err(|e| Error::io("write a scratch file in", self.dir, e))
    }

    pub(super) fn read(self, spill: &Spill, place: u64, length: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        let read = spill.read_exact_at(&mut bytes, place);
        read.map_err(|e| Error::io("read a scratch file in", self.dir, e)).map(|()| bytes)
    }
}

/// An item of a column. It has a 64-bit key, and the order of items is first the order of their keys.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    /// The number of bytes of an encoded item in a scratch file.
    const BYTES: usize;
    /// Returns the key by which items are sorted.
    fn key(self) -> u64;
    /// Appends the encoded item to `bytes`.
    fn put(self, bytes: &mut Vec<u8>);
    /// Decodes an item from the start of `bytes`.
    fn take(bytes: &[u8]) -> Self;
}

/// Returns the first `N` bytes as an array.
fn head<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut head = [0; N];
    head.copy_from_slice(&bytes[..N]);
    head
}

impl Item for u32 {
    const BYTES: usize = 4;
    fn key(self) -> u64 {
        self.into()
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn take(bytes: &[u8]) -> Self {
        Self::from_le_bytes(head(bytes))
    }
}

impl Item for u64 {
    const BYTES: usize = 8;
    #[inline(always)]
    fn key(self) -> u64 {
        self
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn take(bytes: &[u8]) -> Self {
        Self::from_le_bytes(head(bytes))
    }
}

/// A pair: a 64-bit key in the high bits, and a 32-bit number in the low 32 bits. Pairs are compared by a single
/// integer comparison.
impl Item for u128 {
    const BYTES: usize = 12;
    #[inline(always)]
    fn key(self) -> u64 {
        (self >> 32) as u64
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes()[..Self::BYTES]);
    }
    fn take(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        all[..Self::BYTES].copy_from_slice(&bytes[..Self::BYTES]);
        Self::from_le_bytes(all)
    }
}

/// Returns the pair of a key and a number.
#[inline(always)]
pub(super) fn pair(key: u64, number: u32) -> u128 {
    u128::from(key) << 32 | u128::from(number)
}

/// Decodes all items of `bytes` and appends them to `items`.
pub(super) fn decode<T: Item>(bytes: &[u8], items: &mut Vec<T>) {
    items.extend(bytes.chunks_exact(T::BYTES).map(T::take));
}

/// Number of items that are read or written at once when a column has a scratch file.
const CHUNK: usize = 1 << 12;

/// Number of pushed items after which a column checks whether the build was cancelled.
const CHECKED: usize = 1 << 16;

/// A column of items, in the order in which they were pushed.
#[derive(Debug)]
pub(super) struct SpillColumn<'r, T> {
    budget: SpillBudget<'r>,
    max: usize,
    /// The last items, which are not in the scratch file. If there is no scratch file, all items.
    memory: Vec<T>,
    spill: Option<Spill>,
    bytes: Vec<u8>,
}

impl<'r, T: Item> SpillColumn<'r, T> {
    /// Creates an empty column that uses at most `bytes` bytes of memory.
    pub(super) fn new(budget: SpillBudget<'r>, bytes: usize) -> Self {
        let max = (bytes / size_of::<T>()).max(1);
        Self { budget, max, memory: Vec::new(), spill: None, bytes: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) -> Result<()> {
        if self.memory.len() == self.max {
            self.spill()?;
        }
        if self.memory.len().is_multiple_of(CHECKED) {
            self.budget.check()?;
        }
        self.memory.push(item);
        Ok(())
    }

    /// Pushes all of `items`.
    pub(super) fn extend(&mut self, mut items: &[T]) -> Result<()> {
        while !items.is_empty() {
            if self.memory.len() == self.max {
                self.spill()?;
            }
            let (now, later) = items.split_at(items.len().min(self.max - self.memory.len()));
            self.memory.extend_from_slice(now);
            items = later;
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            self.spill = Some(self.budget.spill()?);
        }
        if let Some(spill) = &mut self.spill {
            for chunk in self.memory.chunks(CHUNK) {
                self.bytes.clear();
                for item in chunk {
                    item.put(&mut self.bytes);
                }
                self.budget.append(spill, &self.bytes)?;
            }
        }
        self.max = self.max.min(CHUNK);
        self.memory.clear();
        self.memory.shrink_to(self.max);
        Ok(())
    }

    fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.len() / T::BYTES as u64)
    }

    pub(super) fn len(&self) -> u64 {
        self.spilled() + self.memory.len() as u64
    }

    pub(super) fn clear(&mut self) {
        self.memory.clear();
        self.spill = None;
    }

    /// Returns the items at the indices `range`, which must not exceed the column.
    pub(super) fn get(&self, range: Range<u64>) -> Result<Cow<'_, [T]>> {
        let spilled = self.spilled();
        if range.start >= spilled {
            return Ok(Cow::Borrowed(
                &self.memory[(range.start - spilled) as usize..(range.end - spilled) as usize],
            ));
        }
        let mut items = Vec::with_capacity((range.end - range.start) as usize);
        let end = range.end.min(spilled);
        let mut start = range.start;
        while let (Some(spill), true) = (&self.spill, start < end) {
            let count = (end - start).min(CHUNK as u64);
            let bytes = self.budget.read(spill, start * T::BYTES as u64, count as u32 * T::BYTES as u32)?;
            decode(&bytes, &mut items);
            start += count;
        }
        items.extend_from_slice(&self.memory[..range.end.saturating_sub(spilled) as usize]);
        Ok(Cow::Owned(items))
    }

    /// Returns all items in order and consumes the column.
    pub(super) fn into_values(self) -> ChunkedValues<'r, T>
    where
        T: 'r,
    {
        if self.spill.is_none() {
            return ChunkedValues::from(self.memory);
        }
        let mut next = 0;
        ChunkedValues::from_chunks(move || {
            let range = next..self.len().min(next + CHUNK as u64);
            next = range.end;
            if range.is_empty() { Ok(None) } else { self.get(range).map(|items| Some(items.into_owned())) }
        })
    }

    /// Returns all items in order.
    pub(super) fn values(&self) -> ChunkedValues<'_, T> {
        if self.spill.is_none() {
            return ChunkedValues::of(&self.memory);
        }
        let mut next = 0;
        ChunkedValues::from_chunks(move || {
            let range = next..self.len().min(next + CHUNK as u64);
            next = range.end;
            if range.is_empty() { Ok(None) } else { self.get(range).map(|items| Some(items.into_owned())) }
        })
    }
}

/// A sequence of items that is read one slice at a time.
pub(super) trait SliceSource<T> {
    /// Returns the next slice, which is never empty, or `None` at the end.
    fn next_slice(&mut self) -> Result<Option<&[T]>>;
}

/// A function that returns the next chunk, or `None` at the end.
type ChunkSource<'a, T> = Box<dyn FnMut() -> Result<Option<Vec<T>>> + 'a>;

/// A sequence of items that are in memory, or that a function produces chunk by chunk.
pub(super) struct ChunkedValues<'a, T: Item> {
    chunk: Cow<'a, [T]>,
    at: usize,
    more: Option<ChunkSource<'a, T>>,
}

impl<T: Item> From<Vec<T>> for ChunkedValues<'_, T> {
    fn from(items: Vec<T>) -> Self {
        Self { chunk: Cow::Owned(items), at: 0, more: None }
    }
}

impl<'a, T: Item> ChunkedValues<'a, T> {
    pub(super) fn of(items: &'a [T]) -> Self {
        Self { chunk: Cow::Borrowed(items), at: 0, more: None }
    }

    pub(super) fn from_chunks(more: impl FnMut() -> Result<Option<Vec<T>>> + 'a) -> Self {
        Self { chunk: Cow::Borrowed(&[]), at: 0, more: Some(Box::new(more)) }
    }

    /// Loads the next chunk when all items of the current one have been read. Returns false at the end of the sequence.
    fn refill(&mut self) -> Result<bool> {
        while self.at >= self.chunk.len() {
            let Some(more) = &mut self.more else { return Ok(false) };
            let next = more();
            match next {
                Ok(Some(items)) => (self.chunk, self.at) = (Cow::Owned(items), 0),
                Ok(None) => {
                    self.more = None;
                    return Ok(false);
                }
                Err(error) => {
                    self.more = None;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Calls `take` with at most `max` of the next items. Does not call `take` if no items remain.
    pub(super) fn take_some(&mut self, max: usize, take: impl FnOnce(&[T])) -> Result<()> {
        if self.refill()? {
            let end = self.chunk.len().min(self.at + max);
            take(&self.chunk[self.at..end]);
            self.at = end;
        }
        Ok(())
    }
}

impl<T: Item> SliceSource<T> for ChunkedValues<'_, T> {
    fn next_slice(&mut self) -> Result<Option<&[T]>> {
        if !self.refill()? {
            return Ok(None);
        }
        let start = std::mem::replace(&mut self.at, self.chunk.len());
        Ok(Some(&self.chunk[start..]))
    }
}

impl<T: Item> Iterator for ChunkedValues<'_, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        if self.at >= self.chunk.len() {
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        let item = self.chunk[self.at];
        self.at += 1;
        Some(Ok(item))
    }
}

/// Collects the parts of a section. A part can be written only when all parts before it are complete, because their
/// lengths determine its offset.
#[derive(Debug)]
pub(super) struct SpilledParts<'r> {
    budget: SpillBudget<'r>,
    max: usize,
    held: usize,
    list: Vec<SpilledPart>,
    spill: Option<Spill>,
}

#[derive(Clone, Debug, Default)]
struct SpilledPart {
    /// The offset and the length in bytes of each chunk of the part in the scratch file.
    places: Vec<(u64, u32)>,
    /// The last bytes of the part, which are not in the scratch file.
    bytes: Vec<u8>,
}

/// Maximum number of bytes of a chunk in the scratch file.
const COPIED: usize = 1 << 18;

impl<'r> SpilledParts<'r> {
    /// Creates an empty list of parts that uses at most `max` bytes of memory.
    pub(super) fn new(budget: SpillBudget<'r>, max: usize) -> Self {
        Self { budget, max, held: 0, list: Vec::new(), spill: None }
    }

    /// Clears all parts, but keeps their memory for reuse.
    pub(super) fn clear(&mut self) {
        for part in &mut self.list {
            part.places.clear();
            part.bytes.clear();
        }
        self.held = 0;
        self.spill = None;
    }

    /// Writes the parts one after the other. If `aligned` is true, aligns each part as [`Columns`] specifies.
    pub(super) fn write(&self, out: &mut SegmentOutput, aligned: bool) -> Result<()> {
        for part in self.list.iter().filter(|part| !part.places.is_empty() || !part.bytes.is_empty()) {
            if aligned {
                out.align()?;
            }
            for &(place, length) in &part.places {
                if let Some(spill) = &self.spill {
                    out.put(&self.budget.read(spill, place, length)?)?;
                }
            }
            out.put(&part.bytes)?;
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            self.spill = Some(self.budget.spill()?);
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        for part in &mut self.list {
            for bytes in part.bytes.chunks(COPIED) {
                part.places.push((self.budget.append(spill, bytes)?, bytes.len() as u32));
            }
            part.bytes = Vec::new();
        }
        self.held = 0;
        Ok(())
    }
}

impl Default for SpilledParts<'_> {
    fn default() -> Self {
        Self::new(SpillBudget::unlimited(0), usize::MAX)
    }
}

impl Columns for SpilledParts<'_> {
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()> {
        if self.list.len() <= part {
            self.list.resize_with(part + 1, SpilledPart::default);
        }
        self.list[part].bytes.extend_from_slice(bytes);
        self.held += bytes.len();
        if self.held > self.max { self.spill() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_returns_its_items_from_memory_and_from_a_scratch_file() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<u128> =
            (0..20_000).map(|i| pair(u64::wrapping_mul(i, 0x0123_4567_89AB_CDEF), i as u32)).collect();
        for memory in [usize::MAX, 200_000, 64, 0] {
            let mut column = SpillColumn::new(SpillBudget::new(memory, dir.path()), memory);
            for round in 0..2 {
                all[..5000].iter().try_for_each(|&item| column.push(item)).unwrap();
                all[5000..].chunks(1777).try_for_each(|items| column.extend(items)).unwrap();
                assert_eq!(column.len(), 20_000);
                assert!(column.values().map(Result::unwrap).eq(all.iter().copied()), "{memory}, {round}");
                for range in [0..0, 0..20_000, 3..9000, 8191..8193, 19_990..20_000, 20_000..20_000] {
                    let found = column.get(range.clone()).unwrap();
                    assert_eq!(*found, all[range.start as usize..range.end as usize], "{memory}");
                }
                column.clear();
                assert_eq!((column.len(), column.values().count()), (0, 0));
            }
        }
    }
}
