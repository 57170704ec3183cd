//! Repeated passages of tokens: selected fingerprints, and lines of repeated positions.

pub(crate) mod filter;
pub(crate) mod finder;
pub(crate) mod hashed;
pub(crate) mod lines;
pub(crate) mod winnow;
