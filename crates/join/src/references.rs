//! Delta encoding of sets against reference sets.
//!
//! Near-duplicates form families. A set of a family is stored as one bit for each element of the family's *reference set*,
//! and the elements that the reference does not have. This reduces versions of a text to a hundredth of their plain size.
//! Encoding looks up each element in the reference, which needs no sorting. Two sets of a family are compared by their bits
//! and by their new elements:
//!
//! ```text
//! |x ∩ y| = |bits x ∩ bits y| + |new x ∩ new y|
//! ```
//!
//! *Anchors* guess the reference: hashes that similar sets most likely share, such as minima. A wrong guess is detected
//! after a few elements.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use zerocopy::IntoBytes;

use super::append_only_vec::{AppendOnlyVec, CachePadded};
use super::distinct::SortScratch;
use twindex_kernel::{Kernel, Level, Simd, SortedSet, look_up, prefetch_all};
use twindex_sketch::intersection_from;

/// Minimum size of a set that is delta-encoded; smaller sets gain nothing.
const ELEMENTS_MIN: usize = 16;
/// Maximum size of a reference set: positions of elements have 16 bits.
const ELEMENTS_MAX: usize = 1 << 16;
/// Maximum number of elements of a reference set in one bucket of its directory.
const BUCKET_MAX: u16 = 64;
/// With at least this number of anchors, two must agree: two sets of resemblance 0.5 most likely share two of eight.
const ANCHORS_SEVERAL: usize = 8;
/// The number of elements after which a wrong reference is detected.
const STEP: usize = 64;
/// Maximum number of reference sets that a set is compared with.
const GUESSES: usize = 4;
/// Marks a set without a reference.
pub(super) const NO_REFERENCE: u32 = u32::MAX;

/// Reference sets for delta encoding, and the anchors that find them. Threads share them to [encode](Self::encode) sets
/// while one thread adds references.
#[derive(Debug, Default)]
pub struct ReferenceSets {
    anchors_seen: AnchorTable,
    all: AppendOnlyVec<ReferenceSet>,
    bytes: CachePadded<AtomicUsize>,
}

/// A reference set for delta encoding.
#[derive(Debug)]
pub(super) struct ReferenceSet {
    /// The number of the set.
    pub(super) number: u32,
    /// The elements, ascending.
    pub(super) elements: Box<[u64]>,
    /// The number of elements below each of several evenly spaced hashes.
    directory: Box<[u16]>,
}

/// The header of a set: how its words are delta-encoded.
#[derive(Clone, Copy, Debug)]
pub struct DeltaHeader {
    /// The number of the reference, or [`NO_REFERENCE`].
    pub(super) reference: u32,
    pub(super) size: usize,
    /// The number of references at the time of encoding.
    pub(super) references: u32,
}

impl DeltaHeader {
    /// Returns the header as numbers, for [`from_numbers`](Self::from_numbers). They allow adding the set again to sets that
    /// were added in the same order.
    #[must_use]
    pub fn numbers(self) -> [u64; 3] {
        [self.reference.into(), self.size as u64, self.references.into()]
    }

    /// Returns the header of these numbers, or `None` if [`numbers`](Self::numbers) cannot return them.
    #[must_use]
    pub fn from_numbers([reference, size, references]: [u64; 3]) -> Option<Self> {
        let (reference, references) = (reference.try_into().ok()?, references.try_into().ok()?);
        Some(Self { reference, size: size.try_into().ok()?, references })
    }
}

/// Working memory of [`ReferenceSets::encode`] for one thread.
#[derive(Debug, Default)]
pub struct DeltaScratch {
    sorting: SortScratch,
    buffers: DeltaBuffers,
    guesses: Vec<u32>,
}

/// A delta-encoded set: one bit per element of its reference, and new elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetDelta<'a> {
    /// One bit for each element of the reference, in ascending order of elements.
    pub(super) bits: &'a [u64],
    /// Elements that the reference does not have, ascending.
    pub(super) new: &'a [u64],
}

impl<'a> SetDelta<'a> {
    /// Splits the words of a set that is delta-encoded against this reference.
    pub(super) fn of(reference: &ReferenceSet, words: &'a [u64]) -> Self {
        let bits = reference.elements.len().div_ceil(u64::BITS as usize);
        let (bits, new) = words.split_at(bits.min(words.len()));
        Self { bits, new }
    }

