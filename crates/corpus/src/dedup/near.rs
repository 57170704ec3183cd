//! Finds pairs of near groups: candidates by prefixes, bands, sketches or fingerprints, and their verification.

use std::path::Path;

use rayon::prelude::*;
use twindex::Snapshot;
use twindex::sketch::Nearness;
use twindex::sys::Column;
use twindex_join::{
    Agreement, Common, CoverPairs, Families, Forest, JoinResources, SharedProgress, Sorted, Sorter,
    candidates_agreeing, cover_sets, for_each_pair_between, for_each_pair_inside, merge_elements,
    numbered_pairs_within, prefix_candidates, set_candidates,
};

use super::capped::Capped;
use super::corpus::Corpus;
use super::groups::Grouped;
use super::journal::Journal;
use super::rules::{Clustering, KeepRules, NearMeasure};
use super::score::{Sampled, Score, ScoreKind};
use super::signatures::Signatures;
use crate::observer::Observer;
use crate::watch::{Stages, Stopwatch};

/// A method that finds candidate pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Compares the sketches of all texts, or uses prefixes if this is faster. Finds all near pairs, except pairs that the
    /// cap on pairing leaves out.
    Auto,
    /// Looks up the rarest shingles of each text. Finds all near pairs, except pairs that the cap on pairing leaves out.
    Prefix,
    /// Pairs documents that share bands of minima in the index. May miss near pairs.
    Bands,
}

/// A method that verifies candidate pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Computes the exact resemblance from the shingles.
    Exact,
    /// Estimates the resemblance from the signatures in the index, or from the sketches of
    /// [`Method::Shingles`](super::Method::Shingles).
    Signature,
    /// Does not verify candidates: documents that share bands are near.
    None,
}

/// The near groups, and statistics of the search.
pub(super) struct NearGroups {
    /// All near pairs in ascending order: smaller group, larger group and packed score. `None` unless all pairs are
    /// requested.
    pub pairs: Option<Sorted<u128>>,
    pub decided: GroupDecision,
    pub kind: ScoreKind,
    /// Number of candidate pairs of groups that were compared.
    pub candidates: u64,
    /// Number of candidate pairs whose common shingles were counted; `None` if sketches ruled out none.
    pub counted: Option<u64>,
    /// Counts of the buckets and shingles that exceed the cap on pairing.
    pub capped: Capped,
    /// The most frequent of the capped shingles, if the method counts shingles one by one: number of texts, hash, and
    /// first group.
    pub most_common: Vec<(u64, u64, u32)>,
    /// CPU seconds for finding candidates, and for verifying them.
    pub seconds: (f64, f64),
}

/// The decision which groups are kept, with the near kept group of each removed group.
pub(super) enum GroupDecision {
    /// The kept group of each group, itself if it is kept, and the packed score of the two.
    Leaders { by: Column<u32>, scores: Column<u64> },
    /// The connected components of the near pairs; one group of each is kept.
    Components(Forest),
}

/// The folder, memory budget and observers of the search.
pub(super) struct JoinLimits<'a> {
    pub folder: &'a Path,
    /// The journal; `None` without [`Dedup::resume`](super::Dedup::resume).
    pub journal: Option<&'a Journal<'a>>,
    pub observer: &'a dyn Observer,
    pub memory: usize,
    pub max_bucket: usize,
    /// Whether components may be computed although the cap left out pairs, because the user set `max_bucket`.
    pub may_cap: bool,
    /// Reports progress to the caller, and cancels the work if the caller requests it.
    pub watched: Option<&'a SharedProgress>,
}

/// Number of candidates that one thread verifies at a time.
const CHUNK: usize = 512;
/// Number of candidates in a batch, which all threads verify together.
const BATCH: usize = 1 << 14;
/// A candidate is verified by exact counts unless its estimate is more than this number of standard errors below the
/// threshold.
const ERRORS: f64 = 3.0;

/// Returns whether the resemblance may reach the threshold, by an estimate from the common elements of two samples.
pub(super) fn may_be_near(common: &Common, threshold: f64) -> bool {
    let estimate = common.resemblance();
    estimate.value() + ERRORS * estimate.standard_error() >= threshold
}

