//! Whatever is done to an index, on a disk that fails at any operation: nothing acknowledged is lost.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::living(data));
