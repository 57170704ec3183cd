//! Answers queries from the rows of a memtable, which is one part of an index.
//!
//! A query holds the lock of the rows for a bounded number of steps, then releases it. Otherwise the writer would wait
//! for the query, and later readers would wait for the writer. The query ignores rows that the writer adds while the
//! lock is released.

use std::cell::{Cell, Ref, RefCell};
use std::ops::ControlFlow;

use roaring::RoaringBitmap;

use super::memtable::{Memtable, Rows, ScanPosition};
use crate::error::Result;
use crate::format::prefixes::Marks;
use crate::params::Params;
use crate::sync::RwLockReadGuard;
use twindex_sketch::Code;

/// Number of steps after which the lock is released. A step reads or compares one row, which takes at most about 100
/// ns. In tests with random thread schedules (`.ci/run races`) the lock is released after each step.
const STEPS: u32 = if cfg!(all(test, twindex_shuttle)) { 1 } else { 1 << 12 };
/// Comparing or looking up this number of set elements takes as long as one step.
const ELEMENTS: usize = 16;
/// Number of found rows, many of them several times, after which they are kept as bits.
const COLLECTED: usize = 1 << 12;
/// Number of hashes that are prefetched together.
const TOGETHER: usize = 256;

/// The first `limit` rows of a memtable. For a frozen memtable, `deleted` has the rows that were deleted since it was
/// frozen.
pub(super) struct MemtablePart<'a> {
    table: &'a Memtable,
    pub(super) limit: u32,
    deleted: Option<&'a RoaringBitmap>,
    pub(super) params: &'a Params,
    /// The guard of the lock; `None` while the lock is released.
    rows: RefCell<Option<RwLockReadGuard<'a, Rows>>>,
    /// Number of steps since the lock was acquired.
    steps: Cell<u32>,
}

impl<'a> MemtablePart<'a> {
    pub(super) fn new(
        table: &'a Memtable,
        limit: u32,
        deleted: Option<&'a RoaringBitmap>,
        params: &'a Params,
    ) -> Self {
        Self { table, limit, deleted, params, rows: RefCell::new(None), steps: Cell::new(0) }
    }

