//! The sections `bottom` and `modular`: for each document, ordered by ordinal, a sample of its shingle hashes.
//!
//! ```text
//! offsets  (documents + 1) x o    the number of values before each document's values, then the total number
//! values   rows x 6               the values of all documents, one document after the other; they ascend within a document
//! ```
//!
//! `rows` is the number of all values, and `o` is the number of bytes needed for this number, at least 1. Values are
//! hashes of 48 bits ([`sketch::samples`](twindex_sketch::samples)): the lowest hashes of a document, at most `bottom`,
//! or the hashes that are divisible by `modulus`. A document without a sketch has no values. Values are not compressed:
//! the hashes of a document are random, so the differences between consecutive hashes need about 6 bytes, too.

use std::ops::Range;

use super::wire::{self, Fault};
use crate::error::Error;
use crate::params::{HASH_BITS, MODULAR_MAX, Params};

/// Codec number of both sections in the table of contents.
pub const CODEC: u16 = 1;
/// Length of a value in bytes.
pub const VALUE_BYTES: u64 = HASH_BITS as u64 / 8;

/// The kind of sample that a section stores, with its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleChoice {
    /// The lowest hashes of a document, at most this number.
    Bottom(u16),
    /// The hashes of a document that are divisible by this modulus.
    Modular(u32),
}

impl SampleChoice {
    /// Returns the samples that an index with these parameters stores: bottom, then modular; `None` for a kind that it
    /// does not store.
    #[must_use]
    pub fn of(params: &Params) -> [Option<Self>; 2] {
        [
            (params.bottom > 0).then_some(Self::Bottom(params.bottom)),
            (params.modulus > 0).then_some(Self::Modular(params.modulus)),
        ]
    }

    /// Returns the maximum number of values per document.
    #[must_use]
    pub fn max(self) -> u64 {
        match self {
            Self::Bottom(t) => t.into(),
            Self::Modular(_) => MODULAR_MAX as u64,
        }
    }

    /// Returns the minimum number of values of a document with a sketch. Such a document has at least one shingle hash.
    #[must_use]
    pub fn min(self) -> u64 {
        match self {
            Self::Bottom(_) => 1,
            Self::Modular(_) => 0,
        }
    }

    /// Returns whether a sample of this kind may contain `value`.
    #[must_use]
    pub fn allows(self, value: u64) -> bool {
        match self {
            Self::Bottom(_) => true,
            Self::Modular(modulus) => value.is_multiple_of(modulus.into()),
        }
    }

    /// Checks that a document with a sketch can have this number of values.
    ///
    /// # Errors
    /// A [`Fault`] at offset 0 for any other number.
    pub fn check_count(self, count: usize) -> Result<(), Fault> {
        let range = self.min()..=self.max();
        if range.contains(&(count as u64)) {
            return Ok(());
        }
        let expected = format!("{} to {} sampled hashes", range.start(), range.end());
        Err(Fault::new(0, expected, count))
    }

    /// Checks that the values ascend strictly, have at most 48 bits, and are allowed in this kind of sample.
    ///
    /// # Errors
    /// A [`Fault`] for the first invalid value, with an offset relative to the first value.
    pub fn check_values(self, values: &[u64]) -> Result<(), Fault> {
        let mut min = 0;
        for (place, &value) in values.iter().enumerate() {
            if value < min || value >> HASH_BITS != 0 || !self.allows(value) {
                let expected = match self {
                    Self::Bottom(_) => format!("a hash of {HASH_BITS} bits, from {min} on"),
                    Self::Modular(modulus) => {
                        format!("a multiple of {modulus} of {HASH_BITS} bits, from {min} on")
                    }
                };
                return Err(Fault::new(place as u64 * VALUE_BYTES, expected, value));
            }
            min = value + 1;
        }
        Ok(())
    }
}

/// Checks the sample of a document that has a sketch; `choice` is `None` if the index stores no sample of this kind.
///
/// # Errors
/// [`Error::Invalid`] for an invalid number of values, or for an invalid value.
pub fn check(choice: Option<SampleChoice>, values: &[u64]) -> crate::error::Result<()> {
    match choice {
        Some(choice) => {
            let checked = choice.check_count(values.len()).and_then(|()| choice.check_values(values));
            checked.map_err(|Fault { expected, found, .. }| {
                Error::Invalid(format!("a sample ({choice:?}): expected {expected}, found {found}"))
            })
        }
        None if values.is_empty() => Ok(()),
        None => Err(Error::Invalid("sampled hashes for parameters that keep none".into())),
    }
}

/// The layout of a bottom or modular section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// The kind of sample.
    pub choice: SampleChoice,
    /// Length in bytes of an offset. An offset is the number of values before a document's values.
    pub offset_bytes: u64,
    rows: u64,
    values: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

impl Samples {
    /// Returns the layout for `rows` values of `documents` documents; `None` if the length does not fit in a `u64`.
    #[must_use]
    pub fn of(choice: SampleChoice, rows: u64, documents: u64) -> Option<Self> {
        let offset_bytes = offset_bytes(rows);
        let values = documents.checked_add(1)?.checked_mul(offset_bytes)?;
        let length = rows.checked_mul(VALUE_BYTES)?.checked_add(values)?;
        Some(Self { choice, offset_bytes, rows, values, length })
    }

