//! Writes the near-duplicate pairs of a JSONL file, found by gaoya as its users would use it: one thread, words split at
//! white space, shingles of 5 words, and 16 bands of 8 minima of 32 bits. Pairs are accepted by the resemblance estimated
//! from the signatures.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin pairs_gaoya -- FILE.jsonl PAIRS.tsv [THRESHOLD]`

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::{Context, Result};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("expected the path of a JSONL file")?;
    let out = arguments.next().context("expected the path of a file to make")?;
    let threshold: f64 = arguments.next().map_or(Ok(0.8), |threshold| threshold.parse())?;
    let hasher = MinHasher32::new(128);
    let mut index = MinHashIndex::new(16, 8, threshold);
    let (mut keys, mut signatures) = (Vec::new(), Vec::new());
    for line in BufReader::new(File::open(&path)?).lines() {
        let document: serde_json::Value = serde_json::from_str(&line?)?;
        let text = document["text"].as_str().context("a line without text")?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let shingles: Vec<String> = if words.len() < 5 {
            vec![words.join(" ")]
        } else {
            words.windows(5).map(|five| five.join(" ")).collect()
        };
        let signature = hasher.create_signature(shingles.iter());
        index.insert(keys.len(), signature.clone());
        keys.push(document["id"].as_str().context("a line without id")?.to_owned());
        signatures.push(signature);
    }
    let mut out = BufWriter::new(File::create(&out)?);
    for (number, signature) in signatures.iter().enumerate() {
        for &other in index.query(signature) {
            if number < other {
                writeln!(out, "{}\t{}", keys[number], keys[other])?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
