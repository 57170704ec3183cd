//! Sets of shingle hashes: how they are stored, delta-encoded and grouped.

pub(crate) mod delta;
pub mod distinct;
pub mod equal;
pub mod families;
pub(crate) mod packed;
pub mod references;
pub mod shingle_sets;
pub mod stored;
