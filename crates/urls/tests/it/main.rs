//! Tests of the public interface of the crate.

mod planted;
mod tables;
