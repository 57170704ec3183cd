//! Encodes sets as deltas against reference sets.
//!
//! Near-duplicates form families. A set of a family is stored as one bit for each element of the family's *reference
//! set*, and the elements that the reference does not have. This stores versions of a text in a hundredth of the space
//! of their elements. Encoding looks up each element in the reference, so the set need not be sorted. Two sets with the
//! same reference are compared by their bits and their new elements:
//!
//! ```text
//! |x ∩ y| = |bits x ∩ bits y| + |new x ∩ new y|
//! ```
//!
//! Similar references are found by *anchors*: hashes that similar sets most likely share, such as minima. A comparison
//! with a dissimilar reference stops after a few elements.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use zerocopy::IntoBytes;

use crate::pairs::odd_sketches::make_sketch;
use crate::sets::delta::ones;
use crate::sets::distinct::SortScratch;
use crate::work::append_only_vec::{AppendOnlyVec, CachePadded};
use twindex_kernel::{Kernel, Level, Simd, SortedSet, look_up, prefetch_all};

/// Minimum size of a reference set. Encoding against smaller sets saves nothing.
const ELEMENTS_MIN: usize = 16;
/// Reference sets have fewer elements than this number, because positions of elements are stored in 16 bits.
const ELEMENTS_MAX: usize = 1 << 16;
/// Maximum number of elements per bucket of a reference set's directory.
const BUCKET_MAX: u16 = 64;
/// For a set with at least this number of anchors, a reference set is tried only if two of the anchors refer to it. Two
/// sets of resemblance 0.5 most likely share two of eight anchors.
const ANCHORS_SEVERAL: usize = 8;
/// Number of elements after which a reference is checked for similarity.
const STEP: usize = 64;
/// Maximum number of reference sets with which a set is compared.
const GUESSES: usize = 4;
/// The reference number of a set without a reference.
pub(crate) const NO_REFERENCE: u32 = u32::MAX;

/// Reference sets for delta encoding, found by anchors: hashes that similar sets most likely share. Several threads can
/// [encode](Self::encode) sets while another thread adds references.
#[derive(Debug, Default)]
pub struct ReferenceSets {
    anchors_seen: AnchorTable,
    all: AppendOnlyVec<ReferenceSet>,
    bytes: CachePadded<AtomicUsize>,
}

/// A reference set for delta encoding.
#[derive(Debug)]
pub(crate) struct ReferenceSet {
    /// The number of the set in [`ShingleSets`](crate::ShingleSets).
    pub(crate) number: u32,
    /// The elements, ascending.
    pub(crate) elements: Box<[u64]>,
    /// For evenly spaced hashes, the number of elements below each.
    directory: Box<[u16]>,
}

/// Describes an encoded set: its reference, its size, and how many references were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaHeader {
    /// The number of the reference, or [`NO_REFERENCE`].
    pub(crate) reference: u32,
    pub(crate) size: usize,
    /// For a set without a reference, the number of references that existed when no similar one was found; references
    /// added later may be similar. For a delta-encoded set, the number of its reference.
    pub(crate) references: u32,
}

impl DeltaHeader {
    /// Returns the header as numbers, from which [`from_numbers`](Self::from_numbers) restores it. These numbers and
    /// the words of the set suffice to add it to another collection that has the same earlier sets in the same order.
    #[must_use]
    pub fn numbers(self) -> [u64; 3] {
        [self.reference.into(), self.size as u64, self.references.into()]
    }

    /// Returns the header for these numbers, or `None` if they are out of range.
    #[must_use]
    pub fn from_numbers([reference, size, references]: [u64; 3]) -> Option<Self> {
        let (reference, references) = (reference.try_into().ok()?, references.try_into().ok()?);
        Some(Self { reference, size: size.try_into().ok()?, references })
    }
}

/// A set that [`ReferenceSets::encode`] has encoded, to be added to the collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedSet {
    pub(crate) header: DeltaHeader,
    /// The set if it has no reference. `None` for a delta-encoded set, and if the elements are passed as words.
    pub(crate) plain: Option<Box<PlainSet>>,
}

impl EncodedSet {
    /// Returns the number of elements of the set.
    #[must_use]
    pub fn size(&self) -> usize {
        self.header.size
    }
}

