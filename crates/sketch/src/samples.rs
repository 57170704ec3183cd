//! Samples the shingle hashes of a document, to estimate resemblance *and containment*.
//!
//! Broder, *On the resemblance and containment of documents*, 1997, section 3, describes two sketches that need only one
//! permutation, unlike the t independent minima of [`minhash`](super::minhash):
//!
//! - **bottom-t** (`MIN_t` in the paper): the t least hashes of a document. Its size is fixed. The t least hashes of the
//!   union of two documents can be computed from both sketches, and are a sample of the union without replacement.
//! - **0 mod m** (`MOD_m` in the paper): all hashes divisible by m. Its size is proportional to the length of the document.
//!   So it can estimate the containment of a short document in a long one. A bottom-t sketch cannot, because hardly any
//!   of the t least hashes of the union belong to the short document.
//!
//! **Hashes.** The sampled hash of a shingle hash x is
//!
//! ```text
//! s(x) = mix(x ^ 0xbe5466cf34e90c6c) >> 16
//! ```
//!
//! where `mix` is the function of [`shingle`](super::shingle), and the constant is taken from the digits of pi. `mix`
//! is a bijection. It makes s, for all practical purposes, independent of the minima and of the fingerprint, for every
//! shingle hash function, even for linear ones such as Rabin's fingerprints. Only 48 bits are kept, which saves a
//! quarter of the space. When n hashes of one document are compared with t hashes of another, two different shingles
//! have the same s in less than one comparison in `2^48 / (n t)`. This is one in about 28 million for a million
//! shingles and t = 10.
//!
//! - The bottom-t sketch of a document is the t least distinct values of s, ascending, or all of them if there are fewer.
//! - The 0-mod-m sketch is all distinct values of s that are divisible by m, ascending. If there are more than
//!   [`MODULAR_MAX`], it has only the least [`MODULAR_MAX`].
//!
//! **Departures from the paper.** Broder samples the Rabin fingerprints directly. The 0-mod-m sketch of a very long document
//! is truncated. It is then a bottom sketch of the multiples of m, and is compared only up to its last value: the estimate
//! stays unbiased, and its sample is the [`MODULAR_MAX`] least hashes.
//!
//! **Estimates.** Let n be the number of compared hashes of the union of A and B: the t least hashes of the union, or
//! all its multiples of m. Of these hashes, a are in A, and c are in both documents. Resemblance is estimated as c / n,
//! and the containment of A in B as c / a. For a given n or a, every set of that many shingles is sampled with the same
//! probability. So both estimates are unbiased if the sample is not empty. Let p = (c + 1) / (n + 2), which is never 0
//! or 1, and let f be the share of all hashes that was compared. The standard error is `sqrt(p (1 - p) (1 - f) / n)`;
//! for containment, a replaces n in both formulas. The factor 1 - f corrects for sampling without replacement. For 0
//! mod m, f is 1 / m; for bottom-t, it is the last compared hash divided by 2^48.

use std::fmt;

use super::estimate::Resemblance;
use super::hash::mix;
use crate::params::{HASH_BITS, MODULAR_MAX};

/// The sixth 64-bit word of the fractional part of pi. It makes sampled hashes independent of shingle hashes.
const SAMPLES: u64 = 0xbe54_66cf_34e9_0c6c;

/// Returns the 48-bit sampled hash of a shingle hash; see the [module](self).
#[inline]
#[must_use]
pub const fn hash(shingle: u64) -> u64 {
    mix(shingle ^ SAMPLES) >> (64 - HASH_BITS)
}

