//! Computes the clusters. A cluster consists of a kept document and all documents that were removed as its duplicates.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use twindex::sys::Column;

use crate::rule::near::{KeepRules, NearGroups};
use crate::rule::score::{Score, ScoreKind};
use crate::stored::corpus::Corpus;
use crate::stored::groups::Grouped;
use crate::stored::keys::ByKey;

pub(crate) struct Clusters {
    /// For each group of equal texts, the kept document of its cluster.
    pub kept_of_group: Column<u32>,
    /// The packed score of each group against the kept group of its cluster.
    scores: Column<u64>,
    kind: ScoreKind,
    /// Number of history documents. They precede all others; cluster sizes do not include them.
    history: u32,
    /// The cluster size of each kept document; 0 for documents that are not kept.
    sizes: Column<u32>,
    /// Number of clusters.
    pub count: u64,
    /// Number of clusters by size: 1 document, 2, 3 to 4, 5 to 8, and so on.
    classes: Vec<u64>,
    /// Number of documents in the largest cluster.
    pub largest: u32,
    /// The removed and the kept document of the pair with the lowest resemblance, and this resemblance; `None` if no
    /// pair has one.
    pub lowest: Option<(u32, u32, f64)>,
}

/// Stored in `scores` for a group that is kept, in place of its score against itself. No score packs to this value.
const ITSELF: u64 = u64::MAX;

impl Clusters {
    /// Computes the clusters from the decision `near`. The first document of a kept group is the kept document.
    pub(crate) fn of(
        grouped: &Grouped,
        near: &mut NearGroups,
        rules: &KeepRules<'_>,
        history: u32,
    ) -> twindex::Result<Self> {
        let (mut by, mut scores, kind) = (near.by.take(), near.scores.take(), near.kind);
        let (of_groups, firsts) = (&mut by[..], rules.firsts);
        let mut lowest: Option<(f64, u32, u32)> = None;
        for (group, (by, score)) in (0..).zip(of_groups.iter_mut().zip(&mut scores[..])) {
            if *by == group {
                *score = ITSELF;
            } else if firsts[*by as usize] < history {
                // The kept document belongs to the history, so `lowest` ignores the pair.
            } else if let Some(resemblance) = kind.unpack(*score).resemblance() {
                let value = resemblance.value();
                let first = grouped.groups[group as usize].first;
                if lowest.is_none_or(|lowest| value.total_cmp(&lowest.0).then(first.cmp(&lowest.2)).is_lt()) {
                    lowest = Some((value, firsts[*by as usize], first));
                }
            }
            *by = firsts[*by as usize];
        }
        let lowest = lowest.map(|(value, kept, first)| (kept.min(first), kept.max(first), value));
        let mut clusters = Self {
            kept_of_group: by,
            scores,
            kind,
            history,
            sizes: Column::new(&grouped.budget),
            count: 0,
            classes: Vec::new(),
            largest: 0,
            lowest,
        };
        clusters.count_sizes(grouped)?;
        Ok(clusters)
    }

    /// Returns the score of a group against its kept group.
    pub(crate) fn score(&self, grouped: &Grouped, group: u32) -> Score {
        match self.scores[group as usize] {
            ITSELF => grouped.itself(group, self.kind),
            packed => self.kind.unpack(packed),
        }
    }

    fn count_sizes(&mut self, grouped: &Grouped) -> twindex::Result<()> {
        self.sizes = Column::filled(&grouped.budget, grouped.len(), 0)?;
        let sizes = &mut self.sizes[..];
        for (group, &kept) in grouped.groups.iter().zip(&self.kept_of_group[..]) {
            if kept >= self.history {
                sizes[kept as usize] += group.documents;
            }
        }
        for &size in sizes.iter().filter(|&&size| size > 0) {
            self.count += 1;
            self.largest = self.largest.max(size);
            let class = size.next_power_of_two().trailing_zeros() as usize;
            self.classes.resize(self.classes.len().max(class + 1), 0);
            self.classes[class] += 1;
        }
        Ok(())
    }

    /// Returns the keys of the removed and the kept document with the lowest resemblance.
    pub(crate) fn lowest_keys(&self, corpus: &Corpus) -> Option<(String, String)> {
        self.lowest.map(|(a, b, _)| (corpus.keys.shown(a), corpus.keys.shown(b)))
    }

