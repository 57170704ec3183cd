//! The clusters that verified pairs make, and the document of each that stays.

use std::collections::HashMap;

use rayon::prelude::*;

use super::corpus::Corpus;
use super::groups::Grouped;
use super::near::{Decided, Near};
use super::rules::{Clustering, Rules};
use super::score::{Kind, Score};
use crate::page::{Clustered, KEYS_SHOWN};

/// The clusters, numbered from 1 in the order of their smallest keys.
pub(super) struct Clusters {
    pub kept_of_group: Vec<u32>,
    /// Of each group with the one that is kept; none where it was not measured.
    pub scores: Vec<Option<Score>>,
    /// How many of the first documents are a history; they are not counted.
    history: u32,
    /// Documents of each cluster.
    pub sizes: Vec<u32>,
    /// Documents that are less near to the kept one than the threshold.
    pub chained: u64,
    /// Components that were cut.
    pub cut: u64,
    /// The least near pair of documents that was met inside a cluster, and its resemblance.
    pub lowest: Option<(u32, u32, f64)>,
}

/// Measures how near two groups are; none where that cannot be told.
pub(super) type Measure<'a> = dyn Fn(u32, u32) -> twindex::Result<Option<Score>> + Sync + 'a;

impl Clusters {
    /// What was decided, with the first document of each group that stays; or connected components of the pairs, cut where
    /// they are too large, and the first document of each.
    pub(super) fn of(
        grouped: &Grouped,
        near: &mut Near,
        rules: &Rules<'_>,
        measure: &Measure<'_>,
        history: u32,
    ) -> twindex::Result<Self> {
        let mut clusters = match &mut near.decided {
            Decided::Components(forest) => {
                let roots = (0..grouped.groups.len() as u32).map(|group| forest.root(group)).collect();
                Self::of_components(grouped, near, roots, rules, measure)?
            }
            Decided::Leaders { by, scores } => {
                let (by, scores) = (std::mem::take(by), std::mem::take(scores));
                Self::of_leaders(grouped, near, by, scores, rules)
            }
        };
        clusters.history = history;
        clusters.count_sizes(grouped);
        if rules.clustering == Clustering::Components {
            clusters.count_chained(grouped, near.kind, rules.threshold);
        }
        Ok(clusters)
    }

