//! Inner loops, and the choice of the processor's instructions for them.
//!
//! A kernel is written once, in plain Rust, and that is its definition; [`vectorized`] compiles a caller's loop a
//! second time for processors with AVX2 and POPCNT. What a kernel returns never depends on the processor.

use zerocopy::little_endian::{U16, U32};

/// A column's element, with its value in the processor's byte order.
pub trait Lane: Copy {
    /// Ones in which the element differs from `query`; only the low bits of `query` count.
    fn distance(self, query: u32) -> u32;
}

impl Lane for U16 {
    #[inline(always)]
    fn distance(self, query: u32) -> u32 {
        u32::from(self.get() ^ query as u16).count_ones()
    }
}

impl Lane for U32 {
    #[inline(always)]
    fn distance(self, query: u32) -> u32 {
        (self.get() ^ query).count_ones()
    }
}

/// Elements looked at together before branching.
const CHUNK: usize = 16;

/// The first place from `from` on whose element is within `radius` of `query`.
#[inline(always)]
pub fn find<T: Lane>(plane: &[T], from: usize, query: u32, radius: u32) -> Option<usize> {
    let mut at = from;
    while at < plane.len() {
        let chunk = &plane[at..plane.len().min(at + CHUNK)];
        // No branch inside: the compiler turns this into vector code where `vectorized` allows it.
        let mut near = false;
        for element in chunk {
            near |= element.distance(query) <= radius;
        }
        if near && let Some(place) = chunk.iter().position(|element| element.distance(query) <= radius) {
            return Some(at + place);
        }
        at += CHUNK;
    }
    None
}

/// Asks the processor to bring the cache line of `bytes[at]` near, without waiting for it; nothing happens where
/// there is no such byte. A hint: it changes no result.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: `_mm_prefetch` is part of SSE, which every x86-64 processor has; it reads nothing the program
        // could observe and faults on no address, and this pointer is that of a byte of a live slice.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Runs `body`, compiled for the best instruction set the processor has. Everything hot in `body` must be
/// `#[inline(always)]`, or it keeps the plain instructions.
#[inline]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("popcnt")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
    {
        #[allow(unsafe_code, reason = "calls a function compiled for instructions that were just detected")]
        // SAFETY: the only precondition of `with_avx2` is that the processor has the four features it is compiled
        // for; each was detected on the lines above.
        return unsafe { with_avx2(body) };
    }
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition.
    fn all<T: Lane>(plane: &[T], query: u32, radius: u32) -> Vec<usize> {
        (0..plane.len()).filter(|&i| plane[i].distance(query) <= radius).collect()
    }

    fn by_find<T: Lane>(plane: &[T], query: u32, radius: u32) -> Vec<usize> {
        let mut found = Vec::new();
        while let Some(place) = find(plane, found.last().map_or(0, |last| last + 1), query, radius) {
            found.push(place);
        }
        found
    }

    proptest! {
        #[test]
        fn find_sees_what_a_plain_loop_sees(values in proptest::collection::vec(any::<u32>(), 0..100),
                                            query: u32, radius in 0_u32..=32) {
            let wide: Vec<U32> = values.iter().map(|&v| U32::new(v)).collect();
            let narrow: Vec<U16> = values.iter().map(|&v| U16::new(v as u16)).collect();
            prop_assert_eq!(by_find(&wide, query, radius), all(&wide, query, radius));
            prop_assert_eq!(by_find(&narrow, query, radius), all(&narrow, query, radius));
            prop_assert_eq!(vectorized(|| by_find(&wide, query, radius)), all(&wide, query, radius));
            prop_assert_eq!(vectorized(|| by_find(&narrow, query, radius)), all(&narrow, query, radius));
        }
    }
}
