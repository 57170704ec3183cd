//! Measures the wall-clock time, CPU time and memory of a job.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

/// Measures wall-clock time and CPU time since its creation.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    start: Instant,
    cpu: f64,
    whose: ClockScope,
}

/// Whether CPU time is measured for the whole process or for one thread.
#[derive(Clone, Copy, Debug)]
enum ClockScope {
    Process,
    Thread,
}

impl Stopwatch {
    /// Starts measuring the time of the whole process.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(ClockScope::Process), whose: ClockScope::Process }
    }

    /// Starts measuring, with CPU time of the calling thread only. The same thread must read the time.
    #[must_use]
    pub fn of_thread() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(ClockScope::Thread), whose: ClockScope::Thread }
    }

    /// Returns the wall-clock time in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the CPU time in seconds, including page faults: of all threads of the process, or of one thread.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.whose) - self.cpu
    }
}

/// The CPU seconds of the stages of a job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Stages(BTreeMap<&'static str, f64>);

impl Stages {
    /// Sets the CPU seconds of a stage to those that `watch` measured.
    pub fn add(&mut self, name: &'static str, watch: Stopwatch) {
        tracing::debug!(seconds = watch.seconds(), "end of stage {name}");
        self.insert(name, watch.cpu_seconds());
    }

    /// Adds CPU seconds to a stage.
    pub fn add_seconds(&mut self, name: &'static str, cpu_seconds: f64) {
        let before = self.0.get(name).copied().unwrap_or_default();
        self.insert(name, before + cpu_seconds);
    }

    /// Sets the CPU seconds of a stage.
    pub fn insert(&mut self, name: &'static str, cpu_seconds: f64) {
        tracing::info!(cpu_seconds, "stage {name}");
        self.0.insert(name, cpu_seconds);
    }
}

#[cfg(unix)]
fn cpu_seconds(whose: ClockScope) -> f64 {
    let time = rustix::time::clock_gettime(match whose {
        ClockScope::Process => rustix::time::ClockId::ProcessCPUTime,
        ClockScope::Thread => rustix::time::ClockId::ThreadCPUTime,
    });
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(unix))]
fn cpu_seconds(_: ClockScope) -> f64 {
    0.0
}

/// Returns the peak resident memory of the process in bytes, including mapped pages; 0 if the system does not report
/// it.
#[must_use]
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kibibytes.unwrap_or(0) * 1024
}
