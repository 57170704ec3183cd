//! The memtable: records that are not in a segment yet. It supports the same queries as segments.
//!
//! Each row is one operation: a document or the delete of a key. Rows are in the order of the operations and never
//! change. A snapshot is a view of the first n rows; the writer appends further rows without affecting it. A row is
//! live in this view if it is not a delete, and no later row of the view has the same key.
//!
//! - Keys: a hash table that chains the rows of each key, newest first.
//! - Fingerprints: divided into four blocks of 16 bits. If two fingerprints differ in at most 3 bits, at least one of
//!   their blocks is equal (Manku, Jain, Das Sarma, WWW 2007, with four tables). For each block, the distinct
//!   fingerprints with the same 16 bits form a chain; a hash table chains the rows of each fingerprint. If there are
//!   few rows, or if the radius is above 3, all rows are scanned.
//! - Features: a hash table that chains the rows of each (band, band key).
//! - Sets: a hash table that chains the rows of each tag (the upper 32 bits of a shingle hash). A set is indexed under
//!   the tags of its rarest elements only: as many that every near set contains at least one of them. A query looks up
//!   all elements of its set.
//! - Equal documents: only the first row of each distinct content is in the chains of fingerprints, features and sets
//!   ([`equals`]). A query compares this row, even if it is no longer live, and then reads the rows that equal it.
//! - Stamps: a search tree. When a row expires, a delete of its key is appended to the rows, but not to the log. So the
//!   row is live only in views that end before this delete.
//!
//! One writer adds rows under a read-write lock that readers share. The lock is held for one record, or for one step of
//! a query. The writer holds it only for bounded time, so that no reader waits for long: vectors grow by chunks
//! ([`chunked`]), hash tables by buckets ([`chains`]), and records by pieces ([`pieces`]). An operation on many rows is
//! split into steps of a few rows, and releases the lock between them. So do queries over many rows ([`queries`]): a
//! reader that keeps the lock blocks the writer, and also all readers that arrive after the writer.

mod chains;
mod chunked;
mod equals;
mod filter;
mod pieces;
mod queries;
mod rarity;

use std::collections::BTreeSet;
use std::ops::Bound;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use self::chains::{Chains, NONE};
use self::chunked::ChunkedVec;
use self::equals::{EqualRows, fingerprint_hash};
use self::filter::KeyFilter;
pub(super) use self::pieces::{FirstRows, Pieces};
pub(super) use self::queries::ScanPosition;
use self::rarity::SetStatistics;
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::log::Operation;
use crate::key::Key;
use crate::params::Params;
use crate::segment::records::Kept;
use crate::segment::sets::nearness;
use crate::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use twindex_sketch::Code;

/// The maximum radius of searches by blocks; larger radii need a scan.
const BLOCKS_WITHIN: u32 = 3;
/// Number of blocks into which a fingerprint is divided.
const BLOCKS: usize = 4;
/// Number of buckets per block.
const BUCKETS: usize = 1 << 16;
/// Memory for bucket heads is allocated for this number of buckets at a time.
const HEADS: usize = 1 << 12;
/// With fewer rows than this, queries by fingerprint scan all rows. It is 0 in tests with random thread schedules
/// (`.ci/run races`), because a scan reads a whole chunk per step and so has few points at which threads can be
/// switched.
const SCANNED: usize = if cfg!(all(test, twindex_shuttle)) { 0 } else { 512 };
/// Maximum number of rows that one insertion adds to the block chains. The first [`SCANNED`] rows are not added at
/// once: later insertions add several of them each.
const LINKED_AT_ONCE: usize = 8;
/// Estimated bytes per row in chains and hash tables, without the record.
const ROW_BYTES: usize = 64;
/// Maximum number of rows added or removed before the lock is released.
const STEP: usize = 256;

/// The rows of a memtable, and the lock that protects them. One writer adds rows, and many readers query them.
#[derive(Debug)]
pub(super) struct Memtable {
    rows: RwLock<Rows>,
    /// Statistics about the sets of documents. Only the writer updates them.
    common: Mutex<SetStatistics>,
}

impl Memtable {
    pub(super) fn new(params: &Params) -> Self {
        let common = Mutex::new(SetStatistics::new(nearness(params)));
        Self { rows: RwLock::new(Rows::new(params)), common }
    }

    /// Creates the empty memtable that replaces this one. Copies the counters of set elements, and halves them.
    pub(super) fn next(&self) -> Self {
        let rows = Rows::new(self.read().params());
        let common = Mutex::new(self.common.lock().faded());
        Self { rows: RwLock::new(rows), common }
    }

