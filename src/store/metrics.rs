//! Numbers about an index and its writers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::state::State;

/// An activity that takes time and writes bytes, with its count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Activity {
    /// The number of times.
    pub count: u64,
    /// The total time.
    pub seconds: f64,
    /// Bytes that were written.
    pub bytes: u64,
    /// The number of failures.
    pub failures: u64,
}

/// Numbers about an index, and about the work done through this [`Index`](crate::Index) since it was opened, returned
/// by [`Index::metrics`](crate::Index::metrics). Clones of an `Index` count together; other processes count for
/// themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// The last commit.
    pub commit: u64,
    /// Live documents.
    pub documents: u64,
    /// Live documents that are in no segment yet.
    pub logged_documents: u64,
    /// Segments on disk.
    pub segments: u64,
    /// Bytes of the memtable, and of the one that is becoming a segment.
    pub memtable_bytes: u64,
    /// Bytes of segments and logs.
    pub disk_bytes: u64,
    /// Bytes of the pages of segments whose checksums were compared. Each page is compared once.
    pub verified_bytes: u64,
    /// Commits to the log, and the bytes that they added.
    pub commits: Activity,
    /// Segments that were built from memtables.
    pub flushes: Activity,
    /// Segments that were merged in the background.
    pub merges: Activity,
    /// Commits that waited because the memtable was full while the one before was still being flushed.
    pub stalls: Activity,
}

impl Metrics {
    /// How often a committed byte has been written, by logs, flushes and merges; `None` before the first commit.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.commits.bytes + self.flushes.bytes + self.merges.bytes;
        (self.commits.bytes > 0).then(|| written as f64 / self.commits.bytes as f64)
    }
}

/// Counters of one activity, shared by threads.
#[derive(Debug, Default)]
pub(super) struct Counter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl Counter {
    pub(super) fn add(&self, time: Duration, bytes: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> Activity {
        Activity {
            count: self.count.load(Ordering::Relaxed),
            seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            bytes: self.bytes.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }
}

/// The counters of an index's writers.
#[derive(Debug, Default)]
pub(super) struct MetricCounters {
    pub(super) commits: Counter,
    pub(super) flushes: Counter,
    pub(super) merges: Counter,
    pub(super) stalls: Counter,
}

impl MetricCounters {
    pub(super) fn of(&self, state: &State) -> Metrics {
        let view = &state.view;
        let frozen = view.frozen.as_ref().map_or(0, |frozen| frozen.table.memory());
        let logs = state.manifest.logged.iter().flat_map(|logged| &logged.logs);
        // The length of the active log is the offset up to which it was read or written.
        let sealed: u64 = logs.filter(|log| !log.grows).map(|log| log.length).sum();
        let segments: u64 = view.segments.iter().map(|segment| segment.length()).sum();
        Metrics {
            commit: view.commit,
            documents: view.documents(),
            logged_documents: view.logged(),
            segments: view.segments.len() as u64,
            memtable_bytes: (frozen + view.table.memory()) as u64,
            disk_bytes: segments + sealed + state.position.map_or(0, |position| position.offset),
            verified_bytes: view.segments.iter().map(|segment| segment.verified_bytes()).sum(),
            commits: self.commits.now(),
            flushes: self.flushes.now(),
            merges: self.merges.now(),
            stalls: self.stalls.now(),
        }
    }
}
