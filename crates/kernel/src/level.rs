//! The levels of instructions, and the only place where a level is chosen.

use std::fmt;
use std::sync::OnceLock;

use zerocopy::little_endian::{U16, U32};

use super::bytes::{self, ByteClasses};
use super::pairs::{Lanes, PairBuffer};
use super::{equal, near, pairs, strings, weighted};

/// The environment variable that selects a level by its name.
pub const KERNEL_VARIABLE: &str = "TWINDEX_KERNEL";

/// A set of instructions for which loops are compiled, in ascending order.
///
/// Processors other than x86-64 only have the scalar level, whose loops the compiler vectorizes with their baseline
/// instructions, such as NEON on 64-bit ARM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The baseline of the target: the reference.
    Scalar,
    /// AVX2, with POPCNT, LZCNT, BMI1 and BMI2 (x86-64-v3).
    Avx2,
    /// AVX-512 as available since Ice Lake and Zen 4: F, BW, CD, DQ, VL, VBMI, VBMI2, BITALG and VPOPCNTDQ.
    Avx512,
}

impl Level {
    /// All levels, ascending.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// The name of the level in `TWINDEX_KERNEL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns the level with this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether this processor supports the level. Levels are nested: it supports every level up to its best.
    #[must_use]
    #[inline]
    pub fn is_available(self) -> bool {
        self <= Self::best()
    }

    /// All levels that this processor supports, ascending; for tests, prints which levels it lacks.
    #[doc(hidden)]
    #[must_use]
    pub fn tested() -> Vec<Self> {
        let (has, lacks): (Vec<Self>, Vec<Self>) =
            Self::ALL.into_iter().partition(|level| level.is_available());
        for level in lacks {
            println!("skipped: this processor has no {level}");
        }
        has
    }

    /// The best level of this processor, detected once in a process.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    /// Detects the best level: checks the processor for the features for which the function of each level is compiled.
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = std::is_x86_feature_detected!("avx2")
                && std::is_x86_feature_detected!("popcnt")
                && std::is_x86_feature_detected!("lzcnt")
                && std::is_x86_feature_detected!("bmi1")
                && std::is_x86_feature_detected!("bmi2");
            let avx512 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512cd")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl")
                && std::is_x86_feature_detected!("avx512vbmi")
                && std::is_x86_feature_detected!("avx512vbmi2")
                && std::is_x86_feature_detected!("avx512bitalg")
                && std::is_x86_feature_detected!("avx512vpopcntdq");
            match (avx2, avx512) {
                (false, _) => Self::Scalar,
                (true, false) => Self::Avx2,
                (true, true) => Self::Avx512,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::Scalar
    }

    /// Returns the level in `TWINDEX_KERNEL`; `None` if the variable is not set.
    ///
    /// # Errors
    /// A message for an invalid value: no level has the name, or this processor does not support the level.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let Some(name) = std::env::var_os(KERNEL_VARIABLE) else { return Ok(None) };
        let level = name.to_str().and_then(Self::named).ok_or_else(|| {
            format!("{KERNEL_VARIABLE} is `{}`; expected scalar, avx2 or avx512", name.display())
        })?;
        if level.is_available() {
            Ok(Some(level))
        } else {
            Err(format!("{KERNEL_VARIABLE} asks for {level}, which this processor does not have"))
        }
    }

    /// The level in use: the one in `TWINDEX_KERNEL` if it is valid and available, otherwise the best. It is determined
    /// once in a process. Results do not depend on it.
    #[must_use]
    #[inline]
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Level> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::from_environment().ok().flatten().unwrap_or_else(Self::best))
    }

    /// Runs `body`, compiled for this level, or for the best available level below it if the processor does not
    /// support it. Hot functions called by `body` must be `#[inline(always)]`; otherwise they are compiled for the
    /// baseline instructions.
    #[inline]
    pub fn run<R>(self, body: impl FnOnce() -> R) -> R {
        struct BodyKernel<F>(F);
        impl<R, F: FnOnce() -> R> Kernel for BodyKernel<F> {
            type Output = R;
            #[inline(always)]
            fn run<S: Simd>(self, _: S) -> R {
                (self.0)()
            }
        }
        self.dispatch(BodyKernel(body))
    }

    /// As [`run`](Self::run), for kernels that need more than compiler vectorization.
    #[inline]
    pub fn dispatch<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        match self.min(Self::best()) {
            Self::Scalar => {}
            Self::Avx2 => {
                #[allow(
                    unsafe_code,
                    reason = "calls a function compiled for instructions that were detected"
                )]
                // SAFETY: the only precondition of `avx2` is that the processor has the features that it is compiled
                // for. The level is at most `best`, which is `Avx2` or better only if `detect` found all of
                // them.
                return unsafe { x86::avx2(kernel) };
            }
            Self::Avx512 => {
                #[allow(
                    unsafe_code,
                    reason = "calls a function compiled for instructions that were detected"
                )]
                // SAFETY: as above: `best` is `Avx512` only if `detect` found the features of `avx512`, which are
                // those of both levels.
                return unsafe { x86::avx512(kernel) };
            }
        }
        kernel.run(Scalar)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A loop that is compiled once for each level.
