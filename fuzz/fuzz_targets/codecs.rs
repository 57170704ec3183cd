//! Tables of each codec without checksums: encoded ones, patched ones, and raw bytes.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::codecs(data));
