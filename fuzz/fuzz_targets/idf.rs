//! A table of document frequencies: raw bytes, and bodies and patched tables whose digests fit.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::idf(data));
