//! A k-way merge with a loser tree (Knuth, *The Art of Computer Programming* 3, 5.4.1).

use std::cmp::Ordering;

use crate::error::Result;

/// An ascending sequence of items that are read one by one.
pub trait Source {
    /// The type of the items.
    type Item;

    /// Replaces `head` by the next item, or by `None` at the end. Must not be called after the end. An implementation
    /// may reuse the memory of the previous item.
    ///
    /// # Errors
    /// Errors that occur while reading the source.
    fn advance(&mut self, head: &mut Option<Self::Item>) -> Result<()>;
}

/// Merges ascending sources into one ascending sequence. Equal items are returned in the order of their sources.
///
/// Merging k sources takes ceil(log2 k) comparisons per item, and the memory of one item per source.
///
/// ```
/// use twindex::extsort::{Merge, Source};
///
/// struct WordRecord(std::vec::IntoIter<&'static str>);
///
/// impl Source for WordRecord {
///     type Item = &'static str;
///     fn advance(&mut self, head: &mut Option<&'static str>) -> twindex::Result<()> {
///         *head = self.0.next();
///         Ok(())
///     }
/// }
///
/// let sources = [vec!["b", "d"], vec!["a", "b"]].map(|words| WordRecord(words.into_iter()));
/// let mut merge = Merge::new(sources, Ord::cmp);
/// let mut merged = Vec::new();
/// while let Some((source, word)) = merge.next()? {
///     merged.push((*word, source));
/// }
/// assert_eq!(merged, [("a", 1), ("b", 0), ("b", 1), ("d", 0)]);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct Merge<S: Source, C> {
    sources: Vec<S>,
    /// The next item of each source. The head of the winner is the item that `next` returned last.
    heads: Vec<Option<S::Item>>,
    /// The losing source at each inner node. Node `n` has the children `2 n` and `2 n + 1`. Source `s` is the leaf `k + s`.
    losers: Vec<usize>,
    winner: usize,
    compare: C,
    /// Whether the first items have been read and compared.
    started: bool,
}

impl<S: Source, C: Fn(&S::Item, &S::Item) -> Ordering> Merge<S, C> {
    /// Creates a merge of sources that are in ascending order by `compare`.
    pub fn new(sources: impl IntoIterator<Item = S>, compare: C) -> Self {
        let sources: Vec<S> = sources.into_iter().collect();
        let heads = sources.iter().map(|_| None).collect();
        let losers = vec![0; sources.len()];
        Self { sources, heads, losers, winner: 0, compare, started: false }
    }

    /// Returns the next item and the index of its source, or `None` at the end.
    ///
    /// # Errors
    /// Errors of the sources. After an error, the merge must not be used any more.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "the item borrows from the merge")]
    pub fn next(&mut self) -> Result<Option<(usize, &S::Item)>> {
        if self.started {
            let winner = self.winner;
            // At the end, the winner has no head, so this reads no source.
            if let (Some(source), Some(head @ Some(_))) =
                (self.sources.get_mut(winner), self.heads.get_mut(winner))
            {
                source.advance(head)?;
                self.replay();
            }
        } else {
            self.start()?;
        }
        let winner = self.winner;
        Ok(self.heads.get(winner).and_then(Option::as_ref).map(|head| (winner, head)))
    }

    /// Returns the next item as [`next`](Self::next) does, but by value and without the index of its source.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    #[inline(always)]
    pub fn take(&mut self) -> Result<Option<S::Item>> {
        if !self.started {
            self.start()?;
        }
        let winner = self.winner;
        let (Some(source), Some(head)) = (self.sources.get_mut(winner), self.heads.get_mut(winner)) else {
            return Ok(None);
        };
        let item = head.take();
        if item.is_some() {
            source.advance(head)?;
            self.replay();
        }
        Ok(item)
    }