/// Collects verified pairs.
struct Collector<'r> {
    grouped: &'r Grouped,
    /// Sorts the pairs; `None` unless all pairs are requested.
    sorter: Option<Sorter<u128>>,
    deciding: GroupDecider<'r>,
    verifying: f64,
}

enum GroupDecider<'r> {
    Leaders(CoverPairs<'r>),
    Components(Forest),
    /// The decision is already known; pairs are only listed.
    Made(GroupDecision),
}

impl<'r> Collector<'r> {
    fn new(grouped: &'r Grouped, rules: &KeepRules<'r>, limits: &JoinLimits<'_>) -> twindex::Result<Self> {
        let (groups, memory) = (grouped.groups.len(), limits.memory / 2);
        let deciding = match rules.clustering {
            Clustering::Components => {
                GroupDecider::Components(Forest::within(&grouped.budget, groups as u32)?)
            }
            Clustering::Leaders => {
                let pairs = CoverPairs::new(&grouped.budget, memory / 2, groups, rules.order)?;
                GroupDecider::Leaders(pairs.fixing(rules.fixed))
            }
        };
        let is_wanted = rules.all_pairs || rules.clustering == Clustering::Components;
        let sorter = is_wanted.then(|| Sorter::new(limits.folder, memory));
        Ok(Self { grouped, sorter, deciding, verifying: 0.0 })
    }

    /// Creates a collector like [`new`](Self::new). Uses an earlier decision if one is given.
    fn deciding(
        grouped: &'r Grouped,
        rules: &KeepRules<'r>,
        limits: &JoinLimits<'_>,
        decided: Option<GroupDecision>,
    ) -> twindex::Result<Self> {
        let collector = Self::new(grouped, rules, limits)?;
        Ok(match decided {
            Some(decided) => Self { deciding: GroupDecider::Made(decided), ..collector },
            None => collector,
        })
    }

    fn push(&mut self, a: u32, b: u32, score: Score) -> twindex::Result<()> {
        if !self.grouped.are_compared(a, b) {
            return Ok(());
        }
        match &mut self.deciding {
            GroupDecider::Leaders(pairs) => pairs.push(a, b, score.pack())?,
            GroupDecider::Components(forest) => {
                forest.join(a, b);
            }
            GroupDecider::Made(_) => {}
        }
        let Some(sorter) = &mut self.sorter else { return Ok(()) };
        sorter.push(u128::from(a.min(b)) << 96 | u128::from(a.max(b)) << 64 | u128::from(score.pack()))
    }

    /// Verifies candidates in parallel.
    fn verify(
        &mut self,
        candidates: &[(u32, u32)],
        verify: impl Fn(&[(u32, u32)]) -> twindex::Result<Vec<(u32, u32, Score)>> + Send + Sync,
    ) -> twindex::Result<()> {
        let watch = Stopwatch::start();
        let found: Vec<_> =
            candidates.par_chunks(CHUNK).with_max_len(1).map(verify).collect::<twindex::Result<_>>()?;
        let pushed = found.into_iter().flatten().try_for_each(|(a, b, score)| self.push(a, b, score));
        self.verifying += watch.cpu_seconds();
        pushed
    }

    /// Counts the common elements of the sets of candidates in parallel.
    fn count(
        &mut self,
        families: &mut Families<'_>,
        candidates: &[(u32, u32)],
        threshold: f64,
    ) -> twindex::Result<()> {
        let watch = Stopwatch::start();
        let plausible: Vec<_> = candidates
            .par_chunks(CHUNK)
            .with_max_len(1)
            .flat_map_iter(|pairs| families.plausible(pairs, threshold))
            .collect();
        let wanted = families.plan(&plausible);
        for piece in families.pieces(&wanted) {
            let differences: Vec<_> = piece
                .par_iter()
                .with_max_len(CHUNK / 16)
                .map(|&(set, leader)| families.difference(set, leader))
                .collect::<twindex::Result<_>>()?;
            for difference in differences {
                families.add(difference);
            }
        }
        self.verifying += watch.cpu_seconds();
        let families = &*families;
        self.verify(&plausible, |pairs| {
            let mut found = Vec::new();
            let each = |a, b, resemblance| found.push((a, b, Score::counted(resemblance)));
            families.for_each_resembling(pairs, threshold, each)?;
            Ok(found)
        })
    }

