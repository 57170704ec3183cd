//! Groups of rows with equal content: the stored data that decides how near a document is to another one. These are the
//! fingerprint, the features, the signature, the set or the code, and the mark.
//!
//! Only the first row of a group is indexed by its content, and a query compares only this row. The rows of a large group
//! are also sorted by key, because a query with a limit returns those with the smallest keys. So the time of neither
//! grows with the number of equal rows.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use super::chains::{Chains, NONE};
use super::chunked::ChunkedVec;
use super::pieces::Pieces;

/// Groups of at least this number of rows are sorted by key.
const SORTED: u32 = 32;
/// Maximum number of rows in a chunk of a sorted group.
const CHUNK: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Group {
    newest: u32,
    rows: u32,
}

/// The rows of a group by ascending key, in chunks of at most [`CHUNK`] rows. Rows with the same key are in the order of
/// insertion.
#[derive(Clone, Debug)]
struct SortedRows {
    chunks: Vec<Vec<u32>>,
}

impl SortedRows {
    fn new(mut rows: Vec<u32>, records: &Pieces) -> Self {
        rows.sort_unstable_by(|&a, &b| Self::place(records, a).cmp(&Self::place(records, b)));
        Self { chunks: rows.chunks(CHUNK / 2).map(<[u32]>::to_vec).collect() }
    }

    fn place(records: &Pieces, row: u32) -> (crate::key::Key<'_>, u32) {
        (records.key(row as usize), row)
    }

    /// Returns the chunk in which a row belongs, and the position in the chunk.
    fn find(&self, row: u32, records: &Pieces) -> (usize, usize) {
        let place = Self::place(records, row);
        let is_before = |other: &u32| Self::place(records, *other) < place;
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(is_before));
        let chunk = chunk.min(self.chunks.len() - 1);
        (chunk, self.chunks[chunk].partition_point(is_before))
    }

    fn insert(&mut self, row: u32, records: &Pieces) {
        let (chunk, at) = self.find(row, records);
        self.chunks[chunk].insert(at, row);
        if self.chunks[chunk].len() >= CHUNK {
            let upper = self.chunks[chunk].split_off(CHUNK / 2);
            self.chunks.insert(chunk + 1, upper);
        }
    }

    fn remove(&mut self, row: u32, records: &Pieces) {
        let (chunk, at) = self.find(row, records);
        self.chunks[chunk].remove(at);
        if self.chunks[chunk].is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(chunk);
        }
    }
}

/// The groups of rows with equal content. Deletes belong to no group. The number of a group is that of its first row.
#[derive(Clone, Debug, Default)]
pub(super) struct EqualRows {
    /// The groups by the hash of their content.
    by_content: Chains,
    /// For each row, the group that has its number; a group without rows if none has.
    groups: ChunkedVec<Group>,
    /// For each row, its group, and the previous row of the group. Either can be [`NONE`].
    rows: ChunkedVec<(u32, u32)>,
    sorted: HashMap<u32, SortedRows>,
}

impl EqualRows {
    /// Number of bytes per row, without `by_content`; a row of a sorted group takes 4 more.
    const ROW_BYTES: usize = size_of::<Group>() + size_of::<(u32, u32)>() + size_of::<u32>();

    /// Adds the next row, which is a delete.
    pub(super) fn push_delete(&mut self) {
        self.by_content.skip();
        self.add(NONE);
    }

    /// Adds the next row, which is the last of these records.
    pub(super) fn push(&mut self, records: &Pieces) {
        let row = self.rows.len() as u32;
        let hash = content_hash(records, row);
        let number = self.by_content.newest(hash, |first| is_equal(records, first, row));
        if number.is_some() {
            self.by_content.skip();
        } else {
            self.by_content.push(hash, |_| false);
        }
        let number = number.unwrap_or(row);
        self.add(number);
        if let Some(sorted) = self.sorted.get_mut(&number) {
            sorted.insert(row, records);
        } else if self.groups.get(number as usize).rows == SORTED {
            let rows = self.of_group(row).collect();
            self.sorted.insert(number, SortedRows::new(rows, records));
        }
    }