    /// Whether the number of bits fits the reference, the padding bits are zero, and the new elements ascend.
    pub(super) fn fit(self, reference: &ReferenceSet) -> bool {
        let (elements, word) = (reference.elements.len(), u64::BITS as usize);
        let padding =
            self.bits.last().map_or(0, |last| last.unbounded_shr(((elements - 1) % word + 1) as u32));
        self.bits.len() == elements.div_ceil(word) && padding == 0 && self.new.is_sorted()
    }
}

impl SetDelta<'_> {
    /// Passes the elements to `each`, ascending.
    pub(super) fn for_each(self, reference: &[u64], mut each: impl FnMut(u64)) {
        let mut new = self.new.iter().copied().peekable();
        for (elements, &bits) in reference.chunks(u64::BITS as usize).zip(self.bits) {
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

    /// Passes the elements of the reference that are not in the set to `each`, ascending.
    pub(super) fn for_each_lacking(self, reference: &[u64], mut each: impl FnMut(u64)) {
        for (elements, &bits) in reference.chunks(u64::BITS as usize).zip(self.bits) {
            let mut lacking = !bits & (u64::MAX >> (u64::BITS as usize - elements.len()));
            while lacking != 0 {
                each(elements[lacking.trailing_zeros() as usize]);
                lacking &= lacking - 1;
            }
        }
    }

    /// Returns the number of common elements of two sets with the same reference, or `None` if it is below `min`.
    pub(super) fn shared(self, other: Self, min: usize) -> Option<usize> {
        let bits = twindex_kernel::vectorized(
            #[inline(always)]
            || self.bits.iter().zip(other.bits).map(|(a, b)| (a & b).count_ones() as usize).sum::<usize>(),
        );
        let least_new = min.saturating_sub(bits);
        if least_new > self.new.len().min(other.new.len()) {
            return None;
        }
        Some(bits + intersection_from(self.new, other.new, least_new)?)
    }
}

/// Buffers for the comparison of a set with a reference.
#[derive(Debug, Default)]
struct DeltaBuffers {
    /// Whether each element of the reference is in the set, with one extra entry.
    marks: Vec<u8>,
    bits: Vec<u64>,
    new: Vec<u64>,
    distinct: Vec<u64>,
    /// Number of elements in the set.
    size: usize,
}

impl ReferenceSets {
    /// The first half of [`ShingleSets::push_like`](super::ShingleSets::push_like): encodes the set of these hashes against
    /// a similar reference set if there is one, and appends the words to store to `words`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut sets = twindex_join::ShingleSets::new(dir.path(), 1 << 20);
    /// let references = sets.references(); // for each thread
    /// let (mut delta_scratch, mut words) = (twindex_join::DeltaScratch::default(), Vec::new());
    /// let header = references.encode(&[8, 7, 8], &[7], &mut delta_scratch, &mut words);
    /// let set = sets.push_encoded(header, &words, &[7])?;
    /// assert_eq!(sets.set(set, &mut Vec::new())?, [7, 8]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn encode(
        &self,
        hashes: &[u64],
        anchors: &[u64],
        delta_scratch: &mut DeltaScratch,
        words: &mut Vec<u64>,
    ) -> DeltaHeader {
        let references = self.all.len();
        self.encode_from(0, hashes, anchors, delta_scratch, words).unwrap_or_else(|| {
            let start = words.len();
            delta_scratch.sorting.append_distinct(hashes, words);
            DeltaHeader { reference: NO_REFERENCE, size: words.len() - start, references }
        })
    }

    /// Delta-encodes a set against a similar candidate reference with the number `first` or higher; `None` if there is none.
    pub(super) fn encode_from(
        &self,
        first: u32,
        hashes: &[u64],
        anchors: &[u64],
        delta_scratch: &mut DeltaScratch,
        words: &mut Vec<u64>,
    ) -> Option<DeltaHeader> {
        let DeltaScratch { sorting, buffers, guesses } = delta_scratch;
        self.guess(anchors, guesses);
        for &number in guesses.iter().filter(|&&number| number >= first).take(GUESSES) {
            if self.get(number).is_some_and(|reference| reference.compare(hashes, sorting, buffers)) {
                words.extend_from_slice(&buffers.bits);
                words.extend_from_slice(&buffers.distinct);
                return Some(DeltaHeader { reference: number, size: buffers.size, references: number });
            }
        }
        None
    }

    /// Returns the number of reference sets.
    pub(super) fn len(&self) -> u32 {
        self.all.len()
    }

    pub(super) fn get(&self, number: u32) -> Option<&ReferenceSet> {
        self.all.get(number)
    }

    /// Returns the number of bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.0.load(Relaxed) + self.anchors_seen.bytes()
    }

    /// Returns references that may be similar to a set with these anchors, the oldest first, which keeps families together.
    /// If there are several anchors, two must point to the same reference.
    fn guess(&self, anchors: &[u64], guesses: &mut Vec<u32>) {
        guesses.clear();
        guesses.extend(anchors.iter().filter_map(|&anchor| self.anchors_seen.reference(anchor)));
        guesses.sort_unstable();
        let (mut kept, mut last) = (0, NO_REFERENCE);
        for at in 0..guesses.len() {
            let guess = guesses[at];
            let is_frequent = anchors.len() < ANCHORS_SEVERAL || guesses.get(at + 1) == Some(&guess);
            if guess != last && is_frequent {
                guesses[kept] = guess;
                kept += 1;
                last = guess;
            }
        }
        guesses.truncate(kept);
    }

    /// Records that sets with one of these anchors may be similar to this reference.
    pub(super) fn hint(&self, anchors: &[u64], reference: u32) {
        for &anchor in anchors {
            self.anchors_seen.insert(anchor, reference);
        }
    }

    /// Makes a set a reference and returns the reference's number; `None` if the set's size or distribution is unsuitable.
    pub(super) fn make_reference(&self, set: u32, elements: &[u64]) -> Option<u32> {
        if !(ELEMENTS_MIN..ELEMENTS_MAX).contains(&elements.len()) {
            return None;
        }
        let bits = directory_bits(elements.len());
        let mut directory = vec![0_u16; (1 << bits) + 1].into_boxed_slice();
        for (below, element) in (1_u32..).zip(elements) {
            directory[(element >> (u64::BITS - bits)) as usize + 1] = below as u16;
        }
        let (mut below, mut max) = (0, 0);
        for end in &mut directory {
            max = max.max(end.saturating_sub(below));
            *end = below.max(*end);
            below = *end;
        }
        // A set with more elements in a bucket does not consist of hashes.
        (max <= BUCKET_MAX).then(|| {
            let held = size_of_val(elements) + size_of_val(&*directory) + size_of::<ReferenceSet>();
            self.bytes.0.fetch_add(held, Relaxed);
            self.all.push(ReferenceSet { number: set, elements: elements.into(), directory })
        })
    }
}

