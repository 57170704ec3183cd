//! A whole directory, its files damaged, lost, mixed up and with fitting checksums: opened, asked, verified, saved, written to.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::directory(data));
