//! The signatures section: for each document, ordered by ordinal, the low bits of its minima.
//!
//! The length of a signature is [`signature_bytes`](crate::params::MinhashParams::signature_bytes). It contains the low
//! `signature-bits` bits of each minimum, starting with the first minimum and the least significant bit; unused bits of
//! the last byte are zero. A document without a sketch has a signature of zeros, and no band contains it.

use std::ops::Range;

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;

/// Returns the byte range of the signature of `ordinal` in the section. `width` is the length of a signature in bytes.
#[must_use]
#[inline]
pub fn range(ordinal: u64, width: u64) -> Range<u64> {
    ordinal * width..(ordinal + 1) * width
}
