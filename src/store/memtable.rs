//! The memtable: records that are in no segment yet, found by the same questions.
//!
//! Rows are what was done to keys, in order, and are never changed; a row is live for those who look at the first n
//! rows if it is among them, is no delete, and none of them is of the same key and later. So a snapshot is a number of
//! rows, and the writer goes on behind it.
//!
//! - Keys: a hash table of chains, the newest row first.
//! - Fingerprints: four blocks of 16 bits. Fingerprints that differ in at most 3 bits agree in one of them (Manku,
//!   Jain, Das Sarma, WWW 2007, with four tables); each distinct one is in the chain of each of its four buckets
//!   once, and its rows in a chain of their own. Few rows, or wider radii, are scanned.
//! - Features: a hash table of chains over (band, band key).
//! - Sets: the same over the keys of prefixes, where no tag is common.
//! - Stamps: a heap, the least first. A row that expires is followed by a delete of its key, which no log has: so it is
//!   live for those who look at fewer rows, and for nobody else.
//!
//! One writer adds under a lock that readers share; it is held for one record, or for one question.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::Result;
use crate::format::attached::Attached;
use crate::format::fields::{Fields, unread};
use crate::format::{bands, prefixes};
use crate::key::Key;
use crate::params::Params;
use crate::segment::Records;
use crate::segment::records::Kept;
use crate::segment::sets::nearness;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use twindex_sketch::Nearness;

/// The end of a chain, and of a row's life where it has none.
const NONE: u32 = u32::MAX;
/// Radii that the blocks answer.
const BLOCKS_WITHIN: u32 = 3;
/// Blocks of a fingerprint.
const BLOCKS: usize = 4;
/// Buckets of a block.
const BUCKETS: usize = 1 << 16;
/// Fewer rows are scanned.
const SCANNED: usize = 512;
/// Bytes of a row beside its record: chains of keys, fingerprints and blocks, and what hash tables take.
const ROW_BYTES: usize = 64;

/// Rows that one writer adds to, and many read.
#[derive(Debug)]
pub(super) struct Memtable {
    rows: RwLock<Rows>,
}

impl Memtable {
    pub(super) fn new(params: &Params) -> Self {
        Self { rows: RwLock::new(Rows::new(params)) }
    }

    /// The rows, for one question.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read()
    }

    /// The rows, for one record more.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write()
    }
}

/// Spreads numbers that are fingerprints over a hash table.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(value ^ 0x9E37_79B9_7F4A_7C15) * 0xA076_1D64_78BD_642F;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A hash table of chains: entries are numbers from 0 on, in the order they come.
#[derive(Clone, Debug, Default)]
struct Chains {
    heads: Vec<u32>,
    next: Vec<u32>,
    hashes: Vec<u32>,
}

impl Chains {
    fn push(&mut self, hash: u64) {
        let hash = (hash >> 32) as u32;
        if self.next.len() >= self.heads.len() {
            let size = (2 * self.heads.len()).max(64);
            self.heads.clear();
            self.heads.resize(size, NONE);
            for entry in 0..self.next.len() {
                self.link(entry as u32, self.hashes[entry]);
            }
        }
        self.next.push(NONE);
        self.hashes.push(hash);
        self.link(self.next.len() as u32 - 1, hash);
    }

    fn link(&mut self, entry: u32, hash: u32) {
        let place = hash as usize & (self.heads.len() - 1);
        let head = &mut self.heads[place];
        self.next[entry as usize] = *head;
        *head = entry;
    }

    /// Entries that may be of this hash, the newest first.
    fn of(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let hash = (hash >> 32) as u32;
        let first = match self.heads.len() {
            0 => NONE,
            size => self.heads[hash as usize & (size - 1)],
        };
        let some = |entry: u32| (entry != NONE).then_some(entry);
        std::iter::successors(some(first), move |&entry| some(self.next[entry as usize]))
            .filter(move |&entry| self.hashes[entry as usize] == hash)
    }

