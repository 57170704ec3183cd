//! Finds candidate pairs of documents that share a band, and computes their scores.

pub mod candidates;
pub mod scores;
