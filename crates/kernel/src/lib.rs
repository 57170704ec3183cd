//! Vector kernels, and the selection of the instruction-set level for which they are compiled.
//!
//! ```text
//! Level::chosen() --+-- scalar   the definition: a plain loop
//!                   +-- avx2     the same loop, compiled for AVX2; or a version with intrinsics
//!                   +-- avx512   the same for AVX-512
//! ```
//!
//! A kernel is a plain loop, which defines its result. [`Level::run`] compiles a loop of the caller once for each
//! [`Level`] and calls the version for the processor. A few operations cannot be written in plain Rust, such as a
//! comparison of 64 bytes that returns a mask (`bytes.rs`). These have a separate version for each level, and take a
//! [`Simd`] value as proof that the processor has the instructions. All versions are tested against the plain loop.
//!
//! ```
//! use twindex_kernel::Level;
//!
//! let (a, b) = ([0b1, 0b111, 0_u64], [0, 0, 0_u64]);
//! let distance: u32 = Level::chosen().run(|| a.iter().zip(&b).map(|(a, b)| (a ^ b).count_ones()).sum());
//! assert_eq!(distance, 4);
//! ```
//!
//! The result of a kernel never depends on the level. The environment variable `TWINDEX_KERNEL` (`scalar`, `avx2` or
//! `avx512`) sets the level for tests and measurements; see [`Level::chosen`].
//!
//! Only the other crates of twindex should use this crate. They depend on its exact version, and its interface is
//! exempt from semantic versioning.

mod bytes;
pub mod clmul;
mod codes;
mod equal;
mod level;
mod look_up;
mod near;
mod pairs;
pub mod splitmix;
mod strings;
mod tiles;
pub mod weighted;

pub use bytes::ByteClasses;
pub use codes::{CodeColumns, CodeRows, near_codes_at};
pub use level::{KERNEL_VARIABLE, Kernel, Level, Simd};
pub use look_up::{SortedSet, look_up};
pub use near::{for_each_near16, for_each_near32, for_each_near48};
pub use pairs::{Lanes, PairBuffer, across32, near_lanes, pairs32};
pub use strings::{Unescaped, simple_escape};
pub use tiles::{BLOCK, HalfWords, Sides, TileScan, TileScratch, prefix_words};

/// The size of a cache line on common processors, in bytes.
pub const CACHE_LINE: usize = 64;

/// Prefetches the cache line of `items[at]` without waiting for it. If `at` is out of range, this has no benefit. It is
/// only a hint: results never depend on it.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: `_mm_prefetch` is part of SSE, which every x86-64 processor has. It reads nothing that the program could
        // observe and faults on no address, so the address need not point to an item. It is computed with `wrapping_add`,
        // which is defined for any pointer.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// Prefetches all cache lines of `bytes`; see [`prefetch`].
#[inline(always)]
pub fn prefetch_all(bytes: &[u8]) {
    prefetch_ahead(bytes, 0, bytes.len());
}

/// Prefetches the cache lines of the `length` bytes that begin `ahead` bytes after the start of `bytes`; see
/// [`prefetch`]. The range may exceed `bytes`. Also helps sequential reads, because hardware prefetch stops at the end
/// of a page.
#[inline(always)]
pub fn prefetch_ahead(bytes: &[u8], ahead: usize, length: usize) {
    (0..length).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, ahead + at));
}

/// Runs `body`, compiled for the best instructions of the processor (see [`Level::chosen`]). Hot functions that `body`
/// calls must be `#[inline(always)]`; otherwise they are compiled for the baseline instructions.
#[inline]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    Level::chosen().run(body)
}
