//! Arbitrary parameters and text: what the documentation of `twindex::sketch` says of every text.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sketch(data));
