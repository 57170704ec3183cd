//! Sketches are stored in files, so they must never change. This test compares them with `tests/golden/sketches.tsv`,
//! which a second implementation (`tests/second/sketches.py`) computed from the definitions in the module
//! documentation.
//!
//! If this test fails, existing indexes no longer match newly sketched texts. Regenerate the file only after an intended
//! change of the definition, not to make the test pass.

use crate::support::golden::{parse, unescape};
use twindex::Params;
use twindex::params::SimhashWeights;
use twindex::sketch::{Buffers, Shingler, Sketcher, tokens};
use twindex_kernel::Level;
use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = include_str!("../golden/sketches.tsv");

const COLUMNS: &str = "name\ttext\twidth\tseed\tbands\trows\ttokens\ttokens_hash\tshingles\tdistinct\t\
                       occurrences_fingerprint\tdistinct_fingerprint\tsignature_hash\tfeatures_hash";

/// Computes the columns of a row, from `tokens` on, with the SIMD instructions of `level`.
fn computed(level: Level, text: &str, width: u8, seed: u64, bands: u16, rows: u16) -> Vec<String> {
    let builder = Params::builder().words(width).seed(seed).minhash(bands, rows);
    let params = builder.clone().simhash(3).build().unwrap();
    let distinct = builder.simhash_weighted(3, SimhashWeights::Distinct).build().unwrap();
    let sketch = Sketcher::new(&params).unwrap().at(level).sketch(text).unwrap();
    let sketch_of_distinct = Sketcher::new(&distinct).unwrap().at(level).sketch(text).unwrap();
    assert_eq!(sketch.signature(), sketch_of_distinct.signature());
    assert_eq!(sketch.features(), sketch_of_distinct.features());

    let (mut found, mut count) = (Vec::new(), 0);
    tokens(text, &mut Vec::new(), |token| {
        found.extend_from_slice(token);
        found.push(b'\n');
        count += 1;
    });
    let shingler = Shingler::new(&params.shingling).unwrap().at(level);
    let (mut occurrences, mut set) = (Vec::new(), Vec::new());
    shingler.occurrences(text, &mut Buffers::default(), &mut occurrences);
    shingler.distinct(text, &mut Buffers::default(), &mut set);

    let signature: Vec<u8> = sketch.signature().iter().flat_map(|minimum| minimum.to_le_bytes()).collect();
    let features: Vec<u8> = sketch.features().iter().flat_map(|feature| feature.to_le_bytes()).collect();
    let hash = |bytes: &[u8]| format!("{:016x}", xxh3_64(bytes));
    let fingerprint = |sketch: &twindex::sketch::Sketch| {
        sketch.fingerprint().map_or_else(|| "-".to_owned(), |fingerprint| fingerprint.to_string())
    };
    vec![
        count.to_string(),
        hash(&found),
        occurrences.len().to_string(),
        set.len().to_string(),
        fingerprint(&sketch),
        fingerprint(&sketch_of_distinct),
        hash(&signature),
        hash(&features),
    ]
}

#[test]
fn sketches_at_every_simd_level_match_the_second_implementation() {
    let mut lines = FILE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(COLUMNS));
    let mut checked = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, text, width, seed, bands, rows, expected @ ..] = columns.as_slice() else {
            panic!("too few columns: {line}");
        };
        let text = unescape(text);
        let named = |values: &[String]| -> Vec<String> {
            COLUMNS.split('\t').skip(6).zip(values).map(|(name, value)| format!("{name}={value}")).collect()
        };
        let expected: Vec<String> = expected.iter().map(|&value| value.to_owned()).collect();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let found = computed(level, &text, parse(width), parse(seed), parse(bands), parse(rows));
            let row = format!("{name}, w = {width}, seed {seed}, {bands} x {rows}, {level}");
            assert_eq!(named(&found), named(&expected), "{row}");
        }
        assert_eq!(columns.len(), COLUMNS.split('\t').count(), "{name}");
        checked += 1;
    }
    assert_eq!(checked, 160, "rows of the file");
}