    fn bytes(&self) -> usize {
        4 * (self.heads.len() + 2 * self.next.len())
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

/// A key of a prefix is part of a hash already.
fn prefix_hash(key: u32) -> u64 {
    u64::from(key) << 32
}

/// The bucket of a fingerprint in a block.
fn bucket(fingerprint: u64, block: usize) -> usize {
    block * BUCKETS + (fingerprint >> (16 * block)) as usize % BUCKETS
}

/// What was done to keys, in order.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    records: Records,
    /// The next row of the same key.
    replaced_by: Vec<u32>,
    live: u64,
    keys: Chains,
    /// Of each distinct fingerprint the newest row.
    newest: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    /// The row before of the same fingerprint.
    same: Vec<u32>,
    /// The first bucket's first row, and so on; nothing while rows are few.
    heads: Vec<u32>,
    /// For each row that was the first of its fingerprint, the next such row in each of its buckets.
    next: Vec<[u32; BLOCKS]>,
    features: Chains,
    prefixes: Chains,
    /// The row of each entry of `prefixes`.
    prefix_rows: Vec<u32>,
    nearness: Option<Nearness>,
    /// Stamps of rows that have not expired yet, and their rows.
    stamps: BinaryHeap<Reverse<(u64, u32)>>,
    bands: usize,
    simhash: bool,
}

impl Rows {
    fn new(params: &Params) -> Self {
        Self {
            records: Records::new(params),
            replaced_by: Vec::new(),
            live: 0,
            keys: Chains::default(),
            newest: HashMap::default(),
            same: Vec::new(),
            heads: Vec::new(),
            next: Vec::new(),
            features: Chains::default(),
            prefixes: Chains::default(),
            prefix_rows: Vec::new(),
            nearness: nearness(params),
            stamps: BinaryHeap::new(),
            bands: params.minhash.map_or(0, |minhash| minhash.bands.into()),
            simhash: params.simhash.is_some(),
        }
    }

    /// Rows.
    pub(super) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// Rows that are live now.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Bytes they take.
    pub(super) fn memory(&self) -> usize {
        let blocks = 4 * self.heads.len();
        self.records.memory() + self.replaced_by.len() * ROW_BYTES + self.features.bytes() + self.prefixes.bytes() + 4 * self.prefix_rows.len() + blocks
    }

    /// The records of all rows: of a key the last counts.
    pub(super) fn records(&self) -> &Records {
        &self.records
    }

    /// The records of the first `rows`.
    pub(super) fn first(&self, rows: u32) -> Records {
        let mut records = self.records.clone();
        records.truncate(rows as usize);
        records
    }

    /// Adds a document; `None` for one without tokens.
    pub(super) fn put(&mut self, key: Key<'_>, kept: Option<Kept<'_>>, attached: Attached<'_>) -> Result<()> {
        let prefix = self.prefix_of(attached.fields)?;
        self.records.push_with(key, kept, attached)?;
        self.index(self.len() - 1);
        for key in prefix {
            self.prefixes.push(prefix_hash(key));
            self.prefix_rows.push(self.len() - 1);
        }
        Ok(())
    }

    /// Says that there is no document of this key any more.
    pub(super) fn delete(&mut self, key: Key<'_>) -> Result<()> {
        self.records.delete(key)?;
        self.index(self.len() - 1);
        Ok(())
    }

    /// Says that there are no documents any more whose stamps are not above this.
    pub(super) fn expire(&mut self, stamp: u64) -> Result<()> {
        while let Some(&Reverse((least, row))) = self.stamps.peek()
            && least <= stamp
        {
            self.stamps.pop();
            if self.is_live(row, self.len()) {
                let key = self.records.key(row as usize).to_buf();
                self.delete(key.as_key())?;
            }
        }
        Ok(())
    }

    /// Forgets all rows but the first `rows`.
    pub(super) fn truncate(&mut self, rows: u32) {
        let records = self.first(rows);
        let (prefixes, prefix_rows) = (std::mem::take(&mut self.prefixes), std::mem::take(&mut self.prefix_rows));
        *self = Self {
            bands: self.bands,
            simhash: self.simhash,
            records,
            ..Self::new(&Params::clone(self.params()))
        };
        for row in 0..rows {
            self.index(row);
        }
        for (&key, row) in prefixes.hashes.iter().zip(prefix_rows).take_while(|&(_, row)| row < rows) {
            self.prefixes.push(prefix_hash(key));
            self.prefix_rows.push(row);
        }
    }

    fn params(&self) -> &Params {
        self.records.params()
    }

