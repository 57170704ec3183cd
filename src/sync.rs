//! The locks, the atomic flag and the thread functions of the engine. Their interface is the same in all builds, so
//! that tests can replace them to control the order in which threads run.
//!
//! With `--cfg twindex_shuttle`, the library's own tests use the crate shuttle instead of real locks and threads
//! (`.ci/run races`). Shuttle runs one thread at a time and chooses the next thread at each lock operation. Every other
//! build uses the real types under the same names.

#[cfg(not(all(test, twindex_shuttle)))]
pub(crate) use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(all(test, twindex_shuttle)))]
pub(crate) use std::sync::atomic::AtomicBool;
#[cfg(not(all(test, twindex_shuttle)))]
pub(crate) use std::thread::JoinHandle;

#[cfg(all(test, twindex_shuttle))]
pub(crate) use scheduled::{Mutex, RwLock};
#[cfg(all(test, twindex_shuttle))]
pub(crate) use shuttle::sync::atomic::AtomicBool;
#[cfg(all(test, twindex_shuttle))]
pub(crate) use shuttle::sync::{RwLockReadGuard, RwLockWriteGuard};
#[cfg(all(test, twindex_shuttle))]
pub(crate) use shuttle::thread::JoinHandle;

/// Starts a thread.
///
/// # Errors
/// If the system cannot start another thread.
#[cfg(not(all(test, twindex_shuttle)))]
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}

/// Starts a thread scheduled by shuttle; never fails.
#[cfg(all(test, twindex_shuttle))]
#[allow(clippy::unnecessary_wraps, reason = "the other one can fail")]
pub(crate) fn spawn<T: Send + 'static>(
    _: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    Ok(shuttle::thread::spawn(work))
}

/// Sleeps for `time` so that other threads can run.
#[cfg(not(all(test, twindex_shuttle)))]
pub(crate) fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// Yields to other threads instead of sleeping: shuttle's priority scheduler switches away from a thread that yields, but
/// not from a thread that sleeps.
#[cfg(all(test, twindex_shuttle))]
pub(crate) fn pause(_: std::time::Duration) {
    shuttle::thread::yield_now();
}

/// Gives shuttle's locks the interface of `parking_lot`. A panic fails the test, so poisoned locks need no handling.
#[cfg(all(test, twindex_shuttle))]
mod scheduled {
    use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    #[derive(Debug)]
    pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }
}
