//! Word and sentence boundaries by the default rules of UAX #29, with tables that are part of this crate.
//!
//! The tables list the properties of characters in one version of Unicode. The parameters of an index contain this
//! version. Later versions of Unicode occasionally change the properties of characters. Rules and tables are part of
//! this crate so that no update of a dependency can move a boundary.

mod classes;
mod sentences;
#[cfg(test)]
mod tests;
mod traits;
mod words;

pub(super) use sentences::sentences;
pub(super) use words::words;
