//! Decides which groups are kept, by their sets or fingerprints.

use std::path::Path;

use twindex::Snapshot;
use twindex::sketch::Nearness;
use twindex::sys::Column;
use twindex_join::{CoverPairs, JoinResources, SharedProgress, cover_sets, numbered_pairs_within};

use super::corpus::Corpus;
use super::groups::Grouped;
use super::journal::Journal;
use super::rules::KeepRules;
use super::score::{Score, ScoreKind};
use crate::observer::Observer;
use crate::watch::Stopwatch;

/// The decision which groups are kept, and statistics of the search.
pub(super) struct NearGroups {
    /// The kept group of each group: itself if it is kept.
    pub by: Column<u32>,
    /// The packed score of each group and its kept group.
    pub scores: Column<u64>,
    pub kind: ScoreKind,
    /// Number of candidate pairs of groups that were compared.
    pub candidates: u64,
    /// Number of candidate pairs whose common shingles were counted; `None` if sketches ruled out none.
    pub counted: Option<u64>,
    /// CPU seconds for finding candidates, and for verifying them.
    pub seconds: (f64, f64),
}

/// The folder, memory budget and observers of the search.
pub(super) struct JoinLimits<'a> {
    pub folder: &'a Path,
    /// The journal; `None` without [`Results::resume`](crate::settings::Results::resume).
    pub journal: Option<&'a Journal<'a>>,
    pub observer: &'a dyn Observer,
    pub memory: usize,
    /// Reports progress to the caller, and cancels the work if the caller requests it.
    pub watched: Option<&'a SharedProgress>,
}

impl NearGroups {
    /// Returns the decision in which only equal texts are near: every group is kept.
    pub(super) fn none(grouped: &Grouped) -> twindex::Result<Self> {
        let groups = grouped.groups.len();
        Ok(Self {
            by: Column::of(&grouped.budget, 0..groups as u32)?,
            scores: Column::filled(&grouped.budget, groups, 0)?,
            kind: ScoreKind::Resemblance,
            candidates: 0,
            counted: None,
            seconds: (0.0, 0.0),
        })
    }

    /// Finds near groups by their sets of shingles: compares each group with the kept groups.
    pub(super) fn by_sets(
        grouped: &Grouped,
        near: Nearness,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let watch = Stopwatch::start();
        let kind = match near {
            Nearness::Resemblance(_) => ScoreKind::Resemblance,
            Nearness::Containment(_) => ScoreKind::Containment,
        };
        let priority = twindex_join::Priority {
            order: rules.order,
            fixed: rules.fixed,
            max: rules.most_comparisons,
            watched: limits.watched,
        };
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
        let covered = cover_sets(&grouped.sets, near, priority, resources)?;
        let seconds = watch.cpu_seconds();
        let size = |set: u32| grouped.sets.size(set);
        let scores = (0..).zip(covered.by.iter().zip(&covered.shared[..])).map(|(set, (&by, &shared))| {
            let others =
                if by == set || kind == ScoreKind::Containment { 0 } else { size(by) - u64::from(shared) };
            Score::Resemblance { intersection: shared, union: (size(set) + others) as u32 }.pack()
        });
        let scores = Column::of(&grouped.budget, scores)?;
        Ok(Self {
            by: covered.by,
            scores,
            kind,
            candidates: covered.comparisons,
            counted: Some(covered.counted),
            seconds: (seconds, 0.0),
        })
    }

    /// Finds near groups by the distance of their fingerprints. `snapshot` is an index of all documents.
    pub(super) fn by_fingerprints(
        corpus: &Corpus,
        snapshot: &Snapshot,
        within: u32,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> anyhow::Result<Self> {
        let (watch, grouped) = (Stopwatch::start(), &corpus.grouped);
        let pairs = CoverPairs::new(&grouped.budget, limits.memory / 4, grouped.groups.len(), rules.order)?;
        let mut pairs = pairs.fixing(rules.fixed);
        let threads = rayon::current_num_threads();
        let mut candidates = 0;
        numbered_pairs_within(
            snapshot,
            within,
            JoinResources { dir: limits.folder, memory: limits.memory / 2, threads },
            |place| Ok(corpus.group_at(place.key()?.as_key())),
            |a, b, distance| {
                candidates += 1;
                if !grouped.are_compared(a, b) {
                    return Ok(());
                }
                pairs.push(a, b, Score::Distance(distance).pack())
            },
        )?;
        let (by, scores) = pairs.finish()?;
        Ok(Self {
            by,
            scores,
            kind: ScoreKind::Distance,
            candidates,
            counted: None,
            seconds: (0.0, watch.cpu_seconds()),
        })
    }
}
