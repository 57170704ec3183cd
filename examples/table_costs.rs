//! Compares measured and predicted costs of a segment's tables: bytes, probes, and nanoseconds per query.
//!
//! ```sh
//! cargo run --release --example table_costs -- 10000000 3 blocks-4/planes+3 blocks-2/compact+3
//! ```
//!
//! Fingerprints are uniform, half of the queries are 0 to 3 bits from a stored fingerprint, batches have 2^17 queries,
//! and the segment is mapped and warm. The time is the median of passes of 2^17 queries. Before a query is repeated, at
//! least 2^19 others run, so that caches and the TLB are only as warm as in practice. (The fastest tenth of the passes
//! would exclude other load on the machine, but also favour passes with more cache hits.) The columns are:
//! fingerprints, radius, scheme, measured and predicted nanoseconds per query, the ratio of prediction to measurement,
//! bytes of the tables (stored and predicted), probes, and seconds to build. `scripts/experiment fit_costs` reads the
//! first four.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use random::Random;
use twindex::design::{CodecChoice, DesignChoice};
use twindex::format::contents::Kind;
use twindex::planner::cost;
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};

#[path = "../tests/support/random.rs"]
mod random;

const TOGETHER: usize = 1 << 17;
const QUERIES: usize = 1 << 19;
const SECONDS: u64 = 3;

fn segment(dir: &Path, scheme: &str, within: u8, fingerprints: &[u64]) -> Result<Segment, Box<dyn Error>> {
    let (design, codec) = scheme.split_once('/').unwrap_or((scheme, "auto"));
    let (design, codec): (DesignChoice, CodecChoice) = (design.parse()?, codec.parse()?);
    let params = Params::builder().u64_keys().simhash(within).tables(design, codec).build()?;
    let mut records = Records::new(&params);
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() }))?;
    }
    let path = dir.join("000001.seg");
    build::build(&records, &RealVfs, dir)?.publish(&path)?;
    Ok(Segment::open(&RealVfs, &path)?)
}

/// Returns the median nanoseconds per query of all passes.
fn measure(segment: &Segment, queries: &[u64], within: u32, tables: u32) -> Result<f64, Box<dyn Error>> {
    // Read every page once, because the first access to a page verifies its checksum.
    for table in 1..=tables as usize {
        segment.for_each_table_row(table, |_, _| Ok(()))?;
    }
    let mut scratch = SearchScratch::default();
    let mut times = Vec::new();
    let start = Instant::now();
    for pass in queries.chunks_exact(TOGETHER).cycle() {
        let begun = Instant::now();
        segment.search(pass, SearchOptions::within(within), &mut scratch, |_, _| {
            Ok(ControlFlow::Continue(()))
        })?;
        times.push(begun.elapsed().as_nanos() as f64 / TOGETHER as f64);
        if start.elapsed().as_secs() >= SECONDS {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: table_costs FINGERPRINTS WITHIN DESIGN/CODECS...";
    let mut args = std::env::args().skip(1);
    let (rows, within): (usize, u8) =
        (args.next().ok_or(usage)?.parse()?, args.next().ok_or(usage)?.parse()?);
    let mut random = Random(1 + rows as u64);
    let fingerprints: Vec<u64> = (0..rows).map(|_| random.next()).collect();
    let mut random = Random(0xABC_DEF0);
    let queries: Vec<u64> = (0..QUERIES)
        .map(|place| {
            let stored = fingerprints[((u128::from(random.next()) * rows as u128) >> 64) as usize];
            let flips = random.next() % 4;
            let near = (0..flips).fold(stored, |value, _| value ^ 1 << (random.next() % 64));
            if place % 2 == 0 { random.next() } else { near }
        })
        .collect();
    for scheme in args {
        let dir = tempfile::tempdir()?;
        let built = Instant::now();
        let segment = segment(dir.path(), &scheme, within, &fingerprints)?;
        let built = built.elapsed().as_secs_f64();
        let of_tables = |kind| matches!(kind, Kind::Table | Kind::FilterTable);
        let bytes: u64 = segment.sections().iter().filter(|s| of_tables(s.kind)).map(|s| s.length).sum();
        let scheme = segment.scheme().ok_or("no tables")?;
        let nanos = measure(&segment, &queries, within.into(), scheme.design.tables())?;
        let cost = cost::cost(scheme, within.into(), rows as u64)?;
        println!(
            "{rows}\t{within}\t{scheme}\t{nanos:.1}\t{:.1}\t{:.2}\t{bytes}\t{}\t{}\t{built:.1}",
            cost.nanos(),
            cost.nanos() / nanos,
            cost.bytes,
            cost.probes,
        );
    }
    Ok(())
}
