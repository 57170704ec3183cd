//! Statistics of an index and its writers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::state::State;

/// Statistics of a repeated activity: number of runs, time, bytes written and failures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Activity {
    /// Number of times the activity was completed.
    pub count: u64,
    /// Total time in seconds.
    pub seconds: f64,
    /// Number of bytes written.
    pub bytes: u64,
    /// Number of failures.
    pub failures: u64,
}

/// Statistics of an index, and of the work done through this [`Index`](crate::Index) and its clones since it was opened.
/// Returned by [`Index::metrics`](crate::Index::metrics). Work of other processes is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// The number of the last commit.
    pub commit: u64,
    /// Number of live documents.
    pub documents: u64,
    /// Number of live documents that are not in a segment yet.
    pub logged_documents: u64,
    /// Number of segments on disk.
    pub segments: u64,
    /// Memory of the memtable, and of the frozen memtable that is being flushed, in bytes.
    pub memtable_bytes: u64,
    /// Memory of the data that queries cached while the segments are open or the last commit is current, in bytes: the
    /// features and priorities of documents, the orders of long buckets, the leaders of groups, and the segment that
    /// [`Snapshot::segments`](crate::Snapshot::segments) builds from the memtable. Pages of segment files are not included:
    /// with [`Access::Read`](crate::Access::Read) their memory is at most [`verified_bytes`](Self::verified_bytes).
    pub cached_bytes: u64,
    /// Bytes of segment and log files.
    pub disk_bytes: u64,
    /// Bytes of segment pages whose checksums have been verified. Each page is counted once.
    pub verified_bytes: u64,
    /// Commits that were appended to the log.
    pub commits: Activity,
    /// Segments built from memtables.
    pub flushes: Activity,
    /// Background merges of segments.
    pub merges: Activity,
    /// Commits that waited because the memtable was full while the previous one was still being flushed.
    pub stalls: Activity,
}

impl Metrics {
    /// Returns the bytes that commits, flushes and merges wrote, divided by the bytes that commits appended to the log.
    /// `None` before the first commit to the log.
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
        // The length of the active log, which still grows, is the offset up to which it was read or written.
        let sealed: u64 = logs.filter(|log| !log.grows).map(|log| log.length).sum();
        let segments: u64 = view.segments.iter().map(|segment| segment.length()).sum();
        Metrics {
            commit: view.commit,
            documents: view.documents(),
            logged_documents: view.logged(),
            segments: view.segments.len() as u64,
            memtable_bytes: (frozen + view.table.memory()) as u64,
            cached_bytes: state.cached_bytes(),
            disk_bytes: segments + sealed + state.position().map_or(0, |position| position.offset),
            verified_bytes: view.segments.iter().map(|segment| segment.verified_bytes()).sum(),
            commits: self.commits.now(),
            flushes: self.flushes.now(),
            merges: self.merges.now(),
            stalls: self.stalls.now(),
        }
    }
}
