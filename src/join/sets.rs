//! The documents' shingle sets, for exact resemblance.

use std::io;
use std::path::{Path, PathBuf};

use zerocopy::IntoBytes;

use super::odd_sketches::OddSketches;
use crate::error::{Error, Result};
use crate::sketch::{Resemblance, intersection_from, jaccard};
use crate::sys::Spill;

/// Shingle sets, numbered in the order they were added: in memory up to a budget, from then on in a scratch file.
/// A set's numbers are hashes of 64 bits, so "exact" is up to their collisions: at a billion distinct shingles the
/// chance that any two collide at all is 3 %, and one collision changes one resemblance by one shingle.
///
/// Beside the budget, a set takes 16 to 24 bytes.
#[derive(Debug)]
pub struct ShingleSets {
    dir: PathBuf,
    budget: usize,
    held: Vec<u64>,
    spill: Option<Spill>,
    /// End of each set, in hashes; those beyond `held` are in the scratch file.
    ends: Vec<u64>,
    odd: OddSketches,
}

impl ShingleSets {
    /// Holds up to `budget` bytes in memory; the rest goes to an unnamed file in `dir`. An eighth of the budget is for
    /// what [rules pairs out](Self::may_resemble).
    #[must_use]
    pub fn new(dir: &Path, budget: usize) -> Self {
        let odd = OddSketches::new(budget / 8);
        let budget = budget - budget / 8;
        Self { dir: dir.to_owned(), budget, held: Vec::new(), spill: None, ends: Vec::new(), odd }
    }

    /// Adds a set, sorted and distinct, and returns its number.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file; [`Error::Limit`] behind 2^32 sets, and for a set of 2^32 elements.
    pub fn push(&mut self, set: &[u64]) -> Result<u32> {
        let number = u32::try_from(self.ends.len()).map_err(|_| Error::Limit {
            what: "shingle sets",
            limit: u64::from(u32::MAX),
            found: self.ends.len() as u64,
        })?;
        if u32::try_from(set.len()).is_err() {
            let limit = u64::from(u32::MAX);
            return Err(Error::Limit { what: "shingles of a set", limit, found: set.len() as u64 });
        }
        if self.spill.is_none() && (self.held.len() + set.len()) * 8 > self.budget {
            let spill =
                Spill::create(&self.dir).map_err(|e| Error::io("create a scratch file in", &self.dir, e))?;
            self.spill = Some(spill);
        }
        if let Some(spill) = &mut self.spill {
            spill.append(set.as_bytes()).map_err(|e| Error::io("write a scratch file in", &self.dir, e))?;
        } else {
            self.held.extend_from_slice(set);
        }
        self.ends.push(self.ends.last().unwrap_or(&0) + set.len() as u64);
        self.odd.push(set);
        Ok(number)
    }

    /// Sets added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Elements of all sets together.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// True before the first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn range(&self, number: u32) -> std::ops::Range<u64> {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        start..self.ends[number]
    }

    /// The size of a set.
    ///
    /// # Panics
    /// For a number that [`push`](Self::push) did not return; so do the others.
    #[must_use]
    pub fn size(&self, number: u32) -> u64 {
        let range = self.range(number);
        range.end - range.start
    }

    /// False for two sets that are known not to resemble each other by `threshold`: by their sizes, or by how much they
    /// differ at least. No set is read for that.
    #[must_use]
    pub fn may_resemble(&self, a: u32, b: u32, threshold: f64) -> bool {
        let (of_a, of_b) = (self.size(a), self.size(b));
        if !could_resemble(of_a.min(of_b), of_a.max(of_b), threshold) {
            return false;
        }
        // What is not shared is in one of the two.
        let shared = 2 * least_intersection((of_a + of_b) as usize, threshold) as u64;
        (of_a + of_b).checked_sub(shared).is_some_and(|most| self.odd.least_difference(a, b) <= most)
    }

    /// The resemblance of two sets, counted.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance(&self, a: u32, b: u32) -> Result<Resemblance> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let left = self.set(a, &mut left)?;
        let right = self.set(b, &mut right)?;
        let (intersection, union) = jaccard(left, right);
        Ok(Resemblance::Exact { intersection, union })
    }

    /// The resemblance of two sets if it is at least `threshold`. Sets for which that is
    /// [ruled out](Self::may_resemble) are not read.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance_from(&self, a: u32, b: u32, threshold: f64) -> Result<Option<Resemblance>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        if !self.may_resemble(a, b, threshold) {
            return Ok(None);
        }
        let left = self.set(a, &mut left)?;
        let right = self.set(b, &mut right)?;
        Ok(resemblance_from(left, right, threshold))
    }

    /// Hands each pair of `pairs` whose resemblance is at least `threshold` to `each`, with its resemblance, in their
    /// order. A set that is the first of several pairs in a row is read once.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn for_each_resembling(
        &self,
        pairs: &[(u32, u32)],
        threshold: f64,
        mut each: impl FnMut(u32, u32, Resemblance),
    ) -> Result<()> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for same in pairs.chunk_by(|x, y| x.0 == y.0) {
            let a = same[0].0;
            left.clear();
            let set = self.set(a, &mut left)?;
            for &(_, b) in same {
                if self.may_resemble(a, b, threshold) {
                    right.clear();
                    if let Some(resemblance) = resemblance_from(set, self.set(b, &mut right)?, threshold) {
                        each(a, b, resemblance);
                    }
                }
            }
        }
        Ok(())
    }

    /// The elements of a set that is in memory.
    fn held(&self, number: u32) -> Option<&[u64]> {
        let range = self.range(number);
        (range.end <= self.held.len() as u64).then(|| &self.held[range.start as usize..range.end as usize])
    }

    /// The elements of a set, ascending; read to the end of `read` if they are in the scratch file.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn set<'a>(&'a self, number: u32, read: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        if let Some(set) = self.held(number) {
            return Ok(set);
        }
        let range = self.range(number);
        let missing = || io::Error::other("a set beyond the budget without a scratch file");
        let io_error = |e| Error::io("read a scratch file in", &self.dir, e);
        let spill = self.spill.as_ref().ok_or_else(missing).map_err(io_error)?;
        let start = read.len();
        read.resize(start + (range.end - range.start) as usize, 0);
        let offset = (range.start - self.held.len() as u64) * size_of::<u64>() as u64;
        spill.read_exact_at(read[start..].as_mut_bytes(), offset).map_err(io_error)?;
        Ok(&read[start..])
    }
}

