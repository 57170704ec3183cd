//! Columns of values of fixed width. They are in memory as long as the memory budget allows, then in a mapped scratch file.
//!
//! Columns store all data per document and per set, so the disk limits the number of documents, not the memory. The
//! pages of a mapped file do not count as memory of the process: when memory is short, the operating system writes them
//! to the file and reuses them.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use memmap2::MmapMut;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::mmap;
use crate::error::{Error, Result};

/// Minimum size of a scratch file, and minimum number of bytes by which it grows.
const LEAST: usize = 1 << 16;
/// A scratch file grows by at least its size divided by this number, so that it is remapped rarely. All blocks of the
/// file are allocated, so on average half of each growth is unused disk space.
const GROWTH: usize = 8;

/// A memory budget shared by several columns, and the directory of their scratch files.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    dir: PathBuf,
    /// The number of bytes of the budget that no column has reserved.
    left: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `bytes` bytes. Columns that exceed it are moved to unnamed files in `dir`.
    #[must_use]
    pub fn new(dir: &Path, bytes: usize) -> Self {
        Self(Arc::new(BudgetState { dir: dir.to_owned(), left: AtomicUsize::new(bytes) }))
    }

    /// Creates an unlimited budget, so that all columns remain in memory. The caller must limit their size.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(Path::new(""), usize::MAX)
    }

    /// Returns the directory of the scratch files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// Takes `bytes` from the budget and returns true. If fewer are left, takes none and returns false.
    fn take(&self, bytes: usize) -> bool {
        self.0.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.left.fetch_add(bytes, Relaxed);
    }
}

/// A value of a column, which can be converted to and from its bytes.
pub trait Value: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy> Value for T {}

/// A growable array of values. It dereferences to a slice of the values, which are in memory or in a mapped scratch file.
///
/// ```
/// use twindex::sys::column::{Column, MemoryBudget};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let budget = MemoryBudget::new(dir.path(), 1000);
/// let mut column = Column::new(&budget);
/// for value in 0..1_000_000_u32 {
///     column.push(value)?;
/// }
/// assert!(column.is_on_disk());
/// column[7] = 70;
/// assert_eq!((column.len(), column[7], column[999_999]), (1_000_000, 70, 999_999));
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct Column<T> {
    budget: MemoryBudget,
    /// The values; empty if they are in a scratch file.
    held: Vec<T>,
    /// The number of bytes taken from the budget.
    taken: usize,
    scratch: Option<ScratchMap>,
}

/// A map of an unnamed file. All disk blocks of the map are allocated in advance. So a full disk causes an error when
/// the file grows, and not SIGBUS during a write.
#[derive(Debug)]
struct ScratchMap {
    file: File,
    map: MmapMut,
    /// The number of bytes that contain values.
    used: usize,
}

impl<T: Value> Column<T> {
    /// Creates an empty column.
    #[must_use]
    pub fn new(budget: &MemoryBudget) -> Self {
        Self { budget: budget.clone(), held: Vec::new(), taken: 0, scratch: None }
    }

