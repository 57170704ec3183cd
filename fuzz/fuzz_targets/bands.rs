//! Arbitrary features: every bucket must equal the bucket found by brute force, and patched segments must return answers or
//! errors.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::bands(data));