    /// Returns true if the item of source `a` comes before the item of source `b`. An exhausted source comes after all
    /// others.
    #[inline(always)]
    fn precedes(&self, a: usize, b: usize) -> bool {
        match (&self.heads[a], &self.heads[b]) {
            (Some(x), Some(y)) => (self.compare)(x, y).then(a.cmp(&b)).is_lt(),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Reads the first item of each source and fills the tree, from the leaves up.
    #[cold]
    fn start(&mut self) -> Result<()> {
        self.started = true;
        for (source, head) in self.sources.iter_mut().zip(&mut self.heads) {
            source.advance(head)?;
        }
        let count = self.sources.len();
        // The winner at each node. The winner at a leaf is the source of that leaf.
        let mut winners: Vec<usize> = vec![0; count];
        winners.extend(0..count);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], self.losers[node]) = if self.precedes(a, b) { (a, b) } else { (b, a) };
        }
        // A single source has no competitor. Its leaf is node 1.
        self.winner = winners.get(1).copied().unwrap_or(0);
        Ok(())
    }

    /// Finds the next winner: compares the new item of the last winner with the losers on the path from its leaf to the
    /// root.
    #[inline(always)]
    fn replay(&mut self) {
        let mut winner = self.winner;
        let mut node = (self.sources.len() + winner) >> 1;
        while node > 0 {
            let other = self.losers[node];
            // The result of the comparison is unpredictable, so the winner is selected without a branch.
            let wins = self.precedes(other, winner);
            self.losers[node] = if wins { winner } else { other };
            winner = if wins { other } else { winner };
            node >>= 1;
        }
        self.winner = winner;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    /// Yields the items of a list as a source. `advance` fails at the item with index `fails`.
    struct List {
        items: std::vec::IntoIter<(u8, usize)>,
        fails: Option<usize>,
    }

    impl Source for List {
        type Item = (u8, usize);

        fn advance(&mut self, head: &mut Option<Self::Item>) -> Result<()> {
            if self.fails == Some(0) {
                return Err(Error::Invalid("a source that fails".into()));
            }
            self.fails = self.fails.map(|left| left - 1);
            *head = self.items.next();
            Ok(())
        }
    }

    fn lists(sources: &[Vec<(u8, usize)>]) -> Vec<List> {
        sources.iter().map(|list| List { items: list.clone().into_iter(), fails: None }).collect()
    }

    proptest! {
        #[test]
        fn merge_of_sources_equals_a_stable_sort(
            lists_of_keys in proptest::collection::vec(proptest::collection::vec(0..20_u8, 0..40), 0..20),
        ) {
            // Items are numbered source by source, so a stable sort by key gives the same order as a sort by key and number.
            let mut number = 0;
            let sources: Vec<Vec<(u8, usize)>> = lists_of_keys
                .into_iter()
                .map(|mut keys| {
                    keys.sort_unstable();
                    keys.into_iter()
                        .map(|key| {
                            number += 1;
                            (key, number)
                        })
                        .collect()
                })
                .collect();
            let mut expected: Vec<(usize, (u8, usize))> = sources
                .iter()
                .enumerate()
                .flat_map(|(source, list)| list.iter().map(move |&item| (source, item)))
                .collect();
            expected.sort_by_key(|(_, item)| item.0);
            let mut merge = Merge::new(lists(&sources), |a, b| a.0.cmp(&b.0));
            let mut merged = Vec::new();
            while let Some((source, &item)) = merge.next().unwrap() {
                merged.push((source, item));
            }
            prop_assert_eq!(merged, expected);
            prop_assert!(merge.next().unwrap().is_none(), "the end stays the end");
        }
    }

    #[test]
    fn merge_returns_the_error_of_a_source() {
        let sources = [vec![(1, 0), (4, 0)], vec![(2, 1), (3, 1)], vec![]];
        for (failing, fails, returned) in [(0, 0, 0), (2, 0, 0), (1, 1, 2), (0, 2, 4)] {
            let mut lists = lists(&sources);
            lists[failing].fails = Some(fails);
            let mut merge = Merge::new(lists, Ord::cmp);
            for _ in 0..returned {
                assert!(merge.next().unwrap().is_some());
            }
            let error = merge.next().unwrap_err().to_string();
            assert_eq!(error, "a source that fails", "source {failing} after {fails}");
        }
    }
}
