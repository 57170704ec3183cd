//! The sections `values` and `stamps`: the value and the stamp of each document, if the index stores them.
//!
//! ```text
//! values:  offsets  (documents + 1) x o     the number of bytes before each document's value, then the total number
//!          bytes    rows                    the values of all documents, one after the other
//! stamps:  head     16                      base, width
//!          stamps   documents x width       the difference of each document's stamp to the base
//!          order    documents x 4           the ordinals, sorted by stamp, then by ordinal
//! ```
//!
//! A value consists of arbitrary bytes from the caller. A stamp is the time of an event, in any unit that the caller
//! chooses, usually seconds since 1970. A document expires at a certain age of its stamp. The list `order` lets a
//! binary search find the documents that expire at a commit.

use std::ops::Range;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::fields::{self, FIELDS_BYTES_MAX, Fields};
use super::wire::{self, Fault};
use crate::error::{Error, Result};
use crate::params::Params;

/// Codec number of both sections in the table of contents.
pub const CODEC: u16 = 1;
/// Maximum length of a value in bytes.
pub const VALUE_BYTES_MAX: usize = 65_536;
/// Length in bytes of an entry of the list `order`.
pub const ORDINAL_BYTES: u64 = 4;

/// The value, the stamp and the fields of a document. An index stores only the parts that its parameters require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attached<'a> {
    /// The value, at most [`VALUE_BYTES_MAX`] bytes; empty if the index stores no values.
    pub value: &'a [u8],
    /// The time of the document, in the unit of [`Params::expire_after`].
    pub stamp: Option<u64>,
    /// The fields of the document: its mark, set and priority.
    pub fields: Fields<'a>,
}

