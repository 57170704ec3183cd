//! The postings section: which documents have a fingerprint.
//!
//! For each rank 4 bytes. If the top bit is 0 they are the ordinal of the only document. If it is 1, the rest is a
//! place in the list area behind, in units of 4 bytes, where a count (at least 2) and that many ascending ordinals
//! stand. Lists stand in the order of ranks, without gaps.

use std::ops::Range;

use zerocopy::little_endian::U32;

use super::wire::{self, Fault};

/// Codec of the section.
pub const CODEC: u16 = 1;
/// Says that the rest is the place of a list.
pub const LIST: u32 = 1 << 31;

/// What stands for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// One document.
    One(u32),
    /// Several: the place of their list.
    List(u32),
}

/// Where the entry of `rank` stands in the section.
#[must_use]
#[inline]
pub fn range(rank: u64) -> Range<u64> {
    rank * 4..rank * 4 + 4
}

/// Reads an entry.
///
/// # Errors
/// A [`Fault`] for an ordinal that no document has.
#[inline]
pub fn decode(bytes: &[u8], rank: u64, documents: u64) -> Result<Posting, Fault> {
    let value = wire::column::<U32>(bytes)?.first().map_or(u32::MAX, |value| value.get());
    if value & LIST != 0 {
        Ok(Posting::List(value & !LIST))
    } else if u64::from(value) < documents {
        Ok(Posting::One(value))
    } else {
        Err(Fault::new(range(rank).start, format!("an ordinal below {documents}"), value))
    }
}

/// Where the count of the list at `place` stands, in a section of `rows` ranks.
#[must_use]
pub fn list_head(rows: u64, place: u32) -> Range<u64> {
    let start = rows * 4 + u64::from(place) * 4;
    start..start + 4
}

/// Where the ordinals of the list at `place` stand, from the bytes at [`list_head`].
///
/// # Errors
/// A [`Fault`] for a count below 2 or above the documents.
pub fn list_range(head: &[u8], rows: u64, place: u32, documents: u64) -> Result<Range<u64>, Fault> {
    let at = list_head(rows, place);
    let count = wire::column::<U32>(head)?.first().map_or(0, |count| u64::from(count.get()));
    if (2..=documents).contains(&count) {
        Ok(at.end..at.end + count * 4)
    } else {
        Err(Fault::new(at.start, format!("a count from 2 to {documents}"), count))
    }
}

/// Reads the ordinals of a list that begins at `at` in the section, checking that they ascend and exist.
///
/// # Errors
/// A [`Fault`] for the first that does not.
pub fn ordinals(bytes: &[u8], at: u64, documents: u64, mut each: impl FnMut(u32)) -> Result<(), Fault> {
    let mut next = 0;
    for (place, ordinal) in wire::column::<U32>(bytes)?.iter().enumerate() {
        let ordinal = ordinal.get();
        if u64::from(ordinal) >= documents || ordinal < next {
            let expected = format!("ascending ordinals below {documents}");
            return Err(Fault::new(at + place as u64 * 4, expected, ordinal));
        }
        next = ordinal + 1;
        each(ordinal);
    }
    Ok(())
}
