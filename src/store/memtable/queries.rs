//! Queries that may read many rows. A query runs in steps, and the caller releases the lock between two steps, so that
//! the writer can add rows. The query ignores new rows, and adding them does not change the links of existing rows.

use std::ops::ControlFlow;

use super::equals::fingerprint_hash;
use super::{BLOCKS, BLOCKS_WITHIN, NONE, Rows, SCANNED, bucket, feature_hash, prefix_hash};
use crate::format::prefixes::Marks;
use crate::format::{bands, prefixes};
use twindex_sketch::Code;

/// The position at which a query continues in its next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) enum ScanPosition {
    #[default]
    Start,
    /// The next row of a scan.
    Row(u32),
    /// The next entry of a chain.
    Entry(u32),
    /// A block, the row of the next fingerprint in the bucket, and the next row with the current fingerprint. Each of
    /// the two rows can be [`NONE`].
    Block(usize, u32, u32),
    End,
}

impl Rows {
    /// Calls `each` with the first row of each content within `within` bits of `fingerprint` and its distance, until `each`
    /// returns `Break`. The row need not be live. Runs one step from the position `at`: reads about `steps` rows, and returns the number of rows read.
    pub(in crate::store) fn within(
        &self,
        fingerprint: u64,
        within: u32,
        limit: u32,
        (at, steps): (&mut ScanPosition, u32),
        mut each: impl FnMut(u32, u32) -> ControlFlow<()>,
    ) -> u32 {
        let (mut block, mut first, mut same) = match *at {
            ScanPosition::Start if !self.simhash => (BLOCKS, NONE, NONE),
            ScanPosition::Start
                if self.linked < limit as usize || limit < SCANNED as u32 || within > BLOCKS_WITHIN =>
            {
                return self.scan((fingerprint, within), limit, (at, 0), each);
            }
            ScanPosition::Row(row) => return self.scan((fingerprint, within), limit, (at, row), each),
            ScanPosition::Start => (0, self.heads.get(bucket(fingerprint, 0)), NONE),
            ScanPosition::Block(block, first, same) => (block, first, same),
            ScanPosition::Entry(_) | ScanPosition::End => (BLOCKS, NONE, NONE),
        };
        for step in 0..steps {
            if block == BLOCKS {
                *at = ScanPosition::End;
                return step;
            }
            if same != NONE {
                let (row, distance) =
                    (same, (fingerprint ^ self.fingerprints.get(same as usize)).count_ones());
                same = self.same_fingerprint.before(row).unwrap_or(NONE);
                if row < limit && each(row, distance).is_break() {
                    *at = ScanPosition::End;
                    return step;
                }
            } else if first == NONE {
                block += 1;
                if block < BLOCKS {
                    first = self.heads.get(bucket(fingerprint, block));
                }
            } else {
                let other = self.fingerprints.get(first as usize);
                let differs = fingerprint ^ other;
                // If a fingerprint agrees with the query in several blocks, only the first of them reports it.
                let earlier = (0..block).any(|block| (differs >> (16 * block)) as u16 == 0);
                if differs.count_ones() <= within && !earlier {
                    let is_same = |row: u32| self.fingerprints.get(row as usize) == other;
                    same = self.same_fingerprint.newest(fingerprint_hash(other), is_same).unwrap_or(NONE);
                }
                first = self.next.get(first as usize)[block];
            }
        }
        *at = if block == BLOCKS { ScanPosition::End } else { ScanPosition::Block(block, first, same) };
        steps
    }

    /// The maximum distance of [`at_distance`](Self::at_distance).
    pub(in crate::store) const LOOKED_UP: u32 = 2;

