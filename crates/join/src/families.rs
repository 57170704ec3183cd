//! Exact resemblance of many pairs of few families, by differences.
//!
//! Near-duplicates come in families: k versions of a text make k (k - 1) / 2 pairs, and counting what each pair has
//! in common walks each set k - 1 times. Here each set is walked once, beside one set of its family, the *leader* L,
//! and its differences are kept: what is gone, G = L \ x, and what is new, N = x \ L. From then on two sets of one
//! family are compared by their differences alone,
//!
//! ```text
//! |x ∩ y| = |L| - |Gx| - |Gy| + |Gx ∩ Gy| + |Nx ∩ Ny|
//! ```
//!
//! as an element of L is in both unless it is gone from one, and an element that is not in L must be new in both.
//! This counts, it does not estimate. For resemblances of 0.9 differences are a tenth of the sets.
//!
//! Who is compared with whom is decided by [`Families::plan`], one batch of pairs after the other; the rest is
//! done by any number of threads. Which leader a set has changes no result.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::sets::{SetReader, ShingleSets};
use twindex::error::Result;
use twindex::sys::Column;
use twindex_sketch::nearness::least_intersection;
use twindex_sketch::{Resemblance, intersection_from};

/// Differences of sets from their references, for counting intersections.
///
/// For each batch of pairs: those that are [`plausible`](Self::plausible); of these [`plan`](Self::plan),
/// [`difference`](Self::difference) for all that it asks for, a [piece](Self::pieces) at a time, [`add`](Self::add) each
/// in the order of the plan, and then [`for_each_resembling`](Self::for_each_resembling).
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
    /// The reference of each set; [`NO_REFERENCE`] if it was in no pair yet.
    references: Column<u32>,
    /// The differences of each set.
    kept: Column<DifferenceRange>,
    /// For each set, the elements of its reference that it lacks, then its new elements.
    elements: Vec<u64>,
    /// Elements that are kept at most.
    max: usize,
}

/// Elements of sets whose differences are found before any of them is added. Two thirds of them may be allocated for
/// differences, which is more than these have.
const PIECE_ELEMENTS: u64 = 3 << 20;
/// No leader.
const NO_REFERENCE: u32 = u32::MAX;

/// The position of the differences of a set. A reference has none.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct DifferenceRange {
    start: u64,
    lacking: u32,
    new: u32,
}

/// How a set differs from a leader.
#[derive(Debug)]
pub struct Difference {
    set: u32,
    reference: u32,
    /// The lacking and the new elements; none if they are too many to be of use.
    parts: Option<(Vec<u64>, Vec<u64>)>,
}

impl<'a> Families<'a> {
    /// Takes up to `memory` bytes for differences, beside 20 bytes a set of the sets' [budget](ShingleSets::within).
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

    /// The pairs that are not [ruled out](ShingleSets::may_resemble) without looking into sets.
    #[must_use]
    pub fn plausible(&self, pairs: &[(u32, u32)], threshold: f64) -> Vec<(u32, u32)> {
        pairs.iter().copied().filter(|&(a, b)| self.sets.may_resemble(a, b, threshold)).collect()
    }

    /// Finds leaders for the sets of these pairs that have none yet, and returns the sets to be compared with theirs:
    /// set, leader.
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

    /// Cuts what [`plan`](Self::plan) asks for into pieces whose differences are found and added one piece after the
    /// other, so that those that wait to be added take 16 MiB at most, or what one of them takes.
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

    /// How a set differs from its leader.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from the scratch file of the sets.
    pub fn difference(&self, set: u32, reference: u32) -> Result<Difference> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let parts = differences(self.sets.set(reference, &mut left)?, self.sets.set(set, &mut right)?);
        Ok(Difference { set, reference, parts })
    }

    /// Keeps a difference. A set that is too different from its leader becomes one itself.
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

    /// Hands each pair of `pairs` whose resemblance is at least `threshold` to `each`, with its resemblance, in their
    /// order.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from the scratch file of the sets.
    pub fn for_each_resembling(
        &self,
        pairs: &[(u32, u32)],
        threshold: f64,
        mut each: impl FnMut(u32, u32, Resemblance),
    ) -> Result<()> {
        // The first of a pair most often is that of the pair before.
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

    /// The size of the intersection of two sets of one family, if it is `min` or more.
    fn by_differences(&self, reference: u32, a: u32, b: u32, min: usize) -> Option<usize> {
        let (lacking_a, new_a) = self.parts(a);
        let (lacking_b, new_b) = self.parts(b);
        // All counts are added before anything is taken off.
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

    /// The elements of the reference that the set lacks, and its new elements.
    fn parts(&self, set: u32) -> (&[u64], &[u64]) {
        let DifferenceRange { start, lacking, new } = self.kept[set as usize];
        let both = &self.elements[start as usize..][..(lacking + new) as usize];
        both.split_at(lacking as usize)
    }
}

/// Elements that are compared at once.
const STRIDE: usize = 8;

/// The elements of `reference` that are not in `set`, and those of `set` that are not in `reference`; none if these are more
/// than a third of all their elements, which is a resemblance below 0.5.
fn differences(reference: &[u64], set: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let max = (reference.len() + set.len()) / 3;
    let (mut lacking, mut new) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (reference[i..].first_chunk::<STRIDE>(), set[j..].first_chunk::<STRIDE>())
    {
        // Sets of a family have long runs in common.
        if x == y {
            i += STRIDE;
            j += STRIDE;
            continue;
        }
        // Neither goes on more than once a step.
        let (mut at, mut to) = (0, 0);
        let (mut some_lacking, mut some_new) = ([0; STRIDE], [0; STRIDE]);
        let (mut lacking_count, mut new_count) = (0, 0);
        for _ in 0..STRIDE {
            let (x, y) = (x[at & (STRIDE - 1)], y[to & (STRIDE - 1)]);
            // Written, and kept if it is a difference: which side goes on is as good as random.
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

    /// Families of sets that are made from one another by changes, of sizes around those of strides.
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
    fn differences_are_those_of_sets_or_none_where_they_are_large() {
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
    fn pairs_counted_by_differences_are_those_counted_whole_whatever_the_memory() {
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
