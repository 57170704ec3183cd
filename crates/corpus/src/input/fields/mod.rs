//! The fields of a record that are read, and the values that they hold.

pub(crate) mod attached;
pub(crate) mod deciding;
pub(crate) mod features;
pub(crate) mod fingerprint;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod record;
