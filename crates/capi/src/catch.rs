//! Calls that can fail only by a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function that returns a value directly; returns `otherwise` if it panics.
pub(crate) fn ask<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Drops a handle.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    ask((), move || drop(handle));
}
