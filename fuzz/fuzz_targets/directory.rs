//! A directory whose files are damaged, removed, exchanged, or given valid checksums again: it is opened, queried,
//! verified, salvaged and written to.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::directory(data));
