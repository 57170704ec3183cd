//! Upgrades raw bytes and patched segments of versions 1 and 2: the upgrade fails with an error or keeps every document.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::legacy(data));
