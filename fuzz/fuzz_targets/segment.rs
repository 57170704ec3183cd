//! Raw bytes as a segment file: opened, queried in every way, verified. Rarely gets past the checksums.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment(data));
