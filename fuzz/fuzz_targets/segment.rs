//! Raw bytes as a segment file: opened, asked everything, verified. Seldom gets past the checksums.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment(data));
