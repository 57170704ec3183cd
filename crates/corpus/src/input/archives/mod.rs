//! Web archives: WARC, WET and ARC.

pub(crate) mod arc;
pub(crate) mod http;
pub(crate) mod revisit;
pub(crate) mod stream;
pub(crate) mod warc;
