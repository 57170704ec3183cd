//! Computes the exact resemblance of many pairs of similar sets from their differences to a common reference.
//!
//! Near-duplicates form families. k versions of a text form k (k - 1) / 2 pairs, and intersecting the sets of each pair
//! reads each set k - 1 times. Here each set is read once and compared with one set of its family, the *reference* L. Only
//! the differences of a set x are stored: the elements of L that x lacks, G = L \ x, and the new elements of x, N = x \ L.
//! Two sets x and y of one family are then compared by their differences:
//!
//! ```text
//! |x ∩ y| = |L| - |Gx| - |Gy| + |Gx ∩ Gy| + |Nx ∩ Ny|
//! ```
//!
//! An element of L is in both sets unless one of them lacks it. An element outside L is in both sets only if it is new
//! in both. The result is exact, not an estimate. At resemblances of 0.9, the differences are a tenth of the size of
//! the sets.
//!
//! [`Families::plan`] chooses the references for each batch of pairs in sequence; the other steps can run on any number of
//! threads. The results do not depend on the choice of references.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::sets::shingle_sets::{SetReader, ShingleSets};
use twindex::error::Result;
use twindex::sys::Column;
use twindex_sketch::nearness::least_intersection;
use twindex_sketch::{Resemblance, intersection_from};

/// Stores the differences between sets and their references, and computes intersections from them.
///
/// For each batch of pairs: filter the pairs with [`plausible`](Self::plausible) and call [`plan`](Self::plan) for the
/// remaining ones. Compute each planned [`difference`](Self::difference), one [piece](Self::pieces) at a time, and
/// [`add`](Self::add) the differences in the order of the plan. Then call
/// [`for_each_resembling`](Self::for_each_resembling).
///
/// ```
/// use twindex_join::{Families, ShingleSets};
///
/// let dir = tempfile::tempdir().unwrap();
/// let mut sets = ShingleSets::new(dir.path(), 1 << 20);
/// for set in [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], [1, 2, 3, 4, 7, 8]] {
///     sets.push(&set)?;
/// }
/// let mut families = Families::new(&sets, 1 << 20)?;
/// let pairs = families.plausible(&[(1, 0), (2, 1)], 0.5);
/// for (set, reference) in families.plan(&pairs) {
///     let difference = families.difference(set, reference)?;
///     families.add(difference);
/// }
/// let mut found = Vec::new();
/// families.for_each_resembling(&pairs, 0.5, |a, b, resemblance| found.push((a, b, resemblance.to_string())))?;
/// assert_eq!(found, [(1, 0, "5/7".to_owned()), (2, 1, "5/7".to_owned())]);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct Families<'a> {
    sets: &'a ShingleSets,
    /// The reference of each set; [`NO_REFERENCE`] if the set has not occurred in a pair yet.
    references: Column<u32>,
    /// The range of each set's differences in `elements`.
    kept: Column<DifferenceRange>,
    /// The differences of all sets; for each set, first the elements of the reference that it lacks, then its new elements.
    elements: Vec<u64>,
    /// Number of stored elements above which the next call of `plan` removes all differences.
    max: usize,
}

/// Maximum number of elements in all sets of a piece. Vectors double their capacity when they grow, so `differences`
/// may allocate memory for two thirds of this number of elements.
const PIECE_ELEMENTS: u64 = 3 << 20;
/// The reference number of a set without a reference.
const NO_REFERENCE: u32 = u32::MAX;

/// Locates the differences of a set in [`Families::elements`]. Both counts are 0 for a reference.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct DifferenceRange {
    start: u64,
    lacking: u32,
    new: u32,
}

/// The difference between a set and its reference, as computed by [`Families::difference`].
#[derive(Debug)]
pub struct Difference {
    set: u32,
    reference: u32,
    /// The elements that only the reference has, and the elements that only the set has; `None` if there are too many
    /// to store.
    parts: Option<(Vec<u64>, Vec<u64>)>,
}

