//! The keys section: the documents' keys in ascending order. The position of a key is the ordinal of its document.
//!
//! *Codec 1, frame* (keys are `u64`): a head of 16 bytes with the smallest key and a width from 0 to 8 bytes, then for
//! each key its difference from the smallest key in `width` bytes. Width 0 means that keys are consecutive and
//! differences are not stored. So sequential keys, as in an index of raw fingerprints, take no space.
//!
//! *Codec 2, front-coded* (keys are bytes): keys in groups of 16. The section begins with the offset of each group in
//! the data and the length of the data, 8 bytes each. The data follows. The first key of a group is stored whole
//! (length, bytes). Each further key is encoded as the length of the prefix shared with the previous key, the number of
//! remaining bytes, and the remaining bytes. Lengths are LEB128.

use std::ops::Range;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::wire::{self, Fault};
use crate::key::KEY_BYTES_MAX;

/// Codec number of `u64` keys.
pub const CODEC_FRAME: u16 = 1;
/// Codec number of byte keys.
pub const CODEC_FRONT: u16 = 2;
/// Number of keys in a group of [`CODEC_FRONT`].
pub const GROUP: u64 = 16;

/// The head of a section with [`CODEC_FRAME`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FrameHead {
    /// The smallest key.
    pub base: U64,
    /// Length in bytes of the difference between a key and the smallest key, 0 to 8.
    pub width: u8,
    /// Reserved; always zero.
    pub reserved: [u8; 7],
}

/// Length of a [`FrameHead`] in bytes.
pub const FRAME_HEAD_BYTES: u64 = 16;
const _: () = assert!(size_of::<FrameHead>() as u64 == FRAME_HEAD_BYTES);

/// The layout of ascending `u64` keys: the smallest key and the width of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The smallest key.
    pub base: u64,
    /// Length in bytes of the difference between a key and the smallest key, 1 to 8; 0 if keys are consecutive.
    pub width: u64,
}

impl Frame {
    /// Returns the frame for these keys, which must ascend.
    #[must_use]
    pub fn of(keys: &[u64]) -> Self {
        let (Some(&base), Some(&last)) = (keys.first(), keys.last()) else {
            return Self { base: 0, width: 0 };
        };
        Self::spanning(base, last, keys.len() as u64)
    }

    /// Returns the frame for `rows` ascending keys from `base` to `last`; `rows` is at least 1.
    #[must_use]
    pub fn spanning(base: u64, last: u64, rows: u64) -> Self {
        let span = last.saturating_sub(base);
        let width = if span == rows - 1 { 0 } else { u64::from(64 - span.leading_zeros()).div_ceil(8) };
        Self { base, width }
    }

    /// Returns the head of this frame.
    #[must_use]
    pub fn head(&self) -> FrameHead {
        FrameHead { base: U64::new(self.base), width: self.width as u8, reserved: [0; 7] }
    }

    /// Reads the head of a section of `length` bytes that contains `rows` keys.
    ///
    /// # Errors
    /// A [`Fault`] if the width is invalid, or if width, length and `rows` do not match.
    pub fn read(head: &[u8], length: u64, rows: u64) -> Result<Self, Fault> {
        let head = FrameHead::read_from_bytes(head)
            .map_err(|_| Fault::new(0, "a head of 16 bytes", format!("{} bytes", head.len())))?;
        let width = u64::from(head.width);
        if width > 8 || head.reserved != [0; 7] {
            return Err(Fault::new(
                8,
                "a width of 0 to 8 and zeros",
                format!("{:02x?}", &head.as_bytes()[8..]),
            ));
        }
        if rows.checked_mul(width).and_then(|bytes| bytes.checked_add(FRAME_HEAD_BYTES)) != Some(length) {
            return Err(Fault::new(8, format!("{rows} keys of {width} bytes"), format!("{length} bytes")));
        }
        if width == 0 && head.base.get().checked_add(rows.saturating_sub(1)).is_none() {
            return Err(Fault::new(0, format!("a first key of {rows} consecutive ones"), head.base));
        }
        Ok(Self { base: head.base.get(), width })
    }

    /// Returns the byte range, in the section, of the difference between the key of `ordinal` and the smallest key.
    #[must_use]
    pub fn range(&self, ordinal: u64) -> Range<u64> {
        let start = FRAME_HEAD_BYTES + ordinal * self.width;
        start..start + self.width
    }

    /// Decodes the key of `ordinal` from the bytes of its difference.
    ///
    /// # Errors
    /// A [`Fault`] if the key does not fit in 64 bits.
    pub fn decode(&self, ordinal: u64, difference: &[u8]) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        bytes[..difference.len()].copy_from_slice(difference);
        let difference = if self.width == 0 { ordinal } else { u64::from_le_bytes(bytes) };
        let at = self.range(ordinal).start;
        self.base.checked_add(difference).ok_or_else(|| Fault::new(at, "a key of 64 bits", "a larger one"))
    }
}

