//! Provides batches that a thread produces while Python consumes earlier ones, so that only a few are in memory.

use std::ffi::CString;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::error::{Failure, Result};
use crate::process::on_all_cores;

/// Maximum number of rows in a batch.
pub(crate) const ROWS: usize = 1 << 16;
/// Number of bytes in a column of keys at which a batch is sent even if it has fewer rows.
pub(crate) const BYTES: usize = 1 << 26;
/// Number of finished batches that may wait to be consumed.
const WAITING: usize = 1;

/// An iterator of batches. If it is dropped before its end, the thread stops at the next batch.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct Batches {
    running: Mutex<Option<Running>>,
    capped: OnceLock<CappedCounts>,
    /// Whether to warn about capped buckets at the end. False in workers, whose warnings are not shown.
    warns: bool,
}

struct Running {
    made: Receiver<PyRecordBatch>,
    thread: JoinHandle<Result<CappedCounts>>,
}

/// Counts of buckets with too many documents to compare all pairs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CappedCounts {
    pub(crate) buckets: u64,
    pub(crate) cap: u64,
}

impl CappedCounts {
    /// Issues a warning that pairs may be missing.
    pub(crate) fn warn(self, py: Python<'_>) -> PyResult<()> {
        if self.buckets == 0 {
            return Ok(());
        }
        let Self { buckets, cap } = self;
        let why = format!(
            "{buckets} buckets of bands have more than {cap} documents, which are not paired all with all: pairs may be \
             missing, though clusters hold together"
        );
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(why).unwrap_or_default(), 1)
    }
}

/// The channel through which batches are sent.
pub(crate) struct BatchSender(SyncSender<PyRecordBatch>);

impl BatchSender {
    /// Sends a batch; waits until the queue has capacity.
    ///
    /// # Errors
    /// The receiver has been dropped.
    pub(crate) fn push(&self, batch: PyRecordBatch) -> Result<()> {
        self.0.send(batch).map_err(|_| Failure::invalid("nobody takes the batches any more"))
    }
}

impl Batches {
    pub(crate) fn start(
        warns: bool,
        work: impl FnOnce(&BatchSender) -> Result<CappedCounts> + Send + 'static,
    ) -> Result<Self> {
        let (out, made) = sync_channel(WAITING);
        let thread = Builder::new()
            .name("twindex-batches".into())
            .spawn(move || on_all_cores(|| work(&BatchSender(out))))
            .map_err(|error| Failure::invalid(format!("cannot start a thread: {error}")))?;
        let running = Mutex::new(Some(Running { made, thread }));
        Ok(Self { running, capped: OnceLock::new(), warns })
    }

    fn next(&self) -> Result<Option<PyRecordBatch>> {
        let mut guard = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = guard.as_ref() else { return Ok(None) };
        if let Ok(batch) = running.made.recv() {
            return Ok(Some(batch));
        }
        // At this point the thread has ended, successfully or with an error.
        if let Some(Running { thread, .. }) = guard.take() {
            let capped = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let _ = self.capped.set(capped);
        }
        Ok(None)
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        let was_known = self.capped.get().is_some();
        let batch = py.detach(|| self.next())?;
        if let (true, false, Some(capped)) = (self.warns, was_known, self.capped.get()) {
            capped.warn(py)?;
        }
        Ok(batch)
    }

    /// The number of buckets with too many documents to compare all pairs; None before the last batch.
    #[getter]
    fn capped_buckets(&self) -> Option<u64> {
        self.capped.get().map(|capped| capped.buckets)
    }
}
