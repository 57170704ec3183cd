//! Many clustered fingerprints: builds in memory and with scratch files must give the same segment, whose answers must equal
//! the answers of a brute-force search.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::many(data));
