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

use super::distinct::Sorting;
use crate::kernel::{Kernel, Level, Simd, Sorted, look_up};
use crate::sketch::intersection_from;

/// Elements of which a set of a family is compared at least: fewer are not worth it.
const LEAST: usize = 16;
/// Elements of a leader at most: their places are numbers of 16 bits.
const MOST: usize = 1 << 16;
/// Elements of a leader that may begin alike.
const CROWD: u16 = 64;
/// So many anchors are several: two sets that resemble each other by half share two of eight most likely.
const SEVERAL: usize = 8;
/// Elements after which it is asked whether a leader is the right one.
const STEP: usize = 64;
/// No leader.
pub(super) const NONE: u32 = u32::MAX;

/// Sets by which others are told, and how to find them.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    hints: Hints,
    /// For each leader, how many elements there are below each of some evenly spaced hashes.
    directories: Vec<u16>,
    /// Where the directory of each leader begins, by its number; [`NONE`] for other sets.
    starts: Vec<u32>,
}

/// What a set has of its leader, and beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// A bit for each element of the leader, ascending.
    pub(super) bits: &'a [u64],
    /// Elements that the leader does not have, ascending.
    pub(super) new: &'a [u64],
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
        let bits = crate::kernel::vectorized(
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

/// Memory for [`Parts`] that are found out.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether each element of the leader is in the set; one more than there are elements.
    marks: Vec<u8>,
    bits: Vec<u64>,
    new: Vec<u64>,
    pub(super) distinct: Vec<u64>,
    pub(super) guesses: Vec<u32>,
    /// Elements of the set.
    pub(super) size: usize,
}

impl Found {
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts { bits: &self.bits, new: &self.distinct }
    }
}

impl Leaders {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.directories.as_slice()) + size_of_val(self.hints.slots.as_slice())
    }

    /// Leaders that may be like a set with these anchors, the oldest first, so that families stay together: of several
    /// anchors those that share two.
    pub(super) fn guess(&self, anchors: &[u64], guesses: &mut Vec<u32>) {
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
    pub(super) fn hint(&mut self, anchors: &[u64], leader: u32) {
        for &anchor in anchors {
            self.hints.insert(anchor, leader);
        }
    }

    /// Makes a leader of a set, unless it is not fit for it. Sets are given in the order of their numbers.
    pub(super) fn lead(&mut self, number: u32, set: &[u64]) -> bool {
        self.starts.resize(number as usize, NONE);
        let fits = (LEAST..MOST).contains(&set.len());
        let start = u32::try_from(self.directories.len()).ok().filter(|_| fits);
        self.starts.push(start.unwrap_or(NONE));
        if start.is_none() {
            return false;
        }
        let bits = directory_bits(set.len());
        let before = self.directories.len();
        self.directories.resize(before + (1 << bits) + 1, 0);
        let directory = &mut self.directories[before..];
        for (below, element) in (1_u32..).zip(set) {
            directory[(element >> (u64::BITS - bits)) as usize + 1] = below as u16;
        }
        let (mut below, mut most) = (0, 0);
        for end in directory {
            most = most.max(end.saturating_sub(below));
            *end = below.max(*end);
            below = *end;
        }
        if most > CROWD {
            // No hashes.
            self.directories.truncate(before);
            self.starts[number as usize] = NONE;
            return false;
        }
        true
    }

    /// Finds out what `hashes` have of a leader, whose elements these are, and beside it: false if that is more than a
    /// third of all their elements, with which they resemble each other by half. Hashes may repeat, in any order.
    pub(super) fn compare(
        &self,
        leader: u32,
        elements: &[u64],
        hashes: &[u64],
        sorting: &mut Sorting,
        found: &mut Found,
    ) -> bool {
        let Some(&start) = self.starts.get(leader as usize).filter(|&&start| start != NONE) else {
            return false;
        };
        // A set of fewer cannot have half of it.
        if 2 * hashes.len() < elements.len() {
            return false;
        }
        let bits = directory_bits(elements.len());
        let directory = &self.directories[start as usize..=start as usize + (1 << bits)];
        found.marks.clear();
        found.marks.resize(elements.len() + 1, 0);
        if found.new.len() < hashes.len() {
            found.new.resize(hashes.len(), 0);
        }
        let most = (elements.len() + hashes.len()) / 3;
        let Some(leader) = Sorted::new(elements, directory, bits) else { return false };
        let compared = Compared { leader, hashes, most, found };
        let Some(new) = Level::chosen().dispatch(compared) else { return false };
        pack(&found.marks[..elements.len()], &mut found.bits);
        found.distinct.clear();
        sorting.append_distinct(&found.new[..new], &mut found.distinct);
        let shared = ones(&found.bits);
        found.size = shared + found.distinct.len();
        let differences = elements.len() - shared + found.distinct.len();
        differences <= (elements.len() + found.size) / 3
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

/// Which leader an anchor was last seen with: a hash table in which newer anchors take the places of older ones.
#[derive(Debug, Default)]
struct Hints {
    slots: Vec<Hint>,
    filled: usize,
}

#[derive(Clone, Copy, Debug)]
struct Hint {
    hash: u32,
    leader: u32,
}

impl Hints {
    const FIRST_BITS: u32 = 10;
    const MOST_BITS: u32 = 20;

    fn hash(anchor: u64) -> u32 {
        (anchor.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn leader(&self, anchor: u64) -> Option<u32> {
        let hash = Self::hash(anchor);
        let slot = self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))?;
        (slot.hash == hash && slot.leader != NONE).then_some(slot.leader)
    }

    fn insert(&mut self, anchor: u64, leader: u32) {
        if 2 * self.filled >= self.slots.len() && self.slots.len() < 1 << Self::MOST_BITS {
            self.grow();
        }
        let hash = Self::hash(anchor);
        let place = self.place(hash);
        self.filled += usize::from(self.slots[place].leader == NONE);
        // The oldest stays.
        if self.slots[place].leader == NONE || self.slots[place].hash != hash {
            self.slots[place] = Hint { hash, leader };
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(1 << Self::FIRST_BITS);
        let before = std::mem::replace(&mut self.slots, vec![Hint { hash: 0, leader: NONE }; size]);
        self.filled = 0;
        for hint in before.into_iter().filter(|hint| hint.leader != NONE) {
            let place = self.place(hint.hash);
            self.filled += usize::from(self.slots[place].leader == NONE);
            self.slots[place] = hint;
        }
    }
}
