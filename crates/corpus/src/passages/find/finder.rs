//! Computes the selected fingerprints of a document in the first pass, and its t-grams that may recur in the second.

use crate::passages::find::filter::Recurring;
use crate::passages::find::hashed::{Hashed, Hasher};
use crate::passages::find::winnow::Winnowing;

/// Maximum number of units in a t-gram.
pub const WIDTH_MAX: usize = 65_535;

/// The number `t` of units in a run, and the number `k` of units in a fingerprint.
///
/// One fingerprint of k units is selected in each window of w = t - k + 1 fingerprints, about 2 / (w + 1) of all
/// fingerprints. A larger k lets fewer fingerprints recur whose t-grams do not recur. A smaller k selects fewer
/// fingerprints. [`words`](Self::words) uses k = t / 2, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    t: usize,
    k: usize,
    /// Minimum number of words in a run, if units may have several words.
    min_words: u32,
}

impl Shape {
    /// Returns the shape for runs of `t` words, 1 to [`WIDTH_MAX`], with fingerprints of half this number of words, rounded
    /// up.
    #[must_use]
    pub fn words(t: usize) -> Self {
        let t = t.clamp(1, WIDTH_MAX);
        Self { t, k: t.div_ceil(2), min_words: 0 }
    }

    /// Returns the shape for runs of `t` words, as [`words`](Self::words) does, but with fingerprints of `k` words, 1
    /// to `t`.
    #[must_use]
    pub fn words_by(t: usize, k: usize) -> Self {
        let words = Self::words(t);
        Self { k: k.clamp(1, words.t), ..words }
    }

    /// Returns the shape for single units, such as lines, of at least `min_words` words.
    #[must_use]
    pub fn units(min_words: u32) -> Self {
        Self { t: 1, k: 1, min_words }
    }

    /// Returns the number of units in a run, `t`.
    #[must_use]
    pub fn width(&self) -> usize {
        self.t
    }

    /// Returns the number of units in a fingerprint, `k`.
    #[must_use]
    pub fn fingerprint_width(&self) -> usize {
        self.k
    }

    /// Returns the number of fingerprints in a window, `w`.
    #[must_use]
    pub fn window(&self) -> usize {
        self.t - self.k + 1
    }
}

/// A t-gram of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gram {
    /// The hash. Equal t-grams have equal hashes; different t-grams have different hashes, except for collisions.
    pub hash: [u64; 2],
    /// The index of the t-gram's first unit in the document.
    pub position: u32,
    /// The byte offset in the text at which the t-gram starts.
    pub start: u32,
    /// The byte offset in the text at which the t-gram ends.
    pub end: u32,
}

/// If units may have several words, this number of low bits in the second half of a hash store the number of words.
const WORD_BITS: u32 = 24;
/// Maximum number of words that a hash can store. For longer units, the hash stores this maximum.
pub(crate) const WORDS_MAX: u64 = (1 << WORD_BITS) - 1;

/// The hasher and the working memory of one thread. Takes 8 bytes for each unit of a document.
#[derive(Clone, Debug)]
pub struct FinderScratch {
    shape: Shape,
    hasher: Hasher,
    winnowing: Winnowing,
    fingerprints: Vec<u64>,
    selected: Vec<u64>,
    powers: [[u64; 2]; 2],
    /// The lengths for which `powers` were computed: [`Hashed::numbers`] of a fingerprint and of a run.
    powers_of: (usize, usize),
}

impl FinderScratch {
    /// Creates the working memory for documents that are hashed with `hasher`, and for runs of this shape.
    #[must_use]
    pub fn new(shape: Shape, hasher: Hasher) -> Self {
        let winnowing = Winnowing::new(shape.window());
        let (fingerprints, selected) = (Vec::new(), Vec::new());
        Self { shape, hasher, winnowing, fingerprints, selected, powers: [[1; 2]; 2], powers_of: (0, 0) }
    }

    /// Computes the fingerprints of a document and stores them in `fingerprints`.
    fn fingerprint(&mut self, hashed: &Hashed) {
        let Shape { t, k, .. } = self.shape;
        let lengths = (hashed.numbers(k), hashed.numbers(t));
        if self.powers_of != lengths {
            self.powers = [self.hasher.powers(lengths.0), self.hasher.powers(lengths.1)];
            self.powers_of = lengths;
        }
        let count = (hashed.len() + 1).saturating_sub(k);
        // A document shorter than a t-gram selects no fingerprints.
        let count = if hashed.len() < t { 0 } else { count };
        let powers = self.powers[0];
        self.fingerprints.clear();
        self.fingerprints.extend((0..count).map(|first| hashed.fingerprint(first, k, powers)));
    }

