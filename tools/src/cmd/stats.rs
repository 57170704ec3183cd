//! `twindex stats`: prints statistics of an index, or writes a page about it.

mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use serde::Serialize;
use twindex::params::Threshold;
use twindex::{Index, Resources, Snapshot};
use twindex_corpus::page::{GroupSizes, Space};

use self::page::PageArgs;
use super::idf::TableFigures;
use crate::options::{Output, ResourceArgs};
use crate::report::{self, count};

/// Options of `stats`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex stats pages.twx --json | jq .bytes_per_fingerprint\n  \
    twindex stats pages.twx --html page.html\n\n\
    The page is one file, without scripts. It shows how near the pairs are that share a block of their \
    fingerprints or a band, band by band, how likely pairs are to share one beside what is predicted, clusters and \
    their sizes, hosts where keys are URLs, how full buckets are, and where the bytes go. Resemblance is estimated from \
    signatures. With --json its figures are printed.",
    group(ArgGroup::new("computed").args(["groups", "html"]).multiple(true)),
    mut_arg("near", |near| near.requires("html")),
    mut_arg("threads", |threads| threads.requires("computed")),
    mut_arg("memory", |memory| memory.requires("computed"))
)]
pub(crate) struct StatsArgs {
    /// Directory of the index
    index: PathBuf,
    /// Count the groups of near documents by size, which runs queries for each leader (see `groups`)
    #[arg(long)]
    groups: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct StatsReport {
    documents: u64,
    deleted: u64,
    /// Number of documents in the log that are not in a segment yet.
    logged_documents: u64,
    distinct_fingerprints: u64,
    segments: usize,
    generation: u64,
    /// Number of the last commit that is known to be durable. A log record confirms only the commits before it, so the
    /// last one or two commits of an active writer are not included.
    last_durable_commit: u64,
    /// The largest stamp; `None` if documents do not expire.
    now: Option<u64>,
    /// Bytes of segments and logs, divided by an estimate of the bytes of live documents (in proportion to the number of
    /// documents). Shows how much space `merge` would save.
    space_amplification: f64,
    uuid: String,
    /// The distinct table designs and codecs of the segments.
    design: String,
    params: BTreeMap<&'static str, String>,
    /// The near relation of the index. Its fields are null for conditions that it does not use.
    near: NearRelation,
    /// Statistics of the IDF table; `None` if it is missing or damaged. `verify` reports damage.
    idf: Option<TableFigures>,
    bytes: BTreeMap<&'static str, u64>,
    bytes_on_disk: u64,
    bytes_per_fingerprint: f64,
    /// Absent without `--groups`.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<GroupSizes>,
}

/// The conditions under which documents of the index are near.
#[derive(Serialize)]
pub(crate) struct NearRelation {
    /// Smallest resemblance of near documents; `None` if resemblance is not used.
    threshold: Option<f64>,
    /// Largest distance of near fingerprints; `None` if distance is not used.
    within: Option<u16>,
}

impl From<twindex::params::Near> for NearRelation {
    fn from(near: twindex::params::Near) -> Self {
        Self { threshold: near.threshold.map(Threshold::value), within: near.within }
    }
}

/// Returns the bytes on disk divided by the bytes of live data.
fn amplification(snapshot: &Snapshot, space: &Space) -> f64 {
    let on_disk = snapshot.entries().len();
    let (mut all, mut live) = (0.0, 0.0);
    for (segment, deleted) in snapshot.segments().take(on_disk) {
        let (bytes, documents) = (segment.length() as f64, segment.documents() as f64);
        all += bytes;
        live += bytes * (documents - deleted.len() as f64) / documents.max(1.0);
    }
    let logged = space.sections.get("log").copied().unwrap_or(0) as f64;
    if live + logged > 0.0 { (all + logged) / (live + logged) } else { 1.0 }
}

/// Returns the distinct designs of the segments; `none` if the index keeps no fingerprints.
fn designs(snapshot: &Snapshot) -> String {
    let mut schemes: Vec<String> =
        snapshot.segments().filter_map(|(segment, _)| Some(segment.scheme()?.to_string())).collect();
    schemes.sort_unstable();
    schemes.dedup();
    if schemes.is_empty() { "none".to_string() } else { schemes.join(", ") }
}

impl StatsArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(html) = &self.page.html {
            self.page.write(html, &self.index, self.groups, &self.work, &self.output)?;
            return Ok(ExitCode::SUCCESS);
        }
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
        let space = Space::of(&snapshot, &self.index);
        let groups = if self.groups {
            self.work.apply_threads()?;
            let threads = rayon::current_num_threads();
            let resources = Resources { memory: self.work.memory, threads, ..Resources::in_dir(&self.index) };
            Some(GroupSizes::of(&snapshot, &resources)?)
        } else {
            None
        };
        let report = StatsReport {
            documents: snapshot.documents(),
            deleted: snapshot.segments().map(|(_, deleted)| deleted.len()).sum(),
            logged_documents: snapshot.logged_documents(),
            distinct_fingerprints: space.distinct,
            segments: snapshot.entries().len(),
            generation: snapshot.generation(),
            last_durable_commit: snapshot.durable_commit(),
            now: snapshot.now(),
            space_amplification: amplification(&snapshot, &space),
            uuid: format!("{:032x}", snapshot.uuid()),
            design: designs(&snapshot),
            params: snapshot.params().fields().into_iter().collect(),
            near: snapshot.params().near().into(),
            idf: index.idf().ok().flatten().map(|table| TableFigures::of(&table)),
            bytes_on_disk: space.on_disk,
            bytes_per_fingerprint: space.per_fingerprint(),
            bytes: space.sections,
            groups,
        };
        if self.output.json {
            report::print_json(&report)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut lines = vec![format!("{}", self.index.display())];
        // Without tables, fingerprints are not counted.
        let distinct =
            snapshot.params().simhash.map(|_| ("distinct fingerprints", report.distinct_fingerprints));
        let documents = [
            ("documents", report.documents),
            ("deleted or replaced", report.deleted),
            ("in the log", report.logged_documents),
        ];
        for (what, number) in documents.into_iter().chain(distinct).chain([
            ("segments", report.segments as u64),
            ("generation", report.generation),
            ("last durable commit", report.last_durable_commit),
            ("bytes on disk", report.bytes_on_disk),
        ]) {
            lines.push(format!("  {what:<22} {:>15}", count(number)));
        }
        for (section, bytes) in report.bytes.iter().filter(|(_, bytes)| **bytes > 0) {
            lines.push(format!("    {section:<20} {:>15}", count(*bytes)));
        }
        if let Some(idf) = &report.idf {
            lines.push(format!("  idf table: {}", idf.summary()));
        }
        lines.push(format!("  near by: {}", snapshot.params().near()));
        for (what, number) in report.groups.iter().flat_map(GroupSizes::classes) {
            lines.push(format!("  {what:<22} {:>15}", count(number)));
        }
        lines.push("  parameters".to_string());
        for (name, value) in snapshot.params().fields() {
            lines.push(format!("    {name:<20} {value:>15}"));
        }
        report::print_lines(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}
