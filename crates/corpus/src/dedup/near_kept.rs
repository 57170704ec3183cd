//! Finds the kept groups by bands or by sketches. Each group is compared only with kept groups, so the decision does not
//! depend on the cap on pairing.

use twindex::sketch::intersection_from;
use twindex_join::{
    Common, JoinResources, Measure, MeasuredCover, Priority, ShingleSets, SketchMeasure, cover_measured,
    shared_features,
};

use super::capped::Capped;
use super::groups::Grouped;
use super::near::{BandSearch, GroupDecision, JoinLimits, NearGroups, Verify, may_be_near};
use super::rules::KeepRules;
use super::score::{Sampled, Score, ScoreKind};
use super::signatures::Signatures;
use crate::watch::Stopwatch;

/// The verification of a pair of groups that share features.
enum VerifiedBy<'a> {
    Counted,
    Estimated(Signatures<'a>),
    Not,
}

/// Computes the score of two groups that share at least `min` features, with the chosen verification.
struct FeatureMeasure<'a> {
    grouped: &'a Grouped,
    features: &'a ShingleSets,
    min: usize,
    verified: VerifiedBy<'a>,
    threshold: f64,
}

impl Measure for FeatureMeasure<'_> {
    type Scratch = [Vec<u64>; 2];

    fn least_shared(&self, _: usize) -> usize {
        self.min
    }

    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> twindex::Result<Option<u64>> {
        if !self.grouped.are_compared(later, kept) {
            return Ok(None);
        }
        let [of_later, of_kept] = scratch;
        of_later.clear();
        of_kept.clear();
        let (a, b) = (self.features.set(later, of_later)?, self.features.set(kept, of_kept)?);
        // The index of kept groups has only some bits of each feature, so the whole features are compared here.
        if intersection_from(a, b, self.min).is_none() {
            return Ok(None);
        }
        let score = match &self.verified {
            VerifiedBy::Counted => {
                self.grouped.sets.resemblance_from(later, kept, self.threshold)?.map(Score::counted)
            }
            VerifiedBy::Estimated(signatures) => {
                let score = signatures.estimate(later, kept)?;
                let is_near = |resemblance: twindex::Resemblance| resemblance.at_least(self.threshold);
                Some(score).filter(|score| score.resemblance().is_some_and(is_near))
            }
            VerifiedBy::Not => Some(Score::Candidate),
        };
        Ok(score.map(Score::pack))
    }
}

impl NearGroups {
    /// Decides which groups are kept; groups are near if they agree in the required bands and pass the verification.
    pub(super) fn kept_by_bands(
        BandSearch { corpus, snapshot, agreement, verify }: BandSearch<'_>,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let (watch, grouped) = (Stopwatch::start(), &corpus.grouped);
        let budget = (limits.folder, limits.memory / 2);
        let features = shared_features(snapshot, agreement.bits, grouped.groups.len(), budget, |place| {
            Ok(corpus.group_at(place.key()?.as_key()))
        })?;
        let (kind, verified) = match verify {
            Verify::Exact => (ScoreKind::Resemblance, VerifiedBy::Counted),
            Verify::Signature => {
                let signatures = Signatures::of(corpus, snapshot)?;
                (signatures.kind(), VerifiedBy::Estimated(signatures))
            }
            Verify::None => (ScoreKind::Candidate, VerifiedBy::Not),
        };
        let measure = FeatureMeasure {
            grouped,
            features: &features,
            min: usize::from(agreement.features.max(1)),
            verified,
            threshold: rules.threshold,
        };
        let measured = cover(&features, &measure, rules, limits)?;
        Ok(Self::kept_by(measured, kind, &watch))
    }

    /// Decides which groups are kept by the common elements of sketches. The resemblance is estimated, or computed
    /// exactly.
    pub(super) fn kept_by_sketches(
        grouped: &Grouped,
        verify: Verify,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let (watch, threshold) = (Stopwatch::start(), rules.threshold);
        let Some((by, sketches)) = &grouped.sketches else { return Self::none(grouped, rules, limits) };
        if verify == Verify::Exact {
            let may_be_near = |common: &Common| may_be_near(common, threshold);
            let count = |later: u32, kept: u32, _: &Common| {
                if !grouped.are_compared(later, kept) {
                    return Ok(None);
                }
                let counted = grouped.sets.resemblance_from(later, kept, threshold)?;
                Ok(counted.map(|resemblance| Score::counted(resemblance).pack()))
            };
            let measure = SketchMeasure::new(sketches, *by, may_be_near, count);
            let measured = cover(sketches, &measure, rules, limits)?;
            return Ok(Self::kept_by(measured, ScoreKind::Resemblance, &watch));
        }
        let is_near = |common: &Common| common.resemblance().at_least(threshold);
        let estimate = |later: u32, kept: u32, common: &Common| {
            let are_compared = grouped.are_compared(later, kept);
            Ok(are_compared.then(|| Score::Sampled(Sampled::from(*common)).pack()))
        };
        let measure = SketchMeasure::new(sketches, *by, is_near, estimate);
        let measured = cover(sketches, &measure, rules, limits)?;
        Ok(Self::kept_by(measured, ScoreKind::Sampled, &watch))
    }

    fn kept_by(measured: MeasuredCover, kind: ScoreKind, watch: &Stopwatch) -> Self {
        Self {
            pairs: None,
            decided: GroupDecision::Leaders { by: measured.by, scores: measured.scores },
            kind,
            candidates: measured.comparisons,
            counted: None,
            capped: Capped::default(),
            most_common: Vec::new(),
            seconds: (watch.cpu_seconds(), 0.0),
        }
    }
}

fn cover(
    elements: &ShingleSets,
    measure: &impl Measure,
    rules: &KeepRules<'_>,
    limits: &JoinLimits<'_>,
) -> twindex::Result<MeasuredCover> {
    let priority = Priority {
        order: rules.order,
        fixed: rules.fixed,
        max: rules.most_comparisons,
        by_index: true,
        watched: limits.watched,
    };
    let threads = rayon::current_num_threads();
    cover_measured(
        elements,
        measure,
        priority,
        JoinResources { dir: limits.folder, memory: limits.memory / 2, threads },
    )
}