    /// Makes a row known to the tables; rows come in order.
    fn index(&mut self, row: u32) {
        let place = row as usize;
        let key = self.records.key(place);
        let hash = key_hash(key);
        let before = self.keys.of(hash).find(|&row| self.records.key(row as usize) == key);
        if let Some(before) = before {
            self.replaced_by[before as usize] = row;
            self.live -= u64::from(!self.records.is_delete(before as usize));
        }
        self.keys.push(hash);
        self.replaced_by.push(NONE);
        self.live += u64::from(!self.records.is_delete(place));
        if let Some(stamp) = self.records.stamp(place).filter(|_| !self.records.is_delete(place)) {
            self.stamps.push(Reverse((stamp, row)));
        }
        if self.simhash {
            self.same.push(NONE);
            self.next.push([NONE; BLOCKS]);
            if self.records.is_sketched(place) {
                let fingerprint = self.records.fingerprints()[place];
                match self.newest.insert(fingerprint, row) {
                    Some(before) => self.same[place] = before,
                    None if !self.heads.is_empty() => self.link(row, fingerprint),
                    None => {}
                }
            }
            if self.heads.is_empty() && self.next.len() >= SCANNED {
                self.make_blocks();
            }
        }
        if self.bands > 0 {
            // A row without a sketch has entries too, which nobody takes for features: so places can be computed.
            for band in 0..self.bands {
                let key = self.records.band_keys(place)[band];
                self.features.push(feature_hash(band, key));
            }
        }
    }

    /// The keys by which a document with these fields is found by its set.
    fn prefix_of(&self, fields: Fields<'_>) -> Result<Vec<u32>> {
        let (mut set, mut keys) = (Vec::new(), Vec::new());
        if let Some(near) = self.nearness {
            fields.set_into(&mut set).map_err(unread)?;
            prefixes::tags_of(&set, near.indexed(set.len()), |_| Ok(0), &mut keys)?;
            keys.iter_mut().for_each(|tag| *tag = prefixes::key(*tag, fields.is_marked()));
        }
        Ok(keys)
    }

    fn make_blocks(&mut self) {
        self.heads = vec![NONE; BLOCKS * BUCKETS];
        for row in 0..self.next.len() {
            // The first of its fingerprint has none before it.
            if self.records.is_sketched(row) && self.same[row] == NONE {
                self.link(row as u32, self.records.fingerprints()[row]);
            }
        }
    }

    fn link(&mut self, row: u32, fingerprint: u64) {
        for block in 0..BLOCKS {
            let head = &mut self.heads[bucket(fingerprint, block)];
            self.next[row as usize][block] = *head;
            *head = row;
        }
    }

    /// True if a row is live for those who look at the first `limit` rows.
    pub(super) fn is_live(&self, row: u32, limit: u32) -> bool {
        row < limit && self.replaced_by[row as usize] >= limit && !self.records.is_delete(row as usize)
    }

    /// The newest row of a key among the first `limit`, a delete or not.
    pub(super) fn find(&self, key: Key<'_>, limit: u32) -> Option<u32> {
        self.keys.of(key_hash(key)).find(|&row| row < limit && self.records.key(row as usize) == key)
    }

    /// Hands each live row within `within` bits of `fingerprint`, and its distance, to `each`; stops at a break.
    pub(super) fn within(
        &self,
        fingerprint: u64,
        within: u32,
        limit: u32,
        mut each: impl FnMut(u32, u32) -> ControlFlow<()>,
    ) {
        if !self.simhash {
            return;
        }
        let fingerprints = self.records.fingerprints();
        if self.heads.is_empty() || within > BLOCKS_WITHIN {
            for (row, other) in fingerprints[..limit as usize].iter().enumerate() {
                let distance = (fingerprint ^ other).count_ones();
                if distance <= within
                    && self.records.is_sketched(row)
                    && self.is_live(row as u32, limit)
                    && each(row as u32, distance).is_break()
                {
                    return;
                }
            }
            return;
        }
        for block in 0..BLOCKS {
            let mut first = self.heads[bucket(fingerprint, block)];
            while first != NONE {
                let other = fingerprints[first as usize];
                let differs = fingerprint ^ other;
                let distance = differs.count_ones();
                // Found by the first block in which both agree.
                let earlier = (0..block).any(|block| (differs >> (16 * block)) as u16 == 0);
                if distance <= within && !earlier {
                    // Found always: a fingerprint enters the chains after it entered `newest`, and leaves neither.
                    let mut row = self.newest.get(&other).copied().unwrap_or(NONE);
                    while row != NONE {
                        if self.is_live(row, limit) && each(row, distance).is_break() {
                            return;
                        }
                        row = self.same[row as usize];
                    }
                }
                first = self.next[first as usize][block];
            }
        }
    }

