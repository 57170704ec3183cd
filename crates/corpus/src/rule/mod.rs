//! Decides which documents are removed, and which kept document represents each of them.

pub(crate) mod against;
pub(crate) mod clusters;
pub(crate) mod decide;
pub(crate) mod left_out;
pub(crate) mod near;
pub(crate) mod priority;
pub(crate) mod repeated;
pub(crate) mod score;
