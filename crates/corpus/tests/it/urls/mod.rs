//! Tests of rules for URLs.

mod planted;
mod tables;
