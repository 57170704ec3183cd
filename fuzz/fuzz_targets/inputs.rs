//! Documents of every kind that is read, from files, folders and streams: each input route gives the same documents.
//! `TWINDEX_FUZZ_READER` names the one reader that all inputs are for.

#![no_main]

use std::sync::LazyLock;

static READER: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("TWINDEX_FUZZ_READER").ok());

libfuzzer_sys::fuzz_target!(|data: &[u8]| match &*READER {
    Some(reader) => twindex_corpus::input::fuzzed::inputs_of(reader, data),
    None => twindex_corpus::input::fuzzed::inputs(data),
});
