//! Whether a process was made by `fork`, without a system call.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the process that asked first and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A number that differs in a child made by `fork` since the first call.
///
/// Only Linux counts; elsewhere, and in a child made by `clone` alone, the number stays. So this is for a quick answer where
/// a slower check follows: the number of the process ([`std::process::id`]) costs a system call.
pub fn generation() -> u32 {
    #[cfg(target_os = "linux")]
    register();
    FORKS.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library calls a function in each child")]
fn register() {
    type Handler = Option<extern "C" fn()>;
    // Declared here, as older versions of the crate `libc` lack it.
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    // SAFETY: As POSIX declares it. `in_child` is there as long as the program, and adds to an atomic number, which a child
    // may do whatever locks the parent's other threads had. A failure means that forks are not counted.
    REGISTERED.call_once(|| unsafe {
        pthread_atfork(None, None, Some(in_child));
    });
}
