//! Minima of the classic families are stored in files, so they must never change. This test compares them with
//! `tests/golden/families.tsv`, which a second implementation (`tests/second/families.py`) computed from the
//! specification. `golden_sketches.rs` has the golden values of the default family.
//!
//! Regenerate the file only after an intended change of the definition, not to make the test pass.

use twindex::params::Family;
use twindex::sketch::MinHasher;

use crate::support::random::Random;

const FILE: &str = include_str!("../golden/families.tsv");

/// Returns the hashes of a row: a list of hashes, or `splitmix SEED N` for `N` generated ones.
fn hashes(name: &str, listed: &str) -> Vec<u64> {
    if let Some(drawn) = name.strip_prefix("splitmix ") {
        let (seed, n) = drawn.split_once(' ').expect("a seed and a number");
        let mut random = Random(seed.parse().expect("a seed"));
        return (0..n.parse().expect("a number")).map(|_| random.next()).collect();
    }
    listed.split(',').map(|hash| u64::from_str_radix(hash, 16).expect("a hash")).collect()
}

#[test]
fn minima_match_the_second_implementation() {
    let mut lines = FILE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("set\thashes\tfamily\tminima\tfirst\tlast\tcrc32"));
    let mut checked = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, listed, family, minima, expected @ ..] = columns.as_slice() else {
            panic!("too few columns: {line}");
        };
        let family = [Family::Linear, Family::MultiplyShift, Family::Matrix]
            .into_iter()
            .find(|known| known.to_string() == *family)
            .unwrap_or_else(|| panic!("no family {family}"));
        let t: usize = minima.parse().expect("a number");
        let mut signature = Vec::new();
        MinHasher::of(family, t).signature(&hashes(name, listed), &mut signature);
        assert_eq!(signature.len(), t);
        let bytes: Vec<u8> = signature.iter().flat_map(|minimum| minimum.to_le_bytes()).collect();
        let found = [signature[0], signature[t - 1], crc32fast::hash(&bytes)].map(|n| format!("{n:08x}"));
        assert_eq!(found, expected, "{family}, {t} minima of {name}");
        checked += 1;
    }
    assert_eq!(checked, 51, "rows of the file");
}