    fn of_leaders(grouped: &Grouped, near: &Near, by: Vec<u32>, scores: Vec<u64>, rules: &Rules<'_>) -> Self {
        let scores: Vec<Option<Score>> = (0..)
            .zip(by.iter().zip(scores))
            .map(|(group, (&by, score))| {
                Some(if by == group { grouped.itself(group, near.kind) } else { near.kind.unpack(score) })
            })
            .collect();
        let resembling = (0..).zip(by.iter().zip(&scores)).filter(|&(group, (&by, _))| group != by);
        let lowest = resembling
            .filter_map(|(group, (&by, score))| {
                Some((score.as_ref()?.resemblance()?.value(), rules.firsts[by as usize], group))
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(value, kept, group)| {
                let first = grouped.groups[group as usize].members[0];
                (kept.min(first), kept.max(first), value)
            });
        let kept_of_group = by.into_iter().map(|by| rules.firsts[by as usize]).collect();
        Self { kept_of_group, scores, history: 0, sizes: Vec::new(), chained: 0, cut: 0, lowest }
    }

    fn of_components(
        grouped: &Grouped,
        near: &Near,
        roots: Vec<u32>,
        rules: &Rules<'_>,
        measure: &Measure<'_>,
    ) -> twindex::Result<Self> {
        let groups = grouped.groups.len() as u32;
        let (roots, cut) = cut_large(grouped, near, roots, rules.max_cluster)?;
        // Of each component the first group.
        let mut first_of = vec![None; groups as usize];
        for rank in 0..groups {
            let group = rules.order.map_or(rank, |order| order[rank as usize]);
            first_of[roots[group as usize] as usize].get_or_insert(rules.firsts[group as usize]);
        }
        let kept_of_group: Vec<u32> =
            roots.iter().map(|&root| first_of[root as usize].unwrap_or(u32::MAX)).collect();
        // Most are near the one that is kept, and stand in a pair with it.
        let kept_group = |group: u32| grouped.group_of[kept_of_group[group as usize] as usize];
        let mut known: Vec<Option<Score>> = vec![None; groups as usize];
        near.for_each(|a, b, score| {
            for (group, other) in [(a, b), (b, a)] {
                // A candidate that nothing verified has no score, near the kept one or not.
                if kept_group(group) == other && !matches!(score, Score::Candidate) {
                    known[group as usize] = Some(score);
                }
            }
            Ok(())
        })?;
        let scores: Vec<Option<Score>> = (0..groups)
            .into_par_iter()
            .map(|group| match (kept_group(group), known[group as usize]) {
                (other, _) if other == group => Ok(Some(grouped.itself(group, near.kind))),
                (_, Some(score)) => Ok(Some(score)),
                (other, None) => measure(group, other),
            })
            .collect::<twindex::Result<_>>()?;
        let lowest = lowest(grouped, &kept_of_group, &scores, rules.threshold, measure)?;
        Ok(Self { kept_of_group, scores, history: 0, sizes: Vec::new(), chained: 0, cut, lowest })
    }

    fn count_sizes(&mut self, grouped: &Grouped) {
        let mut sizes = vec![0; grouped.len()];
        for (group, &kept) in grouped.groups.iter().zip(&self.kept_of_group) {
            if kept >= self.history {
                sizes[kept as usize] += group.members.len() as u32;
            }
        }
        sizes.retain(|&size| size > 0);
        self.sizes = sizes;
    }

    fn count_chained(&mut self, grouped: &Grouped, kind: Kind, threshold: f64) {
        for (group, score) in grouped.groups.iter().zip(&self.scores) {
            let near = match score {
                Some(Score::Distance(_)) => true,
                Some(Score::Candidate) => false,
                Some(score) => score.resemblance().is_some_and(|resemblance| resemblance.at_least(threshold)),
                None => kind == Kind::Candidate, // nothing was asked for
            };
            let members = group.members.iter().filter(|&&document| document >= self.history);
            self.chained += if near { 0 } else { members.count() as u64 };
        }
    }

    /// The keys of the least near pair.
    pub(super) fn lowest_keys(&self, corpus: &Corpus) -> Option<(String, String)> {
        let key = |document: u32| String::from_utf8_lossy(&corpus.keys[document as usize]).into_owned();
        self.lowest.map(|(a, b, _)| (key(a), key(b)))
    }

    /// The clusters as a page shows them; `near` says in words which documents are.
    pub(super) fn for_a_page(&self, corpus: &Corpus, near: String) -> anyhow::Result<Clustered> {
        let mut sizes = vec![0; corpus.keys.len()];
        for (group, &kept) in corpus.grouped.groups.iter().zip(&self.kept_of_group) {
            if kept >= self.history {
                sizes[kept as usize] += group.members.len() as u64;
            }
        }
        let key = |document: u32| String::from_utf8_lossy(&corpus.keys[document as usize]).into_owned();
        let keys = |kept: u32| {
            let groups = corpus.grouped.groups.iter().zip(&self.kept_of_group).filter(|&(_, &of)| of == kept);
            let others =
                groups.flat_map(|(group, _)| group.members.iter().copied()).filter(|&one| one != kept);
            Ok(std::iter::once(kept).chain(others).take(KEYS_SHOWN).map(key).collect())
        };
        let clusters = sizes.into_iter().zip(0..).filter(|&(size, _)| size > 0);
        Ok(Clustered::of(near, clusters, keys)?)
    }

    /// Whether a document, none of a history, stays.
    pub(super) fn is_kept(&self, grouped: &Grouped, document: u32) -> bool {
        self.kept_of_group[grouped.group_of[document as usize] as usize] == document
    }

    /// How many documents go for one of a history.
    pub(super) fn dropped(&self, grouped: &Grouped) -> u64 {
        let groups = grouped.groups.iter().zip(&self.kept_of_group).filter(|&(_, &kept)| kept < self.history);
        let members = groups.flat_map(|(group, _)| &group.members);
        members.filter(|&&document| document >= self.history).count() as u64
    }

    /// How many clusters have 1 document, 2, 3 and 4, 5 to 8, and so on: the most documents, and how many.
    pub(super) fn distribution(&self) -> Vec<(u64, u64)> {
        let mut classes: Vec<u64> = Vec::new();
        for &size in &self.sizes {
            let class = size.next_power_of_two().trailing_zeros() as usize;
            classes.resize(classes.len().max(class + 1), 0);
            classes[class] += 1;
        }
        (0..).map(|class| 1 << class).zip(classes).collect()
    }
}

/// Cuts components of more than `most` documents: of each, in the order of the input, a group that is in no
/// cluster yet begins one, and takes in the groups it is paired with, as long as there is room. No member is
/// farther from the first than a pair may be. One group of identical documents stays one, however large.
///
/// Returns the first group of each group's cluster, and how many components were cut.
fn cut_large(
    grouped: &Grouped,
    near: &Near,
    mut roots: Vec<u32>,
    most: u32,
) -> twindex::Result<(Vec<u32>, u64)> {
    let members = |group: u32| grouped.groups[group as usize].members.len() as u64;
    let (mut sizes, mut groups): (Vec<u64>, Vec<u32>) = (vec![0; roots.len()], vec![0; roots.len()]);
    for (group, &root) in (0..).zip(&roots) {
        sizes[root as usize] += members(group);
        groups[root as usize] += 1;
    }
    let is_large = |&root: &u32| sizes[root as usize] > u64::from(most) && groups[root as usize] > 1;
    let is_large: Vec<bool> = roots.iter().map(is_large).collect();
    let cut = (0..).zip(&roots).filter(|&(group, &root)| group == root && is_large[group as usize]).count();
    if cut == 0 {
        return Ok((roots, 0));
    }
    for (group, root) in (0..).zip(&mut roots) {
        if is_large[group as usize] {
            *root = group;
            sizes[group as usize] = members(group);
        }
    }
    // Pairs ascend: when those of which a group is the first come, all that could have taken it in are past.
    near.for_each(|a, b, _| {
        let is_free = is_large[b as usize] && roots[b as usize] == b && roots[a as usize] == a;
        if is_free && sizes[a as usize] + members(b) <= u64::from(most) {
            roots[b as usize] = a;
            sizes[a as usize] += members(b);
        }
        Ok(())
    })?;
    Ok((roots, cut as u64))
}

/// The least near pair inside a cluster, as far as two sweeps tell: of each cluster the document that is least near to
/// the kept one, and, where that is a chain, the one that is least near to that. A pair that is farther apart may be
/// missed.
fn lowest(
    grouped: &Grouped,
    kept_of_group: &[u32],
    scores: &[Option<Score>],
    threshold: f64,
    measure: &Measure<'_>,
) -> twindex::Result<Option<(u32, u32, f64)>> {
    let value = |score: &Option<Score>| Some(score.as_ref()?.resemblance()?.value());
    // Ties go to the first, so that the result depends on nothing else.
    let mut farthest: HashMap<u32, (f64, u32)> = HashMap::new();
    for (group, (kept, score)) in (0..).zip(kept_of_group.iter().zip(scores)) {
        if let Some(value) = value(score).filter(|_| grouped.group_of[*kept as usize] != group) {
            let far = farthest.entry(*kept).or_insert((value, group));
            if value < far.0 {
                *far = (value, group);
            }
        }
    }
    let first = |group: u32| grouped.groups[group as usize].members[0];
    let swept: Vec<(f64, u32, u32)> = (0..kept_of_group.len() as u32)
        .into_par_iter()
        .filter_map(|group| {
            let kept = kept_of_group[group as usize];
            let &(value_of_kept, far) = farthest.get(&kept)?;
            if group == far || value_of_kept >= threshold {
                return Some(Ok((value_of_kept, kept, first(far))));
            }
            let measured = measure(group.min(far), group.max(far));
            measured.map(|score| Some((value(&score)?, first(group), first(far)))).transpose()
        })
        .collect::<twindex::Result<_>>()?;
    Ok(swept.into_iter().min_by(|x, y| x.0.total_cmp(&y.0)).map(|(value, a, b)| (a.min(b), a.max(b), value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_counted_in_classes_of_powers_of_two() {
        let clusters = Clusters {
            kept_of_group: Vec::new(),
            scores: Vec::new(),
            history: 0,
            sizes: vec![1, 1, 1, 2, 3, 4, 9, 16],
            chained: 0,
            cut: 0,
            lowest: None,
        };
        assert_eq!(clusters.distribution(), [(1, 3), (2, 1), (4, 2), (8, 0), (16, 2)]);
    }
}
