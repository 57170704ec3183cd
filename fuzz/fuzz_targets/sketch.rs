//! Arbitrary parameters and text: the promises of `twindex::sketch` for every text.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sketch(data));
