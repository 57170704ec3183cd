//! The signatures section: for each document, in the order of ordinals, the low bits of its minima.
//!
//! A signature takes [`signature_bytes`](crate::params::MinhashParams::signature_bytes): `signature-bits` of each
//! minimum, first minimum first, least significant bit first; unused bits of the last byte are zero. A document without
//! a sketch has a signature of zeros, and is in no band.

use std::ops::Range;

/// Codec of the section.
pub const CODEC: u16 = 1;

/// Returns the byte range in the section of the signature of `ordinal`, with `width` bytes per document.
#[must_use]
#[inline]
pub fn range(ordinal: u64, width: u64) -> Range<u64> {
    ordinal * width..(ordinal + 1) * width
}