/// Writes to `out`, ascending, the `t` least distinct sampled hashes of a set of shingle hashes: the bottom-t sketch. The
/// order and repetitions of the shingle hashes do not matter. `scratch` is scratch memory.
///
/// Takes time linear in the number of hashes, and sorts little more than t of them: hashes above a threshold are discarded
/// at once, and the threshold is chosen so that somewhat more than t hashes are expected below it. If many hashes are
/// repeated, a second and a third pass may follow.
///
/// ```
/// use twindex_sketch::samples::{bottom, hash};
///
/// let mut min = Vec::new();
/// bottom(&[7, 8, 9, 8], 2, &mut Vec::new(), &mut min);
/// let mut all: Vec<u64> = [7, 8, 9].map(hash).to_vec();
/// all.sort_unstable();
/// assert_eq!(min, all[..2]);
/// ```
pub fn bottom(shingles: &[u64], t: usize, scratch: &mut Vec<u64>, out: &mut Vec<u64>) {
    out.clear();
    if t == 0 || shingles.is_empty() {
        return;
    }
    // Limits t to the number of hashes, so that no sum below overflows and memory is limited by the size of the document.
    let t = t.min(shingles.len());
    // Number of hashes expected below the first threshold: t plus several standard deviations, so that a few repeated
    // hashes do no harm.
    let wanted = t as u64 + t as u64 / 4 + 4 * u64::from(t.ilog2()) + 16;
    let share = (1_u64 << HASH_BITS) / shingles.len() as u64;
    let first = share.saturating_mul(wanted);
    for threshold in [first, first.saturating_mul(4), u64::MAX] {
        below(shingles, threshold, t, scratch);
        if scratch.len() == t || threshold >> HASH_BITS > 0 {
            break;
        }
    }
    out.extend_from_slice(scratch);
}

/// Collects in `scratch`, ascending, the `t` least distinct sampled hashes below a threshold.
fn below(shingles: &[u64], mut threshold: u64, t: usize, scratch: &mut Vec<u64>) {
    /// `scratch` collects at most 3 t + 1,024 hashes. When it is full, all but the t least are removed.
    const ROOM: usize = 1024;
    let capacity = (3 * t + ROOM).min(shingles.len());
    scratch.resize(capacity, 0);
    let (mut kept, mut rest) = (0, shingles);
    loop {
        let (now, later) = rest.split_at(rest.len().min(capacity - kept));
        for &shingle in now {
            // Without branches, because the result of the comparison is unpredictable.
            let hash = hash(shingle);
            scratch[kept] = hash;
            kept += usize::from(hash < threshold);
        }
        rest = later;
        if !rest.is_empty() && kept < capacity {
            continue;
        }
        scratch.truncate(kept);
        scratch.sort_unstable();
        scratch.dedup();
        scratch.truncate(t);
        if rest.is_empty() {
            return;
        }
        kept = scratch.len();
        if kept == t {
            threshold = threshold.min(scratch[t - 1]);
        }
        scratch.resize(capacity, 0);
    }
}

/// Writes to `out`, ascending, the distinct sampled hashes of a set of shingle hashes that are divisible by `modulus`: the
/// 0-mod-m sketch. If there are more than [`MODULAR_MAX`], only the least are kept. `out` is empty if `modulus` is 0.
///
/// Takes time linear in the number of hashes, and sorts the hashes that are kept, about one in `modulus`.
///
/// ```
/// use twindex_sketch::samples::{hash, modular};
///
/// let (shingles, mut sample): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
/// modular(&shingles, 10, &mut sample);
/// assert!(sample.iter().all(|hash| hash % 10 == 0));
/// assert_eq!(sample.len(), shingles.iter().filter(|&&shingle| hash(shingle) % 10 == 0).count());
/// ```
pub fn modular(shingles: &[u64], modulus: u32, out: &mut Vec<u64>) {
    out.clear();
    let Some(divisor) = Divisor::new(modulus) else { return };
    out.extend(shingles.iter().map(|&shingle| hash(shingle)).filter(|&hash| divisor.divides(hash)));
    if out.len() > 2 * MODULAR_MAX {
        // If the lower part has enough distinct hashes, removes the upper part before sorting. Hashes of the upper part
        // would be truncated anyway.
        let (lower, ..) = out.select_nth_unstable(2 * MODULAR_MAX);
        lower.sort_unstable();
        let distinct = lower.chunk_by(|a, b| a == b).count();
        if distinct >= MODULAR_MAX {
            out.truncate(2 * MODULAR_MAX);
        }
    }
    out.sort_unstable();
    out.dedup();
    out.truncate(MODULAR_MAX);
}

