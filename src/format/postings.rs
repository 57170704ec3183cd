//! The postings section: the documents of each fingerprint.
//!
//! Each rank has an entry of 4 bytes. If the top bit of the entry is 0, only one document has the fingerprint, and the
//! entry is the ordinal of the document. If the top bit is 1, the lower 31 bits are the position of a list in the list
//! area after the entries, in units of 4 bytes. A list consists of the number of ordinals (at least 2) and the
//! ordinals, ascending. Lists are in the order of ranks, without gaps.

use std::ops::{ControlFlow, Range};

use zerocopy::little_endian::U32;

use super::wire::{self, Fault};

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;
/// The bit of an entry that distinguishes the position of a list (1) from the ordinal of a document (0).
pub const LIST: u32 = 1 << 31;

/// The entry of a rank: the documents whose fingerprint has the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// The ordinal of the only document with this fingerprint.
    One(u32),
    /// The position of the list of documents in the list area, in units of 4 bytes.
    List(u32),
}

/// Returns the byte range of the entry of `rank` in the section.
#[must_use]
#[inline]
pub fn range(rank: u64) -> Range<u64> {
    rank * 4..rank * 4 + 4
}

/// Decodes the entry of `rank`.
///
/// # Errors
/// A [`Fault`] for an ordinal that is not below `documents`, or if `bytes` is not 4 bytes long.
#[inline]
pub fn decode(bytes: &[u8], rank: u64, documents: u64) -> Result<Posting, Fault> {
    let value = wire::word(bytes, range(rank).start)?;
    if value & LIST != 0 {
        Ok(Posting::List(value & !LIST))
    } else if u64::from(value) < documents {
        Ok(Posting::One(value))
    } else {
        Err(Fault::new(range(rank).start, format!("an ordinal below {documents}"), value))
    }
}

/// Returns the byte range of the count of the list at position `place`, in units of 4 bytes. `rows` is the number of
/// ranks in the section.
#[must_use]
pub fn list_head(rows: u64, place: u32) -> Range<u64> {
    let start = rows * 4 + u64::from(place) * 4;
    start..start + 4
}

/// Returns the byte range of the ordinals of the list at position `place`, in units of 4 bytes. `head` are the bytes at
/// [`list_head`].
///
/// # Errors
/// A [`Fault`] for a count below 2 or above `documents`, or if `head` is not 4 bytes long.
pub fn list_range(head: &[u8], rows: u64, place: u32, documents: u64) -> Result<Range<u64>, Fault> {
    let at = list_head(rows, place);
    let count = u64::from(wire::word(head, at.start)?);
    if (2..=documents).contains(&count) {
        Ok(at.end..at.end + count * 4)
    } else {
        Err(Fault::new(at.start, format!("a count from 2 to {documents}"), count))
    }
}

/// Calls `each` with the ordinals of the list that begins at `at` in the section, until it returns `Break`. Checks that
/// they ascend and are below `documents`.
///
/// # Errors
/// A [`Fault`] for the first invalid ordinal.
pub fn ordinals(
    bytes: &[u8],
    at: u64,
    documents: u64,
    mut each: impl FnMut(u32) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut next = 0;
    for (place, ordinal) in wire::column::<U32>(bytes)?.iter().enumerate() {
        let ordinal = ordinal.get();
        if u64::from(ordinal) >= documents || ordinal < next {
            let expected = format!("ascending ordinals below {documents}");
            return Err(Fault::new(at + place as u64 * 4, expected, ordinal));
        }
        next = ordinal + 1;
        if each(ordinal).is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_or_count_of_wrong_length_is_refused() {
        assert_eq!(decode(&[6, 0, 0, 0], 3, 7), Ok(Posting::One(6)));
        assert_eq!(decode(&[6, 0, 0, 0x80], 3, 7), Ok(Posting::List(6)));
        assert_eq!(list_range(&[2, 0, 0, 0], 10, 1, 7), Ok(48..56));
        for length in [0, 3, 5, 8] {
            // The same bytes are the start of a valid entry and of a valid count.
            let bytes = &[2, 0, 0, 0, 2, 0, 0, 0][..length];
            for (at, fault) in
                [(12, decode(bytes, 3, 7).unwrap_err()), (44, list_range(bytes, 10, 1, 7).unwrap_err())]
            {
                assert_eq!((fault.offset, fault.found), (at, format!("{length} bytes")));
            }
        }
    }
}
