//! A hash table that grows by one bucket at a time.
//!
//! Uses linear hashing (Litwin, VLDB 1980): when the average number of entries per bucket exceeds a limit, the next
//! bucket in the order of bucket numbers is split into two. So no insertion rebuilds the whole table. A bucket is one
//! cache line, which contains hashes and entries: a split reads only buckets, and an insertion waits for memory once.
//! Entries that the caller considers equal share one slot of a bucket: the slot holds the newest entry, and each entry
//! links to the previous equal one.

use super::chunked::ChunkedVec;

/// Marks the end of a chain. In `Rows::replaced_by`, marks a row that no later row replaces.
pub(super) const NONE: u32 = u32::MAX;
/// Initial number of buckets; a power of two.
const BUCKETS: usize = 16;
/// Number of slots in a bucket.
const PLACES: usize = 7;
/// When the average number of distinct entries per bucket exceeds this number, a bucket is added.
const LOAD: usize = 5;
/// Number of entries that [`Chains::fill`] processes at a time. Their scratch memory is 16 MiB.
const FILLED_TOGETHER: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };
/// [`Chains::fill`] divides its entries into this number of partitions, by bucket number.
const FILLED_PARTS: usize = 256;
/// Value of `before` for an entry that was added to no bucket.
const SKIPPED: u32 = u32::MAX - 1;

/// A hash table of entries. An entry is a number: 0 for the first insertion, 1 for the second, and so on.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    buckets: ChunkedVec<ChainBucket>,
    overflow: ChunkedVec<ChainBucket>,
    /// The first free bucket of `overflow`; each free bucket links to the next one.
    free: Option<u32>,
    /// For each entry, the previous equal entry; [`NONE`] if there is none.
    before: ChunkedVec<u32>,
    distinct: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct ChainBucket {
    hashes: [u32; PLACES],
    entries: [u32; PLACES],
    len: u32,
    /// The overflow bucket with further entries of this bucket; [`NONE`] if there is none.
    more: u32,
}

const EMPTY: ChainBucket = ChainBucket { hashes: [0; PLACES], entries: [0; PLACES], len: 0, more: NONE };

/// The position of a slot: the bucket or overflow bucket that contains it, and the index in the bucket.
#[derive(Clone, Copy)]
struct SlotRef {
    is_overflow: bool,
    bucket: usize,
    at: usize,
}

impl Chains {
    fn hash(hash: u64) -> u32 {
        (hash >> 32) as u32
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        let buckets = self.buckets.len();
        let size = buckets.next_power_of_two();
        let bucket = hash as usize & (size - 1);
        // Buckets with numbers below `size` may not exist yet. An entry that belongs to one of these is in the bucket
        // that will be split to create it.
        if bucket < buckets { bucket } else { bucket - size / 2 }
    }

    fn bucket_mut(&mut self, is_overflow: bool, bucket: usize) -> &mut ChainBucket {
        if is_overflow { self.overflow.get_mut(bucket) } else { self.buckets.get_mut(bucket) }
    }

    /// Returns the slot and the number of the newest entry with this hash for which `is_same` is true, or `None`.
    #[inline]
    fn search(&self, hash: u32, is_same: impl Fn(u32) -> bool) -> Option<(SlotRef, u32)> {
        if self.buckets.len() == 0 {
            return None;
        }
        let (mut is_overflow, mut number) = (false, self.home(hash));
        let mut bucket = self.buckets.get_ref(number);
        loop {
            for at in 0..bucket.len as usize {
                if bucket.hashes[at] == hash && is_same(bucket.entries[at]) {
                    return Some((SlotRef { is_overflow, bucket: number, at }, bucket.entries[at]));
                }
            }
            if bucket.more == NONE {
                return None;
            }
            (is_overflow, number) = (true, bucket.more as usize);
            bucket = self.overflow.get_ref(number);
        }
    }

    /// Adds an entry. `is_same` returns whether an earlier entry with the same hash is equal to it. Returns the newest equal
    /// entry; `None` if there is none.
    pub(super) fn push(&mut self, hash: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = Self::hash(hash);
        if self.buckets.len() == 0 {
            (0..BUCKETS).for_each(|_| self.buckets.push(EMPTY));
        }
        let entry = self.before.len() as u32;
        self.before.push(NONE);
        let before = self.link(hash, entry, is_same, |_| true);
        if self.distinct > LOAD * self.buckets.len() {
            self.split();
        }
        before
    }

