//! Finds repeated passages: selects fingerprints, filters t-grams, and joins repeated positions into lines.

pub(crate) mod filter;
pub(crate) mod finder;
pub(crate) mod hashed;
pub(crate) mod lines;
pub(crate) mod winnow;
