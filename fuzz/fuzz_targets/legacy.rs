//! Segments of versions 1 and 2, raw or patched with updated checksums: an upgrade fails or keeps every document.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::legacy(data));
