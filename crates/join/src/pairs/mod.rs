//! Finds all pairs of sets that resemble each other: candidates by prefixes or bitmaps, verified by exact counts.

pub mod bitmaps;
pub(crate) mod odd_sketches;
pub mod prefix;
pub mod verified;
