//! Fingerprints within radius 3 of a query: a mapped segment, checksums on, one query at a time.
//!
//! `probe` compares the ways to find a bucket, in four complete tables of whole keys (codec `plain`), which have all
//! three: 16 queries at a time, as they come in a stream, of 1 M and 10 M uniform fingerprints.
//!
//! Named by the data's property: uniform (no near pairs by chance), clustered (30 % are near another). Answers are
//! checked against a scan before the clock starts.

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::format::table::Probe;
use twindex::segment::records::Kept;
use twindex::segment::{Ask, Records, Scratch, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};

const FINGERPRINTS: usize = 1_000_000;
/// Queries that are asked together.
const TOGETHER: usize = 16;
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

fn segment(dir: &tempfile::TempDir, params: &Params, values: &[u64]) -> Segment {
    let mut records = Records::new(params);
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
        let segment = segment(&dir, &Params::builder().u64_keys().simhash(3).build().unwrap(), &values);
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

fn probe(criterion: &mut Criterion) {
    for (name, count) in [("1M", 1_000_000), ("10M", 10_000_000)] {
        let mut state = 5;
        let values: Vec<u64> = (0..count).map(|_| splitmix(&mut state)).collect();
        let queries: Vec<u64> = (0..16 * QUERIES)
            .map(|i| if i % 2 == 0 { splitmix(&mut state) } else { flipped(&mut state, values[i * 7], 3) })
            .collect();
        let tables = ("blocks-4".parse().unwrap(), "plain".parse().unwrap());
        let params = Params::builder().u64_keys().simhash(3).tables(tables.0, tables.1).build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let segment = segment(&dir, &params, &values);
        let mut scratch = Scratch::default();
        let mut hits = |queries: &[u64], probe: Probe| {
            let (mut hits, ask) = (0_u64, Ask { probe: Some(probe), ..Ask::within(3) });
            for together in queries.chunks(TOGETHER) {
                let each = |_, _| {
                    hits += 1;
                    Ok(ControlFlow::Continue(()))
                };
                segment.search(together, ask, &mut scratch, each).unwrap();
            }
            hits
        };
        let all = [Probe::Directory, Probe::Interpolation, Probe::Binary];
        // Half of the queries find what they were made of, and few find more.
        let [first, second, third] = all.map(|probe| hits(&queries, probe));
        assert!(
            first >= 8 * QUERIES as u64 && first == second && second == third,
            "{first} {second} {third}"
        );
        let mut group = criterion.benchmark_group(format!("probe/{name}"));
        group.throughput(Throughput::Elements(QUERIES as u64));
        for probe in all {
            let mut passes = queries.chunks(QUERIES).cycle();
            group.bench_function(format!("{probe:?}").to_lowercase(), |bencher| {
                bencher.iter(|| hits(black_box(passes.next().unwrap_or_default()), probe));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, within, probe);
criterion_main!(benches);
