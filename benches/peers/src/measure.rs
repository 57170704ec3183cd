//! What the programs that measure fingerprints share: arguments, random numbers, the processor's clock, medians.

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

/// What such a program is told: how many fingerprints, and how many rounds, 5 unless said.
pub fn count_and_rounds() -> Result<(usize, usize)> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().context("expected a number of fingerprints")?.parse()?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    ensure!(count > 0 && rounds > 0, "expected at least one fingerprint and one round");
    Ok((count, rounds))
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// The value with up to so many bits flipped.
    pub fn flip(&mut self, value: u64, bits: usize) -> u64 {
        (0..self.below(bits + 1)).fold(value, |value, _| value ^ 1 << self.below(64))
    }
}

/// Seconds that the processor has spent on this thread.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The median, the least and the most of one value at least.
pub fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}
