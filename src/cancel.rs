//! Ends long work early, on request or at a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::{Error, Result};

/// A request to end work early, which the work checks from time to time. Cheap to clone; all clones share the request,
/// so that another thread can make it. Accepted by [`Query::until`](crate::Query::until),
/// [`Writer::compact_until`](crate::Writer::compact_until),
/// [`Writer::merge_step_until`](crate::Writer::merge_step_until), [`verify_until`](crate::verify_until) and
/// [`Resources::cancel`](crate::Resources::cancel), which then fail with [`Error::Cancelled`]. Cancelled work leaves the
/// index as it was.
///
/// ```
/// use std::time::{Duration, Instant};
/// use twindex::{Cancel, Error, Fingerprint, Index, Params};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
/// let cancel = Cancel::at(Instant::now() + Duration::from_secs(60));
/// let query = || index.snapshot().within(Fingerprint(7), 3);
/// assert!(query().until(&cancel).run()?.hits.is_empty());
/// cancel.cancel(); // usually by another thread, or by a signal handler
/// assert!(matches!(query().until(&cancel).run(), Err(Error::Cancelled)));
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    shared: Arc<CancelRequest>,
}

#[derive(Debug, Default)]
struct CancelRequest {
    is_cancelled: AtomicBool,
    deadline: Option<Instant>,
}

impl Cancel {
    /// Creates a request without a deadline, which is made by [`cancel`](Self::cancel).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a request that is made at `deadline`, or before by [`cancel`](Self::cancel).
    #[must_use]
    pub fn at(deadline: Instant) -> Self {
        Self {
            shared: Arc::new(CancelRequest {
                is_cancelled: AtomicBool::new(false),
                deadline: Some(deadline),
            }),
        }
    }

    /// Makes the request. Takes effect once; there is no way back.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the request was made, or the deadline has passed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled.load(Ordering::Relaxed)
            || self.shared.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns an error if the request was made. Work of the caller's own can call this, too.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
