//! Stores sets of shingle hashes, encodes them as deltas, and groups equal sets.

pub(crate) mod delta;
pub mod distinct;
pub mod equal;
pub mod families;
pub(crate) mod packed;
pub mod references;
pub mod shingle_sets;
pub mod stored;
