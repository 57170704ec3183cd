//! Tests the planner's predictions for tables: their size in bytes, and the recall of free designs.

use tempfile::TempDir;
use twindex::design::{CodecChoice, Complete, Design, DesignChoice, DesignName};
use twindex::format::contents::Kind;
use twindex::planner::cost::cost;
use twindex::planner::recall::recall;
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};

use crate::support::random::Random;

fn uniform(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next()).collect()
}

fn flipped(random: &mut Random, value: u64, bits: u32) -> u64 {
    let mut near = value;
    while (near ^ value).count_ones() < bits {
        near ^= 1 << random.below(64);
    }
    near
}

fn segment(fingerprints: &[u64], design: &str, codecs: &str) -> (TempDir, Segment) {
    let dir = tempfile::tempdir().unwrap();
    let (design, codec): (DesignChoice, CodecChoice) = (design.parse().unwrap(), codecs.parse().unwrap());
    let params = Params::builder().u64_keys().simhash(3).tables(design, codec).build().unwrap();
    let mut records = Records::new(&params);
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
    }
    let path = dir.path().join("000001.seg");
    build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
    let segment = Segment::open(&RealVfs, &path).unwrap();
    (dir, segment)
}

#[test]
fn tables_have_the_predicted_size() {
    for rows in [5000, 100_000] {
        let fingerprints = uniform(rows, rows as u64);
        for (design, codecs) in [
            ("blocks-4", "planes+3"),
            ("blocks-2", "compact+2"),
            ("choose-5-2", "planes+4"),
            ("blocks-3", "plain"),
            ("reversed-20", "compact"),
            ("blocks-2", "manku"),
        ] {
            let (_dir, segment) = segment(&fingerprints, design, codecs);
            let scheme = segment.scheme().unwrap();
            assert_eq!(scheme.to_string(), format!("{design} {codecs}"));
            let of_tables = |kind| matches!(kind, Kind::Table | Kind::FilterTable);
            let sections: Vec<u64> =
                segment.sections().iter().filter(|s| of_tables(s.kind)).map(|s| s.length).collect();
            let predicted = cost(scheme, 3, rows as u64).unwrap();
            if scheme.codecs.first == Complete::Manku {
                // The length of the code depends on the values, and the last block is only partly filled.
                for (&stored, &expected) in sections.iter().zip(&predicted.sections) {
                    let off = stored.abs_diff(expected) as f64;
                    assert!(off <= 0.01 * stored as f64 + 1100.0, "{rows}: {stored} {expected}");
                }
            } else {
                assert_eq!(sections, predicted.sections, "{scheme}, {rows} rows");
            }
            let stored: u64 = sections.iter().sum();
            let around = predicted.bytes.abs_diff(stored);
            assert!(around <= stored / 50 + 64 * sections.len() as u64 + 1100, "{around} around {stored}");
        }
    }
}

#[test]
fn free_designs_have_the_predicted_recall() {
    const PLANTED: usize = 3000;
    let name: DesignName = "random-8-12-7".parse().unwrap();
    let design = Design::new(name).unwrap();
    let mut random = Random(5);
    let strangers = uniform(20_000 - PLANTED, 6);
    for codecs in ["planes+3", "compact"] {
        for distance in 1..=6 {
            let queries = uniform(PLANTED, 100 + u64::from(distance));
            let planted: Vec<u64> =
                queries.iter().map(|&query| flipped(&mut random, query, distance)).collect();
            let all: Vec<u64> = strangers.iter().chain(&planted).copied().collect();
            let (_dir, segment) = segment(&all, &name.to_string(), codecs);
            let mut found = 0_u32;
            for (&query, &near) in queries.iter().zip(&planted) {
                segment.within(query, distance, |hit| found += u32::from(hit.fingerprint == near)).unwrap();
            }
            let expected = recall(&design, distance, 20_000, distance).unwrap().probability;
            let measured = f64::from(found) / PLANTED as f64;
            let standard_error = (expected * (1.0 - expected) / PLANTED as f64).sqrt();
            assert!(
                (measured - expected).abs() <= 3.0 * standard_error,
                "{codecs} at {distance}: {measured} found, {expected} expected"
            );
        }
    }
}

#[test]
fn exact_designs_find_all_planted_neighbours() {
    let mut random = Random(9);
    let queries = uniform(2000, 10);
    let planted: Vec<u64> = queries.iter().map(|&query| flipped(&mut random, query, 3)).collect();
    for design in ["blocks-2", "choose-6-3", "nested-4-4"] {
        let (_dir, segment) = segment(&planted, design, "auto");
        let name = segment.scheme().unwrap().design;
        let found = recall(&Design::new(name).unwrap(), 3, 2000, 3).unwrap().probability;
        assert!(found >= 1.0, "{name}: {found}");
        for (&query, &near) in queries.iter().zip(&planted) {
            let mut found = false;
            segment.within(query, 3, |hit| found |= hit.fingerprint == near).unwrap();
            assert!(found, "{design}: {near:x} is 3 bits from {query:x}");
        }
    }
}