/// Returns the number of groups for `rows` front-coded keys.
#[must_use]
pub fn groups(rows: u64) -> u64 {
    rows.div_ceil(GROUP)
}

/// Returns the byte range of two offsets in the section: the offset of group `group` and the next offset.
#[must_use]
pub fn group_offsets(group: u64) -> Range<u64> {
    group * 8..group * 8 + 16
}

/// Returns the byte range of a group in a section of `length` bytes for `rows` keys. `offsets` are the bytes at
/// [`group_offsets`].
///
/// # Errors
/// A [`Fault`] for offsets that descend or are outside the data.
pub fn group_range(offsets: &[u8], group: u64, length: u64, rows: u64) -> Result<Range<u64>, Fault> {
    let fault = |found: String| Fault::new(group * 8, "ascending offsets within the section", found);
    let pair: &[U64] = wire::column(offsets)?;
    let [start, end] = pair else { return Err(fault(format!("{} offsets", pair.len()))) };
    let data = groups(rows) * 8 + 8;
    let (start, end) = (start.get(), end.get());
    if start >= end || end > length.saturating_sub(data) || (group == 0 && start != 0) {
        return Err(fault(format!("{start} and {end}")));
    }
    Ok(data + start..data + end)
}

/// Decodes the group whose first key has the ordinal `first`. Calls `each` with the ordinal and the key until `each`
/// returns `false`. Checks that keys are not empty, not too long, and ascending.
///
/// # Errors
/// A [`Fault`] with an offset relative to the group.
pub fn decode_group(
    group: &[u8],
    first: u64,
    rows: u64,
    mut each: impl FnMut(u64, &[u8]) -> bool,
) -> Result<(), Fault> {
    let last = rows.min(first + GROUP);
    let (mut at, mut key, mut previous) = (0, Vec::new(), Vec::new());
    for ordinal in first..last {
        let start = at as u64;
        let shared = if ordinal == first { 0 } else { wire::take_varint(group, &mut at, "shared length")? };
        let rest = take_rest(group, &mut at, start)?;
        std::mem::swap(&mut key, &mut previous);
        let prefix = previous
            .get(..shared)
            .ok_or_else(|| Fault::new(start, format!("at most {} shared bytes", previous.len()), shared))?;
        if ordinal > first && previous.get(shared) == rest.first() && !rest.is_empty() {
            return Err(Fault::new(start, format!("more than {shared} shared bytes, as there are"), shared));
        }
        key.clear();
        key.extend_from_slice(prefix);
        key.extend_from_slice(rest);
        check_length(&key, start)?;
        if ordinal > first && key <= previous {
            return Err(Fault::new(start, "keys in ascending order", String::from_utf8_lossy(&key)));
        }
        if !each(ordinal, &key) {
            return Ok(());
        }
    }
    if at != group.len() {
        return Err(Fault::new(
            at as u64,
            "the end of the group",
            format!("{} more bytes", group.len() - at),
        ));
    }
    Ok(())
}

/// Returns the first key of a group, which is stored whole.
///
/// # Errors
/// A [`Fault`] at the start of the group.
pub fn first_key(group: &[u8]) -> Result<&[u8], Fault> {
    let key = take_rest(group, &mut 0, 0)?;
    check_length(key, 0)?;
    Ok(key)
}

/// Reads the bytes of a key after the shared prefix: their number at `*at`, then the bytes. Advances `*at` past them.
/// `start` is the position of the key in the group, for errors.
fn take_rest<'a>(group: &'a [u8], at: &mut usize, start: u64) -> Result<&'a [u8], Fault> {
    let length = wire::take_varint(group, at, "length")?;
    let rest = group.get(*at..*at + length);
    let rest = rest.ok_or_else(|| Fault::new(start, format!("{length} bytes of key"), "fewer"))?;
    *at += length;
    Ok(rest)
}

fn check_length(key: &[u8], start: u64) -> Result<(), Fault> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Fault::new(start, "a key of 1 to 65535 bytes", key.len()));
    }
    Ok(())
}

/// Front-codes ascending keys one by one.
#[derive(Debug, Default)]
pub struct FrontEncoder {
    previous: Vec<u8>,
    rows: u64,
    length: u64,
}