    /// Returns the first row of each content at this distance among the first `limit` rows. Looks up all fingerprints at
    /// this distance: one, 64 or 2,016. The rows need not be live.
    pub(in crate::store) fn at_distance(&self, fingerprint: u64, distance: u32, limit: u32) -> Vec<u32> {
        debug_assert!(distance <= Self::LOOKED_UP, "{distance}");
        let (mut others, mut rows) = (Vec::with_capacity(64), Vec::new());
        for higher in 0..if distance == 2 { u64::BITS } else { 1 } {
            others.clear();
            match distance {
                0 => others.push(fingerprint),
                1 => others.extend((0..u64::BITS).map(|bit| fingerprint ^ 1 << bit)),
                _ => others.extend((0..higher).map(|bit| fingerprint ^ 1 << higher ^ 1 << bit)),
            }
            self.same_fingerprint.warm(others.iter().map(|&other| fingerprint_hash(other)));
            for &other in &others {
                let is_same = |row: u32| self.fingerprints.get(row as usize) == other;
                let same = self.same_fingerprint.of(fingerprint_hash(other), is_same);
                rows.extend(same.filter(|&row| row < limit));
            }
        }
        rows
    }

    /// Like [`within`](Self::within), but scans all rows. A step reads the rows from `row` to the end of the chunk.
    fn scan(
        &self,
        (fingerprint, within): (u64, u32),
        limit: u32,
        (at, row): (&mut ScanPosition, u32),
        mut each: impl FnMut(u32, u32) -> ControlFlow<()>,
    ) -> u32 {
        let limit = limit.min(self.len());
        let slice = if row < limit { self.fingerprints.slice_from(row as usize) } else { &[] };
        let slice = &slice[..slice.len().min((limit - row) as usize)];
        for (other, row) in slice.iter().zip(row..) {
            let distance = (fingerprint ^ other).count_ones();
            if distance <= within
                && self.records.is_sketched(row as usize)
                && self.equals.is_first(row)
                && each(row, distance).is_break()
            {
                *at = ScanPosition::End;
                return slice.len() as u32;
            }
        }
        let next = row + slice.len() as u32;
        *at = if slice.is_empty() || next == limit { ScanPosition::End } else { ScanPosition::Row(next) };
        slice.len() as u32
    }

    /// Like [`within`](Self::within), for an index that stores codes: scans all rows.
    pub(in crate::store) fn codes_within(
        &self,
        (code, within): (&Code, u32),
        limit: u32,
        (at, steps): (&mut ScanPosition, u32),
        mut each: impl FnMut(u32, u32),
    ) -> u32 {
        let from = if let ScanPosition::Row(row) = *at { row } else { 0 };
        let to = limit.min(self.len()).min(from.saturating_add(steps)).max(from);
        for row in (from..to).filter(|&row| self.equals.is_first(row)) {
            if let Some(distance) = self.code(row).map(|other| code.distance(&other))
                && distance <= within
            {
                each(row, distance);
            }
        }
        *at = if to == from || to == limit { ScanPosition::End } else { ScanPosition::Row(to) };
        to - from
    }

    /// Prefetches the memory that queries for these features, one per band, will read, so that the memory accesses overlap.
    pub(in crate::store) fn warm_features(&self, features: &[u64]) {
        let bits = bands::bits_of(self.params());
        let hashes =
            (0..).zip(features).map(|(band, &feature)| feature_hash(band, bands::key(feature, bits)));
        self.features.warm(hashes);
    }

    /// Calls `each` with the first row of each content that has this feature in this band, newest first. Runs one step from the
    /// position `at`: reads at most `steps` rows, and returns the number of rows read.
    pub(in crate::store) fn same_feature(
        &self,
        (band, feature): (usize, u64),
        limit: u32,
        (at, steps): (&mut ScanPosition, u32),
        mut each: impl FnMut(u32),
    ) -> u32 {
        let key = bands::key(feature, bands::bits_of(self.params()));
        let newest = || self.features.newest(feature_hash(band, key), |_| true);
        follow(
            (at, steps),
            newest,
            |entry| self.features.before(entry),
            |entry| {
                let (row, of) = ((entry as usize / self.bands) as u32, entry as usize % self.bands);
                if of == band
                    && row < limit
                    && self.equals.is_first(row)
                    && self.records.is_sketched(row as usize)
                    && self.records.band_keys(row as usize)[band] == key
                {
                    each(row);
                }
            },
        )
    }

