//! The instruction-set levels, and the only code that chooses one.

use std::fmt;
use std::sync::OnceLock;

use zerocopy::little_endian::{U16, U32};

use super::bytes::{self, ByteClasses};
use super::codes::{self, CodeColumns, CodeRows};
use super::pairs::{Lanes, PairBuffer};
use super::{equal, near, pairs, strings, weighted};

/// The environment variable whose value is the name of the level to use.
pub const KERNEL_VARIABLE: &str = "TWINDEX_KERNEL";

/// An instruction-set level for which kernels are compiled. The levels are ordered: each one includes the instructions
/// of all lower ones.
///
/// Processors other than x86-64 have only the scalar level. For it, the compiler vectorizes loops with the baseline
/// instructions of the target, such as NEON on 64-bit ARM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The baseline instructions of the target: the reference implementation.
    Scalar,
    /// AVX2, with POPCNT, LZCNT, BMI1 and BMI2 (x86-64-v3).
    Avx2,
    /// AVX-512 as available since Ice Lake and Zen 4: F, BW, CD, DQ, VL, VBMI, VBMI2, BITALG and VPOPCNTDQ.
    Avx512,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// Returns the name of the level, as used in `TWINDEX_KERNEL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns the level with this name, or `None` if no level has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns true if this processor supports the level. A processor supports its best level and all levels below it.
    #[must_use]
    #[inline]
    pub fn is_available(self) -> bool {
        self <= Self::best()
    }

    /// Returns all levels that this processor supports, in ascending order, and prints the unsupported ones. Used by
    /// tests.
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

    /// Returns the best level that this processor supports. It is detected once per process.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    /// Detects the best level: the highest one for which the processor has all CPU features.
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

    /// Returns the level set by `TWINDEX_KERNEL`, or `None` if the variable is not set.
    ///
    /// # Errors
    /// A message if no level has the name in the variable, or if this processor does not support that level.
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

    /// Returns the level in use: the level set by `TWINDEX_KERNEL` if it is valid and supported, otherwise the best level.
    /// It is determined once per process. Results do not depend on the level.
    #[must_use]
    #[inline]
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Level> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::from_environment().ok().flatten().unwrap_or_else(Self::best))
    }

    /// Runs `body`, compiled for this level, or for the best supported level below it if the processor does not support
    /// this one. Hot functions that `body` calls must be `#[inline(always)]`; otherwise they are compiled for the
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

    /// Like [`run`](Self::run), for kernels that need [`Simd`]: operations that the compiler cannot generate from plain
    /// loops.
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
                // SAFETY: the only precondition of `avx2` is that the processor has the features for which it is compiled.
                // The level is at most `best`, which is `Avx2` or better only if `detect` found all these features.
                return unsafe { x86::avx2(kernel) };
            }
            Self::Avx512 => {
                #[allow(
                    unsafe_code,
                    reason = "calls a function compiled for instructions that were detected"
                )]
                // SAFETY: as above: `best` is `Avx512` only if `detect` found the features of both levels, for which
                // `avx512` is compiled.
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

/// A loop that is compiled once for each instruction-set level.
pub trait Kernel {
    /// The result of the kernel.
    type Output;

    /// Runs the loop. Must be `#[inline(always)]`, like all hot functions that it calls.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The operations that the compiler cannot generate from plain loops. A value of a type with this trait proves that the
/// processor has the instructions of the type's level.
pub trait Simd: Copy {
    /// Classifies 64 bytes of text and writes them to `lower` in lower case; see [`ByteClasses`].
    fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses;

    /// Writes `base` plus the index of each set bit of `mask`, ascending, to the front of `places`, and returns the number
    /// of set bits. Later entries of `places` are undefined.
    fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize;

    /// Copies 64 bytes and returns a mask: bit i is set if byte i equals one of the two bytes in `either`.
    fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64;

    /// Returns a mask: bit i is set if lane i differs from `query` in at most `radius` bits. Any radius is valid. Only the
    /// first 64 lanes are compared; bits for which there is no lane are 0.
    fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64;

    /// Like [`near16`](Self::near16), for lanes of 32 bits.
    fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64;

    /// Like [`near16`](Self::near16), for lanes of 48 bits: `high` contains their upper 16 bits and `low` their lower
    /// 32. Only the low 48 bits of `query` are used. If one slice is longer, its extra lanes are ignored.
    fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64;

    /// Returns a mask: bit i is set if `numbers[i]` equals `number`.
    fn equal8(self, numbers: &[u64; 8], number: u64) -> u32;

    /// Returns a mask: bit i is set if `left[i]` equals `right[i]`.
    fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32;

    /// Returns the number of positions at which two strings have equal bytes. Ignores the extra bytes of the longer
    /// string.
    fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize;

    /// Adds to `sums[i]` the weights of the hashes in which bit i is set. With more hashes than
    /// [`ones`](weighted::ones) allows, the sums may wrap around.
    fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]);

    /// Appends to `found` the pairs of lanes that differ in at most `radius` bits; see [`pairs32`](super::pairs32).
    fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer);

    /// Appends to `found` the pairs of a left and a right lane that differ in at most `radius` bits; see
    /// [`across32`](super::across32).
    fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer);

    /// Appends to `found` the pairs of a row and a column that differ in at most `radius` bits of their first `prefix`
    /// words.
    fn near_codes(self, rows: CodeRows<'_>, columns: &CodeColumns, by: (usize, u32), found: &mut PairBuffer);
}

