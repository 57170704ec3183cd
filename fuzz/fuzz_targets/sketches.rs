//! Files of sketches: raw bytes, patched files with valid checksums, and files of arbitrary records.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sketches(data));
