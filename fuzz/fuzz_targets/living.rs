//! Arbitrary operations on an index whose disk fails at any operation: no acknowledged commit may be lost.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::living(data));
