//! An index stores its options for splitting texts, so the meaning of an option must never change. This test compares
//! units and shingles with `tests/golden/text-options.tsv` and `text-symbols.tsv`, which a second implementation
//! (`tests/second/text_options.py`) computed from the specification.
//!
//! If this test fails, existing indexes no longer match newly sketched texts. A new version of the stemming crate can
//! cause this; do not use that version then. Regenerate the file only after an intended change of the definition, not to
//! make the test pass.

#![cfg(feature = "languages")]

use crate::support::golden::unescape;
use twindex::params::{Folding, NormalForm, Shingling, Stemming, StopWords, Tokens};
use twindex::sketch::{Buffers, Cutter, Shingler, Units};
use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = include_str!("../golden/text-options.tsv");
const SYMBOLS: &str = include_str!("../golden/text-symbols.tsv");

const COLUMNS: &str = "tokens\tnormal-form\tstop-words\tstemming\twidth\tseed\tname\ttext\tunits\tunits_digest\t\
                       shingles\tshingles_digest";

fn shingling(columns: &[&str]) -> Shingling {
    let [tokens, form, stop_words, stemming, width, seed, fold @ ..] = columns else { panic!("{columns:?}") };
    let tokens = Tokens::named(tokens).unwrap();
    let mut shingling = Shingling::words(1, seed.parse().unwrap()).with_tokens(tokens).unwrap();
    if *form == "nfkc" {
        shingling.normal_form = NormalForm::nfkc().unwrap();
    }
    shingling.stop_words = StopWords::new(stop_words.split_whitespace()).unwrap();
    shingling.stemming = Stemming::named(stemming).unwrap();
    shingling.widths = width.parse().unwrap();
    for one in fold.iter().flat_map(|fold| fold.split('+')) {
        match one {
            "none" => {}
            "invisible" => shingling.folding.invisible = true,
            "marks" => shingling.folding.marks = Folding::marks_here(),
            other => panic!("{other}"),
        }
    }
    shingling
}

#[test]
fn units_and_shingles_match_the_second_implementation() {
    check(FILE, COLUMNS, 6, 627);
}

#[test]
fn symbols_and_folded_texts_match_the_second_implementation() {
    check(SYMBOLS, &COLUMNS.replace("\tname", "\tfold\tname"), 7, 594);
}

/// Compares the units and shingles of each row. The first `choices` columns of a row are the options.
fn check(file: &str, columns: &str, choices: usize, rows: usize) {
    let mut lines = file.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(columns));
    let (mut units, mut buffers, mut shingles) = (Units::default(), Buffers::default(), Vec::new());
    let (mut checked, mut different) = (0, Vec::new());
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let (choice, rest) = columns.split_at(choices);
        let [_, text, expected @ ..] = rest else { panic!("too few columns: {line}") };
        let (shingling, text) = (shingling(choice), unescape(text));
        Cutter::new(&shingling).unwrap().cut(&text, &mut units);
        let bytes: Vec<u8> = units.iter().flat_map(|unit| [unit, b"\n"].concat()).collect();
        Shingler::new(&shingling).unwrap().occurrences(&text, &mut buffers, &mut shingles);
        let hashes: Vec<u8> = shingles.iter().flat_map(|shingle| shingle.to_le_bytes()).collect();
        let digest = |bytes: &[u8]| format!("{:016x}", xxh3_64(bytes));
        let found = [units.len().to_string(), digest(&bytes), shingles.len().to_string(), digest(&hashes)];
        if found != expected {
            different.push(format!("{}: {}", rest[0], choice.join(", ")));
            println!("{different:?}\n{}\n", String::from_utf8_lossy(&bytes));
        }
        checked += 1;
    }
    assert!(different.is_empty(), "{} of {checked} rows: {different:#?}", different.len());
    assert_eq!(checked, rows, "rows of the file");
}
