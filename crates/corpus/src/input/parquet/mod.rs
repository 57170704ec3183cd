//! Parquet files: reads the requested columns, and copies kept rows.

pub(crate) mod columns;
pub(crate) mod cut;
pub(crate) mod decoded;
pub(crate) mod delta;
pub(crate) mod kept;
pub(crate) mod thrift;