pub trait Kernel {
    /// The result of the kernel.
    type Output;

    /// Runs the loop. Must be `#[inline(always)]`, like all hot functions that it calls.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The operations of a level that the compiler cannot generate from plain loops. A value of a type with this trait is
/// proof that the processor has the instructions.
pub trait Simd: Copy {
    /// Classes and lower-cases 64 bytes of text; see [`ByteClasses`].
    fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses;

    /// Writes `base` plus the index of each set bit of `mask`, ascending, to the front of `places`, and
    /// returns their number; later entries are undefined.
    fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize;

    /// Copies 64 bytes, and returns the mask of the bytes that equal one of the two in `either`: bit i for byte i.
    fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64;

    /// The mask of the lanes that differ from `query` in at most `radius` bits, for any radius: bit i
    /// for lane i. Only the first 64 lanes are checked; bits without a lane are 0.
    fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64;

    /// As [`near16`](Self::near16), for lanes of 32 bits.
    fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64;

    /// As [`near16`](Self::near16), for lanes of 48 bits: the upper 16 in `high` and the lower 32 in `low`. Only the
    /// low 48 bits of `query` are used. If the slices have different lengths, the excess lanes of the longer are
    /// ignored.
    fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64;

    /// The mask of the entries of `numbers` that are equal to `number`: bit i for entry i.
    fn equal8(self, numbers: &[u64; 8], number: u64) -> u32;

    /// The mask of the positions at which two rows have equal numbers: bit i for position i.
    fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32;

    /// The number of positions at which two strings have equal bytes; the excess bytes of the longer are ignored.
    fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize;

    /// Adds to `sums[i]` the weights of the hashes that have bit i set; see [`ones`](weighted::ones), which limits
    /// the number of hashes. With more, sums wrap around.
    fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]);

    /// Adds the pairs of near lanes; see [`pairs32`](super::pairs32).
    fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer);

    /// Adds the pairs of a left and a right lane that are near; see [`across32`](super::across32).
    fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer);
}

/// The scalar level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalar;

