//! A valid segment with patches and updated checksums: if `verify` accepts it, its answers must equal the answers of the
//! valid segment.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::fuzzing::segment_resealed(data));
