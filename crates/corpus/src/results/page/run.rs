//! The page about a run of `dedup`. It needs no index: a run has decided about each document.

use std::collections::BTreeMap;
use std::path::Path;

use crate::results::page::chart::{Chart, Scale};
use crate::results::page::figures::{BINS, ClusterFigures, name_of};
use crate::results::page::html::{begin, clusters, end, hosts, summary};
use crate::results::page::report::write_whole;
use crate::rule::score::{Score, ScoreKind};
use crate::urls::hosts::Hosts;
use crate::work::numbers::count;

/// The numbers that the page shows.
pub(crate) struct RunFigures<'r> {
    /// The results folder. The page is named after it.
    pub(crate) out: &'r Path,
    /// Number of documents of the run, and of those that are kept.
    pub(crate) documents: u64,
    pub(crate) kept: u64,
    /// Number of documents that were removed because of a document of a history; `None` without a history.
    pub(crate) dropped: Option<u64>,
    pub(crate) clusters: ClusterFigures,
    pub(crate) scores: ScoreCounts,
    /// Statistics of duplicates by host; `None` if documents have no URLs.
    pub(crate) hosts: Option<&'r Hosts>,
}

/// Numbers of removed documents by their score against the kept document of their cluster.
pub(crate) struct ScoreCounts {
    kind: ScoreKind,
    /// For each bin of a twentieth, or for each distance, the number of documents.
    counts: BTreeMap<u32, u64>,
}

impl ScoreCounts {
    pub(crate) fn new(kind: ScoreKind) -> Self {
        Self { kind, counts: BTreeMap::new() }
    }

    /// Adds a removed document with a packed score.
    pub(crate) fn add(&mut self, packed: u64) {
        let bin = match self.kind.unpack(packed) {
            Score::Distance(distance) => distance,
            // The last bin includes 1, and equal texts without shingles.
            Score::Resemblance { intersection, union } => {
                let bin = (u64::from(intersection) * BINS as u64).checked_div(union.into());
                bin.map_or(BINS as u32, |bin| bin as u32).min(BINS as u32 - 1)
            }
        };
        *self.counts.entry(bin).or_default() += 1;
    }

    /// Returns the section of the page; empty if no document was removed.
    fn html(&self) -> String {
        let Some((&last, most)) = self.counts.keys().next_back().zip(self.counts.values().max()) else {
            return String::new();
        };
        let (name, x, width) = match self.kind {
            ScoreKind::Resemblance => ("resemblance", Scale::Linear(0.0, 1.0), 1.0 / BINS as f64),
            ScoreKind::Containment => ("containment", Scale::Linear(0.0, 1.0), 1.0 / BINS as f64),
            ScoreKind::Distance => ("distance in bits", Scale::Linear(0.0, f64::from(last.max(4) + 1)), 1.0),
        };
        let mut chart = Chart::new(x, Scale::log_to(*most as f64));
        let bars = self.counts.iter().map(|(&bin, &documents)| (f64::from(bin), documents as f64));
        chart.bars("a", bars.map(|(bin, documents)| (bin * width, (bin + 1.0) * width, documents)));
        let figure = chart.figure(
            name,
            "documents",
            "Removed documents, by how near they are to the kept document of their cluster; copies included.",
        );
        format!("<h2 id=\"scores\">How near removed documents are</h2>\n{figure}")
    }
}

impl RunFigures<'_> {
    /// Returns the page as HTML.
    pub(crate) fn html(&self) -> String {
        let mut page = begin(&name_of(self.out));
        let removed = self.documents - self.kept;
        let share = removed as f64 * 100.0 / self.documents.max(1) as f64;
        let mut entries = vec![
            ("Documents", count(self.documents)),
            ("Kept", count(self.kept)),
            ("Removed", count(removed)),
            ("of all", format!("{share:.1} %")),
        ];
        entries.extend(self.dropped.map(|dropped| ("Removed for earlier runs", count(dropped))));
        entries.push(("Clusters", count(self.clusters.clusters)));
        summary(&mut page, &entries);
        let about = format!(
            "A cluster is a kept document and the documents that were removed for it, each by itself. Near are {}.",
            self.clusters.near
        );
        clusters(&mut page, &self.clusters, &about);
        page.push_str(&self.scores.html());
        if let Some(found) = self.hosts {
            hosts(&mut page, found);
        }
        end(page)
    }

    /// Writes the page to a temporary file, and then renames it to `path`.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_whole(path, &self.html())
    }
}