    /// Returns the byte range of two offsets in the section: the offset of `ordinal` and the next offset.
    #[must_use]
    pub fn offsets(&self, ordinal: u64) -> Range<u64> {
        ordinal * self.offset_bytes..(ordinal + 2) * self.offset_bytes
    }

    /// Returns the byte range of the values of `ordinal` in the section. `offsets` are the bytes at
    /// [`offsets`](Self::offsets).
    ///
    /// # Errors
    /// A [`Fault`] for offsets that descend or are past the end, or for too many values.
    pub fn range(&self, offsets: &[u8], ordinal: u64) -> Result<Range<u64>, Fault> {
        let (start, end) = offsets.split_at((self.offset_bytes as usize).min(offsets.len()));
        let (start, end) = (wire::wide(start), wire::wide(end));
        if start > end || end > self.rows || end - start > self.choice.max() {
            let expected = format!("at most {} values, by offsets up to {}", self.choice.max(), self.rows);
            return Err(Fault::new(self.offsets(ordinal).start, expected, format!("{start} to {end}")));
        }
        Ok(self.values + start * VALUE_BYTES..self.values + end * VALUE_BYTES)
    }

    /// Decodes the values of a document, which begin at `at` in the section, and appends them to `out`.
    ///
    /// # Errors
    /// A [`Fault`] for the first value that does not ascend or is not allowed in this kind of sample.
    pub fn decode(&self, bytes: &[u8], at: u64, out: &mut Vec<u64>) -> Result<(), Fault> {
        let start = out.len();
        out.extend(decode(bytes));
        let checked = self.choice.check_values(&out[start..]);
        checked.map_err(|fault| Fault { offset: at + fault.offset, ..fault })
    }
}

/// Returns the length in bytes of an offset in a section of `rows` values.
#[must_use]
pub fn offset_bytes(rows: u64) -> u64 {
    u64::from(64 - rows.leading_zeros()).div_ceil(8).max(1)
}

/// Appends values in the encoding of the section.
pub fn encode(values: &[u64], out: &mut Vec<u8>) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes()[..VALUE_BYTES as usize]);
    }
}

/// Decodes values from their bytes in the section.
pub fn decode(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    bytes.chunks_exact(VALUE_BYTES as usize).map(wire::wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_minimal_width_for_the_number_of_values() {
        let of = |rows| Samples::of(SampleChoice::Bottom(7), rows, 10).unwrap();
        for (rows, bytes) in [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (1 << 32, 5)] {
            assert_eq!(of(rows).offset_bytes, bytes, "{rows}");
            assert_eq!(of(rows).length, 11 * bytes + 6 * rows);
        }
        assert_eq!(Samples::of(SampleChoice::Bottom(7), u64::MAX, 10), None);
        assert_eq!(Samples::of(SampleChoice::Bottom(7), 1, u64::MAX), None);
    }

    #[test]
    fn invalid_offsets_and_values_are_refused() {
        let samples = Samples::of(SampleChoice::Bottom(3), 10, 4).unwrap();
        assert_eq!(samples.range(&[2, 5], 1), Ok(5 + 12..5 + 30));
        assert_eq!(samples.range(&[10, 10], 3), Ok(5 + 60..5 + 60));
        for offsets in [[5, 2], [2, 6], [9, 11], [0, 255], [11, 11], [255, 0]] {
            assert!(samples.range(&offsets, 1).is_err(), "{offsets:?}");
        }
        let mut bytes = Vec::new();
        encode(&[3, 9, (1 << 48) - 1], &mut bytes);
        let mut out = vec![7];
        samples.decode(&bytes, 0, &mut out).unwrap();
        assert_eq!(out, [7, 3, 9, (1 << 48) - 1]);
        for lie in [&[3, 3][..], &[9, 3]] {
            bytes.clear();
            encode(lie, &mut bytes);
            assert_eq!(samples.decode(&bytes, 100, &mut out).unwrap_err().offset, 106);
        }
        let modular = Samples::of(SampleChoice::Modular(10), 3, 4).unwrap();
        bytes.clear();
        encode(&[0, 30, 35], &mut bytes);
        assert_eq!(modular.decode(&bytes, 0, &mut out).unwrap_err().offset, 12);
    }

    #[test]
    fn check_refuses_samples_with_wrong_count_order_width_or_modulus() {
        let (bottom, modular) = (SampleChoice::Bottom(2), SampleChoice::Modular(10));
        for (choice, good) in [(bottom, &[3, 9][..]), (bottom, &[0]), (modular, &[]), (modular, &[0, 30])] {
            assert!(check(Some(choice), good).is_ok(), "{choice:?} {good:?}");
        }
        for (choice, bad) in [
            (bottom, &[][..]),
            (bottom, &[1, 2, 3]),
            (bottom, &[2, 2]),
            (bottom, &[1 << 48]),
            (modular, &[10, 25]),
            (modular, &[20, 10]),
        ] {
            assert!(check(Some(choice), bad).is_err(), "{choice:?} {bad:?}");
        }
        let many: Vec<u64> = (0..=MODULAR_MAX as u64).collect();
        assert!(check(Some(SampleChoice::Modular(1)), &many[1..]).is_ok());
        assert!(check(Some(SampleChoice::Modular(1)), &many).is_err());
        assert!(check(None, &[]).is_ok() && check(None, &[7]).is_err());
    }
}
