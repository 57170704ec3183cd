//! The integration tests of joins, one module a subject, in one program.

mod contained;
mod hamming_joins;
mod joins;
mod living;
mod small_features;