    /// Creates a column that contains `count` copies of `value`.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn filled(budget: &MemoryBudget, count: usize, value: T) -> Result<Self> {
        let mut column = Self::new(budget);
        column.resize(count, value)?;
        Ok(column)
    }

    /// Creates a column that contains these values.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn of(budget: &MemoryBudget, values: impl IntoIterator<Item = T>) -> Result<Self> {
        let mut column = Self::new(budget);
        values.into_iter().try_for_each(|value| column.push(value))?;
        Ok(column)
    }

    /// Returns true if the values are in a scratch file.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.scratch.is_some()
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<()> {
        if self.held.len() < self.held.capacity() {
            self.held.push(value); // capacity is 0 if the values are in a file
            return Ok(());
        }
        self.extend(std::slice::from_ref(&value))
    }

    /// Appends all of `values`.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn extend(&mut self, values: &[T]) -> Result<()> {
        if self.is_room_for(values.len()) {
            self.held.extend_from_slice(values);
            return Ok(());
        }
        let Some((scratch, start)) = self.enlarge(values.len())? else { return Ok(()) };
        scratch.map[start..scratch.used].copy_from_slice(values.as_bytes());
        Ok(())
    }

    /// Resizes the column to `count` values, either by appending copies of `value` or by truncation.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn resize(&mut self, count: usize, value: T) -> Result<()> {
        let Some(more) = count.checked_sub(self.len()) else {
            self.truncate(count);
            return Ok(());
        };
        if self.is_room_for(more) {
            self.held.resize(count, value);
        } else if self.enlarge(more)?.is_some() {
            self[count - more..].fill(value);
        }
        Ok(())
    }

    /// Removes each value that equals the previous one.
    pub fn dedup(&mut self)
    where
        T: PartialEq,
    {
        let (mut kept, values) = (0, &mut self[..]);
        for at in 0..values.len() {
            if kept == 0 || values[at] != values[kept - 1] {
                values[kept] = values[at];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Moves all values to a new column, returns it, and leaves this column empty.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let budget = self.budget.clone();
        std::mem::replace(self, Self::new(&budget))
    }

    /// Truncates the column to its first `count` values.
    pub fn truncate(&mut self, count: usize) {
        self.held.truncate(count);
        if let Some(scratch) = &mut self.scratch {
            scratch.used = scratch.used.min(count * size_of::<T>());
        }
    }

    /// Returns true if `more` further values fit into memory, and reserves memory for them.
    #[inline]
    fn is_room_for(&mut self, more: usize) -> bool {
        if self.scratch.is_some() {
            return false;
        }
        let wanted = self.held.len() + more;
        if wanted <= self.held.capacity() {
            return true;
        }
        // Double the capacity, or reserve exactly the required capacity if the budget does not allow doubling.
        for capacity in [wanted.max(2 * self.held.len()).max(LEAST_HELD), wanted] {
            let bytes = capacity.saturating_mul(size_of::<T>());
            if self.budget.take(bytes.saturating_sub(self.taken)) {
                self.held.reserve_exact(capacity - self.held.len());
                self.taken = self.taken.max(bytes);
                return true;
            }
        }
        false
    }

    /// Makes space in the scratch file for `more` further values; creates the file if there is none. Returns the file
    /// and the offset of the first new value, or `None` if `more` is 0.
    fn enlarge(&mut self, more: usize) -> Result<Option<(&mut ScratchMap, usize)>> {
        let dir = &self.budget.0.dir;
        let bytes = more * size_of::<T>();
        if bytes == 0 {
            return Ok(None);
        }
        if self.scratch.is_none() {
            let held = self.held.as_bytes();
            let mut scratch = ScratchMap::create(dir, held.len() + bytes)
                .map_err(|error| Error::io("create a scratch file in", dir, error))?;
            scratch.map[..held.len()].copy_from_slice(held);
            scratch.used = held.len();
            self.scratch = Some(scratch);
            self.held = Vec::new();
            self.budget.give_back(std::mem::take(&mut self.taken));
        }
        let Some(scratch) = &mut self.scratch else { return Ok(None) };
        let start = scratch.used;
        scratch.reserve(start + bytes).map_err(|error| Error::io("enlarge a scratch file in", dir, error))?;
        scratch.used = start + bytes;
        Ok(Some((scratch, start)))
    }
}

/// Minimum number of values for which memory is reserved, if the budget allows it.
const LEAST_HELD: usize = 64;

impl<T> Drop for Column<T> {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

impl<T: Value> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.scratch {
            None => &self.held,
            // The map starts at a page boundary, and all of its `used` bytes were written as values.
            Some(scratch) => <[T]>::ref_from_bytes(&scratch.map[..scratch.used]).unwrap_or(&[]),
        }
    }
}

impl<T: Value> DerefMut for Column<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.scratch {
            None => &mut self.held,
            Some(scratch) => <[T]>::mut_from_bytes(&mut scratch.map[..scratch.used]).unwrap_or(&mut []),
        }
    }
}

impl ScratchMap {
    /// Creates an unnamed file in `dir` and allocates at least `bytes` bytes.
    #[allow(clippy::disallowed_methods, reason = "scratch files are part of the seam")]
    fn create(dir: &Path, bytes: usize) -> std::io::Result<Self> {
        let file = tempfile::tempfile_in(dir)?;
        let bytes = bytes.max(LEAST);
        mmap::extend(&file, 0, bytes)?;
        Ok(Self { map: mmap::scratch(&file, bytes)?, file, used: 0 })
    }

