//! Many clustered fingerprints: built in memory and by scratch files to the same segment, which answers as brute force
//! does.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::many(data));
