//! Removes near-duplicates from JSON lines, using only the library. Builds an index on disk, finds pairs that share a band,
//! estimates the resemblance of each pair, forms clusters, and keeps the first document of each cluster.
//!
//! ```sh
//! cargo run --release -p twindex-join --example dedup_jsonl -- pages.jsonl pages.twx 0.8 > kept.jsonl
//! ```
//!
//! `twindex dedup` does more: it computes the exact resemblance from shingles, reads other formats, and reports what it
//! removed and why.

#![allow(
    clippy::disallowed_methods,
    reason = "reads the documents of somebody else, which are no files of an index"
)]

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use twindex::sketch::matches;
use twindex::{Index, KeyBuf, Params, Resemblance};
use twindex_join::{Forest, candidates};

/// Memory for pairs in bytes. Further pairs are written to a scratch file in the directory of the index.
const MEMORY: usize = 256 << 20;
/// In larger buckets, not all documents are paired with each other.
const MAX_BUCKET: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, index, threshold] = arguments.as_slice() else {
        return Err(
            "expected a file of JSON lines, an index to make, and a resemblance, for example 0.8".into()
        );
    };
    let (input, threshold) = (Path::new(input), threshold.parse()?);

    // Keys are line numbers, so the first document of a cluster has the smallest key.
    let params = Params::builder().words(5).minhash(20, 6).u64_keys().build()?;
    let index = Index::create(index, params)?;
    let sketcher = index.sketcher()?;
    let mut writer = index.writer()?;
    let mut count = 0_u32;
    for line in BufReader::new(File::open(input)?).lines() {
        let document: Value = serde_json::from_str(&line?)?;
        let text = document["text"].as_str().ok_or_else(|| format!("line {}: no text", count + 1))?;
        writer.put(u64::from(count), &sketcher.sketch(text)?)?;
        count += 1;
    }
    writer.commit()?;

    let snapshot = index.snapshot();
    let number = |key| match key {
        KeyBuf::U64(key) => key as u32,
        KeyBuf::Bytes(_) => unreachable!("keys are numbers"),
    };
    let budget = (index.path().parent().filter(|dir| dir.is_dir()).unwrap_or(Path::new(".")), MEMORY);
    let pairs = candidates(&snapshot, MAX_BUCKET, budget, |place| Ok(Some(number(place.key()?))))?;
    let minhash = snapshot.params().minhash.ok_or("made with MinHash")?;
    let signature = |document: u32| -> twindex::Result<Vec<u8>> {
        Ok(snapshot.get(u64::from(document))?.map(|record| record.signature).unwrap_or_default())
    };
    let mut forest = Forest::new(count);
    pairs.for_each_batch(|pairs| {
        for &(a, b) in pairs {
            let same = matches(&signature(a)?, &signature(b)?, minhash.minima(), minhash.signature_bits);
            if Resemblance::from_matches(same, minhash.minima(), minhash.signature_bits).at_least(threshold) {
                forest.join(a, b);
            }
        }
        Ok::<_, twindex::Error>(())
    })?;

    let mut out = BufWriter::new(io::stdout().lock());
    let mut kept = 0;
    for (number, line) in (0..).zip(BufReader::new(File::open(input)?).lines()) {
        if forest.root(number) == number {
            writeln!(out, "{}", line?)?;
            kept += 1;
        }
    }
    out.flush()?;
    eprintln!("{kept} of {count} documents kept");
    Ok(())
}
