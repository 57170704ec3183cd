//! Clusters formed by the verified pairs, and the kept document of each cluster.

use rayon::prelude::*;
use twindex::sys::Column;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::corpus::Corpus;
use super::groups::Grouped;
use super::keys::ByKey;
use super::near::{GroupDecision, NearGroups};
use super::rules::{Clustering, KeepRules};
use super::score::{Score, ScoreKind};
use crate::page::{ClusterFigures, KEYS_SHOWN};

/// The clusters. They are numbered from 1 in ascending order of their smallest keys.
pub(super) struct Clusters {
    /// The kept document of each group of equal texts.
    pub kept_of_group: Column<u32>,
    /// The packed score of each group against the kept group of its cluster.
    scores: Column<u64>,
    kind: ScoreKind,
    /// Number of documents of the history. They precede all others and are not counted in cluster sizes.
    history: u32,
    /// The cluster size of each kept document; 0 for documents that are not kept.
    sizes: Column<u32>,
    /// Number of clusters.
    pub count: u64,
    /// Number of clusters by size: 1 document, 2, 3 to 4, 5 to 8, and so on.
    classes: Vec<u64>,
    /// Number of documents in the largest cluster.
    pub largest: u32,
    /// Number of documents whose score against the kept document is below the threshold.
    pub chained: u64,
    /// Number of components that were split.
    pub cut: u64,
    /// The pair with the lowest resemblance found inside a cluster, with the resemblance; `None` if none was measured.
    pub lowest: Option<(u32, u32, f64)>,
}

/// Marks a score that was not measured. No score packs to this value or to [`ITSELF`].
const NOT_MEASURED: u64 = u64::MAX - 1;
/// Marks the score of a group against itself.
const ITSELF: u64 = u64::MAX - 2;
/// Number of groups that are scored before their scores are stored.
const TOGETHER: usize = 1 << 16;

/// Computes the score of two groups; `None` if it cannot be computed.
pub(super) type ClusterMeasure<'a> = dyn Fn(u32, u32) -> twindex::Result<Option<Score>> + Sync + 'a;

impl Clusters {
    /// Computes the clusters. If a kept group was decided for each group, each cluster keeps the first document of that
    /// group. Otherwise the clusters are the connected components of the pairs, split if they are too large, and each
    /// keeps its first document.
    pub(super) fn of(
        grouped: &Grouped,
        near: &mut NearGroups,
        rules: &KeepRules<'_>,
        measure: &ClusterMeasure<'_>,
        history: u32,
    ) -> twindex::Result<Self> {
        let mut clusters = match &mut near.decided {
            GroupDecision::Components(forest) => {
                let roots = (0..grouped.groups.len() as u32).map(|group| forest.root(group));
                let roots = Column::of(&grouped.budget, roots)?;
                Self::of_components(grouped, near, roots, rules, measure)?
            }
            GroupDecision::Leaders { by, scores } => {
                let (by, scores) = (by.take(), scores.take());
                Self::of_leaders(grouped, near.kind, by, scores, rules, history)
            }
        };
        clusters.history = history;
        clusters.count_sizes(grouped)?;
        if rules.clustering == Clustering::Components {
            clusters.count_chained(grouped, rules.threshold);
        }
        Ok(clusters)
    }

    fn new(grouped: &Grouped, kept_of_group: Column<u32>, scores: Column<u64>, kind: ScoreKind) -> Self {
        Self {
            kept_of_group,
            scores,
            kind,
            history: 0,
            sizes: Column::new(&grouped.budget),
            count: 0,
            classes: Vec::new(),
            largest: 0,
            chained: 0,
            cut: 0,
            lowest: None,
        }
    }

