//! Finds pairs of documents whose sketches share elements. This is the pipeline that clustered `AltaVista`'s 30 million
//! documents in 1996 (Broder, Glassman, Manasse and Zweig, *Syntactic clustering of the web*, 1997).
//!
//! `pairs --samples` uses this pipeline on the samples in an index. By default, `pairs` finds candidates from
//! [sets](mod@crate::pairs::verified) or [bands](mod@crate::bands::candidates) instead.
//!
//! 1. *Shingle merge*, [`merge_elements`]: sorts the pairs (element, document) of all sketches externally, which gives a
//!    list of documents for each element. Drops elements that occur in only one document, which are most elements.
//! 2. *Pair formation*, [`Merged::form_pairs`]: records the position of each document in the lists of its elements.
//! 3. *Pair merge*, [`FormedPairs::for_each`]: for each document, counts how often each later document follows it in
//!    these lists. This count is the number of common elements of the two sketches. The resemblance is estimated from
//!    it and from the sizes of the sketches: [`Common`].
//!
//! **Counting instead of sorting.** The paper writes a pair for each shared element and sorts all pairs. Here, an array
//! with one counter per document counts the elements that each document shares with the current one. This gives the same
//! pairs in the same order, without writing them. If the lists exceed the memory, they are processed in parts: the counts
//! of each part are written as a sorted run, and the runs are merged as in the paper.
//!
//! **Over-common elements.** An element of c documents forms `c^2 / 2` pairs. A phrase that is on every page of a site
//! costs the most and identifies no duplicates. The paper ignores elements of more than 1,000 documents. Here, if an
//! element has more documents than the cap, each of them is paired only with the first and the previous document. This
//! takes linear time and keeps large families connected. The counts of these documents are too low, so
//! [`FormedPairs::common`] compares their sketches instead. The cap thus decides which pairs are compared, but never
//! changes the result of a comparison.
//!
//! **Differences from the paper.** The sketches of the paper hold all shingle hashes divisible by m. Here, bottom-t
//! sketches can be joined as well. The common elements of two bottom-t sketches are not a sample of the union, because
//! documents of different lengths keep different fractions of their hashes. The count is therefore only a bound. Pairs
//! that pass it are compared among the first t elements of their union, as in [`samples`](twindex_sketch::samples).

mod near;
mod postings;

use std::ops::Range;
use std::path::Path;

use self::postings::{ALONE, Capping, PostingLists, SharedPairs};
use crate::bands::candidates::BucketWork;
use crate::sets::shingle_sets::ShingleSets;
use crate::work::runs::Sorter;
use twindex::error::{Error, Result};
use twindex_sketch::{Containment, Resemblance, Sample};

/// Number of candidate pairs per document above which the cap is lowered, unless there are fewer than `CANDIDATES_MIN`
/// pairs in total. A pair is counted once for each shared element. Counting takes one or two nanoseconds, and at most
/// 12 bytes of a scratch file.
pub const CANDIDATES_PER_SET: u64 = 4_000;
/// Total number of candidate pairs below which the cap is not lowered; see [`CANDIDATES_PER_SET`].
const CANDIDATES_MIN: u64 = 100_000_000;
/// An estimate that is too low by this number of standard errors still passes [`Common::may_reach`].
const ERRORS: f64 = 3.0;
/// Number of over-common elements that are reported: the elements with the most documents.
const REMEMBERED: usize = 10;

/// The rule by which the hashes of a sketch are selected from a document's shingle hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledBy {
    /// The smallest hashes, at most this number.
    Bottom(u16),
    /// All hashes divisible by this number.
    Modulus(u32),
}

impl SampledBy {
    /// Returns the sample that a sketch with these hashes represents.
    #[must_use]
    pub fn sample(self, hashes: &[u64]) -> Sample<'_> {
        match self {
            Self::Bottom(t) => Sample::bottom(hashes, t.into()),
            Self::Modulus(modulus) => Sample::modular(hashes, modulus),
        }
    }
}

/// The number of common elements, and the number of all elements, of two sketches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// Number of compared elements that are in both sketches.
    pub both: u32,
    /// Number of compared elements that are in at least one of the sketches.
    pub either: u32,
    /// Fraction of all shingles that was compared. If it is 1, the resemblance is exact.
    pub share: f64,
}

