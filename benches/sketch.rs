//! Text to numbers, stage by stage: this crate's own sources, one document after the other.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::Params;
use twindex::sketch::{MinHasher, Scratch, Sketch, Sketcher, simhash, tokens};

/// Prose and code of this crate: real text that is there wherever the benchmark is.
const TEXTS: [&str; 6] = [
    include_str!("../src/segment/build.rs"),
    include_str!("../src/segment/near.rs"),
    include_str!("../src/sketch/minhash.rs"),
    include_str!("../src/store/writer.rs"),
    include_str!("../src/params.rs"),
    include_str!("../src/format/keys.rs"),
];

fn stages(criterion: &mut Criterion) {
    let bytes: usize = TEXTS.iter().map(|text| text.len()).sum();
    let params = Params::builder().words(5).simhash(3).minhash(6, 14).build().unwrap();
    let sketcher = Sketcher::new(&params);
    let shingles: Vec<Vec<u64>> = TEXTS
        .iter()
        .map(|text| {
            let mut hashes = Vec::new();
            sketcher.shingler().occurrences(text, &mut Vec::new(), &mut hashes);
            hashes
        })
        .collect();
    let count: usize = shingles.iter().map(Vec::len).sum();
    assert!(count > 1000, "the texts have words");

    let mut group = criterion.benchmark_group("text");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("tokens", |bencher| {
        let mut scratch = Vec::new();
        bencher.iter(|| {
            let mut length = 0;
            for text in TEXTS {
                tokens(black_box(text), &mut scratch, |token| length += token.len());
            }
            length
        });
    });
    group.bench_function("shingles", |bencher| {
        let (mut scratch, mut hashes) = (Vec::new(), Vec::new());
        bencher.iter(|| {
            TEXTS.map(|text| {
                sketcher.shingler().occurrences(black_box(text), &mut scratch, &mut hashes);
                hashes.len()
            })
        });
    });
    group.bench_function("simhash + 84 minima + 6 features", |bencher| {
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        bencher.iter(|| {
            for text in TEXTS {
                sketcher.sketch_into(black_box(text), &mut scratch, &mut sketch);
            }
            sketch.fingerprint()
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("shingle hashes");
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function("simhash", |bencher| {
        bencher.iter(|| shingles.iter().map(|hashes| simhash(black_box(hashes)).0).fold(0, |a, b| a ^ b));
    });
    group.bench_function("84 minima", |bencher| {
        let hasher = MinHasher::new(84);
        let mut signature = Vec::new();
        bencher.iter(|| {
            for hashes in &shingles {
                hasher.signature(black_box(hashes), &mut signature);
            }
            signature[0]
        });
    });
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
