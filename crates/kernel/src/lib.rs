//! Inner loops, and the choice of the processor's instructions for them.
//!
//! A kernel is a plain loop, and that is its definition. [`Level::run`] compiles a caller's loop once for each
//! [`Level`] of instructions, and the processor at hand picks one; the compiler turns it into vector code. Where
//! a loop needs what plain Rust cannot say (a mask of 64 bytes, in `bytes.rs`), there is a version for each level
//! behind a [`Simd`] witness, and the plain version is what the others are tested against.
//!
//! This crate serves the other crates of twindex, which depend on its exact version: its interface is exempt from
//! semantic versioning.
//!
//! What a kernel returns never depends on the level. The environment variable `TWINDEX_KERNEL` (`scalar`, `avx2`
//! or `avx512`) asks for a level, for tests and measurements; see [`Level::chosen`].

mod bytes;
pub mod clmul;
mod equal;
mod level;
mod look_up;
mod near;
mod pairs;
pub mod splitmix;
mod strings;
pub mod weighted;

pub use bytes::Classes;
pub use level::{KERNEL_VARIABLE, Kernel, Level, Simd};
pub use look_up::{Sorted, look_up};
pub use near::{for_each_near16, for_each_near32, for_each_near48};
pub use pairs::{Found, Lanes, across32, near_lanes, pairs32};
pub use strings::{Unescaped, simple_escape};

/// Bytes that come into the caches together, on the processors that matter here.
pub const CACHE_LINE: usize = 64;

/// Asks the processor to bring the cache line of `items[at]` near, without waiting for it; nothing happens where
/// there is no such item. A hint: it changes no result.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: `_mm_prefetch` is part of SSE, which every x86-64 processor has; it reads nothing the program
        // could observe and faults on no address, so that the address need not be that of an item. It is computed
        // by wrapping addition, which any pointer has.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// As [`prefetch`], for all lines of `bytes`.
#[inline(always)]
pub fn prefetch_all(bytes: &[u8]) {
    prefetch_ahead(bytes, 0, bytes.len());
}

/// As [`prefetch`], for all lines of `length` bytes, `ahead` of where `bytes` begins; they may be behind its end. For what is
/// read in order, too: a processor that reads on by itself stops at the end of a page.
#[inline(always)]
pub fn prefetch_ahead(bytes: &[u8], ahead: usize, length: usize) {
    (0..length).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, ahead + at));
}

/// Runs `body`, compiled for the best instructions the processor has. Everything hot in `body` must be
/// `#[inline(always)]`, or it keeps the plain instructions.
#[inline]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    Level::chosen().run(body)
}
