//! Compares methods that compute minima of weighted sets, to decide which one to use. Prints the bias and variance of each
//! method as an estimate of weighted resemblance, and its time for each element relative to unweighted minima.
//!
//! ```sh
//! cargo run --release -p twindex-sketch --example weighted_minima
//! ```

use std::hint::black_box;
use std::time::Instant;

use twindex_sketch::MinHasher;
use twindex_sketch::darts::{WEIGHT_ONE, WeightedMinHasher, weighted_jaccard};

type Weighted = Vec<(u64, u64)>;
/// A method that computes `t` minima of a set of elements and weights.
type Way = fn(&[(u64, u64)], usize) -> Vec<u64>;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

fn uniform(x: u64) -> f64 {
    ((mix(x) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Consistent weighted sampling (Ioffe, 2010): `t` steps for each element.
fn consistent(elements: &[(u64, u64)], t: usize) -> Vec<u64> {
    let minimum = |j: u64| {
        let values = elements.iter().map(|&(element, weight)| {
            let seed = mix(element ^ mix(j + 1));
            let rate = -(uniform(seed) * uniform(seed ^ 1)).ln();
            let scale = -(uniform(seed ^ 2) * uniform(seed ^ 3)).ln();
            let (offset, log) = (uniform(seed ^ 4), (weight as f64).ln());
            let step = (log / rate + offset).floor();
            let value = scale / ((rate * (step - offset)).exp() * rate.exp());
            (value, mix(element ^ (step as i64).cast_unsigned()))
        });
        values.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |min| min.1)
    };
    (0..t as u64).map(minimum).collect()
}

/// Minima with the same distribution as those of `ProbMinHash`, which computes them faster. Each element draws exponential
/// random numbers whose rate is its weight; a minimum is the least number of all elements.
fn exponential(elements: &[(u64, u64)], t: usize) -> Vec<u64> {
    let minimum = |j: u64| {
        let values = elements
            .iter()
            .map(|&(element, weight)| (-uniform(element ^ mix(j + 1)).ln() / weight as f64, element));
        values.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |min| min.1)
    };
    (0..t as u64).map(minimum).collect()
}

fn darts(elements: &[(u64, u64)], t: usize) -> Vec<u64> {
    let mut signature = Vec::new();
    let hasher = WeightedMinHasher::new(t).expect("t is in range");
    hasher.signature(elements, &mut signature).expect("weights are in range");
    signature.into_iter().map(u64::from).collect()
}

/// Returns one of two documents that have the same elements with different weights.
fn document(trial: u64, which: u64) -> Weighted {
    let weights = [0, 4096, 40_000, 65_536, 131_072, 300_000, 1_000_000];
    let of = |number: u64| weights[((number * 3 + which * (number % 3 / 2)) % 7) as usize];
    let all = (0..12).map(|number| (mix(trial.wrapping_mul(1 << 20) + number + 1), of(number)));
    all.filter(|one| one.1 > 0).collect()
}

/// Returns the least time of several runs, in nanoseconds per element.
fn nanoseconds(elements: usize, mut run: impl FnMut()) -> f64 {
    let mut min = f64::MAX;
    for _ in 0..40 {
        let start = Instant::now();
        run();
        min = min.min(start.elapsed().as_nanos() as f64);
    }
    min / elements as f64
}

fn main() {
    const TRIALS: u64 = 20_000;
    const MINIMA: usize = 16;
    let sorted = |which| {
        let mut all = document(0, which);
        all.sort_unstable();
        all
    };
    let (min, max) = weighted_jaccard(&sorted(0), &sorted(1));
    let exact = min as f64 / max as f64;
    let expected = exact * (1.0 - exact) / MINIMA as f64;
    println!("weighted resemblance {exact:.6}, {MINIMA} minima, {TRIALS} trials");
    let ways: [(&str, Way); 3] = [("darts", darts), ("consistent", consistent), ("exponential", exponential)];
    for (name, way) in ways {
        let (mut sum, mut squares) = (0.0, 0.0);
        for trial in 0..TRIALS {
            let (a, b) = (way(&document(trial, 0), MINIMA), way(&document(trial, 1), MINIMA));
            let share = a.iter().zip(&b).filter(|(a, b)| a == b).count() as f64 / MINIMA as f64;
            sum += share;
            squares += (share - exact) * (share - exact);
        }
        let (mean, variance) = (sum / TRIALS as f64, squares / TRIALS as f64);
        let errors = (mean - exact) / (expected / TRIALS as f64).sqrt();
        let ratio = variance / expected;
        println!("{name:12} mean {mean:.6}, {errors:+.2} standard errors; variance by J(1-J)/t {ratio:.4}");
    }
    println!("\nns an element, 120 minima");
    for (name, number, weight) in [
        ("weight 1", 100, 0),
        ("weight 1", 1000, 0),
        ("weight 1", 10_000, 0),
        ("frequencies 1 to 3", 1000, 1),
        ("idf, 4 to 10", 1000, 2),
    ] {
        let of = |number: u64| match weight {
            0 => WEIGHT_ONE,
            1 => {
                WEIGHT_ONE
                    * (1 + u64::from(mix(number).is_multiple_of(10)) + u64::from(mix(number) % 100 == 1))
            }
            _ => 4 * WEIGHT_ONE + mix(number) % (6 * WEIGHT_ONE),
        };
        let elements: Weighted = (0..number).map(|number| (mix(number + 77), of(number))).collect();
        let hashes: Vec<u64> = elements.iter().map(|one| one.0).collect();
        let (hasher, mut signature) = (MinHasher::new(120), Vec::new());
        let unweighted = nanoseconds(hashes.len(), || {
            hasher.signature(&hashes, &mut signature);
            black_box(&signature);
        });
        let times = ways.map(|(name, way)| {
            let time = nanoseconds(hashes.len(), || {
                black_box(way(black_box(&elements), 120));
            });
            format!("{name} {time:.1}")
        });
        println!("{name}, {number} elements: without weights {unweighted:.1}, {}", times.join(", "));
    }
}
