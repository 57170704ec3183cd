//! Computes clusters of pairs, in memory or out of core, and groups of live documents.

pub mod forest;
pub mod living;
pub mod spanning;
