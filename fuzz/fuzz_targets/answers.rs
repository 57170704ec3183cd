//! Arbitrary fingerprints and queries, with tables of any design and codec: answers must equal those of brute force.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::answers(data));
