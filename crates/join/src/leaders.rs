//! Delta encoding of sets against reference sets.
//!
//! Near-duplicates come in families. A set of a family is stored as a bit for each element of the family's *reference
//! set*, and the elements that the reference does not have. Versions of a text take a hundredth of their plain size so.
//! Encoding looks up each element in the reference, which needs no sorting. Two sets of a family are compared by their
//! bits and by their new elements,
//!
//! ```text
//! |x ∩ y| = |bits x ∩ bits y| + |new x ∩ new y|
//! ```
//!
//! *Anchors* guess the reference: hashes that similar sets most likely share, such as minima. A wrong guess is detected
//! after a few elements, and costs no more.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use zerocopy::IntoBytes;

use super::distinct::Sorting;
use super::growing::{Apart, Growing};
use twindex_kernel::{Kernel, Level, Simd, Sorted, look_up, prefetch_all};
use twindex_sketch::intersection_from;

/// The minimum size of a set that is delta-encoded: smaller ones do not pay.
const LEAST: usize = 16;
/// The maximum size of a reference set: positions of elements have 16 bits.
const MOST: usize = 1 << 16;
/// The most elements of a reference set in one bucket of its directory.
const CROWD: u16 = 64;
/// From this number of anchors on, two must agree: two sets of resemblance 0.5 most likely share two of eight.
const SEVERAL: usize = 8;
/// The number of elements after which a wrong reference is detected.
const STEP: usize = 64;
/// The most reference sets that a set is compared with.
const GUESSES: usize = 4;
/// No reference.
pub(super) const NONE: u32 = u32::MAX;

/// Reference sets for delta encoding, and the anchors that find them. Threads share them to [encode](Self::tell) sets
/// while one thread adds references.
#[derive(Debug, Default)]
pub struct Leaders {
    hints: Hints,
    all: Growing<Leader>,
    bytes: Apart<AtomicUsize>,
}

/// A reference set for delta encoding.
#[derive(Debug)]
pub(super) struct Leader {
    /// Of the set.
    pub(super) number: u32,
    /// Ascending.
    pub(super) elements: Box<[u64]>,
    /// The number of elements below each of some evenly spaced hashes.
    directory: Box<[u16]>,
}

/// How a set is delta-encoded, beside its words.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The number of the reference, or [`NONE`].
    pub(super) leader: u32,
    pub(super) size: usize,
    /// The number of references at the time of encoding.
    pub(super) leaders: u32,
}

impl Told {
    /// The header as numbers, for [`of_numbers`](Self::of_numbers): to add the set again to sets that were added in the
    /// same order.
    #[must_use]
    pub fn numbers(self) -> [u64; 3] {
        [self.leader.into(), self.size as u64, self.leaders.into()]
    }

    /// The header of these numbers; none if [`numbers`](Self::numbers) never returns them.
    #[must_use]
    pub fn of_numbers([leader, size, leaders]: [u64; 3]) -> Option<Self> {
        let (leader, leaders) = (leader.try_into().ok()?, leaders.try_into().ok()?);
        Some(Self { leader, size: size.try_into().ok()?, leaders })
    }
}

/// Working memory of [`Leaders::tell`], one for each thread.
#[derive(Debug, Default)]
pub struct Telling {
    sorting: Sorting,
    found: Found,
    guesses: Vec<u32>,
}

/// A delta-encoded set: bits for elements of its reference, and new elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// A bit for each element of the reference, ascending.
    pub(super) bits: &'a [u64],
    /// Elements that the reference does not have, ascending.
    pub(super) new: &'a [u64],
}

impl<'a> Parts<'a> {
    /// Splits the words of a set that is delta-encoded against this reference.
    pub(super) fn of(leader: &Leader, words: &'a [u64]) -> Self {
        let bits = leader.elements.len().div_ceil(u64::BITS as usize);
        let (bits, new) = words.split_at(bits.min(words.len()));
        Self { bits, new }
    }

    /// Whether there is a bit for each element of the reference and none after them, and the new elements ascend.
    pub(super) fn are_of(self, leader: &Leader) -> bool {
        let (elements, word) = (leader.elements.len(), u64::BITS as usize);
        let behind =
            self.bits.last().map_or(0, |last| last.unbounded_shr(((elements - 1) % word + 1) as u32));
        self.bits.len() == elements.div_ceil(word) && behind == 0 && self.new.is_sorted()
    }
}