    /// Passes each selected fingerprint of the document to `each`, with its position, in order. Each position is passed
    /// once.
    pub fn for_each_selected(&mut self, hashed: &Hashed, mut each: impl FnMut(usize, u64)) {
        self.fingerprint(hashed);
        let Self { winnowing, fingerprints, .. } = self;
        let mut last = usize::MAX;
        winnowing.for_each_window(fingerprints, |_, at| {
            if at != last {
                last = at;
                each(at, fingerprints[at]);
            }
        });
    }

    /// First pass: counts the selected fingerprints of the document. With `within`, counts a fingerprint once for each
    /// position at which it is selected, otherwise once per document.
    pub fn count(&mut self, hashed: &Hashed, recurring: &Recurring, within: bool) {
        if within {
            self.for_each_selected(hashed, |_, fingerprint| recurring.count(fingerprint));
        } else {
            self.for_each_distinct_selected(hashed, |fingerprint| recurring.count(fingerprint));
        }
    }

    /// Passes each distinct selected fingerprint of the document to `each`.
    pub fn for_each_distinct_selected(&mut self, hashed: &Hashed, each: impl FnMut(u64)) {
        let mut selected = std::mem::take(&mut self.selected);
        selected.clear();
        self.for_each_selected(hashed, |_, fingerprint| selected.push(fingerprint));
        selected.sort_unstable();
        selected.dedup();
        selected.iter().copied().for_each(each);
        self.selected = selected;
    }

    /// Second pass: passes each t-gram whose selected fingerprint `recurring` reports to `each`, in order. This
    /// includes every t-gram that occurs at least twice.
    pub fn for_each_recurring(&mut self, hashed: &Hashed, recurring: &Recurring, each: impl FnMut(Gram)) {
        self.for_each_gram(hashed, |fingerprint| recurring.recurs(fingerprint), each);
    }

    /// Passes each t-gram whose selected fingerprint `wanted` accepts to `each`, in order. Calls `wanted` once for each
    /// selected position.
    pub fn for_each_gram(
        &mut self,
        hashed: &Hashed,
        mut wanted: impl FnMut(u64) -> bool,
        mut each: impl FnMut(Gram),
    ) {
        self.fingerprint(hashed);
        let mut winnowing = std::mem::replace(&mut self.winnowing, Winnowing::new(1));
        let (mut last, mut is_wanted) = (usize::MAX, false);
        winnowing.for_each_window(&self.fingerprints, |position, at| {
            if at != last {
                (last, is_wanted) = (at, wanted(self.fingerprints[at]));
            }
            if is_wanted && let Some(gram) = self.gram(hashed, position) {
                each(gram);
            }
        });
        self.winnowing = winnowing;
    }

    /// Passes each window to `each`: its position, the position that it selects, and the fingerprint at the selected
    /// position.
    pub(crate) fn for_each_window(&mut self, hashed: &Hashed, mut each: impl FnMut(usize, usize, u64)) {
        self.fingerprint(hashed);
        let Self { winnowing, fingerprints, .. } = self;
        winnowing.for_each_window(fingerprints, |position, at| each(position, at, fingerprints[at]));
    }

    /// Returns the t-gram at a position, or `None` if it has fewer than `min_words` words. `hashed` must be the
    /// document whose fingerprints were computed last.
    pub(crate) fn gram(&self, hashed: &Hashed, position: usize) -> Option<Gram> {
        let Shape { t, min_words, .. } = self.shape;
        let mut hash = hashed.hash(position, t, self.powers[1]);
        if hashed.has_words() {
            let words = hashed.words(position, t);
            if words < min_words {
                return None;
            }
            // Equal units have equal numbers of words, so storing this number in the hash keeps equal hashes equal.
            hash[1] = hash[1] >> (61 - (64 - WORD_BITS)) << WORD_BITS | u64::from(words).min(WORDS_MAX);
        }
        let place = hashed.place(position, t);
        Some(Gram { hash, position: position as u32, start: place.start, end: place.end })
    }

    /// Returns a 32-bit hash of a unit.
    pub(crate) fn unit_hash(&self, hashed: &Hashed, unit: usize) -> u32 {
        hashed.unit_hash(&self.hasher, unit)
    }
}
