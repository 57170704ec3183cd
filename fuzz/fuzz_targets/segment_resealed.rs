//! A sound segment, patched, its checksums made to fit: what `verify` accepts must answer as the sound one does.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment_resealed(data));
