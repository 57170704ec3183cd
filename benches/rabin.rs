//! Compares Rabin fingerprints, rolling hashes and the shingle hashes, on source files and documents of this repository.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::params::{ShingleHash, Shingling};
use twindex::sketch::{Buffers, Rabin, RabinKarp, Shingler};

/// Source code and prose of this repository, so that the benchmark needs no other data.
const TEXTS: [&str; 6] = [
    include_str!("../src/segment/build.rs"),
    include_str!("../src/segment/near.rs"),
    include_str!("../crates/sketch/src/classic/rabin.rs"),
    include_str!("../crates/sketch/src/token.rs"),
    include_str!("../src/segment/verify.rs"),
    include_str!("../format-spec.md"),
];

/// Measures bytes per second, for one long string and for all its windows of 48 bytes. Fingerprints of the string are
/// computed with tables, with carry-less multiplication where available, and modulo a prime.
fn strings(criterion: &mut Criterion) {
    let string = TEXTS.concat().into_bytes();
    let (rabin, hash) = (Rabin::new(0), RabinKarp::seeded(0));
    let mut group = criterion.benchmark_group("string");
    group.throughput(Throughput::Bytes(string.len() as u64));
    group.bench_function("rabin, tables", |bencher| {
        bencher.iter(|| rabin.extend_by_tables(0, black_box(&string)));
    });
    group.bench_function("rabin", |bencher| bencher.iter(|| rabin.fingerprint(black_box(&string))));
    group.bench_function("rabin, windows of 48", |bencher| {
        bencher.iter(|| rabin.windows(black_box(&string), 48).fold(0, |sum, fingerprint| sum ^ fingerprint));
    });
    group.bench_function("rabin-karp", |bencher| bencher.iter(|| hash.hash(black_box(&string))));
    group.bench_function("rabin-karp, windows of 48", |bencher| {
        bencher.iter(|| hash.windows(black_box(&string), 48).fold(0, |sum, hash| sum ^ hash));
    });
    group.finish();
}

/// Measures nanoseconds per shingle of five words, including tokenization.
fn shingles(criterion: &mut Criterion) {
    let mut buffers = Buffers::default();
    let mut shingles = Vec::new();
    let mut group = criterion.benchmark_group("shingles-of-5");
    for &hash in ShingleHash::ALL {
        let mut shingling = Shingling::words(5, 0);
        shingling.hash = hash;
        let shingler = Shingler::new(&shingling).unwrap();
        let count: usize = TEXTS
            .iter()
            .map(|text| {
                shingler.occurrences(text, &mut buffers, &mut shingles);
                shingles.len()
            })
            .sum();
        assert!(count > 1000, "the texts have words");
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(hash.name(), |bencher| {
            bencher.iter(|| {
                TEXTS.map(|text| {
                    shingler.occurrences(black_box(text), &mut buffers, &mut shingles);
                    shingles.len()
                })
            });
        });
    }
    group.finish();
}

/// Measures the choice of a random irreducible polynomial.
fn polynomials(criterion: &mut Criterion) {
    let mut seed = 0;
    criterion.bench_function("polynomial", |bencher| {
        bencher.iter(|| {
            seed += 1;
            Rabin::new(black_box(seed)).polynomial()
        });
    });
}

criterion_group!(benches, strings, shingles, polynomials);
criterion_main!(benches);
