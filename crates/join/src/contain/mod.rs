//! Documents that contain others, or are contained in them.

pub mod contained;
pub mod containing;
