//! A whole directory with files that are damaged, lost, exchanged and given matching checksums: opened, queried,
//! verified, salvaged, written to.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::directory(data));