    /// Locks the rows, if this query does not hold the lock yet. The caller must drop the result before it calls a
    /// method that releases the lock.
    fn rows(&self) -> Ref<'_, Rows> {
        if self.rows.borrow().is_none() {
            *self.rows.borrow_mut() = Some(self.table.read());
        }
        Ref::map(self.rows.borrow(), |rows| match rows {
            Some(rows) => &**rows,
            None => unreachable!("taken above"),
        })
    }

    /// Counts finished steps. When [`STEPS`] are reached, releases the lock, so that a waiting writer can acquire it.
    fn give_way(&self, steps: u32) {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= STEPS
            && let Ok(mut rows) = self.rows.try_borrow_mut()
        {
            *rows = None;
            self.steps.set(0);
        }
    }

    /// Calls `read` with the locked rows, and counts one step.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        self.give_way(1);
        read(&self.rows())
    }

    /// Like [`read`](Self::read), but counts one more step per [`ELEMENTS`] of the set elements that `read` processes.
    pub(super) fn read_set<T>(&self, elements: usize, read: impl FnOnce(&Rows) -> T) -> T {
        self.give_way(1 + (elements / ELEMENTS) as u32);
        read(&self.rows())
    }

    /// Calls `step` until the scan has reached the end. Releases the lock after every [`STEPS`] steps.
    fn in_steps(&self, mut step: impl FnMut(&Rows, (&mut ScanPosition, u32)) -> u32) {
        let mut at = ScanPosition::Start;
        while at != ScanPosition::End {
            let done = step(&self.rows(), (&mut at, STEPS));
            self.give_way(done);
        }
    }

    pub(super) fn is_live(&self, row: u32) -> bool {
        !self.is_deleted(row) && self.read(|rows| rows.is_live(row, self.limit))
    }

    fn is_deleted(&self, row: u32) -> bool {
        self.deleted.is_some_and(|deleted| deleted.contains(row))
    }

    /// Returns the live rows that equal a row, or at least the `enough` of them with the smallest keys.
    pub(super) fn equal_rows(&self, row: u32, enough: usize) -> Vec<u32> {
        let is_live = |rows: &Rows, row| !self.is_deleted(row) && rows.is_live(row, self.limit);
        let smallest =
            self.read(|rows| rows.smallest_equal(row, enough, STEPS as usize, |row| is_live(rows, row)));
        if let Some(smallest) = smallest {
            return smallest;
        }
        let mut live = Vec::new();
        // Skips the rows after the view without releasing the lock, because the writer may remove them.
        let mut next = self.read(|rows| rows.newest_equal(row, self.limit));
        while let Some(row) = next {
            next = self.read(|rows| {
                live.extend(is_live(rows, row).then_some(row));
                rows.equal_before(row)
            });
        }
        live
    }

    /// Calls `each` with the first row of each content within the radius and its distance. The row need not be live: see
    /// [`equal_rows`](Self::equal_rows).
    pub(super) fn within(&self, fingerprint: u64, within: u32, mut each: impl FnMut(u32, u32)) {
        self.in_steps(|rows, turn| {
            rows.within(fingerprint, within, self.limit, turn, |row, distance| {
                each(row, distance);
                ControlFlow::Continue(())
            })
        });
    }

    /// Like [`within`](Self::within), for an index that stores codes.
    pub(super) fn codes_within(&self, code: &Code, within: u32, mut each: impl FnMut(u32, u32)) {
        self.in_steps(|rows, turn| rows.codes_within((code, within), self.limit, turn, &mut each));
    }

    /// Calls `is_found` with the first row of each content within the radius and its distance, nearest first, but not with
    /// those that are farther than one for which it returned true. If many fingerprints are close to this one, and the
    /// radius is at most 3, looks up all fingerprints at distance 0, 1 and 2 before comparing all.
    pub(super) fn nearest(
        &self,
        fingerprint: u64,
        within: u32,
        mut is_found: impl FnMut(u32, u32) -> Result<bool>,
    ) -> Result<()> {
        let mut at = ScanPosition::Start;
        let mut compared = |near: &mut Vec<(u32, u32)>| {
            let done =
                self.rows().within(fingerprint, within, self.limit, (&mut at, STEPS), |row, distance| {
                    near.push((distance, row));
                    ControlFlow::Continue(())
                });
            self.give_way(done);
            at == ScanPosition::End
        };
        let mut near = Vec::new();
        let is_looked_up = !compared(&mut near) && within <= Rows::LOOKED_UP + 1;
        if is_looked_up {
            for distance in 0..=within.min(Rows::LOOKED_UP) {
                let rows = self.rows().at_distance(fingerprint, distance, self.limit);
                self.give_way(STEPS / 2);
                if any_of(&rows, distance, &mut is_found)? {
                    return Ok(());
                }
            }
        }
        while !compared(&mut near) {}
        near.retain(|&(distance, _)| !is_looked_up || distance > Rows::LOOKED_UP);
        near.sort_unstable();
        for same in near.chunk_by(|a, b| a.0 == b.0) {
            let rows: Vec<u32> = same.iter().map(|&(_, row)| row).collect();
            if any_of(&rows, same[0].0, &mut is_found)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `each` with the first row of each content that has this feature in this band.
    pub(super) fn same_feature(&self, band: usize, feature: u64, mut each: impl FnMut(u32)) {
        self.in_steps(|rows, turn| rows.same_feature((band, feature), self.limit, turn, &mut each));
    }

    /// Like [`same_feature`](Self::same_feature), but compares only the first `bits` stored bits.
    pub(super) fn same_feature_bits(&self, band: usize, feature: u64, bits: u32, mut each: impl FnMut(u32)) {
        self.in_steps(|rows, turn| {
            rows.same_feature_bits((band, feature, bits), self.limit, turn, &mut each)
        });
    }

    /// Calls `each` with the first row of each content whose set can be near the given set, like
    /// [`Segment::sharing_prefix`](crate::segment::Segment::sharing_prefix). A row can be passed several times.
    pub(super) fn sharing_prefix(&self, set: &[u64], marks: Marks, mut each: impl FnMut(u32)) {
        let hashes = self.rows().set_hashes(set, marks);
        // Of many near rows, most share many elements with the set, so they are collected as bits.
        let (mut found, mut bits): (Vec<u32>, Vec<u64>) = Default::default();
        for hashes in hashes.chunks(TOGETHER) {
            self.read_set(hashes.len(), |rows| rows.warm_sets(hashes));
            let mut entries = self.read_set(hashes.len(), |rows| rows.newest_sharing(hashes));
            while !entries.is_empty() {
                self.give_way(entries.len() as u32);
                self.rows().sharing(&mut entries, self.limit, &mut found);
                if found.len() > COLLECTED {
                    bits.resize((self.limit as usize).div_ceil(64), 0);
                    found.drain(..).for_each(|row| bits[row as usize / 64] |= 1 << (row % 64));
                }
            }
        }
        found.into_iter().for_each(&mut each);
        for (word, mut bits) in (0..).zip(bits) {
            while bits != 0 {
                each(word * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

/// Calls `is_found` with each row. Returns whether it returned true for any.
fn any_of(rows: &[u32], distance: u32, is_found: &mut impl FnMut(u32, u32) -> Result<bool>) -> Result<bool> {
    rows.iter().try_fold(false, |any, &row| Ok(is_found(row, distance)? || any))
}

#[cfg(all(test, not(twindex_shuttle)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::format::attached::Attached;
    use crate::key::Key;
    use crate::segment::records::Kept;

    #[test]
    fn nearest_rows_of_a_dense_family_are_those_of_a_scan() {
        let params = Params::builder().u64_keys().simhash(3).build().unwrap();
        let table = Memtable::new(&params);
        let mut random = 1_u64;
        let mut bit = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1_u64 << (random >> 58)
        };
        let prints: Vec<u64> = (0..12_000).map(|_| bit() ^ bit() ^ bit()).collect();
        for (key, &fingerprint) in (0..).zip(&prints) {
            let kept = Kept { fingerprint, ..Kept::default() };
            table.put(Key::U64(key), Some(kept), Attached::default()).unwrap();
        }
        let mut seen = std::collections::HashSet::new();
        let is_first: Vec<bool> = prints.iter().map(|print| seen.insert(print)).collect();
        let memory = MemtablePart::new(&table, prints.len() as u32, None, &params);
        let (mut looked_up, mut farther) = (0, 0);
        for query in 0..300_u64 {
            let asked = prints[query as usize] ^ [0, bit(), bit() ^ bit()][query as usize % 3];
            // Some rows are treated as no longer live, in some queries all those that are close.
            let is_live =
                |row: u32, distance: u32| !row.is_multiple_of(3) && (query % 5 > 0 || distance >= 3);
            let within = 3 + u32::from(query.is_multiple_of(7));
            let mut expected: Vec<(u32, u64)> = (0..)
                .zip(&prints)
                .map(|(row, &print)| (row, (print ^ asked).count_ones(), print))
                .filter(|&(row, distance, _)| {
                    distance <= within && is_first[row as usize] && is_live(row, distance)
                })
                .map(|(_, distance, print)| (distance, print))
                .collect();
            expected.sort_unstable();
            expected.truncate(expected.partition_point(|&(distance, _)| distance == expected[0].0));
            let mut found = Vec::new();
            memory
                .nearest(asked, within, |row, distance| {
                    if is_live(row, distance) {
                        found.push((distance, prints[row as usize]));
                    }
                    Ok(is_live(row, distance))
                })
                .unwrap();
            found.sort_unstable();
            assert_eq!(found, expected, "{asked:x}");
            looked_up += usize::from(expected.first().is_some_and(|&(distance, _)| distance <= 2));
            farther += usize::from(expected.first().is_some_and(|&(distance, _)| distance == 3));
        }
        assert!(looked_up > 100 && farther > 10, "{looked_up} {farther}");
    }

    #[test]
    fn long_query_lets_the_writer_proceed_without_changing_its_result() {
        type SearchOptions = fn(&MemtablePart<'_>, &mut Vec<u32>);
        const ROWS: u32 = 3 * STEPS;
        let params = Params::builder().u64_keys().simhash(3).minhash(2, 1).signature_bits(0).build().unwrap();
        let table = Memtable::new(&params);
        for key in 0..ROWS {
            let kept = Kept { fingerprint: 5, features: &[7 << 32, 8 << 32], ..Kept::default() };
            table.put(Key::U64(key.into()), Some(kept), Attached::default()).unwrap();
        }
        let asked: [SearchOptions; 4] = [
            |memory, rows| {
                let mut near = Vec::new();
                memory.within(5, 3, |row, _| near.push(row));
                assert_eq!(near, [0]);
                rows.extend(memory.equal_rows(0, usize::MAX));
            },
            |memory, rows| {
                let mut same = Vec::new();
                memory.same_feature(1, 8 << 32, |row| same.push(row));
                assert_eq!(same, [0]);
                rows.extend(memory.equal_rows(0, usize::MAX));
            },
            |memory, rows| {
                let mut same = Vec::new();
                memory.same_feature_bits(0, 7 << 32, 31, |row| same.push(row));
                assert_eq!(same, [0]);
                rows.extend(memory.equal_rows(0, usize::MAX));
            },
            |memory, rows| rows.extend((0..ROWS).filter(|&row| memory.is_live(row))),
        ];
        for ask in asked {
            let written = AtomicBool::new(false);
            let overdue = std::thread::scope(|scope| {
                let memory = MemtablePart::new(&table, ROWS, None, &params);
                memory.read(Rows::len);
                scope.spawn(|| {
                    table.write().delete(Key::U64(1)).unwrap();
                    written.store(true, Ordering::Relaxed);
                });
                let start = Instant::now();
                loop {
                    let mut rows = Vec::new();
                    ask(&memory, &mut rows);
                    rows.sort_unstable();
                    assert!(rows.iter().copied().eq(0..ROWS), "{} rows", rows.len());
                    let is_overdue = start.elapsed() > Duration::from_secs(10);
                    if is_overdue || written.load(Ordering::Relaxed) {
                        break is_overdue;
                    }
                }
            });
            assert!(!overdue, "the writer had to wait for the end of all queries");
        }
    }
}
