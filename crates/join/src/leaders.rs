//! Sets as what they have of another one, and what they have beside it.
//!
//! Near-duplicates come in families. A set of a family is kept as a bit for each element of the set that *leads* the
//! family, and as the elements that are new in it: of versions of a text that is a hundredth of what the set would
//! take. It is found out by looking up each element in the leader, which needs no sorting, and two sets of a family are
//! compared by their bits and by what is new,
//!
//! ```text
//! |x ∩ y| = |bits x ∩ bits y| + |new x ∩ new y|
//! ```
//!
//! Which set leads is guessed by *anchors*, hashes of which sets that resemble each other most likely share one, such as
//! minima: a wrong guess is found out after a few elements, and costs no more.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use zerocopy::IntoBytes;

use super::distinct::Sorting;
use super::growing::{Apart, Growing};
use twindex_kernel::{Kernel, Level, Simd, Sorted, look_up, prefetch_all};
use twindex_sketch::intersection_from;

/// The least elements of a set that is delta-encoded: fewer are not worth it.
const LEAST: usize = 16;
/// Elements of a leader at most: their places are numbers of 16 bits.
const MOST: usize = 1 << 16;
/// Elements of a leader that may begin alike.
const CROWD: u16 = 64;
/// This number of anchors is several: two sets that resemble each other by half share two of eight most likely.
const SEVERAL: usize = 8;
/// Elements after which it is asked whether a leader is the right one.
const STEP: usize = 64;
/// Leaders that a set is compared with at most, to find one that it is like.
const GUESSES: usize = 4;
/// No leader.
pub(super) const NONE: u32 = u32::MAX;

/// Sets by which others are told, and how to find them. Threads that [tell](Self::tell) sets share them while one adds to
/// them.
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
    /// How many elements there are below each of some evenly spaced hashes.
    directory: Box<[u16]>,
}

/// How a set is delta-encoded, beside its words.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// By this leader, or by [`NONE`].
    pub(super) leader: u32,
    pub(super) size: usize,
    /// How many leaders there were.
    pub(super) leaders: u32,
}

impl Told {
    /// As numbers, which [`of_numbers`](Self::of_numbers) takes back: for sets that are added once more, to others which
    /// were added in the same order.
    #[must_use]
    pub fn numbers(self) -> [u64; 3] {
        [self.leader.into(), self.size as u64, self.leaders.into()]
    }

    /// What these numbers stand for; none if they are not those of [`numbers`](Self::numbers).
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

/// What a set has of its leader, and beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// A bit for each element of the leader, ascending.
    pub(super) bits: &'a [u64],
    /// Elements that the leader does not have, ascending.
    pub(super) new: &'a [u64],
}

impl<'a> Parts<'a> {
    /// The parts of the words of a set that is delta-encoded against this leader.
    pub(super) fn of(leader: &Leader, words: &'a [u64]) -> Self {
        let bits = leader.elements.len().div_ceil(u64::BITS as usize);
        let (bits, new) = words.split_at(bits.min(words.len()));
        Self { bits, new }
    }

    /// Whether there is a bit for each element of the leader, and none after them; and what is new ascends.
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

    /// Hands the elements of the leader that are not in the set to `each`, ascending.
    pub(super) fn for_each_gone(self, leader: &[u64], mut each: impl FnMut(u64)) {
        for (elements, &bits) in leader.chunks(u64::BITS as usize).zip(self.bits) {
            let mut gone = !bits & (u64::MAX >> (u64::BITS as usize - elements.len()));
            while gone != 0 {
                each(elements[gone.trailing_zeros() as usize]);
                gone &= gone - 1;
            }
        }
    }

    /// How many elements two sets with the same leader have in common, if there are `least` or more.
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

/// What a set has of a leader, as it is found out.
#[derive(Debug, Default)]
struct Found {
    /// Whether each element of the leader is in the set; one more than there are elements.
    marks: Vec<u8>,
    bits: Vec<u64>,
    new: Vec<u64>,
    distinct: Vec<u64>,
    /// Elements of the set.
    size: usize,
}

impl Leaders {
    /// The first half of [`ShingleSets::push_like`](super::ShingleSets::push_like): finds out what of the set of these
    /// hashes is told by another one, and appends to `words` what is to be kept of it.
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

    /// Delta-encodes a set against one of the guessed leaders, from number `first` on.
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

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.all.len()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Leader> {
        self.all.get(number)
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.0.load(Relaxed) + self.hints.bytes()
    }

    /// Leaders that may be like a set with these anchors, the oldest first, so that families stay together: of several
    /// anchors those that share two.
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

    /// Sets with one of these anchors are guessed to be like this leader.
    pub(super) fn hint(&self, anchors: &[u64], leader: u32) {
        for &anchor in anchors {
            self.hints.insert(anchor, leader);
        }
    }

    /// Makes a leader of a set, and returns its number; none if it is not fit for it.
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
        // Others are no hashes.
        (most <= CROWD).then(|| {
            let held = size_of_val(elements) + size_of_val(&*directory) + size_of::<Leader>();
            self.bytes.0.fetch_add(held, Relaxed);
            self.all.push(Leader { number: set, elements: elements.into(), directory })
        })
    }
}

impl Leader {
    /// Finds out what `hashes` have of this set, and beside it: false if that is more than a third of all their elements,
    /// with which they resemble each other by half. Hashes may repeat, in any order.
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

/// Bits by which elements are found: two of them share a bucket as a rule, or fewer.
fn directory_bits(elements: usize) -> u32 {
    (elements.next_power_of_two() / 2).ilog2()
}

/// Ones in words.
pub(super) fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Hashes to be looked up in a leader.
struct Compared<'a> {
    leader: Sorted<'a>,
    hashes: &'a [u64],
    most: usize,
    found: &'a mut Found,
}

impl Kernel for Compared<'_> {
    type Output = Option<usize>;

    /// Marks the elements that are found, and writes what is not to the front of `new`: so many, or none if
    /// they are too many.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let Self { leader, hashes, most, found } = self;
        let mut count = 0;
        for (number, hashes) in hashes.chunks(STEP).enumerate() {
            count += look_up(simd, leader, hashes, &mut found.marks, &mut found.new[count..]);
            // At first, three in four of too many.
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

/// Which leader an anchor was first seen with: hash tables in which anchors take the places of others.
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
            // A leader's number is one less, so that 0 is none.
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
        // Stores, not exchanges, which would wait for the line each: what gets lost if two insert is a hint.
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
