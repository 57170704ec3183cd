//! Manifests and `CURRENT` of raw bytes, and patched ones with valid checksums: an index with them is opened.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::manifest(data));
