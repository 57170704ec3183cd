//! Statistics of an index and its writers.

use std::mem::MaybeUninit;

use crate::border::{self, Structure, given};
use crate::error::{Code, Error};
use crate::index::Index;

/// Statistics of a repeated activity since the index was opened. Work of other processes is not included.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

/// Statistics of an index. Initialise with `TWINDEX_METRICS_INIT`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Metrics {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// The number of the last commit.
    pub commit: u64,
    /// Number of live documents.
    pub documents: u64,
    /// Number of live documents that are not in a segment yet.
    pub logged_documents: u64,
    /// Number of segments on disk.
    pub segments: u64,
    /// Size in bytes of the memtable, and of the memtable that is being written as a segment.
    pub memtable_bytes: u64,
    /// Size of segments and logs in bytes.
    pub disk_bytes: u64,
    /// Memory of the data that queries cached, in bytes.
    pub cached_bytes: u64,
    /// Bytes of segment pages whose checksums have been verified.
    pub verified_bytes: u64,
    /// Commits that were appended to the log.
    pub commits: Activity,
    /// Segments built from memtables.
    pub flushes: Activity,
    /// Background merges of segments.
    pub merges: Activity,
    /// Commits that waited because segments were written more slowly than documents arrived.
    pub stalls: Activity,
    /// The bytes that commits, flushes and merges wrote, divided by the bytes that commits appended to the log; 0
    /// before the first commit to the log.
    pub write_amplification: f64,
}

// SAFETY: the first field is the size, and all fields are numbers, for which zero is a value.
unsafe impl Structure for Metrics {
    const FIRST: usize = 7 * 8;
}

fn activity(now: twindex::Activity) -> Activity {
    let twindex::Activity { count, seconds, bytes, failures, .. } = now;
    Activity { count, seconds, bytes, failures }
}

/// Fills `metrics`, whose `struct_size` must be set.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_metrics(
    index: Option<&Index>,
    metrics: *mut Metrics,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let now = given(index, "index")?.inner.metrics();
        let filled = Metrics {
            struct_size: size_of::<Metrics>(),
            commit: now.commit,
            documents: now.documents,
            logged_documents: now.logged_documents,
            segments: now.segments,
            memtable_bytes: now.memtable_bytes,
            disk_bytes: now.disk_bytes,
            cached_bytes: now.cached_bytes,
            verified_bytes: now.verified_bytes,
            commits: activity(now.commits),
            flushes: activity(now.flushes),
            merges: activity(now.merges),
            stalls: activity(now.stalls),
            write_amplification: now.write_amplification().unwrap_or(0.0),
        };
        // SAFETY: the caller passes a writable structure that begins with its size, or null.
        unsafe { border::fill(metrics, &filled, "metrics") }
    })
}
