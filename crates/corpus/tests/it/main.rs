//! The pipeline from outside, one module a subject.

mod doors;
mod rule;
