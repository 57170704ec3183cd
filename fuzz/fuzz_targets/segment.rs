//! Raw bytes as a segment file: if they pass the checksums, which is rare, the segment is queried and verified.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment(data));
