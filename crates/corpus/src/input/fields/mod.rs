//! The fields of a record from which values are read, and these values.

pub(crate) mod attached;
pub(crate) mod deciding;
pub(crate) mod features;
pub(crate) mod fingerprint;
pub(crate) mod keep;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod record;