    /// Adds all rows of these records to an empty table.
    pub(super) fn fill(&mut self, records: &Pieces) {
        let hashes = (0..records.len())
            .map(|row| (!records.is_delete(row)).then(|| content_hash(records, row as u32)));
        let mut numbers: Vec<u32> = (0..records.len() as u32).collect();
        self.by_content.fill(
            records.len(),
            hashes,
            |row, first| is_equal(records, first, row),
            |row, first| {
                numbers[row as usize] = first;
                false
            },
        );
        for (row, number) in numbers.into_iter().enumerate() {
            self.add(if records.is_delete(row) { NONE } else { number });
        }
        let mut large: HashMap<u32, Vec<u32>> = HashMap::new();
        for row in 0..records.len() {
            let (number, _) = self.rows.get(row);
            if number != NONE && self.groups.get(number as usize).rows >= SORTED {
                large.entry(number).or_default().push(row as u32);
            }
        }
        self.sorted =
            large.into_iter().map(|(number, rows)| (number, SortedRows::new(rows, records))).collect();
    }

    /// Adds the next row to the group with this number, without sorting it.
    fn add(&mut self, number: u32) {
        let row = self.rows.len() as u32;
        self.groups.push(Group { newest: NONE, rows: 0 });
        let mut before = NONE;
        if number != NONE {
            let group = self.groups.get_mut(number as usize);
            before = std::mem::replace(&mut group.newest, row);
            group.rows += 1;
        }
        self.rows.push((number, before));
    }

    /// Removes the last row. It must still be in `records`.
    pub(super) fn pop(&mut self, records: &Pieces) {
        let Some((number, before)) = self.rows.pop() else { return };
        let row = self.rows.len() as u32;
        self.by_content.pop(if number == row { content_hash(records, row) } else { 0 });
        if let Some(sorted) = self.sorted.get_mut(&number) {
            if self.groups.get(number as usize).rows == SORTED {
                self.sorted.remove(&number);
            } else {
                sorted.remove(row, records);
            }
        }
        if number != NONE {
            let group = self.groups.get_mut(number as usize);
            (group.newest, group.rows) = (before, group.rows - 1);
        }
        self.groups.pop();
    }

    /// Returns whether a row is a document and the first of its group.
    #[inline]
    pub(super) fn is_first(&self, row: u32) -> bool {
        self.rows.get(row as usize).0 == row
    }

    /// Returns this row and the earlier rows of its group, newest first.
    pub(super) fn of_group(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(row), |&row| self.before(row))
    }

    /// Returns the previous row of the group.
    pub(super) fn before(&self, row: u32) -> Option<u32> {
        Some(self.rows.get(row as usize).1).filter(|&before| before != NONE)
    }

    /// Returns the newest row of the group of a row.
    pub(super) fn newest(&self, row: u32) -> u32 {
        self.groups.get(self.rows.get(row as usize).0 as usize).newest
    }

    /// Returns the rows of the group of a row by ascending key; `None` for a group that is not sorted.
    pub(super) fn by_key(&self, row: u32) -> Option<impl Iterator<Item = u32> + '_> {
        let sorted = self.sorted.get(&self.rows.get(row as usize).0)?;
        Some(sorted.chunks.iter().flatten().copied())
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_content.bytes() + Self::ROW_BYTES * self.rows.len()
    }

    /// Returns the approximate number of bytes that this number of rows uses, if all differ.
    pub(super) fn bytes_of(rows: usize) -> usize {
        Chains::bytes_of(rows) + Self::ROW_BYTES * rows
    }
}

pub(super) fn fingerprint_hash(fingerprint: u64) -> u64 {
    let product = u128::from(fingerprint ^ 0x9E37_79B9_7F4A_7C15) * 0xA076_1D64_78BD_642F;
    (product >> 64) as u64 ^ product as u64
}

/// Returns a hash that is the same for rows with equal content.
fn content_hash(records: &Pieces, row: u32) -> u64 {
    let row = row as usize;
    let fingerprint = if records.params().simhash.is_some() { records.fingerprint(row) } else { 0 };
    let codes = records.params().codes;
    if records.params().sets || codes.is_some() {
        return xxh3_64_with_seed(records.fields(row).encoded_content(codes), fingerprint);
    }
    match records.band_keys(row) {
        [] => fingerprint_hash(fingerprint),
        keys => xxh3_64_with_seed(keys.as_bytes(), fingerprint),
    }
}