impl ReferenceSet {
    /// Encodes `hashes` against this set. Returns false if the two differ in more than a third of all their elements, which
    /// is a resemblance below 0.5. Hashes may be in any order, with repetitions.
    fn compare(&self, hashes: &[u64], sorting: &mut SortScratch, buffers: &mut DeltaBuffers) -> bool {
        let elements = self.elements.len();
        // Fewer hashes cannot include half of the elements.
        if 2 * hashes.len() < elements {
            return false;
        }
        let Some(reference) = SortedSet::new(&self.elements, &self.directory, directory_bits(elements))
        else {
            return false;
        };
        prefetch_all(self.directory.as_bytes());
        prefetch_all(self.elements.as_bytes());
        buffers.marks.clear();
        buffers.marks.resize(elements + 1, 0);
        if buffers.new.len() < hashes.len() {
            buffers.new.resize(hashes.len(), 0);
        }
        let compared = DeltaKernel { reference, hashes, max: (elements + hashes.len()) / 3, buffers };
        let Some(new) = Level::chosen().dispatch(compared) else { return false };
        pack(&buffers.marks[..elements], &mut buffers.bits);
        buffers.distinct.clear();
        sorting.append_distinct(&buffers.new[..new], &mut buffers.distinct);
        let shared = ones(&buffers.bits);
        buffers.size = shared + buffers.distinct.len();
        elements - shared + buffers.distinct.len() <= (elements + buffers.size) / 3
    }
}

/// Returns the number of bits of the directory's index, for at most two elements per bucket on average.
fn directory_bits(elements: usize) -> u32 {
    (elements.next_power_of_two() / 2).ilog2()
}

/// Returns the number of one bits in `words`.
pub(super) fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Looks up hashes in a reference set.
struct DeltaKernel<'a> {
    reference: SortedSet<'a>,
    hashes: &'a [u64],
    max: usize,
    buffers: &'a mut DeltaBuffers,
}