impl Parts<'_> {
    /// Hands the elements to `each`, ascending.
    pub(super) fn for_each(self, leader: &[u64], mut each: impl FnMut(u64)) {
        let mut new = self.new.iter().copied().peekable();
        for (elements, &bits) in leader.chunks(u64::BITS as usize).zip(self.bits) {
            let mut bits = bits;
            while bits != 0 {
                let element = elements[bits.trailing_zeros() as usize];
                bits &= bits - 1;
                while let Some(new) = new.next_if(|&new| new < element) {
                    each(new);
                }
                each(element);
            }
        }
        new.for_each(each);
    }

    /// Hands the elements of the reference that are not in the set to `each`, ascending.
    pub(super) fn for_each_gone(self, leader: &[u64], mut each: impl FnMut(u64)) {
        for (elements, &bits) in leader.chunks(u64::BITS as usize).zip(self.bits) {
            let mut gone = !bits & (u64::MAX >> (u64::BITS as usize - elements.len()));
            while gone != 0 {
                each(elements[gone.trailing_zeros() as usize]);
                gone &= gone - 1;
            }
        }
    }

    /// The number of common elements of two sets with the same reference, if it is `least` or more.
    pub(super) fn shared(self, other: Self, least: usize) -> Option<usize> {
        let bits = twindex_kernel::vectorized(
            #[inline(always)]
            || self.bits.iter().zip(other.bits).map(|(a, b)| (a & b).count_ones() as usize).sum::<usize>(),
        );
        let least_new = least.saturating_sub(bits);
        if least_new > self.new.len().min(other.new.len()) {
            return None;
        }
        Some(bits + intersection_from(self.new, other.new, least_new)?)
    }
}

/// Buffers for the comparison of a set with a reference.
#[derive(Debug, Default)]
struct Found {
    /// Whether each element of the reference is in the set; one more than there are elements.
    marks: Vec<u8>,
    bits: Vec<u64>,
    new: Vec<u64>,
    distinct: Vec<u64>,
    /// Elements of the set.
    size: usize,
}