    /// Returns the hashes under which sets near `set` can be indexed, for the rows that `marks` includes.
    pub(in crate::store) fn set_hashes(&self, set: &[u64], marks: Marks) -> Vec<u64> {
        let marks = if self.params().marks { marks } else { Marks::Unmarked };
        if marks == Marks::Marked {
            return self.marked_hashes(set).collect();
        }
        set.iter().flat_map(|&hash| marks.keys(prefixes::tag(hash))).map(prefix_hash).collect()
    }

    /// Returns the hashes under which marked rows with sets near `set` can be indexed, without most of those under which
    /// there is none.
    fn marked_hashes(&self, set: &[u64]) -> impl Iterator<Item = u64> {
        let keys = set.iter().map(|&hash| prefixes::key(prefixes::tag(hash), true));
        keys.filter(|&key| self.marked_keys.may_contain(key)).map(prefix_hash)
    }

    /// Returns whether a marked row is indexed under a hash of `set`, so that its set can be near.
    pub(in crate::store) fn may_have_marked(&self, set: &[u64]) -> bool {
        self.marked_hashes(set).any(|hash| self.prefixes.newest(hash, |_| true).is_some())
    }

    /// Prefetches the memory that queries for these hashes will read, so that the memory accesses overlap.
    pub(in crate::store) fn warm_sets(&self, hashes: &[u64]) {
        self.prefixes.warm(hashes.iter().copied());
    }

    /// Returns the newest entry under each of these hashes that has one.
    pub(in crate::store) fn newest_sharing(&self, hashes: &[u64]) -> Vec<u32> {
        hashes.iter().filter_map(|&hash| self.prefixes.newest(hash, |_| true)).collect()
    }

    /// Appends the rows of these entries to `found`, and replaces each entry by the previous one with the same hash; removes
    /// the entries that have none. The memory accesses of entries of different hashes overlap.
    pub(in crate::store) fn sharing(&self, entries: &mut Vec<u32>, limit: u32, found: &mut Vec<u32>) {
        entries.retain_mut(|entry| {
            let (row, _) = self.prefix_entries.get(*entry as usize);
            if row < limit {
                found.push(row);
            }
            self.prefixes.before(*entry).inspect(|before| *entry = *before).is_some()
        });
    }

    /// Calls `each` with the first row of each content whose feature in this band has the same first `bits` stored bits,
    /// oldest first.
    /// Runs one step from the position `at`: reads `steps` rows, and returns the number of rows read.
    pub(in crate::store) fn same_feature_bits(
        &self,
        (band, feature, bits): (usize, u64, u32),
        limit: u32,
        (at, steps): (&mut ScanPosition, u32),
        mut each: impl FnMut(u32),
    ) -> u32 {
        let key = bands::key(feature, bits);
        let from = match *at {
            ScanPosition::Start => 0,
            ScanPosition::Row(row) => row,
            _ => limit,
        };
        let to = limit.min(from.saturating_add(steps)).max(from);
        for row in (from..to).filter(|&row| self.records.is_sketched(row as usize)) {
            let own = self.records.band_keys(row as usize)[band];
            if (key ^ own) >> (bands::KEY_BITS - bits) == 0 && self.equals.is_first(row) {
                each(row);
            }
        }
        *at = if to == limit { ScanPosition::End } else { ScanPosition::Row(to) };
        to - from
    }
}

/// Calls `each` with at most `steps` entries of a chain, from `at` on. Returns the number of entries read.
fn follow(
    (at, steps): (&mut ScanPosition, u32),
    newest: impl FnOnce() -> Option<u32>,
    before: impl Fn(u32) -> Option<u32>,
    mut each: impl FnMut(u32),
) -> u32 {
    let mut next = match *at {
        ScanPosition::Start => newest(),
        ScanPosition::Entry(entry) => Some(entry),
        _ => None,
    };
    for step in 0..steps {
        let Some(entry) = next else {
            *at = ScanPosition::End;
            return step + 1;
        };
        each(entry);
        next = before(entry);
    }
    *at = next.map_or(ScanPosition::End, ScanPosition::Entry);
    steps
}