impl FrontEncoder {
    /// Appends the encoding of `key` to `data`. If the key is the first of a group, returns the length in bytes of all
    /// previously encoded keys, which is the offset of the group; otherwise returns `None`.
    pub fn push(&mut self, key: &[u8], data: &mut Vec<u8>) -> Option<u64> {
        debug_assert!(self.previous.as_slice() < key && key.len() <= KEY_BYTES_MAX);
        let before = data.len();
        let group = self.rows.is_multiple_of(GROUP).then_some(self.length);
        let shared = if group.is_some() {
            0
        } else {
            let shared = self.previous.iter().zip(key).take_while(|(a, b)| a == b).count();
            wire::put_varint(data, shared as u32);
            shared
        };
        wire::put_varint(data, (key.len() - shared) as u32);
        data.extend_from_slice(&key[shared..]);
        self.previous.truncate(shared);
        self.previous.extend_from_slice(&key[shared..]);
        self.rows += 1;
        self.length += (data.len() - before) as u64;
        group
    }

    /// Returns the length in bytes of all encoded keys.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Encodes a whole section for these keys, which must ascend, and passes its bytes to `put` in order. Encodes the keys twice,
/// because the offsets of all groups precede them.
///
/// # Errors
/// The error of `put`.
pub fn write_front<'a, E>(
    keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    mut put: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut encoder, mut data) = (FrontEncoder::default(), Vec::new());
    let mut offsets: Vec<u64> = Vec::with_capacity(keys.len().div_ceil(GROUP as usize) + 1);
    for key in keys.clone() {
        offsets.extend(encoder.push(key, &mut data));
        data.clear();
    }
    offsets.push(encoder.length());
    let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    put(&offsets)?;
    encoder = FrontEncoder::default();
    for key in keys {
        encoder.push(key, &mut data);
        put(&data)?;
        data.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_keys_take_no_space_and_others_minimal_width() {
        for (keys, width) in [
            (&[][..], 0),
            (&[7], 0),
            (&[7, 8, 9], 0),
            (&[0, 255], 1),
            (&[0, 256], 2),
            (&[1, 3, u64::MAX], 8),
            (&[0, 1, u64::MAX], 8),
        ] {
            let frame = Frame::of(keys);
            assert_eq!(frame.width, width, "{keys:?}");
            let length = FRAME_HEAD_BYTES + width * keys.len() as u64;
            assert_eq!(Frame::read(frame.head().as_bytes(), length, keys.len() as u64), Ok(frame));
            for (ordinal, &key) in keys.iter().enumerate() {
                let bytes = (key - frame.base).to_le_bytes();
                assert_eq!(frame.decode(ordinal as u64, &bytes[..width as usize]), Ok(key));
            }
        }
    }

    #[test]
    fn front_coded_keys_round_trip_group_by_group() {
        let mut keys: Vec<Vec<u8>> =
            (0..100).map(|i| format!("https://example.org/{i:04}/page").into_bytes()).collect();
        keys.push(vec![0xFF; KEY_BYTES_MAX]);
        let mut section = Vec::new();
        let put = |bytes: &[u8]| {
            section.extend_from_slice(bytes);
            Ok::<(), ()>(())
        };
        write_front(keys.iter().map(Vec::as_slice), put).unwrap();
        let rows = keys.len() as u64;
        let mut back = Vec::new();
        for group in 0..groups(rows) {
            let offsets = group_offsets(group);
            let offsets = &section[offsets.start as usize..offsets.end as usize];
            let range = group_range(offsets, group, section.len() as u64, rows).unwrap();
            let bytes = &section[range.start as usize..range.end as usize];
            decode_group(bytes, group * GROUP, rows, |_, key| {
                back.push(key.to_vec());
                true
            })
            .unwrap();
        }
        assert_eq!(back, keys);
    }

    #[test]
    fn invalid_group_is_refused() {
        for (bytes, what) in [
            (&[1, b'a', 2, 1, b'b'][..], "shared"),
            (&[1, b'b', 0, 1, b'a'], "ascending"),
            (&[1, b'a', 1, 0], "ascending"),
            (&[2, b'a', b'b', 0, 2, b'a', b'c'], "more than 0"),
            (&[0], "1 to 65535"),
            (&[9, b'a'], "9 bytes"),
            (&[1, b'a', 1, 1, b'b', 0], "end of the group"),
        ] {
            let error = decode_group(bytes, 0, 2, |_, _| true).unwrap_err();
            assert!(error.expected.contains(what), "{bytes:?}: {error:?}");
        }
    }

    #[test]
    fn first_key_agrees_with_decode_group() {
        for bytes in [&[1, b'a', 0, 1, b'b'][..], &[2, b'a', b'b'], &[0], &[9, b'a'], &[0x80, 0x80, 4], &[]] {
            let mut decoded = None;
            let done = decode_group(bytes, 0, 2, |_, key| {
                decoded = Some(key.to_vec());
                false
            });
            assert_eq!(
                first_key(bytes).map(<[u8]>::to_vec),
                done.map(|()| decoded.unwrap_or_default()),
                "{bytes:?}"
            );
        }
    }
}