/// Tests divisibility without a division (Granlund and Montgomery, *Division by invariant integers using multiplication*,
/// 1994, section 9). Let d be odd. x is a multiple of `2^k d` if and only if `x / d` modulo 2^64, rotated right by k, is at
/// most `(2^64 - 1) / (2^k d)`.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    inverse: u64,
    shift: u32,
    greatest: u64,
}

impl Divisor {
    /// Returns `None` for the divisor 0.
    fn new(divisor: u32) -> Option<Self> {
        let divisor = u64::from(divisor);
        let greatest = u64::MAX.checked_div(divisor)?;
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton's iteration doubles the number of correct bits. It starts with 3 correct bits, because odd^2 is 1 modulo 8.
        let mut inverse = odd;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Some(Self { inverse, shift, greatest })
    }

    #[inline]
    fn divides(self, x: u64) -> bool {
        x.wrapping_mul(self.inverse).rotate_right(self.shift) <= self.greatest
    }
}

/// The sampled hashes of a document, and the rule by which they were selected.
///
/// ```
/// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams};
/// use twindex_sketch::{Sample, Sketcher};
///
/// let mut params = SketchParams::new(Shingling::words(1, 0)).with_simhash(SimhashWeights::Occurrences);
/// params.bottom = 100;
/// let sketcher = Sketcher::new(params)?;
/// let a = sketcher.sketch("a white cat sat on the mat")?;
/// let b = sketcher.sketch("a white cat sat on the mat, and on a black cat")?;
/// let (a, b) = (Sample::bottom(a.bottom(), 100), Sample::bottom(b.bottom(), 100));
/// // The samples of documents of fewer than 100 shingles contain all hashes.
/// assert_eq!(a.resemblance(&b).unwrap().to_string(), "7/9");
/// assert_eq!(a.containment(&b).unwrap().to_string(), "7/7");
/// assert_eq!(b.containment(&a).unwrap().to_string(), "7/9");
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    hashes: &'a [u64],
    choice: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The least hashes, at most this number of them.
    Bottom(usize),
    /// The hashes divisible by this number.
    Modular(u32),
}

/// The numbers of hashes that were counted in a comparison of two samples.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    in_first: usize,
    in_both: usize,
    in_union: usize,
    /// The greatest hash that was compared.
    last: u64,
}

impl<'a> Sample<'a> {
    /// Returns a sample of the first `t` hashes of a bottom-t sketch that [`bottom`] computed for `t` or a greater number.
    #[must_use]
    pub fn bottom(hashes: &'a [u64], t: usize) -> Self {
        Self { hashes: &hashes[..hashes.len().min(t)], choice: Choice::Bottom(t) }
    }

    /// Returns a sample of the hashes that [`modular`] computed for this modulus.
    #[must_use]
    pub fn modular(hashes: &'a [u64], modulus: u32) -> Self {
        Self { hashes, choice: Choice::Modular(modulus) }
    }

    /// Returns the resemblance of the two documents. It is exact if both samples have all hashes of their documents,
    /// otherwise estimated. If two bottom samples have different t, the larger one is truncated to the lesser t.
    ///
    /// Returns `None` if the samples are of different kinds or moduli, or if no hash of either document was sampled. Takes
    /// time linear in the size of the samples.
    #[must_use]
    pub fn resemblance(&self, other: &Sample<'_>) -> Option<Resemblance> {
        let (common, sampled, share) = self.common(other)?;
        if share >= 1.0 {
            return Some(Resemblance::Exact { intersection: common, union: sampled });
        }
        let known = Containment { common, sampled, share };
        Some(Resemblance::Estimate { value: known.value(), standard_error: known.standard_error() })
    }

    /// Returns the number of compared hashes that are in both documents, the number of compared hashes of the union,
    /// and the share of all hashes that was compared. Returns `None` in the same cases as
    /// [`resemblance`](Self::resemblance).
    #[must_use]
    pub fn common(&self, other: &Sample<'_>) -> Option<(usize, usize, f64)> {
        let (counts, share) = self.compare(other)?;
        (counts.in_union > 0 || share >= 1.0).then_some((counts.in_both, counts.in_union, share))
    }

