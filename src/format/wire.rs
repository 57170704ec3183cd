//! Decodes numbers from bytes that may be invalid.
//!
//! Columns in files are arrays of little-endian integers at any alignment. With the byte-order types of [`zerocopy`],
//! they are read in place and without `unsafe`. The error of a decoder is a [`Fault`]: an offset in the decoded part,
//! the expected value, and the value found. The caller adds the path of the file.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

pub use crate::error::Fault;

/// Interprets `bytes` as an array of `T`.
///
/// # Errors
/// A [`Fault`] if the length is not a multiple of the size of `T`.
#[inline(always)]
pub fn column<T>(bytes: &[u8]) -> Result<&[T], Fault>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    <[T]>::ref_from_bytes(bytes).map_err(|_| {
        Fault::new(0, format!("a multiple of {} bytes", size_of::<T>()), format!("{} bytes", bytes.len()))
    })
}

/// Reads a little-endian `u32`. `at` is the offset of `bytes` in the part of the file, for the error.
///
/// # Errors
/// A [`Fault`] at `at` if `bytes` is not 4 bytes long.
#[inline(always)]
pub fn word(bytes: &[u8], at: u64) -> Result<u32, Fault> {
    match <[u8; 4]>::try_from(bytes) {
        Ok(bytes) => Ok(u32::from_le_bytes(bytes)),
        Err(_) => Err(not_a_word(bytes, at)),
    }
}

#[cold]
fn not_a_word(bytes: &[u8], at: u64) -> Fault {
    Fault::new(at, "a number of 4 bytes", format!("{} bytes", bytes.len()))
}

/// Splits `bytes` after the first `length` bytes.
///
/// # Errors
/// A [`Fault`] if there are fewer bytes; it contains the name `what` of the missing bytes.
pub fn split<'a>(bytes: &'a [u8], length: u64, what: &str) -> Result<(&'a [u8], &'a [u8]), Fault> {
    usize::try_from(length)
        .ok()
        .and_then(|length| bytes.split_at_checked(length))
        .ok_or_else(|| Fault::new(0, format!("{length} bytes of {what}"), format!("{} bytes", bytes.len())))
}

/// Reads a little-endian number of at most 2 bytes; 0 if `bytes` is empty.
#[inline(always)]
#[must_use]
pub fn short(bytes: &[u8]) -> u16 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u16::from(byte))
}

/// Reads a little-endian number of at most 8 bytes; 0 if `bytes` is empty.
#[must_use]
pub fn wide(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Appends `value` as LEB128, in the minimum number of bytes.
pub fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a LEB128 number of at most 16 bits at `*at`, and advances `*at` past it.
///
/// # Errors
/// A [`Fault`] if the bytes end early, the number has over 16 bits, or [`put_varint`] encodes it in fewer bytes.
pub fn take_varint(bytes: &[u8], at: &mut usize, what: &str) -> Result<usize, Fault> {
    let start = *at;
    let mut value = 0_u32;
    for shift in [0, 7, 14] {
        let byte = *bytes
            .get(*at)
            .ok_or_else(|| Fault::new(start as u64, format!("a {what}"), "the end of the section"))?;
        *at += 1;
        value |= u32::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            if value > 0xFFFF || (byte == 0 && shift > 0) {
                break;
            }
            return Ok(value as usize);
        }
    }
    Err(Fault::new(start as u64, format!("a {what} of at most 65535, shortest form"), format!("{value:#x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_have_one_encoding() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, 65_535] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut at = 0;
            assert_eq!(take_varint(&bytes, &mut at, "length"), Ok(value as usize));
            assert_eq!(at, bytes.len());
        }
        for bad in [&[0x80, 0x00][..], &[0xFF, 0xFF, 0x04], &[0x80, 0x80, 0x80, 0x00], &[0x80], &[]] {
            assert!(take_varint(bad, &mut 0, "length").is_err(), "{bad:x?}");
        }
    }

    #[test]
    fn column_with_a_partial_element_is_refused() {
        assert!(column::<zerocopy::little_endian::U32>(&[0; 7]).is_err());
        assert_eq!(column::<zerocopy::little_endian::U32>(&[1, 0, 0, 0]).unwrap()[0].get(), 1);
    }
}