fn is_equal(records: &Pieces, a: u32, b: u32) -> bool {
    let (a, b) = (a as usize, b as usize);
    let (fields, others) = (records.fields(a), records.fields(b));
    records.is_sketched(a) == records.is_sketched(b)
        && (records.params().simhash.is_none() || records.fingerprint(a) == records.fingerprint(b))
        && records.band_keys(a) == records.band_keys(b)
        && records.signature(a) == records.signature(b)
        && fields.is_marked() == others.is_marked()
        && fields.encoded_content(records.params().codes) == others.encoded_content(records.params().codes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::format::attached::Attached;
    use crate::format::fields::{self, Fields};
    use crate::key::Key;
    use crate::params::Params;
    use crate::segment::records::Kept;
    use crate::store::memtable::Rows;

    /// Adds a document with one of five contents, mostly the first one, or a delete. Returns the content.
    fn change(rows: &mut Rows, params: &Params, number: u64) -> (u64, Option<u64>) {
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let (key, content) = (random % 3000, [0, 0, 0, 0, 0, 1, 1, 2, 3, 4][(random >> 20) as usize % 10]);
        if number % 7 == 6 {
            rows.delete(Key::U64(key)).unwrap();
            return (key, None);
        }
        let mut encoded = Vec::new();
        fields::encode(params, content == 4, &[content % 4, 7], None, &mut encoded);
        let kept = Kept { features: &[1 << 32], fingerprint: content / 2, ..Kept::default() };
        let attached = Attached { fields: Fields::of(&encoded), ..Attached::default() };
        rows.put(Key::U64(key), Some(kept), attached).unwrap();
        (key, Some(content))
    }

    #[test]
    fn smallest_equal_rows_agree_with_a_scan_of_every_view() {
        let params = Params::builder().u64_keys().simhash(3).minhash(1, 1).signature_bits(0).sets().marks();
        let params = params.build().unwrap();
        let mut rows = Rows::new(&params);
        let mut done: Vec<(u64, Option<u64>)> = Vec::new();
        let mut limited = 0;
        for (number, kept) in [(20, 20), (900, 300), (6000, 5000), (1000, 40), (9000, 9000)] {
            for _ in 0..number {
                let number = done.len() as u64 * 3 + kept;
                done.push(change(&mut rows, &params, number));
            }
            done.truncate(kept as usize);
            while rows.truncate(kept as u32, 100) {}
            for limit in [kept / 2, kept].map(|limit| limit as u32) {
                let mut live = BTreeMap::new();
                let mut first = BTreeMap::new();
                for (row, &(key, content)) in (0..).zip(&done[..limit as usize]) {
                    live.insert(key, (row, content));
                    first.entry(content).or_insert(row);
                }
                for (&content, &first) in first.iter().filter(|(content, _)| content.is_some()) {
                    assert!(rows.equals.is_first(first));
                    let equal: Vec<u32> =
                        live.values().filter(|(_, other)| *other == content).map(|&(row, _)| row).collect();
                    let mut all: Vec<u32> = rows
                        .equals
                        .of_group(rows.equals.newest(first))
                        .filter(|&row| rows.is_live(row, limit))
                        .collect();
                    all.sort_unstable_by_key(|&row| done[row as usize].0);
                    assert_eq!(all, equal, "{content:?} of {limit}");
                    for max in [1, 2, 40, usize::MAX] {
                        let found = rows.smallest_equal(first, max, 1 << 20, |row| rows.is_live(row, limit));
                        if let Some(found) = found {
                            assert_eq!(found, equal[..max.min(equal.len())], "{content:?} of {limit}, {max}");
                            limited += 1;
                        }
                        // Without enough steps there is no result, rather than a wrong one.
                        let found = rows.smallest_equal(first, max, 3, |row| rows.is_live(row, limit));
                        assert!(found.is_none_or(|found| found == equal[..max.min(equal.len())]));
                    }
                }
            }
        }
        assert!(limited > 60, "{limited}");
    }
}
