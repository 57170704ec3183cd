//! Integration tests of joins: one program, with one module per subject.

mod contained;
mod hamming_joins;
mod joins;
mod living;
mod small_features;