/// Reads sets one after the other; the same one again costs nothing.
pub(super) struct Reading<'a> {
    sets: &'a ShingleSets,
    /// The set that was read last, if it is in the scratch file.
    last: Option<u32>,
    read: Vec<u64>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(sets: &'a ShingleSets) -> Self {
        Self { sets, last: None, read: Vec::new() }
    }

    /// The elements of a set, ascending.
    pub(super) fn set(&mut self, number: u32) -> Result<&[u64]> {
        if let Some(set) = self.sets.held(number) {
            return Ok(set);
        }
        if self.last != Some(number) {
            self.last = None;
            self.read.clear();
            self.sets.set(number, &mut self.read)?;
            self.last = Some(number);
        }
        Ok(&self.read)
    }
}

/// Whether sets of these sizes can resemble each other by `threshold`: at best the smaller is part of the larger.
pub(super) fn could_resemble(small: u64, large: u64, threshold: f64) -> bool {
    Resemblance::Exact { intersection: small as usize, union: large as usize }.at_least(threshold)
}

/// The least intersection of two sets with `sum` elements in all whose resemblance is at least `threshold`; more than
/// half of `sum` if there is none.
pub(super) fn least_intersection(sum: usize, threshold: f64) -> usize {
    let reaches = |both: usize| {
        Resemblance::Exact { intersection: both, union: sum.saturating_sub(both) }.at_least(threshold)
    };
    // Near enough by a formula, and then by the definition itself, which rounds as it rounds.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are positive, and any start will do")]
    let mut least = ((threshold / (1.0 + threshold) * sum as f64) as usize).min(sum / 2);
    while least > 0 && reaches(least - 1) {
        least -= 1;
    }
    while least <= sum / 2 && !reaches(least) {
        least += 1;
    }
    least
}

fn resemblance_from(a: &[u64], b: &[u64], threshold: f64) -> Option<Resemblance> {
    let sum = a.len() + b.len();
    let intersection = intersection_from(a, b, least_intersection(sum, threshold))?;
    let resemblance = Resemblance::Exact { intersection, union: sum - intersection };
    resemblance.at_least(threshold).then_some(resemblance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_on_disk_resemble_as_sets_in_memory_do() {
        let dir = tempfile::tempdir().unwrap();
        let sets: Vec<Vec<u64>> =
            (1..60_u64).map(|i| (0..i * 7).map(|x| x * (1 + i % 3)).collect()).collect();
        let mut all: Vec<ShingleSets> =
            [0, 1000, usize::MAX].into_iter().map(|budget| ShingleSets::new(dir.path(), budget)).collect();
        for store in &mut all {
            for (number, set) in sets.iter().enumerate() {
                assert_eq!(store.push(set).unwrap() as usize, number);
            }
        }
        assert!(all[1].spill.is_some() && !all[1].held.is_empty() && all[2].spill.is_none());
        for a in 0..sets.len() as u32 {
            for b in 0..sets.len() as u32 {
                let (left, right) = (&sets[a as usize], &sets[b as usize]);
                let expected = Resemblance::of_sets(left, right);
                let far_enough = expected.at_least(0.5);
                for store in &all {
                    assert_eq!(store.resemblance(a, b).unwrap(), expected);
                    assert_eq!(store.resemblance_from(a, b, 0.5).unwrap().is_some(), far_enough, "{a} {b}");
                    let mut found = Vec::new();
                    let each = |a, b, resemblance| found.push((a, b, resemblance));
                    store.for_each_resembling(&[(a, b), (a, a), (b, a)], 0.5, each).unwrap();
                    assert_eq!(found.len(), if far_enough { 3 } else { 1 }, "{a} {b}");
                    assert!(!far_enough || found[0] == (a, b, expected));
                }
            }
        }
    }

    #[test]
    fn the_least_intersection_is_the_first_that_reaches_the_threshold() {
        for hundredths in 1..=100_usize {
            let threshold = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            for sum in 0..400_usize {
                let counted = (0..=sum / 2)
                    .find(|&both| sum > both && 100 * both >= hundredths * (sum - both))
                    .unwrap_or(sum / 2 + 1);
                assert_eq!(least_intersection(sum, threshold), counted, "{hundredths} {sum}");
            }
        }
    }
}