impl From<DeltaHeader> for EncodedSet {
    fn from(header: DeltaHeader) -> Self {
        Self { header, plain: None }
    }
}

/// A set without a reference, with its odd sketch and its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainSet {
    /// The elements, ascending.
    pub(crate) elements: Box<[u64]>,
    pub(crate) odd_sketch: Box<[u64]>,
    /// The directory, if the set can become a reference.
    pub(crate) directory: Option<Box<[u16]>>,
}

/// Working memory of [`ReferenceSets::encode`] for one thread.
#[derive(Debug, Default)]
pub struct DeltaScratch {
    sorting: SortScratch,
    buffers: DeltaBuffers,
    guesses: Vec<u32>,
}

/// Buffers for comparing a set with a reference.
#[derive(Debug, Default)]
struct DeltaBuffers {
    /// For each element of the reference, 1 if the set has it, otherwise 0. The last entry is unused.
    marks: Vec<u8>,
    bits: Vec<u64>,
    new: Vec<u64>,
    distinct: Vec<u64>,
    /// Number of distinct elements of the set.
    size: usize,
}

impl ReferenceSets {
    /// Encodes the set of these hashes against a similar reference set, if there is one, and appends the words to store to
    /// `words`. This is the first half of [`ShingleSets::push_like`](crate::ShingleSets::push_like).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut sets = twindex_join::ShingleSets::new(dir.path(), 1 << 20);
    /// let references = sets.references(); // for each thread
    /// let (mut delta_scratch, mut words) = (twindex_join::DeltaScratch::default(), Vec::new());
    /// let encoded = references.encode(&[8, 7, 8], &[7], &mut delta_scratch, &mut words);
    /// let set = sets.push_encoded(encoded, &words, &[7])?;
    /// assert_eq!(sets.set(set, &mut Vec::new())?, [7, 8]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn encode(
        &self,
        hashes: &[u64],
        anchors: &[u64],
        delta_scratch: &mut DeltaScratch,
        words: &mut Vec<u64>,
    ) -> EncodedSet {
        let references = self.all.len();
        if let Some(header) = self.encode_from(0, hashes, anchors, delta_scratch, words) {
            return header.into();
        }
        let DeltaScratch { sorting, buffers, .. } = delta_scratch;
        let mut elements = Vec::with_capacity(hashes.len());
        sorting.append_distinct(hashes, &mut elements);
        make_sketch(&elements, &mut buffers.bits);
        let header = DeltaHeader { reference: NO_REFERENCE, size: elements.len(), references };
        let (odd_sketch, directory) = (buffers.bits.as_slice().into(), directory(&elements));
        let plain = PlainSet { elements: elements.into_boxed_slice(), odd_sketch, directory };
        EncodedSet { header, plain: Some(Box::new(plain)) }
    }

    /// Encodes a set against a similar reference with the number `first` or higher; `None` if no such reference is found.
    pub(crate) fn encode_from(
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
                let size = buffers.size;
                return Some(DeltaHeader { reference: number, size, references: number });
            }
        }
        None
    }

    pub(crate) fn len(&self) -> u32 {
        self.all.len()
    }

    pub(crate) fn get(&self, number: u32) -> Option<&ReferenceSet> {
        self.all.get(number)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.0.load(Relaxed) + self.anchors_seen.bytes()
    }

    /// Replaces `guesses` with references that may be similar to a set with these anchors, oldest first. Preferring old
    /// references keeps families together. If there are at least [`ANCHORS_SEVERAL`] anchors, two must refer to the
    /// same reference.
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
    pub(crate) fn hint(&self, anchors: &[u64], reference: u32) {
        for &anchor in anchors {
            self.anchors_seen.insert(anchor, reference);
        }
    }

    /// Adds a set as a reference, and returns the number of the reference.
    pub(crate) fn add(&self, set: u32, elements: Box<[u64]>, directory: Box<[u16]>) -> u32 {
        let held = size_of_val(&*elements) + size_of_val(&*directory) + size_of::<ReferenceSet>();
        self.bytes.0.fetch_add(held, Relaxed);
        self.all.push(ReferenceSet { number: set, elements, directory })
    }
}

/// Returns the directory of a set, if the set can become a reference. Such a set is neither too small nor too large,
/// and its elements are uniform.
pub(crate) fn directory(elements: &[u64]) -> Option<Box<[u16]>> {
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
    // A set with more elements in a bucket does not consist of uniform hashes.
    (max <= BUCKET_MAX).then_some(directory)
}

