//! The chart of the scores of removed documents.

use std::collections::BTreeMap;

use crate::results::page::chart::{Chart, Scale};
use crate::rule::score::{Score, ScoreKind};
use crate::settings::near::Near;

/// Number of bars between the threshold and 1.
const BARS: u32 = 20;

/// Numbers of removed documents by their score against the kept document of their cluster.
pub(crate) struct ScoreCounts {
    kind: ScoreKind,
    near: Near,
    /// For each part of the range from the threshold to 1, or for each distance, the number of documents.
    counts: BTreeMap<u32, u64>,
}

impl ScoreCounts {
    pub(crate) fn new(kind: ScoreKind, near: Near) -> Self {
        Self { kind, near, counts: BTreeMap::new() }
    }

    pub(crate) fn kind(&self) -> ScoreKind {
        self.kind
    }

    /// Returns the name of the scores.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            ScoreKind::Resemblance => "resemblance",
            ScoreKind::Containment => "containment",
            ScoreKind::Distance => "distance in bits",
        }
    }

    fn threshold(&self) -> f64 {
        // With a threshold of 1, the chart has one bar.
        self.near.threshold().unwrap_or(1.0).min(1.0 - 1e-6)
    }

    /// Adds a removed document.
    pub(crate) fn add(&mut self, score: Score) {
        let bar = match score {
            Score::Distance(distance) => distance,
            Score::Resemblance { .. } => {
                let value = score.resemblance().map_or(1.0, |resemblance| resemblance.value());
                let threshold = self.threshold();
                let start = |bar: u32| threshold + (1.0 - threshold) * f64::from(bar) / f64::from(BARS);
                // The last bar includes 1.
                (1..BARS).rev().find(|&bar| value >= start(bar)).unwrap_or(0)
            }
        };
        *self.counts.entry(bar).or_default() += 1;
    }

    /// Returns the section of the page; empty if no document was removed.
    pub(crate) fn html(&self) -> String {
        let Some((&last, &most)) = self.counts.keys().next_back().zip(self.counts.values().max()) else {
            return String::new();
        };
        let threshold = self.threshold();
        let width = (1.0 - threshold) / f64::from(BARS);
        let (x, at, edge) = match self.kind {
            ScoreKind::Distance => {
                let within = self.near.within().map_or(last, u32::from);
                let bar: Box<dyn Fn(u32) -> f64> = Box::new(f64::from);
                (Scale::Linear(0.0, f64::from(within + 2)), bar, f64::from(within + 1))
            }
            ScoreKind::Resemblance | ScoreKind::Containment => {
                let start = (threshold - 5.0 * width).max(0.0);
                let bar: Box<dyn Fn(u32) -> f64> = Box::new(move |bar| threshold + width * f64::from(bar));
                (Scale::Linear(start, 1.0), bar, threshold)
            }
        };
        let mut chart = Chart::new(x, Scale::linear_to(most as f64));
        let bars = self.counts.iter().map(|(&bar, &documents)| (at(bar), at(bar + 1), documents as f64));
        chart.bars("a", bars);
        chart.line("c", [(edge, 0.0), (edge, most as f64)]);
        chart.legend("a", "removed documents");
        chart.legend("c", "threshold");
        let figure = chart.figure(
            self.name(),
            "documents",
            "Removed documents by how near they are to the kept document, without identical ones.",
        );
        format!("<h2 id=\"scores\">How near removed documents are</h2>\n{figure}")
    }
}
