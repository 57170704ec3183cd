//! Finds documents that contain a text, and documents that a text contains.

pub mod contained;
pub mod containing;
