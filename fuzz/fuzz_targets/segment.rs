//! Raw bytes as a segment file, which rarely pass the checksums: opened, queried in every way, verified.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment(data));
