//! Helpers of the programs that measure fingerprints: arguments, random numbers, CPU time, medians.

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

/// Parses the arguments: the number of fingerprints, and the number of rounds (default 5).
pub fn count_and_rounds() -> Result<(usize, usize)> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().context("expected a number of fingerprints")?.parse()?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    ensure!(count > 0 && rounds > 0, "expected at least one fingerprint and one round");
    Ok((count, rounds))
}

#[path = "../../../tests/support/random.rs"]
mod random;

pub use random::Random;

impl Random {
    /// Returns the value with up to `bits` random bits flipped.
    pub fn flip(&mut self, value: u64, bits: usize) -> u64 {
        (0..self.below(bits + 1)).fold(value, |value, _| value ^ 1 << self.below(64))
    }
}

/// Returns the CPU time of this thread in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the median, the minimum and the maximum of at least one value.
pub fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}
