//! What a job took: time of the clock and of the processor, stage by stage, and memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

/// Time since a start, of the clock and of the processor.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
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
    /// Of what the whole process does from now on.
    #[must_use] 
    pub fn start() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(Whose::Process), whose: Whose::Process }
    }

    /// Of what this thread alone does; it must also be the one that asks.
    #[must_use] 
    pub fn of_thread() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(Whose::Thread), whose: Whose::Thread }
    }

    /// Wall-clock seconds.
    #[must_use] 
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// CPU seconds of all threads of the process, or of this one, page faults included.
    #[must_use] 
    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.whose) - self.cpu
    }

    /// What it shows now.
    #[must_use] 
    pub fn lap(&self) -> Lap {
        Lap { cpu_seconds: self.cpu_seconds(), during: self.start..Instant::now() }
    }
}

/// What something took, and when.
#[derive(Clone, Debug)]
pub struct Lap {
    cpu_seconds: f64,
    during: Range<Instant>,
}

impl Lap {
    /// Its CPU seconds by the clock of the process, less those that one thread took meanwhile for something else.
    #[must_use] 
    pub fn beside(&self, thread: &Self) -> f64 {
        let length = |time: &Range<Instant>| time.end.saturating_duration_since(time.start).as_secs_f64();
        let both = self.during.start.max(thread.during.start)..self.during.end.min(thread.during.end);
        let share = length(&both) / length(&thread.during).max(f64::MIN_POSITIVE);
        (self.cpu_seconds - thread.cpu_seconds * share).max(0.0)
    }
}

/// What the stages of a job took.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Stages(BTreeMap<&'static str, f64>);

impl Stages {
    /// Takes note of the CPU seconds of one.
    pub fn add(&mut self, name: &'static str, watch: Stopwatch) {
        tracing::debug!(seconds = watch.seconds(), "end of stage {name}");
        self.insert(name, watch.cpu_seconds());
    }

    /// Sets the CPU seconds of one.
    pub fn insert(&mut self, name: &'static str, cpu_seconds: f64) {
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
#[must_use] 
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
