//! All pairs of sets with a resemblance, found by prefixes or by comparing bitmaps, and counted.

pub mod bitmaps;
pub(crate) mod odd_sketches;
pub mod prefix;
pub mod verified;
