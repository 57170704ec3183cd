//! Computes spanning forests of pairs of keys, in bounded memory. The workers of a cluster reduce their pairs to forests;
//! the forests are merged into one, which gives the clusters.
//!
//! The forest of a set of pairs consists of stars: the root of each connected component is its smallest key, with an
//! edge to each other key. It depends only on the components, not on the order or repetition of pairs, or their
//! distribution over files. The forest of the edges of a forest is the same forest, and the forest of the edges of
//! several forests is the forest of all their pairs. A forest has fewer edges than keys, whatever the number of pairs.
//!
//! Steps:
//!
//! 1. Pairs are added to a table of keys with a union-find structure. When the table is full, its components are written to
//!    a scratch file as a *run*: all keys in order, each with the number of its component. Then the table is emptied.
//! 2. If no run was written, the table holds the result. Otherwise all runs are merged by key. This assigns ranks to the
//!    distinct keys, and turns each component of a run into a set of ranks.
//! 3. The components of these sets are found with a union-find structure over ranks, 4 bytes per key, or with `stars` if
//!    that exceeds the memory.
//!
//! The method of alternating large and small stars is from Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii,
//! *Connected Components in Map-Reduce and Beyond* (2014), sections 3 and 4. In the paper, each step is a round of a
//! compute cluster; here, each step is a sort.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::clusters::forest::Forest;
use crate::work::runs::{Sorted, Sorter};
use twindex::error::{Error, Result};
use twindex::extsort::{Merge, Record, Runs, WordRecord};
use twindex::key::KEY_BYTES_MAX;
use twindex::sys::Spill;

/// Minimum memory in bytes. With less, runs would be shorter than their read buffers.
const LEAST: usize = 1 << 16;
/// Number of bytes that a key takes in the table in addition to its text: two to four slots, the end of the key, its
/// parent, and its position in the sort order.
const KEY_COST: usize = 4 * size_of::<u32>() + size_of::<usize>() + 2 * size_of::<u32>();
/// Minimum memory in bytes for the read buffers of runs. Runs are merged early so that each run has a buffer of at least 16
/// KiB.
const BUFFERS_LEAST: usize = 1 << 20;
const BUFFER: usize = 1 << 14;
/// Bytes of a run's record before the key: the component and the length of the key.
const HEAD: usize = 8 + 2;

/// A key of a run, and the number of its component.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    key: Vec<u8>,
    component: u64,
}

impl Record for Member {
    const HEAD: usize = HEAD;

    fn tail(head: &[u8]) -> usize {
        usize::from(u16::from_le_bytes([head[8], head[9]]))
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.component.put(bytes);
        bytes.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.key);
    }

    fn take(bytes: &[u8], record: &mut Option<Self>) {
        let (head, key) = bytes.split_at(HEAD);
        let mut component = None;
        u64::take(&head[..8], &mut component);
        let member = record.get_or_insert_default();
        member.key.clear();
        member.key.extend_from_slice(key);
        member.component = component.unwrap_or_default();
    }
}

/// Collects pairs of keys in any order, in about `memory` bytes, and beyond that in unnamed files in a directory.
///
/// ```
/// use twindex_join::SpanningForest;
///
/// # let dir = tempfile::tempdir().unwrap();
/// let mut forest = SpanningForest::new(dir.path(), 1 << 20);
/// for (a, b) in [("d", "c"), ("b", "c"), ("x", "y"), ("c", "d")] {
///     forest.join(a.as_bytes(), b.as_bytes())?;
/// }
/// let mut edges = Vec::new();
/// forest.finish()?.for_each(|root, key| {
///     edges.push(format!("{}-{}", str::from_utf8(root).unwrap(), str::from_utf8(key).unwrap()));
///     Ok::<_, twindex::Error>(())
/// })?;
/// assert_eq!(edges, ["b-c", "b-d", "x-y"]);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct SpanningForest {
    dir: PathBuf,
    memory: usize,
    table: Table,
    runs: Runs<Member>,
    /// Number of components in all earlier runs.
    components: u64,
}

