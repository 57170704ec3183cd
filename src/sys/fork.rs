//! Detects without a system call whether this process was created by `fork`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of `fork` calls between this process and the ancestor that first called [`generation`].
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns a number that differs between a parent and each child that it forks after the first call.
///
/// Forks are counted only on Linux. On other systems, and in a child created directly by `clone`, the number does not
/// change. So use it only to save the reliable check, [`std::process::id`], which needs a system call.
pub fn generation() -> u32 {
    #[cfg(target_os = "linux")]
    register();
    FORKS.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library calls a function in each child")]
fn register() {
    type Handler = Option<extern "C" fn()>;
    // Declared here because older versions of the crate `libc` do not declare it.
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    // SAFETY: The declaration matches POSIX. `in_child` exists as long as the program. It only increments an atomic
    // number, which is allowed in a child whatever locks the threads of the parent held. If the call fails, forks are
    // not counted.
    REGISTERED.call_once(|| unsafe {
        pthread_atfork(None, None, Some(in_child));
    });
}