    /// Adds one entry per hash to an empty table; there are at most `count` hashes. Like [`push`](Self::push) for each
    /// hash, or [`skip`](Self::skip) for each `None`, but faster: fills one range of buckets after the other, and each
    /// range fits in the caches, so most insertions do not wait for memory. `is_same` returns whether an entry equals an
    /// earlier one with the same hash. Calls `is_linked` with each entry that has an earlier equal one, and with the newest
    /// of these; if it returns false, the entry is skipped.
    pub(super) fn fill(
        &mut self,
        count: usize,
        hashes: impl Iterator<Item = Option<u64>>,
        is_same: impl Fn(u32, u32) -> bool,
        mut is_linked: impl FnMut(u32, u32) -> bool,
    ) {
        debug_assert!(self.before.len() == 0 && self.buckets.len() == 0, "only an empty table is filled");
        // Allocates enough buckets for distinct hashes. If hashes repeat, some buckets only waste memory.
        let buckets = count.div_ceil(LOAD).max(BUCKETS);
        (0..buckets).for_each(|_| self.buckets.push(EMPTY));
        let shift = (usize::BITS - buckets.leading_zeros()).saturating_sub(FILLED_PARTS.ilog2());
        let mut hashes = hashes.map(|hash| hash.map(Self::hash)).peekable();
        let (mut block, mut by_part) = (Vec::new(), Vec::new());
        while hashes.peek().is_some() {
            block.clear();
            let mut next = [0; FILLED_PARTS + 1];
            for hash in hashes.by_ref().take(FILLED_TOGETHER) {
                if let Some(hash) = hash {
                    block.push((hash, self.before.len() as u32));
                    next[1 + (self.home(hash) >> shift)] += 1;
                }
                self.before.push(hash.map_or(SKIPPED, |_| NONE));
            }
            for part in 1..=FILLED_PARTS {
                next[part] += next[part - 1];
            }
            by_part.clear();
            by_part.resize(block.len(), (0, 0));
            for &(hash, entry) in &block {
                let place = &mut next[self.home(hash) >> shift];
                by_part[*place] = (hash, entry);
                *place += 1;
            }
            for &(hash, entry) in &by_part {
                self.link(hash, entry, |other| is_same(entry, other), |before| is_linked(entry, before));
            }
        }
    }

    /// Adds an entry to its bucket and links it to the newest equal entry, unless `is_linked` returns false for this one.
    /// Returns this equal entry; `None` if there is none.
    fn link(
        &mut self,
        hash: u32,
        entry: u32,
        is_same: impl Fn(u32) -> bool,
        is_linked: impl FnOnce(u32) -> bool,
    ) -> Option<u32> {
        if let Some((SlotRef { is_overflow, bucket, at }, before)) = self.search(hash, is_same) {
            let is_linked = is_linked(before);
            *self.before.get_mut(entry as usize) = if is_linked { before } else { SKIPPED };
            if is_linked {
                self.bucket_mut(is_overflow, bucket).entries[at] = entry;
            }
            return Some(before);
        }
        self.insert(hash, entry);
        self.distinct += 1;
        None
    }

    /// Writes an entry to a free slot of its bucket.
    fn insert(&mut self, hash: u32, entry: u32) {
        let (mut is_overflow, mut number) = (false, self.home(hash));
        loop {
            let bucket = self.bucket_mut(is_overflow, number);
            let len = bucket.len as usize;
            if len < PLACES {
                (bucket.hashes[len], bucket.entries[len]) = (hash, entry);
                bucket.len += 1;
                return;
            }
            if bucket.more == NONE {
                let more = self.take_overflow();
                self.bucket_mut(is_overflow, number).more = more;
                (is_overflow, number) = (true, more as usize);
            } else {
                (is_overflow, number) = (true, bucket.more as usize);
            }
        }
    }

    fn take_overflow(&mut self) -> u32 {
        let Some(free) = self.free else {
            self.overflow.push(EMPTY);
            return self.overflow.len() as u32 - 1;
        };
        let bucket = self.overflow.get_mut(free as usize);
        let next = std::mem::replace(bucket, EMPTY).more;
        self.free = (next != NONE).then_some(next);
        free
    }

