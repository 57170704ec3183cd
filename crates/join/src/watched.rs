//! A long job as another thread sees it: how far it has come, and a wish that it stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use twindex::error::{Error, Result};

/// Shared by the threads that work and one that watches them.
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
    stop: AtomicBool,
    /// The current stage, and the number of its parts.
    stage: Mutex<(&'static str, u64)>,
    done: AtomicU64,
}

impl SharedProgress {
    /// Ends the work with an error, at the next [`check`](Self::check) of each of its threads.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Refuses to go on after [`stop`](Self::stop).
    ///
    /// # Errors
    /// [`Error::Invalid`], which says that the work was stopped.
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(Error::Invalid("the work was stopped before its end".into()));
        }
        Ok(())
    }

    /// Begins a stage of `parts` parts; none of them is done.
    pub fn begin(&self, stage: &'static str, parts: u64) {
        let mut now = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        self.done.store(0, Ordering::Relaxed);
        *now = (stage, parts);
    }

    /// Sets the number of parts of the stage that are done.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn reach(&self, done: u64) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        self.check()
    }

    /// Adds `by` to the parts of the stage that are done.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn advance(&self, by: u64) -> Result<()> {
        self.done.fetch_add(by, Ordering::Relaxed);
        self.check()
    }

    /// The stage, the parts that are done, and those that it has; empty before the first stage.
    #[must_use]
    pub fn now(&self) -> (&'static str, u64, u64) {
        let (stage, parts) = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        (stage, self.done.load(Ordering::Relaxed).min(parts), parts)
    }
}
