//! Arbitrary fingerprints and queries, tables of any design by any codec: they answer as brute force does.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::answers(data));