impl Common {
    /// Counts the common elements of two samples. Returns `None` if the samples cannot be compared.
    #[must_use]
    pub fn of(a: &Sample<'_>, b: &Sample<'_>) -> Option<Self> {
        let (both, either, share) = a.common(b)?;
        Some(Self { both: both as u32, either: either as u32, share })
    }

    /// Returns the exact resemblance if all shingles were compared, otherwise an estimate with its standard error.
    #[must_use]
    pub fn resemblance(&self) -> Resemblance {
        let (both, either) = (self.both as usize, self.either as usize);
        if self.share >= 1.0 {
            return Resemblance::Exact { intersection: both, union: either };
        }
        // The estimate is computed as for containment, with the union in place of the smaller set.
        let known = Containment::estimated(both, either, self.share);
        Resemblance::Estimate { value: known.value(), standard_error: known.standard_error() }
    }

    /// Returns whether the exact resemblance may be at least `threshold`, that is, whether the estimate is at most
    /// three standard errors below the threshold.
    #[must_use]
    pub fn may_reach(&self, threshold: f64) -> bool {
        let estimate = self.resemblance();
        estimate.value() + ERRORS * estimate.standard_error() >= threshold
    }
}

/// The documents of each shared element, and statistics: the result of [`merge_elements`].
#[derive(Debug)]
pub struct Merged {
    lists: PostingLists,
    work: BucketWork,
    documents: u32,
    /// For each of the elements with the most documents: the number of documents, the element, and the first document.
    most_common: Vec<(u64, u64, u32)>,
    /// Number of elements that at least two documents share.
    pub shared: u64,
    /// Number of documents that contain the most common element.
    pub largest: u64,
}

/// *Shingle merge*: collects the documents of each element of `sketches`, which holds one sketch per document.
///
/// Memory: `memory` bytes, at least 1 MiB, half for sorting and half for the resulting lists. Data beyond that is
/// written to unnamed files in `dir`. In addition, each document of the current element takes 4 bytes.
///
/// # Errors
/// [`Error::Io`] from a scratch file.
pub fn merge_elements(sketches: &ShingleSets, (dir, memory): (&Path, usize)) -> Result<Merged> {
    let mut sorter: Sorter<(u64, u32)> = Sorter::new(dir, memory / 2);
    let mut read = Vec::new();
    for document in 0..sketches.len() as u32 {
        read.clear();
        for &element in sketches.set(document, &mut read)? {
            sorter.push((element, document))?;
        }
    }
    let mut merged = Merged {
        lists: PostingLists::new(dir, memory / 2),
        work: BucketWork::default(),
        documents: sketches.len() as u32,
        most_common: Vec::new(),
        shared: 0,
        largest: 0,
    };
    let (mut now, mut of) = (0, Vec::new());
    let mut end = |element: u64, of: &mut Vec<u32>| {
        if of.len() > 1 {
            merged.shared += 1;
            merged.largest = merged.largest.max(of.len() as u64);
            merged.work.bucket(of.len() as u64);
            remember(&mut merged.most_common, (of.len() as u64, element, of[0]));
            merged.lists.push(of)?;
        }
        of.clear();
        Ok::<(), Error>(())
    };
    sorter.finish()?.for_each(|(element, document)| {
        if element != now {
            end(now, &mut of)?;
            now = element;
        }
        of.push(document);
        Ok::<(), Error>(())
    })?;
    end(now, &mut of)?;
    Ok(merged)
}

/// Adds an element to the list of the most common elements, and truncates the list. Elements with equally many documents
/// are sorted by value.
fn remember(most_common: &mut Vec<(u64, u64, u32)>, one: (u64, u64, u32)) {
    if most_common.len() == REMEMBERED && most_common[REMEMBERED - 1].0 > one.0 {
        return;
    }
    let place = most_common.partition_point(|other| (other.0, one.1) >= (one.0, other.1));
    most_common.insert(place, one);
    most_common.truncate(REMEMBERED);
}