impl Leaders {
    /// The first half of [`ShingleSets::push_like`](super::ShingleSets::push_like): encodes the set of these hashes against
    /// a similar reference set if there is one, and appends the words to store to `words`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut sets = twindex_join::ShingleSets::new(dir.path(), 1 << 20);
    /// let leaders = sets.leaders(); // for each thread
    /// let (mut telling, mut words) = (twindex_join::Telling::default(), Vec::new());
    /// let told = leaders.tell(&[8, 7, 8], &[7], &mut telling, &mut words);
    /// let set = sets.push_told(told, &words, &[7])?;
    /// assert_eq!(sets.set(set, &mut Vec::new())?, [7, 8]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn tell(&self, hashes: &[u64], anchors: &[u64], telling: &mut Telling, words: &mut Vec<u64>) -> Told {
        let leaders = self.all.len();
        self.tell_from(0, hashes, anchors, telling, words).unwrap_or_else(|| {
            let start = words.len();
            telling.sorting.append_distinct(hashes, words);
            Told { leader: NONE, size: words.len() - start, leaders }
        })
    }

    /// Delta-encodes a set against one of the guessed references, from number `first` on.
    pub(super) fn tell_from(
        &self,
        first: u32,
        hashes: &[u64],
        anchors: &[u64],
        telling: &mut Telling,
        words: &mut Vec<u64>,
    ) -> Option<Told> {
        let Telling { sorting, found, guesses } = telling;
        self.guess(anchors, guesses);
        for &number in guesses.iter().filter(|&&number| number >= first).take(GUESSES) {
            if self.get(number).is_some_and(|leader| leader.compare(hashes, sorting, found)) {
                words.extend_from_slice(&found.bits);
                words.extend_from_slice(&found.distinct);
                return Some(Told { leader: number, size: found.size, leaders: number });
            }
        }
        None
    }

    /// The number of reference sets.
    pub(super) fn len(&self) -> u32 {
        self.all.len()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Leader> {
        self.all.get(number)
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.0.load(Relaxed) + self.hints.bytes()
    }

    /// References that may be similar to a set with these anchors, the oldest first, so that families stay together. Of
    /// several anchors, two must point to the same reference.
    fn guess(&self, anchors: &[u64], guesses: &mut Vec<u32>) {
        guesses.clear();
        guesses.extend(anchors.iter().filter_map(|&anchor| self.hints.leader(anchor)));
        guesses.sort_unstable();
        let (mut kept, mut last) = (0, NONE);
        for at in 0..guesses.len() {
            let guess = guesses[at];
            let is_shared = anchors.len() < SEVERAL || guesses.get(at + 1) == Some(&guess);
            if guess != last && is_shared {
                guesses[kept] = guess;
                kept += 1;
                last = guess;
            }
        }
        guesses.truncate(kept);
    }

    /// Records that sets with one of these anchors may be similar to this reference.
    pub(super) fn hint(&self, anchors: &[u64], leader: u32) {
        for &anchor in anchors {
            self.hints.insert(anchor, leader);
        }
    }

    /// Makes a set a reference, and returns its number; none if its size or its distribution does not fit.
    pub(super) fn lead(&self, set: u32, elements: &[u64]) -> Option<u32> {
        if !(LEAST..MOST).contains(&elements.len()) {
            return None;
        }
        let bits = directory_bits(elements.len());
        let mut directory = vec![0_u16; (1 << bits) + 1].into_boxed_slice();
        for (below, element) in (1_u32..).zip(elements) {
            directory[(element >> (u64::BITS - bits)) as usize + 1] = below as u16;
        }
        let (mut below, mut most) = (0, 0);
        for end in &mut directory {
            most = most.max(end.saturating_sub(below));
            *end = below.max(*end);
            below = *end;
        }
        // Sets with more in a bucket are no hashes.
        (most <= CROWD).then(|| {
            let held = size_of_val(elements) + size_of_val(&*directory) + size_of::<Leader>();
            self.bytes.0.fetch_add(held, Relaxed);
            self.all.push(Leader { number: set, elements: elements.into(), directory })
        })
    }
}

impl Leader {
    /// Encodes `hashes` against this set. Returns false if the two differ in more than a third of all their elements, which
    /// is a resemblance of less than 0.5. Hashes may repeat, in any order.
    fn compare(&self, hashes: &[u64], sorting: &mut Sorting, found: &mut Found) -> bool {
        let elements = self.elements.len();
        // A set of fewer cannot have half of it.
        if 2 * hashes.len() < elements {
            return false;
        }
        let Some(leader) = Sorted::new(&self.elements, &self.directory, directory_bits(elements)) else {
            return false;
        };
        prefetch_all(self.directory.as_bytes());
        prefetch_all(self.elements.as_bytes());
        found.marks.clear();
        found.marks.resize(elements + 1, 0);
        if found.new.len() < hashes.len() {
            found.new.resize(hashes.len(), 0);
        }
        let compared = Compared { leader, hashes, most: (elements + hashes.len()) / 3, found };
        let Some(new) = Level::chosen().dispatch(compared) else { return false };
        pack(&found.marks[..elements], &mut found.bits);
        found.distinct.clear();
        sorting.append_distinct(&found.new[..new], &mut found.distinct);
        let shared = ones(&found.bits);
        found.size = shared + found.distinct.len();
        elements - shared + found.distinct.len() <= (elements + found.size) / 3
    }
}

/// Bits of the directory: a bucket has two elements as a rule, or fewer.
fn directory_bits(elements: usize) -> u32 {
    (elements.next_power_of_two() / 2).ilog2()
}

/// The number of ones in words.
pub(super) fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Hashes to be looked up in a reference set.
struct Compared<'a> {
    leader: Sorted<'a>,
    hashes: &'a [u64],
    most: usize,
    found: &'a mut Found,
}

impl Kernel for Compared<'_> {
    type Output = Option<usize>;

    /// Marks the elements that are found, and writes the others to the front of `new`. Returns their number, or none if
    /// they are too many.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let Self { leader, hashes, most, found } = self;
        let mut count = 0;
        for (number, hashes) in hashes.chunks(STEP).enumerate() {
            count += look_up(simd, leader, hashes, &mut found.marks, &mut found.new[count..]);
            // In the first step, three in four new elements are too many.
            if count > most || number == 0 && 4 * count > 3 * STEP {
                return None;
            }
        }
        Some(count)
    }
}

