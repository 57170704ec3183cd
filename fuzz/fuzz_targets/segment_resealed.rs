//! A sound segment, patched, with recomputed checksums: if `verify` accepts it, it must answer as the sound one does.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment_resealed(data));
