//! IDF tables: raw bytes, and arbitrary bodies and patched tables with valid digests.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::idf(data));
