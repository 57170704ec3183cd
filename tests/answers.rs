//! What an index answers is what a scan of all documents would: the promise of the block designs, tested against
//! brute force for every radius, on uniform, clustered and adversarial fingerprints, at sizes on both sides of each
//! change of layout.

use std::path::Path;

use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Key, Params};

#[path = "support/random.rs"]
mod random;

use random::Random;

fn flip(random: &mut Random, value: u64, bits: usize) -> u64 {
    let mut flipped = value;
    while (flipped ^ value).count_ones() < bits as u32 {
        flipped ^= 1 << random.below(64);
    }
    flipped
}

fn uniform(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64);
    (0..n).map(|_| random.next()).collect()
}

fn clustered(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64 + 1);
    let mut values: Vec<u64> = Vec::with_capacity(n);
    for _ in 0..n {
        let value = if values.is_empty() || random.below(10) < 4 {
            random.next()
        } else {
            let (at, bits) = (random.below(values.len()), random.below(13));
            flip(&mut random, values[at], bits)
        };
        values.push(value);
    }
    values
}

/// All in few buckets of every table, with many repetitions.
fn adversarial(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64 + 2);
    let few = [0, u64::MAX, 0x0000_FFFF_0000_FFFF, 0x0001_0001_0001_0001];
    (0..n).map(|_| few[random.below(4)] ^ (u64::from(random.below(3) == 0) << random.below(64))).collect()
}

fn segment_of(fingerprints: &[u64], filter_width: Option<u32>) -> (tempfile::TempDir, Segment) {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let mut records = Records::new(&params);
    if let Some(width) = filter_width {
        records.set_filter_width(width);
    }
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        let kept = Kept { fingerprint, ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    let path = dir.path().join("000001.seg");
    build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
    let segment = Segment::open(&RealVfs, &path).unwrap();
    (dir, segment)
}

/// Ordinals and distances within `k`, through tables and postings.
fn answers(segment: &Segment, query: u64, k: u32) -> Vec<(u32, u32)> {
    segment.prefetch([query, !query].into_iter()); // a hint, which must change nothing
    let mut near = Vec::new();
    segment.within(query, k, |hit| near.push(hit)).unwrap();
    let mut found = Vec::new();
    for hit in near {
        assert_eq!(segment.fingerprint(hit.rank).unwrap(), hit.fingerprint);
        segment.postings(hit.rank, |ordinal| found.push((ordinal, hit.distance))).unwrap();
    }
    found.sort_unstable();
    found
}

fn brute_force(fingerprints: &[u64], query: u64, k: u32) -> Vec<(u32, u32)> {
    let distances = fingerprints.iter().map(|&f| (f ^ query).count_ones());
    (0..).zip(distances).filter(|&(_, distance)| distance <= k).collect()
}

fn check(fingerprints: &[u64], queries: usize, filter_width: Option<u32>) {
    let (_dir, segment) = segment_of(fingerprints, filter_width);
    assert_eq!(segment.verify(|_| ()).len(), 0);
    let mut random = Random(7);
    let mut hits = 0;
    for round in 0..queries {
        let query = match (round % 3, fingerprints.len()) {
            (0, _) | (_, 0) => random.next(),
            (_, n) => {
                let bits = random.below(12);
                flip(&mut random, fingerprints[round % n], bits)
            }
        };
        for k in 0..=10 {
            let expected = brute_force(fingerprints, query, k);
            hits += expected.len();
            assert_eq!(
                answers(&segment, query, k),
                expected,
                "{query:016x} within {k} of {}",
                fingerprints.len()
            );
        }
    }
    assert!(hits > 0 || fingerprints.is_empty());
}

#[test]
fn every_radius_answers_as_brute_force_does_on_uniform_fingerprints() {
    for n in [0, 1, 3, 15, 16, 17, 1000, 4096] {
        check(&uniform(n), 60, None);
    }
}

#[test]
fn every_radius_answers_as_brute_force_does_on_clustered_fingerprints() {
    for n in [2, 33, 2000, 20_000] {
        check(&clustered(n), 40, None);
    }
}

#[test]
fn every_radius_answers_as_brute_force_does_on_hot_buckets_and_repetitions() {
    for n in [5, 300, 3000] {
        check(&adversarial(n), 30, None);
    }
}

#[test]
fn every_filter_width_gives_the_same_answers() {
    for width in 2..=4 {
        check(&clustered(3000), 40, Some(width));
        check(&adversarial(500), 20, Some(width));
    }
}

#[test]
fn a_table_that_leads_with_whole_blocks_answers_as_brute_force_does() {
    // From 2^19 fingerprints on a directory covers all 16 bits of a block, and block 1 has no plane of its own.
    let fingerprints = clustered(1 << 20);
    for width in [None, Some(3), Some(4)] {
        let (_dir, segment) = segment_of(&fingerprints, width);
        assert!(segment.distinct_fingerprints() >= 1 << 19);
        let mut random = Random(9);
        for round in 0..24 {
            let query = flip(&mut random, fingerprints[round * 1000], round % 6);
            for k in [0, 2, 3, 5] {
                assert_eq!(
                    answers(&segment, query, k),
                    brute_force(&fingerprints, query, k),
                    "{query:016x} {k}"
                );
            }
        }
    }
}

#[test]
fn the_order_of_input_does_not_change_a_byte() {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let fingerprints = clustered(500);
    let file = |order: &[usize]| {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::new(&params);
        for &i in order {
            let kept = Kept { fingerprint: fingerprints[i], ..Kept::default() };
            records.push(Key::U64(3 * i as u64), Some(kept)).unwrap();
        }
        let path = dir.path().join("a.seg");
        build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
        read(&path)
    };
    let forward: Vec<usize> = (0..500).collect();
    let mut shuffled = forward.clone();
    let mut random = Random(1);
    for i in (1..500).rev() {
        shuffled.swap(i, random.below(i + 1));
    }
    assert_eq!(file(&forward), file(&shuffled));
}

fn read(path: &Path) -> Vec<u8> {
    let file = RealVfs.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}
