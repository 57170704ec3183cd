//! Arbitrary fingerprints and queries, with tables of any design and codec: the answers must equal the answers of a
//! brute-force search.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::answers(data));