impl Simd for Scalar {
    #[inline(always)]
    fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
        bytes::classes(bytes, lower)
    }

    #[inline(always)]
    fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
        bytes::places(mask, base, places)
    }

    #[inline(always)]
    fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64 {
        strings::copy_either(bytes, copy, either)
    }

    #[inline(always)]
    fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64 {
        near::near16(lanes, query, radius)
    }

    #[inline(always)]
    fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64 {
        near::near32(lanes, query, radius)
    }

    #[inline(always)]
    fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
        near::near48(high, low, query, radius)
    }

    #[inline(always)]
    fn equal8(self, numbers: &[u64; 8], number: u64) -> u32 {
        equal::equal8(numbers, number)
    }

    #[inline(always)]
    fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32 {
        equal::equal16(left, right)
    }

    #[inline(always)]
    fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize {
        equal::equal_bytes(left, right)
    }

    #[inline(always)]
    fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
        weighted::ones_portable(hashes, weights, sums);
    }

    #[inline(always)]
    fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
        pairs::pairs32_portable(lanes, radius, found);
    }

    #[inline(always)]
    fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
        pairs::across32_portable(left, right, radius, found);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use zerocopy::little_endian::{U16, U32};

    use super::super::bytes::{self, ByteClasses, x86};
    use super::super::pairs::{Lanes, PairBuffer};
    use super::super::{equal, near, pairs, strings, weighted};
    use super::{Kernel, Simd};

    /// Proof that the features of [`avx2`] are available; only that function creates one.
    #[derive(Clone, Copy)]
    struct Avx2(());

    /// Proof that the features of [`avx512`] are available; only that function creates one.
    #[derive(Clone, Copy)]
    struct Avx512(());

    #[target_feature(enable = "avx2,popcnt,lzcnt,bmi1,bmi2")]
    pub(super) fn avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx2(()))
    }

    #[target_feature(enable = "avx2,popcnt,lzcnt,bmi1,bmi2")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512bitalg,avx512vpopcntdq")]
    pub(super) fn avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx512(()))
    }

    impl Simd for Avx2 {
        #[inline(always)]
        fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: an `Avx2` is created only by `avx2`, which runs only if its features, which include those of
            // this function, were detected.
            unsafe {
                x86::classes_avx2(bytes, lower)
            }
        }

        #[inline(always)]
        fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
            bytes::places(mask, base, places)
        }

        #[inline(always)]
        fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                strings::x86::copy_either_avx2(bytes, copy, either)
            }
        }

        #[inline(always)]
        fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near16_avx2(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near32_avx2(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near48_avx2(high, low, query, radius)
            }
        }

        #[inline(always)]
        fn equal8(self, numbers: &[u64; 8], number: u64) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                equal::x86::equal8_avx2(numbers, number)
            }
        }

        #[inline(always)]
        fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                equal::x86::equal16_avx2(left, right)
            }
        }

        #[inline(always)]
        fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize {
            equal::equal_bytes(left, right)
        }

        #[inline(always)]
        fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
            weighted::ones_portable(hashes, weights, sums);
        }

        #[inline(always)]
        fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                pairs::x86::pairs32_avx2(lanes, radius, found);
            }
        }

        #[inline(always)]
        fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                pairs::x86::across32_avx2(left, right, radius, found);
            }
        }
    }

    impl Simd for Avx512 {
        #[inline(always)]
        fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: an `Avx512` is created only by `avx512`, which runs only if its features, which include those of
            // this function, were detected.
            unsafe {
                x86::classes_avx512(bytes, lower)
            }
        }

        #[inline(always)]
        fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                x86::places_avx512(mask, base, places)
            }
        }

        #[inline(always)]
        fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                strings::x86::copy_either_avx512(bytes, copy, either)
            }
        }

        #[inline(always)]
        fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near16_avx512(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near32_avx512(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                near::x86::near48_avx512(high, low, query, radius)
            }
        }

        #[inline(always)]
        fn equal8(self, numbers: &[u64; 8], number: u64) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                equal::x86::equal8_avx512(numbers, number)
            }
        }

        #[inline(always)]
        fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                equal::x86::equal16_avx512(left, right)
            }
        }

        #[inline(always)]
        fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                equal::x86::equal_bytes_avx512(left, right)
            }
        }

        #[inline(always)]
        fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                weighted::ones_avx512(hashes, weights, sums);
            }
        }

        #[inline(always)]
        fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                pairs::x86::pairs32_avx512(lanes, radius, found);
            }
        }

        #[inline(always)]
        fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as above.
            unsafe {
                pairs::x86::across32_avx512(left, right, radius, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_the_plain_one_is_always_available() {
        for level in Level::ALL {
            assert_eq!(Level::named(level.name()), Some(level));
            assert_eq!(level.run(|| 7), 7, "{level}");
        }
        assert_eq!(Level::named("sse"), None);
        assert!(
            Level::Scalar.is_available() && Level::best().is_available() && Level::chosen().is_available()
        );
    }

    #[test]
    fn level_runs_if_available_and_otherwise_the_best_below() {
        /// Returns the type name of the witness that a kernel receives.
        struct Witness;
        impl Kernel for Witness {
            type Output = &'static str;
            fn run<S: Simd>(self, _: S) -> &'static str {
                std::any::type_name::<S>()
            }
        }
        for level in Level::ALL {
            let got = level.dispatch(Witness).rsplit("::").next().unwrap().to_lowercase();
            assert_eq!(got, level.min(Level::detect()).name());
            assert_eq!(level.is_available(), level <= Level::detect(), "{level}");
        }
    }

    #[test]
    fn level_set_by_the_variable_is_used() {
        // The level that this run of the tests was started with; CI sets each level in turn.
        match Level::from_environment() {
            Ok(Some(level)) => assert_eq!(Level::chosen(), level),
            Ok(None) => assert_eq!(Level::chosen(), Level::best()),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
