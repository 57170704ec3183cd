//! Helpers that the benchmark programs share: arguments, random numbers, times, memory, medians and checksums.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

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
    /// Returns the value after at most `bits` flips of random bits.
    pub fn flip(&mut self, value: u64, bits: usize) -> u64 {
        (0..self.below(bits + 1)).fold(value, |value, _| value ^ 1 << self.below(64))
    }
}

/// Returns the CPU time of this thread in seconds.
pub fn cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Measures wall time and the CPU time of all threads of this process.
pub struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: seconds(ClockId::ProcessCPUTime) }
    }

    /// Returns the seconds since the start as a JSON object with the fields `wall` and `cpu`.
    pub fn read(&self) -> Value {
        json!({ "wall": self.wall.elapsed().as_secs_f64(), "cpu": seconds(ClockId::ProcessCPUTime) - self.cpu })
    }
}

/// Returns the resident memory of this process in bytes: the peak if `peak` is true, otherwise the current value.
pub fn resident(peak: bool) -> Result<u64> {
    #[allow(clippy::disallowed_methods, reason = "no file of an index")]
    let status = std::fs::read_to_string("/proc/self/status")?;
    let name = if peak { "VmHWM:" } else { "VmRSS:" };
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no memory in /proc")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// The number of pairs, and a checksum of the pairs that depends neither on their order nor on the order of the two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    pub pairs: u64,
    pub sum: u64,
}

impl Answers {
    pub fn add(&mut self, a: u64, b: u64) {
        self.pairs += 1;
        self.sum = self.sum.wrapping_add(Random(a.min(b) << 32 | a.max(b)).next());
    }

    pub fn total(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::default(), |all, part| Self {
            pairs: all.pairs + part.pairs,
            sum: all.sum.wrapping_add(part.sum),
        })
    }
}

/// Returns the median, the minimum and the maximum of at least one value.
pub fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}
