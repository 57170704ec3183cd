//! How segment files are read.

use twindex::Access;

use crate::border::Result;
use crate::error::Error;

/// Maps segment files, with advice to the operating system. The default.
pub const TWINDEX_ACCESS_MAP: u32 = 0;
/// Maps segment files without advice.
pub const TWINDEX_ACCESS_PLAIN_MAP: u32 = 1;
/// Reads each page at its first use and keeps a copy. An unreadable page is an error, and never ends the process.
pub const TWINDEX_ACCESS_READ: u32 = 2;
/// Reads each segment file completely when it is opened.
pub const TWINDEX_ACCESS_LOAD: u32 = 3;

/// Converts a number of `TWINDEX_ACCESS_...`.
pub(crate) fn access(number: u32) -> Result<Access> {
    match number {
        TWINDEX_ACCESS_MAP => Ok(Access::Map),
        TWINDEX_ACCESS_PLAIN_MAP => Ok(Access::PlainMap),
        TWINDEX_ACCESS_READ => Ok(Access::Read),
        TWINDEX_ACCESS_LOAD => Ok(Access::Load),
        other => Err(Error::invalid(format!("access is {other}, expected 0 to 3"))),
    }
}
