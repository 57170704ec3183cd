//! A hash table that grows by one bucket at a time.
//!
//! Linear hashing (Litwin, VLDB 1980): when there are as many distinct entries as buckets, one bucket is split into two,
//! in the order of their numbers. So no insertion rebuilds the table. Entries that are the same, as the caller sees it,
//! are one element of a bucket: the newest is linked there, and leads to those before it. A split so costs as many
//! steps as the bucket has distinct entries, however often they were repeated.

use super::NONE;
use super::chunked::Chunked;

/// Buckets at first; a power of two.
const BUCKETS: usize = 64;
/// `same` of an entry that is in no bucket.
const SKIPPED: u32 = u32::MAX - 1;

/// Entries are numbered from 0 on, in the order in which they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    heads: Chunked<u32>,
    links: Chunked<Link>,
    distinct: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u32,
    /// The next distinct entry of the bucket; counts only for the newest of those that are the same.
    next: u32,
    /// The entry before that is the same.
    same: u32,
}

impl Chains {
    fn hash(hash: u64) -> u32 {
        (hash >> 32) as u32
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let buckets = self.heads.len();
        let size = buckets.next_power_of_two();
        let bucket = hash as usize & (size - 1);
        // The upper half is not complete while buckets are split.
        if bucket < buckets { bucket } else { bucket - size / 2 }
    }

    /// The first entry of the bucket of `hash` that is the same, and the one before it in the bucket.
    #[inline]
    fn search(&self, hash: u32, is_same: impl Fn(u32) -> bool) -> (u32, u32) {
        if self.heads.len() == 0 {
            return (NONE, NONE);
        }
        let (mut before, mut entry) = (NONE, self.heads.get(self.bucket(hash)));
        while entry != NONE {
            let link = self.links.get(entry as usize);
            if link.hash == hash && is_same(entry) {
                break;
            }
            (before, entry) = (entry, link.next);
        }
        (before, entry)
    }

    /// Lets `entry` follow `before` in the bucket of `hash`.
    fn relink(&mut self, hash: u32, before: u32, entry: u32) {
        if before == NONE {
            let bucket = self.bucket(hash);
            *self.heads.get_mut(bucket) = entry;
        } else {
            self.links.get_mut(before as usize).next = entry;
        }
    }

    /// Adds an entry. `is_same` compares it with an earlier one of its hash; returns the newest that is the same.
    pub(super) fn push(&mut self, hash: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = Self::hash(hash);
        if self.heads.len() == 0 {
            (0..BUCKETS).for_each(|_| self.heads.push(NONE));
        }
        let entry = self.links.len() as u32;
        let (before, same) = self.search(hash, is_same);
        if same == NONE {
            let next = self.heads.get(self.bucket(hash));
            self.links.push(Link { hash, next, same });
            self.relink(hash, NONE, entry);
            self.distinct += 1;
            if self.distinct > self.heads.len() {
                self.split();
            }
            return None;
        }
        let next = self.links.get(same as usize).next;
        self.links.push(Link { hash, next, same });
        self.relink(hash, before, entry);
        Some(same)
    }

    /// Takes a number for an entry that is never found.
    pub(super) fn skip(&mut self) {
        self.links.push(Link { hash: 0, next: NONE, same: SKIPPED });
    }

    /// Removes the newest entry; returns the one before that is the same.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let entry = self.links.len() as u32 - 1;
        let Link { hash, next, same } = self.links.get(entry as usize);
        if same == SKIPPED {
            self.links.pop();
            return None;
        }
        let (before, _) = self.search(hash, |other| other == entry);
        if same == NONE {
            self.relink(hash, before, next);
            self.distinct -= 1;
        } else {
            self.links.get_mut(same as usize).next = next;
            self.relink(hash, before, same);
        }
        self.links.pop();
        (same != NONE).then_some(same)
    }

    /// Makes one bucket more, which takes its entries from another.
    fn split(&mut self) {
        let new = self.heads.len();
        let half = new.next_power_of_two() / if new.is_power_of_two() { 1 } else { 2 };
        let mask = 2 * half - 1;
        let mut entry = self.heads.get(new - half);
        let (mut stays, mut moves) = ([NONE; 2], [NONE; 2]); // the first and the last of a chain
        while entry != NONE {
            let Link { hash, next, .. } = self.links.get(entry as usize);
            let [first, last] = if hash as usize & mask == new { &mut moves } else { &mut stays };
            match *last {
                NONE => *first = entry,
                last => self.links.get_mut(last as usize).next = entry,
            }
            *last = entry;
            entry = next;
        }
        for [_, last] in [stays, moves] {
            if last != NONE {
                self.links.get_mut(last as usize).next = NONE;
            }
        }
        *self.heads.get_mut(new - half) = stays[0];
        self.heads.push(moves[0]);
    }

    /// Entries of this hash that are the same as the newest which `is_same` takes, the newest first.
    #[inline]
    pub(super) fn of(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> impl Iterator<Item = u32> + '_ {
        let (_, newest) = self.search(Self::hash(hash), is_same);
        let some = |entry: u32| (entry != NONE).then_some(entry);
        std::iter::successors(some(newest), move |&entry| some(self.links.get(entry as usize).same))
    }

    /// True for an entry that had none before it that is the same.
    pub(super) fn is_first(&self, entry: u32) -> bool {
        self.links.get(entry as usize).same == NONE
    }

    /// Reads what the next calls for these hashes will read, so that they wait for memory together and not one after the
    /// other.
    pub(super) fn warm(&self, hashes: impl Iterator<Item = u64>) {
        if self.heads.len() == 0 {
            return;
        }
        let mut read = 0;
        for hash in hashes {
            let head = self.heads.get(self.bucket(Self::hash(hash)));
            if head != NONE {
                read ^= self.links.get(head as usize).next;
            }
        }
        std::hint::black_box(read);
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.heads.len() + size_of::<Link>() * self.links.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that repeat, some of which share a hash.
    fn value(step: u64) -> u64 {
        (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 5000
    }

    fn hash(value: u64) -> u64 {
        (value / 2).wrapping_mul(0xA076_1D64_78BD_642F)
    }

    #[test]
    fn chains_answer_as_a_map_of_lists_while_they_grow_and_shrink() {
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
        assert!(chains.heads.len() > 3000, "{}", chains.heads.len());
        while values.len() > 700 {
            let popped = chains.pop();
            let value = values.pop().unwrap();
            if value.is_none() {
                assert_eq!(popped, None);
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
    fn split_moves_no_repeated_entries() {
        let mut chains = Chains::default();
        for _ in 0..100_000 {
            chains.push(7 << 32, |_| true);
        }
        assert_eq!((chains.heads.len(), chains.distinct), (BUCKETS, 1));
        assert_eq!(chains.of(7 << 32, |_| true).count(), 100_000);
    }
}
