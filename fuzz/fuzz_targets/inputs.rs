//! Documents in every supported format, from files, folders and streams: each of these must give the same documents.
//! `TWINDEX_FUZZ_READER` restricts all inputs to one reader.

#![no_main]

#[path = "../../crates/corpus/tests/support/fuzzing/mod.rs"]
mod fuzzing;

use std::sync::LazyLock;

static READER: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("TWINDEX_FUZZ_READER").ok());

libfuzzer_sys::fuzz_target!(|data: &[u8]| match &*READER {
    Some(reader) => fuzzing::inputs_of(reader, data),
    None => fuzzing::inputs(data),
});
