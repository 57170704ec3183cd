//! The smaller sections of a segment, each decoded separately and without checksums.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sections(data));
