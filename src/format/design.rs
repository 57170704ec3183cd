//! The design section: the name of the segment's table design in ASCII, without a newline. The table of contents states
//! the codec of each table.

use crate::design::DesignName;
use crate::format::wire::Fault;

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;
/// Maximum length of a name in bytes.
pub const NAME_BYTES_MAX: u64 = 64;

/// Decodes the name of a table design.
///
/// # Errors
/// A [`Fault`] if no design has this name.
pub fn decode(bytes: &[u8]) -> Result<DesignName, Fault> {
    let name = std::str::from_utf8(bytes).ok().and_then(|name| name.parse().ok());
    name.ok_or_else(|| Fault::new(0, "the name of a table design", bytes.escape_ascii()))
}
