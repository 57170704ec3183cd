//! Detects, without a system call, whether the process was created by `fork`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between the process that first called [`generation`] and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns a number that differs between a parent and a child created by `fork` after the first call.
///
/// Forks are counted only on Linux. Elsewhere, and in a child created by `clone` directly, the number does not change.
/// So it is for a fast check before a slower and certain one, such as comparing the process id ([`std::process::id`]),
/// which costs a system call.
pub fn generation() -> u32 {
    #[cfg(target_os = "linux")]
    register();
    FORKS.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library calls a function in each child")]
fn register() {
    type Handler = Option<extern "C" fn()>;
    // Declared here because older versions of the crate `libc` lack it.
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    // SAFETY: The declaration is that of POSIX. `in_child` exists as long as the program. It only adds to an atomic
    // number, which is allowed in a child, whatever locks the other threads of the parent held. If the call fails,
    // forks are not counted.
    REGISTERED.call_once(|| unsafe {
        pthread_atfork(None, None, Some(in_child));
    });
}