    fn finish(self, kind: ScoreKind, watch: &Stopwatch) -> twindex::Result<NearGroups> {
        let Self { sorter, deciding, verifying, .. } = self;
        let pairs = sorter.map(Sorter::finish).transpose()?;
        let decided = match deciding {
            GroupDecider::Components(forest) => GroupDecision::Components(forest),
            GroupDecider::Leaders(pairs) => {
                let (by, scores) = pairs.finish()?;
                GroupDecision::Leaders { by, scores }
            }
            GroupDecider::Made(decided) => decided,
        };
        Ok(NearGroups {
            pairs,
            decided,
            kind,
            candidates: 0,
            counted: None,
            capped: Capped::default(),
            most_common: Vec::new(),
            seconds: (watch.cpu_seconds() - verifying, verifying),
        })
    }
}

/// The parameters of a search that finds candidates by bands.
#[derive(Clone, Copy)]
pub(super) struct BandSearch<'a> {
    pub corpus: &'a Corpus,
    /// An index of all documents.
    pub snapshot: &'a Snapshot,
    pub agreement: Agreement,
    pub verify: Verify,
}

impl NearGroups {
    /// Returns the decision with the list of all pairs, if requested. `pairs` computes the list, given the decision.
    fn with_pairs(
        self,
        rules: &KeepRules<'_>,
        pairs: impl FnOnce(GroupDecision) -> twindex::Result<Self>,
    ) -> twindex::Result<Self> {
        if !rules.all_pairs {
            return Ok(self);
        }
        let Self { decided, candidates, counted, seconds, .. } = self;
        let all = pairs(decided)?;
        Ok(Self { candidates, counted, seconds: (seconds.0 + all.seconds.0, all.seconds.1), ..all })
    }

    /// Returns the result of a search in which only equal texts are near.
    pub(super) fn none(
        grouped: &Grouped,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        Collector::new(grouped, rules, limits)?.finish(ScoreKind::Resemblance, &Stopwatch::start())
    }

    /// Finds near groups by their sets of shingles: compares each group with the kept groups. Also lists all pairs if
    /// requested.
    pub(super) fn by_sets(
        grouped: &Grouped,
        join: Join,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        if rules.clustering == Clustering::Components {
            return Self::pairs_by_sets(grouped, join, rules, limits, None);
        }
        let watch = Stopwatch::start();
        let (near, kind) = match rules.near {
            NearMeasure::Resemblance => (Nearness::Resemblance(rules.threshold), ScoreKind::Resemblance),
            NearMeasure::Containment => (Nearness::Containment(rules.threshold), ScoreKind::Containment),
        };
        let priority = twindex_join::Priority {
            order: rules.order,
            fixed: rules.fixed,
            max: rules.most_comparisons,
            by_index: join == Join::Prefix,
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
        let kept = Self {
            pairs: None,
            decided: GroupDecision::Leaders { scores, by: covered.by },
            kind,
            candidates: covered.comparisons,
            counted: Some(covered.counted),
            capped: Capped::default(),
            most_common: Vec::new(),
            seconds: (seconds, 0.0),
        };
        kept.with_pairs(rules, |decided| Self::pairs_by_sets(grouped, join, rules, limits, Some(decided)))
    }

    /// Finds all pairs of sets whose resemblance reaches the threshold. Decides from these pairs unless a decision is
    /// given.
    fn pairs_by_sets(
        grouped: &Grouped,
        join: Join,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        decided: Option<GroupDecision>,
    ) -> twindex::Result<Self> {
        let (watch, threshold) = (Stopwatch::start(), rules.threshold);
        let mut collector = Collector::deciding(grouped, rules, limits, decided)?;
        let mut families = Families::new(&grouped.sets, limits.memory / 4)?;
        let (memory, threads) = (limits.memory / 4, rayon::current_num_threads());
        let count = |batch: &[(u32, u32)]| {
            limits.watched.map_or(Ok(()), SharedProgress::check)?;
            collector.count(&mut families, batch, threshold)
        };
        let found = if join == Join::Prefix {
            prefix_candidates(&grouped.sets, threshold, limits.max_bucket, memory, threads, count)?
        } else {
            set_candidates(&grouped.sets, threshold, limits.max_bucket, memory, threads, count)?
        };
        let capped = Capped { buckets: 0, shingles: found.capped, largest: found.largest, cap: found.cap };
        capped.check(rules.clustering, limits.may_cap)?;
        let mut near = collector.finish(ScoreKind::Resemblance, &watch)?;
        near.candidates = found.candidates;
        near.capped = capped;
        Ok(near)
    }

    /// Finds near groups that agree in the required number of bands and pass the verification. Also lists all pairs if
    /// requested.
    pub(super) fn by_bands(
        how: BandSearch<'_>,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        if rules.clustering == Clustering::Components {
            return Self::pairs_by_bands(how, rules, limits, None);
        }
        let kept = Self::kept_by_bands(how, rules, limits)?;
        kept.with_pairs(rules, |decided| Self::pairs_by_bands(how, rules, limits, Some(decided)))
    }

