//! Documents of every kind that is read, from files, folders and streams: each input route gives the same documents.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| twindex_corpus::input::fuzzed::inputs(data));