/// Replaces `bits` by a bit for each of the marks, which are 0 or 1.
fn pack(marks: &[u8], bits: &mut Vec<u64>) {
    bits.clear();
    bits.extend(marks.chunks(u64::BITS as usize).map(|marks| {
        let (eights, rest) = marks.as_chunks();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The first mark's bit moves to the lowest place of the highest byte, the next one's to the second, and so on.
        let byte = |eight: [u8; 8]| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let places = (0..u64::BITS).step_by(8);
        eights
            .iter()
            .chain(Some(&last))
            .zip(places)
            .fold(0, |word, (&eight, place)| word | byte(eight) << place)
    }));
}

/// The reference that an anchor was first seen with: lossy hash tables, in which anchors overwrite others.
#[derive(Debug, Default)]
struct Hints {
    /// For the first anchors, for more, and for all others.
    tables: [OnceLock<Box<[AtomicU64]>>; 3],
    filled: Apart<AtomicUsize>,
}

impl Hints {
    const BITS: [u32; 3] = [16, 18, 20];

    fn bytes(&self) -> usize {
        self.tables.iter().filter_map(OnceLock::get).map(|table| size_of_val(&**table)).sum()
    }

    fn hash(anchor: u64) -> u64 {
        let spread = anchor.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (spread ^ spread >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    fn leader(&self, anchor: u64) -> Option<u32> {
        let hash = Self::hash(anchor);
        self.tables.iter().map_while(OnceLock::get).find_map(|table| {
            let slot = table[hash as usize & (table.len() - 1)].load(Acquire);
            // The number of a reference is one less, so that 0 is none.
            (slot >> 32 == hash).then(|| (slot as u32).checked_sub(1)).flatten()
        })
    }

    fn insert(&self, anchor: u64, leader: u32) {
        if self.leader(anchor).is_some() {
            return; // the oldest stays
        }
        // A table is filled to a half.
        let filled = self.filled.0.load(Relaxed);
        let level = Self::BITS[..2].iter().filter(|&&bits| filled > 1 << (bits - 1)).count();
        let empty = || (0..1 << Self::BITS[level]).map(|_| AtomicU64::new(0)).collect();
        let table = self.tables[level].get_or_init(empty);
        let hash = Self::hash(anchor);
        let slot = &table[hash as usize & (table.len() - 1)];
        let is_filled = slot.load(Relaxed) != 0;
        // Stores, not exchanges, which would each wait for the cache line: if two threads insert, only a hint is lost.
        slot.store(hash << 32 | u64::from(leader + 1), Release);
        if !is_filled {
            self.filled.0.store(self.filled.0.load(Relaxed) + 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leader_of_an_anchor_is_guessed_and_of_several_anchors_two_must_agree() {
        let leaders = Leaders::default();
        let elements: Vec<u64> = (0..100_u64).map(|i| i << 57 | i).collect();
        for set in 0..3 {
            assert_eq!(leaders.lead(set, &elements), Some(set));
        }
        let guess = |anchors: &[u64]| {
            let mut guesses = vec![9];
            leaders.guess(anchors, &mut guesses);
            guesses
        };
        assert_eq!(guess(&[1, 2]), [0; 0]);
        leaders.hint(&[1, 2, 3], 1);
        leaders.hint(&[3, 4, 5, 6], 0);
        assert_eq!(guess(&[1, 4]), [0, 1]);
        assert_eq!(guess(&[3]), [1]);
        assert_eq!(guess(&[3, 1, 4, 10, 11, 12, 13, 14]), [1]);
        assert_eq!(leaders.lead(3, &[7; LEAST - 1]), None);
        assert_eq!(leaders.lead(3, &vec![7; 100]), None, "no hashes");
        // Into the other tables.
        for anchor in 100..200_000 {
            leaders.hint(&[anchor], 2);
        }
        assert!(leaders.hints.tables[2].get().is_some());
        let found = (100..200_000).filter(|&anchor| guess(&[anchor]) == [2]).count();
        assert!(found > 160_000, "{found}");
    }
}
