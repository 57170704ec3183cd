//! Documents of every kind that is read, from files, folders and streams: the same come out whichever way they go in.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| twindex_corpus::input::fuzzed::inputs(data));
