//! The documents' shingle sets, for exact resemblance.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sketch::{Resemblance, jaccard};
use crate::sys::Spill;

/// Shingle sets, numbered in the order they were added: in memory up to a budget, from then on in a scratch file.
/// A set's numbers are hashes of 64 bits, so "exact" is up to their collisions: at a billion distinct shingles the
/// chance that any two collide at all is 3 %, and one collision changes one resemblance by one shingle.
#[derive(Debug)]
pub struct ShingleSets {
    dir: PathBuf,
    budget: usize,
    held: Vec<u64>,
    spill: Option<Spill>,
    /// End of each set, in hashes; those beyond `held` are in the scratch file.
    ends: Vec<u64>,
}

impl ShingleSets {
    /// Holds up to `budget` bytes in memory; the rest goes to an unnamed file in `dir`.
    #[must_use]
    pub fn new(dir: &Path, budget: usize) -> Self {
        Self { dir: dir.to_owned(), budget, held: Vec::new(), spill: None, ends: Vec::new() }
    }

    /// Adds a set, sorted and distinct, and returns its number.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file; [`Error::Limit`] behind 2^32 sets.
    pub fn push(&mut self, set: &[u64]) -> Result<u32> {
        let number = u32::try_from(self.ends.len()).map_err(|_| Error::Limit {
            what: "shingle sets",
            limit: u64::from(u32::MAX),
            found: self.ends.len() as u64,
        })?;
        if self.spill.is_none() && (self.held.len() + set.len()) * 8 > self.budget {
            let spill =
                Spill::create(&self.dir).map_err(|e| Error::io("create a scratch file in", &self.dir, e))?;
            self.spill = Some(spill);
        }
        if let Some(spill) = &mut self.spill {
            let bytes: Vec<u8> = set.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            spill.append(&bytes).map_err(|e| Error::io("write a scratch file in", &self.dir, e))?;
        } else {
            self.held.extend_from_slice(set);
        }
        self.ends.push(self.ends.last().unwrap_or(&0) + set.len() as u64);
        Ok(number)
    }

    /// Sets added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
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

    /// The resemblance of two sets, counted.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance(&self, a: u32, b: u32) -> Result<Resemblance> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let left = self.get(a, &mut left)?;
        let right = self.get(b, &mut right)?;
        let (intersection, union) = jaccard(left, right);
        Ok(Resemblance::Exact { intersection, union })
    }

    /// The resemblance of two sets if it is at least `threshold`. Sets whose sizes alone rule that out are not
    /// read.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance_from(&self, a: u32, b: u32, threshold: f64) -> Result<Option<Resemblance>> {
        let (small, large) = (self.size(a).min(self.size(b)), self.size(a).max(self.size(b)));
        // At best the smaller set is part of the larger.
        let best = Resemblance::Exact { intersection: small as usize, union: large as usize };
        if !best.at_least(threshold) {
            return Ok(None);
        }
        let resemblance = self.resemblance(a, b)?;
        Ok(resemblance.at_least(threshold).then_some(resemblance))
    }

    fn get<'a>(&'a self, number: u32, read: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        let range = self.range(number);
        if range.end <= self.held.len() as u64 {
            return Ok(&self.held[range.start as usize..range.end as usize]);
        }
        let missing = || io::Error::other("a set beyond the budget without a scratch file");
        let io_error = |e| Error::io("read a scratch file in", &self.dir, e);
        let spill = self.spill.as_ref().ok_or_else(missing).map_err(io_error)?;
        let mut bytes = vec![0; (range.end - range.start) as usize * 8];
        spill.read_exact_at(&mut bytes, (range.start - self.held.len() as u64) * 8).map_err(io_error)?;
        read.extend(bytes.as_chunks().0.iter().map(|hash| u64::from_le_bytes(*hash)));
        Ok(read)
    }
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
                }
            }
        }
    }
}