    /// Locks the rows for one step of a query.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read()
    }

    /// Locks the rows to add one record.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write()
    }

    /// Adds a document; `kept` is `None` for a document without tokens. The row becomes part of a view only afterwards.
    pub(super) fn put(&self, key: Key<'_>, kept: Option<Kept<'_>>, attached: Attached<'_>) -> Result<()> {
        let prefix = self.common.lock().keys_of(attached.fields)?;
        let mut steps = prefix.chunks(STEP);
        {
            let mut rows = self.write();
            rows.put(key, kept, attached)?;
            rows.add_prefix(steps.next().unwrap_or_default());
        }
        for step in steps {
            self.write().add_prefix(step);
        }
        Ok(())
    }

    /// Adds the row of an operation of a log. After [`begin_loading`](Rows::begin_loading), lookups do not find the row before
    /// [`end_loading`](Self::end_loading).
    pub(super) fn apply(&self, operation: Operation<'_>) -> Result<()> {
        let mut rows = self.write();
        match operation {
            Operation::Put(key, kept, attached) if rows.is_loading => rows.records.put(key, kept, attached),
            Operation::Put(key, kept, attached) => {
                drop(rows);
                self.put(key, kept, attached)
            }
            Operation::Delete(key) if rows.is_loading => rows.records.delete(key),
            Operation::Delete(key) => rows.delete(key),
        }
    }

    /// Adds all rows to the lookup tables, if this was deferred. `max` is the maximum memory of the table in bytes.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub(super) fn end_loading(&self, max: usize) -> Result<()> {
        let mut rows = self.write();
        if !std::mem::take(&mut rows.is_loading) {
            return Ok(());
        }
        rows.fill();
        let mut common = self.common.lock();
        let indexed = if common.is_kept() { rows.len() } else { 0 };
        for row in 0..indexed {
            if row % 256 == 0 {
                let found = (rows.memory() + common.memory()) as u64;
                if found > max as u64 {
                    return Err(Error::Limit {
                        what: "bytes of memory for the logs",
                        limit: max as u64,
                        found,
                    });
                }
            }
            if rows.has_document(row) {
                let prefix = common.keys_of(rows.records.fields(row as usize))?;
                rows.add_prefix_of(row, &prefix);
            }
        }
        Ok(())
    }

    pub(super) fn memory(&self) -> usize {
        self.read().memory() + self.common.lock().memory()
    }

    /// Appends a delete for each live document whose stamp is at most `stamp`.
    pub(super) fn expire(&self, stamp: u64) -> Result<()> {
        while self.write().expire(stamp, STEP)? {}
        Ok(())
    }

    /// Calls `each` for each row that is live in the view of the first `limit` rows and whose key is between these
    /// bounds, in no particular order. The arguments are the row number and the key.
    pub(super) fn keys_between(
        &self,
        limit: u32,
        from: Bound<Key<'_>>,
        to: Bound<Key<'_>>,
        mut each: impl FnMut(u32, Key<'_>),
    ) {
        for piece in 0.. {
            let rows = self.read();
            let is_there = rows.records.rows_between(piece, from, to, |row| {
                if rows.is_live(row, limit) {
                    each(row, rows.records.key(row as usize));
                }
            });
            if !is_there {
                return;
            }
        }
    }

    /// Removes all rows except the first `rows`.
    pub(super) fn truncate(&self, rows: u32) {
        while self.write().truncate(rows, STEP) {}
    }
}

fn key_hash(key: Key<'_>) -> u64 {
    match key {
        Key::U64(key) => xxh3_64(&key.to_le_bytes()),
        Key::Bytes(key) => xxh3_64(key),
    }
}

fn feature_hash(band: usize, key: u32) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), band as u64)
}

/// Returns the hash of a prefix key: the key itself, shifted. A prefix key is a tag (the upper 32 bits of a shingle
/// hash), inverted for a marked document.
fn prefix_hash(key: u32) -> u64 {
    u64::from(key) << 32
}

fn bucket(fingerprint: u64, block: usize) -> usize {
    block * BUCKETS + (fingerprint >> (16 * block)) as usize % BUCKETS
}

/// The first row in the chain of each bucket, for each block. Memory for a range of [`HEADS`] buckets is allocated when
/// the first of these buckets gets a row.
#[derive(Clone, Debug, Default)]
struct BlockHeads {
    parts: Vec<Vec<u32>>,
}

