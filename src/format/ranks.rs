//! The ranks section: for each document, ordered by ordinal, the rank of its fingerprint in table 1 (4 bytes). A
//! document without a fingerprint (an empty text) has the rank [`NO_RANK`].

use std::ops::Range;

use super::wire::{self, Fault};

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;
/// The rank of a document without a fingerprint.
pub const NO_RANK: u32 = u32::MAX;
/// Length of a rank in bytes.
pub const RANK_BYTES: u64 = 4;

/// Returns the byte range of the rank of `ordinal` in the section.
#[must_use]
pub fn range(ordinal: u64) -> Range<u64> {
    ordinal * RANK_BYTES..(ordinal + 1) * RANK_BYTES
}

/// Decodes the rank of `ordinal` and checks that it is below `distinct`; `None` if the document has no fingerprint.
///
/// # Errors
/// A [`Fault`] for a rank of `distinct` or more, or if `bytes` is not 4 bytes long.
pub fn decode(bytes: &[u8], ordinal: u64, distinct: u64) -> Result<Option<u32>, Fault> {
    let rank = wire::word(bytes, range(ordinal).start)?;
    if rank == NO_RANK {
        Ok(None)
    } else if u64::from(rank) < distinct {
        Ok(Some(rank))
    } else {
        Err(Fault::new(range(ordinal).start, format!("a rank below {distinct}"), rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_that_is_not_four_bytes_long_is_refused() {
        assert_eq!(decode(&[4, 0, 0, 0], 3, 5), Ok(Some(4)));
        assert_eq!(decode(&NO_RANK.to_le_bytes(), 3, 5), Ok(None));
        assert_eq!(decode(&[5, 0, 0, 0], 3, 5).unwrap_err().offset, 12);
        for length in [0, 3, 5, 8] {
            let fault = decode(&[0; 8][..length], 3, 5).unwrap_err();
            assert_eq!((fault.offset, fault.found), (12, format!("{length} bytes")));
        }
    }
}
