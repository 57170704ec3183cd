//! Fingerprints within radius 3 of a query: a mapped segment, checksums on, one query at a time.
//!
//! Named by the data's property: uniform (no near pairs by chance), clustered (30 % are near another). Answers are
//! checked against a scan before the clock starts.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};

const FINGERPRINTS: usize = 1_000_000;
const QUERIES: usize = 4096;

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn flipped(state: &mut u64, value: u64, most: u64) -> u64 {
    let bits = splitmix(state) % (most + 1);
    (0..bits).fold(value, |value, _| value ^ 1 << (splitmix(state) % 64))
}

fn fingerprints(clustered: bool) -> Vec<u64> {
    let mut state = 1;
    let mut values: Vec<u64> = Vec::with_capacity(FINGERPRINTS);
    for _ in 0..FINGERPRINTS {
        let near = clustered && !values.is_empty() && splitmix(&mut state) % 100 < 30;
        let value = if near {
            let at = splitmix(&mut state) as usize % values.len();
            flipped(&mut state, values[at], 6)
        } else {
            splitmix(&mut state)
        };
        values.push(value);
    }
    values
}

fn segment(dir: &tempfile::TempDir, values: &[u64]) -> Segment {
    let mut records = Records::new(&Params::builder().u64_keys().simhash(3).build().unwrap());
    for (key, &fingerprint) in (0..).zip(values) {
        let kept = Kept { fingerprint, ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    let path = dir.path().join("000001.seg");
    build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
    Segment::open(&RealVfs, &path).unwrap()
}

fn hits(segment: &Segment, query: u64) -> u64 {
    let mut hits = 0;
    segment.within(query, 3, |_| hits += 1).unwrap();
    hits
}

fn within(criterion: &mut Criterion) {
    for (name, clustered) in [("uniform", false), ("clustered", true)] {
        let values = fingerprints(clustered);
        let dir = tempfile::tempdir().unwrap();
        let segment = segment(&dir, &values);
        // Half of the queries have at least one answer.
        let mut state = 77;
        let queries: Vec<u64> = (0..QUERIES)
            .map(|i| if i % 2 == 0 { splitmix(&mut state) } else { flipped(&mut state, values[i * 7], 3) })
            .collect();
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        for &query in &queries[..16] {
            let expected = distinct.iter().filter(|&&value| (value ^ query).count_ones() <= 3).count();
            assert_eq!(hits(&segment, query), expected as u64);
        }
        let mut group = criterion.benchmark_group("within-3-of-1M");
        group.throughput(Throughput::Elements(QUERIES as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| queries.iter().map(|&query| hits(&segment, black_box(query))).sum::<u64>());
        });
        group.finish();
    }
}

criterion_group!(benches, within);
criterion_main!(benches);