impl BlockHeads {
    fn get(&self, bucket: usize) -> u32 {
        self.parts.get(bucket / HEADS).and_then(|part| part.get(bucket % HEADS)).copied().unwrap_or(NONE)
    }

    fn get_mut(&mut self, bucket: usize) -> &mut u32 {
        if self.parts.is_empty() {
            self.parts.resize(BLOCKS * BUCKETS / HEADS, Vec::new());
        }
        let part = &mut self.parts[bucket / HEADS];
        if part.is_empty() {
            part.resize(HEADS, NONE);
        }
        &mut part[bucket % HEADS]
    }
}

/// The rows of a memtable, with their lookup tables.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    records: Pieces,
    /// For each row, the next row with the same key; [`NONE`] if there is none.
    replaced_by: ChunkedVec<u32>,
    live: u64,
    keys: Chains,
    /// The fingerprint of each row; 0 for a row without a sketch. Empty if the index stores no fingerprints.
    fingerprints: ChunkedVec<u64>,
    equals: EqualRows,
    /// The prefix keys of marked rows.
    marked_keys: KeyFilter,
    /// For each distinct fingerprint, the chain of its rows that differ in content.
    same_fingerprint: Chains,
    /// The rows below this number have been added to the block chains. The chains contain only the first row of each
    /// distinct fingerprint.
    linked: usize,
    heads: BlockHeads,
    /// For each row and each block, the next row in the chain of the row's bucket. Only the first row of each distinct
    /// fingerprint is in these chains.
    next: ChunkedVec<[u32; BLOCKS]>,
    features: Chains,
    prefixes: Chains,
    /// The row and the prefix key of each entry in `prefixes`, indexed by entry number.
    prefix_entries: ChunkedVec<(u32, u32)>,
    /// The stamp and the row of each document that has not expired yet, sorted by stamp.
    stamps: BTreeSet<(u64, u32)>,
    bands: usize,
    /// Whether a log is being replayed; see [`Rows::begin_loading`].
    is_loading: bool,
    simhash: bool,
}

