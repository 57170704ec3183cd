//! Any features: every bucket is found as brute force finds it, and patched segments answer or refuse.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::bands(data));