impl Attached<'_> {
    /// Checks that the document has the stamp and the fields that an index with these parameters requires, and no part
    /// that such an index does not store.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a required part is missing or the index does not store a part; [`Error::Limit`] for a
    /// value that is too long.
    pub fn check(&self, params: &Params) -> Result<()> {
        if !self.value.is_empty() && !params.values {
            return Err(Error::Invalid(
                "this index keeps no values; that is chosen when it is created".into(),
            ));
        }
        if self.value.len() > VALUE_BYTES_MAX {
            let (limit, found) = (VALUE_BYTES_MAX as u64, self.value.len() as u64);
            return Err(Error::Limit { what: "bytes of a value", limit, found });
        }
        fields::check(self.fields, params)?;
        match (self.stamp, params.expire_after) {
            (Some(_), None) => Err(Error::Invalid(
                "this index keeps no stamps, as its documents do not expire; that is chosen when it is created"
                    .into(),
            )),
            (None, Some(_)) => Err(Error::Invalid(
                "documents of this index expire by their stamps, and this one has none; give it one".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Appends the encoding used in logs and record hashes: the length of the value (4 bytes) and the value, the stamp
    /// (8 bytes), the length of the fields (4 bytes) and the fields. Omits the parts that an index with these
    /// parameters does not store.
    pub fn encode(&self, params: &Params, out: &mut Vec<u8>) {
        if params.values {
            out.extend_from_slice(&(self.value.len() as u32).to_le_bytes());
            out.extend_from_slice(self.value);
        }
        if params.expire_after.is_some() {
            out.extend_from_slice(&self.stamp.unwrap_or(0).to_le_bytes());
        }
        if fields::are_kept(params) {
            let fields = self.fields.bytes();
            out.extend_from_slice(&(fields.len() as u32).to_le_bytes());
            out.extend_from_slice(fields);
        }
    }
}

/// The layout of a section that stores a byte string for each document: values or fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// Length in bytes of an offset. An offset is the number of bytes before a document's byte string.
    pub offset_bytes: u64,
    /// Total length of all byte strings in bytes.
    rows: u64,
    start: u64,
    /// Maximum length in bytes of one document's byte string.
    max: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Values {
    /// Returns the layout of the values section for `documents` documents with `rows` bytes of values in total; `None`
    /// if the length of the section does not fit in a `u64`.
    #[must_use]
    pub fn of(rows: u64, documents: u64) -> Option<Self> {
        Self::with_most(rows, documents, VALUE_BYTES_MAX)
    }

    /// Returns the layout of the fields section for `documents` documents with `rows` bytes of fields in total; `None`
    /// if the length of the section does not fit in a `u64`.
    #[must_use]
    pub fn of_fields(rows: u64, documents: u64) -> Option<Self> {
        Self::with_most(rows, documents, FIELDS_BYTES_MAX)
    }

    fn with_most(rows: u64, documents: u64, max: usize) -> Option<Self> {
        let offset_bytes = super::samples::offset_bytes(rows);
        let start = documents.checked_add(1)?.checked_mul(offset_bytes)?;
        Some(Self { offset_bytes, rows, start, max: max as u64, length: start.checked_add(rows)? })
    }

    /// Returns the offset in the section of the first byte string.
    #[must_use]
    pub fn bytes_start(&self) -> u64 {
        self.start
    }

    /// Returns the byte range of two offsets in the section: the offset of `ordinal` and the next offset.
    #[must_use]
    pub fn offsets(&self, ordinal: u64) -> Range<u64> {
        ordinal * self.offset_bytes..(ordinal + 2) * self.offset_bytes
    }

    /// Returns the byte range of the byte string of `ordinal` in the section. `offsets` are the bytes at
    /// [`offsets`](Self::offsets).
    ///
    /// # Errors
    /// A [`Fault`] for offsets that descend or are past the end, or for a byte string that is too long.
    pub fn range(&self, offsets: &[u8], ordinal: u64) -> std::result::Result<Range<u64>, Fault> {
        let (start, end) = offsets.split_at((self.offset_bytes as usize).min(offsets.len()));
        let (start, end) = (wire::wide(start), wire::wide(end));
        // guard: values are within the section that has them
        if start > end || end > self.rows || end - start > self.max {
            let expected = format!("at most {} bytes, by offsets up to {}", self.max, self.rows);
            return Err(Fault::new(self.offsets(ordinal).start, expected, format!("{start} to {end}")));
        }
        Ok(self.start + start..self.start + end)
    }
}

/// The head of the stamps section as stored in the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StampsHead {
    /// The lowest stamp; 0 if there are no documents.
    pub base: U64,
    /// Length in bytes of a stamp's difference to `base`: the minimum that fits all differences, 0 to 8.
    pub width: u8,
    /// Reserved; always zero.
    pub reserved: [u8; 7],
}

/// Length of a [`StampsHead`] in bytes.
pub const STAMPS_HEAD_BYTES: u64 = 16;
const _: () = assert!(size_of::<StampsHead>() == STAMPS_HEAD_BYTES as usize);

/// The layout of the stamps section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The lowest stamp.
    pub base: u64,
    /// Length in bytes of the difference between a stamp and `base`, 0 to 8.
    pub width: u64,
    documents: u64,
}

impl Stamps {
    /// Returns the layout for `documents` stamps from `min` to `max`; both are 0 if there are no documents.
    #[must_use]
    pub fn spanning(min: u64, max: u64, documents: u64) -> Self {
        let width = u64::from(64 - (max - min).leading_zeros()).div_ceil(8);
        Self { base: min, width, documents }
    }

    /// Returns the head of this layout.
    #[must_use]
    pub fn head(&self) -> StampsHead {
        StampsHead { base: U64::new(self.base), width: self.width as u8, reserved: [0; 7] }
    }

    /// Reads the head of a section of `length` bytes for `documents` documents.
    ///
    /// # Errors
    /// A [`Fault`] for a width out of range, a nonzero reserved byte, or a length that does not match.
    pub fn read(head: &[u8], length: u64, documents: u64) -> std::result::Result<Self, Fault> {
        let head: &[StampsHead] = wire::column(head)?;
        let Some(head) = head.first() else {
            return Err(Fault::new(0, format!("{STAMPS_HEAD_BYTES} bytes"), length));
        };
        if head.width > 8 || head.reserved != [0; 7] {
            let found = format!("{} and {:?}", head.width, head.reserved);
            return Err(Fault::new(8, "a width of 0 to 8 and zeros", found));
        }
        let stamps = Self { base: head.base.get(), width: head.width.into(), documents };
        if length != stamps.length() {
            let expected = format!("{} bytes for {documents} stamps", stamps.length());
            return Err(Fault::new(0, expected, format!("{length} bytes")));
        }
        Ok(stamps)
    }

    /// Returns the length of the section in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        STAMPS_HEAD_BYTES + self.documents * (self.width + ORDINAL_BYTES)
    }

    /// Returns the byte range of the stamp of `ordinal` in the section.
    #[must_use]
    pub fn range(&self, ordinal: u64) -> Range<u64> {
        let start = STAMPS_HEAD_BYTES + ordinal * self.width;
        start..start + self.width
    }

    /// Returns the byte range of the ordinal at position `place` in the list of ordinals sorted by stamp.
    #[must_use]
    pub fn ordinal(&self, place: u64) -> Range<u64> {
        let start = STAMPS_HEAD_BYTES + self.documents * self.width + place * ORDINAL_BYTES;
        start..start + ORDINAL_BYTES
    }

    /// Decodes the stamp of `ordinal` from the bytes at [`range`](Self::range).
    ///
    /// # Errors
    /// A [`Fault`] if the stamp, the sum of `base` and the difference, exceeds 2^64 - 1.
    pub fn decode(&self, bytes: &[u8], ordinal: u64) -> std::result::Result<u64, Fault> {
        let above = wire::wide(bytes);
        self.base.checked_add(above).ok_or_else(|| {
            Fault::new(self.range(ordinal).start, format!("at most {}", u64::MAX - self.base), above)
        })
    }

    /// Appends a stamp in the encoding of the section.
    pub fn encode(&self, stamp: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&(stamp - self.base).to_le_bytes()[..self.width as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_offsets_of_values_are_refused() {
        let values = Values::of(70_000, 2).unwrap();
        assert_eq!((values.offset_bytes, values.length), (3, 9 + 70_000));
        let offsets = |start: u32, end: u32| -> Vec<u8> {
            [start, end].iter().flat_map(|offset| offset.to_le_bytes()[..3].to_vec()).collect()
        };
        assert_eq!(values.range(&offsets(4, 65_540), 0), Ok(13..9 + 65_540));
        for (start, end) in [(5, 4), (0, 70_001), (70_001, 70_001), (0, 65_537)] {
            assert!(values.range(&offsets(start, end), 1).is_err(), "{start} to {end}");
        }
        assert_eq!(Values::of(u64::MAX, 2), None);
        assert_eq!(Values::of(1, u64::MAX), None);
    }

    #[test]
    fn invalid_head_of_stamps_is_refused() {
        for (min, max, width) in
            [(7, 7, 0), (7, 8, 1), (0, 255, 1), (0, 256, 2), (5, 1 << 41, 6), (0, u64::MAX, 8)]
        {
            let stamps = Stamps::spanning(min, max, 3);
            assert_eq!((stamps.width, stamps.length()), (width, 16 + 3 * (width + 4)));
            let head = stamps.head();
            assert_eq!(Stamps::read(head.as_bytes(), stamps.length(), 3), Ok(stamps));
            assert!(Stamps::read(head.as_bytes(), stamps.length() + 1, 3).is_err());
            assert!(Stamps::read(&head.as_bytes()[..15], stamps.length(), 3).is_err());
            let mut bytes = Vec::new();
            stamps.encode(max, &mut bytes);
            assert_eq!(stamps.decode(&bytes, 0), Ok(max));
        }
        let mut head = Stamps::spanning(1, 2, 3).head();
        head.width = 9;
        assert!(Stamps::read(head.as_bytes(), 16 + 3 * 13, 3).is_err());
        (head.width, head.reserved[3]) = (1, 1);
        assert!(Stamps::read(head.as_bytes(), 16 + 3 * 5, 3).is_err());
        let stamps = Stamps::spanning(u64::MAX - 1, u64::MAX, 1);
        assert!(stamps.decode(&[2], 0).is_err());
    }

    #[test]
    fn data_that_the_index_does_not_store_is_refused() {
        let plain = Params::builder().simhash(3).build().unwrap();
        let both = Params::builder().simhash(3).values().expire_after(10).build().unwrap();
        let of = |value, stamp| Attached { value, stamp, ..Attached::default() };
        assert!(of(b"", None).check(&plain).is_ok() && of(b"v", Some(1)).check(&both).is_ok());
        assert!(of(b"v", None).check(&plain).is_err() && of(b"", Some(1)).check(&plain).is_err());
        assert!(of(b"v", None).check(&both).is_err(), "a stamp is missing");
        let long = vec![0; VALUE_BYTES_MAX + 1];
        assert!(of(&long[1..], Some(0)).check(&both).is_ok());
        assert!(of(&long, Some(0)).check(&both).is_err());
    }
}
