//! Clusters of pairs, in memory and out of core, and groups of living documents.

pub mod forest;
pub mod living;
pub mod spanning;