    /// Returns the containment of the document of `self` in the document of `other`.
    ///
    /// Returns `None` in the same cases as [`resemblance`](Self::resemblance), and if no hash of `self` was compared.
    #[must_use]
    pub fn containment(&self, other: &Sample<'_>) -> Option<Containment> {
        let (counts, share) = self.compare(other)?;
        let known = Containment { common: counts.in_both, sampled: counts.in_first, share };
        (counts.in_first > 0 || share >= 1.0).then_some(known)
    }

    /// Compares the hashes. Returns the numbers of hashes counted, and the share of all hashes that was compared.
    fn compare(&self, other: &Sample<'_>) -> Option<(Counts, f64)> {
        let all = (1_u64 << HASH_BITS) as f64;
        match (self.choice, other.choice) {
            (Choice::Bottom(mine), Choice::Bottom(theirs)) => {
                let t = mine.min(theirs);
                let (a, b) = (Self::bottom(self.hashes, t).hashes, Sample::bottom(other.hashes, t).hashes);
                if t == 0 {
                    return None;
                }
                if a.len() < t && b.len() < t {
                    return Some((count(a, b, usize::MAX, u64::MAX), 1.0));
                }
                let counts = count(a, b, t, u64::MAX);
                // Not all hashes were compared, so the share must be below 1, which would mean an exact result.
                let share = (counts.last as f64 / all).min(1.0 - f64::EPSILON);
                Some((counts, share))
            }
            (Choice::Modular(mine), Choice::Modular(theirs)) if mine == theirs && mine > 0 => {
                let end = [self.hashes, other.hashes]
                    .into_iter()
                    .filter(|hashes| hashes.len() >= MODULAR_MAX)
                    .filter_map(|hashes| hashes.last().copied())
                    .min();
                let compared = end.map_or(1.0, |end| end as f64 / all);
                let counts = count(self.hashes, other.hashes, usize::MAX, end.unwrap_or(u64::MAX));
                Some((counts, compared / f64::from(mine)))
            }
            _ => None,
        }
    }
}

/// Counts the first `max` hashes of the union that are at most `end`.
fn count(a: &[u64], b: &[u64], max: usize, end: u64) -> Counts {
    let up_to_end = |hashes: &[u64]| hashes.partition_point(|&hash| hash <= end);
    let (a, b) = (&a[..up_to_end(a)], &b[..up_to_end(b)]);
    let (mut i, mut j, mut counts) = (0, 0, Counts::default());
    while counts.in_union < max
        && let (Some(&x), Some(&y)) = (a.get(i), b.get(j))
    {
        // Without branches, because the result of the comparison is unpredictable.
        i += usize::from(x <= y);
        j += usize::from(y <= x);
        counts.in_both += usize::from(x == y);
        counts.in_union += 1;
        counts.last = x.min(y);
    }
    // At this point all hashes of one sample were counted, or `max` hashes of the union.
    let mut count_rest = |rest: &[u64]| {
        let more = rest.len().min(max - counts.in_union);
        counts.in_union += more;
        counts.last = rest[..more].last().copied().unwrap_or(counts.last);
        more
    };
    let in_first = i + count_rest(&a[i..]);
    count_rest(&b[j..]);
    Counts { in_first, ..counts }
}

/// The containment of a document A in a document B, computed from a sample of their shingles or from all shingles.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Containment {
    /// Number of compared shingles of A that are also in B.
    pub common: usize,
    /// Number of shingles of A that were compared.
    pub sampled: usize,
    /// The share of all shingles that was compared; 1 if the containment is exact.
    pub share: f64,
}

impl Containment {
    /// Returns the exact containment of a document: `common` of its `all` shingles are in the containing document.
    ///
    /// ```
    /// let contained = twindex_sketch::Containment::counted(3, 4);
    /// assert!(contained.is_exact() && contained.value() == 0.75);
    /// ```
    #[must_use]
    pub fn counted(common: usize, all: usize) -> Self {
        Self { common, sampled: all, share: 1.0 }
    }

    /// Returns an estimated containment: `common` of the `sampled` hashes are also in the containing document, and the
    /// sample contains the fraction `share` of all shingles.
    #[must_use]
    pub fn estimated(common: usize, sampled: usize, share: f64) -> Self {
        Self { common, sampled, share }
    }