impl ReferenceSet {
    /// Encodes the set of `hashes`, in any order and possibly repeated, against this reference. Returns false if more
    /// elements are in only one of the two sets than a third of the sum of both sizes. The resemblance is then below
    /// 0.5.
    fn compare(&self, hashes: &[u64], sorting: &mut SortScratch, buffers: &mut DeltaBuffers) -> bool {
        let elements = self.elements.len();
        // With fewer than half as many hashes as the reference has elements, the resemblance is below 0.5.
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

/// Returns the number of leading bits of an element that select an entry of the directory. An entry covers at most two
/// elements on average.
fn directory_bits(elements: usize) -> u32 {
    (elements.next_power_of_two() / 2).ilog2()
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

    /// Marks the elements of the reference that are found, and writes the other hashes to the front of `new`. Returns
    /// how many other hashes there are, or `None` if there are too many.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let Self { reference, hashes, max, buffers } = self;
        let mut count = 0;
        for (number, hashes) in hashes.chunks(STEP).enumerate() {
            count += look_up(simd, reference, hashes, &mut buffers.marks, &mut buffers.new[count..]);
            // Returns early if more than three in four hashes of the first chunk are new.
            if count > max || number == 0 && 4 * count > 3 * STEP {
                return None;
            }
        }
        Some(count)
    }
}

/// Replaces the contents of `bits` with the packed `marks`. Each mark is 0 or 1.
fn pack(marks: &[u8], bits: &mut Vec<u64>) {
    bits.clear();
    bits.extend(marks.chunks(u64::BITS as usize).map(|marks| {
        let (eights, rest) = marks.as_chunks();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The multiplication moves the first mark to the lowest bit of the highest byte, the second mark to the next
        // bit, etc.
        let byte = |eight: [u8; 8]| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let places = (0..u64::BITS).step_by(8);
        eights
            .iter()
            .chain(Some(&last))
            .zip(places)
            .fold(0, |word, (&eight, place)| word | byte(eight) << place)
    }));
}

/// Maps each anchor to the reference of the first set with this anchor. The hash tables are lossy: an anchor may
/// overwrite another one.
#[derive(Debug, Default)]
struct AnchorTable {
    /// One table for the first anchors, a larger one for later anchors, and the largest for all others.
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
            // Slots store reference numbers plus one; 0 marks an empty slot.
            (slot >> 32 == hash).then(|| (slot as u32).checked_sub(1)).flatten()
        })
    }

    fn insert(&self, anchor: u64, reference: u32) {
        if self.reference(anchor).is_some() {
            return; // keeps the oldest reference
        }
        // Continues with the next table when the current one is half full.
        let used = self.used.0.load(Relaxed);
        let level = Self::BITS[..2].iter().filter(|&&bits| used > 1 << (bits - 1)).count();
        let empty = || (0..1 << Self::BITS[level]).map(|_| AtomicU64::new(0)).collect();
        let table = self.tables[level].get_or_init(empty);
        let hash = Self::hash(anchor);
        let slot = &table[hash as usize & (table.len() - 1)];
        let is_filled = slot.load(Relaxed) != 0;
        // Uses plain stores, because an atomic exchange would wait for the cache line. If two threads insert at once,
        // one anchor may be lost. Similar sets may then be stored without a delta.
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
    fn oldest_reference_is_guessed_if_two_of_several_anchors_agree() {
        let references = ReferenceSets::default();
        let elements: Vec<u64> = (0..100_u64).map(|i| i << 57 | i).collect();
        for set in 0..3 {
            assert_eq!(references.add(set, elements.as_slice().into(), directory(&elements).unwrap()), set);
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
        assert_eq!(directory(&[7; ELEMENTS_MIN - 1]), None);
        assert_eq!(directory(&[7; 100]), None, "no hashes");
        // Inserts more anchors, so that all three tables are used.
        for anchor in 100..200_000 {
            references.hint(&[anchor], 2);
        }
        assert!(references.anchors_seen.tables[2].get().is_some());
        let buffers = (100..200_000).filter(|&anchor| guess(&[anchor]) == [2]).count();
        assert!(buffers > 160_000, "{buffers}");
    }
}
