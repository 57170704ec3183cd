//! Benchmarks the compare kernel, and joins of fingerprints outside an index.
//!
//! ```sh
//! cargo bench -p twindex-join
//! ```
//!
//! Runs of 15, 153 and 763 lanes correspond to the buckets of a block of 16 bits with 1, 10 and 50 million random
//! fingerprints. `throughput` is the number of comparisons for the kernel, and the number of fingerprints for joins.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use random::Random;
use twindex_join::{
    BatchStrategy, JoinResources, Positions, RawValues, raw_answers_within, raw_near_fingerprints_within,
};
use twindex_kernel::{Kernel, Level, PairBuffer, Simd, pairs32};

#[path = "../../../tests/support/random.rs"]
mod random;

const RUNS: usize = 64;
const RADIUS: u32 = 3;

/// Finds the near pairs inside each run of consecutive lanes; the second field is the number of lanes per run.
struct Runs<'a>(&'a [u32], usize, &'a mut PairBuffer);

impl Kernel for Runs<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Self(lanes, mean, found) = self;
        found.clear();
        lanes.chunks(mean).for_each(|run| pairs32(simd, run.into(), RADIUS, found));
        found.pairs().len()
    }
}

fn compare(criterion: &mut Criterion) {
    for mean in [15, 153, 763] {
        let mut random = Random(7);
        let lanes: Vec<u32> = (0..RUNS * mean).map(|_| random.next() as u32).collect();
        let mut group = criterion.benchmark_group(format!("compare/{mean}"));
        group.throughput(Throughput::Elements((RUNS * mean * (mean - 1) / 2) as u64));
        let mut found = PairBuffer::default();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            group.bench_function(level.name(), |bencher| {
                bencher.iter(|| level.dispatch(Runs(black_box(&lanes), mean, &mut found)));
            });
        }
        group.finish();
    }
}

/// Returns fingerprints. A third are copies of earlier fingerprints with up to 6 bits flipped.
fn clustered(count: usize) -> Vec<u64> {
    let mut random = Random(5);
    let mut all: Vec<u64> = Vec::with_capacity(count);
    while all.len() < count {
        let copied = all.get(random.next() as usize % (3 * all.len() + 1)).copied();
        let value = match copied {
            None => random.next(),
            Some(copied) => (0..random.next() % 7).fold(copied, |value, _| value ^ 1 << (random.next() % 64)),
        };
        all.push(value);
    }
    all
}

fn join(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let values = clustered(1_000_000);
    let queries = clustered(1_100_000).split_off(1_000_000);
    let mut group = criterion.benchmark_group("within-3-of-1M");
    group.sample_size(10).throughput(Throughput::Elements(values.len() as u64));
    for threads in [1, 2] {
        let resources = JoinResources { threads, ..JoinResources::in_dir(dir.path()) };
        group.bench_function(format!("self-join, {threads} threads"), |bencher| {
            bencher.iter(|| {
                let take = |count: &mut u64, _: &Positions<'_>| {
                    *count += 1;
                    Ok(())
                };
                raw_near_fingerprints_within(RawValues::Held(&values), None, RADIUS, resources, || 0, take)
                    .unwrap()
            });
        });
        for way in [BatchStrategy::Merge, BatchStrategy::Scan] {
            let asked = if way == BatchStrategy::Scan { &queries[..1000] } else { &queries };
            group.bench_function(format!("{} queries by {way}, {threads} threads", asked.len()), |bencher| {
                bencher.iter(|| {
                    let take = |count: &mut u64, _, _, _| {
                        *count += 1;
                        Ok(())
                    };
                    let values = RawValues::Held(&values);
                    raw_answers_within(&values, asked, RADIUS, way, resources, || 0, take).unwrap()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, compare, join);
criterion_main!(benches);