    /// Splits the next bucket in the order of linear hashing: moves some of its entries to a new bucket.
    fn split(&mut self) {
        let new = self.buckets.len();
        let half = new.next_power_of_two() / if new.is_power_of_two() { 1 } else { 2 };
        let mut bucket = std::mem::replace(self.buckets.get_mut(new - half), EMPTY);
        self.buckets.push(EMPTY);
        loop {
            for place in 0..bucket.len as usize {
                self.insert(bucket.hashes[place], bucket.entries[place]);
            }
            let number = bucket.more;
            if number == NONE {
                return;
            }
            let more = self.free.replace(number).unwrap_or(NONE);
            bucket = std::mem::replace(self.overflow.get_mut(number as usize), ChainBucket { more, ..EMPTY });
        }
    }

    /// Assigns the next entry number without adding the entry to a bucket, so that no lookup finds it.
    pub(super) fn skip(&mut self) {
        self.before.push(SKIPPED);
    }

    /// Removes the newest entry, which must have this hash. Returns the previous equal entry; `None` if there is none.
    pub(super) fn pop(&mut self, hash: u64) -> Option<u32> {
        let before = self.before.pop()?;
        if before == SKIPPED {
            return None;
        }
        let entry = self.before.len() as u32;
        if let Some((SlotRef { is_overflow, bucket, at }, _)) =
            self.search(Self::hash(hash), |other| other == entry)
        {
            let bucket = self.bucket_mut(is_overflow, bucket);
            if before == NONE {
                bucket.len -= 1;
                bucket.hashes[at] = bucket.hashes[bucket.len as usize];
                bucket.entries[at] = bucket.entries[bucket.len as usize];
                self.distinct -= 1;
            } else {
                bucket.entries[at] = before;
            }
        }
        (before != NONE).then_some(before)
    }