impl<'a> Families<'a> {
    /// Creates an empty collection for `sets`. Uses up to `memory` bytes for differences, and 20 bytes per set of the
    /// [budget](ShingleSets::within) of `sets`.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn new(sets: &'a ShingleSets, memory: usize) -> Result<Self> {
        Ok(Self {
            sets,
            references: Column::filled(sets.column_budget(), sets.len(), NO_REFERENCE)?,
            kept: Column::filled(sets.column_budget(), sets.len(), DifferenceRange::default())?,
            elements: Vec::new(),
            max: memory / size_of::<u64>(),
        })
    }

    /// Returns the pairs that [`ShingleSets::may_resemble`] does not rule out. Reads no sets.
    #[must_use]
    pub fn plausible(&self, pairs: &[(u32, u32)], threshold: f64) -> Vec<(u32, u32)> {
        pairs.iter().copied().filter(|&(a, b)| self.sets.may_resemble(a, b, threshold)).collect()
    }

    /// Chooses a reference for each set of `pairs` that has none yet. Returns the sets whose differences must be computed,
    /// as pairs of set and reference.
    #[must_use]
    pub fn plan(&mut self, pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
        if self.elements.len() > self.max {
            self.elements.clear();
            self.references.fill(NO_REFERENCE);
        }
        let mut wanted = Vec::new();
        for &(a, b) in pairs {
            if a == b || self.sets.are_of_one_family(a, b) {
                continue;
            }
            match (self.references[a as usize], self.references[b as usize]) {
                (NO_REFERENCE, NO_REFERENCE) => {
                    self.make_reference(b);
                    self.references[a as usize] = b;
                    wanted.push((a, b));
                }
                (NO_REFERENCE, reference) => {
                    self.references[a as usize] = reference;
                    wanted.push((a, reference));
                }
                (reference, NO_REFERENCE) => {
                    self.references[b as usize] = reference;
                    wanted.push((b, reference));
                }
                _ => {}
            }
        }
        wanted
    }

    /// Splits the result of [`plan`](Self::plan) into pieces. A caller that adds the differences of one piece before it
    /// computes those of the next holds at most 16 MiB of differences, or a single larger one.
    #[must_use]
    pub fn pieces<'p>(&self, wanted: &'p [(u32, u32)]) -> Vec<&'p [(u32, u32)]> {
        let mut pieces = Vec::new();
        let (mut start, mut elements) = (0, 0);
        for (at, &(set, reference)) in wanted.iter().enumerate() {
            let more = self.sets.size(set) + self.sets.size(reference);
            if elements + more > PIECE_ELEMENTS && start < at {
                pieces.push(&wanted[start..at]);
                (start, elements) = (at, 0);
            }
            elements += more;
        }
        pieces.extend((start < wanted.len()).then(|| &wanted[start..]));
        pieces
    }

    fn make_reference(&mut self, set: u32) {
        self.references[set as usize] = set;
        self.kept[set as usize] = DifferenceRange::default();
    }

    /// Computes the difference between a set and its reference. May be called on several threads.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from the scratch file of the sets.
    pub fn difference(&self, set: u32, reference: u32) -> Result<Difference> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let parts = differences(self.sets.set(reference, &mut left)?, self.sets.set(set, &mut right)?);
        Ok(Difference { set, reference, parts })
    }

    /// Stores a difference. If the set differs too much from its reference, the set becomes a reference itself.
    pub fn add(&mut self, difference: Difference) {
        let Difference { set, reference, parts } = difference;
        match parts {
            Some((lacking, new)) => {
                self.references[set as usize] = reference;
                self.kept[set as usize] = DifferenceRange {
                    start: self.elements.len() as u64,
                    lacking: lacking.len() as u32,
                    new: new.len() as u32,
                };
                self.elements.extend_from_slice(&lacking);
                self.elements.extend_from_slice(&new);
            }
            None => self.make_reference(set),
        }
    }

    /// Passes each pair of `pairs` whose resemblance is at least `threshold`, with the resemblance, to `each`, in the order
    /// of `pairs`.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from the scratch file of the sets.
    pub fn for_each_resembling(
        &self,
        pairs: &[(u32, u32)],
        threshold: f64,
        mut each: impl FnMut(u32, u32, Resemblance),
    ) -> Result<()> {
        // Each side has its own reader. Consecutive pairs usually have the same first set, which is then read once.
        let (mut left, mut right) = (SetReader::new(self.sets), SetReader::new(self.sets));
        let mut read = [Vec::new(), Vec::new()];
        for &(a, b) in pairs {
            let sum = (self.sets.size(a) + self.sets.size(b)) as usize;
            let min = least_intersection(sum, threshold);
            let reference = self.references[a as usize];
            let intersection = if self.sets.are_of_one_family(a, b) {
                self.sets.shared((a, b), min, &mut read)?
            } else if reference != NO_REFERENCE && reference == self.references[b as usize] {
                self.by_differences(reference, a, b, min)
            } else {
                intersection_from(left.set(a)?, right.set(b)?, min)
            };
            if let Some(intersection) = intersection {
                let resemblance = Resemblance::Exact { intersection, union: sum - intersection };
                if resemblance.at_least(threshold) {
                    each(a, b, resemblance);
                }
            }
        }
        Ok(())
    }

    /// Returns the size of the intersection of two sets with the same reference, or `None` if it is below `min`.
    fn by_differences(&self, reference: u32, a: u32, b: u32, min: usize) -> Option<usize> {
        let (lacking_a, new_a) = self.parts(a);
        let (lacking_b, new_b) = self.parts(b);
        // Adds before it subtracts, so that no intermediate result is negative.
        let whole = self.sets.size(reference) as usize;
        let either = lacking_a.len() + lacking_b.len();
        let both_new = new_a.len().min(new_b.len());
        let lacking_min = (min + either).saturating_sub(whole + both_new);
        let lacking = intersection_from(lacking_a, lacking_b, lacking_min)?;
        let least_new = (min + either).saturating_sub(whole + lacking);
        let new = intersection_from(new_a, new_b, least_new)?;
        let intersection = whole + lacking + new - either;
        (intersection >= min).then_some(intersection)
    }

    /// Returns the stored differences of a set: the elements of its reference that it lacks, and its new elements.
    fn parts(&self, set: u32) -> (&[u64], &[u64]) {
        let DifferenceRange { start, lacking, new } = self.kept[set as usize];
        let both = &self.elements[start as usize..][..(lacking + new) as usize];
        both.split_at(lacking as usize)
    }
}

