//! Runs long calls on a thread of their own, while the calling thread checks for Ctrl-C and reports progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use twindex_join::SharedProgress;

use crate::error::Result;
use crate::process::on_all_cores;

/// Interval between two checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Returns the callback for `progress=`: `None`, the given function, or a bar of `twindex._progress`.
fn reporter<'py>(
    py: Python<'py>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(given) = progress else { return Ok(None) };
    match given.cast::<PyBool>() {
        Ok(flag) if flag.is_true() => py.import("twindex._progress")?.getattr("Bar")?.call0().map(Some),
        Ok(_) => Ok(None),
        Err(_) if given.is_callable() => Ok(Some(given.clone())),
        Err(_) => {
            let found = given.get_type().name()?;
            Err(PyTypeError::new_err(format!("progress: expected True or a function, found {found}")))
        }
    }
}

/// Runs work without the interpreter's lock. An exception from a signal handler, as for Ctrl-C, or from `progress`
/// stops the work, and the call raises this exception.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&SharedProgress) -> Result<T> + Send,
) -> Result<T> {
    let report = reporter(py, progress)?;
    let (watched, ended) = (SharedProgress::default(), AtomicBool::new(false));
    let call_progress = |watched: &SharedProgress| -> PyResult<()> {
        match (&report, watched.now()) {
            (Some(report), now) if !now.0.is_empty() => report.call1(now).map(drop),
            _ => Ok(()),
        }
    };
    std::thread::scope(|scope| {
        let caller = std::thread::current();
        let (watched, ended) = (&watched, &ended);
        let worker = scope.spawn(move || {
            let result = on_all_cores(|| work(watched));
            ended.store(true, Ordering::Release);
            caller.unpark();
            result
        });
        let mut raised = None;
        loop {
            py.detach(|| std::thread::park_timeout(LOOK));
            if ended.load(Ordering::Acquire) || worker.is_finished() {
                break;
            }
            if raised.is_none()
                && let Err(error) = py.check_signals().and_then(|()| call_progress(watched))
            {
                watched.stop();
                raised = Some(error);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Some(error) = raised {
            return Err(error.into());
        }
        let result = result?;
        call_progress(watched)?;
        Ok(result)
    })
}