    fn of_leaders(
        grouped: &Grouped,
        kind: ScoreKind,
        mut by: Column<u32>,
        mut scores: Column<u64>,
        rules: &KeepRules<'_>,
        history: u32,
    ) -> Self {
        let (of_groups, firsts) = (&mut by[..], rules.firsts);
        let mut lowest: Option<(f64, u32, u32)> = None;
        for (group, (by, score)) in (0..).zip(of_groups.iter_mut().zip(&mut scores[..])) {
            if *by == group {
                *score = ITSELF;
            } else if firsts[*by as usize] < history {
                // The kept document belongs to the history, so the pair is not inside a cluster.
            } else if let Some(resemblance) = kind.unpack(*score).resemblance() {
                let value = resemblance.value();
                if lowest.is_none_or(|lowest| value.total_cmp(&lowest.0).is_lt()) {
                    lowest = Some((value, firsts[*by as usize], grouped.groups[group as usize].first));
                }
            }
            *by = firsts[*by as usize];
        }
        let lowest = lowest.map(|(value, kept, first)| (kept.min(first), kept.max(first), value));
        Self { lowest, ..Self::new(grouped, by, scores, kind) }
    }

    fn of_components(
        grouped: &Grouped,
        near: &NearGroups,
        roots: Column<u32>,
        rules: &KeepRules<'_>,
        measure: &ClusterMeasure<'_>,
    ) -> twindex::Result<Self> {
        let groups = grouped.groups.len() as u32;
        let (roots, cut) = cut_large(grouped, near, roots, rules.max_cluster)?;
        // The first group of each component, by its root.
        let mut first_of = Column::filled(&grouped.budget, groups as usize, u32::MAX)?;
        for rank in 0..groups {
            let group = rules.order.map_or(rank, |order| order[rank as usize]) as usize;
            let first = &mut first_of[roots[group] as usize];
            if *first == u32::MAX {
                *first = rules.firsts[group];
            }
        }
        let mut kept_of_group = roots;
        for root in &mut kept_of_group[..] {
            *root = first_of[*root as usize];
        }
        // Most groups are in a pair with the group of the kept document. The score of that pair is used again.
        let kept_group = |group: u32| grouped.group_of[kept_of_group[group as usize] as usize];
        let mut scores = Column::filled(&grouped.budget, groups as usize, NOT_MEASURED)?;
        near.for_each(|a, b, score| {
            for (group, other) in [(a, b), (b, a)] {
                // An unverified candidate pair has no score.
                if kept_group(group) == other && !matches!(score, Score::Candidate) {
                    scores[group as usize] = score.pack();
                }
            }
            Ok(())
        })?;
        for start in (0..groups).step_by(TOGETHER) {
            let end = (start as usize + TOGETHER).min(groups as usize);
            let measured: Vec<u64> = (start..end as u32)
                .into_par_iter()
                .map(|group| match (kept_group(group), scores[group as usize]) {
                    (other, _) if other == group => Ok(ITSELF),
                    (other, NOT_MEASURED) => Ok(measure(group, other)?.map_or(NOT_MEASURED, Score::pack)),
                    (_, score) => Ok(score),
                })
                .collect::<twindex::Result<_>>()?;
            scores[start as usize..end].copy_from_slice(&measured);
        }
        let mut clusters = Self::new(grouped, kept_of_group, scores, near.kind);
        clusters.cut = cut;
        clusters.lowest = clusters.find_lowest(grouped, rules.threshold, measure)?;
        Ok(clusters)
    }

