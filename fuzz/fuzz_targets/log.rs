//! Logs of raw bytes and patched logs with valid checksums: an index with the log is opened and queried.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::log(data));
