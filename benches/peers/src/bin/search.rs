//! Fingerprints within radius 3 of queries: this crate, mih-rs, and the textbook's four sorted tables in memory.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin search -- FINGERPRINTS [ROUNDS]`
//!
//! Uniform fingerprints; as many distinct queries, a million at most, half of which are a stored one with up to three
//! bits flipped. The contestants answer all of them once a round, in turn, and must agree on the number of answers.
//! twindex has its segment in a mapped file with checksums, the others have theirs in memory. Seconds are those of the
//! processor on this thread; ratios are medians of those within a round, as a shared machine changes between rounds.

use std::fs;
use std::hint::black_box;
use std::ops::ControlFlow;

use anyhow::{Context, Result, ensure};
use measure::{Random, cpu_seconds, median};
use twindex::segment::records::Kept;
use twindex::segment::{Ask, Records, Scratch, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};

#[path = "../measure.rs"]
mod measure;

const WITHIN: u32 = 3;

/// The textbook: a table for each block of 16 bits, sorted with it in front, its rows found through a directory.
struct Textbook {
    tables: Vec<(Vec<u32>, Vec<u64>)>,
}

impl Textbook {
    fn new(fingerprints: &[u64]) -> Self {
        let tables = (0..4)
            .map(|block| {
                let mut rows: Vec<u64> =
                    fingerprints.iter().map(|value| value.rotate_left(16 * block)).collect();
                rows.sort_unstable();
                let mut starts = vec![0_u32; (1 << 16) + 1];
                for row in &rows {
                    starts[(row >> 48) as usize + 1] += 1;
                }
                for bucket in 0..1 << 16 {
                    starts[bucket + 1] += starts[bucket];
                }
                (starts, rows)
            })
            .collect();
        Self { tables }
    }

    fn count(&self, query: u64) -> u64 {
        let mut count = 0;
        for (block, (starts, rows)) in (0_u32..).zip(&self.tables) {
            let query = query.rotate_left(16 * block);
            let bucket = (query >> 48) as usize;
            for row in &rows[starts[bucket] as usize..starts[bucket + 1] as usize] {
                let differ = row ^ query;
                // Blocks of earlier tables follow from the right: equal in one of them, and it was counted there.
                let counted = (0..block).any(|earlier| differ >> (16 * earlier) & 0xFFFF == 0);
                count += u64::from(differ.count_ones() <= WITHIN && !counted);
            }
        }
        count
    }
}

fn segment(dir: &tempfile::TempDir, fingerprints: &[u64]) -> Result<Segment> {
    let mut records = Records::new(&Params::builder().u64_keys().simhash(WITHIN as u8).build()?);
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() }))?;
    }
    let path = dir.path().join("000001.seg");
    build::build(&records, &RealVfs, dir.path())?.publish(&path)?;
    Ok(Segment::open(&RealVfs, &path)?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().context("expected a number of fingerprints")?.parse()?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    ensure!(count > 0 && rounds > 0, "expected at least one fingerprint and one round");
    let mut random = Random(1);
    let fingerprints: Vec<u64> = (0..count).map(|_| random.next()).collect();
    let queries: Vec<u64> = (0..count.min(1_000_000))
        .map(|i| {
            if i % 2 == 0 {
                return random.next();
            }
            let stored = fingerprints[random.below(count)];
            random.flip(stored, WITHIN as usize)
        })
        .collect();

    let dir = tempfile::tempdir()?;
    let segment = segment(&dir, &fingerprints)?;
    #[allow(clippy::disallowed_methods, reason = "asks for a size behind the library's back")]
    let bytes = fs::metadata(dir.path().join("000001.seg"))?.len();
    let mih = mih_rs::Index::new(fingerprints.clone()).map_err(|error| anyhow::anyhow!("mih-rs: {error}"))?;
    let mut mih = mih.range_searcher();
    let textbook = Textbook::new(&fingerprints);
    let mut scratch = Scratch::default();
    let mut together = |size: usize| -> Result<u64> {
        let mut hits = 0;
        for queries in queries.chunks(size) {
            segment.search(queries, Ask::within(WITHIN), &mut scratch, |_, _| {
                hits += 1;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(hits)
    };
    let names =
        ["twindex, all together", "twindex, 16 together", "twindex, one at a time", "mih-rs", "textbook"];
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut found = None;
    for _ in 0..rounds {
        for (contestant, seconds) in seconds.iter_mut().enumerate() {
            let start = cpu_seconds();
            let hits = match contestant {
                0 => together(usize::MAX)?,
                1 => together(16)?,
                2 => {
                    let mut hits = 0;
                    for &query in &queries {
                        segment.within(black_box(query), WITHIN, |_| hits += 1)?;
                    }
                    hits
                }
                3 => {
                    queries.iter().map(|&query| mih.run(black_box(query), WITHIN as usize).len() as u64).sum()
                }
                _ => queries.iter().map(|&query| textbook.count(black_box(query))).sum(),
            };
            seconds.push(cpu_seconds() - start);
            let expected = *found.get_or_insert(hits);
            ensure!(hits == expected, "{} found {hits}, another one {expected}", names[contestant]);
        }
    }

    println!(
        "{count} fingerprints, {} queries within {WITHIN}, {} answers, medians of {rounds} rounds; twindex's file: {:.1} bytes \
         a fingerprint, keys included",
        queries.len(),
        found.unwrap_or_default(),
        bytes as f64 / count as f64
    );
    for (contestant, name) in names.iter().enumerate() {
        let ns = median(seconds[contestant].clone()).0 / queries.len() as f64 * 1e9;
        print!("{name:<24} {ns:>9.0} ns a query");
        if contestant < 3 {
            for peer in 3..names.len() {
                let ratios =
                    seconds[peer].iter().zip(&seconds[contestant]).map(|(peer, own)| peer / own).collect();
                let (ratio, least, most) = median(ratios);
                print!("  {ratio:>5.1} x {} ({least:.1}..{most:.1})", names[peer]);
            }
        }
        println!();
    }
    Ok(())
}