    /// Finds all pairs that agree in the required bands and pass the verification. Decides from these pairs unless a
    /// decision is given.
    fn pairs_by_bands(
        BandSearch { corpus, snapshot, agreement, verify }: BandSearch<'_>,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        decided: Option<GroupDecision>,
    ) -> twindex::Result<Self> {
        let (watch, threshold) = (Stopwatch::start(), rules.threshold);
        let mut collector = Collector::deciding(&corpus.grouped, rules, limits, decided)?;
        let budget = (limits.folder, limits.memory / 4);
        let found = candidates_agreeing(snapshot, agreement, limits.max_bucket, budget, |place| {
            Ok(corpus.group_at(place.key()?.as_key()))
        })?;
        let capped = Capped {
            buckets: found.capped_buckets,
            shingles: 0,
            largest: found.largest_bucket,
            cap: found.cap,
        };
        capped.check(rules.clustering, limits.may_cap)?;
        let mut number = 0;
        let kind = match verify {
            Verify::Exact => {
                let mut families = Families::new(&corpus.grouped.sets, limits.memory / 4)?;
                found.for_each_batch(|batch| {
                    number += batch.len();
                    collector.count(&mut families, batch, threshold)
                })?;
                ScoreKind::Resemblance
            }
            Verify::Signature => {
                let signatures = Signatures::of(corpus, snapshot)?;
                found.for_each_batch(|batch| {
                    number += batch.len();
                    collector.verify(batch, |pairs| signatures.estimated(pairs, threshold))
                })?;
                signatures.kind()
            }
            Verify::None => {
                found.for_each_batch(|batch| {
                    number += batch.len();
                    batch.iter().try_for_each(|&(a, b)| collector.push(a, b, Score::Candidate))
                })?;
                ScoreKind::Candidate
            }
        };
        let mut near = collector.finish(kind, &watch)?;
        near.candidates = number as u64;
        near.capped = capped;
        Ok(near)
    }

    /// Finds near groups by the common elements of their sketches. The resemblance is estimated, or computed exactly.
    /// Also lists all pairs if requested.
    pub(super) fn by_sketches(
        grouped: &Grouped,
        verify: Verify,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        stages: &mut Stages,
    ) -> twindex::Result<Self> {
        if rules.clustering == Clustering::Components {
            return Self::pairs_by_sketches(grouped, verify, rules, limits, stages, None);
        }
        Self::kept_by_sketches(grouped, verify, rules, limits)?.with_pairs(rules, |decided| {
            Self::pairs_by_sketches(grouped, verify, rules, limits, stages, Some(decided))
        })
    }

