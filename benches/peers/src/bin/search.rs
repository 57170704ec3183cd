//! Compares searches for fingerprints within radius 3 of queries: with this crate, with mih-rs, and with the textbook
//! method of four sorted tables in memory.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin search -- FINGERPRINTS [ROUNDS]`
//!
//! Fingerprints are uniform. There is one query per fingerprint, but at most a million; half of the queries are stored
//! fingerprints with up to three bits flipped. In each round, every contestant runs all queries; all must find the same
//! number of matches. twindex uses segments in mapped files with checksums, one with the default design and one with the
//! design `small`; the others use memory. Times are CPU times of the thread. Ratios are medians of the ratios within a
//! round, because the speed of a shared machine changes between rounds. The last line is the wall time to open the first
//! segment and verify its headers, with a cold and a warm page cache.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use measure::{count_and_rounds, cpu_seconds, median};
use textbook::Textbook;
use twindex::design::DesignChoice;
use twindex::format::contents::Kind;
use twindex::segment::{SearchOptions, SearchScratch, Segment};
use twindex::sys::RealVfs;
use uniform::{WITHIN, forget, segment, uniform};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;
#[path = "../textbook.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod textbook;
#[path = "../uniform.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod uniform;

/// Returns the number of bytes per fingerprint that the tables take, without keys and postings.
fn table_bytes(segment: &Segment) -> f64 {
    let is_table = |kind| matches!(kind, Kind::Table | Kind::FilterTable | Kind::Hot);
    let tables = segment.sections().iter().filter(|section| is_table(section.kind));
    tables.map(|section| section.length).sum::<u64>() as f64 / segment.documents() as f64
}

/// Returns the median time to open a segment, in milliseconds.
fn opening(path: &Path, is_cold: bool) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..9 {
        if is_cold {
            forget(path)?;
        }
        let start = Instant::now();
        black_box(Segment::open(&RealVfs, path)?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(times).0)
}

fn main() -> Result<()> {
    let (count, rounds) = count_and_rounds()?;
    let (fingerprints, queries) = uniform(count, count.min(1_000_000));

    let dir = tempfile::tempdir()?;
    let path = dir.path().join("auto.seg");
    let auto = segment(&path, &fingerprints, DesignChoice::Auto)?;
    let small = segment(&dir.path().join("small.seg"), &fingerprints, DesignChoice::Small)?;
    let mih = mih_rs::Index::new(fingerprints.clone()).map_err(|error| anyhow::anyhow!("mih-rs: {error}"))?;
    let mut mih = mih.range_searcher();
    let textbook = Textbook::new(&fingerprints);
    let mut scratch = SearchScratch::default();
    let mut together = |segment: &Segment, size: usize| -> Result<u64> {
        let mut hits = 0;
        for queries in queries.chunks(size) {
            segment.search(queries, SearchOptions::within(WITHIN), &mut scratch, |_, _| {
                hits += 1;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(hits)
    };
    let names = [
        "twindex, all together",
        "twindex, 16 together",
        "twindex, one at a time",
        "small, all together",
        "mih-rs",
        "textbook",
    ];
    let first_peer = names.len() - 2;
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut found = None;
    for _ in 0..rounds {
        for (contestant, seconds) in seconds.iter_mut().enumerate() {
            let start = cpu_seconds();
            let hits = match contestant {
                0 => together(&auto, usize::MAX)?,
                1 => together(&auto, 16)?,
                2 => {
                    let mut hits = 0;
                    for &query in &queries {
                        auto.within(black_box(query), WITHIN, |_| hits += 1)?;
                    }
                    hits
                }
                3 => together(&small, usize::MAX)?,
                4 => {
                    queries.iter().map(|&query| mih.run(black_box(query), WITHIN as usize).len() as u64).sum()
                }
                _ => {
                    let mut hits = 0;
                    queries.iter().for_each(|&query| textbook.within(black_box(query), |_| hits += 1));
                    hits
                }
            };
            seconds.push(cpu_seconds() - start);
            let expected = *found.get_or_insert(hits);
            ensure!(hits == expected, "{} found {hits}, another one {expected}", names[contestant]);
        }
    }

    println!(
        "{count} fingerprints, {} queries within {WITHIN}, {} answers, medians of {rounds} rounds; bytes a fingerprint without \
         ids: {:.1}, small {:.1}",
        queries.len(),
        found.unwrap_or_default(),
        table_bytes(&auto),
        table_bytes(&small)
    );
    for (contestant, name) in names.iter().enumerate() {
        let ns = median(seconds[contestant].clone()).0 / queries.len() as f64 * 1e9;
        print!("{name:<24} {ns:>9.0} ns a query");
        if contestant < first_peer {
            for peer in first_peer..names.len() {
                let ratios =
                    seconds[peer].iter().zip(&seconds[contestant]).map(|(peer, own)| peer / own).collect();
                let (ratio, least, most) = median(ratios);
                print!("  {ratio:>5.1} x {} ({least:.1}..{most:.1})", names[peer]);
            }
        }
        println!();
    }
    drop((auto, small)); // open maps would keep their pages in the page cache
    println!("opened in {:.2} ms cold, {:.2} ms warm", opening(&path, true)?, opening(&path, false)?);
    Ok(())
}
