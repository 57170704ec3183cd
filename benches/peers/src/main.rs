//! Compares the time to compute a simhash, 84 minima and 6 features from text: with this crate, at every SIMD level, and
//! with gaoya.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml -- FILE.jsonl [ROUNDS]`
//!
//! All documents are read into memory first. In each round, every contestant processes all documents, so that a slow
//! phase of the machine affects all of them; the result is the median of the rounds. gaoya is used as its users would:
//! words are split at white space, shingles of 5 words are joined to strings, and signatures have 84 minima of 32 bits.
//! gaoya computes neither a simhash nor features here, which is an advantage for it.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use gaoya::minhash::{MinHasher, MinHasher32};
use twindex::Params;
use twindex::sketch::{Scratch, Sketch, Sketcher};
use twindex_kernel::Level;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("expected the path of a JSONL file")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |rounds| rounds.parse())?;
    let mut texts = Vec::new();
    for line in std::fs::read_to_string(&path)?.lines() {
        let document: serde_json::Value = serde_json::from_str(line)?;
        texts.push(document["text"].as_str().context("a line without text")?.to_owned());
    }
    let bytes: usize = texts.iter().map(String::len).sum();

    let params = Params::builder().words(5).simhash(3).minhash(6, 14).build()?;
    let sketcher = Sketcher::new(&params)?;
    let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    let mut levels: Vec<(String, Level, Vec<f64>)> = Level::ALL
        .into_iter()
        .filter(|level| level.is_available())
        .map(|level| (format!("twindex, {level}"), level, Vec::new()))
        .collect();
    let gaoya = MinHasher32::new(84);
    let mut of_gaoya = Vec::new();
    for _ in 0..rounds {
        for (_, level, seconds) in &mut levels {
            let sketcher = sketcher.clone().at(*level);
            let start = Instant::now();
            for text in &texts {
                sketcher.sketch_into(black_box(text), &mut scratch, &mut sketch)?;
                black_box(&sketch);
            }
            seconds.push(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        for text in &texts {
            let words: Vec<&str> = black_box(text).split_whitespace().collect();
            let shingles: Vec<String> = if words.len() < 5 {
                vec![words.join(" ")]
            } else {
                words.windows(5).map(|five| five.join(" ")).collect()
            };
            black_box(gaoya.create_signature(shingles.iter()));
        }
        of_gaoya.push(start.elapsed().as_secs_f64());
    }

    let median = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let of_gaoya = median(&mut of_gaoya);
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{path}: {} documents, {:.1} MB of text, median of {rounds} rounds",
        texts.len(),
        bytes as f64 / 1e6
    );
    println!("{:<20} {:>8.1} MB/s", "gaoya", rate(of_gaoya));
    for (name, _, seconds) in &mut levels {
        let seconds = median(seconds);
        println!("{name:<20} {:>8.1} MB/s  {:>5.1} times gaoya", rate(seconds), of_gaoya / seconds);
    }
    Ok(())
}