    /// Returns the score of a group against its kept group; `None` if it was not measured.
    pub(super) fn score(&self, grouped: &Grouped, group: u32) -> Option<Score> {
        match self.scores[group as usize] {
            NOT_MEASURED => None,
            ITSELF => Some(grouped.itself(group, self.kind)),
            packed => Some(self.kind.unpack(packed)),
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

    fn count_chained(&mut self, grouped: &Grouped, threshold: f64) {
        let mut chained = 0;
        for (document, &group) in (0..).zip(&grouped.group_of[..]) {
            let near = match self.score(grouped, group) {
                Some(Score::Distance(_)) => true,
                Some(Score::Candidate) => false,
                Some(score) => score.resemblance().is_some_and(|resemblance| resemblance.at_least(threshold)),
                None => self.kind == ScoreKind::Candidate, // no measure was requested
            };
            chained += u64::from(!near && document >= self.history);
        }
        self.chained = chained;
    }

    /// Returns the keys of the pair with the lowest resemblance inside a cluster.
    pub(super) fn lowest_keys(&self, corpus: &Corpus) -> Option<(String, String)> {
        self.lowest.map(|(a, b, _)| (corpus.keys.shown(a), corpus.keys.shown(b)))
    }

    /// Returns the figures on clusters for the HTML report. `near` is a description of the definition of near
    /// documents.
    pub(super) fn for_a_page(&self, corpus: &Corpus, near: String) -> anyhow::Result<ClusterFigures> {
        let grouped = &corpus.grouped;
        let keys = |kept: u32| {
            // The first few other documents of the cluster, in the order of their groups.
            let mut others: Vec<(u32, u32)> = Vec::new();
            for (document, &group) in (0..).zip(&grouped.group_of[..]) {
                if document != kept && self.kept_of_group[group as usize] == kept {
                    others.push((group, document));
                    if others.len() >= TOGETHER {
                        others.sort_unstable();
                        others.truncate(KEYS_SHOWN);
                    }
                }
            }
            others.sort_unstable();
            let others = others.into_iter().map(|(_, document)| document);
            let shown = std::iter::once(kept).chain(others).take(KEYS_SHOWN);
            Ok(shown.map(|document| corpus.keys.shown(document)).collect())
        };
        let clusters = self.sizes.iter().map(|&size| u64::from(size)).zip(0..);
        Ok(ClusterFigures::of(near, clusters.filter(|&(size, _)| size > 0), keys)?)
    }

    /// Returns the number of documents in the cluster of a kept document.
    pub(super) fn size(&self, kept: u32) -> u32 {
        self.sizes[kept as usize]
    }

    /// Returns the cluster number, from 1, of each kept document; 0 for documents that are not kept.
    pub(super) fn numbers(&self, corpus: &Corpus, by_key: &ByKey) -> twindex::Result<Column<u32>> {
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
    pub(super) fn is_kept(&self, grouped: &Grouped, document: u32) -> bool {
        self.kept_of_group[grouped.group_of[document as usize] as usize] == document
    }

    /// Returns the number of documents whose text equals the text of an earlier document. Does not count documents that
    /// were removed because of the history.
    pub(super) fn identical(&self, corpus: &Corpus) -> u64 {
        let groups =
            (0..corpus.grouped.groups.len() as u32).filter(|&group| !self.is_of_history(group)).count();
        corpus.documents().len() as u64 - self.dropped(&corpus.grouped) - groups as u64
    }

    /// Returns the number of documents that were removed because of a document of the history.
    pub(super) fn dropped(&self, grouped: &Grouped) -> u64 {
        let is_dropped =
            |&(document, &group): &(u32, &u32)| document >= self.history && self.is_of_history(group);
        (0..).zip(&grouped.group_of[..]).filter(is_dropped).count() as u64
    }

    /// Returns whether the kept document of a group belongs to the history.
    fn is_of_history(&self, group: u32) -> bool {
        self.kept_of_group[group as usize] < self.history
    }

    /// Returns the number of clusters with at least two documents.
    pub(super) fn of_several(&self) -> u64 {
        self.classes.iter().skip(1).sum()
    }

    /// Returns the distribution of cluster sizes: for each class, its largest size (1, 2, 4, 8, ...) and the number of
    /// clusters in it.
    pub(super) fn distribution(&self) -> Vec<(u64, u64)> {
        (0..).map(|class| 1 << class).zip(self.classes.iter().copied()).collect()
    }

    /// Finds a pair of low resemblance inside a cluster with two sweeps. The first sweep finds the document of each
    /// cluster with the lowest resemblance to the kept document. For components, the second sweep finds the document
    /// with the lowest resemblance to the document that the first sweep found. The pair with the lowest resemblance of
    /// all may be missed.
    fn find_lowest(
        &self,
        grouped: &Grouped,
        threshold: f64,
        measure: &ClusterMeasure<'_>,
    ) -> twindex::Result<Option<(u32, u32, f64)>> {
        let value = |score: Option<Score>| Some(score?.resemblance()?.value());
        let kept_of_group = &self.kept_of_group[..];
        // Indexed by the kept document. Of equal values, the first is taken, so that the result is deterministic.
        let mut farthest =
            Column::filled(&grouped.budget, grouped.len(), FarthestGroup { value: NONE, group: 0 })?;
        for (group, &kept) in (0..).zip(kept_of_group) {
            let value = value(self.score(grouped, group));
            if let Some(value) = value.filter(|_| grouped.group_of[kept as usize] != group) {
                let far = &mut farthest[kept as usize];
                if value < far.value {
                    *far = FarthestGroup { value, group: group.into() };
                }
            }
        }
        let first = |group: u32| grouped.groups[group as usize].first;
        let swept = |group: u32| -> Option<twindex::Result<(f64, u32, u32)>> {
            let kept = kept_of_group[group as usize];
            let FarthestGroup { value: value_of_kept, group: far } = farthest[kept as usize];
            let far = far as u32;
            if value_of_kept >= NONE {
                return None;
            }
            if group == far || value_of_kept >= threshold {
                return Some(Ok((value_of_kept, kept, first(far))));
            }
            let measured = measure(group.min(far), group.max(far));
            measured.map(|score| Some((value(score)?, first(group), first(far)))).transpose()
        };
        // On ties, takes the left value, which has the lower index, so that the result is deterministic.
        let min = (0..kept_of_group.len() as u32)
            .into_par_iter()
            .filter_map(swept)
            .try_reduce_with(|x, y| Ok(if y.0.total_cmp(&x.0).is_lt() { y } else { x }))
            .transpose()?;
        Ok(min.map(|(value, a, b)| (a.min(b), a.max(b), value)))
    }
}

/// The group of a cluster whose resemblance to the kept document is lowest.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct FarthestGroup {
    value: f64,
    group: u64,
}

/// Marks a cluster for which no group was found; above any resemblance.
const NONE: f64 = 2.0;

/// Splits components of more than `max` documents. Scans the groups in input order: a group that is not yet in a
/// cluster starts one and adds the free groups that it is paired with, up to the limit. So every member is near the
/// first member. A group of equal texts is never split, even if it exceeds the limit.
///
/// Returns the first group of each group's cluster, and the number of components that were split.
fn cut_large(
    grouped: &Grouped,
    near: &NearGroups,
    mut roots: Column<u32>,
    max: u32,
) -> twindex::Result<(Column<u32>, u64)> {
    if max == u32::MAX {
        return Ok((roots, 0)); // no component can be larger
    }
    let members = |group: u32| u64::from(grouped.groups[group as usize].documents);
    // Number of documents and of groups under each root.
    let mut sizes = Column::filled(&grouped.budget, roots.len(), [0_u64; 2])?;
    for (group, &root) in (0..).zip(&roots[..]) {
        let [documents, groups] = &mut sizes[root as usize];
        *documents += members(group);
        *groups += 1;
    }
    let mut is_large = Column::new(&grouped.budget);
    let mut cut = 0;
    for (group, &root) in (0..).zip(&roots[..]) {
        let [documents, groups] = sizes[root as usize];
        let large = documents > u64::from(max) && groups > 1;
        is_large.push(u8::from(large))?;
        cut += u64::from(large && group == root);
    }
    if cut == 0 {
        return Ok((roots, 0));
    }
    for (group, root) in (0..).zip(&mut roots[..]) {
        if is_large[group as usize] != 0 {
            *root = group;
            sizes[group as usize][0] = members(group);
        }
    }
    // Pairs are in ascending order: all pairs by which earlier groups could add a group precede the pairs that begin
    // with it.
    near.for_each(|a, b, _| {
        let is_free = is_large[b as usize] != 0 && roots[b as usize] == b && roots[a as usize] == a;
        if is_free && sizes[a as usize][0] + members(b) <= u64::from(max) {
            roots[b as usize] = a;
            sizes[a as usize][0] += members(b);
        }
        Ok(())
    })?;
    Ok((roots, cut))
}

#[cfg(test)]
mod tests {
    use super::super::score::{Estimate, Sampled};
    use super::*;

    #[test]
    fn packed_scores_differ_from_reserved_values() {
        let estimate = Estimate { matches: u32::MAX, minima: u32::MAX, bits: 32 };
        let counted = Score::Resemblance { intersection: u32::MAX, union: u32::MAX };
        let sampled = Score::Sampled(Sampled::from(twindex_join::Common {
            both: 1 << 20,
            either: 1 << 20,
            share: 1.0,
        }));
        let all = [counted, Score::Estimate(estimate), sampled, Score::Distance(u32::MAX), Score::Candidate];
        assert!(all.iter().all(|score| ![NOT_MEASURED, ITSELF].contains(&score.pack())));
    }
}
