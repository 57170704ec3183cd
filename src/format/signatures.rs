//! The signatures section: for each document, in the order of ordinals, the low bits of its minima.
//!
//! A document takes [`signature_bytes`](crate::params::MinhashParams::signature_bytes): `signature-bits` of each
//! minimum, first minimum first, least significant bit first; the last byte is filled with zeros. A document
//! without a sketch has zeros, and is in no band.

use std::ops::Range;

/// Codec of the section.
pub const CODEC: u16 = 1;

/// The byte range in the section of the signature of `ordinal`, at `width` bytes a document.
#[must_use]
#[inline]
pub fn range(ordinal: u64, width: u64) -> Range<u64> {
    ordinal * width..(ordinal + 1) * width
}