    /// Returns the number of clusters of each size.
    pub(crate) fn by_size(&self) -> BTreeMap<u64, u64> {
        let mut by_size = BTreeMap::new();
        // Most clusters have one document.
        let mut single = 0;
        for &size in self.sizes.iter().filter(|&&size| size > 0) {
            if size == 1 {
                single += 1;
            } else {
                *by_size.entry(u64::from(size)).or_default() += 1;
            }
        }
        by_size.extend((single > 0).then_some((1, single)));
        by_size
    }

    /// Returns the kept documents of the largest clusters of two documents or more for which `is_wanted` returns true,
    /// at most `max`. Of clusters of the same size, the first come first.
    pub(crate) fn largest(&self, max: usize, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut largest = BinaryHeap::new();
        for (kept, &size) in (0..).zip(&self.sizes[..]) {
            let is_large = largest.len() < max
                || largest
                    .peek()
                    .is_some_and(|&(Reverse(smallest), _): &(Reverse<u32>, u32)| size > smallest);
            if size > 1 && is_large && is_wanted(kept) {
                largest.push((Reverse(size), kept));
                if largest.len() > max {
                    let _ = largest.pop();
                }
            }
        }
        largest.into_sorted_vec().into_iter().map(|(_, kept)| kept).collect()
    }

    /// Returns the number of documents in the cluster of a kept document.
    pub(crate) fn size(&self, kept: u32) -> u32 {
        self.sizes[kept as usize]
    }

    /// Returns the cluster number of each kept document, and 0 for all other documents. Clusters are numbered from 1 in
    /// the order of their smallest keys.
    pub(crate) fn numbers(&self, corpus: &Corpus, by_key: &ByKey) -> twindex::Result<Column<u32>> {
        let grouped = &corpus.grouped;
        let mut numbers = Column::filled(&grouped.budget, grouped.len(), 0_u32)?;
        let (of_documents, mut last) = (&mut numbers[..], 0);
        for &document in &by_key.documents[..] {
            let kept = self.kept_of_group[grouped.group_of[document as usize] as usize];
            let number = &mut of_documents[kept as usize];
            if kept >= corpus.history && *number == 0 {
                last += 1;
                *number = last;
            }
        }
        Ok(numbers)
    }

    /// Returns whether a document is kept. The document must not belong to the history.
    pub(crate) fn is_kept(&self, grouped: &Grouped, document: u32) -> bool {
        self.kept_of_group[grouped.group_of[document as usize] as usize] == document
    }

    /// Returns the number of documents whose text equals the text of an earlier document. Does not count documents that
    /// were removed as duplicates of the history.
    pub(crate) fn identical(&self, corpus: &Corpus) -> u64 {
        let groups =
            (0..corpus.grouped.groups.len() as u32).filter(|&group| !self.is_of_history(group)).count();
        corpus.documents().len() as u64 - self.dropped(&corpus.grouped) - groups as u64
    }

    /// Returns the number of documents that were removed as duplicates of a history document.
    pub(crate) fn dropped(&self, grouped: &Grouped) -> u64 {
        let is_dropped =
            |&(document, &group): &(u32, &u32)| document >= self.history && self.is_of_history(group);
        (0..).zip(&grouped.group_of[..]).filter(is_dropped).count() as u64
    }

    /// Returns whether the kept document of a group belongs to the history.
    pub(crate) fn is_of_history(&self, group: u32) -> bool {
        self.kept_of_group[group as usize] < self.history
    }

    /// Returns the number of clusters of one document.
    pub(crate) fn of_one(&self) -> u64 {
        self.classes.first().copied().unwrap_or(0)
    }

    /// Returns the number of clusters with at least two documents.
    pub(crate) fn of_several(&self) -> u64 {
        self.classes.iter().skip(1).sum()
    }

    /// Returns the distribution of cluster sizes: for each class, its largest size (1, 2, 4, 8, ...) and the number of
    /// clusters in it.
    pub(crate) fn distribution(&self) -> Vec<(u64, u64)> {
        (0..).map(|class| 1 << class).zip(self.classes.iter().copied()).collect()
    }
}

/// Passes each removed document, its kept document and their packed score to `each`. Skips documents whose kept
/// document is one of the first `history` documents.
pub(crate) fn for_each_removed(
    grouped: &Grouped,
    clusters: &Clusters,
    history: u32,
    each: &mut impl FnMut(u32, u32, u64) -> twindex::Result<()>,
) -> twindex::Result<()> {
    for (document, &group) in (0..).zip(&grouped.group_of[..]) {
        let kept = clusters.kept_of_group[group as usize];
        if kept < history || kept == document {
            continue;
        }
        each(document, kept, clusters.score(grouped, group).pack())?;
    }
    Ok(())
}
