//! Reports the progress of a long job to another thread, which can also stop the job.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use twindex::Cancel;
use twindex::error::Result;

/// The progress of a job, shared by its threads and a thread that watches them.
///
/// ```
/// use twindex_join::SharedProgress;
///
/// let watched = SharedProgress::default();
/// watched.begin("comparing", 10);
/// watched.reach(4)?;
/// assert_eq!(watched.now(), ("comparing", 4, 10));
/// watched.stop();
/// assert!(watched.check().is_err());
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SharedProgress {
    cancel: Cancel,
    /// The name of the current stage, and the number of parts it consists of.
    stage: Mutex<(&'static str, u64)>,
    done: AtomicU64,
}

impl SharedProgress {
    /// Stops the job: the next [`check`](Self::check) on each of its threads returns an error.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// Returns whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns an error if [`stop`](Self::stop) was called.
    ///
    /// # Errors
    /// [`Error::Cancelled`](twindex::Error::Cancelled) if the work was stopped.
    pub fn check(&self) -> Result<()> {
        self.cancel.check()
    }

    /// Returns the request that [`stop`](Self::stop) makes, for work of the engine that is part of the job.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Begins a stage of `parts` parts. None is done.
    pub fn begin(&self, stage: &'static str, parts: u64) {
        let mut now = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        self.done.store(0, Ordering::Relaxed);
        *now = (stage, parts);
    }

    /// Sets the number of parts of the stage that are done.
    ///
    /// # Errors
    /// Same as [`check`](Self::check).
    pub fn reach(&self, done: u64) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        self.check()
    }

    /// Adds `by` to the number of parts of the stage that are done.
    ///
    /// # Errors
    /// Same as [`check`](Self::check).
    pub fn advance(&self, by: u64) -> Result<()> {
        self.done.fetch_add(by, Ordering::Relaxed);
        self.check()
    }

    /// Returns the name of the stage, the number of its parts that are done, and the number of all its parts. Before the
    /// first stage, the name is empty.
    #[must_use]
    pub fn now(&self) -> (&'static str, u64, u64) {
        let (stage, parts) = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        (stage, self.done.load(Ordering::Relaxed).min(parts), parts)
    }
}