impl Rows {
    fn new(params: &Params) -> Self {
        Self {
            records: Pieces::new(params),
            replaced_by: ChunkedVec::default(),
            live: 0,
            keys: Chains::default(),
            equals: EqualRows::default(),
            marked_keys: KeyFilter::default(),
            fingerprints: ChunkedVec::default(),
            same_fingerprint: Chains::default(),
            linked: 0,
            heads: BlockHeads::default(),
            next: ChunkedVec::default(),
            features: Chains::default(),
            prefixes: Chains::default(),
            prefix_entries: ChunkedVec::default(),
            stamps: BTreeSet::new(),
            bands: params.minhash.map_or(0, |minhash| minhash.bands.into()),
            is_loading: false,
            simhash: params.simhash.is_some(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// Returns the number of live rows in the view that contains all rows.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    pub(super) fn memory(&self) -> usize {
        let blocks = if self.linked > 0 || self.is_loading { 4 * BLOCKS * BUCKETS } else { 0 };
        let rows = self.records.len();
        let deferred = Chains::bytes_of(rows * self.bands) + EqualRows::bytes_of(rows);
        self.records.memory()
            + rows * ROW_BYTES
            + if self.is_loading { deferred } else { 0 }
            + self.features.bytes()
            + self.equals.bytes()
            + self.prefixes.bytes()
            + 8 * self.prefix_entries.len()
            + self.marked_keys.bytes()
            + blocks
    }

    /// Defers the indexing of rows that [`Memtable::apply`] adds, because it takes less time for many rows together. Until
    /// [`Memtable::end_loading`] is called, nobody may query the rows. No effect if there are rows already.
    pub(super) fn begin_loading(&mut self) {
        self.is_loading = self.len() == 0;
    }

    /// Adds all rows to all lookup tables except that of sets, if they are in none.
    fn fill(&mut self) {
        let (rows, records) = (self.records.len(), &self.records);
        (0..rows).for_each(|_| self.replaced_by.push(NONE));
        let is_same = |row: u32, other: u32| records.key(row as usize) == records.key(other as usize);
        let is_replaced = |row, before: u32| {
            *self.replaced_by.get_mut(before as usize) = row;
            true
        };
        self.keys.fill(rows, (0..rows).map(|row| Some(key_hash(records.key(row)))), is_same, is_replaced);
        let documents = || (0..rows).filter(|&row| !records.is_delete(row));
        self.live = documents().filter(|&row| self.replaced_by.get(row) == NONE).count() as u64;
        self.stamps = documents().filter_map(|row| Some((records.stamp(row)?, row as u32))).collect();
        self.equals.fill(records);
        if self.simhash {
            self.fill_fingerprints();
        }
        if self.bands > 0 {
            let hashes = (0..rows).flat_map(|row| {
                (0..).zip(self.records.band_keys(row)).map(|(band, &key)| Some(feature_hash(band, key)))
            });
            self.features.fill(rows * self.bands, hashes, |_, _| true, |_, _| true);
        }
    }

    fn fill_fingerprints(&mut self) {
        let (rows, records) = (self.records.len(), &self.records);
        for row in 0..rows {
            self.fingerprints.push(records.fingerprint(row));
            self.next.push([NONE; BLOCKS]);
        }
        let (fingerprints, equals) = (&self.fingerprints, &self.equals);
        let hashes = (0..rows).map(|row| {
            let is_added = records.is_sketched(row) && equals.is_first(row as u32);
            is_added.then(|| fingerprint_hash(fingerprints.get(row)))
        });
        let is_same =
            |row: u32, other: u32| fingerprints.get(row as usize) == fingerprints.get(other as usize);
        self.same_fingerprint.fill(rows, hashes, is_same, |_, _| true);
        if rows >= SCANNED {
            (0..rows).for_each(|row| self.link(row));
        }
    }

    /// Returns the records of all rows. Of several rows with the same key, only the last is valid.
    pub(super) fn records(&self) -> &Pieces {
        &self.records
    }

    /// Returns the records of the first `rows` rows.
    pub(super) fn first(&self, rows: u32) -> FirstRows {
        self.records.first(rows as usize)
    }

    /// Adds a document without indexing its set; see [`add_prefix`](Self::add_prefix).
    fn put(&mut self, key: Key<'_>, kept: Option<Kept<'_>>, attached: Attached<'_>) -> Result<()> {
        self.records.put(key, kept, attached)?;
        self.index();
        Ok(())
    }

    /// Indexes the last row under these prefix keys, unless it equals an earlier row.
    fn add_prefix(&mut self, keys: &[u32]) {
        self.add_prefix_of(self.len() - 1, keys);
    }

    fn add_prefix_of(&mut self, row: u32, keys: &[u32]) {
        if !self.equals.is_first(row) {
            return;
        }
        self.prefixes.warm(keys.iter().copied().map(prefix_hash));
        if self.records.fields(row as usize).is_marked() {
            self.marked_keys.add(keys);
        }
        for &key in keys {
            self.prefixes.push(prefix_hash(key), |_| true);
            self.prefix_entries.push((row, key));
        }
    }

    pub(super) fn delete(&mut self, key: Key<'_>) -> Result<()> {
        self.records.delete(key)?;
        self.index();
        Ok(())
    }

    /// Returns the rows that have not been expired and whose stamps are above `before` and at most `stamp`.
    pub(super) fn stamped_between(&self, before: Option<u64>, stamp: u64) -> impl Iterator<Item = u32> + '_ {
        let min = before.map_or(0, |before| before.saturating_add(1));
        let range = (min <= stamp).then(|| self.stamps.range((min, 0)..=(stamp, NONE)));
        range.into_iter().flatten().map(|&(_, row)| row)
    }

    /// Runs one step of [`Memtable::expire`] over at most `at_most` rows. Returns true if more rows may have to expire.
    fn expire(&mut self, stamp: u64, at_most: usize) -> Result<bool> {
        for _ in 0..at_most {
            let Some(&(min, row)) = self.stamps.first() else { return Ok(false) };
            if min > stamp {
                return Ok(false);
            }
            self.stamps.pop_first();
            if self.is_live(row, self.len()) {
                let key = self.records.key(row as usize).to_buf();
                self.delete(key.as_key())?;
            }
        }
        Ok(true)
    }

    /// Runs one step of [`Memtable::truncate`] over at most `at_most` rows. Returns true if more rows may have to be
    /// removed.
    fn truncate(&mut self, rows: u32, at_most: usize) -> bool {
        for _ in 0..at_most {
            if self.len() <= rows {
                return false;
            }
            self.pop();
        }
        true
    }

    fn params(&self) -> &Params {
        self.records.params()
    }

    fn has_document(&self, row: u32) -> bool {
        !self.records.is_delete(row as usize)
    }

    /// Adds the last row to the lookup tables.
    fn index(&mut self) {
        let place = self.replaced_by.len();
        let row = place as u32;
        let records = &self.records;
        let key = records.key(place);
        let before = self.keys.push(key_hash(key), |row| records.key(row as usize) == key);
        let is_document = self.has_document(row);
        self.live += u64::from(is_document);
        self.replaced_by.push(NONE);
        if let Some(before) = before {
            *self.replaced_by.get_mut(before as usize) = row;
            self.live -= u64::from(self.has_document(before));
        }
        if let Some(stamp) = self.records.stamp(place).filter(|_| is_document) {
            self.stamps.insert((stamp, row));
        }
        if is_document {
            self.equals.push(&self.records);
        } else {
            self.equals.push_delete();
        }
        if self.simhash {
            self.index_fingerprint(place);
        }
        if self.bands > 0 && !self.equals.is_first(row) {
            (0..self.bands).for_each(|_| self.features.skip());
        } else if self.bands > 0 {
            let keys = self.records.band_keys(place);
            let hashes = || keys.iter().enumerate().map(|(band, &key)| feature_hash(band, key));
            self.features.warm(hashes());
            // A row without a sketch also gets entries, which lookups skip. So an entry's number determines its row.
            for hash in hashes() {
                self.features.push(hash, |_| true);
            }
        }
    }

    fn index_fingerprint(&mut self, place: usize) {
        let fingerprint = self.records.fingerprint(place);
        self.fingerprints.push(fingerprint);
        self.next.push([NONE; BLOCKS]);
        if self.records.is_sketched(place) && self.equals.is_first(place as u32) {
            let fingerprints = &self.fingerprints;
            let is_same = |row: u32| fingerprints.get(row as usize) == fingerprint;
            self.same_fingerprint.push(fingerprint_hash(fingerprint), is_same);
        } else {
            self.same_fingerprint.skip();
        }
        if self.next.len() >= SCANNED {
            for row in self.linked..self.next.len().min(self.linked + LINKED_AT_ONCE) {
                self.link(row);
            }
        }
    }

    /// Adds a row to the block chains. All earlier rows must be in the chains already.
    fn link(&mut self, row: usize) {
        self.linked = row + 1;
        if self.same_fingerprint.is_first(row as u32) {
            let fingerprint = self.fingerprints.get(row);
            for block in 0..BLOCKS {
                let head = self.heads.get_mut(bucket(fingerprint, block));
                self.next.get_mut(row)[block] = *head;
                *head = row as u32;
            }
        }
    }

    /// Removes the last row, and restores the lookup tables to their earlier state.
    fn pop(&mut self) {
        let place = self.replaced_by.len() - 1;
        let row = place as u32;
        while let Some((_, key)) = self.prefix_entries.last().filter(|&(of, _)| of == row) {
            self.prefix_entries.pop();
            self.prefixes.pop(prefix_hash(key));
        }
        if self.bands > 0 {
            let keys = self.records.band_keys(place);
            for (band, &key) in keys.iter().enumerate().rev() {
                self.features.pop(feature_hash(band, key));
            }
        }
        if self.simhash {
            if place < self.linked {
                self.linked = place;
                if self.same_fingerprint.is_first(row) {
                    let fingerprint = self.fingerprints.get(place);
                    for block in 0..BLOCKS {
                        *self.heads.get_mut(bucket(fingerprint, block)) = self.next.get(place)[block];
                    }
                }
            }
            self.same_fingerprint.pop(fingerprint_hash(self.fingerprints.get(place)));
            self.next.pop();
            self.fingerprints.pop();
        }
        self.equals.pop(&self.records);
        let is_document = self.has_document(row);
        if let Some(stamp) = self.records.stamp(place).filter(|_| is_document) {
            self.stamps.remove(&(stamp, row));
        }
        self.live -= u64::from(is_document);
        self.replaced_by.pop();
        if let Some(before) = self.keys.pop(key_hash(self.records.key(place))) {
            *self.replaced_by.get_mut(before as usize) = NONE;
            if self.has_document(before) {
                self.live += 1;
                // Adds the stamp of `before` again: the removed row may be the delete that expired `before`.
                if let Some(stamp) = self.records.stamp(before as usize) {
                    self.stamps.insert((stamp, before));
                }
            }
        }
        self.records.pop();
    }

    /// Returns whether a row is live in the view of the first `limit` rows.
    pub(super) fn is_live(&self, row: u32, limit: u32) -> bool {
        row < limit && self.replaced_by.get(row as usize) >= limit && !self.records.is_delete(row as usize)
    }

    /// Returns the rows with the smallest keys among the rows that equal a row and for which `is_wanted` is true, at most
    /// `max` of them. `None` if this takes more than `steps` steps, or if the equal rows are not sorted.
    pub(super) fn smallest_equal(
        &self,
        row: u32,
        max: usize,
        steps: usize,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        let mut by_key = self.equals.by_key(row)?;
        let found = by_key.by_ref().take(steps).filter(|&row| is_wanted(row)).take(max).collect::<Vec<_>>();
        (found.len() == max || by_key.next().is_none()).then_some(found)
    }

    /// Returns the newest of the first `limit` rows that equals a row.
    pub(super) fn newest_equal(&self, row: u32, limit: u32) -> Option<u32> {
        self.equals.of_group(self.equals.newest(row)).find(|&row| row < limit)
    }

    /// Returns the previous row that equals a row.
    pub(super) fn equal_before(&self, row: u32) -> Option<u32> {
        self.equals.before(row)
    }

    /// Returns the newest row of a key among the first `limit` rows, including deletes; `None` if there is none.
    pub(super) fn find(&self, key: Key<'_>, limit: u32) -> Option<u32> {
        let is_same = |row: u32| self.records.key(row as usize) == key;
        self.keys.of(key_hash(key), is_same).find(|&row| row < limit)
    }

    /// Returns the fingerprint of a row; `None` if it has none or the index stores no fingerprints.
    pub(super) fn code(&self, row: u32) -> Option<Code> {
        if let Some(codes) = self.params().codes {
            return self.records.fields(row as usize).fingerprint(codes).ok().flatten();
        }
        let sketched = self.simhash && self.records.is_sketched(row as usize);
        sketched.then(|| self.fingerprints.get(row as usize).into())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::key::KeyBuf;

    fn raw() -> Params {
        Params::builder().u64_keys().simhash(3).build().unwrap()
    }

    /// Returns the live rows that equal a row.
    fn live_equal(rows: &Rows, row: u32, limit: u32) -> Vec<u32> {
        let newest = rows.newest_equal(row, limit);
        let equal = std::iter::successors(newest, |&row| rows.equal_before(row));
        equal.filter(|&row| rows.is_live(row, limit)).collect()
    }

    /// Runs a query to its end, in steps of a few rows.
    fn in_steps(mut step: impl FnMut((&mut ScanPosition, u32)) -> u32) {
        let (mut at, mut steps) = (ScanPosition::Start, 1);
        while at != ScanPosition::End {
            step((&mut at, steps));
            steps = steps % 5 + 1;
        }
    }

    /// Generates fingerprints that are close to each other, some of them several times.
    fn fingerprint(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let center = (*state >> 60).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        center ^ 1 << (*state >> 33 & 63) ^ 1 << (*state >> 40 & 63)
    }

    #[test]
    fn queries_on_every_view_match_a_scan_of_its_rows() {
        let mut rows = Rows::new(&raw());
        let (mut state, mut done) = (7, Vec::new());
        for step in 0..1500_u64 {
            let (key, value) = (step * 7 % 400, fingerprint(&mut state));
            if step % 5 == 4 {
                rows.delete(Key::U64(key)).unwrap();
                done.push((key, None));
            } else {
                let kept = Kept { fingerprint: value, ..Kept::default() };
                rows.put(Key::U64(key), Some(kept), Attached::default()).unwrap();
                done.push((key, Some(value)));
            }
        }
        for limit in [0, 1, 17, 399, 511, 512, 800, 1500] {
            let mut live = std::collections::BTreeMap::new();
            for (row, &(key, value)) in done[..limit].iter().enumerate() {
                live.insert(key, (row as u32, value));
            }
            for key in 0..401 {
                assert_eq!(rows.find(Key::U64(key), limit as u32), live.get(&key).map(|&(row, _)| row));
            }
            for within in [0, 1, 3, 4, 10] {
                let query = fingerprint(&mut state);
                let mut expected: Vec<(u32, u32)> = live
                    .values()
                    .filter_map(|&(row, value)| Some((row, (value? ^ query).count_ones())))
                    .filter(|&(_, distance)| distance <= within)
                    .collect();
                expected.sort_unstable();
                let mut found = Vec::new();
                in_steps(|turn| {
                    rows.within(query, within, limit as u32, turn, |row, distance| {
                        found.extend(
                            live_equal(&rows, row, limit as u32).into_iter().map(|row| (row, distance)),
                        );
                        ControlFlow::Continue(())
                    })
                });
                found.sort_unstable();
                assert_eq!(found, expected, "{limit} rows, within {within}");
            }
        }
        let live = |rows: &Rows| (0..rows.len()).filter(|&row| rows.is_live(row, rows.len())).count() as u64;
        assert_eq!(rows.live(), live(&rows));
        let before = rows.clone();
        while rows.truncate(700, 100) {}
        assert_eq!((rows.len(), rows.live()), (700, live(&rows)));
        for key in 0..401 {
            assert_eq!(rows.find(Key::U64(key), 700), before.find(Key::U64(key), 700));
        }
    }

    #[test]
    fn features_match_only_in_their_own_band() {
        let params = Params::builder().minhash(3, 1).signature_bits(0).build().unwrap();
        let mut rows = Rows::new(&params);
        for (key, features) in [("a", [1, 2, 3]), ("b", [2, 2, 3]), ("c", [1, 1, 3])] {
            let features = features.map(|feature| feature << 32);
            let kept = Kept { features: &features, ..Kept::default() };
            rows.put(Key::from(key), Some(kept), Attached::default()).unwrap();
        }
        rows.put(Key::from("empty"), None, Attached::default()).unwrap();
        rows.delete(Key::from("b")).unwrap();
        let found = |band, feature: u64, limit| {
            let mut found = Vec::new();
            in_steps(|turn| {
                rows.same_feature((band, feature << 32), limit, turn, |row| {
                    let live = live_equal(&rows, row, limit).into_iter();
                    found.extend(live.map(|row| rows.records().key(row as usize).to_buf()));
                })
            });
            found
        };
        let keys =
            |keys: &[&str]| -> Vec<KeyBuf> { keys.iter().map(|&key| Key::from(key).to_buf()).collect() };
        assert_eq!(found(0, 1, 5), keys(&["c", "a"]));
        assert_eq!(found(0, 2, 5), keys(&[]));
        assert_eq!(found(0, 2, 4), keys(&["b"]));
        assert_eq!(found(1, 2, 5), keys(&["a"]));
        assert_eq!(found(2, 3, 3), keys(&["c", "b", "a"]));
        assert_eq!(found(1, 0, 5), keys(&[]), "a document without a sketch has no features");
        // The features 1, 2 and 3 have the same first 30 bits.
        let similar = |band, feature: u64, bits, limit| {
            let mut found = Vec::new();
            in_steps(|turn| {
                rows.same_feature_bits((band, feature << 32, bits), limit, turn, |row| {
                    found.extend(live_equal(&rows, row, limit));
                })
            });
            found
        };
        assert_eq!((similar(0, 1, 32, 5), similar(0, 0, 30, 5)), (vec![0, 2], vec![0, 2]));
        assert_eq!((similar(0, 0, 30, 3), similar(0, 3, 31, 3)), (vec![0, 1, 2], vec![1]));
    }

    /// Returns the results of all queries on the rows.
    fn answers(rows: &Rows, limit: u32) -> (u64, Vec<Option<u32>>, Vec<Vec<u32>>) {
        let keys =
            (0..300).map(|key| rows.find(Key::U64(key), limit).filter(|&row| rows.is_live(row, limit)));
        let mut found = Vec::new();
        let mut state = 99;
        let stored =
            (0..limit).step_by(37).filter_map(|row| rows.code(row)).map(|stored| (0, stored.words()[0]));
        let others = [0, 3, 3, 5].map(|within| (within, fingerprint(&mut state)));
        for (within, asked) in stored.chain(others) {
            let mut near = Vec::new();
            in_steps(|turn| {
                rows.within(asked, within, limit, turn, |row, _| {
                    near.extend(live_equal(rows, row, limit));
                    ControlFlow::Continue(())
                })
            });
            near.sort_unstable();
            found.push(near);
        }
        for feature in 0..20_u64 {
            let mut same = Vec::new();
            let asked = ((feature % 2) as usize, (feature / 2) << 32);
            in_steps(|turn| {
                rows.same_feature(asked, limit, turn, |row| same.extend(live_equal(rows, row, limit)))
            });
            same.sort_unstable();
            found.push(same);
        }
        (rows.live(), keys.collect(), found)
    }

    fn expiring() -> Params {
        let params =
            Params::builder().u64_keys().simhash(3).minhash(2, 1).signature_bits(0).expire_after(100);
        params.build().unwrap()
    }

    /// Adds a document, deletes one, or expires some, depending on `step`.
    fn change(rows: &mut Rows, step: u64) {
        let key = Key::U64(step.wrapping_mul(0x9E37_79B9) >> 7 & 0xff);
        let features = [(step % 10) << 32, (step % 7) << 32];
        match step % 13 {
            11 => rows.delete(key).unwrap(),
            12 => while rows.expire(step / 2, 3).unwrap() {},
            kind => {
                let mut state = step / 3;
                let kept =
                    Kept { fingerprint: fingerprint(&mut state), features: &features, ..Kept::default() };
                let attached = Attached { stamp: Some(step), ..Attached::default() };
                rows.put(key, (kind > 0).then_some(kept), attached).unwrap();
            }
        }
    }

    #[test]
    fn rows_of_a_replayed_log_give_the_results_of_rows_added_one_by_one() {
        let params = expiring();
        for count in [0, 1, 3000, 9000] {
            let [expected, loaded] = [Memtable::new(&params), Memtable::new(&params)];
            loaded.write().begin_loading();
            for number in 0..count {
                let features = [(number % 10) << 32, (number % 7) << 32];
                let mut state = number / 3;
                let fingerprint = fingerprint(&mut state);
                let kept = Kept { fingerprint, features: &features, ..Kept::default() };
                let attached = Attached { stamp: Some(number), ..Attached::default() };
                let key = Key::U64(number.wrapping_mul(0x9E37_79B9) >> 7 & 0xff);
                let (kept, is_delete) = ((number % 13 > 0).then_some(kept), number % 13 > 10);
                if is_delete {
                    expected.write().delete(key).unwrap();
                    loaded.apply(Operation::Delete(key)).unwrap();
                } else {
                    expected.put(key, kept, attached).unwrap();
                    loaded.apply(Operation::Put(key, kept, attached)).unwrap();
                }
            }
            let check = || {
                let [expected, loaded] = [&expected, &loaded].map(Memtable::read);
                for limit in [expected.len() / 2, expected.len()] {
                    assert_eq!(answers(&loaded, limit), answers(&expected, limit), "{count}: {limit}");
                }
            };
            // Before the end, the memory estimate assumes distinct features, and many repeat.
            assert!(count < 3000 || loaded.memory() > expected.memory(), "{}", loaded.memory());
            loaded.end_loading(1 << 30).unwrap();
            check();
            for table in [&expected, &loaded] {
                table.truncate(count as u32 / 2);
                // Has no effect, because there are rows already.
                if count > 1 {
                    table.write().begin_loading();
                }
                (count..count + 700).for_each(|number| change(&mut table.write(), number));
            }
            check();
        }
    }

    #[test]
    fn truncate_restores_the_earlier_state() {
        let params = expiring();
        for (kept, forgotten) in [(0, 40), (100, 20), (400, 500), (3000, 9000), (9000, 10), (9000, 6000)] {
            let mut expected = Rows::new(&params);
            (0..kept).for_each(|number| change(&mut expected, number));
            let mut rows = expected.clone();
            (kept..kept + forgotten).for_each(|number| change(&mut rows, 2 * number));
            while rows.truncate(expected.len(), 100) {}
            for number in kept..kept + 700 {
                assert_eq!(rows.len(), expected.len());
                if number % 100 == 0 {
                    for limit in [rows.len() / 2, rows.len()] {
                        assert_eq!(answers(&rows, limit), answers(&expected, limit), "{kept} {forgotten}");
                    }
                }
                change(&mut rows, number);
                change(&mut expected, number);
            }
        }
    }

    #[test]
    fn pieces_return_the_stored_records() {
        let params = Params::builder().simhash(3).minhash(2, 1).values().build().unwrap();
        let (mut rows, mut records) = (Rows::new(&params), crate::segment::Records::new(&params));
        let value = vec![7; 60_000];
        for step in 0..9000_u64 {
            let key = format!("key {}", step * 7 % 5000);
            // Some pieces reach their limit of bytes, others their limit of rows.
            let value = if step < 100 { &value[..] } else { &value[..(step % 5) as usize] };
            let kept =
                Kept { fingerprint: step, features: &[1, step], signature: &[1, 2], ..Kept::default() };
            let kept = (step % 9 > 0).then_some(kept);
            let attached = Attached { value, ..Attached::default() };
            if step % 11 == 10 {
                rows.delete(Key::from(key.as_str())).unwrap();
                records.delete(Key::from(key.as_str())).unwrap();
            } else {
                rows.put(Key::from(key.as_str()), kept, attached).unwrap();
                records.push_with(Key::from(key.as_str()), kept, attached).unwrap();
            }
        }
        for first in [9000, 8999, 4200, 4097, 40, 17, 1, 0] {
            records.truncate(first);
            let found = rows.first(first as u32).into_records();
            assert_eq!(format!("{found:?}"), format!("{records:?}"), "{first} rows");
        }
        assert!(rows.records().memory() > 5_500_000, "{}", rows.records().memory());
    }
}
