//! Rabin fingerprints, rolling hashes and the shingles computed from them are stored in files, so they must never change.
//! This test compares them with `tests/golden/rabin.tsv`, which a second implementation (`tests/second/rabin.py`)
//! computed from the definitions in the module documentation.
//!
//! If this test fails, existing indexes no longer match newly sketched texts. Regenerate the file only after an intended
//! change of the definition, not to make the test pass.

use crate::support::golden::unescape;
use twindex::params::{ShingleHash, Shingling};
use twindex::sketch::{Buffers, Rabin, RabinKarp, Shingler};

const FILE: &str = include_str!("../golden/rabin.tsv");

/// Returns the rows of one kind, without the column that names the kind.
fn rows(kind: &str) -> Vec<Vec<&'static str>> {
    let rows: Vec<Vec<&str>> = FILE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|row| row[0] == kind)
        .map(|row| row[1..].to_vec())
        .collect();
    assert!(rows.len() >= 20, "rows of {kind}");
    rows
}

fn seed(decimal: &str) -> u64 {
    decimal.parse().unwrap()
}

fn string(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The finalizer given in the specification's section "Constants of sketching".
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[test]
fn polynomials_and_bases_match_the_second_implementation() {
    for row in rows("polynomial") {
        assert_eq!(format!("{:x}", Rabin::new(seed(row[0])).polynomial()), row[1], "seed {}", row[0]);
    }
    for row in rows("base") {
        assert_eq!(format!("{:x}", RabinKarp::seeded(seed(row[0])).base()), row[1], "seed {}", row[0]);
    }
}

#[test]
fn fingerprints_match_the_second_implementation() {
    for row in rows("rabin") {
        let (rabin, string) = (Rabin::new(seed(row[0])), string(row[1]));
        assert_eq!(format!("{:x}", rabin.fingerprint(&string)), row[2], "{row:?}");
        assert_eq!(format!("{:x}", rabin.extend_by_tables(0, &string)), row[2], "{row:?}");
        assert_eq!(format!("{:x}", rabin.extend(Rabin::ONE, &string)), row[3], "{row:?}");
    }
}

#[test]
fn rolling_hashes_match_the_second_implementation() {
    for row in rows("rabin-karp") {
        let (hash, string) = (RabinKarp::seeded(seed(row[0])), string(row[1]));
        assert_eq!(format!("{:x}", hash.hash(&string)), row[2], "{row:?}");
        assert_eq!(format!("{:x}", hash.extend(1, &string)), row[3], "{row:?}");
    }
    for row in rows("modulo") {
        let (base, modulus) = row[0].split_once('/').unwrap();
        let hash = RabinKarp::new(seed(base), seed(modulus)).unwrap();
        assert_eq!(format!("{:x}", hash.hash(&string(row[1]))), row[2], "{row:?}");
    }
}

#[test]
fn shingles_match_the_second_implementation() {
    let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
    for row in rows("shingles") {
        let mut shingling = Shingling::words(1, seed(row[0]));
        shingling.hash = ShingleHash::named(row[1]).unwrap();
        shingling.widths = row[2].parse().unwrap();
        let shingler = Shingler::new(&shingling).unwrap();
        shingler.occurrences(&unescape(row[3]), &mut buffers, &mut shingles);
        let end = |shingle: Option<&u64>| shingle.map_or_else(|| "-".to_owned(), |hash| format!("{hash:x}"));
        let digest = shingles.iter().fold(0, |digest, shingle| mix(digest ^ shingle));
        let computed =
            [shingles.len().to_string(), end(shingles.first()), end(shingles.last()), format!("{digest:x}")];
        assert_eq!(computed, row[4..], "{row:?}");
    }
}