impl Kernel for DeltaKernel<'_> {
    type Output = Option<usize>;

    /// Marks the elements that are found, and writes the other hashes to the front of `new`. Returns the number of the
    /// others, or `None` if there are too many.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let Self { reference, hashes, max, buffers } = self;
        let mut count = 0;
        for (number, hashes) in hashes.chunks(STEP).enumerate() {
            count += look_up(simd, reference, hashes, &mut buffers.marks, &mut buffers.new[count..]);
            // The first step fails if more than three in four hashes are new.
            if count > max || number == 0 && 4 * count > 3 * STEP {
                return None;
            }
        }
        Some(count)
    }
}

/// Packs `marks`, each 0 or 1, into `bits`, whose content is replaced.
fn pack(marks: &[u8], bits: &mut Vec<u64>) {
    bits.clear();
    bits.extend(marks.chunks(u64::BITS as usize).map(|marks| {
        let (eights, rest) = marks.as_chunks();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // Moves the first mark's bit to the lowest bit of the highest byte, the next one's to the second bit, and so on.
        let byte = |eight: [u8; 8]| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let places = (0..u64::BITS).step_by(8);
        eights
            .iter()
            .chain(Some(&last))
            .zip(places)
            .fold(0, |word, (&eight, place)| word | byte(eight) << place)
    }));
}

/// The reference of each anchor's first set, in lossy hash tables in which anchors overwrite others.
#[derive(Debug, Default)]
struct AnchorTable {
    /// One table for the first anchors, a larger one for later anchors, the largest for all others.
    tables: [OnceLock<Box<[AtomicU64]>>; 3],
    used: CachePadded<AtomicUsize>,
}

impl AnchorTable {
    const BITS: [u32; 3] = [16, 18, 20];

    fn bytes(&self) -> usize {
        self.tables.iter().filter_map(OnceLock::get).map(|table| size_of_val(&**table)).sum()
    }

    fn hash(anchor: u64) -> u64 {
        let spread = anchor.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (spread ^ spread >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    fn reference(&self, anchor: u64) -> Option<u32> {
        let hash = Self::hash(anchor);
        self.tables.iter().map_while(OnceLock::get).find_map(|table| {
            let slot = table[hash as usize & (table.len() - 1)].load(Acquire);
            // Reference numbers are stored plus one; 0 marks an empty slot.
            (slot >> 32 == hash).then(|| (slot as u32).checked_sub(1)).flatten()
        })
    }

    fn insert(&self, anchor: u64, reference: u32) {
        if self.reference(anchor).is_some() {
            return; // the oldest reference is kept
        }
        // Continues with the next table when one is half full.
        let used = self.used.0.load(Relaxed);
        let level = Self::BITS[..2].iter().filter(|&&bits| used > 1 << (bits - 1)).count();
        let empty = || (0..1 << Self::BITS[level]).map(|_| AtomicU64::new(0)).collect();
        let table = self.tables[level].get_or_init(empty);
        let hash = Self::hash(anchor);
        let slot = &table[hash as usize & (table.len() - 1)];
        let is_filled = slot.load(Relaxed) != 0;
        // Plain stores, because an exchange would wait for the cache line; if two threads insert, only a hint is lost.
        slot.store(hash << 32 | u64::from(reference + 1), Release);
        if !is_filled {
            self.used.0.store(self.used.0.load(Relaxed) + 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_reference_of_an_anchor_is_guessed_and_two_of_several_anchors_must_agree() {
        let references = ReferenceSets::default();
        let elements: Vec<u64> = (0..100_u64).map(|i| i << 57 | i).collect();
        for set in 0..3 {
            assert_eq!(references.make_reference(set, &elements), Some(set));
        }
        let guess = |anchors: &[u64]| {
            let mut guesses = vec![9];
            references.guess(anchors, &mut guesses);
            guesses
        };
        assert_eq!(guess(&[1, 2]), [0; 0]);
        references.hint(&[1, 2, 3], 1);
        references.hint(&[3, 4, 5, 6], 0);
        assert_eq!(guess(&[1, 4]), [0, 1]);
        assert_eq!(guess(&[3]), [1]);
        assert_eq!(guess(&[3, 1, 4, 10, 11, 12, 13, 14]), [1]);
        assert_eq!(references.make_reference(3, &[7; ELEMENTS_MIN - 1]), None);
        assert_eq!(references.make_reference(3, &vec![7; 100]), None, "no hashes");
        // More anchors, which fill the other tables.
        for anchor in 100..200_000 {
            references.hint(&[anchor], 2);
        }
        assert!(references.anchors_seen.tables[2].get().is_some());
        let buffers = (100..200_000).filter(|&anchor| guess(&[anchor]) == [2]).count();
        assert!(buffers > 160_000, "{buffers}");
    }
}
