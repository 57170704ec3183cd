//! CSV and TSV tables.

pub(crate) mod dialect;
pub(crate) mod rows;