impl SpanningForest {
    /// Creates an empty forest. Uses about `memory` bytes, at least 64 KiB plus the minimum memory of a [`Sorter`].
    #[must_use]
    pub fn new(dir: &Path, memory: usize) -> Self {
        // Makes errors of reading a run read like the errors that `merge` reports for its scratch files.
        let words = WordRecord { read: "use a scratch file in", ..WordRecord::default() };
        let buffers = (memory / 4).max(BUFFERS_LEAST);
        Self {
            dir: dir.to_owned(),
            memory: memory.max(LEAST),
            table: Table::default(),
            runs: Runs::new(dir, words, buffers / BUFFER, buffers),
            components: 0,
        }
    }

    /// Adds a pair. A key paired only with itself forms a component of one key.
    ///
    /// # Errors
    /// [`Error::Limit`] for a key of more than 65,535 bytes, [`Error::Io`] from the scratch file.
    pub fn join(&mut self, a: &[u8], b: &[u8]) -> Result<()> {
        for key in [a, b] {
            if key.len() > KEY_BYTES_MAX {
                let (limit, found) = (KEY_BYTES_MAX as u64, key.len() as u64);
                return Err(Error::Limit { what: "bytes of a key", limit, found });
            }
        }
        // A table that grows is copied. So it may take only a third of the memory, which leaves space for the copy.
        if self.table.bytes() > self.memory / 3 {
            self.write_run()?;
        }
        let (a, b) = (self.table.number(a), self.table.number(b));
        self.table.forest.join(a, b);
        Ok(())
    }

    /// Writes the components of the table as a run, and empties the table.
    #[cold]
    fn write_run(&mut self) -> Result<()> {
        let mut table = std::mem::take(&mut self.table);
        let order = table.order();
        let mut member = Member::default();
        for &number in &order {
            member.component = self.components + u64::from(table.forest.root(number));
            member.key.clear();
            member.key.extend_from_slice(table.key(number));
            self.runs.put(&member)?;
        }
        self.runs.end_run()?;
        self.components += order.len() as u64;
        Ok(())
    }

    /// Ends the input and returns the forest.
    ///
    /// # Errors
    /// [`Error::Io`] from scratch files; [`Error::Limit`] for more than 2^32 - 1 distinct keys.
    pub fn finish(mut self) -> Result<Stars> {
        if self.runs.is_empty() {
            return self.finish_held();
        }
        self.write_run()?;
        let (dir, memory) = (self.dir.clone(), self.memory);
        let (keys, sets) = self.merge()?;
        let members = if keys.count() as usize <= memory / 4 / size_of::<u32>() {
            let mut forest = Forest::new(keys.count());
            for_each_edge(&sets, |a, b| {
                forest.join(a, b);
                Ok(())
            })?;
            drop(sets);
            let mut members = Sorter::new(&dir, memory / 4);
            (0..keys.count()).try_for_each(|rank| match forest.root(rank) {
                root if root == rank => Ok(()),
                root => members.push(edge(root, rank)),
            })?;
            members.finish()?
        } else {
            let mut edges = Sorter::new(&dir, memory / 4);
            for_each_edge(&sets, |a, b| edges.push(edge(b, a)))?;
            drop(sets);
            stars(edges.finish()?, &dir, memory / 4)?
        };
        Stars::new(keys, members)
    }

    fn finish_held(mut self) -> Result<Stars> {
        let order = self.table.order();
        let mut members = Sorter::new(&self.dir, self.memory / 4);
        // In key order, the first key of a component is its smallest key.
        let mut roots = vec![u32::MAX; order.len()];
        for (rank, &number) in (0..).zip(&order) {
            let root = &mut roots[self.table.forest.root(number) as usize];
            if *root == u32::MAX {
                *root = rank;
            } else {
                members.push(edge(*root, rank))?;
            }
        }
        drop(roots);
        Stars::new(Keys::Held { table: self.table, order }, members.finish()?)
    }

