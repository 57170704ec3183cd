//! Documents of a history that a later, kept document contains. Documents of a history can no longer be removed, so
//! they are only reported.

use twindex::sketch::Nearness;
use twindex_join::{JoinResources, Priority, cover_sets};

use crate::rule::clusters::Clusters;
use crate::rule::near::{JoinLimits, KeepRules};
use crate::rule::score::Score;
use crate::stored::corpus::Corpus;
use crate::stored::groups::Grouped;

/// The documents of the history that a kept document contains, and the number of comparisons made.
#[derive(Default)]
pub(crate) struct Contained {
    /// For each contained group of the history, ascending: the group, the first kept document that contains it, and the
    /// score.
    pub(crate) found: Vec<(u32, u32, Score)>,
    pub(crate) comparisons: u64,
    pub(crate) counted: u64,
}

impl Contained {
    /// Finds the kept documents of this run that contain documents of the history.
    pub(crate) fn of(
        grouped: &Grouped,
        clusters: &Clusters,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let groups = 0..grouped.groups.len() as u32;
        let in_order: Vec<u32> = rules.order.map_or_else(|| groups.collect(), <[u32]>::to_vec);
        let stays = |group: u32| {
            group >= rules.fixed && grouped.group_of[clusters.kept_of_group[group as usize] as usize] == group
        };
        // Kept documents come first and are never removed here, so every later document is compared only with them.
        let (stay, rest): (Vec<u32>, Vec<u32>) = in_order.into_iter().partition(|&group| stays(group));
        let (history, gone): (Vec<u32>, Vec<u32>) = rest.into_iter().partition(|&group| group < rules.fixed);
        if stay.is_empty() || history.is_empty() {
            return Ok(Self::default());
        }
        let fixed = stay.len() as u32;
        let order = [stay, history, gone].concat();
        let priority =
            Priority { order: Some(&order), fixed, max: rules.most_comparisons, watched: limits.watched };
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
        let covered = cover_sets(
            &grouped.sets,
            Nearness::Containment(rules.near.threshold().unwrap_or(1.0)),
            priority,
            resources,
        )?;
        let found = (0..rules.fixed).filter_map(|group| {
            let by = covered.by[group as usize];
            let shared = covered.shared[group as usize];
            let union = grouped.sets.size(group) as u32;
            let score = Score::Resemblance { intersection: shared, union };
            (by >= rules.fixed).then(|| (group, rules.firsts[by as usize], score))
        });
        Ok(Self { found: found.collect(), comparisons: covered.comparisons, counted: covered.counted })
    }

    /// Returns the contained documents in ascending order of their keys, each with the document that contains it and
    /// the score.
    pub(crate) fn by_key(&self, corpus: &Corpus) -> Vec<(u32, u32, Score)> {
        let mut all = Vec::new();
        for document in 0..corpus.history {
            let group = corpus.grouped.group_of[document as usize];
            if let Ok(place) = self.found.binary_search_by_key(&group, |found| found.0) {
                let (_, inside, score) = self.found[place];
                all.push((document, inside, score));
            }
        }
        all.sort_unstable_by(|a, b| {
            let key = |document: u32| corpus.keys.get(document);
            key(a.0).cmp(key(b.0)).then(a.0.cmp(&b.0))
        });
        all
    }
}
