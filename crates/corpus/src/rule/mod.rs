//! The rule: which documents go, and for which other document.

pub(crate) mod against;
pub(crate) mod clusters;
pub(crate) mod decide;
pub(crate) mod left_out;
pub(crate) mod near;
pub(crate) mod priority;
pub(crate) mod repeated;
pub(crate) mod score;