    /// Extends the file and the map to at least `bytes` bytes.
    fn reserve(&mut self, bytes: usize) -> std::io::Result<()> {
        let before = self.map.len();
        if bytes <= before {
            return Ok(());
        }
        let bytes = bytes.max(before + (before / GROWTH).max(LEAST));
        mmap::extend(&self.file, before, bytes)?;
        self.map = mmap::scratch(&self.file, bytes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::spill::faults;
    use super::*;

    #[test]
    fn column_values_survive_the_move_from_memory_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [0, 4096, 100_000, usize::MAX] {
            let budget = MemoryBudget::new(dir.path(), bytes);
            let (mut column, mut wanted) = (Column::new(&budget), Vec::new());
            for i in 0..40_000_u64 {
                match i % 400 {
                    7 => {
                        column.extend(&[i; 30]).unwrap();
                        wanted.extend([i; 30]);
                    }
                    8 => {
                        column.truncate(wanted.len() - 20);
                        wanted.truncate(wanted.len() - 20);
                    }
                    9 => {
                        column.resize(wanted.len() + 11, i).unwrap();
                        wanted.resize(wanted.len() + 11, i);
                    }
                    _ => {
                        column.push(i).unwrap();
                        wanted.push(i);
                    }
                }
                let at = (i * 7919) as usize % wanted.len();
                column[at] += 1;
                wanted[at] += 1;
            }
            assert_eq!(column[..], wanted[..]);
            assert_eq!(column.is_on_disk(), bytes < usize::MAX);
            let of = Column::of(&budget, wanted.iter().copied()).unwrap();
            assert_eq!(of[..], wanted[..]);
            let filled = Column::filled(&budget, 70_000, 5_u8).unwrap();
            assert!(filled.len() == 70_000 && filled.iter().all(|&value| value == 5));
            column.iter_mut().for_each(|value| *value /= 1000);
            for value in &mut wanted {
                *value /= 1000;
            }
            column.dedup();
            wanted.dedup();
            assert!(column[..] == wanted[..] && wanted.len() > 40);
        }
    }

    #[test]
    fn scratch_file_is_little_larger_than_its_values() {
        let dir = tempfile::tempdir().unwrap();
        let mut column = Column::new(&MemoryBudget::new(dir.path(), 0));
        let mut maps = std::collections::BTreeSet::new();
        for value in 0..1_u64 << 20 {
            column.push(value).unwrap();
            let (map, used) = (column.scratch.as_ref().unwrap().map.len(), size_of_val(&column[..]));
            assert!(map <= used + (used / 8).max(64 << 10), "{map} for {used}");
            maps.insert(map);
        }
        assert!(maps.len() < 40, "{maps:?}");
        column.extend(&vec![7; 1 << 20]).unwrap();
        assert_eq!(column.scratch.as_ref().unwrap().map.len(), 2 << 23);
    }

    #[test]
    fn columns_never_exceed_their_shared_budget_and_release_it() {
        let dir = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(dir.path(), 10_000);
        let left = || budget.0.left.load(Relaxed);
        let mut columns: Vec<Column<u32>> = (0..4).map(|_| Column::new(&budget)).collect();
        for i in 0..1000 {
            for column in &mut columns {
                column.push(i).unwrap();
                assert!(column.held.capacity() * 4 <= column.taken);
            }
            let taken: usize = columns.iter().map(|column| column.taken).sum();
            assert_eq!(taken + left(), 10_000);
        }
        let on_disk = columns.iter().filter(|column| column.is_on_disk()).count();
        assert!((1..4).contains(&on_disk), "{on_disk}");
        drop(columns);
        assert_eq!(left(), 10_000);
        assert!(!Column::filled(&MemoryBudget::unlimited(), 1 << 20, 1_u64).unwrap().is_on_disk());
    }

    #[test]
    fn full_disk_is_an_error_and_keeps_earlier_values() {
        let dir = tempfile::tempdir().unwrap();
        let mut column = Column::new(&MemoryBudget::new(dir.path(), 0));
        faults::leave_space(1 << 20);
        let error = (0..1_u64 << 20).find_map(|i| column.push(i).err());
        faults::leave_space(u64::MAX);
        match error.unwrap() {
            Error::Io { op: "enlarge a scratch file in", path, source } => {
                assert_eq!((&*path, source.kind()), (dir.path(), std::io::ErrorKind::StorageFull));
            }
            other => panic!("{other:?}"),
        }
        assert!(column.len() > 10_000 && column.iter().zip(0..).all(|(&value, i)| value == i));
        column.resize(1 << 18, 3).unwrap();
        assert_eq!(column[(1 << 18) - 1], 3);

        let gone = dir.path().join("gone");
        let error = Column::new(&MemoryBudget::new(&gone, 0)).push(1_u8).unwrap_err();
        assert!(matches!(error, Error::Io { op: "create a scratch file in", path, .. } if path == gone));
    }
}
