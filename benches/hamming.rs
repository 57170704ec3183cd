//! Measures queries for fingerprints within radius 3 in a mapped segment with checksums.
//!
//! `within` runs one query at a time. `uniform` fingerprints have near pairs only by chance; 30 % of the `clustered`
//! fingerprints are near another fingerprint.
//!
//! `probe` compares the strategies to find a bucket, in four complete tables with the codec `plain`, which supports all
//! three strategies. It runs 16 queries at a time, as a stream of documents does, in 1 M and in 10 M uniform
//! fingerprints.
//!
//! `partial` measures the default layout, a complete first table and partial others. It uses uniform fingerprints and, if
//! `TWINDEX_SIMHASHES` names a file (little-endian u64), real simhashes. It runs 16 queries at a time, and all 65,536 at
//! once. `TWINDEX_KERNEL=avx2` limits the vector instructions.
//!
//! Answers are checked before the measurement. The answers of `within` are compared with a scan.

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::format::table::Probe;
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Key, Params};
use twindex_kernel::splitmix::SplitMix;

const FINGERPRINTS: usize = 1_000_000;
/// Number of queries in a batch.
const TOGETHER: usize = 16;
const QUERIES: usize = 4096;

fn flipped(random: &mut SplitMix, value: u64, most: u64) -> u64 {
    let bits = random.next() % (most + 1);
    (0..bits).fold(value, |value, _| value ^ 1 << (random.next() % 64))
}

fn fingerprints(clustered: bool) -> Vec<u64> {
    let mut random = SplitMix(1);
    let mut values: Vec<u64> = Vec::with_capacity(FINGERPRINTS);
    for _ in 0..FINGERPRINTS {
        let near = clustered && !values.is_empty() && random.next() % 100 < 30;
        let value = if near {
            let at = random.next() as usize % values.len();
            flipped(&mut random, values[at], 6)
        } else {
            random.next()
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
        // Half of the queries are near a stored fingerprint.
        let mut random = SplitMix(77);
        let queries: Vec<u64> = (0..QUERIES)
            .map(|i| if i % 2 == 0 { random.next() } else { flipped(&mut random, values[i * 7], 3) })
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
        let mut random = SplitMix(5);
        let values: Vec<u64> = (0..count).map(|_| random.next()).collect();
        let queries: Vec<u64> = (0..16 * QUERIES)
            .map(|i| if i % 2 == 0 { random.next() } else { flipped(&mut random, values[i * 7], 3) })
            .collect();
        let tables = ("blocks-4".parse().unwrap(), "plain".parse().unwrap());
        let params = Params::builder().u64_keys().simhash(3).tables(tables.0, tables.1).build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let segment = segment(&dir, &params, &values);
        let mut scratch = SearchScratch::default();
        let mut hits = |queries: &[u64], probe: Probe| {
            let (mut hits, ask) = (0_u64, SearchOptions { probe: Some(probe), ..SearchOptions::within(3) });
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
        // At least half of the queries find the fingerprint from which they were made, and few find more than one.
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

/// Reads the fingerprints from the file that `TWINDEX_SIMHASHES` names. Fingerprints of real documents are not uniform.
/// Returns `None` if the variable is not set.
#[expect(clippy::disallowed_methods, reason = "a file of the user, not of an index")]
fn real_simhashes() -> Option<Vec<u64>> {
    let Some(path) = std::env::var_os("TWINDEX_SIMHASHES") else {
        println!("partial/real: skipped, as TWINDEX_SIMHASHES names no file of fingerprints");
        return None;
    };
    let bytes = std::fs::read(&path).unwrap();
    Some(bytes.chunks_exact(8).map(|value| u64::from_le_bytes(value.try_into().unwrap())).collect())
}

fn partial(criterion: &mut Criterion) {
    let uniform = |count: usize| {
        let mut random = SplitMix(5);
        (0..count).map(|_| random.next()).collect::<Vec<u64>>()
    };
    let sets =
        [("1M", Some(uniform(1_000_000))), ("10M", Some(uniform(10_000_000))), ("real", real_simhashes())];
    for (name, values) in sets {
        let Some(values) = values else { continue };
        let mut random = SplitMix(77);
        let queries: Vec<u64> = (0..16 * QUERIES)
            .map(|i| {
                let value = values[random.next() as usize % values.len()];
                if i % 2 == 0 { random.next() } else { flipped(&mut random, value, 3) }
            })
            .collect();
        let mut group = criterion.benchmark_group(format!("partial/{name}"));
        group.throughput(Throughput::Elements(queries.len() as u64));
        let mut found = None;
        for codec in ["planes+2", "planes+3"] {
            let tables = ("blocks-4".parse().unwrap(), codec.parse().unwrap());
            let params = Params::builder().u64_keys().simhash(3).tables(tables.0, tables.1).build().unwrap();
            let dir = tempfile::tempdir().unwrap();
            let segment = segment(&dir, &params, &values);
            let mut scratch = SearchScratch::default();
            for together in [TOGETHER, queries.len()] {
                let mut hits = || {
                    let mut hits = 0_u64;
                    for together in queries.chunks(together) {
                        let each = |_, _| {
                            hits += 1;
                            Ok(ControlFlow::Continue(()))
                        };
                        segment.search(together, SearchOptions::within(3), &mut scratch, each).unwrap();
                    }
                    hits
                };
                // At least half of the queries find the fingerprint from which they were made. All codecs and batch sizes
                // find the same number.
                let first = *found.get_or_insert_with(&mut hits);
                assert!(first >= 8 * QUERIES as u64 && hits() == first, "{first}");
                group.bench_function(format!("{codec}/{together} together"), |bencher| {
                    bencher.iter(|| black_box(hits()));
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, within, probe, partial);
criterion_main!(benches);
