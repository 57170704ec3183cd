//! The ranks section: for each document, in the order of ordinals, the rank of its fingerprint in table 1, 4
//! bytes each; [`NO_RANK`] for a document without one (an empty text).

use std::ops::Range;

use zerocopy::little_endian::U32;

use super::wire::{self, Fault};

/// Codec of the section.
pub const CODEC: u16 = 1;
/// The rank of a document without a fingerprint.
pub const NO_RANK: u32 = u32::MAX;
/// Bytes of a rank.
pub const RANK_BYTES: u64 = 4;

/// Where the rank of `ordinal` stands in the section.
#[must_use]
pub fn range(ordinal: u64) -> Range<u64> {
    ordinal * RANK_BYTES..(ordinal + 1) * RANK_BYTES
}

/// Reads a rank below `distinct`, or none.
///
/// # Errors
/// A [`Fault`] for a rank that no fingerprint has.
pub fn decode(bytes: &[u8], ordinal: u64, distinct: u64) -> Result<Option<u32>, Fault> {
    let rank = wire::column::<U32>(bytes)?.first().map_or(NO_RANK, |rank| rank.get());
    if rank == NO_RANK {
        Ok(None)
    } else if u64::from(rank) < distinct {
        Ok(Some(rank))
    } else {
        Err(Fault::new(range(ordinal).start, format!("a rank below {distinct}"), rank))
    }
}
