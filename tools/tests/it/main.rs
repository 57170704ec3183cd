//! The tests of the command, one module a subject, in one program: `cargo test -p twindex-tools --test it dedup::` runs
//! those of `dedup`.

mod cli;
mod corpora;
mod dedup;
mod disk;
mod docs;
mod durable;
mod encodings;
mod eval;
mod features;
mod formats;
mod hamming;
mod idf;
mod inputs;
mod keys;
mod living;
mod near;
mod options;
mod out;
mod pairs;
mod plan;
mod presets;
mod raw;
mod refusals;
mod report;
mod rule;
mod shell;
mod shingles;
mod sketch;
mod stages;
mod support;
mod tables;
mod text_options;
mod verbs;
mod walk;
mod why;
