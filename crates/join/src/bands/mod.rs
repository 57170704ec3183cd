//! Candidates that share a band, and their estimated scores.

pub mod candidates;
pub mod scores;