    /// Merges all runs. Returns the distinct keys by rank, and pairs of component number and rank, sorted.
    fn merge(&self) -> Result<(Keys, Sorted<u128>)> {
        let dir = self.dir.clone();
        let io_error = |e| Error::io("use a scratch file in", &dir, e);
        let mut sets: Sorter<u128> = Sorter::new(&dir, self.memory / 4);
        let mut keys = Spill::create(&dir).map_err(io_error)?;
        let mut ends = Spill::create(&dir).map_err(io_error)?;
        let mut samples = Samples::new(self.memory / 16);
        let mut count = 0_u32;
        let mut last: Vec<u8> = Vec::new();
        let mut merge = Merge::new(self.runs.readers(), Ord::cmp);
        while let Some((_, Member { key, component })) = merge.next()? {
            if count == 0 || last != *key {
                if count == u32::MAX {
                    let limit = u64::from(u32::MAX);
                    return Err(Error::Limit { what: "keys of a forest", limit, found: limit + 1 });
                }
                samples.push(key);
                keys.append(key).map_err(io_error)?;
                ends.append(&keys.len().to_le_bytes()).map_err(io_error)?;
                count += 1;
                last.clone_from(key);
            }
            sets.push(u128::from(*component) << 64 | u128::from(count - 1))?;
        }
        Ok((Keys::Spilled { dir, keys, ends, count, samples }, sets.finish()?))
    }
}

/// Distinct keys, numbered in order of first occurrence, and the components that they form.
#[derive(Debug)]
struct Table {
    /// All keys, concatenated. `ends` holds the end of each key.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// A hash table with linear probing. Slots hold numbers of keys, or [`EMPTY`]. The size is a power of two, and at most
    /// half of the slots are used.
    slots: Vec<u32>,
    forest: Forest,
}

const EMPTY: u32 = u32::MAX;

impl Default for Table {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), slots: vec![EMPTY; 64], forest: Forest::new(0) }
    }
}

impl Table {
    /// Returns the number of bytes that the table uses, including the memory that sorting its keys will take.
    fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * KEY_COST
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// Returns the number of a key. Adds the key if it is new.
    fn number(&mut self, key: &[u8]) -> u32 {
        let slot = self.slot(key);
        if self.slots[slot] != EMPTY {
            return self.slots[slot];
        }
        let number = self.forest.add();
        self.slots[slot] = number;
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        if self.ends.len() * 2 > self.slots.len() {
            self.slots = vec![EMPTY; self.slots.len() * 2];
            for number in 0..self.ends.len() as u32 {
                let slot = self.slot(self.key(number));
                self.slots[slot] = number;
            }
        }
        number
    }

    /// Returns the slot that holds a key, or the empty slot into which to insert it.
    fn slot(&self, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = xxh3_64(key) as usize & mask;
        while self.slots[slot] != EMPTY && self.key(self.slots[slot]) != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Returns the numbers of all keys, sorted by key. Drops the hash table; keys cannot be looked up afterwards.
    fn order(&mut self) -> Vec<u32> {
        self.slots = Vec::new();
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.key(a).cmp(self.key(b)));
        order
    }
}