impl Merged {
    /// *Pair formation*: forms the pairs of all documents that share an element. An element is capped if it has more than
    /// `max_bucket` documents, or fewer if there would be more than [`CANDIDATES_PER_SET`] pairs per document. Only some
    /// pairs of a capped element are formed: see the [module](self).
    ///
    /// Memory: twice the size of the lists if they are in memory and positions take at most `memory` bytes. Otherwise
    /// `memory` bytes, at least 2 MiB, and an unnamed file in `dir` for pairs. In addition, 12 bytes per document.
    ///
    /// # Errors
    /// [`Error::Io`] from a scratch file; [`Error::Limit`] for 2^31 or more documents.
    pub fn form_pairs(self, max_bucket: usize, (dir, memory): (&Path, usize)) -> Result<FormedPairs> {
        let Self { lists, documents, mut most_common, .. } = self;
        if documents >= ALONE {
            let limit = u64::from(ALONE - 1);
            return Err(Error::Limit { what: "sketches that are joined", limit, found: documents.into() });
        }
        let max = (CANDIDATES_PER_SET * u64::from(documents)).max(CANDIDATES_MIN);
        let cap = self.work.cap_for(max_bucket as u64, max);
        most_common.retain(|&(documents, ..)| documents > cap);
        let mut capping = Capping { cap, capped: 0, uncounted: vec![0; documents as usize] };
        let pairs = lists.into_pairs(&mut capping, (dir, memory))?;
        let Capping { capped, uncounted, .. } = capping;
        Ok(FormedPairs { pairs, uncounted, capped, cap, most_common })
    }
}

/// Pairs of documents, with the number of elements that they share.
#[derive(Debug)]
pub struct FormedPairs {
    pairs: SharedPairs,
    /// For each document, the number of its over-common elements. The counts of pairs do not include all of these elements.
    uncounted: Vec<u32>,
    /// Number of over-common elements.
    pub capped: u64,
    /// The cap: `max_bucket`, or less if there would be too many pairs.
    pub cap: u64,
    /// For each of the over-common elements with the most documents, at most 10: the number of documents, the element,
    /// and the first document.
    pub most_common: Vec<(u64, u64, u32)>,
}

impl FormedPairs {
    /// *Pair merge*: passes each pair to `each` in ascending order, the smaller document first, with the number of shared
    /// elements.
    ///
    /// Memory: 8 bytes per document.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file, or the error of `each`.
    pub fn for_each<E: From<Error>>(
        &self,
        each: impl FnMut(u32, u32, u32) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.pairs.for_each(|_| 1, each).map(|_| ())
    }

    /// Passes each pair whose common elements `is_wanted` accepts to `each`, in ascending order. `is_wanted` must be
    /// monotonic: if it accepts a result, it must accept any result with a larger `both` or a smaller `either`. Reads
    /// the sketches of a pair only if the counts do not suffice and `is_wanted` accepts their upper bound. Returns the
    /// number of candidate pairs.
    ///
    /// # Errors
    /// Same as [`for_each`](Self::for_each).
    pub fn common<E: From<Error>>(
        &self,
        sketches: &ShingleSets,
        by: SampledBy,
        is_wanted: impl Fn(&Common) -> bool,
        mut each: impl FnMut(u32, u32, Common) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let (mut of_a, mut of_b, mut held) = (Vec::new(), Vec::new(), None);
        let is_whole = |size: u64| by.is_whole(size);
        let are_whole = (0..sketches.len() as u32).all(|document| is_whole(sketches.size(document)));
        let min = |a: u32| {
            let (size, uncounted) = (sketches.size(a) as u32, self.uncounted[a as usize]);
            if are_whole { by.least_shared(size, uncounted, &is_wanted) } else { 1 }
        };
        self.pairs.for_each(min, |a, b, count| {
            let (in_a, in_b) = (sketches.size(a), sketches.size(b));
            let uncounted = self.uncounted[a as usize].min(self.uncounted[b as usize]);
            // The counts already include a few over-common elements, so this bound is slightly too high.
            let both = count.saturating_add(uncounted).min(in_a.min(in_b) as u32);
            let max = by.at_most(both, (in_a + in_b).saturating_sub(both.into()) as u32);
            match by {
                SampledBy::Modulus(_) if is_whole(in_a.max(in_b)) && (uncounted == 0 || !is_wanted(&max)) => {
                    return if is_wanted(&max) { each(a, b, max) } else { Ok(()) };
                }
                SampledBy::Bottom(_) if !is_wanted(&max) => return Ok(()),
                _ => {}
            }
            if held != Some(a) {
                of_b.clear();
                of_a.clear();
                of_a.extend_from_slice(sketches.set(a, &mut of_b)?);
                held = Some(a);
            }
            of_b.clear();
            let (a_sample, b_sample) = (by.sample(&of_a), by.sample(sketches.set(b, &mut of_b)?));
            Common::of(&a_sample, &b_sample).filter(&is_wanted).map_or(Ok(()), |common| each(a, b, common))
        })
    }
}

