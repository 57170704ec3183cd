//! What stays where candidates are found by features or by sketches: each group is compared with kept ones alone, so that
//! nothing that decides is capped.

use twindex::sketch::intersection_from;
use twindex_join::{
    Common, Effort, Measure, Measured, Priority, ShingleSets, SketchMeasure, cover_measured, shared_features,
};

use super::capped::Capped;
use super::groups::Grouped;
use super::near::{BandSearch, Decided, Limits, Near, Verify, may_be_near};
use super::rules::Rules;
use super::score::{Kind, Sampled, Score};
use super::signatures::Signatures;
use crate::watch::Stopwatch;

/// How a pair that shares features is verified.
enum Verified<'a> {
    Counted,
    Estimated(Signatures<'a>),
    Not,
}

/// Groups that share features, as many as asked for, and pass the verification.
struct ByFeatures<'a> {
    grouped: &'a Grouped,
    features: &'a ShingleSets,
    least: usize,
    verified: Verified<'a>,
    threshold: f64,
}

impl Measure for ByFeatures<'_> {
    type Scratch = [Vec<u64>; 2];

    fn least_shared(&self, _: usize) -> usize {
        self.least
    }

    fn score(&self, scratch: &mut Self::Scratch, later: u32, kept: u32) -> twindex::Result<Option<u64>> {
        if !self.grouped.are_compared(later, kept) {
            return Ok(None);
        }
        let [of_later, of_kept] = scratch;
        of_later.clear();
        of_kept.clear();
        let (a, b) = (self.features.set(later, of_later)?, self.features.set(kept, of_kept)?);
        // The index of kept groups knows a part of each feature.
        if intersection_from(a, b, self.least).is_none() {
            return Ok(None);
        }
        let score = match &self.verified {
            Verified::Counted => {
                self.grouped.sets.resemblance_from(later, kept, self.threshold)?.map(Score::counted)
            }
            Verified::Estimated(signatures) => {
                let score = signatures.estimate(later, kept)?;
                let is_near = |resemblance: twindex::Resemblance| resemblance.at_least(self.threshold);
                Some(score).filter(|score| score.resemblance().is_some_and(is_near))
            }
            Verified::Not => Some(Score::Candidate),
        };
        Ok(score.map(Score::pack))
    }
}

impl Near {
    /// What stays by the bands that groups share, and what passes the verification.
    pub(super) fn kept_by_bands(
        BandSearch { corpus, snapshot, agreement, verify }: BandSearch<'_>,
        rules: &Rules<'_>,
        limits: &Limits<'_>,
    ) -> twindex::Result<Self> {
        let (watch, grouped) = (Stopwatch::start(), &corpus.grouped);
        let room = (limits.folder, limits.memory / 2);
        let features = shared_features(snapshot, agreement.bits, grouped.groups.len(), room, |place| {
            Ok(corpus.group_at(place.key()?.as_key()))
        })?;
        let (kind, verified) = match verify {
            Verify::Exact => (Kind::Resemblance, Verified::Counted),
            Verify::Signature => {
                let signatures = Signatures::of(corpus, snapshot)?;
                (signatures.kind(), Verified::Estimated(signatures))
            }
            Verify::None => (Kind::Candidate, Verified::Not),
        };
        let measure = ByFeatures {
            grouped,
            features: &features,
            least: usize::from(agreement.features.max(1)),
            verified,
            threshold: rules.threshold,
        };
        let measured = cover(&features, &measure, rules, limits)?;
        Ok(Self::kept_by(measured, kind, &watch))
    }

    /// What stays by the elements that sketches share, and the resemblance, by an estimate or counted.
    pub(super) fn kept_by_sketches(
        grouped: &Grouped,
        verify: Verify,
        rules: &Rules<'_>,
        limits: &Limits<'_>,
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
            return Ok(Self::kept_by(measured, Kind::Resemblance, &watch));
        }
        let is_near = |common: &Common| common.resemblance().at_least(threshold);
        let estimate = |later: u32, kept: u32, common: &Common| {
            let are_compared = grouped.are_compared(later, kept);
            Ok(are_compared.then(|| Score::Sampled(Sampled::from(*common)).pack()))
        };
        let measure = SketchMeasure::new(sketches, *by, is_near, estimate);
        let measured = cover(sketches, &measure, rules, limits)?;
        Ok(Self::kept_by(measured, Kind::Sampled, &watch))
    }

    fn kept_by(measured: Measured, kind: Kind, watch: &Stopwatch) -> Self {
        Self {
            pairs: None,
            decided: Decided::Leaders { by: measured.by, scores: measured.scores },
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
    rules: &Rules<'_>,
    limits: &Limits<'_>,
) -> twindex::Result<Measured> {
    let priority = Priority {
        order: rules.order,
        fixed: rules.fixed,
        most: rules.most_comparisons,
        by_index: true,
        watched: limits.watched,
    };
    let threads = rayon::current_num_threads();
    cover_measured(
        elements,
        measure,
        priority,
        Effort { dir: limits.folder, memory: limits.memory / 2, threads },
    )
}
