//! IDF tables, and fingerprints weighted by them, are stored in files, so they must never change. This test compares them
//! with `tests/golden/idf.tsv`, which a second implementation (`tests/second/idf.py`) computed from the documented
//! definitions.
//!
//! If this test fails, existing indexes no longer match newly sketched texts. Regenerate the file only after an intended
//! change of the definition, not to make the test pass.

use std::sync::Arc;

use twindex::IdfBuilder;
use twindex::Params;
use twindex::idf::to_bytes;
use twindex::params::Shingling;
use twindex::sketch::idf::weight;
use twindex::sketch::{Buffers, IdfTable, Shingler, Sketcher};

const FILE: &str = include_str!("../golden/idf.tsv");

fn parse<T: std::str::FromStr>(number: &str) -> T {
    number.parse().unwrap_or_else(|_| panic!("`{number}` is no number"))
}

/// Returns the strings of a JSON list; they contain no escapes.
fn texts(list: &str) -> Vec<&str> {
    let inner =
        list.strip_prefix("[\"").and_then(|list| list.strip_suffix("\"]")).expect("a list of strings");
    assert!(!list.contains('\\'));
    inner.split("\", \"").collect()
}

/// Decodes hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
}

fn counted(
    shingling: &Shingling,
    min_df: u32,
    entries_max: usize,
    texts: &[&str],
    memory: usize,
) -> IdfTable {
    let shingler = Shingler::new(shingling).unwrap();
    let mut builder = IdfBuilder::new(shingling).min_df(min_df).entries_max(entries_max).memory(memory);
    let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
    for text in texts {
        shingler.occurrences(text, &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn tables_weights_and_fingerprints_match_the_second_implementation() {
    let mut sketcher = None;
    let (mut weights, mut tables, mut fingerprints) = (0, 0, 0);
    for line in FILE.lines().filter(|line| !line.starts_with('#')) {
        match *line.split('\t').collect::<Vec<_>>() {
            ["weight", documents, frequency, expected] => {
                let found = weight(parse(documents), parse(frequency));
                assert_eq!(found, parse::<u16>(expected), "{frequency} of {documents} documents");
                weights += 1;
            }
            ["table", width, seed, min_df, entries_max, list, file] => {
                let shingling = Shingling::words(parse(width), parse(seed));
                let table = counted(&shingling, parse(min_df), parse(entries_max), &texts(list), 1 << 20);
                assert_eq!(to_bytes(&table), bytes(file), "width {width}, min_df {min_df}");
                let mut backwards = texts(list);
                backwards.reverse();
                let again = counted(&shingling, parse(min_df), parse(entries_max), &backwards, 0);
                assert_eq!(again, table);
                let params = Params::builder().shingling(shingling).simhash_weighted(3, table.weights());
                sketcher = Some(Sketcher::with_idf(&params.build().unwrap(), Arc::new(table)).unwrap());
                tables += 1;
            }
            ["fingerprint", text, expected] => {
                let sketch = sketcher.as_ref().expect("a table in an earlier row").sketch(text).unwrap();
                let found =
                    sketch.fingerprint().map_or("-".to_owned(), |fingerprint| fingerprint.to_string());
                assert_eq!(found, expected, "{text}");
                fingerprints += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert_eq!((weights, tables, fingerprints), (127, 5, 60), "rows of the file");
}