    /// Finds all pairs whose sketches have common elements and whose resemblance reaches the threshold. Decides from
    /// these pairs unless a decision is given.
    fn pairs_by_sketches(
        grouped: &Grouped,
        verify: Verify,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        stages: &mut Stages,
        decided: Option<GroupDecision>,
    ) -> twindex::Result<Self> {
        let (watch, threshold) = (Stopwatch::start(), rules.threshold);
        let Some((by, sketches)) = &grouped.sketches else { return Self::none(grouped, rules, limits) };

        let merging = Stopwatch::start();
        let merged = merge_elements(sketches, (limits.folder, limits.memory / 2))?;
        stages.add("shingle_merge", merging);

        let forming = Stopwatch::start();
        let largest = merged.largest;
        let formed = merged.form_pairs(limits.max_bucket, (limits.folder, limits.memory / 4))?;
        stages.add("pair_formation", forming);
        let capped = Capped { buckets: 0, shingles: formed.capped, largest, cap: formed.cap };
        capped.check(rules.clustering, limits.may_cap)?;

        let merging = Stopwatch::start();
        // The inverted lists and the positions in them use half of the memory budget of the search.
        let half = JoinLimits { memory: limits.memory / 2, ..*limits };
        let mut collector = Collector::deciding(grouped, rules, &half, decided)?;
        let (kind, collisions) = if verify == Verify::Exact {
            let mut families = Families::new(&grouped.sets, limits.memory / 4)?;
            let mut batch = Vec::with_capacity(BATCH);
            let may_be_near = |common: &Common| may_be_near(common, threshold);
            let collisions = formed.common(sketches, *by, may_be_near, |a, b, _| {
                batch.push((a, b));
                if batch.len() == BATCH {
                    collector.count(&mut families, &batch, threshold)?;
                    batch.clear();
                }
                Ok::<(), twindex::Error>(())
            })?;
            collector.count(&mut families, &batch, threshold)?;
            (ScoreKind::Resemblance, collisions)
        } else {
            let is_near = |common: &Common| common.resemblance().at_least(threshold);
            let collisions = formed.common(sketches, *by, is_near, |a, b, common| {
                collector.push(a, b, Score::Sampled(Sampled::from(common)))
            })?;
            (ScoreKind::Sampled, collisions)
        };
        stages.insert("pair_merge", merging.cpu_seconds() - collector.verifying);
        let mut near = collector.finish(kind, &watch)?;
        near.candidates = collisions;
        near.capped = capped;
        near.most_common = formed.most_common;
        Ok(near)
    }

    /// Finds pairs of groups whose fingerprints are within the Hamming distance.
    pub(super) fn by_fingerprints(
        corpus: &Corpus,
        snapshot: &Snapshot,
        within: u32,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> anyhow::Result<Self> {
        let watch = Stopwatch::start();
        let mut collector = Collector::new(&corpus.grouped, rules, limits)?;
        let threads = rayon::current_num_threads();
        numbered_pairs_within(
            snapshot,
            within,
            JoinResources { dir: limits.folder, memory: limits.memory / 2, threads },
            |place| Ok(corpus.group_at(place.key()?.as_key())),
            |a, b, distance| collector.push(a, b, Score::Distance(distance)),
        )?;
        let mut near = collector.finish(ScoreKind::Distance, &watch)?;
        near.seconds = (0.0, near.seconds.0);
        Ok(near)
    }

    /// Passes each pair of groups to `each`, the smaller group first, in ascending order. Does nothing unless all pairs
    /// were requested.
    pub(super) fn for_each(
        &self,
        mut each: impl FnMut(u32, u32, Score) -> twindex::Result<()>,
    ) -> twindex::Result<()> {
        let Some(pairs) = &self.pairs else { return Ok(()) };
        pairs.for_each(|pair| each((pair >> 96) as u32, (pair >> 64) as u32, self.kind.unpack(pair as u64)))
    }

    /// Passes each pair of near documents to `each` with its packed score, including the pairs within a group. Of a
    /// group with more than `max_bucket` documents, only the first document is paired with documents of other groups.
    pub(super) fn for_each_of_documents(
        &self,
        grouped: &Grouped,
        max_bucket: usize,
        each: &mut impl FnMut(u32, u32, u64) -> twindex::Result<()>,
    ) -> twindex::Result<()> {
        let members = grouped.members()?;
        for group in 0..grouped.groups.len() as u32 {
            let itself = self.kind.pack_itself(grouped.itself(group, self.kind));
            for_each_pair_inside(members.of(group), max_bucket, |a, b| each(a, b, itself))?;
        }
        self.for_each(|a, b, score| {
            let score = score.pack();
            for_each_pair_between(members.of(a), members.of(b), max_bucket, |a, b| each(a, b, score))
        })
    }
}
