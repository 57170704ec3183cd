//! Samples are stored in files, so they must never change. This test compares samples, and the overlaps of pairs of
//! samples, with `tests/golden/samples.tsv`, which a second implementation (`tests/second/samples.py`) computed from
//! the specification.
//!
//! Regenerate the file only after an intended change of the definition, not to make the test pass.

use crate::support::golden::{parse, unescape};
use twindex::Params;
use twindex::sketch::{Sample, Sketcher};
use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = include_str!("../golden/samples.tsv");

const COLUMNS: &str = "name\ttext\twidth\tseed\tt\tm\tbottom\tleast\tbottom_hash\tmodular\tmodular_hash\tby_bottom\t\
                       by_modular";

fn hash(values: &[u64]) -> String {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    format!("{:016x}", xxh3_64(&bytes))
}

/// Checks the estimates for a pair against `expected`, the numbers of hashes `common/first/union`.
fn check(a: &Sample<'_>, b: &Sample<'_>, expected: &str, name: &str) {
    let counts: Vec<usize> = expected.split('/').map(parse).collect();
    let [common, first, union] = counts[..] else { panic!("three counts: {expected}") };
    let resemblance = a.resemblance(b).map(|resemblance| resemblance.value());
    let share = if union == 0 { 0.0 } else { common as f64 / union as f64 };
    match resemblance {
        Some(value) => assert!((value - share).abs() < 1e-15, "{name}: {value}, expected {expected}"),
        None => assert_eq!(union, 0, "{name}"),
    }
    match a.containment(b) {
        Some(contained) => assert_eq!((contained.common, contained.sampled), (common, first), "{name}"),
        None => assert_eq!(first, 0, "{name}"),
    }
}

#[test]
fn samples_match_the_second_implementation() {
    let mut lines = FILE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(COLUMNS));
    let mut checked = 0;
    let mut before = (String::new(), Vec::new(), Vec::new());
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[
            name,
            text,
            width,
            seed,
            t,
            m,
            bottom,
            min,
            bottom_hash,
            modular,
            modular_hash,
            by_bottom,
            by_modular,
        ] = columns.as_slice()
        else {
            panic!("not as many columns as there should be: {line}");
        };
        let builder = Params::builder().words(parse(width)).seed(parse(seed)).simhash(3);
        let params = builder.bottom(parse(t)).modulus(parse(m)).build().unwrap();
        let sketch = Sketcher::new(&params).unwrap().sketch(&unescape(text)).unwrap();
        let first = sketch.bottom().first().map_or("-".to_owned(), |first| format!("{first:012x}"));
        assert_eq!((sketch.bottom().len(), first.as_str()), (parse(bottom), min), "{name}");
        assert_eq!(hash(sketch.bottom()), bottom_hash, "{name}, w = {width}, t = {t}");
        assert_eq!(sketch.modular().len(), parse::<usize>(modular), "{name}");
        assert_eq!(hash(sketch.modular()), modular_hash, "{name}, w = {width}, m = {m}");
        if before.0 != params.encode() {
            before = (params.encode(), Vec::new(), Vec::new());
        }
        let t = parse(t);
        check(&Sample::bottom(sketch.bottom(), t), &Sample::bottom(&before.1, t), by_bottom, name);
        let m = parse(m);
        check(&Sample::modular(sketch.modular(), m), &Sample::modular(&before.2, m), by_modular, name);
        (before.1, before.2) = (sketch.bottom().to_vec(), sketch.modular().to_vec());
        checked += 1;
    }
    assert_eq!(checked, 176, "rows of the file");
}
