//! Manifests and `CURRENT`, raw and with fitting checksums, and an index opened with them.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::manifest(data));
