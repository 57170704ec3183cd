//! The pipeline from outside, one module a subject.

mod corpora;
mod doors;
mod paths;
mod resume;
mod rule;
