//! Measures how much fingerprints change when their IDF table is rebuilt from a larger collection.
//!
//! ```sh
//! cargo run --release -p twindex-tools --example idf_drift -- pages.jsonl [...]
//! ```
//!
//! For each file, sorts the documents by the hashes of their texts, and builds IDF tables from the first 10, 25 and 50
//! % of the documents and from all documents. Compares each document's fingerprint with a partial table and with the
//! full table. Prints, for shingles of one word and of five words: the mean Hamming distance, the largest distance, and
//! the percentage of documents whose fingerprint changed by more than 0, 3 and 6 bits. Also compares unweighted
//! fingerprints with those of the full table.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use anyhow::{Context, bail};
use rayon::prelude::*;
use twindex::IdfBuilder;
use twindex::Params;
use twindex::params::Shingling;
use twindex::sketch::{Buffers, Fingerprint, IdfTable, Shingler, simhash};
use xxhash_rust::xxh3::xxh3_64;

const SHARES: [usize; 4] = [10, 25, 50, 100];

fn main() -> anyhow::Result<()> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        bail!("name JSONL files with a field `text`");
    }
    println!("| corpus | documents | words | table of | entries | mean | > 0 | > 3 | > 6 | most |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for file in files {
        let texts = texts(&file).with_context(|| file.clone())?;
        for width in [1, 5] {
            measure(&file, &texts, width)?;
        }
    }
    Ok(())
}

/// Returns the texts of a file in the order of their hashes.
fn texts(file: &str) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for line in BufReader::new(File::open(file)?).lines() {
        let object: serde_json::Value = serde_json::from_str(&line?)?;
        let text = object["text"].as_str().context("a line without `text`")?;
        texts.push(text.to_owned());
    }
    texts.sort_by_cached_key(|text| xxh3_64(text.as_bytes()));
    Ok(texts)
}

fn measure(file: &str, texts: &[String], width: u8) -> anyhow::Result<()> {
    let shingling = Params::builder().shingling(Shingling::words(width, 0)).simhash(3).build()?.shingling;
    let shingler = Shingler::new(&shingling)?;
    let documents: Vec<Vec<u64>> = texts
        .par_iter()
        .map_init(Buffers::default, |buffers, text| {
            let mut shingles = Vec::new();
            shingler.occurrences(text, buffers, &mut shingles);
            shingles
        })
        .filter(|shingles| !shingles.is_empty())
        .collect();
    let table = |share: usize| -> anyhow::Result<Arc<IdfTable>> {
        let mut builder = IdfBuilder::new(&shingling);
        for document in &documents[..documents.len() * share / 100] {
            builder.add(document)?;
        }
        Ok(Arc::new(builder.finish()?))
    };
    let by = |table: &IdfTable| -> Vec<Fingerprint> {
        documents.par_iter().map(|document| table.simhash(document)).collect()
    };
    let last = by(&*table(100)?);
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".jsonl");
    let row = |what: &str, entries: String, fingerprints: &[Fingerprint]| {
        let moved: Vec<u32> = fingerprints.iter().zip(&last).map(|(a, b)| a.distance(*b)).collect();
        let count = moved.len().max(1) as f64;
        let share = |over: u32| moved.iter().filter(|&&bits| bits > over).count() as f64 * 100.0 / count;
        println!(
            "| {name} | {} | {width} | {what} | {entries} | {:.2} | {:.1} % | {:.1} % | {:.2} % | {} |",
            documents.len(),
            f64::from(moved.iter().sum::<u32>()) / count,
            share(0),
            share(3),
            share(6),
            moved.iter().max().copied().unwrap_or(0)
        );
    };
    for share in SHARES {
        let table = table(share)?;
        row(&format!("{share} %"), table.len().to_string(), &by(&table));
    }
    let plain: Vec<Fingerprint> = documents.par_iter().map(|document| simhash(document)).collect();
    row("none", "-".into(), &plain);
    Ok(())
}
