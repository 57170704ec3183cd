//! A file of sketches: raw bytes, patched files whose checksums fit, and records of every kind.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sketches(data));