    /// Returns the containment as a number, 0 to 1; 0 for a document without shingles.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.sampled == 0 { 0.0 } else { self.common as f64 / self.sampled as f64 }
    }

    /// Returns the standard deviation of [`value`](Self::value): 0 if the value is exact, otherwise positive. It is an
    /// overestimate if few shingles were sampled or if the documents are equal.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let n = self.sampled.max(1) as f64;
        let p = (self.common as f64 + 1.0) / (self.sampled as f64 + 2.0);
        (p * (1.0 - p) * (1.0 - self.share).max(0.0) / n).sqrt()
    }

    /// Returns true if all shingles of both documents were compared.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.share >= 1.0
    }
}

impl fmt::Display for Containment {
    /// Formats an exact containment as a fraction, and an estimate as its value and standard error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            write!(f, "{}/{}", self.common, self.sampled)
        } else {
            write!(f, "{:.3}±{:.3}", self.value(), self.standard_error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(shingles: &[u64]) -> Vec<u64> {
        let mut hashes: Vec<u64> = shingles.iter().map(|&shingle| hash(shingle)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn bottom_of(shingles: &[u64], t: usize) -> Vec<u64> {
        let mut out = vec![1; 3];
        bottom(shingles, t, &mut vec![2; 5], &mut out);
        out
    }

    fn modular_of(shingles: &[u64], modulus: u32) -> Vec<u64> {
        let mut out = vec![1; 3];
        modular(shingles, modulus, &mut out);
        out
    }

    /// Returns `count` shingle hashes with `distinct` different values.
    fn shingles(count: u64, distinct: u64) -> Vec<u64> {
        (0..count).map(|i| mix(i % distinct)).collect()
    }

    #[test]
    fn bottom_sketch_has_the_least_hashes_in_order() {
        for (count, distinct) in
            [(0, 1), (1, 1), (7, 7), (100, 100), (101, 101), (1000, 1000), (5000, 4000), (20_000, 150)]
        {
            let shingles = shingles(count, distinct);
            let all = sampled(&shingles);
            for t in [1, 2, 100, 128, 1000, 4096] {
                assert_eq!(bottom_of(&shingles, t), all[..all.len().min(t)], "{count} / {distinct}, t = {t}");
            }
            assert_eq!(bottom_of(&shingles, 0), []);
        }
        // Tests a few values that are repeated many times, and then the hashes of consecutive numbers.
        assert_eq!(bottom_of(&shingles(100_000, 3), 100), sampled(&shingles(3, 3)));
        let near: Vec<u64> = (0..100_000).collect();
        assert_eq!(bottom_of(&near, 64), sampled(&near)[..64]);
    }

    #[test]
    fn bottom_sketch_memory_is_bounded_by_the_document() {
        let some = shingles(500, 300);
        for t in [500, 501, usize::MAX >> 12, usize::MAX / 3, usize::MAX - 1, usize::MAX] {
            assert_eq!(bottom_of(&some, t), sampled(&some), "{t}");
        }
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        for t in [4096, usize::MAX] {
            bottom(&[1, 2, 3], t, &mut scratch, &mut out);
            assert_eq!(out, sampled(&[1, 2, 3]));
            assert!(scratch.capacity() < 100, "{}", scratch.capacity());
        }
    }

    #[test]
    fn divisor_test_equals_division() {
        let divisors = [1, 2, 3, 4, 5, 7, 10, 12, 64, 100, 1000, 0xFFFF, 1 << 31, u32::MAX - 1, u32::MAX];
        for divisor in divisors {
            let by = Divisor::new(divisor).unwrap();
            let wide = u64::from(divisor);
            for x in (0..2000).chain((0..2000).map(|i| mix(i) / wide * wide)).chain((0..2000).map(mix)) {
                assert_eq!(by.divides(x), x % wide == 0, "{x} by {divisor}");
            }
        }
        assert!(Divisor::new(0).is_none());
    }

    #[test]
    fn modular_sketch_has_every_multiple_once() {
        for (count, distinct) in [(0, 1), (1, 1), (1000, 1000), (5000, 700)] {
            let shingles = shingles(count, distinct);
            for modulus in [1, 2, 7, 10, 100, u32::MAX] {
                let mut expected = sampled(&shingles);
                expected.retain(|hash| hash % u64::from(modulus) == 0);
                assert_eq!(modular_of(&shingles, modulus), expected, "{count} / {distinct}, {modulus}");
            }
            assert_eq!(modular_of(&shingles, 0), []);
        }
    }

    #[test]
    fn modular_sketch_over_the_limit_keeps_its_smallest_hashes() {
        for (count, distinct) in [(150_000, 150_000), (300_000, 100_000), (300_000, 40_000)] {
            let shingles = shingles(count, distinct);
            let all = sampled(&shingles);
            let kept = &all[..all.len().min(MODULAR_MAX)];
            assert_eq!(modular_of(&shingles, 1), kept, "{count} / {distinct}");
        }
        // The sketches were truncated at different hashes, so they are compared up to the lesser of their last hashes.
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..200_000).collect(), (0..100_000).collect());
        let (a, b) = (modular_of(&a, 1), modular_of(&b, 1));
        let (a, b) = (Sample::modular(&a, 1), Sample::modular(&b, 1));
        let resemblance = a.resemblance(&b).unwrap();
        assert!(!resemblance.is_exact());
        assert!((resemblance.value() - 0.5).abs() < 4.0 * resemblance.standard_error(), "{resemblance}");
        assert!((b.containment(&a).unwrap().value() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn complete_samples_are_compared_exactly() {
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..60).collect(), (20..95).collect());
        let (x, y) = (bottom_of(&a, 100), bottom_of(&b, 100));
        let (x, y) = (Sample::bottom(&x, 100), Sample::bottom(&y, 100));
        assert_eq!(x.resemblance(&y), Some(Resemblance::Exact { intersection: 40, union: 95 }));
        assert_eq!(x.containment(&y).unwrap().to_string(), "40/60");
        assert_eq!(y.containment(&x).unwrap().to_string(), "40/75");
        // With t = 70 or 60, a sample does not have all hashes of its document.
        assert!(!Sample::bottom(x.hashes, 70).containment(&y).unwrap().is_exact());
        assert!(!y.containment(&Sample::bottom(x.hashes, 60)).unwrap().is_exact());
        let (x, y) = (modular_of(&a, 1), modular_of(&b, 1));
        let (x, y) = (Sample::modular(&x, 1), Sample::modular(&y, 1));
        assert_eq!(x.resemblance(&y), Some(Resemblance::Exact { intersection: 40, union: 95 }));
        assert!(y.containment(&x).unwrap().standard_error() < 1e-12);
    }

    #[test]
    fn resemblance_without_sampled_hashes_is_none() {
        let some = bottom_of(&shingles(500, 500), 20);
        let (bottom, none) = (Sample::bottom(&some, 20), Sample::bottom(&[], 20));
        assert_eq!(none.containment(&bottom), None, "an empty document is contained in no other");
        assert_eq!(none.resemblance(&none), Some(Resemblance::Exact { intersection: 0, union: 0 }));
        assert!(bottom.containment(&none).is_some_and(|known| known.value() < 1e-12));
        let (modular, other) = (Sample::modular(&some, 10), Sample::modular(&some, 11));
        assert_eq!(modular.resemblance(&other), None);
        assert_eq!(modular.containment(&bottom), None);
        assert_eq!(Sample::modular(&[], 10).resemblance(&Sample::modular(&[], 10)), None);
        assert_eq!(Sample::modular(&[], 0).resemblance(&Sample::modular(&[], 0)), None);
        assert_eq!(Sample::bottom(&some, 0).resemblance(&bottom), None);
    }

    #[test]
    fn standard_error_depends_on_the_sampled_share_and_is_positive() {
        let of = |common, sampled, share| Containment { common, sampled, share }.standard_error();
        assert!((of(50, 100, 0.0) - 0.05).abs() < 1e-12);
        assert!((of(50, 100, 0.75) - 0.025).abs() < 1e-12);
        assert!(of(100, 100, 0.1) > 0.0 && of(0, 1, 0.1) > 0.0);
        assert!(of(7, 10, 1.0).abs() < 1e-12);
    }
}
