//! Requests to end long work early.

use std::time::{Duration, Instant};

use crate::catch::{ask, free};

/// A request to end work early, for functions that take one. Any thread may make it. Must be freed with
/// `twindex_cancel_free`, when no work uses it.
#[derive(Debug)]
pub struct Cancel {
    inner: twindex::Cancel,
}

/// Returns the request of a handle; if the handle is null, one that is never made.
pub(crate) fn of(cancel: Option<&Cancel>) -> twindex::Cancel {
    cancel.map_or_else(twindex::Cancel::default, |cancel| cancel.inner.clone())
}

/// Creates a request that is made by `twindex_cancel_request` or, if `milliseconds` is not negative, after this time.
/// Returns null if memory cannot be allocated.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_cancel_new(milliseconds: i64) -> *mut Cancel {
    ask(std::ptr::null_mut(), || {
        let after = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        // A time that is too far ahead for the clock never comes.
        let deadline = after.and_then(|after| Instant::now().checked_add(after));
        let inner = deadline.map_or_else(twindex::Cancel::new, twindex::Cancel::at);
        Box::into_raw(Box::new(Cancel { inner }))
    })
}

/// Makes the request. There is no way back. `cancel` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_cancel_request(cancel: Option<&Cancel>) {
    if let Some(cancel) = cancel {
        cancel.inner.cancel();
    }
}

/// Returns whether the request was made, or its time has passed; false if `cancel` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_cancel_is_requested(cancel: Option<&Cancel>) -> bool {
    cancel.is_some_and(|cancel| cancel.inner.is_cancelled())
}

/// Frees a request. `cancel` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_cancel_free(cancel: Option<Box<Cancel>>) {
    free(cancel);
}
