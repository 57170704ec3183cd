//! Computes clusters, the connected components of a graph whose edges are pairs of numbers (union-find; Tarjan 1975).

use twindex::error::Result;
use twindex::sys::{Column, MemoryBudget};

/// Disjoint sets of consecutive numbers from 0 on. The root of a set is its smallest number, so the result does not depend
/// on the order in which pairs are added.
#[derive(Debug)]
pub struct Forest {
    parents: Column<u32>,
}

impl Forest {
    /// Creates a forest of the numbers below `count`, each in a set of its own.
    #[must_use]
    ///
    /// # Panics
    /// If memory cannot be allocated.
    pub fn new(count: u32) -> Self {
        Self::within(&MemoryBudget::unlimited(), count).expect("no scratch file is needed")
    }

    /// Like [`new`](Self::new), in the memory of `budget`, and beyond it in scratch files.
    ///
    /// # Errors
    /// [`Error::Io`](twindex::Error::Io) from a scratch file.
    pub fn within(budget: &MemoryBudget, count: u32) -> Result<Self> {
        Ok(Self { parents: Column::of(budget, 0..count)? })
    }

    /// Adds a set that contains only the next number, and returns this number.
    ///
    /// # Panics
    /// If there are already 2^32 numbers.
    pub fn add(&mut self) -> u32 {
        let number = u32::try_from(self.parents.len()).expect("a number of 32 bits");
        self.parents.push(number).expect("a number of 32 bits");
        number
    }

    /// Returns the smallest number of the set that contains `number`. Takes amortised O(log n) time.
    ///
    /// # Panics
    /// If `number` is not in the forest.
    pub fn root(&mut self, number: u32) -> u32 {
        let (mut at, parents) = (number, &mut self.parents[..]);
        while parents[at as usize] != at {
            // Path halving: links every other node on the path to its grandparent.
            let grandparent = parents[parents[at as usize] as usize];
            parents[at as usize] = grandparent;
            at = grandparent;
        }
        at
    }

    /// Merges the sets of `a` and `b`. Returns whether they were different sets.
    ///
    /// # Panics
    /// Same as [`root`](Self::root).
    pub fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_do_not_depend_on_the_order_of_pairs() {
        let pairs = [(1, 2), (3, 4), (2, 3), (7, 9), (9, 8), (5, 5)];
        let roots = |pairs: &[(u32, u32)]| -> Vec<u32> {
            let mut forest = Forest::new(10);
            for &(a, b) in pairs {
                forest.join(a, b);
            }
            (0..10).map(|number| forest.root(number)).collect()
        };
        let mut backwards = pairs;
        backwards.reverse();
        assert_eq!(roots(&pairs), [0, 1, 1, 1, 1, 5, 6, 7, 7, 7]);
        assert_eq!(roots(&backwards), roots(&pairs));
    }
}