/// Number of elements of each side that are compared at once.
const STRIDE: usize = 8;

/// Returns the elements of `reference` that are not in `set`, and the elements of `set` that are not in `reference`.
/// Returns `None` if these are more than a third of the sum of both sizes. The resemblance is then below 0.5.
fn differences(reference: &[u64], set: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let max = (reference.len() + set.len()) / 3;
    let (mut lacking, mut new) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (reference[i..].first_chunk::<STRIDE>(), set[j..].first_chunk::<STRIDE>())
    {
        // Skips equal elements in whole strides, because sets of a family share long runs of elements.
        if x == y {
            i += STRIDE;
            j += STRIDE;
            continue;
        }
        // Each iteration advances each side by at most one element, so neither side leaves its stride.
        let (mut at, mut to) = (0, 0);
        let (mut some_lacking, mut some_new) = ([0; STRIDE], [0; STRIDE]);
        let (mut lacking_count, mut new_count) = (0, 0);
        for _ in 0..STRIDE {
            let (x, y) = (x[at & (STRIDE - 1)], y[to & (STRIDE - 1)]);
            // Has no branch, because the result of the comparison is unpredictable: writes each element, and advances
            // the count only if the element is a difference.
            some_lacking[lacking_count & (STRIDE - 1)] = x;
            some_new[new_count & (STRIDE - 1)] = y;
            lacking_count += usize::from(x < y);
            new_count += usize::from(y < x);
            at += usize::from(x <= y);
            to += usize::from(y <= x);
        }
        i += at;
        j += to;
        lacking.extend_from_slice(&some_lacking[..lacking_count]);
        new.extend_from_slice(&some_new[..new_count]);
        if lacking.len() + new.len() > max {
            return None;
        }
    }
    while i < reference.len() && j < set.len() {
        let (x, y) = (reference[i], set[j]);
        if x < y {
            lacking.push(x);
        } else if y < x {
            new.push(y);
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    lacking.extend_from_slice(&reference[i..]);
    new.extend_from_slice(&set[j..]);
    (lacking.len() + new.len() <= max).then_some((lacking, new))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    /// Returns families of sets, each set derived from another one by some changes. Sizes are near multiples of the stride.
    fn sets(random: &mut SplitMix) -> Vec<Vec<u64>> {
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for number in 0..160_u64 {
            let size = [0, 1, 7, 8, 9, 17, 100, 400][(random.next() % 8) as usize];
            let mut set: BTreeSet<u64> = if number < 8 || random.next().is_multiple_of(8) {
                (0..size).map(|_| random.next()).collect()
            } else {
                sets[(random.next() % number) as usize].clone()
            };
            for _ in 0..random.next() % 20 {
                match random.next() % 3 {
                    0 => {
                        set.insert(random.next());
                    }
                    1 => {
                        set.pop_first();
                    }
                    _ => {
                        let at = random.next() as usize % set.len().max(1);
                        let lacking = set.iter().nth(at).copied();
                        if let Some(lacking) = lacking {
                            set.remove(&lacking);
                        }
                    }
                }
            }
            sets.push(set);
        }
        sets.into_iter().map(|set| set.into_iter().collect()).collect()
    }

    #[test]
    fn differences_are_exact_or_none_if_large() {
        let sets = sets(&mut SplitMix(5));
        let (mut some, mut none) = (0, 0);
        for x in &sets {
            for y in &sets {
                let lacking: Vec<u64> = x.iter().filter(|e| y.binary_search(e).is_err()).copied().collect();
                let new: Vec<u64> = y.iter().filter(|e| x.binary_search(e).is_err()).copied().collect();
                let few = lacking.len() + new.len() <= (x.len() + y.len()) / 3;
                assert_eq!(differences(x, y), few.then_some((lacking, new)));
                *(if few { &mut some } else { &mut none }) += 1;
            }
        }
        assert!(some > 500 && none > 500, "a test of something: {some} {none}");
    }

    #[test]
    fn intersections_from_differences_equal_direct_counts_at_any_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(6);
        let sets = sets(&mut random);
        let mut by_differences = 0;
        for (held, memory) in [(usize::MAX, 1 << 20), (1000, 1 << 20), (usize::MAX, 3000), (0, 0)] {
            let mut stored = ShingleSets::new(dir.path(), held);
            for set in &sets {
                stored.push(set).unwrap();
            }
            for threshold in [0.05, 0.5, 0.8, 1.0] {
                let mut families = Families::new(&stored, memory).unwrap();
                for _ in 0..10 {
                    let mut member = || (random.next() % sets.len() as u64) as u32;
                    let pairs: Vec<(u32, u32)> = (0..300).map(|_| (member(), member())).collect();
                    let plausible = families.plausible(&pairs, threshold);
                    let wanted = families.plan(&plausible);
                    assert_eq!(families.pieces(&wanted).concat(), wanted);
                    for (set, reference) in wanted {
                        let difference = families.difference(set, reference).unwrap();
                        by_differences += usize::from(difference.parts.is_some());
                        families.add(difference);
                    }
                    let (mut found, mut wanted) = (Vec::new(), Vec::new());
                    families
                        .for_each_resembling(&plausible, threshold, |a, b, r| found.push((a, b, r)))
                        .unwrap();
                    stored.for_each_resembling(&pairs, threshold, |a, b, r| wanted.push((a, b, r))).unwrap();
                    assert_eq!(found, wanted);
                }
            }
        }
        assert!(by_differences > 500, "a test of something: {by_differences}");
    }
}
