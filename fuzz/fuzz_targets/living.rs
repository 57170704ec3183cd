//! Any operations on an index, on a disk that fails at any operation: no acknowledged commit is lost.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::living(data));
