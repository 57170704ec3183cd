//! Measures the Hamming filter in nanoseconds per bucket, at each SIMD level.
//!
//! ```sh
//! cargo bench --bench near
//! ```
//!
//! Buckets are adjacent in a plane and start at any alignment, as in a table. The planes fit in the caches. Buckets have
//! about 15 elements in a table whose prefix has the default length, and 153 or 763 in tables with shorter prefixes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use random::Random;
use twindex_kernel::{Kernel, Level, Simd, for_each_near16, for_each_near32, for_each_near48};
use zerocopy::little_endian::{U16, U32};

#[path = "../tests/support/random.rs"]
mod random;

/// Number of buckets that one iteration filters.
const BUCKETS: usize = 256;
const RADIUS: u32 = 3;

/// Two planes, the end of each bucket, and a query for each bucket.
struct Buckets {
    high: Vec<U16>,
    low: Vec<U32>,
    ends: Vec<usize>,
    queries: Vec<u64>,
}

impl Buckets {
    /// Creates buckets of `mean` elements. If `spread` is true, the number varies by up to a third in both directions.
    fn new(mean: usize, spread: bool) -> Self {
        let mut random = Random(7);
        let third = if spread { mean / 3 } else { 0 };
        let ends: Vec<usize> = (0..BUCKETS)
            .scan(0, |end, _| {
                *end += mean - third + random.next() as usize % (2 * third + 1);
                Some(*end)
            })
            .collect();
        let count = ends.last().copied().unwrap_or_default();
        let mut values = || (0..count).map(|_| random.next()).collect::<Vec<_>>();
        let high = values().into_iter().map(|value| U16::new(value as u16)).collect();
        let low = values().into_iter().map(|value| U32::new(value as u32)).collect();
        let queries = (0..BUCKETS).map(|_| random.next()).collect();
        Self { high, low, ends, queries }
    }

    /// Returns the sum of `of(high, low, query)` over all buckets and their queries.
    #[inline(always)]
    fn sum(&self, of: impl Fn(&[U16], &[U32], u64) -> usize) -> usize {
        let (mut start, mut sum) = (0, 0);
        for (&end, &query) in self.ends.iter().zip(&self.queries) {
            sum += of(&self.high[start..end], &self.low[start..end], query);
            start = end;
        }
        sum
    }
}

/// Runs the Hamming filter with `BITS` bits on all buckets.
struct Filter<'a, const BITS: u32>(&'a Buckets);

impl<const BITS: u32> Kernel for Filter<'_, BITS> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        self.0.sum(
            #[inline(always)]
            |high, low, query| {
                let mut sum = 0;
                match BITS {
                    16 => for_each_near16(simd, high, query as u16, RADIUS, |place| sum += place),
                    32 => for_each_near32(simd, low, query as u32, RADIUS, |place| sum += place),
                    _ => for_each_near48(simd, high, low, query, RADIUS, |place| sum += place),
                }
                sum
            },
        )
    }
}

fn filters(criterion: &mut Criterion) {
    for (mean, spread) in [(15, false), (15, true), (153, false), (763, false)] {
        let buckets = Buckets::new(mean, spread);
        let name = format!("{}{mean}", if spread { "about-" } else { "" });
        let mut group = criterion.benchmark_group(format!("near/{name}"));
        group.throughput(Throughput::Elements(BUCKETS as u64));
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            group.bench_function(format!("16/{level}"), |b| {
                b.iter(|| level.dispatch(Filter::<16>(black_box(&buckets))));
            });
            group.bench_function(format!("32/{level}"), |b| {
                b.iter(|| level.dispatch(Filter::<32>(black_box(&buckets))));
            });
            group.bench_function(format!("48/{level}"), |b| {
                b.iter(|| level.dispatch(Filter::<48>(black_box(&buckets))));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, filters);
criterion_main!(benches);
