//! Finds containing and contained documents.

pub mod contained;
pub mod containing;
