//! A global allocator that records the largest allocation of each thread. Tests use it to detect an allocation for an
//! invalid length, which would otherwise succeed while memory is plentiful.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watching;

thread_local! {
    /// Size in bytes of the largest allocation of this thread since a test last set this to 0.
    pub static LARGEST: Cell<usize> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator is unsafe by its signature; this one hands everything on")]
// SAFETY: Every call is passed to `System` unchanged, so the contract of `GlobalAlloc` holds. The thread-local is a
// constant-initialized `Cell` without a destructor, so accessing it does not allocate.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: The caller's guarantees for `layout` are the guarantees that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` was allocated by `System` with this layout, in `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;
