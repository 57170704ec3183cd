//! Tests on real corpora with known near-duplicate pairs. The corpora are not in this repository; tests are skipped
//! without them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Bench, corpora};

fn unpack(path: &Path) -> String {
    let packed = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(zstd::decode_all(packed.as_slice()).unwrap()).unwrap()
}

type Pairs = BTreeSet<(String, String, u64, u64)>;

/// Reads the pairs of a truth table with a resemblance of at least 0.8: keys, intersection and union.
fn truth(path: &Path) -> Pairs {
    let table = unpack(path);
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("#id_a\tid_b\tintersection\tunion\tjaccard"));
    let pairs = lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let (a, b) = (fields[0].min(fields[1]), fields[0].max(fields[1]));
        (a.to_owned(), b.to_owned(), fields[2].parse().unwrap(), fields[3].parse().unwrap())
    });
    pairs.filter(|&(_, _, both, all)| 10 * both >= 8 * all).collect()
}

/// Returns the pairs that an index finds at a threshold of 0.8.
fn found(corpus: &Path) -> Pairs {
    let bench = Bench::new();
    bench.ok(&format!("build i.twx {} --near 0.8 -q", corpus.display()));
    let table = bench.ok("pairs i.twx -q");
    let pairs: Pairs = table
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[0].into(), fields[1].into(), fields[3].parse().unwrap(), fields[4].parse().unwrap())
        })
        .collect();
    assert_eq!(pairs.len(), table.lines().count(), "each pair once");
    pairs
}

#[test]
fn exactly_the_planted_pairs_of_1000_articles_are_found() {
    let Some(folder) = corpora() else { return };
    let truth = truth(&folder.join("articles1000.truth.tsv.zst"));
    assert_eq!(truth.len(), 10);
    assert_eq!(found(&folder.join("articles1000.jsonl.zst")), truth);
}

#[test]
fn nearly_all_pairs_of_20_000_pages_are_found() {
    let Some(folder) = corpora() else { return };
    let truth = truth(&folder.join("tldr.truth.tsv.zst"));
    let found = found(&folder.join("tldr.jsonl.zst"));
    let right = found.intersection(&truth).count() as f64;
    let (precision, recall) = (right / found.len() as f64, right / truth.len() as f64);
    println!("{} pairs, {} found: precision {precision:.5}, recall {recall:.5}", truth.len(), found.len());
    assert!(truth.len() > 7000, "a test of something");
    assert!(precision >= 0.999 && recall >= 0.97, "precision {precision}, recall {recall}");
}
