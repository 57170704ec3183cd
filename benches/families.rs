//! Measures the minima of each hash family in nanoseconds per shingle, for documents of 20, 100 and 900 shingles.
//! Throughput is in shingles per second. `lead-byte trick` is the method of Broder, Burrows and Manasse.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use twindex::params::Family;
use twindex::sketch::MinHasher;

#[path = "../tests/support/lead_byte.rs"]
mod lead_byte;
#[path = "../tests/support/random.rs"]
mod random;

use lead_byte::{LeadBytes, Minima};
use random::Random;

/// Total number of shingles of a run. It is the same for all document lengths, so that runs differ only in the length.
const SHINGLES: usize = 9000;

fn families(criterion: &mut Criterion) {
    let mut random = Random(1);
    let shingles: Vec<u64> = (0..SHINGLES).map(|_| random.next()).collect();
    for minima in [84, 128, 256] {
        let mut group = criterion.benchmark_group(format!("{minima} minima"));
        group.throughput(Throughput::Elements(SHINGLES as u64));
        for length in [20, 100, 900] {
            for family in
                [Family::OnePermutationFilled, Family::Linear, Family::MultiplyShift, Family::Matrix]
            {
                let hasher = MinHasher::of(family, minima);
                group.bench_function(BenchmarkId::new(family.to_string(), length), |bencher| {
                    let mut signature = Vec::new();
                    bencher.iter(|| {
                        shingles.chunks(length).fold(0, |sum, document| {
                            hasher.signature(black_box(document), &mut signature);
                            sum ^ signature[0]
                        })
                    });
                });
            }
            let permutations = LeadBytes::new(minima);
            group.bench_function(BenchmarkId::new("lead-byte trick", length), |bencher| {
                let mut minima = Minima::default();
                bencher.iter(|| {
                    for document in shingles.chunks(length) {
                        permutations.start(&mut minima);
                        permutations.extend(&mut minima, black_box(document), |_, _| ());
                        black_box(&minima);
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, families);
criterion_main!(benches);
