//! The pipeline from outside, one module a subject.

mod corpora;
mod doors;
mod families;
mod histories;
mod paths;
mod resume;
mod rule;
