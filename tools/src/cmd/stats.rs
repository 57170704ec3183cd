//! `twindex stats`: what is in an index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::format::contents::Kind;
use twindex::params::SimhashWeights;
use twindex::{Index, Snapshot};

use super::idf::Table;
use crate::options::Output;
use crate::report::{self, count};

/// Options of `stats`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex stats pages.twx --json | jq .bytes_per_fingerprint")]
pub(crate) struct Stats {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Where the bytes of an index go.
pub(crate) struct Space {
    /// Bytes by kind of section; `other` is headers, contents, checksums, gaps, the manifest and `CURRENT`.
    pub(crate) sections: BTreeMap<&'static str, u64>,
    /// Of the files that make up the index now: not of earlier generations, the lock, or files of others.
    pub(crate) on_disk: u64,
    /// Distinct fingerprints, counted by segment.
    pub(crate) distinct: u64,
}

impl Space {
    pub(crate) fn of(snapshot: &Snapshot, dir: &Path) -> Self {
        let mut sections: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut distinct = 0;
        // What is in the log is no segment on disk.
        let on_disk = snapshot.entries().len();
        for (place, (segment, _)) in snapshot.segments().enumerate() {
            distinct += segment.distinct_fingerprints();
            if place >= on_disk {
                continue;
            }
            for section in segment.sections() {
                *sections.entry(section.kind.name()).or_default() += section.length;
            }
        }
        // The lengths of segments are the manifest's. Another process may have removed the manifest since.
        let manifest = format!("MANIFEST-{:06}", snapshot.manifest().generation);
        let length = |name: &str| std::fs::metadata(dir.join(name)).map_or(0, |metadata| metadata.len());
        let segments: u64 = snapshot.entries().iter().map(|entry| entry.length).sum();
        let on_disk = segments + length("CURRENT") + length(&manifest);
        let idf = match snapshot.params().simhash.map(|simhash| simhash.weights) {
            Some(SimhashWeights::Idf { table }) => length(&format!("IDF-{table:032x}")),
            _ => 0,
        };
        sections.insert("idf", idf);
        let log: u64 = snapshot
            .manifest()
            .logged
            .iter()
            .flat_map(|logged| &logged.logs)
            .map(|log| length(&format!("LOG-{:06}", log.number)))
            .sum();
        sections.insert("log", log);
        let on_disk = on_disk + idf + log;
        let named: u64 = sections.values().sum();
        sections.insert("other", on_disk.saturating_sub(named));
        Self { sections, on_disk, distinct }
    }

    /// Bytes of all that grows with fingerprints: everything but keys, values, stamps, the ranks and postings that tie
    /// documents to fingerprints, the IDF table and the log.
    pub(crate) fn per_fingerprint(&self) -> f64 {
        let kinds = [Kind::Keys, Kind::Ranks, Kind::Postings, Kind::Values, Kind::Stamps].map(Kind::name);
        let names = kinds.iter().copied().chain(["idf", "log"]);
        let of_documents: u64 = names.filter_map(|name| self.sections.get(name)).sum();
        if self.distinct == 0 {
            return 0.0;
        }
        self.on_disk.saturating_sub(of_documents) as f64 / self.distinct as f64
    }
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    documents: u64,
    deleted: u64,
    /// Documents that are in the log and in no segment yet.
    logged_documents: u64,
    distinct_fingerprints: u64,
    segments: usize,
    generation: u64,
    /// The last commit that is known to be durable. A record of the log says so of those before it, so that of a writer
    /// at work the last commit or two are not known yet.
    last_durable_commit: u64,
    /// The highest stamp, where documents expire.
    now: Option<u64>,
    /// Bytes of segments and logs for each byte of what is live of them, by the number of documents: what `compact`
    /// would save, about.
    space_amplification: f64,
    uuid: String,
    /// The table design and codecs of its segments, each once.
    design: String,
    params: BTreeMap<&'static str, String>,
    /// Of the IDF table, if there is one and it is sound; `verify` tells what is wrong with it.
    idf: Option<Table>,
    bytes: BTreeMap<&'static str, u64>,
    bytes_on_disk: u64,
    bytes_per_fingerprint: f64,
}

/// Bytes on disk over those of what is live.
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

/// What the tables of the segments are, each once; `none` where no fingerprints are kept.
fn designs(snapshot: &Snapshot) -> String {
    let mut schemes: Vec<String> =
        snapshot.segments().filter_map(|(segment, _)| Some(segment.scheme()?.to_string())).collect();
    schemes.sort_unstable();
    schemes.dedup();
    if schemes.is_empty() { "none".to_string() } else { schemes.join(", ") }
}

impl Stats {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
        let space = Space::of(&snapshot, &self.index);
        let report = Report {
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
            idf: index.idf().ok().flatten().map(|table| Table::of(&table)),
            bytes_on_disk: space.on_disk,
            bytes_per_fingerprint: space.per_fingerprint(),
            bytes: space.sections,
        };
        if self.output.json {
            report::print_json(&report)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut lines = vec![format!("{}", self.index.display())];
        for (what, number) in [
            ("documents", report.documents),
            ("deleted or replaced", report.deleted),
            ("in the log", report.logged_documents),
            ("distinct fingerprints", report.distinct_fingerprints),
            ("segments", report.segments as u64),
            ("generation", report.generation),
            ("last durable commit", report.last_durable_commit),
            ("bytes on disk", report.bytes_on_disk),
        ] {
            lines.push(format!("  {what:<22} {:>15}", count(number)));
        }
        for (section, bytes) in report.bytes.iter().filter(|(_, bytes)| **bytes > 0) {
            lines.push(format!("    {section:<20} {:>15}", count(*bytes)));
        }
        if let Some(idf) = &report.idf {
            lines.push(format!("  idf table: {}", idf.told()));
        }
        lines.push("  parameters".to_string());
        for (name, value) in snapshot.params().fields() {
            lines.push(format!("    {name:<20} {value:>15}"));
        }
        report::print_lines(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}
