//! Measures a weighted simhash: the sums of votes alone, the lookup of weights alone, and both together.
//!
//! ```sh
//! cargo bench --bench weighted
//! ```

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use twindex::IdfBuilder;
use twindex::params::Shingling;
use twindex::sketch::{IdfTable, simhash, weighted};
use twindex_kernel::splitmix::SplitMix;
use twindex_kernel::weighted::{ITEMS_MAX, ones, ones_wide};

fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut random = SplitMix(seed);
    (0..count).map(|_| random.next()).collect()
}

/// Computes the votes by their definition, as a baseline for the kernels.
fn scalar(hashes: &[u64], weights: &[u16]) -> [i64; 64] {
    let mut votes = [0; 64];
    for (&hash, &weight) in hashes.iter().zip(weights) {
        let hash = black_box(hash);
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { i64::from(weight) } else { -i64::from(weight) };
        }
    }
    votes
}

fn sums(c: &mut Criterion) {
    let hashes = numbers(1, ITEMS_MAX);
    let narrow: Vec<u16> = numbers(2, ITEMS_MAX).into_iter().map(|w| 256 + (w % 8192) as u16).collect();
    let wide: Vec<u64> = numbers(3, ITEMS_MAX).into_iter().map(|w| w >> 20).collect();
    let mut group = c.benchmark_group("votes");
    group.throughput(Throughput::Elements(ITEMS_MAX as u64));
    group.bench_function("one bit after the other", |b| b.iter(|| scalar(&hashes, &narrow)));
    group.bench_function("weights of an idf table", |b| {
        b.iter(|| {
            let mut sums = [0; 64];
            ones(black_box(&hashes), &narrow, &mut sums);
            sums
        });
    });
    group.bench_function("wide weights", |b| {
        b.iter(|| {
            let mut sums = [0; 64];
            ones_wide(black_box(&hashes), &wide, &mut sums);
            sums
        });
    });
    let small: Vec<(u64, i64)> =
        hashes.iter().zip(&narrow).map(|(&h, &w)| (h, i64::from(w) - 4000)).collect();
    group.bench_function("a caller's vector", |b| b.iter(|| weighted(black_box(&small).iter().copied())));
    group.bench_function("no weights", |b| b.iter(|| simhash(black_box(&hashes))));
    group.finish();
}

/// Returns an IDF table with this number of entries. Each is in 2 to 9 of the counted documents.
fn table(entries: usize) -> IdfTable {
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0));
    let all = numbers(4, entries);
    for round in 0..9 {
        let some: Vec<u64> = all.iter().copied().filter(|hash| hash % 8 + 2 > round).collect();
        builder.add(&some).expect("in memory");
    }
    builder.finish().expect("in memory")
}

fn look_ups(c: &mut Criterion) {
    const COUNT: usize = 1 << 14;
    for entries in [10_000, 1_000_000] {
        let table = table(entries);
        let mut group = c.benchmark_group(format!("a table of {entries}"));
        group.throughput(Throughput::Elements(COUNT as u64));
        let mut random = SplitMix(5);
        let present = numbers(4, entries);
        // Half of the shingles are in the table; their order is random.
        let asked: Vec<u64> = (0..COUNT)
            .map(|i| random.next() as usize % entries + i % 2 * entries)
            .map(|place| present.get(place).copied().unwrap_or(place as u64 * 0x9E37_79B9_7F4A_7C15))
            .collect();
        group.bench_function("look-ups", |b| {
            b.iter(|| black_box(&asked).iter().map(|&hash| u64::from(table.weight(hash))).sum::<u64>());
        });
        group.bench_function("look-ups and votes", |b| b.iter(|| table.simhash(black_box(&asked))));
        group.finish();
    }
}

criterion_group!(benches, sums, look_ups);
criterion_main!(benches);