/// Returns the first number in the range for which `holds` is true, or the end of the range if there is none. `holds` must
/// be monotonic.
fn first_of(range: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;
    use twindex_sketch::samples;

    /// Returns families of similar shingle sets. Some shingles are in all sets.
    fn shingle_sets(families: u64, of_each: u64) -> Vec<Vec<u64>> {
        let mut random = SplitMix(77);
        let mut sets = Vec::new();
        for _ in 0..families {
            let size = 40 + random.next() % 900;
            let first: Vec<u64> = (0..size).map(|_| random.next()).collect();
            for _ in 0..of_each {
                let changes = random.next() % 60;
                let mut set: Vec<u64> = first[..first.len() - (random.next() % 30) as usize].to_vec();
                set.extend((0..changes).map(|_| random.next()));
                set.extend(0..30);
                sets.push(set);
            }
        }
        sets
    }

    fn sketches(sets: &[Vec<u64>], by: SampledBy, dir: &Path, memory: usize) -> (ShingleSets, Vec<Vec<u64>>) {
        let (mut kept, mut all) = (ShingleSets::new(dir, memory), Vec::new());
        for set in sets {
            let mut sketch = Vec::new();
            match by {
                SampledBy::Bottom(t) => samples::bottom(set, t.into(), &mut Vec::new(), &mut sketch),
                SampledBy::Modulus(modulus) => samples::modular(set, modulus, &mut sketch),
            }
            kept.push(&sketch).unwrap();
            all.push(sketch);
        }
        (kept, all)
    }

    type PairCounts = BTreeMap<(u32, u32), u32>;

    /// The statistics of a merge, and whether it used a scratch file.
    struct MergeTrace {
        shared: u64,
        largest: u64,
        on_disk: bool,
    }

    fn joined(
        kept: &ShingleSets,
        max_bucket: usize,
        budget: (&Path, usize),
    ) -> (PairCounts, MergeTrace, FormedPairs) {
        let merged = merge_elements(kept, budget).unwrap();
        let seen =
            MergeTrace { shared: merged.shared, largest: merged.largest, on_disk: merged.lists.is_on_disk() };
        let formed = merged.form_pairs(max_bucket, budget).unwrap();
        let mut counts = PairCounts::new();
        let each = |a, b, count| {
            assert!(counts.insert((a, b), count).is_none() && a < b, "each pair once");
            Ok::<_, Error>(())
        };
        formed.for_each(each).unwrap();
        (counts, seen, formed)
    }

    fn in_common(a: &[u64], b: &[u64]) -> u32 {
        a.iter().filter(|element| b.contains(element)).count() as u32
    }

    #[test]
    fn pairs_with_common_elements_are_reported_once_with_their_count() {
        let dir = tempfile::tempdir().unwrap();
        let sets = shingle_sets(40, 8);
        for by in [SampledBy::Modulus(4), SampledBy::Bottom(60)] {
            let (kept, all) = sketches(&sets, by, dir.path(), usize::MAX);
            let (counts, merged, formed) = joined(&kept, usize::MAX, (dir.path(), 1 << 26));
            let mut wanted = PairCounts::new();
            for b in 0..all.len() {
                for a in 0..b {
                    let count = in_common(&all[a], &all[b]);
                    if count > 0 {
                        wanted.insert((a as u32, b as u32), count);
                    }
                }
            }
            assert!(counts == wanted && wanted.len() > 5000, "{} {}", counts.len(), wanted.len());
            assert_eq!((formed.capped, formed.most_common.len()), (0, 0));
            assert!(merged.shared > 100 && merged.largest > 100);
        }
    }

    #[test]
    fn results_do_not_depend_on_scratch_files() {
        let dir = tempfile::tempdir().unwrap();
        let sets = shingle_sets(60, 12);
        for (by, max_bucket) in [
            (SampledBy::Modulus(3), usize::MAX),
            (SampledBy::Modulus(3), 500),
            (SampledBy::Bottom(128), usize::MAX),
            (SampledBy::Bottom(128), 500),
        ] {
            let (in_memory, _) = sketches(&sets, by, dir.path(), usize::MAX);
            let (on_disk, _) = sketches(&sets, by, dir.path(), 1000);
            let (wanted, _, formed) = joined(&in_memory, max_bucket, (dir.path(), 1 << 28));
            let (found, merged, spilled) = joined(&on_disk, max_bucket, (dir.path(), 0));
            assert!(merged.on_disk && matches!(formed.pairs, SharedPairs::Met(_)));
            let SharedPairs::Counted(pairs) = &spilled.pairs else { panic!("in memory") };
            assert!(pairs.is_on_disk() || max_bucket == 500);
            assert!(found == wanted && formed.most_common == spilled.most_common);
            assert_eq!(formed.capped > 0, max_bucket == 500);
            let all = |formed: &FormedPairs, sketches: &ShingleSets| {
                let mut all = Vec::new();
                let each = |a, b, common: Common| {
                    all.push((a, b, common));
                    Ok::<_, Error>(())
                };
                formed.common(sketches, by, |_| true, each).unwrap();
                all
            };
            assert_eq!(all(&formed, &in_memory), all(&spilled, &on_disk));
        }
    }

    #[test]
    fn overlap_of_sketches_equals_overlap_of_samples_with_and_without_cap() {
        let dir = tempfile::tempdir().unwrap();
        let sets = shingle_sets(30, 9);
        for (by, max_bucket) in [
            (SampledBy::Modulus(4), usize::MAX),
            (SampledBy::Modulus(4), 20),
            (SampledBy::Modulus(1), 20),
            (SampledBy::Bottom(100), usize::MAX),
            (SampledBy::Bottom(100), 20),
            (SampledBy::Bottom(2000), 20),
        ] {
            let (kept, all) = sketches(&sets, by, dir.path(), usize::MAX);
            let (_, _, formed) = joined(&kept, max_bucket, (dir.path(), 1 << 26));
            assert_eq!(formed.capped > 0, max_bucket == 20);
            assert_eq!(formed.most_common.is_empty(), formed.capped == 0);
            assert!(formed.most_common.is_sorted_by(|x, y| (y.0, x.1) < (x.0, y.1)));
            let mut near = 0;
            let each = |a: u32, b: u32, common: Common| {
                let (left, right) = (by.sample(&all[a as usize]), by.sample(&all[b as usize]));
                assert_eq!(Some(common.resemblance()), left.resemblance(&right), "{by:?} {a} {b}");
                near += 1;
                Ok::<_, Error>(())
            };
            formed.common(&kept, by, |common| common.resemblance().at_least(0.8), each).unwrap();
            // The sets of each family share elements that are not over-common, so all of their pairs must be found.
            let mut wanted = 0;
            for b in 0..all.len() {
                for a in 0..b {
                    let (left, right) = (by.sample(&all[a]), by.sample(&all[b]));
                    wanted += usize::from(left.resemblance(&right).is_some_and(|r| r.at_least(0.8)));
                }
            }
            assert!(near == wanted && wanted > 200, "{by:?}: {near} of {wanted}");
        }
    }

    #[test]
    fn family_over_the_cap_stays_connected() {
        let dir = tempfile::tempdir().unwrap();
        let set: Vec<u64> = (0..50).collect();
        let sets = vec![set; 40];
        let (kept, _) = sketches(&sets, SampledBy::Modulus(2), dir.path(), usize::MAX);
        let (counts, _, formed) = joined(&kept, 10, (dir.path(), 1 << 20));
        assert_eq!(formed.cap, 10);
        assert!(formed.most_common.iter().all(|&(documents, _, first)| (documents, first) == (40, 0)));
        let star = (1..40).flat_map(|b| [(0, b), (b - 1, b)]);
        assert!(counts.keys().copied().eq(star.collect::<std::collections::BTreeSet<_>>()));
        let mut equal = 0;
        let each = |_, _, common: Common| {
            equal += usize::from(common.both == common.either);
            Ok::<_, Error>(())
        };
        formed.common(&kept, SampledBy::Modulus(2), |_| true, each).unwrap();
        assert_eq!(equal, counts.len());
    }
}
