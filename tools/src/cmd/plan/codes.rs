//! The plan of an index of fingerprints of more than 64 bits.

use serde::Serialize;
use twindex::format::DOCUMENTS_MAX;
use twindex::params::CodeParams;
use twindex::planner::codes::CodePlan;

use crate::report::{bytes_of_mean, count};

/// The numbers of queries that are planned together.
const TOGETHER: [usize; 3] = [1, 64, 512];

/// The statistics that `--json` prints. Sizes and times are sums over all segments.
#[derive(Serialize)]
pub(super) struct CodesReport {
    documents: u64,
    bits: u16,
    within: u16,
    segments: u64,
    /// Number of parts that a segment has; 0 if it has none.
    parts: u32,
    /// Number of bytes that the parts take for each fingerprint.
    bytes_per_fingerprint: f64,
    bytes: f64,
    queries: Vec<QueriesLine>,
}

/// How queries that arrive together are answered.
#[derive(Serialize)]
struct QueriesLine {
    together: usize,
    by_parts: bool,
    us_per_query: f64,
    scan_us_per_query: f64,
}

impl CodesReport {
    pub(super) fn of(documents: u64, codes: CodeParams) -> Self {
        let segments = documents.div_ceil(DOCUMENTS_MAX);
        let rows = documents.div_ceil(segments);
        let plan = |together| CodePlan::of(codes, rows, codes.near.into(), together);
        let line = |together| {
            let plan = plan(together);
            QueriesLine {
                together,
                by_parts: plan.by_parts,
                us_per_query: plan.microseconds * segments as f64,
                scan_us_per_query: plan.scan_microseconds * segments as f64,
            }
        };
        let CodePlan { parts, bytes: each, .. } = plan(1);
        Self {
            documents,
            bits: codes.bits,
            within: codes.near,
            segments,
            parts: parts.unwrap_or(0),
            bytes_per_fingerprint: each,
            bytes: each * documents as f64,
            queries: TOGETHER.map(line).into(),
        }
    }

    pub(super) fn to_lines(&self) -> Vec<String> {
        let parts = match self.parts {
            0 => "no parts: each query compares all fingerprints".to_owned(),
            parts => format!(
                "{parts} parts of {:.1} bytes for each fingerprint, {} in all",
                self.bytes_per_fingerprint,
                bytes_of_mean(self.bytes)
            ),
        };
        let line = |line: &QueriesLine| {
            let QueriesLine { together, by_parts, us_per_query, scan_us_per_query } = line;
            let time = |us: f64| {
                if us < 10_000.0 { format!("{us:.0} us") } else { format!("{:.0} ms", us / 1000.0) }
            };
            let (own, scan) = (time(*us_per_query), time(*scan_us_per_query));
            let how = if *by_parts {
                format!("by parts {own}, by a scan {scan}")
            } else {
                format!("by a scan {own}")
            };
            let queries = if *together == 1 {
                "one query alone".to_owned()
            } else {
                format!("{together} queries together")
            };
            format!("  {queries:22}{how}")
        };
        let head = format!(
            "{} fingerprints of {} bits within {}: {parts}",
            count(self.documents),
            self.bits,
            self.within
        );
        let note = "Times are predicted for one core with AVX-512, random bits, and everything in memory."
            .to_owned();
        [head].into_iter().chain(self.queries.iter().map(line)).chain([note]).collect()
    }
}