/// Encodes an edge as an integer that sorts by the first end, then by the second.
fn edge(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

fn ends(edge: u64) -> (u32, u32) {
    ((edge >> 32) as u32, edge as u32)
}

/// For each set, passes the edges from its first member to all others to `each`, with the smaller number first.
fn for_each_edge(sets: &Sorted<u128>, mut each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
    let mut first: Option<(u64, u32)> = None;
    sets.for_each(|one| {
        let (component, rank) = ((one >> 64) as u64, one as u32);
        match first {
            Some((of, root)) if of == component => each(root, rank),
            _ => {
                first = Some((component, rank));
                Ok(())
            }
        }
    })
}

/// Finds the components that these edges between numbers form. Returns them as stars around the smallest number of each
/// component, sorted. Uses the memory of two sorters. The given edges have the larger number first, the returned edges
/// the root. Takes O(log^2 n) sorts, in practice a few.
fn stars(mut edges: Sorted<u64>, dir: &Path, memory: usize) -> Result<Sorted<u64>> {
    loop {
        // Large star: joins each larger neighbour of a number to the smallest of the number and its neighbours.
        let mut both = Sorter::new(dir, memory);
        edges.for_each(|one| {
            let (large, small) = ends(one);
            both.push(edge(large, small))?;
            both.push(edge(small, large))
        })?;
        drop(edges);
        let mut changed = false;
        let mut large_star = Sorter::new(dir, memory);
        let mut group: Option<(u32, u32)> = None;
        both.finish()?.for_each(|one| {
            let (number, neighbour) = ends(one);
            let min = match group {
                Some((of, min)) if of == number => min,
                _ => number.min(neighbour), // neighbours come in ascending order
            };
            group = Some((number, min));
            if neighbour < number {
                return Ok(());
            }
            changed |= min != number;
            large_star.push(edge(neighbour, min))
        })?;
        // Small star: joins a number and its smaller neighbours to the smallest of these neighbours.
        let mut small_star = Sorter::new(dir, memory);
        let mut group: Option<(u32, u32)> = None;
        large_star.finish()?.for_each(|one| {
            let (number, neighbour) = ends(one);
            match group {
                Some((of, min)) if of == number => {
                    changed = true;
                    small_star.push(edge(neighbour, min))
                }
                _ => {
                    group = Some((number, neighbour));
                    small_star.push(one)
                }
            }
        })?;
        edges = small_star.finish()?;
        // If nothing changed, the edges are stars: a number with larger neighbours has no smaller neighbours, and any
        // other number has exactly one smaller neighbour.
        if !changed {
            let mut members = Sorter::new(dir, memory);
            edges.for_each(|one| {
                let (member, root) = ends(one);
                members.push(edge(root, member))
            })?;
            return members.finish();
        }
    }
}

/// Distinct keys, sorted. The rank of a key is its position.
#[derive(Debug)]
enum Keys {
    Held { table: Table, order: Vec<u32> },
    Spilled { dir: PathBuf, keys: Spill, ends: Spill, count: u32, samples: Samples },
}

/// Maximum number of bytes of keys that a lookup reads at once.
const BLOCK_MAX: u64 = 1 << 20;

/// A range of consecutive keys, read from the scratch file.
struct KeyBlock {
    /// The offset of each key in the scratch file, followed by the end of the last key.
    bounds: Vec<u64>,
    bytes: Vec<u8>,
}

impl KeyBlock {
    fn position(&self, key: &[u8]) -> Option<usize> {
        let start = *self.bounds.first()?;
        let place = |at: u64| (at - start) as usize;
        self.bounds.windows(2).position(|of| &self.bytes[place(of[0])..place(of[1])] == key)
    }
}

/// An in-memory copy of every n-th key in the scratch file, so that a lookup takes two reads instead of O(log n).
#[derive(Debug)]
struct Samples {
    keys: Vec<Vec<u8>>,
    bytes: usize,
    memory: usize,
    every: u32,
    /// Number of keys added after the last sample.
    since: u32,
}

impl Samples {
    fn new(memory: usize) -> Self {
        Self { keys: Vec::new(), bytes: 0, memory, every: 64, since: 0 }
    }

    /// Adds the next key in order. If the samples exceed the memory, removes every second sample.
    fn push(&mut self, key: &[u8]) {
        if self.since == 0 {
            self.bytes += key.len() + size_of::<Vec<u8>>();
            self.keys.push(key.to_vec());
        }
        self.since = (self.since + 1) % self.every;
        if self.bytes > self.memory && self.keys.len() > 1 {
            let last_stays = self.keys.len() % 2 == 1;
            let mut place = 0;
            self.keys.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.bytes = self.keys.iter().map(|key| key.len() + size_of::<Vec<u8>>()).sum();
            let since = if self.since == 0 { self.every } else { self.since };
            self.every *= 2;
            self.since = if last_stays { since } else { (since + self.every / 2) % self.every };
        }
    }

    /// Returns the only range of ranks that can contain `key`. `count` is the number of keys.
    fn around(&self, key: &[u8], count: u32) -> (u32, u32) {
        let after = self.keys.partition_point(|sample| sample.as_slice() <= key) as u64;
        let bound = |samples: u64| (samples * u64::from(self.every)).min(count.into()) as u32;
        (bound(after.saturating_sub(1)), bound(after))
    }
}

impl Keys {
    fn count(&self) -> u32 {
        match self {
            Self::Held { order, .. } => order.len() as u32,
            Self::Spilled { count, .. } => *count,
        }
    }

    /// Reads the keys of ranks `low..high` at once. Returns `None` if the keys are in memory, or if they take more than
    /// [`BLOCK_MAX`] bytes.
    fn block(&self, low: u32, high: u32) -> Result<Option<KeyBlock>> {
        let Self::Spilled { dir, keys, ends, .. } = self else { return Ok(None) };
        let io_error = |e| Error::io("read a scratch file in", dir, e);
        // Each key starts where the previous key ends.
        let before = low.saturating_sub(1);
        let mut bytes = vec![0; (high - before) as usize * 8];
        ends.read_exact_at(&mut bytes, u64::from(before) * 8).map_err(io_error)?;
        let mut bounds: Vec<u64> = bytes.as_chunks().0.iter().map(|&end| u64::from_le_bytes(end)).collect();
        if low == 0 {
            bounds.insert(0, 0);
        }
        let (Some(&start), Some(&end)) = (bounds.first(), bounds.last()) else { return Ok(None) };
        if end - start > BLOCK_MAX {
            return Ok(None);
        }
        let mut bytes = vec![0; (end - start) as usize];
        keys.read_exact_at(&mut bytes, start).map_err(io_error)?;
        Ok(Some(KeyBlock { bounds, bytes }))
    }

    /// Replaces the contents of `key` with the key of this rank.
    fn read(&self, rank: u32, key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        match self {
            Self::Held { table, order } => {
                key.extend_from_slice(table.key(order[rank as usize]));
                Ok(())
            }
            Self::Spilled { dir, keys, ends, .. } => {
                let read = |key: &mut Vec<u8>| -> io::Result<()> {
                    let mut bounds = [0; 16];
                    if rank == 0 {
                        ends.read_exact_at(&mut bounds[8..], 0)?;
                    } else {
                        ends.read_exact_at(&mut bounds, u64::from(rank - 1) * 8)?;
                    }
                    let (mut start, mut end) = ([0; 8], [0; 8]);
                    start.copy_from_slice(&bounds[..8]);
                    end.copy_from_slice(&bounds[8..]);
                    let (start, end) = (u64::from_le_bytes(start), u64::from_le_bytes(end));
                    key.resize((end - start) as usize, 0);
                    keys.read_exact_at(key, start)
                };
                read(key).map_err(|e| Error::io("read a scratch file in", dir, e))
            }
        }
    }
}

/// A spanning forest: each connected component as a star around its smallest key.
#[derive(Debug)]
pub struct Stars {
    keys: Keys,
    /// Pairs of root rank and member rank, ascending. A root is not a member of its own star.
    members: Sorted<u64>,
    edges: u64,
    components: u64,
}

impl Stars {
    fn new(keys: Keys, members: Sorted<u64>) -> Result<Self> {
        let (mut edges, mut components, mut last) = (0, 0, None);
        members.for_each(|one| {
            edges += 1;
            components += u64::from(last.replace(one >> 32) != Some(one >> 32));
            Ok::<(), Error>(())
        })?;
        Ok(Self { keys, members, edges, components })
    }

    /// Returns the number of edges. It is the number of keys other than the smallest key of each component.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Returns the number of components of at least two keys.
    #[must_use]
    pub fn components(&self) -> u64 {
        self.components
    }

    /// Returns the number of distinct keys. Keys have ranks from 0 on, in the order of keys.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.keys.count()
    }

    /// Returns whether the keys exceeded the memory and were written to disk.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        matches!(self.keys, Keys::Spilled { .. })
    }

    /// Passes each edge to `each`, in ascending order: the smallest key of a component, then another key of the component.
    ///
    /// # Errors
    /// [`Error::Io`] from scratch files, or the error of `each`.
    pub fn for_each<E: From<Error>>(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut root, mut member, mut last) = (Vec::new(), Vec::new(), None);
        self.for_each_rank(|root_rank, rank| {
            if last.replace(root_rank) != Some(root_rank) {
                self.keys.read(root_rank, &mut root)?;
            }
            self.keys.read(rank, &mut member)?;
            each(&root, &member)
        })
    }

    /// Like [`for_each`](Self::for_each), but passes the ranks of the keys.
    ///
    /// # Errors
    /// Same as [`for_each`](Self::for_each).
    pub fn for_each_rank<E: From<Error>>(
        &self,
        mut each: impl FnMut(u32, u32) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.members.for_each(|one| {
            let (root, rank) = ends(one);
            each(root, rank)
        })
    }

    /// Replaces the contents of `key` with the key of rank `rank`.
    ///
    /// # Errors
    /// [`Error::Io`] from a scratch file.
    ///
    /// # Panics
    /// If `rank` is not below [`keys`](Self::keys).
    pub fn key(&self, rank: u32, key: &mut Vec<u8>) -> Result<()> {
        assert!(rank < self.keys(), "rank {rank} of {} keys", self.keys());
        self.keys.read(rank, key)
    }

    /// Returns the rank of a key, or `None` if the key is unknown. Takes O(log n) comparisons, or two reads if the keys are
    /// on disk.
    ///
    /// # Errors
    /// [`Error::Io`] from a scratch file.
    pub fn rank(&self, key: &[u8]) -> Result<Option<u32>> {
        let (low, high) = match &self.keys {
            Keys::Held { .. } => (0, self.keys()),
            Keys::Spilled { samples, count, .. } => samples.around(key, *count),
        };
        if let Some(block) = self.keys.block(low, high)? {
            return Ok(block.position(key).map(|place| low + place as u32));
        }
        let (mut low, mut high, mut other) = (low, high, Vec::new());
        while low < high {
            let middle = low + (high - low) / 2;
            self.keys.read(middle, &mut other)?;
            match other.as_slice().cmp(key) {
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    /// A memory budget above the minimum of a sorter, in which the forests of these tests fit.
    const ROOMY: usize = 64 << 20;

    fn edges_of(stars: &Stars) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut edges = Vec::new();
        stars
            .for_each(|root, key| {
                edges.push((root.to_vec(), key.to_vec()));
                Ok::<_, Error>(())
            })
            .unwrap();
        edges
    }

    fn forest_of(pairs: &[(Vec<u8>, Vec<u8>)], memory: usize) -> Stars {
        let dir = tempfile::tempdir().unwrap();
        let mut forest = SpanningForest::new(dir.path(), memory);
        for (a, b) in pairs {
            forest.join(a, b).unwrap();
        }
        forest.finish().unwrap()
    }

    /// Computes the expected edges with a graph search.
    fn slowly(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut near: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
        for (a, b) in pairs {
            near.entry(a).or_default().insert(b);
            near.entry(b).or_default().insert(a);
        }
        let (mut seen, mut edges) = (BTreeSet::new(), Vec::new());
        for &root in near.keys() {
            let mut reached = BTreeSet::new();
            let mut waiting = vec![root];
            while let Some(key) = waiting.pop() {
                if seen.insert(key) {
                    reached.insert(key);
                    waiting.extend(&near[key]);
                }
            }
            edges.extend(reached.iter().filter(|&&key| key != root).map(|key| (root.to_vec(), key.to_vec())));
        }
        edges
    }

    /// Returns pairs that form chains, stars and single pairs. Keys have various lengths and are in no order.
    fn pairs(seed: u64, count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut random = SplitMix(seed);
        let name = |number: u64| {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
            format!("{}-{mixed:x}", "long".repeat((mixed % 7) as usize)).into_bytes()
        };
        let mut pairs = Vec::new();
        for place in 0..count {
            let (a, b) = match place % 5 {
                0 | 1 => (place, place + 5 * (random.next() % 3)),
                2 => (place, place % 640),
                3 => (random.next() % count, random.next() % count),
                _ => (place, place),
            };
            if place % 3 > 0 || place < count / 2 {
                pairs.push((name(a), name(b)));
            }
        }
        pairs
    }

    #[test]
    fn forest_equals_a_graph_search_in_memory_and_on_disk() {
        for (seed, count) in [(1, 0), (2, 1), (3, 50), (4, 3000), (5, 30_000)] {
            let pairs = pairs(seed, count);
            let wanted = slowly(&pairs);
            let held = forest_of(&pairs, ROOMY);
            assert!(!held.is_on_disk());
            assert_eq!(edges_of(&held), wanted, "{count} in memory");
            assert_eq!(held.edges(), wanted.len() as u64);
            // With 30,000 keys, even the ranks exceed 64 KiB.
            let spilled = forest_of(&pairs, 0);
            assert_eq!(spilled.is_on_disk(), count >= 3000);
            assert!(count < 30_000 || spilled.keys() as usize > LEAST / 4 / 4, "{}", spilled.keys());
            assert_eq!(edges_of(&spilled), wanted, "{count} on disk");
            assert_eq!(
                (spilled.edges(), spilled.components(), spilled.keys()),
                (held.edges(), held.components(), held.keys())
            );
        }
    }

    #[test]
    fn chain_of_all_keys_becomes_one_star() {
        // In some of these orders, neighbours of the chain are adjacent keys; in others they are far apart.
        for step in [1_u64, 12_345, 39_999] {
            let name = |place: u64| format!("{:06}", place * step % 40_009).into_bytes();
            let pairs: Vec<_> = (0..40_000).map(|place| (name(place), name(place + 1))).collect();
            let stars = forest_of(&pairs, 0);
            assert!(stars.is_on_disk());
            let edges = edges_of(&stars);
            assert_eq!((edges.len(), stars.components()), (40_000, 1), "{step}");
            let min = (0..=40_000).map(name).min().unwrap();
            assert!(edges.iter().all(|(root, _)| *root == min));
        }
    }

    #[test]
    fn forests_merged_in_any_order_equal_the_forest_of_all_pairs() {
        let pairs = pairs(9, 9000);
        let wanted = edges_of(&forest_of(&pairs, ROOMY));
        let parts: Vec<_> = pairs.chunks(2000).map(|part| edges_of(&forest_of(part, 0))).collect();
        assert!(parts.iter().zip(pairs.chunks(2000)).all(|(forest, part)| forest.len() < part.len()));
        let mut joined: Vec<_> = parts.iter().rev().flatten().cloned().collect();
        assert_eq!(edges_of(&forest_of(&joined, 0)), wanted);
        // Computes the forests of two overlapping parts, and merges these forests in another order, one of them twice.
        let left = edges_of(&forest_of(&parts[..2].concat(), 0));
        let right = edges_of(&forest_of(&parts[1..].concat(), ROOMY));
        joined = [right, left.clone(), left].concat();
        assert_eq!(edges_of(&forest_of(&joined, 0)), wanted);
        assert_eq!(edges_of(&forest_of(&wanted, 0)), wanted, "the forest of a forest");
    }

    #[test]
    fn keys_are_found_by_rank_and_ranks_by_key() {
        let pairs = pairs(11, 4000);
        for memory in [0, ROOMY] {
            let stars = forest_of(&pairs, memory);
            let (mut key, mut last) = (Vec::new(), Vec::new());
            for rank in 0..stars.keys() {
                stars.key(rank, &mut key).unwrap();
                assert!(rank == 0 || last < key);
                assert_eq!(stars.rank(&key).unwrap(), Some(rank));
                last.clone_from(&key);
                key.push(0);
                assert_eq!(stars.rank(&key).unwrap(), None);
            }
        }
    }

    #[test]
    fn samples_find_the_block_of_each_key_after_halving() {
        for memory in [0, 1_000, 100_000] {
            let mut samples = Samples::new(memory);
            let name = |rank: u32| format!("{:06}", 2 * rank).into_bytes();
            for rank in 0..10_000 {
                samples.push(&name(rank));
                if rank % 777 == 0 || rank == 9_999 {
                    for wanted in (0..=rank).step_by(7).chain([rank]) {
                        let (low, high) = samples.around(&name(wanted), rank + 1);
                        assert!((low..high).contains(&wanted), "{memory} {rank}: {low}..{high} for {wanted}");
                        assert!(high - low <= samples.every);
                    }
                }
            }
            assert_eq!(samples.around(b"", 10_000), (0, 0));
            assert!(samples.bytes <= memory || samples.keys.len() == 1, "{} of {memory}", samples.bytes);
        }
    }

    #[test]
    fn key_above_the_length_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut forest = SpanningForest::new(dir.path(), 0);
        let long = vec![b'x'; KEY_BYTES_MAX];
        forest.join(&long, b"a").unwrap();
        let longer = vec![b'x'; KEY_BYTES_MAX + 1];
        assert!(matches!(forest.join(b"a", &longer), Err(Error::Limit { found: 65_536, .. })));
        assert_eq!(edges_of(&forest.finish().unwrap()), [(b"a".to_vec(), long)]);
    }
}
