//! The integration tests of the engine, in one program with one module per subject: `cargo test --test it crashes::` runs
//! the crash tests. Tests that need their own process are separate programs, `tests/alone_*`.

#[path = "../support/mod.rs"]
mod support;

mod across;
mod admitting;
mod adopt;
mod answers;
mod choosing_page;
mod crashes;
mod expiry;
mod faults;
mod feature_bits;
mod files_access;
mod flushes;
mod fuzz_regressions;
mod golden_choices;
mod golden_families;
mod golden_files;
mod golden_groups;
mod golden_idf;
mod golden_manifest;
mod golden_rabin;
mod golden_samples;
mod golden_sketches;
mod golden_text_options;
mod group_crashes;
mod groups;
mod idf;
mod layers;
mod lead_byte;
mod living;
mod living_model;
mod log_lies;
mod merge;
mod near;
mod pages;
mod plan;
mod planted;
mod priorities;
mod races;
mod ranges;
mod refusals;
mod salvage;
mod sample_accuracy;
mod second_reader;
mod seeds;
mod seeds_tokens;
mod sets;
mod sketch_accuracy;
mod skips;
mod spec_numbers;
mod store;
mod syscalls;
mod traces;
mod weights;
