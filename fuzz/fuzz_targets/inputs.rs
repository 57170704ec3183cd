//! Documents of every kind that the tool reads, from files, folders and streams: the same come out whichever way they go in.

#![no_main]

// The tool is a program, with no library: its readers are taken by their path.
#[allow(dead_code, reason = "the readers write documents again, too")]
#[path = "../../tools/src/durable_file.rs"]
mod durable_file;
#[allow(dead_code, unused_imports, reason = "the tool uses the rest")]
#[path = "../../tools/src/input/mod.rs"]
mod input;
#[allow(dead_code, reason = "the readers count things for people, and that is all")]
#[path = "../../tools/src/report.rs"]
mod report;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::fuzzed::inputs(data));
