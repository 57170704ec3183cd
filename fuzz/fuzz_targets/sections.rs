//! The smaller sections of a segment by themselves, with no checksum before them.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sections(data));
