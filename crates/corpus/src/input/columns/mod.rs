//! The columns of Parquet and Arrow files: finds the requested columns, converts their values, and reads rows.

pub(crate) mod column;
pub(crate) mod file;
pub(crate) mod rows;
pub(crate) mod table;
