//! Integration tests of joins: one program, with one module per subject.

#[path = "../support/nested_sets.rs"]
mod nested_sets;

mod code_joins;
mod contained;
mod hamming_joins;
mod joins;
mod living;
mod small_features;
