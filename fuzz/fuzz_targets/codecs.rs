//! Tables by each codec, with no checksum before them: what was encoded, patched, and raw.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::codecs(data));
