//! What a verb says at its end: figures of the process, JSON, numbers for people.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::time::Instant;

use anyhow::Context;
use serde::Serialize;

/// Time since a start, of the clock and of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: f64,
    whose: Whose,
}

/// Whose time of the processor.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Process,
    Thread,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(Whose::Process), whose: Whose::Process }
    }

    /// Of what this thread alone does; it must also be the one that asks.
    pub(crate) fn of_thread() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(Whose::Thread), whose: Whose::Thread }
    }

    /// Wall-clock seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// CPU seconds of all threads of the process, or of this one, page faults included.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.whose) - self.cpu
    }

    /// What it shows now.
    pub(crate) fn lap(&self) -> Lap {
        Lap { cpu_seconds: self.cpu_seconds(), during: self.start..Instant::now() }
    }
}

/// What something took, and when.
#[derive(Clone, Debug)]
pub(crate) struct Lap {
    cpu_seconds: f64,
    during: Range<Instant>,
}

impl Lap {
    /// Its CPU seconds by the clock of the process, less those that one thread took meanwhile for something else.
    pub(crate) fn beside(&self, thread: &Self) -> f64 {
        let length = |time: &Range<Instant>| time.end.saturating_duration_since(time.start).as_secs_f64();
        let both = self.during.start.max(thread.during.start)..self.during.end.min(thread.during.end);
        let share = length(&both) / length(&thread.during).max(f64::MIN_POSITIVE);
        (self.cpu_seconds - thread.cpu_seconds * share).max(0.0)
    }
}

/// What the stages of a job took.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Stages(BTreeMap<&'static str, f64>);

impl Stages {
    /// Takes note of the CPU seconds of one.
    pub(crate) fn add(&mut self, name: &'static str, watch: Stopwatch) {
        tracing::debug!(seconds = watch.seconds(), "end of stage {name}");
        self.insert(name, watch.cpu_seconds());
    }

    /// Sets the CPU seconds of one.
    pub(crate) fn insert(&mut self, name: &'static str, cpu_seconds: f64) {
        tracing::info!(cpu_seconds, "stage {name}");
        self.0.insert(name, cpu_seconds);
    }
}

#[cfg(unix)]
fn cpu_seconds(whose: Whose) -> f64 {
    let time = rustix::time::clock_gettime(match whose {
        Whose::Process => rustix::time::ClockId::ProcessCPUTime,
        Whose::Thread => rustix::time::ClockId::ThreadCPUTime,
    });
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(unix))]
fn cpu_seconds(_: Whose) -> f64 {
    0.0
}

/// The most memory the process had resident, mapped pages included; 0 where the system does not say.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Prints a JSON document on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_lines(&[serde_json::to_string(value)?])
}

/// Prints lines on standard output. Where `println!` would panic, because nobody reads any more, this is an
/// error.
pub(crate) fn print_lines(lines: &[String]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context("cannot write to standard output")
}

/// Says something on standard error that a person should know, but that is no result.
pub(crate) fn note(note: &str) {
    // Where `eprintln!` would panic, because nobody listens, the results still count.
    let _ = writeln!(io::stderr(), "twindex: note: {note}");
}

/// A part of an order-independent checksum over answers, as the peers' drivers compute it, so that answers
/// can be compared.
pub(crate) fn mix(query: u64, id: u64) -> u64 {
    let mut hash =
        query.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(id.wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ (hash >> 32)
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun, which takes an s unless there is one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Bytes in the unit that fits.
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "bytes" { format!("{number} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// What is said of documents that have an empty sketch, if there are any.
pub(crate) fn empty_remark(empty: u64) -> Option<String> {
    let are = if empty == 1 { "it is" } else { "they are" };
    (empty > 0)
        .then(|| format!("{} without words or features: {are} near nothing", counted(empty, "document")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "pair"), counted(2000, "pair")), ("1 pair".into(), "2,000 pairs".into()));
        assert_eq!([999, 1000, 56_000_000].map(bytes), ["999 bytes", "1.0 kB", "56.0 MB"]);
    }

    #[test]
    fn of_what_was_done_at_the_same_time_the_share_of_another_thread_is_taken_off() {
        let start = Instant::now();
        let lap = |cpu_seconds, from, to| {
            let at = |seconds| start + std::time::Duration::from_secs(seconds);
            Lap { cpu_seconds, during: at(from)..at(to) }
        };
        let thread = lap(4.0, 10, 20);
        for (others, own) in [
            (lap(9.0, 0, 10), 9.0),
            (lap(9.0, 20, 30), 9.0),
            (lap(9.0, 10, 20), 5.0),
            (lap(9.0, 0, 30), 5.0),
            (lap(9.0, 15, 17), 8.2),
            (lap(9.0, 5, 15), 7.0),
            (lap(1.0, 10, 20), 0.0),
        ] {
            assert!((others.beside(&thread) - own).abs() < 1e-9, "{others:?}");
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_peers_drivers() {
        assert_eq!(mix(0, 0), 0);
        assert_eq!(mix(1, 2), 0xB5B3_9F78_4142_F3FD); // computed by Python's integers
    }
}