/// The scalar level, whose operations are the reference implementations.
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

    #[inline(always)]
    fn near_codes(self, rows: CodeRows<'_>, columns: &CodeColumns, by: (usize, u32), found: &mut PairBuffer) {
        codes::near_codes_portable(rows, columns, by, found);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use zerocopy::little_endian::{U16, U32};

    use super::super::bytes::{self, ByteClasses, x86};
    use super::super::codes::{self, CodeColumns, CodeRows};
    use super::super::pairs::{Lanes, PairBuffer};
    use super::super::{equal, near, pairs, strings, weighted};
    use super::{Kernel, Simd};

    /// Proof that the CPU features of [`avx2`] are available. Only that function creates a value of this type.
    #[derive(Clone, Copy)]
    struct Avx2(());

    /// Proof that the CPU features of [`avx512`] are available. Only that function creates a value of this type.
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
            // SAFETY: only `avx2` creates an `Avx2`, and it runs only if its features were detected. They include the
            // features of the function that is called here.
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
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                strings::x86::copy_either_avx2(bytes, copy, either)
            }
        }

        #[inline(always)]
        fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                near::x86::near16_avx2(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                near::x86::near32_avx2(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                near::x86::near48_avx2(high, low, query, radius)
            }
        }

        #[inline(always)]
        fn equal8(self, numbers: &[u64; 8], number: u64) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                equal::x86::equal8_avx2(numbers, number)
            }
        }

        #[inline(always)]
        fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
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
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                pairs::x86::pairs32_avx2(lanes, radius, found);
            }
        }

        #[inline(always)]
        fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                pairs::x86::across32_avx2(left, right, radius, found);
            }
        }

        #[inline(always)]
        fn near_codes(
            self,
            rows: CodeRows<'_>,
            columns: &CodeColumns,
            by: (usize, u32),
            found: &mut PairBuffer,
        ) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx2` proves that the CPU features were detected.
            unsafe {
                codes::x86::near_codes_avx2(rows, columns, by, found);
            }
        }
    }

    impl Simd for Avx512 {
        #[inline(always)]
        fn classes(self, bytes: &[u8; 64], lower: &mut [u8; 64]) -> ByteClasses {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: only `avx512` creates an `Avx512`, and it runs only if its features were detected. They include the
            // features of the function that is called here.
            unsafe {
                x86::classes_avx512(bytes, lower)
            }
        }

        #[inline(always)]
        fn places(self, mask: u64, base: u32, places: &mut [u32; 64]) -> usize {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                x86::places_avx512(mask, base, places)
            }
        }

        #[inline(always)]
        fn copy_either(self, bytes: &[u8; 64], copy: &mut [u8; 64], either: [u8; 2]) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                strings::x86::copy_either_avx512(bytes, copy, either)
            }
        }

        #[inline(always)]
        fn near16(self, lanes: &[U16], query: u16, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                near::x86::near16_avx512(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near32(self, lanes: &[U32], query: u32, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                near::x86::near32_avx512(lanes, query, radius)
            }
        }

        #[inline(always)]
        fn near48(self, high: &[U16], low: &[U32], query: u64, radius: u32) -> u64 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                near::x86::near48_avx512(high, low, query, radius)
            }
        }

        #[inline(always)]
        fn equal8(self, numbers: &[u64; 8], number: u64) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                equal::x86::equal8_avx512(numbers, number)
            }
        }

        #[inline(always)]
        fn equal16(self, left: &[u32; 16], right: &[u32; 16]) -> u32 {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                equal::x86::equal16_avx512(left, right)
            }
        }

        #[inline(always)]
        fn equal_bytes(self, left: &[u8], right: &[u8]) -> usize {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                equal::x86::equal_bytes_avx512(left, right)
            }
        }

        #[inline(always)]
        fn ones(self, hashes: &[u64], weights: &[u16], sums: &mut [u32; 64]) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                weighted::ones_avx512(hashes, weights, sums);
            }
        }

        #[inline(always)]
        fn pairs32(self, lanes: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                pairs::x86::pairs32_avx512(lanes, radius, found);
            }
        }

        #[inline(always)]
        fn across32(self, left: Lanes<'_>, right: Lanes<'_>, radius: u32, found: &mut PairBuffer) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                pairs::x86::across32_avx512(left, right, radius, found);
            }
        }

        #[inline(always)]
        fn near_codes(
            self,
            rows: CodeRows<'_>,
            columns: &CodeColumns,
            by: (usize, u32),
            found: &mut PairBuffer,
        ) {
            #[allow(unsafe_code, reason = "calls a function compiled for instructions that are there")]
            // SAFETY: as in `classes`: an `Avx512` proves that the CPU features were detected.
            unsafe {
                codes::x86::near_codes_avx512(rows, columns, by, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_scalar_is_always_available() {
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
    fn unavailable_level_runs_the_best_level_below_it() {
        /// Returns the name of the [`Simd`] type with which a kernel is run.
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
    fn simd_level_set_in_the_environment_is_used() {
        // The test run may set the variable; CI sets each level in turn.
        match Level::from_environment() {
            Ok(Some(level)) => assert_eq!(Level::chosen(), level),
            Ok(None) => assert_eq!(Level::chosen(), Level::best()),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
