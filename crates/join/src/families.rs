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
/// for (set, leader) in families.plan(&pairs) {
///     let difference = families.difference(set, leader)?;
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
    /// Of each set; [`NONE`] if it was in no pair yet.
    leaders: Column<u32>,
    /// Of each set.
    kept: Column<Kept>,
    /// For each set, the elements of its reference that it lacks, then its new elements.
    elements: Vec<u64>,
    /// Elements that are kept at most.
    most: usize,
}

/// Elements of sets whose differences are found before any of them is added. Two thirds of them may be allocated for
/// differences, which is more than these have.
const PIECE_ELEMENTS: u64 = 3 << 20;
/// No leader.
const NONE: u32 = u32::MAX;

/// Where the differences of a set are. A leader has none.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Kept {
    start: u64,
    gone: u32,
    new: u32,
}

/// How a set differs from a leader.
#[derive(Debug)]
pub struct Difference {
    set: u32,
    leader: u32,
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
            leaders: Column::filled(sets.room(), sets.len(), NONE)?,
            kept: Column::filled(sets.room(), sets.len(), Kept::default())?,
            elements: Vec::new(),
            most: memory / size_of::<u64>(),
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
        if self.elements.len() > self.most {
            self.elements.clear();
            self.leaders.fill(NONE);
        }
        let mut wanted = Vec::new();
        for &(a, b) in pairs {
            if a == b || self.sets.are_of_one_family(a, b) {
                continue;
            }
            match (self.leaders[a as usize], self.leaders[b as usize]) {
                (NONE, NONE) => {
                    self.lead(b);
                    self.leaders[a as usize] = b;
                    wanted.push((a, b));
                }
                (NONE, leader) => {
                    self.leaders[a as usize] = leader;
                    wanted.push((a, leader));
                }
                (leader, NONE) => {
                    self.leaders[b as usize] = leader;
                    wanted.push((b, leader));
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
        for (at, &(set, leader)) in wanted.iter().enumerate() {
            let more = self.sets.size(set) + self.sets.size(leader);
            if elements + more > PIECE_ELEMENTS && start < at {
                pieces.push(&wanted[start..at]);
                (start, elements) = (at, 0);
            }
            elements += more;
        }
        pieces.extend((start < wanted.len()).then(|| &wanted[start..]));
        pieces
    }

    fn lead(&mut self, set: u32) {
        self.leaders[set as usize] = set;
        self.kept[set as usize] = Kept::default();
    }

    /// How a set differs from its leader.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from the scratch file of the sets.
    pub fn difference(&self, set: u32, leader: u32) -> Result<Difference> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let parts = differences(self.sets.set(leader, &mut left)?, self.sets.set(set, &mut right)?);
        Ok(Difference { set, leader, parts })
    }

    /// Keeps a difference. A set that is too different from its leader becomes one itself.
    pub fn add(&mut self, difference: Difference) {
        let Difference { set, leader, parts } = difference;
        match parts {
            Some((gone, new)) => {
                self.leaders[set as usize] = leader;
                self.kept[set as usize] = Kept {
                    start: self.elements.len() as u64,
                    gone: gone.len() as u32,
                    new: new.len() as u32,
                };
                self.elements.extend_from_slice(&gone);
                self.elements.extend_from_slice(&new);
            }
            None => self.lead(set),
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
            let least = least_intersection(sum, threshold);
            let leader = self.leaders[a as usize];
            let intersection = if self.sets.are_of_one_family(a, b) {
                self.sets.shared((a, b), least, &mut read)?
            } else if leader != NONE && leader == self.leaders[b as usize] {
                self.by_differences(leader, a, b, least)
            } else {
                intersection_from(left.set(a)?, right.set(b)?, least)
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

    /// The size of the intersection of two sets of one family, if it is `least` or more.
    fn by_differences(&self, leader: u32, a: u32, b: u32, least: usize) -> Option<usize> {
        let (gone_a, new_a) = self.parts(a);
        let (gone_b, new_b) = self.parts(b);
        // All counts are added before anything is taken off.
        let whole = self.sets.size(leader) as usize;
        let either = gone_a.len() + gone_b.len();
        let both_new = new_a.len().min(new_b.len());
        let least_gone = (least + either).saturating_sub(whole + both_new);
        let gone = intersection_from(gone_a, gone_b, least_gone)?;
        let least_new = (least + either).saturating_sub(whole + gone);
        let new = intersection_from(new_a, new_b, least_new)?;
        let intersection = whole + gone + new - either;
        (intersection >= least).then_some(intersection)
    }

    /// The elements of the reference that the set lacks, and its new elements.
    fn parts(&self, set: u32) -> (&[u64], &[u64]) {
        let Kept { start, gone, new } = self.kept[set as usize];
        let both = &self.elements[start as usize..][..(gone + new) as usize];
        both.split_at(gone as usize)
    }
}

/// Elements that are compared at once.
const STRIDE: usize = 8;

/// The elements of `leader` that are not in `set`, and those of `set` that are not in `leader`; none if these are more
/// than a third of all their elements, which is a resemblance below 0.5.
fn differences(leader: &[u64], set: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let most = (leader.len() + set.len()) / 3;
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (leader[i..].first_chunk::<STRIDE>(), set[j..].first_chunk::<STRIDE>()) {
        // Sets of a family have long runs in common.
        if x == y {
            i += STRIDE;
            j += STRIDE;
            continue;
        }
        // Neither goes on more than once a step.
        let (mut at, mut to) = (0, 0);
        let (mut some_gone, mut some_new) = ([0; STRIDE], [0; STRIDE]);
        let (mut gone_count, mut new_count) = (0, 0);
        for _ in 0..STRIDE {
            let (x, y) = (x[at & (STRIDE - 1)], y[to & (STRIDE - 1)]);
            // Written, and kept if it is a difference: which side goes on is as good as random.
            some_gone[gone_count & (STRIDE - 1)] = x;
            some_new[new_count & (STRIDE - 1)] = y;
            gone_count += usize::from(x < y);
            new_count += usize::from(y < x);
            at += usize::from(x <= y);
            to += usize::from(y <= x);
        }
        i += at;
        j += to;
        gone.extend_from_slice(&some_gone[..gone_count]);
        new.extend_from_slice(&some_new[..new_count]);
        if gone.len() + new.len() > most {
            return None;
        }
    }
    while i < leader.len() && j < set.len() {
        let (x, y) = (leader[i], set[j]);
        if x < y {
            gone.push(x);
        } else if y < x {
            new.push(y);
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    gone.extend_from_slice(&leader[i..]);
    new.extend_from_slice(&set[j..]);
    (gone.len() + new.len() <= most).then_some((gone, new))
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
                        let gone = set.iter().nth(at).copied();
                        if let Some(gone) = gone {
                            set.remove(&gone);
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
                let gone: Vec<u64> = x.iter().filter(|e| y.binary_search(e).is_err()).copied().collect();
                let new: Vec<u64> = y.iter().filter(|e| x.binary_search(e).is_err()).copied().collect();
                let few = gone.len() + new.len() <= (x.len() + y.len()) / 3;
                assert_eq!(differences(x, y), few.then_some((gone, new)));
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
                    for (set, leader) in wanted {
                        let difference = families.difference(set, leader).unwrap();
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