    /// Returns the entries that have this hash and for which `is_same` is true, newest first.
    #[inline]
    pub(super) fn of(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.newest(hash, is_same), move |&entry| self.before(entry))
    }

    /// Returns the newest entry that has this hash and for which `is_same` is true; `None` if there is none.
    #[inline]
    pub(super) fn newest(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        self.search(Self::hash(hash), is_same).map(|(_, entry)| entry)
    }

    /// Returns the previous equal entry; `None` if there is none. Later insertions do not change the result.
    #[inline]
    pub(super) fn before(&self, entry: u32) -> Option<u32> {
        let before = self.before.get(entry as usize);
        (before != NONE).then_some(before)
    }

    /// Returns whether an entry has no previous equal entry.
    pub(super) fn is_first(&self, entry: u32) -> bool {
        self.before.get(entry as usize) == NONE
    }

    /// Prefetches the buckets that the next lookups of these hashes will read, so that their memory accesses overlap.
    #[inline]
    pub(super) fn warm(&self, hashes: impl Iterator<Item = u64>) {
        if self.buckets.len() > 0 {
            let read = hashes.map(|hash| self.buckets.get_ref(self.home(Self::hash(hash))).len);
            std::hint::black_box(read.fold(0, u32::wrapping_add));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<ChainBucket>() * (self.buckets.len() + self.overflow.len()) + 4 * self.before.len()
    }

    /// Returns the approximate number of bytes that a table of `entries` distinct entries uses.
    pub(super) fn bytes_of(entries: usize) -> usize {
        (size_of::<ChainBucket>() / LOAD + 4) * entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generates values. Some repeat. Different values can have the same hash.
    fn value(step: u64) -> u64 {
        (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 5000
    }

    fn hash(value: u64) -> u64 {
        (value / 2).wrapping_mul(0xA076_1D64_78BD_642F)
    }

    #[test]
    fn lookups_match_a_linear_scan_while_the_table_grows_and_shrinks() {
        let (mut chains, mut values) = (Chains::default(), Vec::new());
        let check = |chains: &Chains, values: &[Option<u64>]| {
            for asked in 0..5000 {
                let expected: Vec<u32> = (0..values.len() as u32)
                    .rev()
                    .filter(|&entry| values[entry as usize] == Some(asked))
                    .collect();
                let found = chains.of(hash(asked), |entry| values[entry as usize] == Some(asked));
                assert_eq!(found.collect::<Vec<_>>(), expected, "{asked}");
            }
        };
        for step in 0..12_000 {
            if step % 10 == 9 {
                chains.skip();
                values.push(None);
                continue;
            }
            let value = value(step);
            let before = chains.push(hash(value), |entry| values[entry as usize] == Some(value));
            if step < 300 {
                let expected = values.iter().rposition(|&other| other == Some(value));
                assert_eq!(before, expected.map(|entry| entry as u32));
            }
            values.push(Some(value));
        }
        check(&chains, &values);
        assert!(chains.buckets.len() > 700, "{}", chains.buckets.len());
        while values.len() > 700 {
            let value: Option<u64> = values.pop().unwrap();
            let popped = chains.pop(value.map_or(0, hash));
            if values.len() < 1000 {
                let expected = values.iter().rposition(|&other| other == value);
                assert_eq!(popped, value.and(expected).map(|entry| entry as u32));
            }
        }
        check(&chains, &values);
        for step in 0..1000 {
            let value = value(step);
            chains.push(hash(value), |entry| values[entry as usize] == Some(value));
            values.push(Some(value));
        }
        check(&chains, &values);
    }

    #[test]
    fn filled_table_behaves_like_a_table_of_pushed_entries() {
        for count in [0, 1, 100, 40_000] {
            // In the first half few values repeat, in the second half many.
            let value = |step: u64| hash(value(step) + if step < count / 2 { 1000 * step } else { 0 });
            let (mut filled, mut pushed) = (Chains::default(), Chains::default());
            filled.fill(count as usize, (0..count).map(|step| Some(value(step))), |_, _| true, |_, _| true);
            for step in 0..count {
                pushed.push(value(step), |_| true);
            }
            let check = |filled: &Chains, pushed: &Chains, count: u64| {
                assert_eq!((filled.distinct, filled.before.len()), (pushed.distinct, pushed.before.len()));
                for step in 0..count {
                    let entries = |chains: &Chains| chains.of(value(step), |_| true).collect::<Vec<_>>();
                    assert_eq!(entries(filled), entries(pushed), "{step} of {count}");
                }
            };
            check(&filled, &pushed, count);
            assert!(filled.distinct <= LOAD * filled.buckets.len(), "{} buckets", filled.buckets.len());
            for step in count..2 * count {
                assert_eq!(filled.push(value(step), |_| true), pushed.push(value(step), |_| true));
            }
            check(&filled, &pushed, 2 * count);
            for step in (count / 2..2 * count).rev() {
                assert_eq!(filled.pop(value(step)), pushed.pop(value(step)));
            }
            check(&filled, &pushed, count / 2);
        }
    }

    #[test]
    fn equal_entries_do_not_split_buckets() {
        let mut chains = Chains::default();
        for _ in 0..100_000 {
            chains.push(7 << 32, |_| true);
        }
        assert_eq!((chains.buckets.len(), chains.distinct), (BUCKETS, 1));
        assert_eq!(chains.of(7 << 32, |_| true).count(), 100_000);
    }

    #[test]
    fn full_bucket_continues_in_an_overflow_bucket_and_frees_it() {
        let (mut chains, mut hashes) = (Chains::default(), Vec::new());
        // These hashes differ only in high bits, so while the table is small, all entries are in one bucket.
        for entry in 0..60_u64 {
            hashes.push(entry << 42);
            chains.push(hashes[entry as usize], |_| false);
        }
        assert!(chains.overflow.len() >= 7, "{}", chains.overflow.len());
        for (entry, &hash) in hashes.iter().enumerate() {
            assert!(chains.of(hash, |other| other == entry as u32).eq([entry as u32]));
        }
        for entry in 60..3000_u64 {
            hashes.push(entry.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            chains.push(hashes[entry as usize], |_| false);
        }
        for (entry, &hash) in hashes.iter().enumerate() {
            assert!(chains.of(hash, |other| other == entry as u32).eq([entry as u32]));
        }
        assert!(chains.overflow.len() < 200, "{}", chains.overflow.len());
    }
}
