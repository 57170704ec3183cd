//! Compares searches for all pairs of fingerprints within 3 bits: with this crate, on plain fingerprints and on an index,
//! and with all-pairs-hamming, configured with two chunks of 32 bits, its fastest setting.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin join -- FINGERPRINTS [ROUNDS]`
//!
//! Three in ten fingerprints are copies of earlier ones with up to six bits flipped. In each round, every contestant
//! finds all pairs; all must agree on the number of pairs and on a checksum of them. The index is a segment in a mapped
//! file with checksums, and its pairs are resolved to documents. Times are CPU times of the thread. Ratios are medians of
//! the ratios within a round, because the speed of a shared machine changes between rounds.

use std::hint::black_box;

use anyhow::{Result, ensure};
use measure::{count_and_rounds, cpu_seconds, median};
use pairs::{of_all_pairs_hamming, of_fingerprints, of_index};
use uniform::{WITHIN, clustered, index};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;
#[path = "../pairs.rs"]
mod pairs;
#[path = "../uniform.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod uniform;

fn main() -> Result<()> {
    let (count, rounds) = count_and_rounds()?;
    let fingerprints = clustered(count);

    let dir = tempfile::tempdir()?;
    let snapshot = index(&dir.path().join("join.twx"), &fingerprints)?.snapshot();

    let names = ["twindex, fingerprints", "twindex, index", "all-pairs-hamming"];
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut found = None;
    for _ in 0..rounds {
        for (contestant, seconds) in seconds.iter_mut().enumerate() {
            let start = cpu_seconds();
            let now = match contestant {
                0 => of_fingerprints(black_box(&fingerprints), dir.path(), 1)?,
                1 => of_index(&snapshot, dir.path(), 1)?,
                _ => of_all_pairs_hamming(black_box(&fingerprints))?,
            };
            seconds.push(cpu_seconds() - start);
            let expected = *found.get_or_insert(now);
            ensure!(now == expected, "{} found {now:?}, another one {expected:?}", names[contestant]);
        }
    }

    let pairs = found.unwrap_or_default().pairs;
    println!("{count} fingerprints, {pairs} pairs within {WITHIN}, one thread, medians of {rounds} rounds");
    for (contestant, name) in names.iter().enumerate() {
        print!("{name:<24} {:>8.3} CPU seconds", median(seconds[contestant].clone()).0);
        if contestant < 2 {
            let ratios = seconds[2].iter().zip(&seconds[contestant]).map(|(peer, own)| peer / own).collect();
            let (ratio, least, most) = median(ratios);
            print!("  {ratio:>5.1} x {} ({least:.1}..{most:.1})", names[2]);
        }
        println!();
    }
    Ok(())
}