    /// Hands each live row that has this feature in this band to `each`, the newest first.
    pub(super) fn same_feature(&self, band: usize, feature: u64, limit: u32, mut each: impl FnMut(u32)) {
        let key = bands::key(feature, bands::bits_of(self.params()));
        for entry in self.features.of(feature_hash(band, key)) {
            let (row, of) = ((entry as usize / self.bands) as u32, entry as usize % self.bands);
            if of == band
                && self.records.is_sketched(row as usize)
                && self.records.band_keys(row as usize)[band] == key
                && self.is_live(row, limit)
            {
                each(row);
            }
        }
    }

    /// Hands each live row that can be near a set to `each`, as [`Segment::sharing_prefix`](crate::segment::Segment) does.
    pub(super) fn sharing_prefix(
        &self,
        set: &[u64],
        near: Nearness,
        marked: bool,
        limit: u32,
        mut each: impl FnMut(u32),
    ) -> Result<()> {
        let mut tags = Vec::new();
        prefixes::tags_of(set, near.prefix(set.len()), |_| Ok(0), &mut tags)?;
        for tag in tags {
            for is_marked in [false, true].into_iter().filter(|is_marked| marked || !is_marked) {
                for entry in self.prefixes.of(prefix_hash(prefixes::key(tag, is_marked))) {
                    let row = self.prefix_rows[entry as usize];
                    if self.is_live(row, limit) {
                        each(row);
                    }
                }
            }
        }
        Ok(())
    }

    /// The same, of features that begin with the same `bits` bits, of those that are kept; the oldest first. All rows
    /// are looked at.
    pub(super) fn same_feature_bits(
        &self,
        band: usize,
        feature: u64,
        bits: u32,
        limit: u32,
        mut each: impl FnMut(u32),
    ) {
        let key = bands::key(feature, bits);
        for row in (0..limit).filter(|&row| self.records.is_sketched(row as usize)) {
            let own = self.records.band_keys(row as usize)[band];
            if (key ^ own) >> (bands::KEY_BITS - bits) == 0 && self.is_live(row, limit) {
                each(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyBuf;

    fn raw() -> Params {
        Params::builder().u64_keys().simhash(3).build().unwrap()
    }

    /// A generator of numbers that lie near each other, and repeat.
    fn fingerprint(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let center = (*state >> 60).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        center ^ 1 << (*state >> 33 & 63) ^ 1 << (*state >> 40 & 63)
    }

    #[test]
    fn every_view_of_a_memtable_answers_as_a_scan_of_its_rows() {
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
                rows.within(query, within, limit as u32, |row, distance| {
                    found.push((row, distance));
                    ControlFlow::Continue(())
                });
                found.sort_unstable();
                assert_eq!(found, expected, "{limit} rows, within {within}");
            }
        }
        let live = |rows: &Rows| (0..rows.len()).filter(|&row| rows.is_live(row, rows.len())).count() as u64;
        assert_eq!(rows.live(), live(&rows));
        let before = rows.clone();
        rows.truncate(700);
        assert_eq!((rows.len(), rows.live()), (700, live(&rows)));
        for key in 0..401 {
            assert_eq!(rows.find(Key::U64(key), 700), before.find(Key::U64(key), 700));
        }
    }

    #[test]
    fn features_are_found_in_their_band_alone() {
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
            rows.same_feature(band, feature << 32, limit, |row| {
                found.push(rows.records().key(row as usize).to_buf());
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
        // 1, 2 and 3 are all below 4.
        let similar = |band, feature: u64, bits, limit| {
            let mut found = Vec::new();
            rows.same_feature_bits(band, feature << 32, bits, limit, |row| found.push(row));
            found
        };
        assert_eq!((similar(0, 1, 32, 5), similar(0, 0, 30, 5)), (vec![0, 2], vec![0, 2]));
        assert_eq!((similar(0, 0, 30, 3), similar(0, 3, 31, 3)), (vec![0, 1, 2], vec![1]));
    }
}
