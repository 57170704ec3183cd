//! Arbitrary parameters and text: checks the documented properties of `twindex::sketch`.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::sketch(data));
