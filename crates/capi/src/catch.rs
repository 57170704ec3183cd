//! Runs functions that have no error to return, and catches their panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` and returns its result, or `otherwise` if it panics.
pub(crate) fn ask<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Drops a handle. A panic while dropping it is ignored.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    ask((), move || drop(handle));
}
